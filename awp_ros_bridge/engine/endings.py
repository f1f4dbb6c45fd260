"""Owns how actions end before their goal does: causes, aborts, rest, bounds (AWP-LIF-005..010)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from awp_ros_bridge.engine.actions import Action, Cause, Goal
from awp_ros_bridge.engine.effects import AwaitRest, CancelGoal
from awp_ros_bridge.engine.embodiments import Group
from awp_ros_bridge.engine.inputs import GoalOutcome
from awp_ros_bridge.engine.transitions import move, RULES, STALLED_REASON
from awp_ros_bridge.wire.lifecycle import ActionState, Reason

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel

_NEVER_RAN = frozenset({GoalOutcome.REFUSED, GoalOutcome.NOT_SENT})


class Endings:
    """Ends actions for causes; the only part that cancels goals and waits for rest."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._rests: dict[int, Action] = {}

    # ------------------------------------------------------------ causes

    def end(self, action: Action, cause: Cause, detail: str = '', *, live: bool = True) -> None:
        """
        End an action for a cause, unless a stronger or equal one is ending it (AWP-LIF-008).

        :param live: False when the first transition is reported in a result.
        """
        if action.is_terminal:
            return
        if action.ending is not None and cause.rank >= action.ending.rank:
            return
        rule = RULES[cause]
        if action.is_pre_execution and not action.is_in_flight:
            if rule.pre is not None:
                move(self._kernel, action, *rule.pre, detail=detail, live=live)
            return
        if action.is_pre_execution:
            if rule.executing is None and not rule.waits:
                return  # validity no longer matters once the goal left
            self.presume(action)
        if action.state is ActionState.CANCELLING:
            self._end_cancelling(action, cause, detail)
        else:
            self._end_executing(action, cause, detail, live=live)

    def presume(self, action: Action) -> None:
        """Count a goal whose answer is outstanding as executing: the server may move already."""
        group = self._group(action)
        older = group.running if group.incoming is action else None
        self._kernel.execution.begin(action, group)
        if older is not None and older.goal is not None and older.goal.ended is None:
            group.draining.add(older.goal)  # nobody said that the server took over from it
            self._cancel(older.goal)

    def give_way(self, action: Action) -> None:
        """End an action whose server takes the next goal over; what was ending it goes first."""
        if action.ending is None:
            move(self._kernel, action, ActionState.PREEMPTED)
        else:
            self._finish(action)

    def _end_cancelling(self, action: Action, cause: Cause, detail: str) -> None:
        rule = RULES[cause]
        if rule.cancelling is None:
            return
        if rule.relabels:
            action.ending = cause
        elif not rule.waits:
            move(self._kernel, action, *rule.cancelling, detail=detail)

    def _end_executing(self, action: Action, cause: Cause, detail: str, *, live: bool) -> None:
        rule = RULES[cause]
        if not rule.waits:
            if rule.executing is not None:
                move(self._kernel, action, *rule.executing, detail=detail)
            return
        fresh = action.ending is None
        action.ending = cause
        action.ending_detail = detail
        if rule.executing is None and rule.cancelling is not None:
            reason = rule.cancelling[1]
            move(self._kernel, action, ActionState.CANCELLING, reason, detail=detail, live=live)
        if fresh:
            self._abort(action)

    # ------------------------------------------------------------ aborts

    def _abort(self, action: Action) -> None:
        """Cancel the goal and bound what follows by ``max_abort_ms`` (AWP-LIF-010)."""
        kernel = self._kernel
        kernel.deadlines.set(
            ('abort', action),
            kernel.now_ns + action.policy.max_abort_ns,
            lambda: self._abort_failed(action),
        )
        if action.goal is None or action.goal.ended is not None:
            self._await_rest(action)
        else:
            self._cancel(action.goal)

    def _cancel(self, goal: Goal) -> None:
        if not goal.cancel_sent:
            goal.cancel_sent = True
            action = goal.action
            self._kernel.emit(CancelGoal(goal.id, action.embodiment, action.policy.type))

    def goal_over(self, action: Action, outcome: GoalOutcome, detail: str) -> None:
        """Go on with an abort whose goal has ended: the robot must rest now."""
        if action.ending is Cause.PREEMPT and outcome is GoalOutcome.SUCCEEDED:
            text = 'reached its goal while being replaced'
            move(self._kernel, action, ActionState.COMPLETED, detail=text)
            return
        if outcome is GoalOutcome.SUCCEEDED:
            action.progress = 1.0
            action.notes.append('the goal succeeded before it could be cancelled')
        elif outcome in _NEVER_RAN:
            action.notes.append(f'the goal never ran: {detail or outcome}')
        self._await_rest(action)

    def _await_rest(self, action: Action) -> None:
        ticket = self._kernel.ticket()
        action.rest_ticket = ticket
        self._rests[ticket] = action
        self._kernel.emit(AwaitRest(ticket, action.embodiment, action.policy.group))

    def rest_reached(self, ticket: int, *, measured: bool) -> bool:
        """End an abort: the robot rests; return False where the ticket is not ours."""
        action = self._rests.get(ticket)
        if action is None:
            return False
        if not measured:
            action.notes.append('rest not measured')
        self._finish(action)
        return True

    def _finish(self, action: Action) -> None:
        """Move an action to the end that its cause gives."""
        assert action.ending is not None
        rule = RULES[action.ending]
        final = rule.cancelling if action.state is ActionState.CANCELLING else rule.executing
        assert final is not None
        move(self._kernel, action, *final, detail=action.ending_detail)

    def _abort_failed(self, action: Action) -> None:
        """Fail an action whose abort ran into its bound; the embodiment goes to safe state."""
        bound_ms = action.policy.max_abort_ns // 1_000_000
        is_open = action.goal is not None and action.goal.ended is None
        server = action.policy.server
        what = f'its goal on {server} did not end' if is_open else 'the robot is not at rest'
        self.give_up(action, f'{what} within max_abort_ms {bound_ms}')

    def give_up(self, action: Action, why: str) -> None:
        """Fail an action whose end cannot be brought about; safe state stops what may move."""
        if action.state is ActionState.CANCELLING:
            reason: str = Reason.ABORT_FAILED
        elif action.ending is Cause.DEADLINE:
            reason = Reason.DEADLINE_EXCEEDED
        elif action.ending is Cause.STALLED:
            reason = STALLED_REASON
        else:
            reason = Reason.WORLD_ERROR
        embodiment = self._kernel.embodiments[action.embodiment]
        self._kernel.safety.enter([embodiment], Cause.SAFE_STATE, why, first=(action, reason))

    def forget(self, action: Action) -> None:
        """Forget what an ended action waited for."""
        if action.rest_ticket is not None:
            self._rests.pop(action.rest_ticket, None)

    def _group(self, action: Action) -> Group:
        return self._kernel.embodiments[action.embodiment].group(action.policy.group)
