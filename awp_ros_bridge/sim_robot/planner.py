"""
Owns the two motion primitives: a joint-space move (PTP) and a straight line of the tip (LIN).

Both give a trajectory from rest to rest with a trapezoidal speed profile that keeps to the joints'
limits and to a limit on the linear speed of the tip.
"""

from collections.abc import Sequence
from dataclasses import dataclass
import math

import numpy as np
import pinocchio as pin

from awp_ros_bridge.kinematics import (
    Chain,
    Pose,
    sample_tip_line,
    smallest_singular_value,
    solve_inverse,
    Trajectory,
    Waypoint,
)
from awp_ros_bridge.kinematics.chain import Matrix, placement_of, pose_of, Vector

MIN_SINGULAR_VALUE = 0.05
_LINE_STEP_M = 0.02
_LINE_STEP_RAD = 0.1
_MAX_JOINT_JUMP_RAD = 0.3
_GRID_S = 0.02
_MAX_GRID = 500
# What a plan uses of the joints' acceleration; the rest is for the drives to correct with.
_ACCELERATION_SHARE = 0.6


class PlanError(ValueError):
    """A move that this arm cannot make, with the reason."""


@dataclass(frozen=True, slots=True)
class MoveLimits:
    """
    How fast a move may be.

    :ivar max_velocity_radps: per joint
    :ivar max_acceleration_radps2: per joint
    :ivar max_tip_speed_mps: linear speed of the tip
    :ivar max_tip_acceleration_mps2: along the path of the tip
    :ivar leading_velocity_radps: of the joint that moves farthest, None for no further limit
    :ivar move_time_s: how long the move is to take; longer where the limits need it
    """

    max_velocity_radps: tuple[float, ...]
    max_acceleration_radps2: tuple[float, ...]
    max_tip_speed_mps: float
    max_tip_acceleration_mps2: float
    leading_velocity_radps: float | None = None
    move_time_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Path:
    """A path over s from 0 to 1: configurations, their derivatives by s, and the tip's speed."""

    s: Vector
    q_rad: Matrix
    dq_ds: Matrix
    tip_m_per_s: float

    def at(self, s: float) -> tuple[Vector, Vector]:
        """Interpolate position and derivative (cubic between the samples)."""
        k = min(int(np.searchsorted(self.s, s, side='right')), len(self.s) - 1)
        h = self.s[k] - self.s[k - 1]
        t = s - self.s[k - 1]
        pa, pb, va, vb = self.q_rad[k - 1], self.q_rad[k], self.dq_ds[k - 1], self.dq_ds[k]
        c2 = (3.0 * (pb - pa) / h - 2.0 * va - vb) / h
        c3 = (2.0 * (pa - pb) / h + va + vb) / (h * h)
        return pa + t * (va + t * (c2 + t * c3)), va + t * (2.0 * c2 + 3.0 * t * c3)


def plan_ptp(
    chain: Chain, start_rad: Sequence[float], end_rad: Sequence[float], limits: MoveLimits
) -> Trajectory:
    """
    Plan a straight line in joint space.

    :raises PlanError: the end is outside the joint limits
    """
    violations = chain.limit_violations(end_rad)
    if violations:
        raise PlanError(violations)
    start = np.asarray(start_rad, dtype=np.float64)
    change = np.asarray(end_rad, dtype=np.float64) - start
    if float(np.max(np.abs(change))) < 1e-9:
        return Trajectory([Waypoint(0.0, tuple(start_rad))])
    tip = sample_tip_line(chain, start_rad, end_rad, max_step_rad=0.04)
    path = _Path(
        s=np.array([0.0, 1.0]),
        q_rad=np.array([start, start + change]),
        dq_ds=np.array([change, change]),
        tip_m_per_s=tip.max_speed_mps,
    )
    return _time(path, limits)


