"""Owns the engine's face: facts and the time in, effects and the next deadline out."""

from __future__ import annotations

from typing import assert_never

from awp_ros_bridge.engine.access import Access
from awp_ros_bridge.engine.actions import Cause
from awp_ros_bridge.engine.channels import Channels, Sample
from awp_ros_bridge.engine.closing import Closer
from awp_ros_bridge.engine.delivery import Delivery
from awp_ros_bridge.engine.effects import Effect, SendFrame
from awp_ros_bridge.engine.endings import Endings
from awp_ros_bridge.engine.execution import Execution
from awp_ros_bridge.engine.inputs import (
    Activated,
    AuditChanged,
    AvailabilityChanged,
    BehaviorFinished,
    BinaryReceived,
    ConnectionLost,
    ConnectionOpened,
    CredentialsRevoked,
    Deactivated,
    EnvelopeViolated,
    FramesDropped,
    FrameTreeChanged,
    GoalAccepted,
    GoalEnded,
    GoalNoted,
    GoalProgressed,
    GoalStalled,
    HandshakeRefused,
    Input,
    ObservationCaptured,
    ResetFinished,
    RestChanged,
    RestReached,
    SafetyChanged,
    SessionCloseRequested,
    ShutdownRequested,
    StreamLost,
    StreamOpened,
    StreamReceived,
    TextReceived,
)
from awp_ros_bridge.engine.kernel import Kernel
from awp_ros_bridge.engine.liveness import Liveness
from awp_ros_bridge.engine.policy import GoalChecker, NoChecks, Policy
from awp_ros_bridge.engine.requests import Requests
from awp_ros_bridge.engine.safety import Safety
from awp_ros_bridge.engine.sessions import Connection, Ids
from awp_ros_bridge.engine.violations import Violations


