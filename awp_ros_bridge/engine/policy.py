"""Owns the settings the engine works with: nanoseconds, SI units, checked before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

Json = dict[str, Any]

REST_BOUND_NS = 3_000_000_000
CLOCK_LEAD_NS = 3600 * 1_000_000_000  # the session clock reads one hour at session.open


class Replace(StrEnum):
    """How a newer goal takes over from a running one."""

    NATIVE = 'native'  # the server blends over; the new goal is sent at once
    STOP_FIRST = 'stop_first'  # cancel, measured rest, then the new goal


@dataclass(frozen=True, slots=True)
class ActionPolicy:
    """
    One action type of the manifest, as the engine handles it.

    :param server: name of the action server or service; native replacing needs equal ones.
    :param needs_motion: False for a type that only stops: admitted while motion is forbidden.
    """

    type: str
    params_schema: Json
    extended: bool
    preemption: tuple[str, ...]
    group: str
    server: str
    replace: Replace = Replace.STOP_FIRST
    max_queue: int = 1
    max_duration_ns: int | None = None
    max_abort_ns: int = REST_BOUND_NS
    needs_motion: bool = True


@dataclass(frozen=True, slots=True)
class ChannelPolicy:
    """
    One observation channel.

    :param rate_hz: nominal and highest rate.
    :param stale_after_ns: age from which a reliable channel counts as degraded (AWP-SAF-009).
    :param embodiment_state: name of the embodiment whose state the engine itself publishes here.
    """

    id: str
    modality: str
    rate_hz: float
    reliable: bool
    stale_after_ns: int
    embodiment_state: str | None = None


@dataclass(frozen=True, slots=True)
class EmbodimentPolicy:
    """
    One embodiment: what it may do, what may be seen of it, and its limits.

    :param envelope: its entry of ``safety_policy.envelopes``, None when no limit is declared.
    :param behavior_bound_ns: longest time its safe-state steps may take.
    :param parks: True where those steps may move the robot by a goal.
    """

    id: str
    actions: frozenset[str]
    channels: tuple[str, ...]
    envelope: Json | None = None
    max_action_rate_hz: float | None = None
    multi_bind_group: str | None = None
    behavior_bound_ns: int = REST_BOUND_NS
    parks: bool = False


class RefusalKind(StrEnum):
    """Which error a goal check turns into."""

    PARAMS = 'params'  # AWP_PARAMS_INVALID
    ENVELOPE = 'envelope'  # AWP_ENVELOPE_EXCEEDED
    UNREADY = 'unready'  # AWP_EMBODIMENT_UNAVAILABLE, retryable


@dataclass(frozen=True, slots=True)
class GoalRefusal:
    """Why a goal may not be sent: field, value, limit and what to do, in one sentence."""

    kind: RefusalKind
    detail: str


class GoalChecker(Protocol):
    """Looks at params beyond their schema: frames, joints, spatial and velocity limits."""

    def check(self, embodiment: str, action_type: str, params: Json) -> GoalRefusal | None:
        """Return why the goal must not run, or None. Pure, quick, on the engine's thread."""
        ...


class NoChecks:
    """A goal checker that finds nothing; for worlds without limits and for tests."""

    def check(self, embodiment: str, action_type: str, params: Json) -> GoalRefusal | None:
        return None


@dataclass(frozen=True)
class Policy:
    """
    Everything the engine must know of the world it serves.

    :param manifest: the AWP world manifest, stable for the life of the process (AWP-MAN-003).
    :param reset_states: initial states that ``world.reset`` accepts; empty on hardware.
    :param grant_ttl_ns: life of a session's grants, None for no expiry (AWP-PRM-003).
    :param status_query: answer ``session/status``, which is not part of AWP.
    :param audit_required: refuse actions while the audit log cannot be written.
    :param audit_stop: enter safe state too when it becomes unwritable.
    """

    manifest: Json
    actions: Mapping[str, ActionPolicy]
    channels: Mapping[str, ChannelPolicy]
    embodiments: Mapping[str, EmbodimentPolicy]
    behavior: str = 'safe_stop'
    watchdog_ns: int = 2_000_000_000
    max_basis_age_ns: int | None = 500_000_000
    require_basis: bool = False
    heartbeat_ns: int = 5_000_000_000
    reconnect_window_ns: int = 30_000_000_000
    telemetry_ns: int = 900_000_000
    progress_repeat_ns: int = 900_000_000
    grant_ttl_ns: int | None = None
    reset_states: tuple[str, ...] = ()
    reset_bound_ns: int = 10_000_000_000
    audit_required: bool = True
    audit_stop: bool = False
    stream_url: Callable[[], str | None] = field(default=lambda: None)
    max_frame_bytes: int = 16 * 1024 * 1024
    wall_clock_anchor: Callable[[int], str] = field(default=lambda age_ns: '1970-01-01T00:00:00Z')
    max_sessions: int = 64
    status_query: bool = True
