"""Owns what ends sessions and worlds in order: close, reset, shutdown (AWP-SES-006/011)."""

from __future__ import annotations

from typing import Any, TYPE_CHECKING

from awp_ros_bridge.engine.actions import Action, Cause
from awp_ros_bridge.engine.effects import CloseAudit, CloseConnection, Finish, ResetWorld
from awp_ros_bridge.engine.embodiments import Embodiment
from awp_ros_bridge.engine.inputs import SessionCloseRequested
from awp_ros_bridge.engine.sessions import Closing, Connection, Session
from awp_ros_bridge.wire.errors import ErrorCode, WireFault
from awp_ros_bridge.wire.lifecycle import SessionState

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel

Json = dict[str, Any]

SHUTDOWN_BOUND_NS = 3_200_000_000  # the process ends within 4 s, its own teardown included


class Closer:
    """Ends things: actions first, then the behaviour, then rest, then what was asked for."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._reset: tuple[Connection, int | str, str] | None = None
        self._reset_stage = ''  # '' none, 'ending' actions, 'resting', 'asked' the simulator
        self._unanswered = 0  # questions to the simulator without an answer

    # ------------------------------------------------------------ deadlines

    def deadline(self, action: Action, limit_ns: int) -> None:
        """End an action whose time is up (AWP-ACT-004)."""
        detail = f'not done within {limit_ns // 1_000_000} ms of its receipt'
        self._kernel.endings.end(action, Cause.DEADLINE, detail)

    # ------------------------------------------------------------ sessions

    def close(
        self,
        session: Session,
        reason: str,
        *,
        reply: tuple[int, int | str] | None = None,
        disconnect: tuple[int, str] | None = None,
    ) -> None:
        """
        Close a session: end its actions, run the behaviour, wait for rest, release, report.

        :param reply: connection and request to answer when it is closed; a repeated close is
            answered together with the first (AWP-SES-011).
        :param disconnect: close code and reason for the connection, after everything else.
        """
        if session.closing is not None:
            if reply is not None:
                session.closing.replies.append(reply)
            session.closing.disconnect = session.closing.disconnect or disconnect
            return
        session.closing = Closing(reason, [reply] if reply else [], disconnect)
        kernel = self._kernel
        actions = session.live_actions()
        for action in sorted(actions, key=lambda a: not a.is_pre_execution or a.is_in_flight):
            kernel.endings.end(action, Cause.CLOSE, reason)
        kernel.when_ended(actions, lambda: self._behave(session))

    def requested(self, fact: SessionCloseRequested) -> None:
        """Close a session for somebody at the robot; one that is closed or closing goes on."""
        session = self._kernel.sessions.get(fact.session_id)
        if session is not None and session.closing is None:
            self._kernel.delivery.audit(
                session, 'world', 'note', {'close_requested': fact.detail}
            )
            self.close(session, 'session_closed')

    def _behave(self, session: Session) -> None:
        """Every action is over: run the declared behaviour on what the session holds."""
        closing = session.closing
        if closing is None or session.is_closed:  # closed by force meanwhile
            return
        held = [self._kernel.embodiments[e] for e in session.embodiments]
        closing.waiting_for = {e.id for e in held}
        if not held:
            self._finish(session)
        for embodiment in held:
            self._kernel.safety.begin_behavior(
                embodiment,
                f'session {closing.reason}',
                lambda e=embodiment: self._rested(session, e),  # type: ignore[misc]
            )

    def _rested(self, session: Session, embodiment: Embodiment) -> None:
        closing = session.closing
        if closing is None or embodiment.id not in closing.waiting_for:
            return
        closing.waiting_for.discard(embodiment.id)
        if not closing.waiting_for:
            self._finish(session)

    def _finish(self, session: Session) -> None:
        """Release, report ``closed``, answer (AWP-EMB-002, AWP-SES-011)."""
        kernel = self._kernel
        closing = session.closing
        if closing is None or session.is_closed:
            return
        if session.transfer is not None and session.transfer.cancel is not None:
            session.transfer.cancel('the holder closed its session')
        for name in session.embodiments:
            self.release(kernel.embodiments[name])
        kernel.channels.drop_all(session)
        kernel.delivery.state(session, SessionState.CLOSED, closing.reason)
        for conn_id, request_id in closing.replies:
            conn = kernel.connections.get(conn_id)
            if conn is not None:
                kernel.delivery.reply(conn, request_id, {})
        self._forget(session, closing)

    def _forget(self, session: Session, closing: Closing) -> None:
        kernel = self._kernel
        conn = session.conn
        if session.stream is not None:
            kernel.streams.pop(session.stream, None)
            kernel.emit(CloseConnection(session.stream, 1000, 'session closed'))
            session.stream = None
        if conn is not None:
            conn.session = None
            session.conn = None
            if closing.disconnect is not None:
                kernel.close_connection(conn, *closing.disconnect)
        kernel.tokens.retire(session)
        kernel.sessions.pop(session.id, None)
        kernel.liveness.forget(session)
        kernel.emit(CloseAudit(session.id))
        if kernel.shutting_down:
            kernel.later(self._end_process)

    def release(self, embodiment: Embodiment) -> None:
        """Let the embodiment go; it stays in safe state until somebody's action executes."""
        embodiment.session = None
        embodiment.in_safe_state = True
        self._kernel.report(embodiment)

    # ------------------------------------------------------------ reset

    @property
    def is_resetting(self) -> bool:
        """Return whether ``world.reset`` is under way: nothing new may start."""
        return self._reset is not None

    def reset(self, conn: Connection, request_id: int | str, initial_state: str) -> None:
        """
        Return the simulated world to an initial state (AWP-PRM-006).

        :raises WireFault: AWP_BUSY while another reset runs.
        """
        kernel = self._kernel
        session = conn.session
        if session is None:
            return
        if self._reset is not None:
            raise WireFault(ErrorCode.BUSY, 'another world.reset is under way')
        self._reset = (conn, request_id, initial_state)
        self._reset_stage = 'ending'
        kernel.deadlines.set(
            ('reset',),
            kernel.now_ns + kernel.policy.reset_bound_ns,
            lambda: self._answer_reset(ok=False, detail=f'timeout while {self._reset_stage}'),
        )
        detail: Json = {'initiator': session.id, 'kind': 'reset', 'initial_state': initial_state}
        live: list[Action] = []
        for each in kernel.live_sessions():
            kernel.delivery.event(each, 'world_resetting', detail)
            live += each.live_actions()
        for action in sorted(live, key=lambda a: not a.is_pre_execution or a.is_in_flight):
            kernel.endings.end(action, Cause.RESET, f'world.reset by {session.id}')
        kernel.when_ended(live, self._actions_ended)

    def _actions_ended(self) -> None:
        if self._reset is not None:
            self._reset_stage = 'resting'
            self.try_reset()

    def try_reset(self) -> None:
        """Ask the simulator once no goal is active any more; called when one ended."""
        if self._reset is None or self._reset_stage != 'resting':
            return
        embodiments = self._kernel.embodiments.values()
        if self._kernel.goals or any(e.behavior_ticket is not None for e in embodiments):
            return
        self._reset_stage = 'asked'
        self._unanswered += 1
        self._kernel.emit(ResetWorld(self._reset[2]))

    def reset_finished(self, *, ok: bool, detail: str) -> None:
        """Take an answer of the simulator; one to a reset that ran out of time is not ours."""
        self._unanswered = max(0, self._unanswered - 1)
        if self._reset_stage == 'asked' and not self._unanswered:
            self._answer_reset(ok=ok, detail=detail)

    def _answer_reset(self, *, ok: bool, detail: str) -> None:
        kernel = self._kernel
        if self._reset is None:
            return
        kernel.deadlines.clear(('reset',))
        conn, request_id, state = self._reset
        self._reset = None
        self._reset_stage = ''
        if ok:
            kernel.delivery.reply(conn, request_id, {})
        else:
            fault = WireFault(ErrorCode.INTERNAL_ERROR, f'reset to {state!r} failed: {detail}')
            kernel.delivery.refuse(conn, request_id, fault)

    # ------------------------------------------------------------ the process

    def shut_down(self, detail: str) -> None:
        """End every session as on close, within the bound, then the process may end."""
        kernel = self._kernel
        if kernel.shutting_down:
            return
        kernel.shutting_down = True
        kernel.deadlines.set(
            ('shutdown',), kernel.now_ns + SHUTDOWN_BOUND_NS, self._shutdown_bound
        )
        for session in kernel.live_sessions():
            kernel.delivery.event(session, 'world_shutdown', {'detail': detail})
            self.close(session, 'world_shutdown', disconnect=(1001, 'world_shutdown'))
        kernel.later(self._end_process)

    def _shutdown_bound(self) -> None:
        """Close what is left by force: what did not end in time fails, and safe state follows."""
        kernel = self._kernel
        moving = [e for e in kernel.embodiments.values() if e.live_actions()]
        kernel.safety.enter(moving, Cause.SAFE_STATE, 'the process ends, its time is up')
        for session in kernel.live_sessions():
            self._finish(session)

    def _end_process(self) -> None:
        kernel = self._kernel
        if kernel.finished or kernel.sessions:
            return
        kernel.finished = True
        kernel.deadlines.clear(('shutdown',))
        kernel.access.finish()
        for conn in kernel.connections.values():
            kernel.close_connection(conn, 1001, 'world_shutdown')
        kernel.emit(Finish())
