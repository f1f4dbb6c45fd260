"""Owns the way from a ROS field to the shape of a param: names with units, bounds, choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
import math
from typing import Any

from awp_ros_bridge.config.units import NO_UNIT
from awp_ros_bridge.manifest.field_types import (
    FieldType,
    ListType,
    MessageType,
    numbers_in,
    said,
    ScalarType,
)
from awp_ros_bridge.manifest.shapes import (
    BooleanShape,
    ChoiceShape,
    DurationShape,
    FrameShape,
    IntegerShape,
    ListShape,
    MOST_INTEGER,
    NumberShape,
    ObjectShape,
    PoseShape,
    QuaternionShape,
    Shape,
    TextShape,
)
from awp_ros_bridge.manifest.units import suffix_of, SUFFIXES, with_suffix

HEADER = 'std_msgs/msg/Header'
TIME = 'builtin_interfaces/msg/Time'
DURATION = 'builtin_interfaces/msg/Duration'
POSE_STAMPED = 'geometry_msgs/msg/PoseStamped'
POSE = 'geometry_msgs/msg/Pose'
QUATERNION = 'geometry_msgs/msg/Quaternion'

_PER_S = {'ms': 1000, 'us': 10**6, 'ns': 10**9}
_LONGEST_S = 2**31 - 1
# What AWP writes in a way of its own (AWP-UNI-002, AWP-UNI-003).
_READY: Mapping[str, Shape] = {
    POSE_STAMPED: PoseShape(),
    POSE: PoseShape(has_frame=False),
    QUATERNION: QuaternionShape(),
    HEADER: ObjectShape({'frame': ('frame_id', FrameShape())}),
}


class NoShape(ValueError):
    """
    A field that no param can fill as configured.

    :ivar key: the setting of the param that is wrong, None where it is the param itself.
    """

    def __init__(self, what: str, todo: str, key: str | None = None) -> None:
        super().__init__(f'{what}; {todo}')
        self.what = what
        self.todo = todo
        self.key = key


@dataclass(frozen=True, slots=True)
class ParamSettings:
    """
    What the configuration says of a param.

    :param unitless: its number has no unit.
    :param units: unit of the numbers inside it, by their path or the beginning of it.
    :param choices: names of constants, for texts the texts themselves; ``PREFIX_*`` for all.
    """

    unitless: bool = False
    units: Mapping[str, str] = field(default_factory=dict)
    minimum: float | None = None
    maximum: float | None = None
    choices: Sequence[str] = ()
    is_frame: bool = False
    max_items: int = 1000


def param_shape(
    name: str, kind: FieldType, holder: MessageType, settings: ParamSettings, is_scaled: bool
) -> Shape:
    """
    Return the shape of a param that fills a field.

    :param holder: the message that has the field; its constants name values.
    :param is_scaled: the number is multiplied on its way, so that the range of ROS is another.
    :raises NoShape: the settings do not suit the field
    """
    _check_units(name, kind, settings)
    shape = _shaped(name, kind, holder, settings, '')
    if is_scaled:
        shape = _scaled(shape, kind)
    shape = _bounded(shape, settings)
    _check_use(shape, settings)
    return shape


def _shaped(
    name: str, kind: FieldType, holder: MessageType, settings: ParamSettings, path: str
) -> Shape:
    if settings.choices and not path.strip('[]'):
        return _choice(kind, holder, settings, path)
    match kind:
        case ScalarType():
            return _scalar(kind, settings, is_top=not path)
        case ListType():
            item = _shaped(name, kind.item, holder, settings, f'{path}[]')
            return _list(kind, item, settings)
        case MessageType():
            return _message(name, kind, settings, path)


def _scalar(kind: ScalarType, settings: ParamSettings, is_top: bool) -> Shape:
    if is_top and settings.is_frame:
        if kind.kind != 'text':
            raise NoShape(f'a frame is a text, the field is {kind.name}', 'remove form', 'form')
        return FrameShape()
    match kind.kind:
        case 'boolean':
            return BooleanShape()
        case 'integer':
            return IntegerShape(max(kind.low, -MOST_INTEGER), min(kind.high, MOST_INTEGER))
        case 'float':
            return _number(kind)
        case 'text':
            return TextShape(kind.most_bytes)


def _number(kind: ScalarType) -> NumberShape:
    if math.isfinite(kind.largest):
        return NumberShape(-kind.largest, kind.largest)
    return NumberShape()


def _list(kind: ListType, item: Shape, settings: ParamSettings) -> ListShape:
    if kind.size is not None:
        return ListShape(item, kind.size, kind.size)
    most = settings.max_items if kind.most is None else min(kind.most, settings.max_items)
    return ListShape(item, 0, most)


def _message(name: str, kind: MessageType, settings: ParamSettings, path: str) -> Shape:
    if kind.name in _READY:
        return _READY[kind.name]
    if kind.name == DURATION:
        return _duration(name)
    if kind.name == TIME:
        raise NoShape(
            'a time of ROS means nothing to an agent',
            'write {stamp: now} in the goal, or leave it zero',
        )
    return ObjectShape(dict(_members(kind, settings, path)))


def _members(
    kind: MessageType, settings: ParamSettings, path: str
) -> Iterator[tuple[str, tuple[str, Shape]]]:
    """Name and shape each field of a message; stamps are the bridge's business and stay zero."""
    for ros_name, inner in kind.fields.items():
        if isinstance(inner, MessageType) and inner.name == TIME:
            continue
        place = f'{path}.{ros_name}' if path else ros_name
        name = _named(ros_name, inner, settings, place)
        yield name, (ros_name, _shaped(name, inner, kind, settings, place))


