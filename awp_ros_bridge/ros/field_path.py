"""Owns the reading of a message's field by its configured path, such as ``status[0].level``."""

from __future__ import annotations

import re
from typing import Any

_STEP = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)((?:\[\d+\])*)')


class FieldPath:
    """
    A path parsed once.

    :raises ValueError: the text is no path
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps: list[str | int] = []
        for part in text.split('.'):
            match = _STEP.fullmatch(part)
            if match is None:
                raise ValueError(f'{text!r} is not a field path: {part!r}')
            self._steps.append(match[1])
            self._steps.extend(int(index) for index in re.findall(r'\d+', match[2]))

    def read(self, message: Any) -> Any:
        """
        Return the field as a plain Python value; a byte becomes its number.

        :raises AttributeError: the message has no such field
        :raises IndexError: the list is shorter
        """
        value = message
        for step in self._steps:
            value = value[step] if isinstance(step, int) else getattr(value, step)
        if isinstance(value, bytes) and len(value) == 1:
            return value[0]
        return value.item() if hasattr(value, 'item') else value
