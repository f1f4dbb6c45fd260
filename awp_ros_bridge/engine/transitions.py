"""Owns the terminal rules as data, and the one function that moves an action (AWP-LIF-001)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from awp_ros_bridge.engine.actions import Action, Cause
from awp_ros_bridge.wire.lifecycle import ActionState, allowed, Reason

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel

SAFETY_INPUT_REASON = 'x-ros2.safety_input'
GOAL_REFUSED_REASON = 'x-ros2.goal_refused'
SERVER_UNAVAILABLE_REASON = 'x-ros2.server_unavailable'
NOT_READY_REASON = 'x-ros2.not_ready'
PARAMS_REASON = 'x-ros2.params_invalid'
STALLED_REASON = 'x-ros2.stalled'


@dataclass(frozen=True, slots=True)
class Rule:
    """
    What one cause does to an action (the table "Terminal rules" of the specification).

    :param pre: terminal state and reason from a pre-execution state; None has no effect there.
    :param executing: terminal state and reason from ``executing``; None where the action first
        passes through ``cancelling``.
    :param cancelling: terminal state and reason from ``cancelling``; None leaves the abort alone.
    :param waits: the executing action ends only after its goal ended and the robot rests.
    :param relabels: an abort under way goes on under this cause's reason.
    """

    pre: tuple[ActionState, str | None] | None
    executing: tuple[ActionState, str | None] | None
    cancelling: tuple[ActionState, str | None] | None
    waits: bool
    relabels: bool = False


_S, _R = ActionState, Reason

RULES: dict[Cause, Rule] = {
    Cause.E_STOP: Rule(
        (_S.CANCELLED, _R.E_STOP), (_S.FAILED, _R.E_STOP), (_S.FAILED, _R.E_STOP), waits=False
    ),
    Cause.SAFETY_INPUT: Rule(
        (_S.CANCELLED, _R.SAFE_STATE),
        (_S.FAILED, SAFETY_INPUT_REASON),
        (_S.FAILED, SAFETY_INPUT_REASON),
        waits=False,
    ),
    Cause.SAFE_STATE: Rule(
        (_S.CANCELLED, _R.SAFE_STATE),
        (_S.FAILED, _R.CONNECTION_LOST),
        (_S.FAILED, _R.CONNECTION_LOST),
        waits=False,
    ),
    Cause.RESET: Rule(
        (_S.CANCELLED, _R.WORLD_RESET),
        None,
        (_S.CANCELLED, _R.WORLD_RESET),
        waits=True,
        relabels=True,
    ),
    Cause.CLOSE: Rule(
        (_S.CANCELLED, _R.SESSION_CLOSED),
        None,
        (_S.CANCELLED, _R.SESSION_CLOSED),
        waits=True,
        relabels=True,
    ),
    Cause.TRANSFER: Rule(
        (_S.CANCELLED, _R.TRANSFERRED), (_S.PREEMPTED, _R.TRANSFERRED), None, waits=True
    ),
    Cause.CANCEL: Rule(
        (_S.CANCELLED, _R.CANCELLED_BY_AGENT),
        None,
        (_S.CANCELLED, _R.CANCELLED_BY_AGENT),
        waits=True,
    ),
    Cause.ENVELOPE: Rule(
        (_S.CANCELLED, _R.SAFE_STATE), (_S.FAILED, _R.ENVELOPE), None, waits=False
    ),  # AWP-ENV-003
    Cause.DEADLINE: Rule(
        (_S.REJECTED, _R.DEADLINE_EXCEEDED), (_S.FAILED, _R.DEADLINE_EXCEEDED), None, waits=True
    ),
    Cause.STALLED: Rule(None, (_S.FAILED, STALLED_REASON), None, waits=True),
    Cause.STALE_INTENT: Rule((_S.REJECTED, _R.STALE_INTENT), None, None, waits=False),
    Cause.PREEMPT: Rule((_S.CANCELLED, _R.SUPERSEDED), (_S.PREEMPTED, None), None, waits=True),
}


class ForbiddenMove(AssertionError):
    """The engine itself asked for a transition that the table does not list: our fault."""


def move(
    kernel: Kernel,
    action: Action,
    target: ActionState,
    reason: str | None = None,
    *,
    detail: str = '',
    live: bool = True,
) -> None:
    """
    Move an action: look the row up, stamp time and ``status_seq``, report it (AWP-LIF-001).

    :param live: False when the transition is reported in the result of ``action.submit`` or
        ``action.cancel``; it is then kept for replay only (AWP-CTL-008).
    :raises ForbiddenMove: the table lists no such transition.
    """
    source = action.state
    if not allowed(source, target, reason):
        raise ForbiddenMove(f'{action.id}: {source} to {target} ({reason}) is not in the table')
    action.state = target
    action.reason = reason
    if target is ActionState.COMPLETED:
        action.progress = 1.0
    notes = [detail, *action.notes] if action.is_terminal else [detail]
    text = '; '.join(n for n in notes if n)
    ran = source in (ActionState.EXECUTING, ActionState.CANCELLING)
    left_execution = action.is_terminal and ran
    kernel.delivery.status(action, detail=text, aborted=left_execution, live=live)
    if action.is_terminal:
        action.ended_at_ns = kernel.now_ns
        kernel.deadlines.clear(('deadline', action))
        kernel.deadlines.clear(('abort', action))
        kernel.deadlines.clear(('progress', action))
        kernel.settle(action)
