"""
Owns who may do what: scopes at the door of each method, revocation, the record of refusals.

What no credential allows is AWP_FORBIDDEN (AWP-PRM-001). A refusal inside a session stands in the
session's audit log; what happens before there is a session stands in one log of the process.
"""

from __future__ import annotations

from typing import Any, TYPE_CHECKING

from awp_ros_bridge.engine.effects import CloseAudit, OpenAudit, RecordAudit
from awp_ros_bridge.engine.inputs import CredentialsRevoked, HandshakeRefused
from awp_ros_bridge.engine.permissions import NOTHING, Permissions, Scope
from awp_ros_bridge.engine.policy import CLOCK_LEAD_NS
from awp_ros_bridge.engine.sessions import Connection, Session
from awp_ros_bridge.wire.clock import SessionClock
from awp_ros_bridge.wire.errors import ErrorCode, WireFault

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel

Json = dict[str, Any]

NEEDED = {
    'action.submit': Scope.ACT,
    'obs.subscribe': Scope.OBSERVE,
    'session.transfer': Scope.TRANSFER,
    'world.reset': Scope.ADMIN,
}
POLICY_VIOLATION = 1008


class Access:
    """Compares what is asked with the permissions of the connection that asks."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._log: tuple[str, SessionClock] | None = None

    # ------------------------------------------------------------ scopes

    def check_method(self, conn: Connection, method: str) -> None:
        """
        Refuse a method whose scope the connection lacks.

        :raises WireFault: AWP_FORBIDDEN
        """
        scope = NEEDED.get(method)
        if scope is not None:
            self.check_scope(conn, scope, method)

    def check_scope(self, conn: Connection, scope: Scope, what: str) -> None:
        """
        Refuse what needs a scope that the connection lacks.

        :raises WireFault: AWP_FORBIDDEN
        """
        permissions = conn.permissions
        if not permissions.allows(scope):
            given = ', '.join(sorted(permissions.scopes)) or 'none'
            detail = f'{what} needs scope {scope.value!r}; this credential has: {given}'
            raise WireFault(ErrorCode.FORBIDDEN, detail)

    def check_reach(self, conn: Connection, embodiments: tuple[str, ...], what: str) -> None:
        """
        Refuse embodiments that the credential does not reach.

        :raises WireFault: AWP_FORBIDDEN
        """
        permissions = conn.permissions
        if not permissions.reaches(embodiments):
            beyond = ', '.join(e for e in embodiments if not permissions.reaches((e,)))
            given = ', '.join(sorted(permissions.embodiments or ())) or 'none'
            detail = f'{what} of {beyond}: this credential reaches: {given}'
            raise WireFault(ErrorCode.FORBIDDEN, detail)

    def check_open(self, conn: Connection, embodiments: tuple[str, ...], takeover: bool) -> None:
        """
        Refuse a session that the credential does not allow.

        :raises WireFault: AWP_FORBIDDEN
        """
        if takeover:
            self.check_scope(conn, Scope.TRANSFER, 'a takeover')
        if embodiments or takeover:
            self.check_scope(conn, Scope.ACT, 'to bind an embodiment')
            self.check_reach(conn, embodiments, 'to bind an embodiment')
        elif not conn.permissions.allows(Scope.ADMIN):
            self.check_scope(conn, Scope.OBSERVE, 'a session that observes')

    def check_resume(self, conn: Connection, session: Session) -> None:
        """
        Refuse to attach a session that uses more than the credential allows.

        :raises WireFault: AWP_FORBIDDEN
        """
        what = 'to resume this session'
        if session.embodiments:
            self.check_scope(conn, Scope.ACT, what)
        if session.subscriptions:
            self.check_scope(conn, Scope.OBSERVE, what)
        if session.admin:
            self.check_scope(conn, Scope.ADMIN, what)
        self.check_reach(conn, session.embodiments, what)
        if not self.readable(conn.permissions, session.embodiments).issuperset(
            session.subscriptions
        ):
            detail = f'{what}: it reads channels that this credential does not reach'
            raise WireFault(ErrorCode.FORBIDDEN, detail)

    def readable(self, permissions: Permissions, held: tuple[str, ...]) -> frozenset[str]:
        """
        Return the channels that a session may read.

        :param held: what it holds; a session that holds nothing observes.
        """
        policy = self._kernel.policy
        if not permissions.allows(Scope.OBSERVE):
            return frozenset()
        if not held and permissions.embodiments is None:
            return frozenset(policy.channels)
        reached = held or tuple(e for e in policy.embodiments if permissions.reaches((e,)))
        return frozenset(c for e in reached for c in policy.embodiments[e].channels)

    def may_reset(self, permissions: Permissions) -> bool:
        """Return whether ``world.reset``, which moves every embodiment, may be granted."""
        everything = permissions.reaches(self._kernel.policy.embodiments)
        return permissions.allows(Scope.ADMIN) and everything

    # ------------------------------------------------------------ revocation

    def revoked(self, fact: CredentialsRevoked) -> None:
        """
        End what a credential opened: sessions as on a close, then their connections.

        From now on nothing more is granted or shown to its connections; a session's actions end,
        its behaviour runs and the robot rests before the session is closed (AWP-SES-006).
        """
        kernel = self._kernel
        goodbye = (POLICY_VIOLATION, 'the credential was revoked')
        self.record({'revoked': sorted(fact.credentials), 'detail': fact.detail})
        for session in kernel.live_sessions():
            if session.credential in fact.credentials:
                self._end(session, fact.detail, goodbye)
        for conn in list(kernel.connections.values()):
            if conn.permissions.credential in fact.credentials:
                conn.permissions = NOTHING
                if conn.session is None:
                    kernel.close_connection(conn, *goodbye)

    def _end(self, session: Session, detail: str, goodbye: tuple[int, str]) -> None:
        kernel = self._kernel
        if session.closing is None:
            kernel.delivery.event(session, 'grant_expired', {'detail': detail})
        kernel.channels.drop_all(session)
        kernel.closer.close(session, 'session_closed', disconnect=goodbye)

    # ------------------------------------------------------------ the log of the process

    def handshake_refused(self, fact: HandshakeRefused) -> None:
        """Record a connection that was not let in."""
        body = {'refused': 'handshake', 'status': fact.status, 'detail': fact.detail}
        self.record({**body, 'peer': fact.peer})

    def request_refused(self, conn: Connection, method: str, fault: WireFault) -> None:
        """Record what was forbidden where no session's log can hold it."""
        if conn.session is None and fault.code is ErrorCode.FORBIDDEN:
            body = {'refused': method[:80], 'detail': fault.detail, 'peer': conn.peer}
            self.record({**body, 'credential': conn.permissions.credential})

    def record(self, body: Json) -> None:
        """Add a note to the log of the process, which begins with its first note."""
        kernel = self._kernel
        if kernel.finished:
            return
        if self._log is None:
            name = kernel.ids.session_id().replace('sess_', 'access_')
            self._log = (name, SessionClock(kernel.now_ns - CLOCK_LEAD_NS))
            header: Json = {'session_id': name, 'holds': 'what was refused before a session'}
            header['clock_anchor'] = kernel.policy.wall_clock_anchor(CLOCK_LEAD_NS)
            kernel.emit(OpenAudit(name, self._log[1].session_ns(kernel.now_ns), header))
        name, clock = self._log
        kernel.emit(RecordAudit(name, clock.session_ns(kernel.now_ns), 'world', 'note', body))

    def finish(self) -> None:
        """End the log of the process."""
        if self._log is not None:
            self._kernel.emit(CloseAudit(self._log[0]))
            self._log = None
