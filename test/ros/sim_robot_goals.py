"""Owns the goals, names and questions that the tests of the simulated robot share."""

from collections.abc import Sequence
from typing import Any

from control_msgs.action import (
    ExecuteMotionPrimitiveSequence,
    FollowJointTrajectory,
    ParallelGripperCommand,
)
from control_msgs.msg import MotionArgument, MotionPrimitive
from geometry_msgs.msg import PoseStamped
from patience import WAIT_S
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from ros_peer import Goal, Listener, RosPeer
from simulation_interfaces.srv import ResetSimulation
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectoryPoint

from awp_ros_bridge.sim_robot.description import ARM_HOME_RAD, ARM_JOINTS

PTP = MotionPrimitive.LINEAR_JOINT
LIN = MotionPrimitive.LINEAR_CARTESIAN
HOME = list(ARM_HOME_RAD)
TRAJECTORY = 'arm_controller/follow_joint_trajectory'
PRIMITIVE = 'motion_primitive_controller/motion_sequence'
GRIPPER = 'gripper_controller/gripper_cmd'


def move(
    kind: int,
    xyz_m: Sequence[float] | None = None,
    *,
    joints_rad: Sequence[float] = (),
    frame: str = 'base',
    quaternion: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
    **arguments: float,
) -> MotionPrimitive:
    """Make one motion primitive."""
    primitive = MotionPrimitive(type=kind, joint_positions=[float(v) for v in joints_rad])
    if xyz_m is not None:
        pose = PoseStamped()
        pose.header.frame_id = frame
        p, q = pose.pose.position, pose.pose.orientation
        p.x, p.y, p.z = (float(v) for v in xyz_m)
        q.x, q.y, q.z, q.w = (float(v) for v in quaternion)
        primitive.poses = [pose]
    primitive.additional_arguments = [
        MotionArgument(name=name, value=float(value)) for name, value in arguments.items()
    ]
    return primitive


def send_moves(peer: RosPeer, *moves: MotionPrimitive) -> Goal:
    """Send a sequence of motion primitives."""
    goal = ExecuteMotionPrimitiveSequence.Goal()
    goal.trajectory.motions = list(moves)
    return peer.send_goal(ExecuteMotionPrimitiveSequence, PRIMITIVE, goal)


def trajectory(
    points: Sequence[tuple[float, Sequence[float]]],
    joints: Sequence[str] = ARM_JOINTS,
    velocities: Sequence[Sequence[float]] | None = None,
) -> FollowJointTrajectory.Goal:
    """Make a trajectory goal of times and positions."""
    goal = FollowJointTrajectory.Goal()
    goal.trajectory.joint_names = list(joints)
    for index, (time_s, positions) in enumerate(points):
        point = JointTrajectoryPoint(positions=[float(v) for v in positions])
        if velocities is not None:
            point.velocities = [float(v) for v in velocities[index]]
        point.time_from_start.sec = int(time_s)
        point.time_from_start.nanosec = round((time_s % 1.0) * 1e9)
        goal.trajectory.points.append(point)
    return goal


def send_trajectory(peer: RosPeer, goal: FollowJointTrajectory.Goal) -> Goal:
    """Send a trajectory goal."""
    return peer.send_goal(FollowJointTrajectory, TRAJECTORY, goal)


def away(joint_1_rad: float) -> list[float]:
    """Give the home configuration with the first joint turned."""
    return [joint_1_rad, *HOME[1:]]


def send_gripper(peer: RosPeer, position_m: float, **fields: list[float]) -> Goal:
    """Send a gripper command."""
    goal = ParallelGripperCommand.Goal()
    goal.command.position = [position_m]
    for name, value in fields.items():
        setattr(goal.command, name, value)
    return peer.send_goal(ParallelGripperCommand, GRIPPER, goal)


def parameter_request(name: str, value: str | float) -> Any:
    """Make the request that sets a parameter."""
    content = ParameterValue()
    if isinstance(value, str):
        content.type, content.string_value = ParameterType.PARAMETER_STRING, value
    else:
        content.type, content.double_value = ParameterType.PARAMETER_DOUBLE, float(value)
    return SetParameters.Request(parameters=[Parameter(name=name, value=content)])


def set_parameter(peer: RosPeer, name: str, value: str | float) -> Any:
    """Set a parameter of the robot and give the answer."""
    request = parameter_request(name, value)
    return peer.call(SetParameters, 'sim_robot/set_parameters', request).results[0]


def set_fault(peer: RosPeer, text: str) -> None:
    """Put faults into the robot; an empty text heals it."""
    answer = set_parameter(peer, 'fault', text)
    assert answer.successful, answer.reason


def reset(peer: RosPeer) -> None:
    """Bring the robot home, healthy, at full speed, with its stops released."""
    set_fault(peer, '')
    set_parameter(peer, 'speed_scaling', 1.0)
    for name in ('e_stop', 'protective_stop'):
        assert peer.call(Trigger, f'sim/clear_{name}').success
    response = peer.call(ResetSimulation, 'sim/reset')
    assert response.result.result == type(response.result).RESULT_OK


def arm_speed_radps(message: Any) -> float:
    """Give the speed of the fastest joint of the arm."""
    return max(abs(v) for v in message.velocity[:6])


def wait_moving(peer: RosPeer, joint_states: Listener, speed_radps: float = 0.1) -> None:
    """Wait until the arm moves at some speed."""
    joint_states.wait_next()
    peer.wait_until(
        lambda: arm_speed_radps(joint_states.newest) > speed_radps, what='the arm moving'
    )


def braked_s(joint_states: Listener) -> float:
    """Give from the first to the last message of what was heard how long the arm moved."""
    moved_s = [
        stamp_s
        for stamp_s, message in zip(joint_states.stamps_s(), joint_states.messages, strict=True)
        if arm_speed_radps(message) > 1e-3
    ]
    return moved_s[-1] - moved_s[0] if moved_s else 0.0


def wait_at_rest(peer: RosPeer, joint_states: Listener, timeout_s: float = WAIT_S) -> float:
    """Wait until the arm rests; return how long it took."""
    joint_states.wait_next()
    return peer.wait_until(
        lambda: arm_speed_radps(joint_states.newest) < 1e-3, timeout_s, 'the arm at rest'
    )
