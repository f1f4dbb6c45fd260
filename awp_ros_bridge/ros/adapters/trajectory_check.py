"""Owns the check of a joint trajectory: names, sizes, times, joint limits, the tip's path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain as joined
import math
from typing import Any

import numpy as np

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.kinematics import (
    Chain,
    sample_tip_path,
    Trajectory,
    TrajectoryError,
    Waypoint,
)
from awp_ros_bridge.ros.adapters.base import AdapterContext
from awp_ros_bridge.ros.adapters.params import bad_params, not_finite, option_number, unready
from awp_ros_bridge.ros.adapters.tip_limits import in_use, missing_joints, TipLimits

Json = dict[str, Any]

_ROWS = ('positions_rad', 'velocities_radps', 'accelerations_radps2')
# The engine waits for the check, so the work that one goal can cause is bounded.
_MAX_SAMPLES = 6000
_TOLERANCE = 'goal_time_tolerance_ms'
_REST_RADPS = 1e-6
_JOINT_SLACK_RAD = 1e-3
# A first point at time zero is a step of the command: it must be where the joints are.
_STEP_RAD = 0.1


class TrajectoryCheck:
    """Checks trajectories of one action type of one embodiment."""

    def __init__(self, context: AdapterContext) -> None:
        self._context = context
        options = context.options
        self._jump_rad = option_number(options, 'max_first_point_jump_rad', math.pi * 1000.0)
        self._may_be_partial = bool(options.get('allow_partial', False))
        self._configured = tuple(options.get('joints', ()))
        self._tip = TipLimits(context)

    def check(self, params: Json) -> GoalRefusal | None:
        """Return why a trajectory must not be followed, or None."""
        found = self._shape(params) or self._joints(params)
        return found or self._motion(params, params['points'])

    def check_beginning(self, params: Json) -> GoalRefusal | None:
        """
        Check again what depends on where the joints are now: the way to the first point.

        A goal may have waited, and the robot may have moved since it was admitted.
        """
        return self._motion(params, params['points'][:1])

    def _shape(self, params: Json) -> GoalRefusal | None:
        at = None if _is_finite(params) else not_finite(params, 'params')
        if at is not None:
            return bad_params(f'{at}: not a finite number')
        if not params['points']:
            return bad_params('params.points: empty; to stop, cancel the action')
        detail = next(_shape_faults(params), None)
        return None if detail is None else bad_params(detail)

    def _joints(self, params: Json) -> GoalRefusal | None:
        names = params['joint_names']
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            return bad_params(f'params.joint_names: named twice: {", ".join(twice)}')
        chain = self._context.chain()
        expected = self._configured or (chain.joint_names if chain is not None else ())
        known = expected or tuple(self._context.joints() or ())
        if not known:
            return unready('the joints of the robot are not known yet; wait for joint states')
        unknown = [name for name in names if name not in known]
        if unknown:
            return bad_params(
                f'params.joint_names: unknown: {", ".join(unknown)}; there are {", ".join(known)}'
            )
        missing = [name for name in expected if name not in names]
        if missing and not self._may_be_partial:
            return bad_params(
                f'params.joint_names: missing: {", ".join(missing)}; name every joint'
            )
        return None

    def _motion(self, params: Json, points: list[Json]) -> GoalRefusal | None:
        """Check the way from the current joint positions through the points."""
        joints = self._context.joints()
        lost = [n for n in params['joint_names'] if not _is_known(joints, n)]
        if lost:
            return unready(f'no position is known of {", ".join(lost)}; wait for joint states')
        here = dict(joints or {})
        found = self._jump(params['joint_names'], points[0], here)
        chain: Chain | None = self._context.chain()
        if found is not None or chain is None:
            return found or self._no_chain()
        missing = missing_joints(chain, here)
        if missing:
            return unready(f'no position is known of {", ".join(missing)}; wait for joint states')
        with in_use(chain):
            return self._joint_limits(chain, params, points) or self._path(
                chain, params, points, here
            )

    def _no_chain(self) -> GoalRefusal | None:
        if not self._tip.has_any:
            return None
        return unready('the limits need the robot description, which is not known yet')

    def _jump(self, names: list[str], first: Json, here: dict[str, float]) -> GoalRefusal | None:
        bound = self._jump_rad
        if first['time_from_start_ms'] == 0:
            bound = min(bound, _STEP_RAD)
        for index, (name, value) in enumerate(zip(names, first['positions_rad'], strict=True)):
            if not abs(value - here[name]) <= bound:
                return bad_params(
                    f'params.points[0].positions_rad[{index}]: {name} would jump from '
                    f'{here[name]:.4f} to {value:.4f}; the first point may lie {bound:g} away at '
                    f'most; begin where the joints are'
                )
        return None

    def _joint_limits(self, chain: Chain, params: Json, points: list[Json]) -> GoalRefusal | None:
        names = params['joint_names']
        rows = [row for row, name in enumerate(chain.joint_names) if name in names]
        columns = [names.index(chain.joint_names[row]) for row in rows]
        low, high = chain.lower_rad[rows], chain.upper_rad[rows]
        values = np.array([p['positions_rad'] for p in points], dtype=np.float64)[:, columns]
        inside = (low - _JOINT_SLACK_RAD <= values) & (values <= high + _JOINT_SLACK_RAD)
        if inside.all():
            return None
        index, which = np.argwhere(~inside)[0]
        return bad_params(
            f'params.points[{index}].positions_rad: {names[columns[which]]} at '
            f'{values[index, which]:.4f} is outside its range from {low[which]:.4f} to '
            f'{high[which]:.4f}'
        )

    def _path(
        self, chain: Chain, params: Json, points: list[Json], here: dict[str, float]
    ) -> GoalRefusal | None:
        if not self._tip.has_any:
            return None
        velocities = self._context.joint_velocities() or {}
        try:
            trajectory = Trajectory(_waypoints(chain, params, points, here, velocities))
            path = sample_tip_path(chain, trajectory, max_samples=_MAX_SAMPLES)
        except TrajectoryError as error:
            return bad_params(f'params.points: {error}')
        return self._tip.path(chain, path, 'params.points')


def _is_known(joints: dict[str, float] | None, name: str) -> bool:
    return joints is not None and math.isfinite(joints.get(name, math.nan))


def _is_finite(params: Json) -> bool:
    """Tell quickly whether every number is finite; :func:`not_finite` says which one is not."""
    points = params['points']
    rows = joined.from_iterable(point.get(key, ()) for point in points for key in _ROWS)
    times = (point['time_from_start_ms'] for point in points)
    return all(map(math.isfinite, joined(rows, times, (params.get(_TOLERANCE, 0),))))


def _shape_faults(params: Json) -> Iterator[str]:
    """Say what is wrong with sizes, times and the end of a trajectory."""
    size, points = len(params['joint_names']), params['points']
    before_ms = -1
    for index, point in enumerate(points):
        for row in _ROWS:
            if row in point and len(point[row]) != size:
                yield (
                    f'params.points[{index}].{row}: {len(point[row])} numbers for {size} joints'
                )
        time_ms = point['time_from_start_ms']
        if not before_ms < time_ms:
            yield (
                f'params.points[{index}].time_from_start_ms: {time_ms} does not follow '
                f'{before_ms}; times must increase'
            )
        before_ms = time_ms
    fastest = max((abs(v) for v in points[-1].get('velocities_radps', ())), default=0.0)
    if fastest > _REST_RADPS:
        yield (
            f'params.points[{len(points) - 1}].velocities_radps: {fastest:g} rad/s at the end; a '
            f'trajectory must end at rest'
        )


def _waypoints(
    chain: Chain,
    params: Json,
    points: list[Json],
    here: dict[str, float],
    velocities: dict[str, float],
) -> list[Waypoint]:
    """Arrange the points in the order of the chain, behind the state the joints are in."""
    names = params['joint_names']
    unnamed = (len(names) + row for row in range(chain.dof))
    named = zip(chain.joint_names, unnamed, strict=True)
    places = [names.index(name) if name in names else other for name, other in named]
    now = tuple(float(here[name]) for name in chain.joint_names)
    zeros = (0.0,) * chain.dof
    rests = (now, zeros, zeros)  # joints that the goal does not name stay where they are
    out = []
    for point in points:
        rows = [_row(point.get(k), r, places) for k, r in zip(_ROWS, rests, strict=True)]
        out.append(Waypoint(point['time_from_start_ms'] * 1e-3, rows[0] or (), rows[1], rows[2]))
    if points[0]['time_from_start_ms'] == 0:
        return out
    moving = tuple(_finite(velocities.get(name, 0.0)) for name in chain.joint_names)
    return [Waypoint(0.0, now, moving, zeros), *out]


def _row(
    values: list[float] | None, rest: tuple[float, ...], places: Sequence[int]
) -> tuple[float, ...] | None:
    if values is None:
        return None
    known = (*values, *rest)
    return tuple([float(known[place]) for place in places])


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
