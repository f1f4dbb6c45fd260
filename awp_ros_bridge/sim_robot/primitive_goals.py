"""Owns how a motion primitive goal is read: what is refused, and what each primitive asks for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
import math
from typing import Any

from control_msgs.msg import MotionPrimitive

from awp_ros_bridge.kinematics import Chain, ChainError, Pose
from awp_ros_bridge.sim_robot.planner import MoveLimits

PTP = int(MotionPrimitive.LINEAR_JOINT)
LIN = int(MotionPrimitive.LINEAR_CARTESIAN)
ARGUMENTS = ('velocity', 'acceleration', 'move_time', 'tip_velocity')
_MAX_PRIMITIVES = 100


@dataclass(frozen=True, slots=True)
class Move:
    """
    One primitive.

    :ivar kind: PTP or LIN
    :ivar joints_rad: target configuration, empty where a pose is the target
    :ivar pose: target pose in ``frame``, None where a configuration is the target
    :ivar arguments: the additional arguments that were given
    """

    kind: int
    joints_rad: tuple[float, ...]
    pose: Pose | None
    frame: str
    arguments: dict[str, float]


@dataclass(frozen=True, slots=True)
class SpeedSettings:
    """
    How fast moves are where a goal does not say, and how fast they may be at all.

    :ivar default_tip_speed_mps: where no argument is given
    :ivar max_tip_speed_mps: whatever the arguments say
    :ivar tip_acceleration_mps2: where no argument is given
    """

    default_tip_speed_mps: float
    max_tip_speed_mps: float
    tip_acceleration_mps2: float


def sequence_refusal(motions: Sequence[Any], chain: Chain) -> str:
    """Say why a sequence is rejected, empty where it is not."""
    if not motions:
        return 'no motion primitives'
    if len(motions) > _MAX_PRIMITIVES:
        return f'{len(motions)} motion primitives, the limit is {_MAX_PRIMITIVES}'
    for index, motion in enumerate(motions):
        reason = (
            _kind_refusal(motion, chain.dof)
            or _numbers_refusal(motion)
            or _frame_refusal(motion, chain)
        )
        if reason:
            return f'primitive {index}: {reason}'
    return ''


def read_move(motion: Any, base_frame: str) -> Move:
    """Read a primitive that was not refused; a target of the other form than usual is accepted."""
    joints = tuple(float(v) for v in motion.joint_positions)
    pose = frame = None
    if motion.poses:
        stamped = motion.poses[0]
        p, q = stamped.pose.position, stamped.pose.orientation
        pose = Pose((p.x, p.y, p.z), (q.x, q.y, q.z, q.w))
        frame = stamped.header.frame_id
    if joints and pose is not None:  # each kind prefers its usual form
        joints, pose = (joints, None) if motion.type == PTP else ((), pose)
    arguments = {a.name: float(a.value) for a in motion.additional_arguments}
    return Move(int(motion.type), joints, pose, frame or base_frame, arguments)


def limits_of(
    move: Move,
    speeds: SpeedSettings,
    max_velocity_radps: tuple[float, ...],
    max_acceleration_radps2: tuple[float, ...],
) -> MoveLimits:
    """
    Decide how fast a move is to be.

    ``velocity`` and ``acceleration`` count metres for LIN and radians of the joint that moves
    farthest for PTP; ``tip_velocity`` limits the tip's linear speed for both; ``move_time`` above
    zero stands in for all three. The robot's own limits hold in any case.
    """
    limits = MoveLimits(
        max_velocity_radps=max_velocity_radps,
        max_acceleration_radps2=max_acceleration_radps2,
        max_tip_speed_mps=speeds.max_tip_speed_mps,
        max_tip_acceleration_mps2=speeds.tip_acceleration_mps2,
    )
    given = move.arguments
    if given.get('move_time', 0.0) > 0.0:
        return replace(
            limits, move_time_s=given['move_time'], max_tip_acceleration_mps2=math.inf
        )
    tip = given.get('tip_velocity', math.inf)
    if move.kind == LIN:
        tip = min(tip, given.get('velocity', math.inf))
        limits = replace(
            limits,
            max_tip_acceleration_mps2=given.get('acceleration', speeds.tip_acceleration_mps2),
        )
    elif 'velocity' in given:
        limits = replace(limits, leading_velocity_radps=given['velocity'])
    if move.kind == PTP and 'acceleration' in given:
        accel = given['acceleration']
        capped = tuple(min(accel, a) for a in max_acceleration_radps2)
        limits = replace(limits, max_acceleration_radps2=capped)
    if not {'velocity', 'tip_velocity'} & given.keys():
        tip = speeds.default_tip_speed_mps
    return replace(limits, max_tip_speed_mps=min(tip, speeds.max_tip_speed_mps))


def _kind_refusal(motion: Any, dof: int) -> str:
    if motion.type not in (PTP, LIN):
        return f'motion type {motion.type} is not supported; LINEAR_JOINT and LINEAR_CARTESIAN are'
    joints, poses = len(motion.joint_positions), len(motion.poses)
    if not joints and not poses:
        return 'neither joint_positions nor a pose is given'
    if joints not in (0, dof):
        return f'{joints} joint_positions for {dof} joints'
    if poses > 1:
        return f'{poses} poses, this motion type takes one'
    return ''


def _numbers_refusal(motion: Any) -> str:
    numbers = [*motion.joint_positions, motion.blend_radius]
    for stamped in motion.poses:
        p, q = stamped.pose.position, stamped.pose.orientation
        numbers += [p.x, p.y, p.z, q.x, q.y, q.z, q.w]
        if not math.hypot(q.x, q.y, q.z, q.w) > 1e-6:
            return 'the orientation is a quaternion of length zero'
    if not all(map(math.isfinite, numbers)):
        return 'numbers are not all finite'
    if motion.blend_radius < 0.0:
        return f'blend_radius is {motion.blend_radius}; it may be 0 or more'
    for argument in motion.additional_arguments:
        reason = _argument_refusal(argument.name, argument.value)
        if reason:
            return reason
    return ''


def _argument_refusal(name: str, value: float) -> str:
    if name not in ARGUMENTS:
        return f'unknown argument {name!r}; there are {", ".join(ARGUMENTS)}'
    is_good = 0.0 <= value < math.inf if name == 'move_time' else 0.0 < value < math.inf
    return '' if is_good else f'argument {name} is {value}'


def _frame_refusal(motion: Any, chain: Chain) -> str:
    for stamped in motion.poses:
        try:
            chain.frame_index(stamped.header.frame_id or chain.base_frame)
        except ChainError as error:
            return str(error)
    return ''
