"""Owns the path of the tip along a joint-space motion: where it goes and how fast it gets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from awp_ros_bridge.kinematics.chain import Chain, Matrix, Vector
from awp_ros_bridge.kinematics.trajectory import (
    joint_line,
    JointStates,
    Trajectory,
    TrajectoryError,
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
    :raises TrajectoryError: more samples would be needed, or numbers too large to compute with
    """
    with np.errstate(over='ignore', invalid='ignore'):
        states = _states(trajectory, max_step_rad, max_step_s, max_samples)
        positions, speeds = chain.tip_motion(states.positions_rad, states.velocities_radps)
    # NaN would pass every comparison that asks whether a limit is exceeded.
    if not (np.isfinite(positions).all() and np.isfinite(speeds).all()):
        raise TrajectoryError('velocities or accelerations are too large to compute with')
    return TipPath(states.times_s, positions, speeds)


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
    speed = np.broadcast_to((line[-1] - line[0]) / duration_s, line.shape)
    return TipPath(times, *chain.tip_motion(line, speed))


def _states(
    trajectory: Trajectory, max_step_rad: float, max_step_s: float, max_samples: int
) -> JointStates:
    if len(trajectory.waypoints) == 1:
        times = trajectory.duration_s + np.array([0.0, 1.0])
        twice = np.repeat(trajectory.rows.positions_rad, 2, axis=0)
        return JointStates(times, twice, np.zeros_like(twice))
    steps = _steps(trajectory, max_step_rad, max_step_s)
    total = float(steps.sum()) + len(steps)
    if not total <= max_samples:
        raise TrajectoryError(
            f'{total:.9g} samples are needed to check this trajectory, the limit is '
            f'{max_samples}; send a shorter one'
        )
    return trajectory.states(steps.astype(np.int64))


def _steps(trajectory: Trajectory, max_step_rad: float, max_step_s: float) -> Vector:
    """Decide how many steps each segment needs; inf where no number is enough."""
    spans = trajectory.rows.spans_s
    motion = _travel(trajectory).max(axis=1)
    steps = np.maximum(motion / max_step_rad, spans / max_step_s)
    enough: Vector = np.ceil(np.maximum(steps, _MIN_SAMPLES_PER_SEGMENT))
    return enough


def _travel(trajectory: Trajectory) -> Matrix:
    """Bound how far each joint moves within a segment, overshoot of a spline included."""
    rows = trajectory.rows
    travel: Matrix = np.abs(np.diff(rows.positions_rad, axis=0))
    # Fastest of a cubic: its mean speed times 1.5 plus what the end speeds add.
    speeds = np.abs(rows.velocities_radps)
    spline = 1.5 * travel + rows.spans_s[:, np.newaxis] * (speeds[:-1] + speeds[1:])
    return np.where(rows.is_spline[:, np.newaxis], spline, travel)
