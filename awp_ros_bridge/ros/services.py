"""Owns the instant actions that are one service call, with a bounded wait; goals thread only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rclpy.client import Client
from rclpy.serialization import serialize_message

from awp_ros_bridge.engine.effects import StartGoal
from awp_ros_bridge.engine.inputs import GoalAccepted, GoalEnded, GoalOutcome, Input
from awp_ros_bridge.ros.live_goals import LiveGoal, LiveGoals
from awp_ros_bridge.ros.plan import ActionPlan, MS
from awp_ros_bridge.ros.runtime import Deadline, RosThread
from awp_ros_bridge.ros.stop import StopGate


@dataclass(slots=True, eq=False)
class _Call:
    plan: ActionPlan
    client: Client[Any, Any]
    future: Any
    deadline: Deadline


class ServiceRunner:
    """
    Calls services and reports accepted when the request left, ended with the response.

    :param clients: one per service, by its name, made in advance.
    """

    def __init__(
        self,
        thread: RosThread,
        post: Callable[[Input], None],
        gate: StopGate,
        goals: LiveGoals,
        clients: Mapping[str, Client[Any, Any]],
    ) -> None:
        self._thread = thread
        self._post = post
        self._gate = gate
        self._goals = goals
        self._clients = clients
        self._calls: dict[str, _Call] = {}

    @property
    def held(self) -> int:
        """Number of calls without an end."""
        pending = sum(len(client._pending_requests) for client in self._clients.values())
        return len(self._calls) + pending

    def start(self, effect: StartGoal, plan: ActionPlan, live: LiveGoal) -> None:
        """Call the service, or say why nothing was sent."""
        goal_id = effect.goal_id
        client = self._clients.get(plan.server)
        if client is None or not client.service_is_ready():
            detail = f'service {plan.server} is not available'
            self._end(goal_id, GoalOutcome.NOT_SENT, detail)
            return
        try:
            request = plan.adapter.goal(effect.params)
            serialize_message(request)  # finds a field of a wrong kind before anything leaves
        except Exception as error:  # noqa: BLE001 an adapter may come from another package
            detail = f'the request for {plan.server} cannot be made: {error}'
            self._end(goal_id, GoalOutcome.NOT_SENT, detail)
            return
        refusal = None
        if plan.adapter.needs_motion:
            refusal = self._gate.refusal(plan.embodiment, effect.epoch)
        if refusal is not None or not self._goals.begin_sending(live):
            self._end(goal_id, GoalOutcome.NOT_SENT, refusal or 'cancelled before it was sent')
            return
        future = client.call_async(request)
        self._goals.accepted(live)
        self._post(GoalAccepted(goal_id))
        deadline = self._thread.call_later(plan.ack_ns, lambda: self._on_no_answer(goal_id))
        self._calls[goal_id] = _Call(plan, client, future, deadline)
        future.add_done_callback(
            self._thread.guard(lambda _: self._on_answer(goal_id, future.result()))
        )

    def _on_answer(self, goal_id: str, response: Any) -> None:
        call = self._calls.get(goal_id)
        if call is None or response is None:
            return
        server = call.plan.server
        try:
            said = call.plan.adapter.outcome(response)
        except Exception as error:  # noqa: BLE001 an adapter may come from another package
            detail = f'the response of {server} is unusable: {error}'
            self._end(goal_id, GoalOutcome.ABORTED, detail)
            return
        outcome = GoalOutcome.SUCCEEDED if said.ok else GoalOutcome.ABORTED
        self._end(goal_id, outcome, f'{server}: {said.detail}' if said.detail else server)

    def _on_no_answer(self, goal_id: str) -> None:
        call = self._calls.get(goal_id)
        if call is not None:
            server, limit_ms = call.plan.server, call.plan.ack_ns // MS
            detail = f'service {server} did not answer within {limit_ms} ms'
            self._end(goal_id, GoalOutcome.UNANSWERED, detail)

    def _end(self, goal_id: str, outcome: GoalOutcome, detail: str) -> None:
        call = self._calls.pop(goal_id, None)
        if call is not None:
            call.deadline.cancel()
            call.client.remove_pending_request(call.future)
        self._post(GoalEnded(goal_id, outcome, detail))
        self._goals.discard(goal_id)
