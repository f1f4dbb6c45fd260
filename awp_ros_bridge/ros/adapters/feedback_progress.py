"""Owns the ways to read progress out of feedback, chosen by name; nothing is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import math
from typing import Any

from awp_ros_bridge.config.problems import Finding, nearest, Path
from awp_ros_bridge.manifest.field_types import MessageType
from awp_ros_bridge.manifest.shapes import IntegerShape, NumberShape, Shape
from awp_ros_bridge.ros.adapters.described_fields import field_problems, Wanted
from awp_ros_bridge.ros.adapters.generic_options import FieldOf, ParamOf, ProgressOptions
from awp_ros_bridge.ros.field_path import FieldPath

Json = dict[str, Any]


class Remaining:
    """
    A number that falls to nothing; the whole is the greatest that was told.

    A planner that has not planned yet tells zero: nothing is known before it told a way.
    """

    def __init__(self) -> None:
        self._whole = 0.0

    def begin(self) -> None:
        """Forget the goal before."""
        self._whole = 0.0

    def fraction(self, left: float) -> float | None:
        """Return the part done, None before any way was told."""
        if not math.isfinite(left):
            return None
        self._whole = max(self._whole, left)
        if self._whole <= 0.0:
            return None
        return _clamped(1.0 - left / self._whole)


class FeedbackProgress:
    """
    Progress by the configured measure.

    :param defaults: params that an agent may leave out, with what stands in.
    """

    def __init__(self, options: ProgressOptions, defaults: Json) -> None:
        self._read = FieldPath(options.field)
        self._whole = _whole_of(options, defaults)
        self._remaining = Remaining()
        self._measure = {
            'fraction': lambda value, _: _clamped(value),
            'percent': lambda value, _: _clamped(value / 100.0),
            'remaining': lambda value, _: self._remaining.fraction(value),
            'done': _part,
            'count': _part,
        }[options.measure]
        self._counts = options.measure == 'count'

    def begin(self) -> None:
        """Forget the goal before."""
        self._remaining.begin()

    def fraction(self, params: Json, feedback: Any) -> float | None:
        """Return the part done; None where the feedback does not tell."""
        try:
            value = self._read.read(feedback)
            number = float(len(value) if self._counts else value)
            whole = self._whole(params, feedback)
        except LookupError:
            return None  # a list is shorter than the path
        if not (math.isfinite(number) and math.isfinite(whole)):
            return None
        return self._measure(number, whole)


def _part(value: float, whole: float) -> float | None:
    return _clamped(value / whole) if whole > 0.0 else None


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))


def _whole_of(options: ProgressOptions, defaults: Json) -> Callable[[Json, Any], float]:
    match options.of:
        case ParamOf(param=name):
            return lambda params, _: float({**defaults, **params}[name])
        case FieldOf(field=path):
            reader = FieldPath(path)
            return lambda _, feedback: float(reader.read(feedback))
        case None:
            return lambda params, feedback: 1.0
    number = options.of
    return lambda params, feedback: number


def progress_problems(
    options: ProgressOptions, feedback: MessageType | None, shapes: Mapping[str, Shape | None]
) -> list[Finding]:
    """
    Compare the paths with the feedback's description, and the whole with the params.

    :param feedback: None where the type is not installed.
    """
    found = []
    if feedback is not None:
        wanted: Wanted = 'list' if options.measure == 'count' else 'number'
        found += field_problems(options.field, feedback, wanted, ('progress', 'field'))
        if isinstance(options.of, FieldOf):
            path: Path = ('progress', 'of', 'field')
            found += field_problems(options.of.field, feedback, 'number', path)
    if isinstance(options.of, ParamOf):
        found += _param_problems(options.of.param, shapes, is_known=feedback is not None)
    return found


def _param_problems(
    name: str, shapes: Mapping[str, Shape | None], is_known: bool
) -> list[Finding]:
    path = ('progress', 'of', 'param')
    if name not in shapes:
        return [Finding(path, f'there is no param {name!r}', nearest(name, shapes))]
    if is_known and not isinstance(shapes[name], NumberShape | IntegerShape):
        return [Finding(path, f'param {name!r} is no number', 'name one that is')]
    return []
