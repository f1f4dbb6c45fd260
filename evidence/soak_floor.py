"""
Owns the floor of the soak: goals without a bridge, on a server that never has many.

What the floor changes in the course of a run is the machine, not the bridge nor a growing server.
It speaks to the services of the server directly and hears its status unread, as the bridge does.
"""

from __future__ import annotations

import sys
import time
from typing import Any
import uuid

from action_msgs.msg import GoalStatusArray
from control_msgs.action import FollowJointTrajectory
import rclpy
from rclpy.node import Node
from rclpy.qos import qos_profile_action_status_default
from rclpy.signals import SignalHandlerOptions
from trajectory_msgs.msg import JointTrajectoryPoint
from unique_identifier_msgs.msg import UUID

from bench.ros import make_executor
from bench.worker import serve
from evidence.soak_robot import FLOOR, JOINTS

_WAIT_S = 10.0
_TYPE: Any = FollowJointTrajectory.Impl


class Floor:
    """A plain client of the floor's server."""

    def __init__(self) -> None:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        node = Node('soak_floor')
        self._executor = make_executor(node)
        self._send = node.create_client(_TYPE.SendGoalService, f'{FLOOR}/_action/send_goal')
        self._result = node.create_client(_TYPE.GetResultService, f'{FLOOR}/_action/get_result')
        node.create_subscription(
            GoalStatusArray,
            f'{FLOOR}/_action/status',
            lambda data: None,
            qos_profile_action_status_default,
            raw=True,
        )
        self._goal = FollowJointTrajectory.Goal()
        self._goal.trajectory.joint_names = JOINTS
        self._goal.trajectory.points = [JointTrajectoryPoint(positions=[0.0] * len(JOINTS))]

    def goals(self, count: int) -> list[float]:
        """Send goals that succeed at once, one after the other; ms from request to result."""
        for client in (self._send, self._result):
            if not client.wait_for_service(_WAIT_S):
                raise TimeoutError(f'no floor server within {_WAIT_S:g} s')
        took = []
        for _ in range(count):
            goal_id = UUID(uuid=list(uuid.uuid4().bytes))
            began_s = time.monotonic()
            request = _TYPE.SendGoalService.Request(goal_id=goal_id, goal=self._goal)
            assert self._done(self._send.call_async(request)).accepted
            self._done(self._result.call_async(_TYPE.GetResultService.Request(goal_id=goal_id)))
            took.append((time.monotonic() - began_s) * 1e3)
        return took

    def _done(self, future: Any) -> Any:
        self._executor.spin_until_future_complete(future, _WAIT_S)
        if not future.done():
            raise TimeoutError(f'no answer of the floor server within {_WAIT_S:g} s')
        return future.result()


def main() -> None:
    """Run until the pipe of the commands closes."""
    sys.setswitchinterval(0.0002)
    serve({'goals': Floor().goals})


if __name__ == '__main__':
    main()