class Engine:
    """
    The AWP session engine.

    One thread calls it. It reads no clock: every call brings the steady time, which must not go
    backward. :meth:`next_deadline_ns` says when it wants to be woken by :meth:`advance`.

    :param checker: looks at params beyond their schema; see :class:`GoalChecker`.
    :param ids: source of unguessable names.
    """

    def __init__(self, policy: Policy, checker: GoalChecker | None, ids: Ids) -> None:
        kernel = Kernel(policy, checker or NoChecks(), ids)
        kernel.access = Access(kernel)
        kernel.delivery = Delivery(kernel)
        kernel.execution = Execution(kernel)
        kernel.endings = Endings(kernel)
        kernel.safety = Safety(kernel)
        kernel.violations = Violations(kernel)
        kernel.channels = Channels(kernel)
        kernel.closer = Closer(kernel)
        kernel.liveness = Liveness(kernel)
        self._kernel = kernel
        self._requests = Requests(kernel)

    @property
    def kernel(self) -> Kernel:
        """Return the shared state, for diagnostics and tests; nobody else changes it."""
        return self._kernel

    # ------------------------------------------------------------ time

    def next_deadline_ns(self) -> int | None:
        """Return the steady time at which :meth:`advance` is wanted, None when nothing is due."""
        return self._kernel.deadlines.next_ns()

    def advance(self, now_ns: int) -> list[Effect]:
        """Let everything happen that is due at ``now_ns``; return the effects in order."""
        self._pass_to(now_ns)
        return self._kernel.take()

    def _pass_to(self, now_ns: int) -> None:
        kernel = self._kernel
        kernel.now_ns = max(kernel.now_ns, now_ns)
        while (call := kernel.deadlines.pop_due(kernel.now_ns)) is not None:
            call()
            kernel.settle_step()

    # ------------------------------------------------------------ facts

    def handle(self, fact: Input, now_ns: int) -> list[Effect]:
        """
        Take one fact in at ``now_ns`` and return the effects, in the order to carry them out.

        What became due before the fact happens before it.
        """
        self._pass_to(now_ns)
        self._handle(fact)
        self._kernel.settle_step()
        return self._kernel.take()

    def _handle(self, fact: Input) -> None:
        match fact:
            case (
                ConnectionOpened()
                | TextReceived()
                | BinaryReceived()
                | ConnectionLost()
                | StreamOpened()
                | StreamReceived()
                | StreamLost()
                | FramesDropped()
            ):
                self._transport(fact)
            case (
                GoalAccepted()
                | GoalProgressed()
                | GoalEnded()
                | GoalStalled()
                | GoalNoted()
                | RestReached()
                | BehaviorFinished()
                | ResetFinished()
            ):
                self._answers(fact)
            case (
                SafetyChanged()
                | EnvelopeViolated()
                | RestChanged()
                | AvailabilityChanged()
                | ObservationCaptured()
                | FrameTreeChanged()
            ):
                self._robot(fact)
            case (
                AuditChanged()
                | Activated()
                | Deactivated()
                | SessionCloseRequested()
                | ShutdownRequested()
                | HandshakeRefused()
                | CredentialsRevoked()
            ):
                self._process(fact)
            case _:
                assert_never(fact)

    def _transport(
        self,
        fact: ConnectionOpened
        | TextReceived
        | BinaryReceived
        | ConnectionLost
        | StreamOpened
        | StreamReceived
        | StreamLost
        | FramesDropped,
    ) -> None:
        kernel = self._kernel
        match fact:
            case TextReceived(conn, text, received_ns):
                self._requests.text(conn, text, min(received_ns, kernel.now_ns))
            case ConnectionOpened(conn, peer, permissions):
                kernel.connections[conn] = Connection(conn, peer, kernel.now_ns, permissions)
            case BinaryReceived(conn, size):
                self._requests.binary(conn, size)
            case ConnectionLost(conn, _detail):
                kernel.liveness.connection_lost(conn)
            case StreamOpened(stream, token):
                kernel.channels.stream_opened(stream, kernel.tokens.find(token))
            case StreamReceived(stream, data):
                kernel.channels.stream_received(stream, data)
            case StreamLost(stream):
                kernel.channels.stream_lost(stream)
            case FramesDropped(conn, channel_id, _count):
                kernel.channels.frames_dropped(conn, channel_id)
            case _:
                assert_never(fact)

    def _answers(
        self,
        fact: GoalAccepted
        | GoalProgressed
        | GoalEnded
        | GoalStalled
        | GoalNoted
        | RestReached
        | BehaviorFinished
        | ResetFinished,
    ) -> None:
        kernel = self._kernel
        match fact:
            case GoalAccepted(goal_id):
                kernel.execution.goal_accepted(goal_id)
            case GoalProgressed(goal_id, progress):
                kernel.execution.goal_progressed(goal_id, progress)
            case GoalEnded(goal_id, outcome, detail):
                kernel.execution.goal_ended(goal_id, outcome, detail)
            case GoalStalled(goal_id, detail):
                kernel.execution.goal_stalled(goal_id, detail)
            case GoalNoted(goal_id, detail):
                kernel.execution.goal_noted(goal_id, detail)
            case RestReached(ticket, measured):
                if not kernel.endings.rest_reached(ticket, measured=measured):
                    kernel.safety.rest_reached(ticket)
            case BehaviorFinished(ticket, ok, detail):
                kernel.safety.behavior_finished(ticket, ok=ok, detail=detail)
            case ResetFinished(ok, detail):
                kernel.closer.reset_finished(ok=ok, detail=detail)
            case _:
                assert_never(fact)

    def _robot(
        self,
        fact: SafetyChanged
        | EnvelopeViolated
        | RestChanged
        | AvailabilityChanged
        | ObservationCaptured
        | FrameTreeChanged,
    ) -> None:
        kernel = self._kernel
        match fact:
            case ObservationCaptured(channel, payload, captured_ns, sim_ns):
                kernel.channels.captured(channel, Sample(payload, captured_ns, sim_ns))
            case SafetyChanged():
                kernel.safety.changed(fact)
            case EnvelopeViolated():
                kernel.violations.violated(fact)
            case RestChanged(name, at_rest):
                if name in kernel.embodiments:
                    kernel.embodiments[name].at_rest = at_rest
            case AvailabilityChanged():
                self._availability(fact)
            case FrameTreeChanged(frames):
                kernel.frame_tree = frames
            case _:
                assert_never(fact)

    def _availability(self, fact: AvailabilityChanged) -> None:
        embodiment = self._kernel.embodiments.get(fact.embodiment)
        if embodiment is None:
            return
        if fact.available:
            embodiment.missing.pop(fact.action_type, None)
        else:
            embodiment.missing[fact.action_type] = fact.detail
        self._kernel.report(embodiment)

    def _process(
        self,
        fact: AuditChanged
        | Activated
        | Deactivated
        | SessionCloseRequested
        | ShutdownRequested
        | HandshakeRefused
        | CredentialsRevoked,
    ) -> None:
        kernel = self._kernel
        match fact:
            case AuditChanged(writable, detail):
                kernel.audit_problem = None if writable else detail or 'unknown reason'
                for embodiment in kernel.embodiments.values():
                    kernel.report(embodiment)
                if not writable and kernel.policy.audit_stop:
                    why = f'the audit log cannot be written: {kernel.audit_problem}'
                    kernel.safety.enter(kernel.embodiments.values(), Cause.SAFETY_INPUT, why)
            case Activated():
                kernel.active = True
            case Deactivated():
                self._deactivate()
            case SessionCloseRequested():
                kernel.closer.requested(fact)
            case ShutdownRequested(detail):
                kernel.closer.shut_down(detail)
            case HandshakeRefused():
                kernel.access.handshake_refused(fact)
            case CredentialsRevoked():
                kernel.access.revoked(fact)
            case _:
                assert_never(fact)

    def _deactivate(self) -> None:
        """Safe state everywhere, sessions suspended, connections closed."""
        kernel = self._kernel
        kernel.active = False
        kernel.safety.enter(kernel.embodiments.values(), Cause.SAFETY_INPUT, 'deactivated')
        for session in kernel.live_sessions():
            kernel.liveness.suspend(session, 'connection_lost')
        for conn in kernel.connections.values():
            kernel.close_connection(conn, 1001, 'the world was deactivated')

    # ------------------------------------------------------------ questions and reports

    def stream_allowed(self, session_token: str) -> bool:
        """Return whether a token names a session with a live control connection (AWP-TRN-013)."""
        session = self._kernel.tokens.find(session_token)
        return session is not None and session.conn is not None and session.closing is None

    @property
    def is_accepting(self) -> bool:
        """Return whether new connections are welcome."""
        return self._kernel.is_open

    def frame_sent(self, frame: SendFrame, sent_ns: int) -> None:
        """Note that a frame left its outbox at ``sent_ns``."""
        self._kernel.channels.frame_sent(frame, sent_ns)

    def admission_sent(self, session_id: str, latency_ns: int) -> None:
        """Note how long the answer to a submission took, from receipt to transmission."""
        session = self._kernel.sessions.get(session_id)
        if session is not None:
            session.telemetry.admission(latency_ns)
