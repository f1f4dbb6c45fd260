"""Owns the reading of a message's field by its configured path, such as ``status[0].level``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from awp_ros_bridge.config.field_path import field_steps, Item, Step


class ItemMissing(LookupError):
    """A list has no item of the wanted name."""


class FieldPath:
    """
    A path parsed once.

    :raises ValueError: the text is no path
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps = field_steps(text)

    def read(self, message: Any) -> Any:
        """
        Return the field as a plain Python value; a byte becomes its number.

        Where a key addresses several items, the first counts.

        :raises AttributeError: the message has no such field
        :raises LookupError: the list is shorter, or has no such item
        """
        return next(self.read_all(message))

    def read_all(self, message: Any) -> Iterator[Any]:
        """
        Yield the field of every item that the path addresses, one at least.

        :raises AttributeError: the message has no such field
        :raises LookupError: the list is shorter
        :raises ItemMissing: no item has the key that the path names
        """
        return map(_plain, _walk(message, self._steps))


def _walk(value: Any, steps: Sequence[Step]) -> Iterator[Any]:
    for at, step in enumerate(steps):
        if isinstance(step, Item):
            found = [each for each in value if str(getattr(each, step.key)) == step.value]
            if not found:
                raise ItemMissing(f'there is no item with {step.key} {step.value!r}')
            for each in found:
                yield from _walk(each, steps[at + 1 :])
            return
        value = value[step] if isinstance(step, int) else getattr(value, step)
    yield value


def _plain(value: Any) -> Any:
    if isinstance(value, bytes) and len(value) == 1:
        return value[0]
    return value.item() if hasattr(value, 'item') else value
