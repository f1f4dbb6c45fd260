"""
Owns the sending of cancels by goal id, through service clients that were matched in advance.

A plain client of ``<action>/_action/cancel_goal`` reads no status array, so nothing delays it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import logging
from typing import Any

from action_msgs.srv import CancelGoal
from rclpy.client import Client
from rclpy.node import Node
from unique_identifier_msgs.msg import UUID

from awp_ros_bridge.ros.live_goals import Cancel, LiveGoal, LiveGoals
from awp_ros_bridge.ros.runtime import Deadline, RosThread

_LOG = logging.getLogger(__name__)

RETRY_NS = 30_000_000  # a cancel that overtook its goal is repeated until the goal is known
ANSWER_NS = 1_000_000_000  # then the wait is named; the answer still counts
FORGET_NS = 20_000_000_000

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

    :param services: full name of the cancel service, by server.
    :param on_answer: told on this thread what became of a cancel; SENT: no answer in time.
    """

    def __init__(
        self,
        node: Node,
        thread: RosThread,
        services: Mapping[str, str],
        goals: LiveGoals,
        on_answer: Answered,
    ) -> None:
        self._thread = thread
        self._goals = goals
        self._on_answer = on_answer
        self._clients: dict[str, Client[Any, Any]] = {
            server: node.create_client(CancelGoal, name) for server, name in services.items()
        }

    def is_ready(self, server: str) -> bool:
        """Tell whether a cancel would reach the server; any thread."""
        client = self._clients.get(server)
        return client is not None and client.service_is_ready()

    @property
    def outstanding(self) -> int:
        """Number of cancels without an answer."""
        return sum(len(client._pending_requests) for client in self._clients.values())

    def cancel(self, goal: LiveGoal) -> bool:
        """Send the cancel unless it is under way; a service or built-in has none."""
        client = self._clients.get(goal.server)
        if client is None or not self._goals.claim_cancel(goal):
            return False
        request = CancelGoal.Request()
        request.goal_info.goal_id = UUID(uuid=list(goal.uuid))
        future = client.call_async(request)
        self._watch(client, future, goal)
        _LOG.debug('> cancel goal=%s server=%s', goal.goal_id, goal.server)
        return True

    def _watch(self, client: Client[Any, Any], future: Any, goal: LiveGoal) -> None:
        def late() -> None:
            self._late(client, future, goal, box)

        box: list[Deadline] = [self._thread.call_later(ANSWER_NS, late)]

        def done(_: Any) -> None:
            box[0].cancel()
            self._answered(goal, future.result())

        future.add_done_callback(self._thread.guard(done))

    def _late(
        self, client: Client[Any, Any], future: Any, goal: LiveGoal, box: list[Deadline]
    ) -> None:
        detail = f'{goal.server} did not answer the cancel within {ANSWER_NS // 1_000_000} ms'
        _LOG.warning('goal=%s %s', goal.goal_id, detail)
        box[0] = self._thread.call_later(FORGET_NS, lambda: client.remove_pending_request(future))
        self._on_answer(goal, Cancel.SENT, detail)

    def _answered(self, goal: LiveGoal, response: Any) -> None:
        if response is None:
            return
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
