"""Owns what reaches an agent: sequenced notifications and their replay (AWP-CTL-008)."""

from __future__ import annotations

from typing import Any, TYPE_CHECKING

from awp_ros_bridge.engine.actions import Action
from awp_ros_bridge.engine.effects import RecordAudit, SendMessage
from awp_ros_bridge.engine.sessions import Connection, Session
from awp_ros_bridge.wire import codec
from awp_ros_bridge.wire.errors import WireFault
from awp_ros_bridge.wire.lifecycle import ActionState, SESSION_TRANSITIONS, SessionState

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel

Json = dict[str, Any]


class Delivery:
    """Sends, numbers, keeps and replays; the only part that writes to a control connection."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    # ------------------------------------------------------------ plain messages

    def send(
        self,
        conn: Connection,
        message: Json,
        session: Session | None,
        *,
        answers_ns: int | None = None,
    ) -> None:
        """Send a message and record it in the session's audit log; not on a closing connection."""
        if conn.is_closing:
            return
        session_id = session.id if session else None
        self._kernel.emit(SendMessage(conn.id, message, session_id, answers_ns))
        if session is not None:
            self.audit(session, 'world', 'message', message)

    def reply(
        self,
        conn: Connection,
        request_id: int | str,
        result: Json,
        *,
        answers_ns: int | None = None,
    ) -> None:
        """Answer a request."""
        self.send(conn, codec.result(request_id, result), conn.session, answers_ns=answers_ns)

    def refuse(
        self,
        conn: Connection,
        request_id: int | str | None,
        fault: WireFault,
        *,
        answers_ns: int | None = None,
    ) -> None:
        """Answer a request with an error; the id is None where none could be read."""
        self.send(conn, codec.error(request_id, fault), conn.session, answers_ns=answers_ns)

    def audit(self, session: Session, direction: str, kind: str, body: Json) -> None:
        """Record something in the session's audit log (AWP-AUD-001)."""
        ts = session.clock.session_ns(self._kernel.now_ns)
        self._kernel.emit(RecordAudit(session.id, ts, direction, kind, body))

    def audit_early(self, session: Session) -> None:
        """Record what the agent sent on this connection before it carried the session."""
        if session.conn is not None:
            while session.conn.early:
                self.audit(session, 'agent', 'message', session.conn.early.popleft())

    # ------------------------------------------------------------ sequenced notifications

    def _sequence(self, session: Session, method: str, params: Json, *, live: bool) -> None:
        session.status_seq += 1
        params['status_seq'] = session.status_seq
        params['ts_mono_ns'] = session.clock.session_ns(self._kernel.now_ns)
        message = codec.notification(method, params)
        session.log.append((session.status_seq, message))
        if live and session.conn is not None:
            self.send(session.conn, message, session)
        else:
            self.audit(session, 'world', 'kept', message)

    def status(self, action: Action, *, detail: str, aborted: bool, live: bool) -> None:
        """Report where an action stands, with the next ``status_seq`` (AWP-LIF-001)."""
        session = action.session
        params: Json = {'action_id': action.id, 'state': action.state.value}
        if action.state in (ActionState.EXECUTING, ActionState.COMPLETED):
            params['progress'] = action.progress
        if action.reason is not None:
            params['reason'] = str(action.reason)
        if detail:
            params['detail'] = detail
        if aborted and action.state is not ActionState.COMPLETED:
            params['aborted_at_progress'] = action.progress
        self._sequence(session, 'action.status', params, live=live)
        action.report = params
        action.status_seq = session.status_seq
        action.changed_ns = params['ts_mono_ns']
        action.reported_ns = self._kernel.now_ns

    def event(self, session: Session, event: str, detail: Json) -> None:
        """Report a world event to one session (AWP-EVT-001)."""
        self._sequence(session, 'world.event', {'event': event, 'detail': detail}, live=True)

    def state(self, session: Session, state: SessionState, reason: str) -> None:
        """Move a session and report it (AWP-SES-007)."""
        if state not in SESSION_TRANSITIONS.get(session.state, frozenset()):
            opening = state is SessionState.READY and session.status_seq == 0
            if not opening:
                raise AssertionError(f'session {session.id}: {session.state} to {state}')
        session.state = state
        params: Json = {'state': state.value, 'reason': reason}
        self._sequence(session, 'session.state', params, live=True)

    # ------------------------------------------------------------ retention and replay

    def acknowledge(self, session: Session, last_status_seq: int) -> None:
        """Forget what the agent has processed (AWP-CTL-010)."""
        session.acknowledged = max(session.acknowledged, min(last_status_seq, session.status_seq))
        while session.log and session.log[0][0] <= session.acknowledged:
            session.log.popleft()

    def replay(self, session: Session, last_status_seq: int, up_to: int) -> None:
        """Send again, in order, what lies after ``last_status_seq`` (AWP-CTL-008)."""
        if session.conn is None:
            return
        for seq, message in list(session.log):
            if last_status_seq < seq <= up_to:
                self.send(session.conn, message, session)

    def status_pull(self, action: Action) -> Json:
        """Return the result of a status pull: the newest transition, nothing new (AWP-ACT-006)."""
        return {**action.report, 'progress': action.progress}

    def admission(self, action: Action) -> Json:
        """Return the result of a submission (AWP-LIF-002)."""
        out: Json = {
            'action_id': action.id,
            'state': action.state.value,
            'status_seq': action.status_seq,
            'received_ts_mono_ns': action.session.clock.session_ns(action.received_ns),
            'ts_mono_ns': action.changed_ns,
        }
        if action.reason is not None:
            out['reason'] = str(action.reason)
        return out
