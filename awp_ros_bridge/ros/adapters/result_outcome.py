"""Owns the ways to read the outcome out of a result, chosen by name; nothing is evaluated."""

from __future__ import annotations

from typing import Any

from awp_ros_bridge.config.problems import Finding, nearest
from awp_ros_bridge.manifest.field_types import FieldType, MessageType, said, ScalarType
from awp_ros_bridge.manifest.params import suits
from awp_ros_bridge.ros.adapters.base import Outcome
from awp_ros_bridge.ros.adapters.described_fields import field_problems, located, Wanted
from awp_ros_bridge.ros.adapters.generic_options import ResultOptions
from awp_ros_bridge.ros.field_path import FieldPath


class ResultOutcome:
    """
    The outcome by the configured rule; without one the status of the goal alone decides.

    :param result: description of the result; the constants beside the field name its values.
    """

    def __init__(self, options: ResultOptions, result: MessageType) -> None:
        self._options = options
        self._field = None if options.field is None else FieldPath(options.field)
        self._text = None if options.text is None else FieldPath(options.text)
        self._names: dict[Any, str] = {}
        self._good: tuple[Any, ...] = ()
        if options.field is not None:
            kind, holder = located(options.field, result)
            self._good = tuple(_value(word, kind, holder) for word in options.succeeded)
            self._names = _names(kind, holder)

    def outcome(self, result: Any) -> Outcome:
        """
        Return what the result says.

        :raises LookupError: a list is shorter than the configured path
        """
        words = str(self._text.read(result)) if self._text is not None else ''
        if self._field is None:
            return Outcome(ok=True, detail=words)
        value = self._field.read(result)
        if self._is_good(value):
            return Outcome(ok=True, detail=words)
        name = self._names.get(value)
        said_value = f'{name} ({value})' if name else f'{self._options.field} is {value}'
        return Outcome(ok=False, detail=f'{said_value}: {words}' if words else said_value)

    def _is_good(self, value: Any) -> bool:
        if self._options.succeeded:
            return any(type(value) is type(good) and value == good for good in self._good)
        low, high = self._options.at_least, self._options.at_most
        # Written as the permission, so that NaN is no success.
        return (low is None or value >= low) and (high is None or value <= high)


def _value(word: Any, kind: FieldType, holder: MessageType) -> Any:
    """Return what a word of the configuration stands for in the field."""
    if isinstance(word, str) and word in holder.constants:
        word = holder.constants[word]
    if isinstance(kind, ScalarType) and kind.kind == 'float' and not isinstance(word, bool):
        return float(word)
    return word


def _names(kind: FieldType, holder: MessageType) -> dict[Any, str]:
    """Return the constants that name values of the field; a value with two names has none."""
    names: dict[Any, list[str]] = {}
    for name, value in holder.constants.items():
        if suits(value, kind):
            names.setdefault(value, []).append(name)
    return {value: found[0] for value, found in names.items() if len(found) == 1}


def result_problems(options: ResultOptions, result: MessageType) -> list[Finding]:
    """Compare the rule with the result's description."""
    found: list[Finding] = []
    if options.text is not None:
        found += field_problems(options.text, result, 'text', ('result', 'text'))
    if options.field is None:
        return found
    wanted: Wanted = 'value' if options.succeeded else 'number'
    problems = field_problems(options.field, result, wanted, ('result', 'field'))
    if options.succeeded and not problems:
        kind, holder = located(options.field, result)
        for index, word in enumerate(options.succeeded):
            problems += _word_problems(word, index, kind, holder)
    return found + problems


def _word_problems(word: Any, index: int, kind: FieldType, holder: MessageType) -> list[Finding]:
    at = ('result', 'succeeded', index)
    is_name = isinstance(word, str) and isinstance(kind, ScalarType) and kind.kind != 'text'
    if is_name and word not in holder.constants:
        return [
            Finding(
                at,
                f'{holder.name} has no constant {word!r}',
                nearest(word, holder.constants) if holder.constants else 'write the value itself',
            )
        ]
    value = holder.constants.get(word, word) if isinstance(word, str) else word
    if not suits(value, kind):
        return [Finding(at, f'{word!r} is no {said(kind)}', 'correct it')]
    return []
