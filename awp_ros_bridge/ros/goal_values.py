"""
Owns the strict way from JSON values to ROS messages.

Nothing is guessed: an unknown field, a missing field, a number of the wrong kind or range, and a
number that is not finite are refused with the path of the field. Only an integer may stand where
ROS wants a floating point number.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
import math
from typing import Any

from awp_ros_bridge.ros.interfaces import load_interface

_INTEGERS = {
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
_LARGEST_FLOAT = {'float': 3.4028234663852886e38, 'double': math.inf}


class ValueRefused(ValueError):
    """
    A JSON value that no message can be made of.

    :ivar path: the field, such as ``goal.poses[2].position.x``
    """

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f'{path}: {what}')
        self.path = path


def to_message(message_type: Any, value: Any, path: str = 'goal') -> Any:
    """
    Make a message of a JSON object.

    :param message_type: the class of the message
    :param path: name of the value in what is refused
    :raises ValueRefused: the first field that does not fit
    """
    if not isinstance(value, dict):
        raise ValueRefused(path, f'an object is needed, not {_say(value)}')
    fields = message_type.get_fields_and_field_types()
    for key in value:
        if key not in fields:
            raise ValueRefused(f'{path}.{key}', f'unknown field{_near(key, list(fields))}')
    message = message_type()
    for field, kind in zip(fields, message_type.SLOT_TYPES, strict=True):
        at = f'{path}.{field}'
        if field not in value:
            if field == 'structure_needs_at_least_one_member':
                continue
            raise ValueRefused(at, f'missing; {message_type.__name__} needs it')
        setattr(message, field, _field(kind, value[field], at))
    return message


def _field(kind: Any, value: Any, path: str) -> Any:
    if hasattr(kind, 'value_type'):
        return _list(kind, value, path)
    if hasattr(kind, 'namespaces'):
        nested = load_interface('/'.join((*kind.namespaces, kind.name)))
        return to_message(nested, value, path)
    if hasattr(kind, 'typename'):
        return _basic(kind.typename, value, path)
    return _text(value, path, getattr(kind, 'maximum_size', None))


def _list(kind: Any, value: Any, path: str) -> Any:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ValueRefused(path, f'a list is needed, not {_say(value)}')
    size, most = getattr(kind, 'size', None), getattr(kind, 'maximum_size', None)
    if size is not None and len(value) != size:
        raise ValueRefused(path, f'{size} items are needed, not {len(value)}')
    if most is not None and len(value) > most:
        raise ValueRefused(path, f'{most} items at most, not {len(value)}')
    return [_field(kind.value_type, item, f'{path}[{i}]') for i, item in enumerate(value)]


def _basic(name: str, value: Any, path: str) -> Any:
    if name == 'boolean':
        if not isinstance(value, bool):
            raise ValueRefused(path, f'true or false is needed, not {_say(value)}')
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueRefused(path, f'a number is needed, not {_say(value)}')
    if name in _LARGEST_FLOAT:
        return _float(name, value, path)
    low, high = _INTEGERS[name]
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
    if abs(number) > _LARGEST_FLOAT[name]:
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
