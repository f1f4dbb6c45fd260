"""Owns the floor of the reaction: a plain node that turns a message into one cancel request."""

from __future__ import annotations

import sys
import threading
from typing import Any

from action_msgs.srv import CancelGoal
from control_msgs.action import FollowJointTrajectory
import rclpy
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Bool

from awp_ros_bridge.sim_robot.stops import LATCHED
from bench.worker import serve
from evidence.hardware import TOPICS
from evidence.robot import FLOOR

_WAIT_S = 10.0


class Floor:
    """A goal on the floor's server, and the cancel that follows the floor's topic."""

    def __init__(self) -> None:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        node = Node('evidence_floor')
        self._goals: Any = ActionClient(node, FollowJointTrajectory, FLOOR)
        self._cancels = node.create_client(CancelGoal, f'{FLOOR}/_action/cancel_goal')
        node.create_subscription(Bool, TOPICS['floor'], self._on_message, LATCHED)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(node)
        self._held: Any = None
        self._taken = threading.Event()
        threading.Thread(target=self._spin, daemon=True).start()

    def hold(self) -> bool:
        """Have a goal accepted, to be cancelled by the next message that forbids motion."""
        ready = self._goals.wait_for_server(_WAIT_S) and self._cancels.wait_for_service(_WAIT_S)
        if not ready:
            raise TimeoutError(f'no floor server within {_WAIT_S:g} s')
        self._taken.clear()
        self._executor.create_task(self._send)
        if not self._taken.wait(_WAIT_S):
            raise TimeoutError(f'the floor goal was not answered within {_WAIT_S:g} s')
        return True

    def _send(self) -> None:
        answer = self._goals.send_goal_async(FollowJointTrajectory.Goal())
        answer.add_done_callback(self._on_answer)

    def _on_answer(self, future: Any) -> None:
        self._held = future.result()
        self._held.get_result_async()
        self._taken.set()

    def _on_message(self, message: Bool) -> None:
        if message.data and self._held is not None:
            request = CancelGoal.Request()
            request.goal_info.goal_id = self._held.goal_id
            self._held = None
            self._cancels.call_async(request)

    def _spin(self) -> None:
        while True:
            self._executor.spin_once(timeout_sec=1.0)


def main() -> None:
    """Run until the pipe of the commands closes."""
    sys.setswitchinterval(0.0002)
    serve({'hold': Floor().hold})


if __name__ == '__main__':
    main()