def _named(ros_name: str, kind: FieldType, settings: ParamSettings, place: str) -> str:
    if isinstance(kind, MessageType) and kind.name == DURATION:
        return ros_name if suffix_of(ros_name) in _PER_S else f'{ros_name}_ms'
    bare = kind.item if isinstance(kind, ListType) else kind
    if not (isinstance(bare, ScalarType) and bare.kind == 'float'):
        return ros_name
    unit = _unit_at(settings.units, f'{place}[]' if isinstance(kind, ListType) else place)
    return with_suffix(ros_name, unit or NO_UNIT)


def _unit_at(units: Mapping[str, str], path: str) -> str | None:
    """Return the unit of a path: that of its longest configured beginning."""
    found = [each for each in units if _begins(path, each)]
    return units[max(found, key=len)] if found else None


def _begins(path: str, head: str) -> bool:
    rest = path[len(head) :]
    return path.startswith(head) and (not rest or rest[0] in '.[')


def _duration(name: str) -> DurationShape:
    per_s = _PER_S.get(suffix_of(name) or '')
    if per_s is None:
        raise NoShape('a duration is a whole number', f'let the name end in _ms: {name}_ms')
    return DurationShape(per_s, 0, min(_LONGEST_S * per_s, MOST_INTEGER))


def _choice(kind: FieldType, holder: MessageType, settings: ParamSettings, path: str) -> Shape:
    if isinstance(kind, ListType):
        return _list(kind, _choice(kind.item, holder, settings, path), settings)
    if isinstance(kind, ScalarType) and kind.kind == 'text' and not holder.constants:
        return ChoiceShape(tuple((word, word) for word in settings.choices))
    values: dict[str, Any] = {}
    for word in settings.choices:
        values.update(_constants(word, kind, holder))
    return ChoiceShape(tuple(values.items()))


def _constants(word: str, kind: FieldType, holder: MessageType) -> dict[str, Any]:
    """Return the constants that a word stands for, one or all of a prefix."""
    if word.endswith('*'):
        found = {n: v for n, v in holder.constants.items() if n.startswith(word[:-1])}
    else:
        found = {n: v for n, v in holder.constants.items() if n == word}
    if not found and isinstance(kind, ScalarType) and kind.kind == 'text':
        return {word: word}
    if not found:
        raise NoShape(f'{holder.name} has no constant {word!r}', _known(holder), 'choices')
    for name, value in found.items():
        if not suits(value, kind):
            raise NoShape(
                f'the constant {name} of {holder.name} is no {said(kind)}',
                'name constants of the kind of the field',
                'choices',
            )
    return found


def _known(holder: MessageType) -> str:
    names = ', '.join(holder.constants)
    return f'it has {names}' if names else 'it has none: write the value itself'


