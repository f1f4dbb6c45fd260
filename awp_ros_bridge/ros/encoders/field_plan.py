"""
Owns the plan by which a message of any type becomes JSON: made once of its field description.

A path names a field from the message down; the items of a list have the path of the list. Vectors,
points and quaternions of geometry_msgs become arrays, a Pose or Transform becomes ``p_m`` and
``q``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from awp_ros_bridge.config.units import CONVERSIONS, NO_UNIT
from awp_ros_bridge.ros.encoders.values import (
    about,
    closed,
    EXTENDED,
    extended,
    extended_list,
    FRAME,
    POSITION,
    position,
    ROTATION,
    rotation,
)
from awp_ros_bridge.ros.interfaces import list_item, load_interface

Json = dict[str, Any]
FrameOf = Callable[[str, str], str]
Read = Callable[[Any, str, FrameOf], Any]
"""Value, its path for messages about it, and what finds AWP frames."""

_INTEGERS = ('int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64')
_FLOATS = ('float', 'double')
_BYTES = ('uint8', 'octet')
_MAX_SAFE_INT = 2**53 - 1
_RESERVED = ('tick', 'ts_sim_ns', 'ts_send_ns')  # AWP-DAT-007

_XYZ = ('geometry_msgs/Vector3', 'geometry_msgs/Point', 'geometry_msgs/Point32')
_POSES = {
    'geometry_msgs/Pose': ('position', 'orientation'),
    'geometry_msgs/Transform': ('translation', 'rotation'),
}
_GEOMETRY = (*_XYZ, *_POSES, 'geometry_msgs/Quaternion')

#: Units below a field of a known type; the first that fits counts.
KNOWN_UNITS: dict[str, dict[str, str]] = {
    'geometry_msgs/Point': {'': 'm'},
    'geometry_msgs/Point32': {'': 'm'},
    'geometry_msgs/Quaternion': {'': NO_UNIT},
    'geometry_msgs/Twist': {'linear': 'mps', 'angular': 'radps'},
    'geometry_msgs/Accel': {'linear': 'mps2', 'angular': 'radps2'},
    'geometry_msgs/Wrench': {'force': 'n', 'torque': 'nm'},
    'geometry_msgs/Pose2D': {'x': 'm', 'y': 'm', 'theta': 'rad'},
    'geometry_msgs/PoseWithCovariance': {'covariance': NO_UNIT},
    'geometry_msgs/TwistWithCovariance': {'covariance': NO_UNIT},
    'geometry_msgs/AccelWithCovariance': {'covariance': NO_UNIT},
}


@dataclass(slots=True)
class Plan:
    """
    How messages of one type become JSON.

    :ivar missing: paths of numbers without a unit.
    :ivar unused: configured paths that lead to no number.
    :ivar numbers: paths of all numbers that may have a unit.
    :ivar doubles: names that two fields would have.
    :ivar has_geometry: positions, rotations or vectors are among the fields.
    :ivar may_be_large: lists of numbers without a bound are among the fields.
    """

    read: Read = lambda value, path, frame_of: {}
    schema: Json = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    doubles: list[str] = field(default_factory=list)
    has_geometry: bool = False
    may_be_large: bool = False


def planned(message_type: Any, units: Mapping[str, str]) -> Plan:
    """
    Make the plan of a type.

    :param units: unit by path, as configured
    """
    maker = _Maker(units)
    maker.plan.has_geometry = _name_of(message_type) in _GEOMETRY or _holds_geometry(message_type)
    maker.plan.read, maker.plan.schema = maker.message(message_type, '', _of_root(message_type))
    maker.plan.unused = [path for path in units if path not in maker.used]
    return maker.plan


def _name_of(message_type: Any) -> str:
    """Return the name of a type as field descriptions write it."""
    package = message_type.__module__.partition('.')[0]
    return f'{package}/{message_type.__name__}'


def _of_root(message_type: Any) -> dict[str, str]:
    """Return the units that are known of a type itself."""
    units = dict(KNOWN_UNITS.get(_name_of(message_type), {}))
    unit = units.pop('', None)
    if unit is not None:
        units = dict.fromkeys(message_type.get_fields_and_field_types(), unit)
    return units


def _holds_geometry(message_type: Any) -> bool:
    for type_name in message_type.get_fields_and_field_types().values():
        item, _ = list_item(type_name)
        if item in _GEOMETRY or ('/' in item and _holds_geometry(_load(item))):
            return True
    return False


def _load(item: str) -> Any:
    package, name = item.split('/')
    return load_interface(f'{package}/msg/{name}')


class _Maker:
    """Walks a type once and makes a reader and a schema for each field."""

    def __init__(self, units: Mapping[str, str]) -> None:
        self.plan = Plan()
        self.used: set[str] = set()
        self._units = units

    def message(self, message_type: Any, path: str, known: Mapping[str, str]) -> tuple[Read, Json]:
        """
        Make the reader of a message.

        :param known: units that the type of an enclosing field gives, by path from the root
        """
        steps: list[tuple[str, str, Read]] = []
        properties: Json = {}
        is_root = not path
        for name, type_name in message_type.get_fields_and_field_types().items():
            if name == 'structure_needs_at_least_one_member':  # of a message without fields
                continue
            inner = f'{path}.{name}' if path else name
            if type_name == 'std_msgs/Header':
                self._header(name, is_root, steps, properties)
                continue
            written, read, schema = self._field(name, type_name, inner, known)
            if written in _RESERVED:
                written = f'ros_{written}'
            if written in properties:
                self.plan.doubles.append(written)
            properties[written] = schema
            steps.append((name, written, read))
        return _reader_of(steps), closed(properties, str(message_type.__name__))

    def _header(
        self, name: str, is_root: bool, steps: list[tuple[str, str, Read]], properties: Json
    ) -> None:
        """Keep the frame of what is placed somewhere; the time of the root is the capture time."""
        if self.plan.has_geometry:
            steps.append((name, 'frame', _frame))
            properties['frame'] = FRAME
        if not is_root:
            steps.append((name, 'stamp_s', _header_stamp))
            properties['stamp_s'] = {'type': 'number', 'description': 'ROS time'}

    def _field(
        self, name: str, type_name: str, path: str, known: Mapping[str, str]
    ) -> tuple[str, Read, Json]:
        item, is_list = list_item(type_name)
        is_unbounded = type_name.startswith('sequence<') and ',' not in type_name
        self.plan.may_be_large |= is_unbounded and item in (*_INTEGERS, *_FLOATS, *_BYTES)
        if is_list and item in _BYTES:
            schema: Json = {'type': 'string', 'contentEncoding': 'base64'}
            return f'{name}_b64', _base64, schema
        if item in _INTEGERS or item in _FLOATS:
            return self._number(name, item, is_list, path, known)
        suffix, read, schema = self._item(item, path, known)
        if is_list:
            read, schema = _list_of(read), {'type': 'array', 'items': schema}
        return name + suffix, read, schema

    def _item(self, item: str, path: str, known: Mapping[str, str]) -> tuple[str, Read, Json]:
        """Give the end of the name, the reader and the schema of a value that is no number."""
        if item == 'boolean':
            return '', _as_it_is, {'type': 'boolean'}
        if item == 'octet':
            return '', _byte, {'type': 'integer', 'minimum': 0, 'maximum': 255}
        if item in ('builtin_interfaces/Time', 'builtin_interfaces/Duration'):
            return '_s', _seconds, {'type': 'number'}
        if item == 'geometry_msgs/Quaternion':
            return '_q', _rotation, ROTATION
        if item in _POSES:
            return '', *_pose(*_POSES[item])
        if item in _XYZ:
            return self._vector(item, path, known)
        if '/' in item:
            inner = {**known, **_below(path, item)}
            return '', *self.message(_load(item), path, inner)
        return '', _as_it_is, {'type': 'string'}

    def _vector(self, item: str, path: str, known: Mapping[str, str]) -> tuple[str, Read, Json]:
        unit = self._unit(path, {**known, **_below(path, item)})
        suffix, factor, offset = _conversion(unit)
        schema = about({'type': 'array', 'items': EXTENDED}, 'x, y, z')
        schema |= {'minItems': 3, 'maxItems': 3}
        one = _float_reader('float' if item.endswith('32') else 'double', factor, offset, False)

        def read(value: Any, path: str, frame_of: FrameOf) -> Any:
            return [one(v, path, frame_of) for v in (value.x, value.y, value.z)]

        return suffix, read, schema

    def _number(
        self, name: str, item: str, is_list: bool, path: str, known: Mapping[str, str]
    ) -> tuple[str, Read, Json]:
        suffix, factor, offset = _conversion(self._unit(path, known))
        is_converted = factor != 1 or bool(offset)
        if item in _FLOATS or is_converted:
            schema, read = EXTENDED, _float_reader(item, factor, offset, is_list)
        else:
            schema, read = _integer(item, is_list)
        if is_list:
            schema = {'type': 'array', 'items': schema}
        return name + suffix, read, schema

    def _unit(self, path: str, known: Mapping[str, str]) -> str:
        """Find the unit of a number: what is configured nearest to it, else what is known."""
        self.plan.numbers.append(path)
        for source in (self._units, known):
            place = path
            while place:
                if place in source:
                    self.used.add(place)
                    return source[place]
                place = place.rpartition('.')[0]
        self.plan.missing.append(path)
        return NO_UNIT


def _below(path: str, item: str) -> dict[str, str]:
    units = KNOWN_UNITS.get(item, {})
    return {f'{path}.{name}' if name else path: unit for name, unit in units.items()}


def _conversion(unit: str) -> tuple[str, float, float]:
    """Return the suffix of a name, and the factor and offset of its values."""
    if unit == NO_UNIT:
        return '', 1, 0
    if unit in CONVERSIONS:
        suffix, factor, offset = CONVERSIONS[unit]
        return '' if suffix == NO_UNIT else f'_{suffix}', factor, offset
    return f'_{unit}', 1, 0


# ---------------------------------------------------------------- readers


def _reader_of(steps: list[tuple[str, str, Read]]) -> Read:
    def read(value: Any, path: str, frame_of: FrameOf) -> Json:
        here = f'{path}.' if path else ''
        return {
            written: step(getattr(value, name), f'{here}{name}', frame_of)
            for name, written, step in steps
        }

    return read


def _list_of(item: Read) -> Read:
    def read(value: Any, path: str, frame_of: FrameOf) -> list[Any]:
        return [item(each, f'{path}[{i}]', frame_of) for i, each in enumerate(value)]

    return read


def _pose(place: str, turn: str) -> tuple[Read, Json]:
    def read(value: Any, path: str, frame_of: FrameOf) -> Json:
        return {
            'p_m': position(getattr(value, place), f'{path}.{place}'),
            'q': rotation(getattr(value, turn), f'{path}.{turn}'),
        }

    return read, closed({'p_m': POSITION, 'q': ROTATION}, 'a pose')


def _float_reader(item: str, factor: float, offset: float, is_list: bool) -> Read:
    is_converted = factor != 1 or bool(offset)
    is_single = item == 'float' and not is_converted

    def read_list(value: Any, path: str, frame_of: FrameOf) -> Any:
        if is_converted:
            value = np.asarray(value, 'f8') * factor + offset
        return extended_list(value)

    def read(value: Any, path: str, frame_of: FrameOf) -> Any:
        return extended(value * factor + offset if is_converted else value, is_single)

    return read_list if is_list else read


def _integer(item: str, is_list: bool) -> tuple[Json, Read]:
    """
    Give schema and reader.

    Beyond ±(2^53-1) an integer is a text: not all readers of JSON count so far (AWP-CTL-009).
    """
    schema: Json = {'type': 'integer'}
    if not item.endswith('64'):
        return schema, _plain_list if is_list else _as_it_is
    schema = {'type': ['integer', 'string'], 'pattern': '^-?[0-9]+$'}
    return schema, _list_of(_safe_integer) if is_list else _safe_integer


def _safe_integer(value: int, path: str, frame_of: FrameOf) -> int | str:
    number = int(value)
    return number if -_MAX_SAFE_INT <= number <= _MAX_SAFE_INT else str(number)


def _plain_list(value: Any, path: str, frame_of: FrameOf) -> list[int]:
    found: list[int] = value.tolist() if hasattr(value, 'tolist') else list(value)
    return found


def _as_it_is(value: Any, path: str, frame_of: FrameOf) -> Any:
    return value


def _byte(value: bytes, path: str, frame_of: FrameOf) -> int:
    return value[0]


def _base64(value: Any, path: str, frame_of: FrameOf) -> str:
    is_listed = isinstance(value, list)  # of single bytes
    data = b''.join(value) if is_listed else bytes(value)
    return base64.b64encode(data).decode()


def _seconds(value: Any, path: str, frame_of: FrameOf) -> float:
    return float(value.sec + value.nanosec * 1e-9)


def _header_stamp(value: Any, path: str, frame_of: FrameOf) -> float:
    return _seconds(value.stamp, path, frame_of)


def _frame(value: Any, path: str, frame_of: FrameOf) -> str:
    return frame_of(value.frame_id, f'{path}.frame_id')


def _rotation(value: Any, path: str, frame_of: FrameOf) -> list[float]:
    return rotation(value, path)
