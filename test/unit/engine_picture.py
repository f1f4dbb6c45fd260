"""A picture of everything that the engine remembers, to compare before and after."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
import dataclasses
from itertools import count
from typing import Any

from awp_ros_bridge.engine.deadlines import Deadlines
from awp_ros_bridge.engine.engine import Engine
from awp_ros_bridge.engine.policy import Policy

_PLAIN = (str, int, float, bool, bytes, type(None))


class _Walk:
    """
    Visits every object that can be reached, once.

    :param hidden: objects that are passed over, with the deadlines that are theirs.
    """

    def __init__(self, hidden: tuple[object, ...]) -> None:
        self._hidden = hidden
        self._met: dict[int, object] = {}

    def lines(self, value: Any, path: str) -> Iterator[str]:
        if self._is_hidden(value):
            return
        if isinstance(value, _PLAIN):
            yield f'{path} = {value!r}'
        elif isinstance(value, Policy) or callable(value):
            yield f'{path} is {id(value)}'
        elif id(value) in self._met:
            yield f'{path} is met'
        else:
            self._met[id(value)] = value  # kept, so that no other object gets its id
            yield f'{path}: {type(value).__name__}'
            for name, inner in self._parts(value):
                yield from self.lines(inner, f'{path}.{name}')

    def _parts(self, value: Any) -> list[tuple[str, Any]]:
        if isinstance(value, Deadlines):  # what is due when; the heap may be tidied any time
            rows = [(k, at) for k, (at, _, _) in value._live.items() if not self._is_hidden(k)]
            return sorted((_name(key), at) for key, at in rows)
        if isinstance(value, dict):
            return [(_name(key), inner) for key, inner in value.items()]
        if isinstance(value, (set, frozenset)):
            return sorted(((_name(each), each) for each in value), key=lambda part: part[0])
        if isinstance(value, (list, tuple, deque)):
            return [(str(number), each) for number, each in enumerate(value)]
        if dataclasses.is_dataclass(value):
            return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
        if isinstance(value, count):
            return [('next', repr(value))]
        return sorted(vars(value).items())

    def _is_hidden(self, value: Any) -> bool:
        parts = value if isinstance(value, tuple) else (value,)
        return any(part is each for part in parts for each in self._hidden)


def _name(key: Any) -> str:
    if isinstance(key, tuple):
        return '/'.join(_name(part) for part in key)
    return str(getattr(key, 'id', key))


def picture(engine: Engine, *hidden: object) -> list[str]:
    """
    Return one line for everything that the engine remembers.

    :param hidden: objects left out, such as the session of who asks.
    """
    return list(_Walk(hidden).lines(vars(engine), 'engine'))
