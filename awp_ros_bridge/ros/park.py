"""Owns the goals that park a robot: the bridge's own, unknown to the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import logging

from awp_ros_bridge.config import Park
from awp_ros_bridge.engine.effects import StartGoal
from awp_ros_bridge.engine.inputs import (
    GoalAccepted,
    GoalEnded,
    GoalOutcome,
    GoalProgressed,
    GoalStalled,
    Input,
)
from awp_ros_bridge.ros.live_goals import LiveGoal, LiveGoals
from awp_ros_bridge.ros.plan import ActionPlan, Key
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stop import StopGate

_LOG = logging.getLogger(__name__)

Ended = Callable[[bool, str], None]
Send = Callable[[StartGoal, ActionPlan, LiveGoal], None]


class Parking:
    """
    Sends park goals and takes their news out of what the engine is told.

    A park goal is a live goal like any other: a stop cancels it, and the gate holds it back.

    :param thread: on which ends are told, the safety thread.
    :param send: hands a goal to the goals thread.
    """

    def __init__(
        self,
        thread: RosThread,
        post: Callable[[Input], None],
        gate: StopGate,
        goals: LiveGoals,
        plans: Mapping[Key, ActionPlan],
        send: Send,
    ) -> None:
        self._thread = thread
        self._post = post
        self._gate = gate
        self._goals = goals
        self._plans = plans
        self._send = send
        self._ends: dict[str, Ended] = {}

    def begin(
        self, embodiment: str, step: Park, goal_id: str, on_end: Ended
    ) -> LiveGoal | None:
        """
        Send a park goal, or say at once why not.

        :param goal_id: UUID as 32 hex digits, of the engine's.
        :param on_end: called once with whether the goal succeeded, and what to report.
        """
        plan = self._plans[embodiment, step.action]
        refusal = self._gate.refusal(embodiment, self._gate.epoch)
        if refusal is None:
            found = plan.adapter.check(step.params)  # limits hold for it too (AWP-ENV-001)
            refusal = None if found is None else f'its goal is refused: {found.detail}'
        if refusal is not None:
            on_end(False, f'not sent, {refusal}')
            return None
        live = LiveGoal(goal_id, embodiment, step.action, plan.group, plan.server)
        effect = StartGoal(goal_id, embodiment, step.action, dict(step.params), self._gate.epoch)
        self._ends[goal_id] = on_end
        self._goals.add(live)
        _LOG.info('embodiment=%s goal=%s parks by %s', embodiment, goal_id, step.action)
        self._send(effect, plan, live)
        return live

    def post(self, news: Input) -> None:
        """Tell the engine of its own goals only."""
        if isinstance(news, GoalAccepted | GoalProgressed | GoalStalled | GoalEnded):
            on_end = self._ends.get(news.goal_id)
            if on_end is not None:
                if isinstance(news, GoalEnded):
                    del self._ends[news.goal_id]
                    is_done = news.outcome is GoalOutcome.SUCCEEDED
                    said = news.outcome.value
                    said = f'{said}: {news.detail}' if news.detail else said
                    self._thread.post(on_end, is_done, said)
                return
        self._post(news)