def plan_lin(
    chain: Chain, start_rad: Sequence[float], target: Pose, limits: MoveLimits
) -> Trajectory:
    """
    Plan a straight line of the tip, its orientation turning evenly on the way.

    :raises PlanError: a point of the line is out of reach or passes a singularity
    """
    start = chain.tip_placement(start_rad)
    end = placement_of(target)
    shift = np.array(end.translation - start.translation)
    turn = np.array(pin.log3(start.rotation.T @ end.rotation))
    length, angle = float(np.linalg.norm(shift)), float(np.linalg.norm(turn))
    if length < 1e-7 and angle < 1e-7:
        return Trajectory([Waypoint(0.0, tuple(start_rad))])
    count = max(2, math.ceil(length / _LINE_STEP_M), math.ceil(angle / _LINE_STEP_RAD))
    twist = np.concatenate((shift, start.rotation @ turn))
    s = np.linspace(0.0, 1.0, count + 1)
    q = np.empty((count + 1, chain.dof))
    dq = np.empty_like(q)
    q[0] = start_rad
    for k, share in enumerate(s):
        if k:
            rotation = start.rotation @ pin.exp3(share * turn)
            step = pin.SE3(rotation, start.translation + share * shift)
            # The derivative foretells the next point, so that the search needs a step or two.
            q[k] = _next_on_line(chain, pose_of(step), q[k - 1], dq[k - 1] * (s[1] - s[0]), share)
        dq[k] = np.linalg.lstsq(chain.tip_jacobian(q[k]), twist, rcond=None)[0]
    return _time(_Path(s, q, dq, length), limits)


def solve_pose(chain: Chain, target: Pose, seed_rad: Sequence[float]) -> tuple[float, ...]:
    """
    Find a configuration for a pose in the base frame.

    :raises PlanError: there is none
    """
    result = solve_inverse(chain, target, seed_rad)
    if result.q_rad is None:
        raise PlanError(result.reason)
    return tuple(float(v) for v in result.q_rad)


def _next_on_line(
    chain: Chain, pose: Pose, before: Vector, foretold: Vector, share: float
) -> Vector:
    result = solve_inverse(chain, pose, before + foretold, extra_seeds=0, max_iterations=20)
    if result.q_rad is None:
        raise PlanError(f'{share:.0%} along the line: {result.reason}')
    if float(np.max(np.abs(result.q_rad - before))) > _MAX_JOINT_JUMP_RAD:
        raise PlanError(f'{share:.0%} along the line: the joints would have to jump')
    if smallest_singular_value(chain, result.q_rad) < MIN_SINGULAR_VALUE:
        raise PlanError(f'{share:.0%} along the line: the arm is close to a singularity')
    return result.q_rad


def _time(path: _Path, limits: MoveLimits) -> Trajectory:
    """Lay a trapezoidal profile over a path."""
    speed, ramp = _bounds(path, limits)
    speed = min(speed, math.sqrt(ramp))
    shortest_s = 1.0 / speed + speed / ramp
    if limits.move_time_s is not None and limits.move_time_s > shortest_s:
        total = limits.move_time_s
        speed = (total - math.sqrt(total * total - 4.0 / ramp)) * ramp / 2.0
    ramp_s = speed / ramp
    total_s = 1.0 / speed + ramp_s
    grid = max(2, min(_MAX_GRID, math.ceil(total_s / _GRID_S)))
    times = np.union1d(np.linspace(0.0, total_s, grid + 1), [ramp_s, total_s - ramp_s])
    times = times[np.append(True, np.diff(times) > 1e-6)]
    waypoints = []
    for time_s in (float(t) for t in times):
        s, s_dot = _profile(time_s, total_s, ramp_s, speed, ramp)
        q, dq_ds = path.at(s)
        row = tuple(float(v) for v in q)
        waypoints.append(Waypoint(time_s, row, tuple(float(v) * s_dot for v in dq_ds)))
    return Trajectory(waypoints)


def _bounds(path: _Path, limits: MoveLimits) -> tuple[float, float]:
    """Find the highest speed and acceleration of s that every limit allows."""
    steepest = np.maximum(np.max(np.abs(path.dq_ds), axis=0), 1e-12)
    speed = float(np.min(np.array(limits.max_velocity_radps) / steepest))
    ramp = float(np.min(np.array(limits.max_acceleration_radps2) / steepest)) * _ACCELERATION_SHARE
    if path.tip_m_per_s > 1e-9:
        # A move to a time keeps the hard limits only.
        speed = min(speed, limits.max_tip_speed_mps / path.tip_m_per_s)
        ramp = min(ramp, limits.max_tip_acceleration_mps2 / path.tip_m_per_s)
    if limits.leading_velocity_radps is not None:
        speed = min(speed, limits.leading_velocity_radps / float(np.max(steepest)))
    return speed, ramp


def _profile(
    t: float, total_s: float, ramp_s: float, speed: float, ramp: float
) -> tuple[float, float]:
    """Give s and its speed at a time."""
    if t >= total_s:
        return 1.0, 0.0
    if t < ramp_s:
        return 0.5 * ramp * t * t, ramp * t
    if t > total_s - ramp_s:
        left = total_s - t
        return 1.0 - 0.5 * ramp * left * left, ramp * left
    return 0.5 * ramp * ramp_s * ramp_s + speed * (t - ramp_s), speed
