"""Owns the path of the tip along a joint-space motion: where it goes and how fast it gets."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
import math

import numpy as np

from awp_ros_bridge.kinematics.chain import Chain, Matrix, Vector
from awp_ros_bridge.kinematics.trajectory import (
    interpolate,
    joint_line,
    Trajectory,
    TrajectoryError,
    Waypoint,
)

_MIN_SAMPLES_PER_SEGMENT = 4


@dataclass(frozen=True, slots=True)
class TipPath:
    """
    Samples of the tip along a motion, in the chain's base frame.

    :ivar times_s: shape (samples,)
    :ivar positions_m: shape (samples, 3)
    :ivar speeds_mps: shape (samples,), linear speed of the tip
    """

    times_s: Vector
    positions_m: Matrix
    speeds_mps: Vector

    @property
    def max_speed_mps(self) -> float:
        """Give the highest speed of all samples."""
        return float(np.max(self.speeds_mps))

    @property
    def length_m(self) -> float:
        """Measure the length of the path through the samples."""
        return float(np.linalg.norm(np.diff(self.positions_m, axis=0), axis=1).sum())

    def outside(self, low_m: Sequence[float], high_m: Sequence[float]) -> int | None:
        """Find the first sample that is not inside an axis-aligned box, None where all are."""
        inside = np.all(
            (self.positions_m >= np.asarray(low_m)) & (self.positions_m <= np.asarray(high_m)),
            axis=1,
        )
        return None if bool(inside.all()) else int(np.argmin(inside))


def sample_tip_path(
    chain: Chain,
    trajectory: Trajectory,
    *,
    max_step_rad: float = 0.02,
    max_step_s: float = 0.1,
    max_samples: int = 20_000,
) -> TipPath:
    """
    Sample a trajectory through forward kinematics at a bounded step.

    Speeds are exact at the samples, on both sides of every waypoint; between two samples no joint
    moves more than the step, so what is missed shrinks with its square.

    :param max_step_rad: the largest joint motion between two samples (metres for prismatic joints)
    :param max_step_s: the longest time between two samples
    :param max_samples: the most work that one question may cause
    :raises TrajectoryError: more samples would be needed
    """
    plan = _plan(trajectory, max_step_rad, max_step_s)
    total = sum(count + 1 for _, _, count in plan)
    if total > max_samples:
        raise TrajectoryError(
            f'{total} samples are needed to check this trajectory, the limit is {max_samples}; '
            f'send a shorter one'
        )
    times = np.empty(total)
    positions = np.empty((total, 3))
    speeds = np.empty(total)
    row = 0
    for a, b, count in plan:
        for time_s in np.linspace(a.time_s, b.time_s, count + 1):
            state = interpolate(a, b, float(time_s))
            times[row] = time_s
            positions[row] = chain.tip_position(state.positions_rad)
            speeds[row] = chain.tip_speed_mps(state.positions_rad, state.velocities_radps)
            row += 1
    return TipPath(times, positions, speeds)


def sample_tip_line(
    chain: Chain,
    start_rad: Sequence[float] | Vector,
    end_rad: Sequence[float] | Vector,
    *,
    duration_s: float = 1.0,
    max_step_rad: float = 0.02,
) -> TipPath:
    """
    Sample the tip along a straight joint-space move at constant joint speed.

    For a move with ramps, multiply the speeds by the ratio of its peak joint speed to the constant
    one.
    """
    line = joint_line(start_rad, end_rad, max_step_rad)
    times = np.linspace(0.0, duration_s, len(line))
    speed = (line[-1] - line[0]) / duration_s
    positions = np.array([chain.tip_position(q) for q in line])
    speeds = np.array([chain.tip_speed_mps(q, speed) for q in line])
    return TipPath(times, positions, speeds)


def _plan(
    trajectory: Trajectory, max_step_rad: float, max_step_s: float
) -> list[tuple[Waypoint, Waypoint, int]]:
    """Decide how many steps each segment needs."""
    points = trajectory.waypoints
    if len(points) == 1:
        only = points[0]
        return [(only, Waypoint(only.time_s + 1.0, only.positions_rad), 1)]
    plan = []
    for a, b in pairwise(points):
        h = b.time_s - a.time_s
        motion = max(_travel(a, b, h))
        steps = max(motion / max_step_rad, h / max_step_s, _MIN_SAMPLES_PER_SEGMENT)
        plan.append((a, b, math.ceil(steps)))
    return plan


def _travel(a: Waypoint, b: Waypoint, h: float) -> list[float]:
    """Bound how far each joint moves within a segment, overshoot of a spline included."""
    travel = [abs(y - x) for x, y in zip(a.positions_rad, b.positions_rad, strict=True)]
    if a.velocities_radps is None or b.velocities_radps is None:
        return travel
    # Fastest of a cubic: its mean speed times 1.5 plus what the end speeds add.
    ends = zip(travel, a.velocities_radps, b.velocities_radps, strict=True)
    return [1.5 * d + h * (abs(u) + abs(w)) for d, u, w in ends]
