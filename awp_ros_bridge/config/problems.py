"""Owns the problem as a value: where it is, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
import difflib
from enum import StrEnum
from typing import Any

from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]

_UNITS = {
    '_ms': 'ms',
    '_s': 's',
    '_hz': 'Hz',
    '_mb': 'MB',
    '_bytes': 'bytes',
    '_m': 'm',
    '_mps': 'm/s',
    '_radps': 'rad/s',
    '_n': 'N',
}
_WANTED = {
    'int_type': 'a whole number',
    'int_from_float': 'a whole number',
    'float_type': 'a number',
    'string_type': 'a text',
    'bool_type': 'true or false',
    'tuple_type': 'a list',
    'dict_type': 'a mapping',
    'model_type': 'a mapping',
    'model_attributes_type': 'a mapping',
    'union_tag_not_found': 'a mapping',
}
_LIMITS = {
    'greater_than_equal': ('ge', 'the least is {}', 'raise it'),
    'greater_than': ('gt', 'it must be more than {}', 'raise it'),
    'less_than_equal': ('le', 'the most is {}', 'lower it'),
    'less_than': ('lt', 'it must be less than {}', 'lower it'),
}


class Severity(StrEnum):
    """Whether a problem forbids the configuration."""

    ERROR = 'error'
    WARNING = 'warning'


@dataclass(frozen=True, slots=True)
class Problem:
    """
    One thing that is wrong with a file.

    :param line: line in the file, from 1; 0 where there is no file to point into.
    :param path: keys and indices that lead to the value, dotted.
    """

    file: str
    line: int
    path: str
    what: str
    todo: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = f'{self.file}:{self.line}' if self.line else self.file
        head = f'{place}: {self.path}' if self.path else place
        mark = 'warning: ' if self.severity is Severity.WARNING else ''
        return f'{head}: {mark}{self.what}; {self.todo}'


@dataclass(frozen=True, slots=True)
class Finding:
    """
    A problem before it has a file and a line.

    :param refers: path of the value that it depends on, where that is not ``path``.
    """

    path: Path
    what: str
    todo: str
    severity: Severity = Severity.ERROR
    refers: Path | None = None


def dotted(path: Sequence[str | int]) -> str:
    """Write a path as people read it: ``embodiments.arm_01.actions[0]``."""
    text = ''
    for part in path:
        if isinstance(part, int):
            text += f'[{part}]'
        else:
            name = part if part.isprintable() else repr(part)  # a problem stays on one line
            text += f'.{name}' if text else name
    return text


def unit_of(path: Path) -> str:
    """Return the unit that the last key of a path carries in its name, after a space."""
    keys = [part for part in path if isinstance(part, str)]
    key = keys[-1] if keys else ''
    for suffix, unit in _UNITS.items():
        if key.endswith(suffix):
            return f' {unit}'
    return ''


def shown(value: Any) -> str:
    """Write a value of the file as people read it, shortened."""
    match value:
        case None:
            return 'nothing'
        case bool():
            return 'true' if value else 'false'
        case str():
            return f'the text {value!r}' if len(value) <= 60 else f'the text {value[:57]!r}...'
        case int() | float():
            return f'the number {value}'
        case list() | tuple():
            return 'a list'
        case dict():
            return 'a mapping'
    return type(value).__name__


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the advice for a word nobody knows: the nearest known one, else which there are."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f'did you mean {close[0]!r}?'
    return f'known here: {", ".join(names)}' if names else 'none is known here'


def describe(error: ErrorDetails, path: Path, known: Iterable[str]) -> tuple[str, str]:
    """
    Turn a validation error into what is wrong and what to do.

    :param path: path of the value in the file, without the validator's own marks.
    :param known: keys that may stand in the mapping the path leads into.
    """
    kind, value, context = error['type'], error.get('input'), error.get('ctx', {})
    key = path[-1] if path else ''
    if kind == 'awp_refused':
        return str(context['what']), str(context['todo'])
    if kind == 'missing':
        return f'{key!r} is missing' if isinstance(
            key, str
        ) else f'item {key} is missing', 'add it'
    if kind == 'extra_forbidden':
        todo = nearest(str(key), known) if known else 'remove it, no key is known here'
        return f'unknown key {key!r}', todo
    if kind in _LIMITS:
        return _beyond(kind, value, context, unit_of(path))
    if kind in _WANTED:
        return f'expected {_WANTED[kind]}, found {shown(value)}', _conversion(kind, value)
    return _rest(kind, value, context, error['msg'])


def _beyond(kind: str, value: Any, context: dict[str, Any], unit: str) -> tuple[str, str]:
    key, sentence, todo = _LIMITS[kind]
    limit = sentence.format(_plain(context[key]))
    return f'{_plain(value)}{unit} is out of range, {limit}{unit}', todo


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _conversion(kind: str, value: Any) -> str:
    if isinstance(value, str) and kind in {'int_type', 'float_type', 'bool_type'}:
        holds_one = any(c.isdigit() for c in value) or value.lower() in {'true', 'false'}
        if not holds_one:  # such as off, none, never
            return 'write true or false' if kind == 'bool_type' else 'write a number'
        return 'write it without quotes and without a unit'
    if kind == 'string_type' and value is not None:
        return 'put it in quotes'
    return 'correct it'


def _rest(kind: str, value: Any, context: dict[str, Any], message: str) -> tuple[str, str]:
    if kind in {'literal_error', 'enum', 'union_tag_invalid'}:
        expected = str(context.get('expected', context.get('expected_tags', '')))
        words = [word.strip().strip("'") for word in expected.replace(' or ', ', ').split(',')]
        found = shown(context.get('tag', value))
        return f'expected one of {", ".join(words)}, found {found}', _choose(value, context, words)
    if kind == 'finite_number':
        return f'{value} is not a finite number', 'write a finite one'
    if kind == 'too_short':
        return 'it is empty' if not value else 'it has too few items', _items(context)
    if kind == 'too_long':
        return 'it has too many items', _items(context)
    return message, 'correct it'


def _choose(value: Any, context: dict[str, Any], words: list[str]) -> str:
    word = context.get('tag', value)
    close = difflib.get_close_matches(str(word), words, n=1)
    return f'did you mean {close[0]!r}?' if close else 'write one of them'


def _items(context: dict[str, Any]) -> str:
    least, most = context.get('min_length'), context.get('max_length')
    return f'write {least} or more' if most is None else f'write at most {most}'
