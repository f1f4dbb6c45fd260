"""
Owns the robot of the soak: an action server that does what the goal's first position says.

Zero ends at once, above zero runs until it is cancelled, below zero is refused.
"""

from __future__ import annotations

from array import array
import sys
import threading
import time
from typing import Any

from control_msgs.action import FollowJointTrajectory
import rclpy
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from bench.ros import make_executor
from bench.worker import serve

JOINTS = ['joint_1', 'joint_2']
ARM, FLOOR = 'arm/follow_joint_trajectory', 'floor/follow_joint_trajectory'
STATES_HZ = 200.0
SAFETY_EVERY = 20


class SoakRobot:
    """The two servers and the topics."""

    def __init__(self, retain_s: float) -> None:
        """
        Open everything and begin.

        :param retain_s: how long results are kept after a goal's end.
        """
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        node = Node('soak_robot')
        callbacks: dict[str, Any] = {
            'execute_callback': self._execute,
            'goal_callback': self._on_goal,
            'cancel_callback': self._on_cancel,
            'result_timeout': retain_s,
        }
        self._servers: list[Any] = [
            ActionServer(node, FollowJointTrajectory, name, **callbacks) for name in (ARM, FLOOR)
        ]
        self._states = node.create_publisher(JointState, 'joint_states', 10)
        self._e_stop = node.create_publisher(Bool, 'safety/e_stop', 10)
        self._executor = make_executor(node)
        self._waiting: dict[bytes, Future[None]] = {}
        for work in (self._spin, self._publish):
            threading.Thread(target=work, daemon=True).start()

    def started(self) -> bool:
        """Tell that it runs."""
        return True

    def _on_goal(self, goal: Any) -> GoalResponse:
        is_wanted = goal.trajectory.points[0].positions[0] >= 0.0
        return GoalResponse.ACCEPT if is_wanted else GoalResponse.REJECT

    def _on_cancel(self, handle: Any) -> CancelResponse:
        done = self._waiting.pop(bytes(handle.goal_id.uuid), None)
        if done is not None:
            self._executor.create_task(done.set_result, None)  # after the answer to this
        return CancelResponse.ACCEPT

    async def _execute(self, handle: Any) -> Any:
        if handle.request.trajectory.points[0].positions[0] > 0.0:
            done = self._waiting[bytes(handle.goal_id.uuid)] = Future()
            await done
            handle.canceled()
        else:
            handle.succeed()
        return FollowJointTrajectory.Result()

    def _spin(self) -> None:
        while True:
            self._executor.spin_once(timeout_sec=1.0)

    def _publish(self) -> None:
        zeros = array('d', [0.0] * len(JOINTS))
        message = JointState(name=JOINTS, position=zeros, velocity=zeros)
        number = 0
        while True:
            stamp = message.header.stamp
            stamp.sec, stamp.nanosec = divmod(time.time_ns(), 1_000_000_000)
            self._states.publish(message)
            if number % SAFETY_EVERY == 0:
                self._e_stop.publish(Bool(data=False))
            number += 1
            time.sleep(1.0 / STATES_HZ)


def main() -> None:
    """Run until the pipe of the commands closes; the argument is how long results are kept."""
    sys.setswitchinterval(0.0002)
    robot = SoakRobot(float(sys.argv[1]))
    serve({'started': robot.started})


if __name__ == '__main__':
    main()
