"""Owns the syntax of a path to a message's field, such as ``status[name=arm: drive].level``."""

from __future__ import annotations

from dataclasses import dataclass
import re

_NAME = r'[a-z][a-z0-9_]*'
_STEP = re.compile(rf'({_NAME})(?:\[(?:(\d+)|({_NAME})=([^\[\]]+))\])?(\.|$)')


@dataclass(frozen=True, slots=True)
class Item:
    """The items of a list whose field ``key`` reads ``value``."""

    key: str
    value: str


Step = str | int | Item


def field_steps(text: str) -> tuple[Step, ...]:
    """
    Return the steps of a path: a field by name, a list item by index or by a key field.

    :raises ValueError: the text is no path
    """
    steps: list[Step] = []
    at = 0
    while True:
        match = _STEP.match(text, at)
        if match is None:
            raise ValueError(f'{text!r} is not a field path')
        name, index, key, value, dot = match.groups()
        steps.append(name)
        if index is not None:
            steps.append(int(index))
        elif key is not None:
            steps.append(Item(key, value))
        if not dot:
            return tuple(steps)
        at = match.end()
