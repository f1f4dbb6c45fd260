"""Owns the words for params that fail their type's schema: path, value, rule (AWP-ACT-002)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
import json
from typing import Any

from jsonschema import ValidationError

SHOWN_CHARS = 80
SHOWN_NAMES = 12

_TYPES = {
    'object': 'an object',
    'array': 'an array',
    'string': 'a string',
    'number': 'a number',
    'integer': 'an integer',
    'boolean': 'true or false',
    'null': 'null',
}
_RULES: dict[str, Callable[[Any], str]] = {
    'type': lambda kind: f'must be {_TYPES.get(kind, kind)}',
    'enum': lambda values: f'must be one of {_listed(map(_shown, values))}',
    'const': lambda value: f'must be {_shown(value)}',
    'minimum': lambda bound: f'must be {bound:g} or more',
    'maximum': lambda bound: f'must be {bound:g} or less',
    'exclusiveMinimum': lambda bound: f'must be greater than {bound:g}',
    'exclusiveMaximum': lambda bound: f'must be less than {bound:g}',
    'minLength': lambda size: f'must have at least {size} characters',
    'maxLength': lambda size: f'must have at most {size} characters',
    'pattern': lambda pattern: f'must match {pattern}',
    'minItems': lambda size: f'must have at least {size} items',
    'maxItems': lambda size: f'must have at most {size} items',
    'uniqueItems': lambda _: 'must not name anything twice',
}


def describe(error: ValidationError) -> str:
    """Say which field is wrong, what it is, and what it must be; bounded in length."""
    path = _path(error.absolute_path)
    value: Any = error.instance
    rule: Any = error.validator_value
    schema: Any = error.schema
    match error.validator:
        case 'required':
            missing = [name for name in rule if name not in value]
            return '; '.join(f'{path}.{name} is missing' for name in missing)
        case 'additionalProperties':
            known = sorted(schema.get('properties', ()))
            unknown = next(name for name in value if name not in known)
            there = f'there are {_listed(known)}' if known else 'it has no fields'
            return f'{path}.{_cut(unknown, 40)} is not known; {there}'
        case 'minItems' | 'maxItems':
            return f'{path} has {len(value)} items: {_RULES[error.validator](rule)}'
        case str(name) if name in _RULES:
            return f'{path} is {_shown(value)}: {_RULES[name](rule)}'
    return f'{path} is {_shown(value)}: {_cut(error.message, 2 * SHOWN_CHARS)}'


def _path(parts: Iterable[str | int]) -> str:
    path = 'params'
    for part in parts:
        path += f'[{part}]' if isinstance(part, int) else f'.{_cut(part, 40)}'
    return path


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return 'an object'
    if isinstance(value, list) and len(value) > SHOWN_CHARS:
        return f'an array of {len(value)} items'
    return _cut(json.dumps(value), SHOWN_CHARS)


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f' and {len(found) - SHOWN_NAMES} more' if len(found) > SHOWN_NAMES else ''
    return ', '.join(found[:SHOWN_NAMES]) + more


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f'{text[: most - 3]}...'
