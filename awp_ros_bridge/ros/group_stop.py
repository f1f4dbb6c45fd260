"""Owns the built-in action ``stop``: end what moves in a concurrency group, then measured rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import time

from awp_ros_bridge.engine.effects import StartGoal
from awp_ros_bridge.engine.inputs import GoalAccepted, GoalEnded, GoalOutcome, Input
from awp_ros_bridge.ros.live_goals import LiveGoal, LiveGoals
from awp_ros_bridge.ros.plan import ActionPlan, MS
from awp_ros_bridge.ros.rest import RestMonitor
from awp_ros_bridge.ros.runtime import Deadline, RosThread


@dataclass(slots=True, eq=False)
class _Stop:
    goal_id: str
    plan: ActionPlan
    deadline: Deadline
    stage: str = 'end of all goals'
    forget: Callable[[], None] = lambda: None


class GroupStop:
    """
    Runs stops on the goals thread.

    :param cancel: cancels one live goal, now or on acceptance.
    """

    def __init__(
        self,
        thread: RosThread,
        post: Callable[[Input], None],
        goals: LiveGoals,
        rest: RestMonitor,
        cancel: Callable[[str], None],
    ) -> None:
        self._thread = thread
        self._post = post
        self._goals = goals
        self._rest = rest
        self._cancel = cancel
        self._stops: dict[str, _Stop] = {}

    @property
    def held(self) -> int:
        """Number of stops without an end."""
        return len(self._stops)

    def start(self, effect: StartGoal, plan: ActionPlan, live: LiveGoal) -> None:
        """Cancel the group's goals; the action succeeds with the measured rest."""
        goal_id = effect.goal_id
        self._goals.accepted(live)
        self._post(GoalAccepted(goal_id))
        deadline = self._thread.call_later(plan.abort_ns, lambda: self._on_bound(goal_id))
        stop = self._stops[goal_id] = _Stop(goal_id, plan, deadline)
        group = self._goals.of(plan.embodiment, plan.group)
        others = [goal.goal_id for goal in group if goal.is_cancellable]
        for other in others:
            self._goals.want_cancel(other)
            self._cancel(other)
        # the last goal ends on this thread, inside the runner: go on when it is done
        stop.forget = self._goals.watch(others, lambda: self._thread.post(self._rests, goal_id))

    def cancel(self, goal_id: str) -> None:
        """End the action; the robot goes on stopping."""
        if goal_id in self._stops:
            self._end(goal_id, GoalOutcome.CANCELED, 'stop')

    def _rests(self, goal_id: str) -> None:
        stop = self._stops.get(goal_id)
        if stop is None:
            return
        stop.stage = 'measured rest'

        def rested(measured: bool) -> None:
            self._thread.post(self._on_rest, goal_id, measured)

        stop.forget = self._rest.await_rest(
            stop.plan.embodiment, time.monotonic_ns(), rested, stop.plan.group
        )

    def _on_rest(self, goal_id: str, measured: bool) -> None:
        detail = 'at rest' if measured else 'rest not measured'
        self._end(goal_id, GoalOutcome.SUCCEEDED, detail)

    def _on_bound(self, goal_id: str) -> None:
        stop = self._stops.get(goal_id)
        if stop is not None:
            limit_ms = stop.plan.abort_ns // MS
            detail = f'no {stop.stage} within {limit_ms} ms'
            left = self._goals.of(stop.plan.embodiment, stop.plan.group)
            names = sorted({goal.server for goal in left if goal.is_cancellable})
            if names:
                detail = f'{detail}; goals on {", ".join(names)} have not ended'
            self._end(goal_id, GoalOutcome.ABORTED, detail)

    def _end(self, goal_id: str, outcome: GoalOutcome, detail: str) -> None:
        stop = self._stops.pop(goal_id, None)
        if stop is None:
            return
        stop.deadline.cancel()
        stop.forget()
        self._post(GoalEnded(goal_id, outcome, detail))
        self._goals.discard(goal_id)
