"""Owns the closed union of what the engine wants done: imperative, frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


# ---------------------------------------------------------------- robot, carried out first


@dataclass(frozen=True, slots=True)
class BeginBehavior:
    """
    Run the embodiment's safe-state steps now: cancel its goals by id, then the configured rest.

    Answered by :class:`BehaviorFinished` with the same ticket, within ``bound_ns``.

    :param cause: what called for it, for logs and reports.
    :param park_goal: goal id for a step that parks the robot, 32 hex digits; empty where nothing
        may be moved.
    """

    ticket: int
    embodiment: str
    behavior: str
    cause: str
    bound_ns: int
    park_goal: str = ''


@dataclass(frozen=True, slots=True)
class CancelGoal:
    """Cancel this goal: at once when accepted, on acceptance when its answer is outstanding."""

    goal_id: str
    embodiment: str
    action_type: str


@dataclass(frozen=True, slots=True)
class AwaitRest:
    """
    Report when the robot is measured at rest, counting only samples that arrive from now on.

    Answered by :class:`RestReached`; a later :class:`AwaitRest` with another ticket does not
    replace it.
    """

    ticket: int
    embodiment: str
    group: str


@dataclass(frozen=True, slots=True)
class StartGoal:
    """
    Send a goal to the action server of the type.

    :param goal_id: UUID as 32 hex digits, carrying the bridge's prefix.
    :param params: params that passed schema and limits; what reaches ROS.
    :param epoch: stop epoch the decision rests on; a newer one forbids sending.
    """

    goal_id: str
    embodiment: str
    action_type: str
    params: Json
    epoch: int


@dataclass(frozen=True, slots=True)
class ResetWorld:
    """Call the simulator's reset service. Answered by :class:`ResetFinished`."""

    initial_state: str


@dataclass(frozen=True, slots=True)
class SetChannelDemand:
    """
    How fast samples of a channel are wanted from now on, over all sessions.

    :param rate_hz: highest granted rate; 0 when nobody listens.
    :param fresh: deliver the newest sample at once, whatever the rate: somebody just subscribed.
    """

    channel: str
    rate_hz: float
    fresh: bool


@dataclass(frozen=True, slots=True)
class ReportEmbodiment:
    """
    What ROS shall see of an embodiment: who drives it, whether it is in safe state.

    :param reasons: what the engine itself has against motion, cause and text.
    """

    embodiment: str
    in_safe_state: bool
    session_id: str | None
    active_action: str | None
    reasons: tuple[tuple[str, str], ...] = ()


# ---------------------------------------------------------------- transport


@dataclass(frozen=True, slots=True)
class SendMessage:
    """
    Send one JSON-RPC message on a control connection, before any frame that waits there.

    :param answers_ns: for an ``action.submit`` answer, the steady time of its receipt; the loop
        reports the admission latency back after it handed the message over (AWP-TIM-006).
    """

    conn: int
    message: Json
    session_id: str | None = None
    answers_ns: int | None = None


@dataclass(frozen=True, slots=True)
class SendFrame:
    """
    Send one frame; the transport stamps the send time when the frame really leaves (AWP-OBS-006).

    :param conn: connection that carries it: a stream connection, or the control connection.
    :param inline: True for ``obs.frame`` on the control connection (AWP-DAT-004).
    :param clock_zero_ns: steady time of the session clock's zero.
    :param flags: bits 0 keyframe, 1 end-of-burst, 3 resync.
    """

    conn: int
    inline: bool
    session_id: str
    channel_id: int
    seq: int
    ts_mono_ns: int
    flags: int
    payload: bytes
    sim_ns: int | None
    reliable: bool
    clock_zero_ns: int


@dataclass(frozen=True, slots=True)
class DropFrames:
    """Forget the frames of a channel that wait on a connection: it was unsubscribed or moved."""

    conn: int
    channel_id: int


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close a control or stream connection after what was sent before has left."""

    conn: int
    code: int
    reason: str


# ---------------------------------------------------------------- records


@dataclass(frozen=True, slots=True)
class OpenAudit:
    """Begin the audit log of a session (AWP-AUD-001); header holds manifests and grants."""

    session_id: str
    ts_mono_ns: int
    header: Json


@dataclass(frozen=True, slots=True)
class RecordAudit:
    """
    One record for the session's audit log.

    :param direction: ``agent`` or ``world``.
    :param kind: ``message``, ``status``, ``event``, ``state`` or ``note``.
    """

    session_id: str
    ts_mono_ns: int
    direction: str
    kind: str
    body: Json


@dataclass(frozen=True, slots=True)
class CloseAudit:
    """The session is closed: put its log on disk."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Finish:
    """After :class:`ShutdownRequested`: every session is closed, the process may end."""


SafetyEffect = BeginBehavior | CancelGoal
RobotEffect = (
    BeginBehavior
    | CancelGoal
    | AwaitRest
    | StartGoal
    | ResetWorld
    | SetChannelDemand
    | ReportEmbodiment
)
TransportEffect = SendMessage | SendFrame | DropFrames | CloseConnection
AuditEffect = OpenAudit | RecordAudit | CloseAudit
Effect = RobotEffect | TransportEffect | AuditEffect | Finish
