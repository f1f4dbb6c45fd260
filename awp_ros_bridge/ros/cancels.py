"""Owns the cancel of a live goal: one request whoever asks first, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
import logging
from typing import Any

from action_msgs.srv import CancelGoal

from awp_ros_bridge.ros.cancel_clients import CancelClients
from awp_ros_bridge.ros.live_goals import Cancel, LiveGoal, LiveGoals
from awp_ros_bridge.ros.runtime import RosThread

_LOG = logging.getLogger(__name__)

RETRY_NS = 30_000_000  # a cancel that overtook its goal is repeated until the goal is known

_Response = CancelGoal.Response
_ANSWERS = {
    _Response.ERROR_NONE: (
        Cancel.REFUSED,
        'refused to cancel',
    ),  # rclpy says no with an empty list
    _Response.ERROR_REJECTED: (Cancel.REFUSED, 'refused to cancel'),
    _Response.ERROR_UNKNOWN_GOAL_ID: (Cancel.UNCONFIRMED, 'does not know the goal'),
    _Response.ERROR_GOAL_TERMINATED: (Cancel.UNCONFIRMED, 'has ended the goal already'),
}

Answered = Callable[[LiveGoal, Cancel, str], None]


class Canceller:
    """
    Sends cancels from one thread's node; one request per goal whoever asks first.

    :param clients: of the same thread.
    :param on_answer: told on this thread what became of a cancel; SENT: no answer in time.
    :param on_sent: told on this thread that a cancel has left.
    """

    def __init__(
        self,
        thread: RosThread,
        clients: CancelClients,
        goals: LiveGoals,
        on_answer: Answered,
        on_sent: Callable[[LiveGoal], None] = lambda goal: None,
    ) -> None:
        self._thread = thread
        self._clients = clients
        self._goals = goals
        self._on_answer = on_answer
        self._on_sent = on_sent

    def is_ready(self, server: str) -> bool:
        """Tell whether a cancel would reach the server; any thread."""
        return self._clients.is_ready(server)

    @property
    def outstanding(self) -> int:
        """Number of cancels without an answer."""
        return self._clients.outstanding

    def cancel(self, goal: LiveGoal) -> bool:
        """Send the cancel unless it is under way; a service or built-in has none."""
        if goal.server not in self._clients.servers or not self._goals.claim_cancel(goal):
            return False
        self._clients.cancel(
            goal.server,
            goal.uuid,
            lambda response: self._answered(goal, response),
            lambda: self._late(goal),
        )
        _LOG.debug('> cancel goal=%s server=%s', goal.goal_id, goal.server)
        self._on_sent(goal)
        return True

    def _late(self, goal: LiveGoal) -> None:
        detail = f'{goal.server} did not answer the cancel within {self._clients.answer_ms} ms'
        _LOG.warning('goal=%s %s', goal.goal_id, detail)
        self._on_answer(goal, Cancel.SENT, detail)

    def _answered(self, goal: LiveGoal, response: Any) -> None:
        named = any(bytes(info.goal_id.uuid) == goal.uuid for info in response.goals_canceling)
        state, said = Cancel.CONFIRMED, ''
        if response.return_code != _Response.ERROR_NONE or not named:
            unknown = (Cancel.REFUSED, f'answered code {response.return_code}')
            state, said = _ANSWERS.get(response.return_code, unknown)
        detail = f'{goal.server} {said}' if said else ''
        if state is Cancel.UNCONFIRMED and self._goals.reopen_cancel(goal):
            self._thread.call_later(RETRY_NS, lambda: self._retry(goal))
            return
        self._goals.cancel_answered(goal, state, detail)
        self._on_answer(goal, state, detail)

    def _retry(self, goal: LiveGoal) -> None:
        """Send once more while the acceptance is outstanding; with it, its thread cancels."""
        if self._goals.get(goal.goal_id) is goal:
            self.cancel(goal)
