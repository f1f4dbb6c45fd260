"""
Owns what params look like that fill a field of a ROS message: their schema, and their way there.

A shape makes the JSON Schema of a value and turns a value into what the message takes, as plain
data in the names of ROS. Nothing is guessed on the way: what does not fit is refused by its path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
import math
from typing import Any

from awp_ros_bridge.config.base import IDENTIFIER

Json = dict[str, Any]
Frames = Callable[[str], str | None]  # tf frame of an AWP frame, None for an unknown one

UNIT_QUATERNION_TOLERANCE = 1e-3
MOST_TEXT = 1024  # characters, where ROS has no bound
MOST_INTEGER = 2**53 - 1  # what JSON carries without loss
_LONGEST_S = 2**31 - 1


class ParamRefused(ValueError):
    """A value that does not fit; the text begins with its path."""

    def __init__(self, at: str, what: str) -> None:
        super().__init__(f'{at}: {what}')


class Shape(ABC):
    """What one param, or a part of one, looks like."""

    @abstractmethod
    def schema(self) -> Json:
        """Return the JSON Schema of a value."""

    @abstractmethod
    def to_ros(self, value: Any, at: str, frames: Frames) -> Any:
        """
        Return what the message takes.

        :raises ParamRefused: the value does not fit
        """


@dataclass(frozen=True, slots=True)
class BooleanShape(Shape):
    """True or false."""

    def schema(self) -> Json:
        return {'type': 'boolean'}

    def to_ros(self, value: Any, at: str, frames: Frames) -> bool:
        if not isinstance(value, bool):
            raise ParamRefused(at, f'true or false is needed, not {shown(value)}')
        return value


@dataclass(frozen=True, slots=True)
class IntegerShape(Shape):
    """A whole number between two bounds."""

    low: int
    high: int

    def schema(self) -> Json:
        return {'type': 'integer', 'minimum': self.low, 'maximum': self.high}

    def to_ros(self, value: Any, at: str, frames: Frames) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # as JSON Schema has it: 1.0 is an integer
        if isinstance(value, bool) or not isinstance(value, int):
            raise ParamRefused(at, f'an integer is needed, not {shown(value)}')
        if not self.low <= value <= self.high:
            raise ParamRefused(at, f'{value} is outside the range {self.low} to {self.high}')
        return value


@dataclass(frozen=True, slots=True)
class NumberShape(Shape):
    """A finite number between two bounds."""

    low: float = -math.inf
    high: float = math.inf

    def schema(self) -> Json:
        found: Json = {'type': 'number'}
        if math.isfinite(self.low):
            found['minimum'] = self.low
        if math.isfinite(self.high):
            found['maximum'] = self.high
        return found

    def to_ros(self, value: Any, at: str, frames: Frames) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ParamRefused(at, f'a number is needed, not {shown(value)}')
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ParamRefused(at, f'a finite number is needed, not {number}')
        if not self.low <= number <= self.high:
            raise ParamRefused(at, f'{value} is outside the range {self.low:g} to {self.high:g}')
        return number


@dataclass(frozen=True, slots=True)
class TextShape(Shape):
    """
    A text.

    :param most_bytes: longest in bytes of UTF-8, None where only its characters are counted.
    """

    most_bytes: int | None = None

    def schema(self) -> Json:
        most = MOST_TEXT if self.most_bytes is None else min(self.most_bytes, MOST_TEXT)
        return {'type': 'string', 'maxLength': most}

    def to_ros(self, value: Any, at: str, frames: Frames) -> str:
        if not isinstance(value, str):
            raise ParamRefused(at, f'a text is needed, not {shown(value)}')
        if len(value) > MOST_TEXT:
            raise ParamRefused(at, f'{MOST_TEXT} characters at most, not {len(value)}')
        size = len(value.encode(errors='surrogatepass'))
        if self.most_bytes is not None and size > self.most_bytes:
            raise ParamRefused(at, f'{self.most_bytes} bytes at most, not {size}')
        if '\0' in value or any('\ud800' <= c <= '\udfff' for c in value):
            raise ParamRefused(at, 'a character in it cannot stand in a text of ROS')
        return value


@dataclass(frozen=True, slots=True)
class ChoiceShape(Shape):
    """
    One of some words.

    :param values: what each word stands for in the message, in the order of the configuration.
    """

    values: tuple[tuple[str, bool | int | float | str], ...]

    def schema(self) -> Json:
        return {'enum': [word for word, _ in self.values]}

    def to_ros(self, value: Any, at: str, frames: Frames) -> Any:
        known = dict(self.values)
        if not isinstance(value, str) or value not in known:
            raise ParamRefused(at, f'{shown(value)} is none of {", ".join(known)}')
        return known[value]


@dataclass(frozen=True, slots=True)
class ListShape(Shape):
    """A list whose items are alike."""

    item: Shape
    least: int
    most: int

    def schema(self) -> Json:
        return {
            'type': 'array',
            'items': self.item.schema(),
            'minItems': self.least,
            'maxItems': self.most,
        }

    def to_ros(self, value: Any, at: str, frames: Frames) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise ParamRefused(at, f'a list is needed, not {shown(value)}')
        if not self.least <= len(value) <= self.most:
            count = f'{self.least}' if self.least == self.most else f'{self.least} to {self.most}'
            raise ParamRefused(at, f'{count} items are needed, not {len(value)}')
        return [self.item.to_ros(v, f'{at}[{i}]', frames) for i, v in enumerate(value)]


@dataclass(frozen=True, slots=True)
class FrameShape(Shape):
    """A frame of the frame tree; ROS gets its tf frame (AWP-UNI-003)."""

    def schema(self) -> Json:
        return {
            'type': 'string',
            'minLength': 1,
            'maxLength': 128,
            'pattern': IDENTIFIER.pattern,
            'description': 'a frame of the frame tree',
        }

    def to_ros(self, value: Any, at: str, frames: Frames) -> str:
        found = frames(value) if isinstance(value, str) else None
        if not found:
            raise ParamRefused(at, f'unknown frame {shown(value)}; see the frame tree')
        return found


@dataclass(frozen=True, slots=True)
class DurationShape(Shape):
    """
    A builtin_interfaces/Duration as a whole number.

    :param per_s: how many make a second: 1000 for ms, 10**9 for ns.
    """

    per_s: int
    low: int = 0
    high: int = _LONGEST_S * 1000

    def schema(self) -> Json:
        return {'type': 'integer', 'minimum': self.low, 'maximum': self.high}

    def to_ros(self, value: Any, at: str, frames: Frames) -> Json:
        whole = IntegerShape(self.low, self.high).to_ros(value, at, frames)
        seconds, rest = divmod(whole, self.per_s)
        return {'sec': seconds, 'nanosec': rest * (10**9 // self.per_s)}


@dataclass(frozen=True, slots=True)
class QuaternionShape(Shape):
    """An orientation, x, y, z, w (AWP-UNI-002)."""

    def schema(self) -> Json:
        return {
            **ListShape(NumberShape(), 4, 4).schema(),
            'description': 'unit quaternion x, y, z, w',
        }

    def to_ros(self, value: Any, at: str, frames: Frames) -> Json:
        parts = ListShape(NumberShape(), 4, 4).to_ros(value, at, frames)
        length = math.hypot(*parts)
        if not abs(length - 1.0) <= UNIT_QUATERNION_TOLERANCE:
            raise ParamRefused(
                at,
                f'a quaternion of length {length:.4g} is no orientation; it must have length 1 '
                f'within {UNIT_QUATERNION_TOLERANCE:g}',
            )
        return dict(zip('xyzw', (part / length for part in parts), strict=True))


@dataclass(frozen=True, slots=True)
class PoseShape(Shape):
    """
    A pose: ``p_m``, ``q`` and, where it has one, its ``frame``.

    :param has_frame: True for a geometry_msgs/PoseStamped, False for a geometry_msgs/Pose.
    """

    has_frame: bool = True

    @property
    def _fields(self) -> dict[str, Shape]:
        parts: dict[str, Shape] = {'p_m': ListShape(NumberShape(), 3, 3), 'q': QuaternionShape()}
        return {'frame': FrameShape(), **parts} if self.has_frame else parts

    def schema(self) -> Json:
        fields = {name: shape.schema() for name, shape in self._fields.items()}
        fields['p_m']['description'] = 'position, x, y, z'
        return _closed(fields)

    def to_ros(self, value: Any, at: str, frames: Frames) -> Json:
        given = fields_of(value, self._fields, at)
        found = {
            name: shape.to_ros(given[name], f'{at}.{name}', frames)
            for name, shape in self._fields.items()
        }
        position = dict(zip('xyz', found['p_m'], strict=True))
        pose = {'position': position, 'orientation': found['q']}
        if not self.has_frame:
            return pose
        return {'header': {'frame_id': found['frame']}, 'pose': pose}


@dataclass(frozen=True, slots=True)
class ObjectShape(Shape):
    """
    A message, field by field.

    :param fields: by the name in JSON, with the name in ROS.
    """

    fields: Mapping[str, tuple[str, Shape]] = field(default_factory=dict)

    def schema(self) -> Json:
        return _closed({name: shape.schema() for name, (_, shape) in self.fields.items()})

    def to_ros(self, value: Any, at: str, frames: Frames) -> Json:
        given = fields_of(value, self.fields, at)
        return {
            ros_name: shape.to_ros(given[name], f'{at}.{name}', frames)
            for name, (ros_name, shape) in self.fields.items()
        }


def fields_of(value: Any, known: Mapping[str, Any], at: str) -> Json:
    """
    Return an object that has exactly the known fields.

    :raises ParamRefused: it is no object, or has a field too many or too few
    """
    if not isinstance(value, dict):
        raise ParamRefused(at, f'an object is needed, not {shown(value)}')
    for name in value:
        if name not in known:
            raise ParamRefused(f'{at}.{name}', f'unknown field; there are {", ".join(known)}')
    for name in known:
        if name not in value:
            raise ParamRefused(f'{at}.{name}', 'missing')
    return value


def _closed(fields: Json) -> Json:
    return {
        'type': 'object',
        'properties': fields,
        'required': list(fields),
        'additionalProperties': False,
    }


def shown(value: Any) -> str:
    """Write a value as JSON has it, shortened."""
    match value:
        case None:
            return 'null'
        case bool():
            return 'true' if value else 'false'
        case dict():
            return 'an object'
        case list() | tuple():
            return 'a list'
    text = repr(value)
    return text if len(text) <= 40 else f'{text[:37]}...'
