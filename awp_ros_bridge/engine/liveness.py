"""Owns who is still there: heartbeats, the watchdog, suspension, resumption, expiry (AWP-SAF)."""

from __future__ import annotations

from typing import Any, TYPE_CHECKING

from awp_ros_bridge.engine.actions import Cause
from awp_ros_bridge.engine.sessions import Connection, Session
from awp_ros_bridge.wire import codec
from awp_ros_bridge.wire.lifecycle import SessionState

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel

Json = dict[str, Any]


class Liveness:
    """Watches agents on steady time; each mechanism has its own clock, none stands for another."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    # ------------------------------------------------------------ beginning and end

    def begin(self, session: Session) -> None:
        """Heartbeat obligations begin at ``session.ready`` (AWP-SES-012)."""
        now = self._kernel.now_ns
        session.agent_ns = now
        session.telemetry.since_ns = now
        self._attach(session)
        self._arm_watchdog(session)
        if session.expires_ns is not None:
            at = session.clock.steady_ns(session.expires_ns)
            self._kernel.deadlines.set(('grants', session), at, lambda: self._expire(session))

    def _attach(self, session: Session) -> None:
        kernel = self._kernel
        session.heard_ns = kernel.now_ns
        kernel.deadlines.set(
            ('ping', session),
            kernel.now_ns + kernel.policy.heartbeat_ns * 9 // 10,
            lambda: self._ping(session),
        )
        kernel.deadlines.set(
            ('heard', session),
            kernel.now_ns + 3 * kernel.policy.heartbeat_ns,
            lambda: self._check_heard(session),
        )
        kernel.deadlines.set(
            ('telemetry', session),
            kernel.now_ns + kernel.policy.telemetry_ns,
            lambda: self._telemetry(session),
        )

    def forget(self, session: Session) -> None:
        """Clear all that could become due: the session is closed."""
        for name in ('ping', 'heard', 'telemetry', 'watchdog', 'window', 'grants'):
            self._kernel.deadlines.clear((name, session))

    # ------------------------------------------------------------ messages

    def heard(self, session: Session) -> None:
        """Note a message of any kind: the connection is alive (AWP-SAF-002)."""
        session.heard_ns = self._kernel.now_ns

    def originated(self, session: Session) -> None:
        """Note a request or notification of the agent: it keeps the watchdog off (AWP-SAF-003)."""
        session.agent_ns = self._kernel.now_ns
        if session.watchdog_tripped:
            session.watchdog_tripped = False
            self._arm_watchdog(session)
            self._report(session)

    def _ping(self, session: Session) -> None:
        """Send our heartbeat, which is also a clock exchange (AWP-SAF-001, AWP-CLK-007)."""
        if session.conn is None:
            return
        kernel = self._kernel
        session.pings += 1
        params: Json = {'origin_ns': session.clock.session_ns(kernel.now_ns)}
        kernel.delivery.send(
            session.conn, codec.request(f'w{session.pings}', 'ping', params), session
        )
        at = kernel.now_ns + kernel.policy.heartbeat_ns * 9 // 10
        kernel.deadlines.set(('ping', session), at, lambda: self._ping(session))

    def _check_heard(self, session: Session) -> None:
        """Three silent intervals: the connection is lost (AWP-SAF-002)."""
        kernel = self._kernel
        if session.conn is None:
            return
        due = session.heard_ns + 3 * kernel.policy.heartbeat_ns
        if kernel.now_ns < due:
            kernel.deadlines.set(('heard', session), due, lambda: self._check_heard(session))
            return
        kernel.close_connection(session.conn, 1001, 'three silent heartbeat intervals')
        self.suspend(session, 'connection_lost')

    def _telemetry(self, session: Session) -> None:
        """Report latencies at least once per second (AWP-TIM-006)."""
        kernel = self._kernel
        if session.conn is None:
            return
        params = session.telemetry.report(kernel.now_ns)
        message = codec.notification('session.telemetry', params)
        kernel.delivery.send(session.conn, message, session)
        at = kernel.now_ns + kernel.policy.telemetry_ns
        kernel.deadlines.set(('telemetry', session), at, lambda: self._telemetry(session))

    # ------------------------------------------------------------ the watchdog

    def _arm_watchdog(self, session: Session) -> None:
        if session.embodiments:
            at = session.agent_ns + self._kernel.policy.watchdog_ns
            self._kernel.deadlines.set(
                ('watchdog', session), at, lambda: self._check_watchdog(session)
            )

    def _check_watchdog(self, session: Session) -> None:
        """Enter safe state after ``watchdog_ms`` without the agent's own traffic (AWP-SAF-004)."""
        kernel = self._kernel
        if not session.embodiments or session.closing is not None:
            return
        due = session.agent_ns + kernel.policy.watchdog_ns
        if kernel.now_ns < due:
            kernel.deadlines.set(('watchdog', session), due, lambda: self._check_watchdog(session))
            return
        session.watchdog_tripped = True
        held = [kernel.embodiments[e] for e in session.embodiments]
        stale = [e for e in held if e.id not in session.told_safe or e.live_actions()]
        if stale:
            ms = kernel.policy.watchdog_ns // 1_000_000
            kernel.safety.enter(stale, Cause.SAFE_STATE, f'watchdog: no message for {ms} ms')
        self._report(session)

    def _report(self, session: Session) -> None:
        for name in session.embodiments:
            self._kernel.report(self._kernel.embodiments[name])

    # ------------------------------------------------------------ suspension and return

    def connection_lost(self, conn_id: int) -> None:
        """Forget a connection, whoever closed it; the session that it carried is suspended."""
        lost = self._kernel.connections.pop(conn_id, None)
        if lost is None:
            return
        lost.is_closing = True
        if lost.session is not None:
            self.suspend(lost.session, 'connection_lost')

    def suspend(self, session: Session, reason: str) -> None:
        """Suspend a session without a connection; the watchdog keeps running (AWP-SES-003)."""
        kernel = self._kernel
        conn = session.conn
        if conn is None:
            return
        conn.session = None
        session.conn = None
        for name in ('ping', 'heard', 'telemetry'):
            kernel.deadlines.clear((name, session))
        kernel.channels.detached(session)
        if session.is_closed or session.closing is not None:
            return
        kernel.delivery.state(session, SessionState.SUSPENDED, reason)
        kernel.deadlines.set(
            ('window', session),
            kernel.now_ns + kernel.policy.reconnect_window_ns,
            lambda: self._window_over(session),
        )

    def _window_over(self, session: Session) -> None:
        """Nobody came back in time: the session closes (AWP-SES-005)."""
        self._kernel.closer.close(session, 'window_expired')

    def adopt(self, session: Session, conn: Connection) -> None:
        """Attach a session to a new connection; replay and frames follow (AWP-SES-004/010)."""
        kernel = self._kernel
        if session.conn is not None:
            old = session.conn
            self.suspend(session, 'connection_replaced')
            kernel.close_connection(old, 1000, 'connection_replaced')
        kernel.deadlines.clear(('window', session))
        conn.session = session
        session.conn = conn
        session.credential = conn.permissions.credential
        session.agent = conn.agent
        kernel.channels.adapt(session, conn)
        self._attach(session)

    def _expire(self, session: Session) -> None:
        """Treat the grants as never granted: they ran out (AWP-PRM-003)."""
        if session.is_closed or session.closing is not None:
            return
        session.expires_ns = -1
        session.admin = ()
        self._kernel.delivery.event(session, 'grant_expired', {})
        self._kernel.channels.drop_all(session)
