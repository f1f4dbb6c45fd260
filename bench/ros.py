"""Owns what both ROS helpers share: names, joint states and goals of the bench, the executor."""

from __future__ import annotations

import struct
from typing import Any

from control_msgs.action import FollowJointTrajectory
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

ACTION = FollowJointTrajectory
STATE = JointState

#: The topic and the action server that the bridge uses, and a second pair that it does not hear.
TOPICS = {'robot': 'joint_states', 'floor': 'floor/joint_states'}
SERVERS = {
    'robot': 'arm/follow_joint_trajectory',
    'floor': 'floor/follow_joint_trajectory',
}

#: As ros2_control's broadcaster offers them; the depth is the one that the bridge reads with.
STATE_QOS = QoSProfile(depth=50)

JOINTS = [f'joint_{number}' for number in range(1, 8)]

#: A goal tells its number by the position of the first joint.
NUMBER_RAD = 1e-6

#: Progress of a goal that is to give feedback, in ms per message.
FEEDBACK_TOTAL_MS = 1000

_LAST_ROW = struct.Struct('<7d')


def read_efforts(raw: bytes) -> tuple[float, ...]:
    """Return the efforts of a serialised joint state: the last doubles of the message."""
    return _LAST_ROW.unpack_from(raw, len(raw) - _LAST_ROW.size)


def make_goal(number: int, feedback: bool) -> Any:
    """Return the goal that the bridge makes of the agent's params; see bench/agent.py."""
    point = JointTrajectoryPoint()
    point.positions = [number * NUMBER_RAD] + [0.0] * (len(JOINTS) - 1)
    if feedback:
        point.time_from_start.sec, point.time_from_start.nanosec = FEEDBACK_TOTAL_MS // 1000, 0
    goal = ACTION.Goal()
    goal.trajectory.joint_names = JOINTS
    goal.trajectory.points = [point]
    return goal


def goal_number(goal: Any) -> int:
    """Return the number of a goal."""
    return int(goal.trajectory.points[0].positions[0] / NUMBER_RAD + 0.5)


def make_executor(node: Node) -> Any:
    """Return the executor with the lowest cost that this rclpy has."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        from rclpy.executors import SingleThreadedExecutor

        executor: Any = SingleThreadedExecutor()
    else:
        executor = EventsExecutor()
    executor.add_node(node)
    return executor


def spin_for(executor: Any, seconds: float) -> None:
    """Spin for so long; an unbounded spin of the events executor handles nothing."""
    executor.spin_until_future_complete(Future(), seconds)
