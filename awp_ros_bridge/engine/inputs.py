"""Owns the closed union of facts that the engine is told: past tense, frozen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from awp_ros_bridge.engine.permissions import Permissions

Json = dict[str, Any]


# ---------------------------------------------------------------- transport


@dataclass(frozen=True, slots=True)
class ConnectionOpened:
    """
    An authenticated control connection exists.

    :param conn: number of the connection, never reused by the process.
    :param peer: address and port of the peer, for the audit log.
    :param permissions: what the credential that it presented allows.
    """

    conn: int
    peer: str
    permissions: Permissions


@dataclass(frozen=True, slots=True)
class TextReceived:
    """
    One text message arrived on a control connection.

    :param received_ns: steady time at which the transport had the whole message.
    """

    conn: int
    text: str | bytes
    received_ns: int


@dataclass(frozen=True, slots=True)
class BinaryReceived:
    """One binary message arrived on a control connection, which carries text (AWP-TRN-001)."""

    conn: int
    size: int


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """A control connection is gone, whoever closed it."""

    conn: int
    detail: str


@dataclass(frozen=True, slots=True)
class HandshakeRefused:
    """
    A connection was not let in.

    :param peer: address of the peer; those that come often are reported once a minute.
    :param status: HTTP status of the answer.
    """

    peer: str
    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class CredentialsRevoked:
    """
    Credentials were revoked, or what they allow was changed.

    Whoever presents a changed one again gets what it allows now.
    """

    credentials: frozenset[str]
    detail: str


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """
    A stream connection presented a token that :meth:`Engine.stream_allowed` accepted.

    :param stream: number of the connection, from the same counter as control connections.
    """

    stream: int
    session_token: str


@dataclass(frozen=True, slots=True)
class StreamReceived:
    """One message arrived on a stream connection."""

    stream: int
    data: str | bytes


@dataclass(frozen=True, slots=True)
class StreamLost:
    """A stream connection is gone."""

    stream: int


@dataclass(frozen=True, slots=True)
class FramesDropped:
    """
    The outbox of a connection gave up frames of a reliable channel: its receiver stalls.

    The next frame of that channel must be a resync keyframe (AWP-DAT-009).
    """

    conn: int
    channel_id: int
    count: int


# ---------------------------------------------------------------- goals


class GoalOutcome(StrEnum):
    """How a goal ended on the ROS side."""

    SUCCEEDED = 'succeeded'
    ABORTED = 'aborted'
    CANCELED = 'canceled'
    REFUSED = 'refused'  # the server answered the goal request with no
    NOT_SENT = 'not_sent'  # nothing left this process: no server, the gate shut, the epoch moved
    UNANSWERED = 'unanswered'  # no answer to the goal request in time; the server may be moving
    LOST = 'lost'  # accepted, then the server vanished or forgot it


@dataclass(frozen=True, slots=True)
class GoalAccepted:
    """The action server accepted the goal: motion may have begun."""

    goal_id: str


@dataclass(frozen=True, slots=True)
class GoalProgressed:
    """
    A new progress value for a running goal.

    :param progress: fraction done, 0 to 1.
    """

    goal_id: str
    progress: float


@dataclass(frozen=True, slots=True)
class GoalEnded:
    """The goal reached an end, exactly once per goal; detail names server, code and text."""

    goal_id: str
    outcome: GoalOutcome
    detail: str = ''


@dataclass(frozen=True, slots=True)
class GoalStalled:
    """
    Nothing came of a running goal for too long: no motion, no progress.

    :param detail: how long, the limit, and the speed scaling that the limit goes by.
    """

    goal_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class GoalNoted:
    """Something else than its cancel was done to end a goal; for the detail of its action."""

    goal_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class RestReached:
    """
    Answer to :class:`AwaitRest`: three or more samples since the request, all below the bound.

    :param measured: False where there is no rest source and a settle time passed instead.
    """

    ticket: int
    measured: bool = True


@dataclass(frozen=True, slots=True)
class BehaviorFinished:
    """Answer to :class:`BeginBehavior`: all its steps are done, or one ran into its bound."""

    ticket: int
    ok: bool
    detail: str = ''


# ---------------------------------------------------------------- robot


class Meaning(StrEnum):
    """What a safety input says while it is engaged, unknown or stale."""

    E_STOP = 'e_stop'
    PROTECTIVE_STOP = 'protective_stop'
    OPERATOR_STOP = 'operator_stop'
    FAULT = 'fault'
    NOT_READY = 'not_ready'
    MANUAL_MODE = 'manual_mode'
    DEGRADED = 'degraded'


@dataclass(frozen=True, slots=True)
class SafetyChanged:
    """
    A safety input of an embodiment changed its verdict.

    :param input_name: the configured name or topic, unique per embodiment.
    :param engaged: True while the input forbids motion.
    :param epoch: stop epoch after the change; goals with an older epoch are not sent any more.
    """

    embodiment: str
    input_name: str
    meaning: Meaning
    engaged: bool
    detail: str
    epoch: int


@dataclass(frozen=True, slots=True)
class EnvelopeViolated:
    """
    Executed motion, or force, was measured beyond a limit of the envelope (AWP-ENV-003).

    The local stop has acted. Until a :class:`SafetyChanged` releases :attr:`input_name`, motion
    is forbidden.

    :param limit: the key of the envelope: spatial, max_velocity_mps or max_force_n.
    :param measured: the value that was too much; for spatial the distance outside the box.
    :param bound: what the envelope declares; 0 for spatial.
    :param tolerance: how much more than the bound was tolerated.
    :param unit: of the three numbers.
    :param detail: where and what, in one sentence.
    :param epoch: stop epoch after the stop.
    """

    embodiment: str
    limit: str
    measured: float
    bound: float
    tolerance: float
    unit: str
    detail: str
    epoch: int

    @property
    def input_name(self) -> str:
        """Return the name under which the limit forbids motion."""
        return f'envelope:{self.limit}'


@dataclass(frozen=True, slots=True)
class RestChanged:
    """The measured rest of an embodiment changed; None while it is not known."""

    embodiment: str
    at_rest: bool | None


@dataclass(frozen=True, slots=True)
class AvailabilityChanged:
    """An action server appeared or vanished; detail names it."""

    embodiment: str
    action_type: str
    available: bool
    detail: str


@dataclass(frozen=True, slots=True)
class ObservationCaptured:
    """
    A sample for an observation channel, already encoded in the channel's modality.

    :param captured_ns: steady time of capture.
    :param sim_ns: simulated time of capture, where it is not the session clock (AWP-CLK-003).
    """

    channel: str
    payload: bytes
    captured_ns: int
    sim_ns: int | None = None


@dataclass(frozen=True, slots=True)
class FrameTreeChanged:
    """
    The frame tree that ``session.ready`` publishes from now on (AWP-UNI-003).

    :param frames: entries in the form of the frame-tree schema.
    """

    frames: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class ResetFinished:
    """Answer to :class:`ResetWorld`."""

    ok: bool
    detail: str = ''


# ---------------------------------------------------------------- the process


@dataclass(frozen=True, slots=True)
class AuditChanged:
    """The audit log became unwritable, or writable again."""

    writable: bool
    detail: str = ''


@dataclass(frozen=True, slots=True)
class Activated:
    """The lifecycle node is active: connections and goals are welcome."""


@dataclass(frozen=True, slots=True)
class Deactivated:
    """The lifecycle node left the active state: safe state, sessions suspended."""


@dataclass(frozen=True, slots=True)
class SessionCloseRequested:
    """
    Somebody at the robot wants a session closed, as its own agent would close it (AWP-SES-011).

    :param session_id: the session that held the embodiment when it was asked for.
    :param detail: who asked, for the audit log.
    """

    session_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """The process was asked to end; actions end as on close (AWP-SES-006)."""

    detail: str = ''


Input = (
    ConnectionOpened
    | TextReceived
    | BinaryReceived
    | ConnectionLost
    | HandshakeRefused
    | CredentialsRevoked
    | StreamOpened
    | StreamReceived
    | StreamLost
    | FramesDropped
    | GoalAccepted
    | GoalProgressed
    | GoalEnded
    | GoalStalled
    | GoalNoted
    | RestReached
    | BehaviorFinished
    | SafetyChanged
    | EnvelopeViolated
    | RestChanged
    | AvailabilityChanged
    | ObservationCaptured
    | FrameTreeChanged
    | ResetFinished
    | AuditChanged
    | Activated
    | Deactivated
    | SessionCloseRequested
    | ShutdownRequested
)