def suits(value: Any, kind: FieldType) -> bool:
    """Tell whether a constant is a value of a field."""
    if not isinstance(kind, ScalarType):
        return False
    match kind.kind:
        case 'boolean':
            return isinstance(value, bool)
        case 'integer':
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            return is_whole and kind.low <= value <= kind.high
        case 'float':
            return isinstance(value, int | float) and not isinstance(value, bool)
        case 'text':
            return isinstance(value, str)


def _check_units(name: str, kind: FieldType, settings: ParamSettings) -> None:
    """Refuse numbers that nothing gives a unit (AWP-UNI-001)."""
    for path, unit in settings.units.items():
        if unit != NO_UNIT and unit not in SUFFIXES:
            raise NoShape(
                f'{unit!r} is no unit',
                f'write {NO_UNIT} or one of {", ".join(SUFFIXES)}',
                'units',
            )
        if not any(_begins(number, path) for number in numbers_in(kind)):
            raise NoShape(f'no number stands at {path!r}', 'correct the path', 'units')
    for path in _numbers(kind):
        if path.strip('[]'):
            if _unit_at(settings.units, path) is None:
                raise NoShape(
                    f'nothing says the unit of {path}',
                    f'add units: {{{path}: m}}, or {NO_UNIT} (AWP-UNI-001)',
                    'units',
                )
        elif suffix_of(name) is None and not settings.unitless:
            raise NoShape(
                f'{name!r} says no unit of the number it is',
                f'let the name end in one, such as {name}_m, or write unitless: true '
                f'(AWP-UNI-001)',
            )


def _numbers(kind: FieldType, path: str = '') -> Iterator[str]:
    """Yield the numbers inside a field whose unit the field's type does not say already."""
    match kind:
        case ScalarType():
            if kind.kind == 'float':
                yield path
        case ListType():
            yield from _numbers(kind.item, f'{path}[]')
        case MessageType():
            if kind.name in (POSE_STAMPED, POSE, QUATERNION):
                return
            for name, inner in kind.fields.items():
                yield from _numbers(inner, f'{path}.{name}' if path else name)


def _scaled(shape: Shape, kind: FieldType) -> Shape:
    if not isinstance(shape, NumberShape):
        raise NoShape(
            f'a factor needs a floating point number, the field is {said(kind)}', 'remove factor'
        )
    return NumberShape()


def _bounded(shape: Shape, settings: ParamSettings) -> Shape:
    low, high = settings.minimum, settings.maximum
    if low is None and high is None:
        return shape
    if isinstance(shape, ListShape):
        return ListShape(_bounded(shape.item, settings), shape.least, shape.most)
    if isinstance(shape, NumberShape):
        low = shape.low if low is None else low
        high = shape.high if high is None else high
        _check_order(low, high)
        if not (shape.low <= low and high <= shape.high):
            raise NoShape('the bounds are wider than the field', 'narrow them', 'maximum')
        return NumberShape(float(low), float(high))
    if isinstance(shape, IntegerShape | DurationShape):
        least = shape.low if low is None else _whole(low, 'minimum')
        most = shape.high if high is None else _whole(high, 'maximum')
        _check_order(least, most)
        if not (shape.low <= least and most <= shape.high):
            raise NoShape(
                f'the bounds are wider than the field, {shape.low} to {shape.high}',
                'narrow them',
                'maximum' if most > shape.high else 'minimum',
            )
        if isinstance(shape, DurationShape):
            return DurationShape(shape.per_s, least, most)
        return IntegerShape(least, most)
    key = 'minimum' if low is not None else 'maximum'
    raise NoShape('only numbers have bounds', f'remove {key}', key)


def _check_order(low: float, high: float) -> None:
    if not low <= high:
        raise NoShape(f'nothing is between {low:g} and {high:g}', 'correct one of them', 'minimum')


def _whole(value: float, key: str) -> int:
    if value != int(value):
        raise NoShape(f'{value} is no whole number, which the field holds', 'correct it', key)
    return int(value)


def _check_use(shape: Shape, settings: ParamSettings) -> None:
    """Refuse a setting that would do nothing."""
    bare = shape.item if isinstance(shape, ListShape) else shape
    if settings.unitless and not isinstance(bare, NumberShape):
        raise NoShape('it is no number, so unitless says nothing', 'remove it', 'unitless')
    if settings.is_frame and not isinstance(shape, FrameShape):
        raise NoShape('it is not one text, so it is no frame', 'remove it', 'form')
