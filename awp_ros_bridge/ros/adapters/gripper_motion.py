"""Owns what both gripper adapters share: position bounds, effort, progress, outcome."""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Any

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.ros.adapters.base import AdapterContext, Outcome
from awp_ros_bridge.ros.adapters.params import bad_params, not_finite, number, option_number

Json = dict[str, Any]

_SMALLEST_TRAVEL_M = 1e-4


GRIPPER_OPTIONS: Mapping[str, str] = {
    'joint': 'name of the commanded joint; servers with several need it, and so does progress by '
    'measurement',
    'min_position_m': 'least position that params may ask for',
    'max_position_m': 'greatest position that params may ask for',
    'max_effort_n': 'greatest effort that params may ask for, and the effort where they name none',
    'fail_when_stalled': 'true: a finger that something blocks is a failure; false by default',
}


def position_schema(options: Json) -> Json:
    """Return the schema of the opening, with the configured bounds where there are any."""
    bounds = {'minimum': -1.0, 'maximum': 1.0}
    for option, keyword in (('min_position_m', 'minimum'), ('max_position_m', 'maximum')):
        if option in options:
            bounds[keyword] = float(options[option])
    return number('position of the gripper joint, m', **bounds)


def effort_fields(options: Json) -> Json:
    """Return the schema of the effort; a configured one is also the largest."""
    bounds = {'exclusiveMinimum': 0.0, 'maximum': 10_000.0}
    if 'max_effort_n' in options:
        bounds['maximum'] = option_number(options, 'max_effort_n', 1.0)
    return {'max_effort_n': number('largest force of the gripper, N', **bounds)}


def goal_effort(params: Json, options: Json) -> float | None:
    """Return the effort of a goal: the param, else the configured one, else None."""
    effort = params.get('max_effort_n', options.get('max_effort_n'))
    return None if effort is None else float(effort)


def joint_option(options: Json) -> str | None:
    """
    Return the configured name of the gripper joint, None where there is none.

    :raises ValueError: it is no name
    """
    joint = options.get('joint')
    if joint is not None and not (isinstance(joint, str) and joint):
        raise ValueError(f'option joint: {joint!r} is not the name of a joint')
    return joint


class GripperMotion:
    """One gripper joint on its way to a position."""

    def __init__(self, context: AdapterContext, joint: str | None) -> None:
        self._context = context
        self._joint = joint
        self._start_m: float | None = None
        self._fail_when_stalled = bool(context.options.get('fail_when_stalled', False))

    def check(self, params: Json) -> GoalRefusal | None:
        """Return why the params cannot be a goal."""
        at = not_finite(params, 'params')
        return None if at is None else bad_params(f'{at}: not a finite number')

    def begin(self) -> Json:
        """Remember where the gripper stands when the goal begins."""
        joints = self._context.joints() or {}
        self._start_m = joints.get(self._joint) if self._joint else None
        return {} if self._start_m is None else {'start_m': self._start_m}

    def fraction(self, params: Json, position_m: float) -> float | None:
        """Return the fraction of the way from the start that a position is."""
        if self._start_m is None:
            self._start_m = position_m
        return _fraction(self._start_m, float(params['position_m']), position_m)

    def measured(self, params: Json, start: Json) -> float | None:
        """Return the fraction by the measured joint."""
        joints = self._context.joints()
        if joints is None or self._joint not in joints or 'start_m' not in start:
            return None
        return _fraction(start['start_m'], float(params['position_m']), joints[self._joint])

    def outcome(self, is_stalled: bool, has_reached_goal: bool) -> Outcome:
        """Say what the two flags of a result mean: stalled fingers hold something."""
        if has_reached_goal:
            return Outcome(ok=True, detail='the position is reached')
        if is_stalled:
            return Outcome(ok=not self._fail_when_stalled, detail='stalled before the position')
        return Outcome(ok=False, detail='ended neither at the position nor stalled')


def _fraction(start_m: float, target_m: float, position_m: float) -> float | None:
    if not math.isfinite(position_m):
        return None
    way = abs(target_m - start_m)
    if way < _SMALLEST_TRAVEL_M:
        return 1.0
    return min(1.0, max(0.0, 1.0 - abs(target_m - position_m) / way))
