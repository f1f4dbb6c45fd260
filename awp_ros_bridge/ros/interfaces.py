"""Owns ROS interface types by name: finding them, saying what is missing, describing fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
import math
import os
from pathlib import Path
import re
from typing import Any

from awp_ros_bridge.manifest.field_types import (
    Constant,
    FieldType,
    ListType,
    MessageType,
    ScalarType,
)

_CONSTANT = re.compile(r'^[A-Z][A-Z0-9_]*$')
_NAME = re.compile(r'^([a-z][a-z0-9_]*)/(msg|srv|action)/([A-Z][A-Za-z0-9]*)$')


class InterfaceMissing(ValueError):
    """A type that this installation does not have, with what to install or source."""


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """
    One field of a message.

    :param path: names from the message down, divided by dots; ``[]`` marks the items of a list.
    :param type: the ROS type of the field, such as ``double`` or ``geometry_msgs/Point``.
    """

    path: str
    type: str


@cache
def load_interface(name: str) -> Any:
    """
    Return the Python class of a type such as ``control_msgs/action/FollowJointTrajectory``.

    :raises InterfaceMissing: the name has another form, or its package or type is not here
    """
    match = _NAME.match(name)
    if match is None:
        raise InterfaceMissing(
            f'{name!r} names no ROS type; write package/msg/Name, such as '
            f'sensor_msgs/msg/JointState'
        )
    package, kind, type_name = match.groups()
    try:
        module = import_module(f'{package}.{kind}')
    except ImportError as error:
        raise InterfaceMissing(_missing(name, package, kind, error)) from error
    found = getattr(module, type_name, None)
    if found is None:
        names = sorted(n for n in vars(module) if n[:1].isupper() and '_' not in n)
        near = get_close_matches(type_name, names, n=1)
        hint = f'; did you mean {near[0]}?' if near else f'; it has {", ".join(names)}'
        raise InterfaceMissing(f'package {package!r} has no {kind} {type_name!r}{hint}')
    return found


def describe(message_type: Any) -> Iterator[FieldDescription]:
    """Describe every field of a message class, nested ones below their parent."""
    yield from _fields(message_type, '')


def _fields(message_type: Any, prefix: str) -> Iterator[FieldDescription]:
    for field, type_name in message_type.get_fields_and_field_types().items():
        path = f'{prefix}{field}'
        yield FieldDescription(path, type_name)
        item, is_list = list_item(type_name)
        if '/' in item:
            package, name = item.split('/')
            nested = load_interface(f'{package}/msg/{name}')
            yield from _fields(nested, f'{path}[].' if is_list else f'{path}.')


INTEGERS = {
    'int8': (-(2**7), 2**7 - 1),
    'uint8': (0, 2**8 - 1),
    'char': (0, 2**8 - 1),
    'octet': (0, 2**8 - 1),
    'int16': (-(2**15), 2**15 - 1),
    'uint16': (0, 2**16 - 1),
    'int32': (-(2**31), 2**31 - 1),
    'uint32': (0, 2**32 - 1),
    'int64': (-(2**63), 2**63 - 1),
    'uint64': (0, 2**64 - 1),
}
LARGEST_FLOAT = {'float': 3.4028234663852886e38, 'double': math.inf}
PLACEHOLDER = 'structure_needs_at_least_one_member'  # what rosidl puts into an empty message


@cache
def message_type(message_class: Any) -> MessageType:
    """
    Describe a message class as plain data: fields, ranges, lengths, constants.

    :raises InterfaceMissing: the type of a field is not installed
    """
    names = message_class.get_fields_and_field_types()
    package, kind = message_class.__module__.split('.')[:2]
    return MessageType(
        name=f'{package}/{kind}/{message_class.__name__}',
        fields={
            name: _field_type(slot)
            for name, slot in zip(names, message_class.SLOT_TYPES, strict=True)
            if name != PLACEHOLDER
        },
        constants=_constants(message_class),
    )


def _constants(message_class: Any) -> dict[str, Constant]:
    found: dict[str, Constant] = {}
    for name, value in vars(message_class).items():
        if not _CONSTANT.match(name) or name.endswith('__DEFAULT'):
            continue
        if isinstance(value, bytes) and len(value) == 1:
            found[name] = value[0]
        elif isinstance(value, bool | int | float | str):
            found[name] = value
    return found


def _field_type(slot: Any) -> FieldType:
    if hasattr(slot, 'value_type'):
        item = _field_type(slot.value_type)
        assert not isinstance(item, ListType)  # IDL has no lists of lists
        return ListType(item, getattr(slot, 'size', None), getattr(slot, 'maximum_size', None))
    if hasattr(slot, 'namespaces'):
        return message_type(load_interface('/'.join((*slot.namespaces, slot.name))))
    if not hasattr(slot, 'typename'):
        return ScalarType('text', 'string', most_bytes=getattr(slot, 'maximum_size', None))
    name = slot.typename
    if name in INTEGERS:
        low, high = INTEGERS[name]
        return ScalarType('integer', name, low=low, high=high)
    if name in LARGEST_FLOAT:
        return ScalarType('float', name, largest=LARGEST_FLOAT[name])
    return ScalarType('boolean', name)


def list_item(type_name: str) -> tuple[str, bool]:
    """Return the type of the items of a field, and whether it is a list of them."""
    if type_name.startswith('sequence<'):
        return type_name[len('sequence<') : -1].partition(',')[0].strip(), True
    item, bracket, _ = type_name.partition('[')
    return item, bool(bracket)


def _missing(name: str, package: str, kind: str, error: ImportError) -> str:
    if error.name not in (package, f'{package}.{kind}'):
        return f'{name} cannot be loaded: {error}'
    if error.name == f'{package}.{kind}':
        return f'package {package!r} has no {kind} types, so there is no {name}'
    distribution = os.environ.get('ROS_DISTRO') or '<distribution>'
    debian = f'ros-{distribution}-{package.replace("_", "-")}'
    near = get_close_matches(package, _interface_packages(), n=1, cutoff=0.8)
    asked = f'did you mean {near[0]}? Else ' if near else ''
    return (
        f'{name} is not available: package {package!r} is neither installed nor sourced; {asked}'
        f'install {debian}, or source the workspace that has it, and start again'
    )


def _interface_packages() -> list[str]:
    """Return the packages with interfaces that are installed or sourced, by the ament index."""
    names: set[str] = set()
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        index = Path(prefix, 'share', 'ament_index', 'resource_index', 'rosidl_interfaces')
        if prefix and index.is_dir():
            names.update(each.name for each in index.iterdir())
    return sorted(names)
