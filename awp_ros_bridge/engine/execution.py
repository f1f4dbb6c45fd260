"""Owns the way from an admitted action to the end of its goal: groups, goals (AWP-PRE, LIF)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from awp_ros_bridge.engine.actions import Action, Cause, Goal
from awp_ros_bridge.engine.effects import StartGoal
from awp_ros_bridge.engine.embodiments import Group
from awp_ros_bridge.engine.inputs import GoalOutcome
from awp_ros_bridge.engine.policy import RefusalKind, Replace
from awp_ros_bridge.engine.transitions import (
    GOAL_REFUSED_REASON,
    move,
    NOT_READY_REASON,
    PARAMS_REASON,
    SERVER_UNAVAILABLE_REASON,
)
from awp_ros_bridge.wire.errors import ErrorCode, WireFault
from awp_ros_bridge.wire.lifecycle import ActionState, Reason

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel

PROGRESS_STEP_NS = 100_000_000

_RECHECK_REASONS: dict[RefusalKind, str] = {
    RefusalKind.PARAMS: PARAMS_REASON,
    RefusalKind.ENVELOPE: Reason.ENVELOPE,
    RefusalKind.UNREADY: NOT_READY_REASON,
}
_NOT_RUN_REASONS = {
    GoalOutcome.REFUSED: GOAL_REFUSED_REASON,
    GoalOutcome.NOT_SENT: SERVER_UNAVAILABLE_REASON,
}


class Execution:
    """Moves actions through their groups; the only part that starts goals."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    # ------------------------------------------------------------ admission into a group

    def place(self, action: Action) -> None:
        """
        Give an admitted action its place in the group, as its preemption policy says.

        :raises WireFault: AWP_BUSY or AWP_QUEUE_FULL; nothing has changed then.
        """
        group = self._group(action)
        if not group.is_busy:
            self._accept(action, group, live=False)
            group.waiting = action
        elif action.preempt == 'reject':  # AWP-PRE-005
            raise WireFault(
                ErrorCode.BUSY,
                f'group {group.name} of {action.embodiment} is busy; wait, or submit with another '
                'declared preemption policy',
            )
        elif action.preempt == 'queue':  # AWP-PRE-002
            if len(group.queue) >= action.policy.max_queue:
                raise WireFault(
                    ErrorCode.QUEUE_FULL,
                    f'{len(group.queue)} actions wait in group {group.name}, max_queue is '
                    f'{action.policy.max_queue}; wait until one ends',
                )
            self._admit(action)
            move(self._kernel, action, ActionState.QUEUED, live=False)
            group.queue.append(action)
        else:  # AWP-PRE-003
            for older in [*group.queue, group.waiting]:  # told before the result of the new one
                if older is not None:
                    self._kernel.endings.end(older, Cause.PREEMPT)
            self._accept(action, group, live=False)
            self._kernel.later(lambda: self._replace(action, group))  # after its own result
        self._kernel.later(lambda: self.advance(group))

    def _admit(self, action: Action) -> None:
        action.session.actions[action.id] = action
        action.session.live[action.id] = action

    def _accept(self, action: Action, group: Group, *, live: bool) -> None:
        self._admit(action)
        move(self._kernel, action, ActionState.ACCEPTED, live=live)

    def _replace(self, action: Action, group: Group) -> None:
        """Put a new action in line, and stop what it cannot take over from."""
        group.waiting = action
        for older in (group.incoming, group.running):
            if older is not None and not self._takes_over(action, older):
                self._kernel.endings.end(older, Cause.PREEMPT)

    def _takes_over(self, action: Action, running: Action) -> bool:
        """Whether the server blends from the running goal into the new one by itself."""
        native = action.policy.replace is Replace.NATIVE
        return native and action.policy.server == running.policy.server

    # ------------------------------------------------------------ starting

    def advance(self, group: Group) -> None:
        """Start what may start in a group; called whenever something about it changed."""
        embodiment = group.embodiment
        if embodiment.behavior_ticket is not None or group.draining:
            return
        if group.incoming is not None:
            return
        if group.running is not None:
            self._advance_native(group, group.running)
            return
        action = self._next(group)
        if action is not None:
            group.running = action
            self._start(action)

    def _advance_native(self, group: Group, running: Action) -> None:
        waiting = group.waiting
        if waiting is None or running.is_in_flight or running.ending is not None:
            return
        if self._takes_over(waiting, running) and self._still_valid(waiting):
            group.waiting = None
            group.incoming = waiting
            self._start(waiting)

    def _next(self, group: Group) -> Action | None:
        action = group.waiting
        if action is not None:
            if not self._still_valid(action):
                return self._next(group)
            group.waiting = None
            return action
        while group.queue:
            action = group.queue[0]
            if self._recheck(action):
                group.queue.popleft()
                move(self._kernel, action, ActionState.ACCEPTED)
                return action
        return None

    def _still_valid(self, action: Action) -> bool:
        """Whether an accepted action may still begin; ends it where not (AWP-ACT-007)."""
        until = action.valid_until_ns
        now = action.session.clock.session_ns(self._kernel.now_ns)
        if until is not None and now > until:
            detail = f'valid_until_ns passed {now - until} ns ago'
            self._kernel.endings.end(action, Cause.STALE_INTENT, detail)
            return False
        return True

    def _recheck(self, action: Action) -> bool:
        """Whether a queued action may become accepted; ends it where not (AWP-SAF-013)."""
        kernel = self._kernel
        session = action.session
        if session.is_expired or action.embodiment not in session.embodiments:
            move(kernel, action, ActionState.REJECTED, Reason.FORBIDDEN, detail='grant is over')
            return False
        limit, basis = kernel.policy.max_basis_age_ns, action.basis_ns
        age = session.clock.session_ns(kernel.now_ns) - basis if basis is not None else 0
        if limit is not None and basis is not None and age > limit:
            ms = limit // 1_000_000
            detail = f'basis is {age // 1_000_000} ms old, max_basis_age_ms is {ms}'
            kernel.endings.end(action, Cause.STALE_INTENT, detail)
            return False
        if not self._still_valid(action):
            return False
        refusal = kernel.checker.check(action.embodiment, action.policy.type, action.params)
        if refusal is not None:
            reason = _RECHECK_REASONS[refusal.kind]
            move(kernel, action, ActionState.REJECTED, reason, detail=refusal.detail)
            return False
        return True

    def _start(self, action: Action) -> None:
        kernel = self._kernel
        goal = Goal(kernel.ids.goal_id(), action)
        action.goal = goal
        kernel.goals[goal.id] = goal
        embodiment = kernel.embodiments[action.embodiment]
        kernel.emit(
            StartGoal(
                goal.id, action.embodiment, action.policy.type, action.params, embodiment.epoch
            )
        )

    # ------------------------------------------------------------ what ROS tells

    def goal_accepted(self, goal_id: str) -> None:
        """Begin execution: a server took the goal (AWP-LIF-001)."""
        goal = self._kernel.goals.get(goal_id)
        if goal is None or goal.accepted or goal.ended is not None:
            return
        goal.accepted = True
        action = goal.action
        group = self._group(action)
        if action.state is ActionState.ACCEPTED:
            self.begin(action, group)
        self._kernel.later(lambda: self.advance(group))

    def begin(self, action: Action, group: Group) -> None:
        """Move an action to executing; what it takes over from ends first."""
        kernel = self._kernel
        if group.incoming is action:
            group.incoming = None
            older = group.running
            if older is not None:
                kernel.endings.give_way(older)
                if older.goal is not None:  # the server itself ends it by taking the new one
                    group.draining.discard(older.goal)
            group.running = action
        kernel.safety.leave(action)
        move(kernel, action, ActionState.EXECUTING)
        kernel.report(kernel.embodiments[action.embodiment])
        self._arm_progress(action)

    def goal_progressed(self, goal_id: str, progress: float) -> None:
        """Keep and, at most ten times a second, report progress (AWP-LIF-003)."""
        goal = self._kernel.goals.get(goal_id)
        if goal is None or goal.ended is not None or not 0.0 <= progress <= 1.0:
            return
        action = goal.action
        if action.is_terminal:
            return
        action.progress = progress
        due = self._kernel.now_ns - action.reported_ns >= PROGRESS_STEP_NS
        if action.state is ActionState.EXECUTING and due:
            self._report_progress(action)

    def _report_progress(self, action: Action) -> None:
        move(self._kernel, action, ActionState.EXECUTING)
        self._arm_progress(action)

    def _arm_progress(self, action: Action) -> None:
        """Say again where an action stands when nothing new was said for a while (AWP-LIF-003)."""
        kernel = self._kernel
        at_ns = kernel.now_ns + kernel.policy.progress_repeat_ns
        kernel.deadlines.set(('progress', action), at_ns, lambda: self._repeat_progress(action))

    def _repeat_progress(self, action: Action) -> None:
        if action.state is ActionState.EXECUTING:
            self._report_progress(action)

    def goal_stalled(self, goal_id: str, detail: str) -> None:
        """End an action whose goal does nothing: cancel it, then it fails (x-ros2.stalled)."""
        goal = self._kernel.goals.get(goal_id)
        if goal is not None and goal.accepted:
            self._kernel.endings.end(goal.action, Cause.STALLED, detail)

    def goal_noted(self, goal_id: str, detail: str) -> None:
        """Keep what else was done to end a goal, for the end of its action."""
        goal = self._kernel.goals.get(goal_id)
        if goal is not None and not goal.action.is_terminal:
            goal.action.notes.append(detail)

    def goal_ended(self, goal_id: str, outcome: GoalOutcome, detail: str) -> None:
        """Let a goal go; its action ends, or waits for rest, or was over before."""
        goal = self._kernel.goals.pop(goal_id, None)
        if goal is None:
            return
        goal.ended = outcome
        action = goal.action
        group = self._group(action)
        group.draining.discard(goal)
        if not action.is_terminal:
            self._close_goal(action, group, outcome, detail)
        self._kernel.later(lambda: self.advance(group))
        self._kernel.later(lambda: self._kernel.safety.try_release(group.embodiment))
        self._kernel.later(self._kernel.closer.try_reset)

    def _close_goal(
        self, action: Action, group: Group, outcome: GoalOutcome, detail: str
    ) -> None:
        kernel = self._kernel
        if outcome in (GoalOutcome.UNANSWERED, GoalOutcome.LOST):
            self._uncertain(action, outcome, detail)
        elif action.state is ActionState.ACCEPTED:
            self._close_unanswered(action, group, outcome, detail)
        elif action.ending is not None:
            kernel.endings.goal_over(action, outcome, detail)
        elif outcome is GoalOutcome.SUCCEEDED:
            move(kernel, action, ActionState.COMPLETED, detail=detail)
        elif group.incoming is not None:
            action.outrun = detail or f'goal ended {outcome}'
        else:
            text = detail or f'goal ended {outcome}'
            move(kernel, action, ActionState.FAILED, Reason.WORLD_ERROR, detail=text)

    def _close_unanswered(
        self, action: Action, group: Group, outcome: GoalOutcome, detail: str
    ) -> None:
        """Close a goal that was refused, or that ended before its acceptance was told."""
        reason = _NOT_RUN_REASONS.get(outcome)
        if reason is None:
            self.begin(action, group)
            self._close_goal(action, group, outcome, detail)
            return
        move(self._kernel, action, ActionState.REJECTED, reason, detail=detail)
        older = group.running
        if older is not None and older.outrun is not None and older.ending is None:
            text = older.outrun  # no take-over ended it after all
            move(self._kernel, older, ActionState.FAILED, Reason.WORLD_ERROR, detail=text)

    def _uncertain(self, action: Action, outcome: GoalOutcome, detail: str) -> None:
        """Stop the robot: no end is known for a goal, so it may be moving."""
        if action.state is ActionState.ACCEPTED:
            self._kernel.endings.presume(action)
        words = {
            GoalOutcome.UNANSWERED: 'the server did not answer the goal request',
            GoalOutcome.LOST: 'the server is lost',
        }
        self._kernel.endings.give_up(action, detail or words[outcome])

    def _group(self, action: Action) -> Group:
        return self._kernel.embodiments[action.embodiment].group(action.policy.group)
