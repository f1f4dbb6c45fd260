"""
Owns the robot of the soak: an action server that does what the goal's first position says.

Zero ends at once, above zero runs until it is cancelled, below zero is refused. The second
position numbers the goals that end at once: when each came and ended is noted.
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
NUMBER_RAD = 1e-6  # the second position of goal 1
FLOOR_RETAIN_S = 1.0  # a server without a history: it does not grow slower
STATES_HZ = 200.0
SAFETY_EVERY = 20


class RetainingServer(ActionServer):  # type: ignore[type-arg]
    """
    A server that retains results without growing slower, as those in C++.

    rclpy's walks over the futures of all results that it ever retained whenever a request comes,
    so that not the length of the list that all clients are told would be measured, but this.
    """

    def add_future(self, future: Any) -> None:
        """Keep no list; a future without an executor calls back at once, on the same thread."""

    def remove_future(self, future: Any) -> None:
        """Keep no list."""


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
        }
        self._servers: list[Any] = [
            RetainingServer(node, FollowJointTrajectory, name, result_timeout=kept_s, **callbacks)
            for name, kept_s in ((ARM, retain_s), (FLOOR, FLOOR_RETAIN_S))
        ]
        self._came_ns: dict[int, int] = {}
        self._spans: list[tuple[int, int, int]] = []
        self._states = node.create_publisher(JointState, 'joint_states', 10)
        self._e_stop = node.create_publisher(Bool, 'safety/e_stop', 10)
        self._executor = make_executor(node)
        self._waiting: dict[bytes, Future[None]] = {}
        for work in (self._spin, self._publish):
            threading.Thread(target=work, daemon=True).start()

    def spans(self) -> list[tuple[int, int, int]]:
        """Return number, begin and end (steady ns) of the goals that ended since last asked."""
        spans, self._spans = self._spans, []
        return spans

    def _on_goal(self, goal: Any) -> GoalResponse:
        self._came_ns[_number(goal)] = time.monotonic_ns()
        is_wanted = goal.trajectory.points[0].positions[0] >= 0.0
        return GoalResponse.ACCEPT if is_wanted else GoalResponse.REJECT

    def _on_cancel(self, handle: Any) -> CancelResponse:
        done = self._waiting.pop(bytes(handle.goal_id.uuid), None)
        if done is not None:
            self._executor.create_task(done.set_result, None)  # after the answer to this
        return CancelResponse.ACCEPT

    async def _execute(self, handle: Any) -> Any:
        number = _number(handle.request)
        if handle.request.trajectory.points[0].positions[0] > 0.0:
            done = self._waiting[bytes(handle.goal_id.uuid)] = Future()
            await done
            handle.canceled()
        else:
            handle.succeed()
        came_ns = self._came_ns.pop(number, 0)
        if number:
            self._spans.append((number, came_ns, time.monotonic_ns()))
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


def _number(goal: Any) -> int:
    return round(float(goal.trajectory.points[0].positions[1]) / NUMBER_RAD)


def main() -> None:
    """Run until the pipe of the commands closes; the argument is how long results are kept."""
    sys.setswitchinterval(0.0002)
    robot = SoakRobot(float(sys.argv[1]))
    serve({'spans': robot.spans})


if __name__ == '__main__':
    main()
