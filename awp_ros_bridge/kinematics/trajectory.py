"""
Owns joint trajectories: waypoints in time, and the interpolation between them.

The interpolation is the one of ros2_control's joint_trajectory_controller: between two points that
both carry velocities a cubic, with accelerations too a quintic, otherwise a straight line.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
import math

import numpy as np
import numpy.typing as npt

from awp_ros_bridge.kinematics.chain import Matrix, Vector

_Row = tuple[float, ...]
_Mask = npt.NDArray[np.bool_]


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
class Rows:
    """
    Waypoints as arrays, one a row; zeros where a waypoint tells nothing.

    :ivar times_s: shape (waypoints,)
    :ivar positions_rad: shape (waypoints, joints), as the two that follow
    :ivar is_spline: shape (segments,), the velocities of both ends are told
    :ivar is_quintic: shape (segments,), the accelerations too
    """

    times_s: Vector
    positions_rad: Matrix
    velocities_radps: Matrix
    accelerations_radps2: Matrix
    is_spline: npt.NDArray[np.bool_]
    is_quintic: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, waypoints: Sequence[Waypoint]) -> 'Rows':
        """Arrange waypoints."""
        none = (0.0,) * len(waypoints[0].positions_rad)
        moving = np.array([w.velocities_radps is not None for w in waypoints])
        pushed = np.array([w.accelerations_radps2 is not None for w in waypoints]) & moving
        return cls(
            np.array([w.time_s for w in waypoints]),
            np.array([w.positions_rad for w in waypoints]),
            np.array([w.velocities_radps or none for w in waypoints]),
            np.array([w.accelerations_radps2 or none for w in waypoints]),
            moving[:-1] & moving[1:],
            pushed[:-1] & pushed[1:],
        )

    @property
    def spans_s(self) -> Vector:
        """Give how long each segment takes."""
        return np.diff(self.times_s)


@dataclass(frozen=True, slots=True)
class JointSample:
    """The commanded state at one instant: positions, velocities and accelerations per joint."""

    positions_rad: _Row
    velocities_radps: _Row
    accelerations_radps2: _Row


@dataclass(frozen=True, slots=True)
class JointStates:
    """
    The commanded state at many instants, one a row.

    :ivar times_s: shape (instants,)
    :ivar positions_rad: shape (instants, joints)
    :ivar velocities_radps: shape (instants, joints)
    """

    times_s: Vector
    positions_rad: Matrix
    velocities_radps: Matrix


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

    @cached_property
    def rows(self) -> Rows:
        """Give the waypoints as arrays."""
        return Rows.of(self.waypoints)

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
        state = _evaluate(self._splines[:, after - 1], time_s - self._times[after - 1])
        positions, velocities, accelerations = (tuple(row.tolist()) for row in state)
        return JointSample(positions, velocities, accelerations)

    def states(self, steps: Sequence[int] | npt.NDArray[np.int64]) -> JointStates:
        """
        Compute the states that divide each segment into equal steps, both its ends included.

        :param steps: how many steps each segment gets
        """
        counts = np.asarray(steps, dtype=np.int64) + 1
        segment = np.repeat(np.arange(len(counts)), counts)
        index = np.arange(len(segment)) - np.repeat(np.cumsum(counts) - counts, counts)
        since_s = index * (self.rows.spans_s / (counts - 1))[segment]
        positions, velocities, _ = _evaluate(self._splines[:, segment], since_s[:, np.newaxis])
        return JointStates(self.rows.times_s[segment] + since_s, positions, velocities)

    @cached_property
    def _splines(self) -> Matrix:
        return _coefficients(self.rows)


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


def _coefficients(rows: Rows) -> Matrix:
    """
    Compute the polynomials between the waypoints.

    :return: shape (powers, segments, joints), the factors of the powers 0 to 5 of the time since
        the segment began
    """
    span = rows.spans_s
    table = np.zeros((6, len(span), rows.positions_rad.shape[1]))
    table[0] = rows.positions_rad[:-1]
    line = ~rows.is_spline
    table[1, line] = np.diff(rows.positions_rad, axis=0)[line] / span[line, np.newaxis]
    kinds = ((rows.is_spline & ~rows.is_quintic, _cubic), (rows.is_quintic, _quintic))
    for chosen, spline in kinds:
        if chosen.any():
            ends = np.append(chosen, False), np.append(False, chosen)
            found = spline(rows, *ends, span[chosen, np.newaxis])
            table[1 : 1 + len(found), chosen] = found
    return table


def _cubic(rows: Rows, a: _Mask, b: _Mask, h: Matrix) -> list[Matrix]:
    d = rows.positions_rad[b] - rows.positions_rad[a]
    u, w = rows.velocities_radps[a], rows.velocities_radps[b]
    return [u, (3.0 * d / h - 2.0 * u - w) / h, (-2.0 * d / h + u + w) / (h * h)]


def _quintic(rows: Rows, a: _Mask, b: _Mask, h: Matrix) -> list[Matrix]:
    d = rows.positions_rad[b] - rows.positions_rad[a]
    u, w = rows.velocities_radps[a], rows.velocities_radps[b]
    g, k = rows.accelerations_radps2[a], rows.accelerations_radps2[b]
    return [
        u,
        g / 2.0,
        (20.0 * d - (8.0 * w + 12.0 * u) * h - (3.0 * g - k) * h**2) / (2.0 * h**3),
        (-30.0 * d + (14.0 * w + 16.0 * u) * h + (3.0 * g - 2.0 * k) * h**2) / (2.0 * h**4),
        (12.0 * d - 6.0 * (w + u) * h + (k - g) * h**2) / (2.0 * h**5),
    ]


def _evaluate(table: Matrix, since_s: float | Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Compute polynomials and their first two derivatives (Horner's scheme)."""
    value = slope = bend = np.zeros(table.shape[1:])
    for row in table[::-1]:
        bend = bend * since_s + slope
        slope = slope * since_s + value
        value = value * since_s + row
    return value, slope, 2.0 * bend


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
