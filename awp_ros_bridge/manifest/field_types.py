"""Owns the description of ROS interfaces as plain data, and the way to a field by its path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Constant = bool | int | float | str
Step = str | int


@dataclass(frozen=True, slots=True)
class ScalarType:
    """
    One value.

    :param name: what ROS calls it, such as ``uint8`` or ``double``.
    :param low, high: range of an integer.
    :param largest: greatest magnitude of a floating point number.
    :param most_bytes: longest text in bytes of UTF-8, None where it is not bounded.
    """

    kind: Literal['boolean', 'integer', 'float', 'text']
    name: str
    low: int = 0
    high: int = 0
    largest: float = 0.0
    most_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ListType:
    """
    An array or a sequence.

    :param size: its only length, None for a sequence.
    :param most: its greatest length, None where it is not bounded.
    """

    item: ScalarType | MessageType
    size: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class MessageType:
    """
    A message.

    :param name: such as ``geometry_msgs/msg/Pose``.
    :param constants: its named values, as message definitions write enumerations.
    """

    name: str
    fields: Mapping[str, FieldType] = field(default_factory=dict)
    constants: Mapping[str, Constant] = field(default_factory=dict)


FieldType = ScalarType | ListType | MessageType


class NoSuchField(LookupError):
    """
    A path that leads to no field.

    :ivar at: the part of the path that is wrong.
    :ivar known: what could stand there.
    """

    def __init__(self, at: str, what: str, known: Sequence[str] = ()) -> None:
        super().__init__(f'{at}: {what}')
        self.at = at
        self.what = what
        self.known = tuple(known)


def locate(root: MessageType, steps: Sequence[Step]) -> tuple[FieldType, MessageType]:
    """
    Return the type of a field and the message that holds it, whose constants may name its values.

    :raises NoSuchField: the path leads nowhere
    """
    kind: FieldType = root
    holder = root
    for at, step in enumerate(steps):
        here = written(steps[: at + 1])
        if isinstance(step, int):
            kind = _item(kind, step, here)
            continue
        if not isinstance(kind, MessageType):
            raise NoSuchField(here, f'{said(kind)} has no fields')
        if step not in kind.fields:
            raise NoSuchField(here, f'{kind.name} has no field {step!r}', list(kind.fields))
        holder, kind = kind, kind.fields[step]
    return kind, holder


def _item(kind: FieldType, index: int, here: str) -> FieldType:
    if not isinstance(kind, ListType):
        raise NoSuchField(here, f'{said(kind)} is no list')
    most = kind.most if kind.size is None else kind.size
    if most is not None and index >= most:
        raise NoSuchField(here, f'the list holds {most} items, counted from 0')
    return kind.item


def written(steps: Sequence[Step]) -> str:
    """Write a path as people read it: ``constraints[0].position``."""
    text = ''
    for step in steps:
        if isinstance(step, int):
            text += f'[{step}]'
        else:
            text += f'.{step}' if text else step
    return text


def said(kind: FieldType) -> str:
    """Say what a field holds."""
    match kind:
        case ScalarType():
            return kind.name
        case ListType():
            return f'a list of {said(kind.item)}'
        case MessageType():
            return kind.name


def numbers_in(kind: FieldType, path: str = '') -> Iterator[str]:
    """Yield the path of each floating point number inside a field, items of lists as ``[]``."""
    match kind:
        case ScalarType():
            if kind.kind == 'float':
                yield path
        case ListType():
            yield from numbers_in(kind.item, f'{path}[]')
        case MessageType():
            for name, inner in kind.fields.items():
                yield from numbers_in(inner, f'{path}.{name}' if path else name)
