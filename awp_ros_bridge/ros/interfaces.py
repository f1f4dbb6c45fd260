"""Owns ROS interface types by name: finding them, saying what is missing, describing fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
import os
import re
from typing import Any

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
    return (
        f'{name} is not available: package {package!r} is neither installed nor sourced; install '
        f'{debian}, or source the workspace that has it, and start again'
    )
