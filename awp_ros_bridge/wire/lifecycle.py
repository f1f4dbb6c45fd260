"""Owns the states of actions and sessions and their transitions, as data (AWP-LIF-001)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
import re
from types import MappingProxyType


class StateClass(StrEnum):
    """What a state of an action means for what the robot may be doing."""

    TRANSIENT = 'transient'
    PRE_EXECUTION = 'pre-execution'
    EXECUTION = 'execution'
    TERMINAL = 'terminal'


class ActionState(StrEnum):
    """The states of an action; ``submitted`` never appears on the wire."""

    SUBMITTED = 'submitted'
    PENDING_APPROVAL = 'pending_approval'
    QUEUED = 'queued'
    ACCEPTED = 'accepted'
    EXECUTING = 'executing'
    CANCELLING = 'cancelling'
    REJECTED = 'rejected'
    COMPLETED = 'completed'
    FAILED = 'failed'
    PREEMPTED = 'preempted'
    CANCELLED = 'cancelled'


class Reason(StrEnum):
    """The status reason registry (AWP-LIF-004); vendors add ``x-<vendor>.`` reasons."""

    PARAMS_INVALID = 'params_invalid'
    FORBIDDEN = 'forbidden'
    ENVELOPE = 'envelope'
    APPROVAL_DENIED = 'approval_denied'
    APPROVAL_TIMEOUT = 'approval_timeout'
    DEADLINE_EXCEEDED = 'deadline_exceeded'
    STALE_INTENT = 'stale_intent'
    CANCELLED_BY_AGENT = 'cancelled_by_agent'
    SUPERSEDED = 'superseded'
    E_STOP = 'e_stop'
    CONNECTION_LOST = 'connection_lost'
    SAFE_STATE = 'safe_state'
    SESSION_CLOSED = 'session_closed'
    WORLD_RESET = 'world_reset'
    TRANSFERRED = 'transferred'
    ABORT_FAILED = 'abort_failed'
    WATCHDOG = 'watchdog'
    WORLD_ERROR = 'world_error'


_S, _R, _C = ActionState, Reason, StateClass

CLASS: Mapping[ActionState, StateClass] = MappingProxyType(
    {
        _S.SUBMITTED: _C.TRANSIENT,
        _S.PENDING_APPROVAL: _C.PRE_EXECUTION,
        _S.QUEUED: _C.PRE_EXECUTION,
        _S.ACCEPTED: _C.PRE_EXECUTION,
        _S.EXECUTING: _C.EXECUTION,
        _S.CANCELLING: _C.EXECUTION,
        _S.REJECTED: _C.TERMINAL,
        _S.COMPLETED: _C.TERMINAL,
        _S.FAILED: _C.TERMINAL,
        _S.PREEMPTED: _C.TERMINAL,
        _S.CANCELLED: _C.TERMINAL,
    }
)

TERMINAL = frozenset(state for state, kind in CLASS.items() if kind is _C.TERMINAL)
PRE_EXECUTION = frozenset(state for state, kind in CLASS.items() if kind is _C.PRE_EXECUTION)

_CALLED_OFF: frozenset[str] = frozenset(
    {
        _R.CANCELLED_BY_AGENT,
        _R.E_STOP,
        _R.SAFE_STATE,
        _R.SESSION_CLOSED,
        _R.WORLD_RESET,
        _R.TRANSFERRED,
        _R.SUPERSEDED,
    }
)
_NOT_ADMITTED: frozenset[str] = frozenset(
    {_R.DEADLINE_EXCEEDED, _R.STALE_INTENT, _R.FORBIDDEN, _R.ENVELOPE}
)
_ABORTED: frozenset[str] = frozenset({_R.CANCELLED_BY_AGENT, _R.SESSION_CLOSED, _R.WORLD_RESET})

# Source and target to the reasons that fit; None where the transition carries no reason.
TRANSITIONS: Mapping[tuple[ActionState, ActionState], frozenset[str] | None] = MappingProxyType(
    {
        (_S.SUBMITTED, _S.REJECTED): None,  # told as a JSON-RPC error, AWP-ACT-010
        (_S.SUBMITTED, _S.PENDING_APPROVAL): None,
        (_S.SUBMITTED, _S.QUEUED): None,
        (_S.SUBMITTED, _S.ACCEPTED): None,
        (_S.PENDING_APPROVAL, _S.QUEUED): None,
        (_S.PENDING_APPROVAL, _S.ACCEPTED): None,
        (_S.PENDING_APPROVAL, _S.REJECTED): _NOT_ADMITTED
        | {_R.APPROVAL_DENIED, _R.APPROVAL_TIMEOUT},
        (_S.PENDING_APPROVAL, _S.CANCELLED): _CALLED_OFF,
        (_S.QUEUED, _S.ACCEPTED): None,
        (_S.QUEUED, _S.REJECTED): _NOT_ADMITTED,
        (_S.QUEUED, _S.CANCELLED): _CALLED_OFF,
        (_S.ACCEPTED, _S.EXECUTING): None,
        (_S.ACCEPTED, _S.REJECTED): frozenset({_R.DEADLINE_EXCEEDED, _R.STALE_INTENT}),
        (_S.ACCEPTED, _S.CANCELLED): _CALLED_OFF,
        (_S.EXECUTING, _S.COMPLETED): None,
        (_S.EXECUTING, _S.FAILED): frozenset(
            {
                _R.DEADLINE_EXCEEDED,
                _R.E_STOP,
                _R.CONNECTION_LOST,
                _R.ENVELOPE,
                _R.WATCHDOG,
                _R.WORLD_ERROR,
            }
        ),
        (_S.EXECUTING, _S.PREEMPTED): frozenset({_R.TRANSFERRED}),
        (_S.EXECUTING, _S.CANCELLING): _ABORTED,
        (_S.CANCELLING, _S.CANCELLED): _ABORTED,
        (_S.CANCELLING, _S.FAILED): frozenset(
            {_R.E_STOP, _R.CONNECTION_LOST, _R.ABORT_FAILED, _R.WORLD_ERROR}
        ),
    }
)

# Progress of a running or aborting action is told by repeating its state (AWP-LIF-003).
_REPEATS: Mapping[ActionState, frozenset[str] | None] = MappingProxyType(
    {_S.EXECUTING: None, _S.CANCELLING: _ABORTED}
)
_REASON_REQUIRED = frozenset({_S.FAILED, _S.REJECTED, _S.CANCELLED})
_VENDOR_REASON = re.compile(r'x-[a-z0-9]+\.[A-Za-z0-9_.-]+')


def allowed(source: ActionState, target: ActionState, reason: str | None) -> bool:
    """
    Return whether a status may report this step with this reason.

    A vendor reason fits wherever a reason fits at all. ``failed``, ``rejected`` and ``cancelled``
    need a reason; on the other transitions that list reasons it may be left out. Repeating
    ``executing`` or ``cancelling`` is progress, not a transition, and always permitted.
    """
    if source is target:
        if source not in _REPEATS:
            return False
        reasons = _REPEATS[source]
    elif (source, target) in TRANSITIONS:
        reasons = TRANSITIONS[source, target]
    else:
        return False
    if reason is None:
        return reasons is None or target not in _REASON_REQUIRED  # AWP-LIF-004
    if reasons is None:
        return False
    return reason in reasons or _VENDOR_REASON.fullmatch(reason) is not None


class SessionState(StrEnum):
    """The states of a session that the wire reports (AWP-SES-007)."""

    READY = 'ready'
    ACTIVE = 'active'
    SUSPENDED = 'suspended'
    CLOSED = 'closed'


_T = SessionState

# State to the states that may follow it.
SESSION_TRANSITIONS: Mapping[SessionState, frozenset[SessionState]] = MappingProxyType(
    {
        _T.READY: frozenset({_T.ACTIVE, _T.SUSPENDED, _T.CLOSED}),  # AWP-SES-003
        _T.ACTIVE: frozenset({_T.SUSPENDED, _T.CLOSED}),
        _T.SUSPENDED: frozenset({_T.ACTIVE, _T.CLOSED}),  # AWP-SES-004, AWP-SES-005
        _T.CLOSED: frozenset(),
    }
)


def mermaid() -> str:
    """Return the action diagram as Mermaid source, drawn from the table."""
    lines = ['stateDiagram-v2', '    [*] --> submitted']
    for (source, target), reasons in TRANSITIONS.items():
        label = f' : {"<br/>".join(sorted(reasons))}' if reasons else ''
        lines.append(f'    {source} --> {target}{label}')
    lines += [f'    {state} --> [*]' for state in CLASS if state in TERMINAL]
    return '\n'.join(lines) + '\n'
