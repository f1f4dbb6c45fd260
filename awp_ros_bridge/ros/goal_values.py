"""
Owns the strict way from JSON values to ROS messages.

Nothing is guessed: an unknown field, a number of the wrong kind or range or one that is not
finite, and a list of a wrong length are refused with the path of the field. Only an integer may
stand where ROS wants a floating point number.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
import math
from typing import Any

from awp_ros_bridge.ros.interfaces import INTEGERS, LARGEST_FLOAT, load_interface


class ValueRefused(ValueError):
    """
    A JSON value that no message can be made of.

    :ivar path: the field, such as ``goal.poses[2].position.x``
    """

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f'{path}: {what}')
        self.path = path


def fill(message: Any, value: Any, path: str = 'goal') -> Any:
    """
    Fill some fields of a message, nested ones and list items too; the others keep their defaults.

    :raises ValueRefused: the first field that does not fit
    """
    if not isinstance(value, dict):
        raise ValueRefused(path, f'an object is needed, not {_say(value)}')
    kinds = dict(zip(message.get_fields_and_field_types(), message.SLOT_TYPES, strict=True))
    for name, inner in value.items():
        at = f'{path}.{name}'
        if name not in kinds:
            raise ValueRefused(at, f'unknown field{_near(name, list(kinds))}')
        kind = kinds[name]
        if hasattr(kind, 'namespaces'):
            fill(getattr(message, name), inner, at)
        elif hasattr(getattr(kind, 'value_type', None), 'namespaces'):
            setattr(message, name, _filled(kind, inner, at))
        else:
            setattr(message, name, _field(kind, inner, at))
    return message


def _filled(kind: Any, value: Any, path: str) -> list[Any]:
    """Return the messages of a list."""
    _check_length(kind, value, path)
    item = load_interface('/'.join((*kind.value_type.namespaces, kind.value_type.name)))
    return [fill(item(), each, f'{path}[{i}]') for i, each in enumerate(value)]


def _field(kind: Any, value: Any, path: str) -> Any:
    if hasattr(kind, 'value_type'):
        return _list(kind, value, path)
    if hasattr(kind, 'typename'):
        return _basic(kind.typename, value, path)
    return _text(value, path, getattr(kind, 'maximum_size', None))


def _list(kind: Any, value: Any, path: str) -> Any:
    _check_length(kind, value, path)
    return [_field(kind.value_type, item, f'{path}[{i}]') for i, item in enumerate(value)]


def _check_length(kind: Any, value: Any, path: str) -> None:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ValueRefused(path, f'a list is needed, not {_say(value)}')
    size, most = getattr(kind, 'size', None), getattr(kind, 'maximum_size', None)
    if size is not None and len(value) != size:
        raise ValueRefused(path, f'{size} items are needed, not {len(value)}')
    if most is not None and len(value) > most:
        raise ValueRefused(path, f'{most} items at most, not {len(value)}')


def _basic(name: str, value: Any, path: str) -> Any:
    if name == 'boolean':
        if not isinstance(value, bool):
            raise ValueRefused(path, f'true or false is needed, not {_say(value)}')
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueRefused(path, f'a number is needed, not {_say(value)}')
    if name in LARGEST_FLOAT:
        return _float(name, value, path)
    low, high = INTEGERS[name]
    if not isinstance(value, int):
        raise ValueRefused(path, f'an integer is needed, not {_say(value)}')
    if not low <= value <= high:
        raise ValueRefused(path, f'{value} is outside the range {low} to {high} of {name}')
    return bytes((value,)) if name == 'octet' else value


def _float(name: str, value: float, path: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueRefused(path, f'a finite number is needed, not {number}')
    if abs(number) > LARGEST_FLOAT[name]:
        raise ValueRefused(path, f'{value} is outside the range of {name}')
    return number


def _text(value: Any, path: str, most: int | None) -> str:
    if not isinstance(value, str):
        raise ValueRefused(path, f'a text is needed, not {_say(value)}')
    if most is not None and len(value.encode()) > most:
        raise ValueRefused(path, f'{most} bytes at most, not {len(value.encode())}')
    return value


def _say(value: Any) -> str:
    if value is None:
        return 'null'
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, dict):
        return 'an object'
    if isinstance(value, list | tuple):
        return 'a list'
    text = repr(value)
    return text if len(text) <= 40 else f'{text[:37]}...'


def _near(key: str, fields: list[str]) -> str:
    near = get_close_matches(key, fields, n=1)
    return f'; did you mean {near[0]}?' if near else f'; there are {", ".join(fields)}'
