"""Owns how sessions begin: negotiation, binding, takeover, resumption (AWP-NEG, AWP-EMB)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TYPE_CHECKING

from awp_ros_bridge.engine.account import account
from awp_ros_bridge.engine.actions import Action, Cause
from awp_ros_bridge.engine.effects import OpenAudit
from awp_ros_bridge.engine.embodiments import Embodiment
from awp_ros_bridge.engine.policy import CLOCK_LEAD_NS
from awp_ros_bridge.engine.sessions import Connection, digest, Session, Transfer
from awp_ros_bridge.wire.clock import SessionClock
from awp_ros_bridge.wire.errors import ErrorCode, WireFault
from awp_ros_bridge.wire.lifecycle import Reason, SessionState
from awp_ros_bridge.wire.messages import SessionOpenParams, SessionResumeParams

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel

Json = dict[str, Any]

LONGEST_TRANSFER_MS = 600_000


def _unavailable(detail: str) -> WireFault:
    return WireFault(ErrorCode.EMBODIMENT_UNAVAILABLE, detail)


class Opener:
    """Opens, resumes and hands over sessions."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    # ------------------------------------------------------------ session.open

    def open(self, conn: Connection, request_id: int | str, p: SessionOpenParams) -> None:
        """
        Open a session, or begin a takeover whose answer follows when the robot rests.

        :raises WireFault: refused; nothing has changed.
        """
        kernel = self._kernel
        if conn.session is not None or conn.pending_open:  # AWP-CTL-007
            raise WireFault(ErrorCode.SESSION_EXISTS, 'this connection already carries a session')
        if p.mode != 'streaming':  # AWP-NEG-002
            detail = f'mode {p.mode!r} is not offered; this world offers streaming'
            raise WireFault(ErrorCode.TIME_MODEL_UNSUPPORTED, detail)
        if len(kernel.sessions) >= kernel.policy.max_sessions:
            raise _unavailable(f'max_sessions {kernel.policy.max_sessions} are open; try later')
        names = tuple(p.embodiments or ([p.embodiment] if p.embodiment else []))
        kernel.access.check_open(conn, names, bool(p.takeover))  # AWP-PRM-001
        if p.takeover:
            self._take_over(conn, request_id, p)
            return
        held = self._choose(names)
        for embodiment in held:
            self._check_free(embodiment)
        self._grant(conn, request_id, p, held)

    def _choose(self, names: tuple[str, ...]) -> list[Embodiment]:
        for name in names:
            if name not in self._kernel.embodiments:
                known = ', '.join(self._kernel.embodiments)
                detail = f'embodiment {name!r} is not in the manifest; there are {known}'
                raise _unavailable(detail)
        held = [self._kernel.embodiments[n] for n in names]
        groups = {e.policy.multi_bind_group for e in held}
        if len(held) > 1 and (len(groups) > 1 or None in groups):  # AWP-EMB-005
            raise _unavailable('these embodiments do not share a multi_bind_group')
        return held

    @staticmethod
    def _check_free(embodiment: Embodiment) -> None:
        if embodiment.session is not None:  # AWP-EMB-001
            raise _unavailable(f'{embodiment.id} is bound to another session; wait or ask for it')
        Opener._check_rested(embodiment)

    @staticmethod
    def _check_rested(embodiment: Embodiment) -> None:
        if embodiment.rest_owed is not None:
            why = embodiment.rest_owed
            raise _unavailable(f'{embodiment.id} has not been measured at rest since: {why}')

    def _grant(
        self,
        conn: Connection,
        request_id: int | str,
        p: SessionOpenParams,
        held: list[Embodiment],
    ) -> Session:
        """Make the session, bind, answer ``session.ready``, and begin (AWP-NEG-001)."""
        kernel = self._kernel
        now = kernel.now_ns
        clock = SessionClock(now - CLOCK_LEAD_NS)
        offered = frozenset(a for e in held for a in e.policy.actions)
        asked = offered if p.action_types is None else offered & set(p.action_types)
        ttl = kernel.policy.grant_ttl_ns
        bound = tuple(e.id for e in held)
        session = Session(
            id=kernel.ids.session_id(),
            token=kernel.ids.token('st'),
            clock=clock,
            opened_ns=now,
            conn=conn,
            embodiments=bound,
            multi_bind=p.embodiments is not None,
            granted_actions=asked,
            admin=self._admin(conn, p),
            expires_ns=None if ttl is None else clock.session_ns(now + ttl),
            consumes=conn.consumes,
            max_obs_rate_hz=conn.max_obs_rate_hz,
            readable=kernel.access.readable(conn.permissions, bound),
            credential=conn.permissions.credential,
            agent=conn.agent,
        )
        kernel.sessions[session.id] = session
        kernel.tokens.add(session)
        conn.session = session
        for embodiment in held:
            embodiment.session = session
        for item in p.subscribe or []:
            if kernel.channels.readable(session, item.channel) is None:
                kernel.channels.subscribe(session, item.channel, item.rate_hz)
        ready = self.ready(session)
        header = {
            'session_id': session.id,
            'agent': conn.agent,
            'peer': conn.peer,
            'credential': conn.permissions.credential,
            'scopes': sorted(conn.permissions.scopes),
            'manifest': kernel.policy.manifest,
            'granted': ready['granted'],
            'clock_anchor': ready['clock_anchor'],
        }
        kernel.emit(OpenAudit(session.id, clock.session_ns(now), header))
        kernel.delivery.audit_early(session)
        kernel.delivery.reply(conn, request_id, ready)
        kernel.delivery.state(session, SessionState.READY, 'opened')
        kernel.liveness.begin(session)
        kernel.safety.greet(session)
        for embodiment in held:
            kernel.report(embodiment)
        return session

    def _admin(self, conn: Connection, p: SessionOpenParams) -> tuple[str, ...]:
        """Grant ``reset`` of a simulated world to one session at a time (AWP-PRM-005)."""
        kernel = self._kernel
        if not kernel.access.may_reset(conn.permissions):
            return ()
        taken = any('reset' in s.admin for s in kernel.live_sessions())
        if kernel.policy.reset_states and not taken and 'reset' in (p.admin or []):
            return ('reset',)
        return ()

    def ready(self, session: Session) -> Json:
        """Return the ``session.ready`` object."""
        kernel = self._kernel
        policy = kernel.policy
        envelopes = [kernel.embodiments[e].policy.envelope for e in session.embodiments]
        granted: Json = {
            'channels': kernel.channels.grants(session),
            'action_types': [] if session.is_expired else sorted(session.granted_actions),
            'admin': list(session.admin),
            'envelopes': [e for e in envelopes if e is not None],
        }
        if session.expires_ns is not None and not session.is_expired:
            granted['expires_at'] = session.expires_ns
        endpoints: list[Json] = [{'binding': 'inline'}]  # AWP-TRN-004
        url = policy.stream_url()
        if url is not None:
            limit = policy.max_frame_bytes
            endpoints.append({'binding': 'ws', 'url': url, 'max_frame_bytes': limit})
        return {
            'session_id': session.id,
            'session_token': session.token,
            'reconnect_window_ms': policy.reconnect_window_ns // 1_000_000,
            'heartbeat_interval_ms': policy.heartbeat_ns // 1_000_000,
            'granted': granted,
            'stream_endpoints': endpoints,
            'frame_tree': {'frames': list(kernel.frame_tree)},
            'clock_anchor': policy.wall_clock_anchor(session.clock.session_ns(kernel.now_ns)),
        }

    # ------------------------------------------------------------ session.resume

    def resume(self, conn: Connection, request_id: int | str, p: SessionResumeParams) -> None:
        """
        Attach a session to this connection and replay (AWP-SES-004, AWP-SES-010).

        :raises WireFault: 2004 the connection has a session, 2003 closed or closing, 2005 unknown.
        """
        kernel = self._kernel
        session = kernel.tokens.find(p.session_token)
        if session is not None and session.closing is not None:  # AWP-SES-011
            raise WireFault(ErrorCode.SESSION_EXPIRED, 'this session is closing')
        if conn.session is not None or conn.pending_open:
            raise WireFault(ErrorCode.SESSION_EXISTS, 'this connection already carries a session')
        if session is None:
            if kernel.tokens.is_over(p.session_token):
                detail = 'this session is closed; open a new one'
                raise WireFault(ErrorCode.SESSION_EXPIRED, detail)
            detail = 'this world does not hold the session; open a new one'  # AWP-SES-008
            raise WireFault(ErrorCode.SESSION_UNKNOWN, detail)
        kernel.access.check_resume(conn, session)
        held = [kernel.embodiments[e] for e in session.embodiments]
        found = {e.id: account(kernel, e) for e in held}  # before the return is seen as a sign
        kernel.liveness.adopt(session, conn)
        session.readable &= kernel.access.readable(conn.permissions, session.embodiments)
        kernel.liveness.originated(session)
        kernel.delivery.audit_early(session)
        up_to = session.status_seq
        ready = self.ready(session)
        ready['replay_to_status_seq'] = up_to
        ready['safe_state'] = bool(held) and all(e.in_safe_state for e in held)  # AWP-SAF-008
        ready['x-ros2.safety'] = found  # AWP-VER-004
        kernel.delivery.reply(conn, request_id, ready)
        kernel.delivery.acknowledge(session, p.last_status_seq)
        kernel.delivery.replay(session, p.last_status_seq, up_to)
        kernel.delivery.state(session, SessionState.ACTIVE, 'resumed')
        kernel.channels.attached(session)

    # ------------------------------------------------------------ transfer

    def mint(self, session: Session, expires_in_ms: int) -> Json:
        """
        Return a single-use token with which another session may take the embodiment (AWP-EMB-003).

        :raises WireFault: AWP_FORBIDDEN for an observer, AWP_BUSY while a takeover runs.
        """
        kernel = self._kernel
        if not session.embodiments or session.is_expired:
            raise WireFault(ErrorCode.FORBIDDEN, 'this session holds no embodiment to hand over')
        if session.transfer is not None and session.transfer.cancel is not None:
            raise WireFault(ErrorCode.BUSY, 'a takeover of this session is under way')
        life_ms = min(expires_in_ms, LONGEST_TRANSFER_MS)
        token = kernel.ids.token('tt')
        session.transfer = Transfer(digest(token), kernel.now_ns + life_ms * 1_000_000)
        return {'transfer_token': token, 'expires_in_ms': life_ms}

    def _take_over(self, conn: Connection, request_id: int | str, p: SessionOpenParams) -> None:
        kernel = self._kernel
        embodiment = kernel.embodiments.get(p.embodiment or '')
        if embodiment is None:
            raise _unavailable('a takeover names exactly one embodiment of the manifest')
        self._check_rested(embodiment)
        holder = embodiment.session
        transfer = holder.transfer if holder is not None else None
        offered = digest(p.transfer_token or '')
        usable = (
            holder is not None
            and holder.closing is None
            and transfer is not None
            and transfer.cancel is None
            and transfer.digest == offered
            and kernel.now_ns < transfer.expires_ns
        )
        if not usable or holder is None or transfer is None:
            raise _unavailable("the transfer token is unknown, used, expired or not the holder's")
        transfer.digest = b''  # single use
        transfer.embodiment = embodiment.id
        transfer.cancel = self._may_give_up(conn, request_id)
        conn.pending_open = True
        actions = [a for a in holder.live_actions() if a.embodiment == embodiment.id]
        for action in sorted(actions, key=lambda a: not a.is_pre_execution or a.is_in_flight):
            kernel.endings.end(action, Cause.TRANSFER)
        kernel.when_ended(
            actions, lambda: self._complete(conn, request_id, p, embodiment, holder, actions)
        )

    def _may_give_up(self, conn: Connection, request_id: int | str) -> Callable[[str], None]:
        def give_up(why: str) -> None:
            conn.pending_open = False
            self._kernel.delivery.refuse(conn, request_id, _unavailable(why))

        return give_up

    def _complete(
        self,
        conn: Connection,
        request_id: int | str,
        p: SessionOpenParams,
        embodiment: Embodiment,
        holder: Session,
        actions: list[Action],
    ) -> None:
        """Change hands: the previous holder's actions are over and the robot rests."""
        kernel = self._kernel
        if not conn.pending_open:
            return  # given up meanwhile
        conn.pending_open = False
        holder.transfer = None
        why = self._obstacle(conn, embodiment, actions)
        if why is not None:
            kernel.delivery.refuse(conn, request_id, _unavailable(why))
            return
        holder.embodiments = tuple(e for e in holder.embodiments if e != embodiment.id)
        holder.told_safe.discard(embodiment.id)
        embodiment.session = None
        taker = self._grant(conn, request_id, p, [embodiment])
        detail = {'embodiment': embodiment.id, 'session_id': taker.id}
        kernel.delivery.event(holder, 'embodiment_transferred', detail)

    def _obstacle(
        self, conn: Connection, embodiment: Embodiment, actions: list[Action]
    ) -> str | None:
        """Return why an embodiment whose actions are over cannot change hands, or None."""
        if conn.is_closing:
            return 'the receiver is gone'
        if not self._kernel.is_open:
            return 'the world is not active'
        failed = any(a.reason in (Reason.WORLD_ERROR, Reason.ABORT_FAILED) for a in actions)
        if failed or embodiment.rest_owed is not None:
            return f'{embodiment.id} did not come to rest; it is in safe state'
        return None
