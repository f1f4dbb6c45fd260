"""
Owns joint trajectories: waypoints in time, and the interpolation between them.

The interpolation is the one of ros2_control's joint_trajectory_controller: between two points that
both carry velocities a cubic, with accelerations too a quintic, otherwise a straight line.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
import math

import numpy as np

from awp_ros_bridge.kinematics.chain import Matrix, Vector

_Row = tuple[float, ...]


class TrajectoryError(ValueError):
    """Waypoints that make no trajectory."""


@dataclass(frozen=True, slots=True)
class Waypoint:
    """
    Where the joints are to be at a time.

    :ivar time_s: since the start of the trajectory
    :ivar positions_rad: one per joint (metres for prismatic joints)
    :ivar velocities_radps: one per joint, or None
    :ivar accelerations_radps2: one per joint, or None
    """

    time_s: float
    positions_rad: _Row
    velocities_radps: _Row | None = None
    accelerations_radps2: _Row | None = None


@dataclass(frozen=True, slots=True)
class JointSample:
    """The commanded state at one instant: positions, velocities and accelerations per joint."""

    positions_rad: _Row
    velocities_radps: _Row
    accelerations_radps2: _Row


class Trajectory:
    """A sequence of waypoints that can be asked for its state at any time."""

    def __init__(self, waypoints: Sequence[Waypoint]) -> None:
        """
        Take waypoints in the order of their times.

        :raises TrajectoryError: no waypoint, times that do not increase, sizes that differ, or a
            number that is not finite
        """
        _check(waypoints)
        self.waypoints = tuple(waypoints)
        self._times = [w.time_s for w in waypoints]

    @property
    def duration_s(self) -> float:
        """Give the time of the last waypoint."""
        return self._times[-1]

    def segment_at(self, time_s: float) -> int:
        """Find the index of the waypoint that is being approached at a time."""
        return min(bisect_right(self._times, time_s), len(self._times) - 1)

    def sample(self, time_s: float) -> JointSample:
        """Compute the state at a time; before the first and after the last waypoint it rests."""
        if time_s >= self._times[-1]:
            return _at_rest(self.waypoints[-1])
        after = bisect_right(self._times, time_s)
        if after == 0:
            return _at_rest(self.waypoints[0])
        return interpolate(self.waypoints[after - 1], self.waypoints[after], time_s)


def interpolate(a: Waypoint, b: Waypoint, time_s: float) -> JointSample:
    """Compute the state between two waypoints."""
    h = b.time_s - a.time_s
    t = time_s - a.time_s
    va, vb = a.velocities_radps, b.velocities_radps
    if va is None or vb is None:
        return _line(a.positions_rad, b.positions_rad, t, h)
    aa, ab = a.accelerations_radps2, b.accelerations_radps2
    if aa is None or ab is None:
        return _cubic(a.positions_rad, b.positions_rad, va, vb, t, h)
    return _quintic((a.positions_rad, va, aa), (b.positions_rad, vb, ab), t, h)


def joint_line(
    start_rad: Sequence[float] | Vector, end_rad: Sequence[float] | Vector, max_step_rad: float
) -> Matrix:
    """
    Sample the straight line between two configurations.

    :param max_step_rad: the largest step of any joint between two samples
    :return: shape (samples, joints), both ends included
    :raises TrajectoryError: configurations of different sizes or not finite, or no positive step
    """
    start = np.asarray(start_rad, dtype=np.float64)
    end = np.asarray(end_rad, dtype=np.float64)
    if start.shape != end.shape or start.ndim != 1 or not start.size:
        raise TrajectoryError(f'configurations differ in size: {start.shape} and {end.shape}')
    if not (np.isfinite(start).all() and np.isfinite(end).all()):
        raise TrajectoryError('a configuration needs finite numbers')
    if not max_step_rad > 0.0:
        raise TrajectoryError(f'a step must be positive, not {max_step_rad}')
    count = max(1, math.ceil(float(np.max(np.abs(end - start))) / max_step_rad))
    line: Matrix = np.linspace(start, end, count + 1)
    return line


def _at_rest(point: Waypoint) -> JointSample:
    zeros = (0.0,) * len(point.positions_rad)
    return JointSample(point.positions_rad, zeros, zeros)


def _line(pa: _Row, pb: _Row, t: float, h: float) -> JointSample:
    velocities = tuple((y - x) / h for x, y in zip(pa, pb, strict=True))
    positions = tuple(x + v * t for x, v in zip(pa, velocities, strict=True))
    return JointSample(positions, velocities, (0.0,) * len(pa))


def _cubic(pa: _Row, pb: _Row, va: _Row, vb: _Row, t: float, h: float) -> JointSample:
    positions, velocities, accelerations = [], [], []
    for x, y, u, w in zip(pa, pb, va, vb, strict=True):
        c2 = (3.0 * (y - x) / h - 2.0 * u - w) / h
        c3 = (2.0 * (x - y) / h + u + w) / (h * h)
        positions.append(x + t * (u + t * (c2 + t * c3)))
        velocities.append(u + t * (2.0 * c2 + t * 3.0 * c3))
        accelerations.append(2.0 * c2 + 6.0 * c3 * t)
    return JointSample(tuple(positions), tuple(velocities), tuple(accelerations))


def _quintic(
    a: tuple[_Row, _Row, _Row], b: tuple[_Row, _Row, _Row], t: float, h: float
) -> JointSample:
    positions, velocities, accelerations = [], [], []
    for x, u, g, y, w, k in zip(*a, *b, strict=True):
        d = y - x
        c2 = g / 2.0
        c3 = (20.0 * d - (8.0 * w + 12.0 * u) * h - (3.0 * g - k) * h**2) / (2.0 * h**3)
        c4 = (-30.0 * d + (14.0 * w + 16.0 * u) * h + (3.0 * g - 2.0 * k) * h**2) / (2.0 * h**4)
        c5 = (12.0 * d - 6.0 * (w + u) * h + (k - g) * h**2) / (2.0 * h**5)
        positions.append(x + t * (u + t * (c2 + t * (c3 + t * (c4 + t * c5)))))
        velocities.append(u + t * (2 * c2 + t * (3 * c3 + t * (4 * c4 + t * 5 * c5))))
        accelerations.append(2 * c2 + t * (6 * c3 + t * (12 * c4 + t * 20 * c5)))
    return JointSample(tuple(positions), tuple(velocities), tuple(accelerations))


def _check(waypoints: Sequence[Waypoint]) -> None:
    if not waypoints:
        raise TrajectoryError('a trajectory needs at least one waypoint')
    size = len(waypoints[0].positions_rad)
    previous_s = -math.inf
    for index, point in enumerate(waypoints):
        if not previous_s < point.time_s < math.inf:
            raise TrajectoryError(
                f'waypoint {index}: time {point.time_s} s does not follow {previous_s} s'
            )
        previous_s = point.time_s
        for row in (point.positions_rad, point.velocities_radps, point.accelerations_radps2):
            if row is not None and (len(row) != size or not all(map(math.isfinite, row))):
                raise TrajectoryError(f'waypoint {index}: needs {size} finite numbers, not {row}')
