"""
Owns what follows when a cancel is not obeyed: the next thing that can stop the robot.

A server that does not answer is asked to cancel all its goals, whoever sent them. A planner whose
goal goes on gets no more time than configured: what it drives the robot with is cancelled then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import logging
from typing import Any

from awp_ros_bridge.ros.cancel_clients import CancelClients, cancelling
from awp_ros_bridge.ros.live_goals import Cancel, LiveGoal, LiveGoals
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stop_plan import Downstream, StopPlan

_LOG = logging.getLogger(__name__)

_WHY = {
    Cancel.CONFIRMED: 'has not ended its goal',
    Cancel.REFUSED: 'refused to cancel its goal',
    Cancel.UNCONFIRMED: 'does not know its goal',
}


class Escalation:
    """
    Watches the cancels that have left; :meth:`cancel_sent` on any thread, the rest on its own.

    :param cancels: of the safety node.
    :param on_note: told who was asked to stop the robot instead, and what it answered.
    """

    def __init__(
        self,
        thread: RosThread,
        cancels: Callable[[], CancelClients],
        goals: LiveGoals,
        plans: Mapping[str, StopPlan],
        on_note: Callable[[LiveGoal, str], None],
    ) -> None:
        self._thread = thread
        self._cancels = cancels
        self._goals = goals
        self._plans = plans
        self._on_note = on_note
        self._watched: set[str] = set()

    def cancel_sent(self, goal: LiveGoal) -> None:
        """Give a planner its time from now on."""
        if goal.server in self._plans[goal.embodiment].downstream:
            self._thread.post(self._watch, goal)

    def unanswered(self, goal: LiveGoal) -> None:
        """Ask a server that did not answer a cancel to cancel all its goals."""
        if self._goals.get(goal.goal_id) is goal:
            limit_ms = self._cancels().answer_ms
            why = f'{goal.server} did not answer a cancel within {limit_ms} ms'
            self._cancel_all(goal, goal.server, why)

    def _watch(self, goal: LiveGoal) -> None:
        if goal.goal_id in self._watched:
            return  # a repeated cancel of the same goal
        self._watched.add(goal.goal_id)
        downstream = self._plans[goal.embodiment].downstream[goal.server]
        self._thread.call_later(downstream.after_ns, lambda: self._look(goal, downstream))

    def _look(self, goal: LiveGoal, downstream: Downstream) -> None:
        self._watched.discard(goal.goal_id)
        if self._goals.get(goal.goal_id) is not goal:
            return
        said = _WHY.get(goal.cancel, 'has not answered the cancel')
        why = f'{goal.server} {said} within {downstream.after_ns // MS} ms'
        for server in downstream.servers:
            self._cancel_all(goal, server, why)

    def _cancel_all(self, goal: LiveGoal, server: str, why: str) -> None:
        cancels = self._cancels()

        def on_answer(response: Any) -> None:
            count = cancelling(response)
            stopped = f'stopped {count} of its goals' if count else 'had no goal to stop'
            self._note(goal, f'{why}; {server} was asked to cancel all and {stopped}')

        def on_late() -> None:
            said = f'{server} was asked to cancel all and did not answer within'
            self._note(goal, f'{why}; {said} {cancels.answer_ms} ms')

        cancels.cancel_all(server, on_answer, on_late)

    def _note(self, goal: LiveGoal, text: str) -> None:
        _LOG.warning('goal=%s %s', goal.goal_id, text)
        self._on_note(goal, text)
