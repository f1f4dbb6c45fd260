"""
Owns which trajectories are accepted and how far the joints may stray from one.

The rules are those of ros2_control's joint_trajectory_controller with its default settings, so
that what works here works there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
import math
import sys
from typing import Any

from awp_ros_bridge.kinematics import Waypoint

_ZERO_SPEED_RADPS = float.fromhex('0x1p-23')  # single precision, as the controller has it
_ERASED = -1.0


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far one joint may stray; zero or less means it is not checked."""

    position_rad: float
    velocity_radps: float = 0.0

    def text_if_violated(self, position_error: float, velocity_error: float) -> str:
        """Say what is violated and by how much, empty where nothing is."""
        if self.position_rad > 0.0 and not abs(position_error) <= self.position_rad:
            return f'position error {position_error:.4f} rad, tolerance {self.position_rad:.4f}'
        if self.velocity_radps > 0.0 and not abs(velocity_error) <= self.velocity_radps:
            allowed = self.velocity_radps
            return f'velocity error {velocity_error:.4f} rad/s, tolerance {allowed:.4f}'
        return ''


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Tolerances per joint, on the way and at the goal, and the time to settle."""

    path: tuple[Tolerance, ...]
    goal: tuple[Tolerance, ...]
    goal_time_s: float


def trajectory_refusal(trajectory: Any, joints: Sequence[str], now_s: float) -> str:
    """
    Say why a trajectory is rejected.

    :param trajectory: trajectory_msgs/JointTrajectory
    :param now_s: the ROS clock
    :return: empty where it is accepted
    """
    names = list(trajectory.joint_names)
    if sorted(names) != sorted(joints):
        return f'joints {names} do not match the joints of the controller, {list(joints)}'
    points = trajectory.points
    if not points:
        return 'the trajectory has no points'
    last = points[-1]
    for name, velocity in zip(names, last.velocities, strict=False):
        if abs(velocity) > _ZERO_SPEED_RADPS:
            return f'velocity of the last point of {name} is {velocity}, not zero'
    start_s = seconds(trajectory.header.stamp)
    if start_s != 0.0 and start_s + seconds(last.time_from_start) < now_s:
        return f'the trajectory ended {now_s - start_s - seconds(last.time_from_start):.3f} s ago'
    previous_s = -1.0
    for index, point in enumerate(points):
        time_s = seconds(point.time_from_start)
        if index > 0 and not time_s > previous_s:
            return f'point {index}: time {time_s} s does not follow {previous_s} s'
        previous_s = time_s
        reason = _point_refusal(point, len(names))
        if reason:
            return f'point {index}: {reason}'
    return ''


def tolerance_fault(goal: Any, joints: Sequence[str]) -> str:
    """Say what is wrong with the tolerances of a FollowJointTrajectory goal, empty if nothing."""
    for tolerance in (*goal.path_tolerance, *goal.goal_tolerance):
        if tolerance.name not in joints:
            return f'tolerance for unknown joint {tolerance.name!r}'
        for value in (tolerance.position, tolerance.velocity, tolerance.acceleration):
            if not (value >= 0.0 or value == _ERASED):
                return f'tolerance of {tolerance.name} is {value}; it may be -1, 0 or more'
    return ''


def merge_tolerances(defaults: Tolerances, goal: Any, joints: Sequence[str]) -> Tolerances:
    """Lay the tolerances of a goal over the controller's own."""
    goal_time_s = seconds(goal.goal_time_tolerance)
    if goal_time_s == 0.0:
        goal_time_s = defaults.goal_time_s
    elif goal_time_s < 0.0:
        goal_time_s = sys.float_info.max
    return Tolerances(
        path=_laid_over(defaults.path, goal.path_tolerance, joints),
        goal=_laid_over(defaults.goal, goal.goal_tolerance, joints),
        goal_time_s=goal_time_s,
    )


def waypoints_of(trajectory: Any, joints: Sequence[str]) -> list[Waypoint]:
    """Read an accepted trajectory, its joints put into the given order."""
    order = [list(trajectory.joint_names).index(name) for name in joints]

    def row(values: Sequence[float]) -> tuple[float, ...] | None:
        return tuple(float(values[i]) for i in order) if len(values) else None

    waypoints = []
    for point in trajectory.points:
        positions = row(point.positions) or ()
        time_s = seconds(point.time_from_start)
        velocities, accelerations = row(point.velocities), row(point.accelerations)
        waypoints.append(Waypoint(time_s, positions, velocities, accelerations))
    return waypoints


def seconds(time: Any) -> float:
    """Read a builtin_interfaces Time or Duration."""
    return float(time.sec) + float(time.nanosec) * 1e-9


def _point_refusal(point: Any, count: int) -> str:
    if len(point.positions) != count:
        return f'{len(point.positions)} positions for {count} joints'
    for kind in ('velocities', 'accelerations'):
        size = len(getattr(point, kind))
        if size not in (0, count):
            return f'{size} {kind} for {count} joints'
    if len(point.effort):
        return 'effort is not supported by a controller that commands positions'
    for kind in ('positions', 'velocities', 'accelerations'):
        if not all(math.isfinite(v) for v in getattr(point, kind)):
            return f'{kind} are not all finite'
    return ''


def _laid_over(
    defaults: tuple[Tolerance, ...], given: Sequence[Any], joints: Sequence[str]
) -> tuple[Tolerance, ...]:
    by_name = {t.name: t for t in given}
    merged = []
    for name, default in zip(joints, defaults, strict=True):
        wanted = by_name.get(name)
        if wanted is None:
            merged.append(default)
            continue
        position = wanted.position if wanted.position != 0.0 else default.position_rad
        velocity = wanted.velocity if wanted.velocity != 0.0 else default.velocity_radps
        merged.append(Tolerance(position, velocity))
    return tuple(merged)
