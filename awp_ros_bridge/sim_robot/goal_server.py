"""
Owns an action server whose goals are ended by the motion loop.

No callback here blocks: an accepted goal's execute callback is a coroutine that waits for a
future, and the loop sets the goal's final state and that future when the motion has ended.
"""

from __future__ import annotations  # Jazzy's classes take no type arguments

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node
from rclpy.task import Future

from awp_ros_bridge.sim_robot.delays import Delays
from awp_ros_bridge.sim_robot.faults import Faults


@dataclass(eq=False, slots=True)
class GoalRun:
    """
    An accepted goal that has not ended.

    :ivar request: the goal message
    :ivar is_cancel_wanted: a cancel request was accepted and is to be obeyed
    """

    handle: ServerGoalHandle[Any, Any, Any]
    request: Any
    is_cancel_wanted: bool = False
    result: Future[Any] = field(default_factory=Future)


class GoalRules(Protocol):
    """What a kind of action makes of its goals."""

    def refusal(self, goal: Any) -> str:
        """Say why a goal is rejected, empty where it is not."""

    def begin(self, run: GoalRun) -> None:
        """Start what an accepted goal asks for."""

    def cancel(self, run: GoalRun) -> None:
        """Start to stop; called once, before the cancel request is answered."""


class GoalServer:
    """One action server, and the faults that every one of them can have."""

    def __init__(
        self,
        node: Node,
        action_type: Any,
        action_name: str,
        rules: GoalRules,
        faults: Faults,
        delays: Delays,
    ) -> None:
        """Open the server; goals go to the rules."""
        self._log = node.get_logger().get_child(action_name.replace('/', '.'))
        self._rules = rules
        self._faults = faults
        self._deafness = {'ignore_cancel'}
        if action_name.startswith('gripper'):
            self._deafness.add('gripper_ignore_cancel')
        self._delays = delays
        self._runs: dict[bytes, GoalRun] = {}
        # rclpy awaits callbacks that are coroutines; its types do not say so.
        callbacks: dict[str, Any] = {
            'execute_callback': self._execute,
            'goal_callback': self._on_goal,
            'handle_accepted_callback': self._on_accepted,
            'cancel_callback': self._on_cancel,
        }
        self._server: Any = ActionServer(node, action_type, action_name, **callbacks)

    def succeed(self, run: GoalRun, result: Any) -> None:
        """End a goal as succeeded."""
        self._end(run, run.handle.succeed, result)

    def abort(self, run: GoalRun, result: Any, why: str) -> None:
        """End a goal as aborted."""
        self._log.warning(f'goal aborted: {why}')
        self._end(run, run.handle.abort, result)

    def finish_cancel(self, run: GoalRun, result: Any) -> None:
        """End a goal as canceled; its cancel request must have been accepted."""
        self._end(run, run.handle.canceled, result)

    def publish_feedback(self, run: GoalRun, feedback: Any) -> None:
        """Send feedback, unless a fault keeps it back."""
        if 'feedback_silence' not in self._faults:
            run.handle.publish_feedback(feedback)

    def is_held_open(self, run: GoalRun) -> bool:
        """Tell whether a fault keeps a goal from ending by itself."""
        if 'stall' in self._faults:
            return True
        return run.handle.is_cancel_requested and self._ignores_cancels

    @property
    def _ignores_cancels(self) -> bool:
        return any(fault in self._faults for fault in self._deafness)

    @property
    def has_open_goals(self) -> bool:
        """Tell whether a goal runs or still owes its result."""
        return bool(self._runs)

    def destroy(self) -> None:
        """Close the server."""
        self._server.destroy()

    def _end(self, run: GoalRun, set_state: Callable[[], None], result: Any) -> None:
        set_state()
        if 'no_result' in self._faults:
            return
        late_ms = self._faults.number('late_result')
        self._delays.call_later(late_ms, lambda: run.result.set_result(result))

    async def _on_goal(self, goal: Any) -> GoalResponse:
        if 'slow_accept' in self._faults:
            await self._delays.sleep(self._faults.number('slow_accept'))
        reason = 'a fault is set' if 'refuse' in self._faults else self._rules.refusal(goal)
        if reason:
            self._log.warning(f'goal rejected: {reason}')
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _on_accepted(self, handle: ServerGoalHandle[Any, Any, Any]) -> None:
        run = GoalRun(handle, handle.request)
        self._runs[bytes(handle.goal_id.uuid)] = run
        handle.execute()
        self._rules.begin(run)

    async def _on_cancel(self, handle: ServerGoalHandle[Any, Any, Any]) -> CancelResponse:
        if 'slow_cancel' in self._faults:
            await self._delays.sleep(self._faults.number('slow_cancel'))
        if 'refuse_cancel' in self._faults:
            return CancelResponse.REJECT
        run = self._runs.get(bytes(handle.goal_id.uuid))
        is_deaf = self._ignores_cancels or 'succeed_while_cancelling' in self._faults
        if run is not None and handle.is_active and not (is_deaf or run.is_cancel_wanted):
            run.is_cancel_wanted = True
            self._rules.cancel(run)
        return CancelResponse.ACCEPT

    async def _execute(self, handle: ServerGoalHandle[Any, Any, Any]) -> Any:
        key = bytes(handle.goal_id.uuid)
        try:
            return await self._runs[key].result
        finally:
            del self._runs[key]
