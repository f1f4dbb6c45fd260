"""
Owns the quick answer to "do these params fit their schema": schemas compiled once to predicates.

A validator library walks the schema anew for every value: 23 ms for a trajectory of 100 points,
on the thread that everything depends on. A predicate takes a hundredth of that. It answers yes or
no; the words for a no come from the library (:mod:`awp_ros_bridge.engine.params_faults`). A schema
with a keyword that is not known here has no predicate, and the library answers alone.
"""

from __future__ import annotations

from collections.abc import Callable
import re
from typing import Any

# What a value itself may break, without what is inside it; the cheapest to tell first.
_RULES = (
    'type',
    'minItems',
    'maxItems',
    'minLength',
    'maxLength',
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'enum',
    'const',
    'pattern',
    'uniqueItems',
    'required',
    'additionalProperties',
)

Json = dict[str, Any]
Predicate = Callable[[Any], bool]

_SILENT = frozenset({'title', 'description', 'default', 'examples', '$schema', '$comment'})
_KNOWN = _SILENT | {
    'type',
    'enum',
    'const',
    'properties',
    'required',
    'additionalProperties',
    'items',
    'minItems',
    'maxItems',
    'uniqueItems',
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'minLength',
    'maxLength',
    'pattern',
}


class _Unknown(Exception):
    """The schema says something that no predicate is made for."""


def compile_schema(schema: Json) -> Predicate | None:
    """Return a predicate for a JSON Schema (2020-12), None where a keyword is not known here."""
    try:
        return _compile(schema)
    except _Unknown:
        return None


def _is_number(value: Any) -> bool:
    return type(value) is float or type(value) is int


def _is_integer(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


_TYPES: dict[str, Predicate] = {
    'object': lambda v: type(v) is dict,
    'array': lambda v: type(v) is list,
    'string': lambda v: type(v) is str,
    'number': _is_number,
    'integer': _is_integer,
    'boolean': lambda v: type(v) is bool,
    'null': lambda v: v is None,
}


def _compile(schema: Any) -> Predicate:
    if schema is True or schema == {}:
        return lambda _: True
    if not isinstance(schema, dict) or not set(schema) <= _KNOWN:
        raise _Unknown
    checks = [
        *_type(schema),
        *_values(schema),
        *_numbers(schema),
        *_strings(schema),
        *_arrays(schema),
        *_unique(schema),
        *_objects(schema),
    ]
    if len(checks) == 1:
        return checks[0]
    return lambda v: all(check(v) for check in checks)


def _type(schema: Json) -> list[Predicate]:
    kind = schema.get('type')
    if kind is None:
        return []
    if not isinstance(kind, str) or kind not in _TYPES:
        raise _Unknown
    return [_TYPES[kind]]


def _values(schema: Json) -> list[Predicate]:
    allowed = schema.get('enum', [schema['const']] if 'const' in schema else None)
    if allowed is None:
        return []
    if 'enum' in schema and 'const' in schema:
        raise _Unknown
    if not all(isinstance(v, str) for v in allowed):
        raise _Unknown  # equality of numbers and truth values is the library's business
    words = frozenset(allowed)
    return [lambda v: type(v) is str and v in words]


def _numbers(schema: Json) -> list[Predicate]:
    low, high = schema.get('minimum'), schema.get('maximum')
    above, below = schema.get('exclusiveMinimum'), schema.get('exclusiveMaximum')
    if low is None and high is None and above is None and below is None:
        return []

    def within(value: Any) -> bool:
        if not _is_number(value):
            return True  # a bound says nothing of other kinds
        return (
            (low is None or value >= low)
            and (high is None or value <= high)
            and (above is None or value > above)
            and (below is None or value < below)
        )

    return [within]


def _strings(schema: Json) -> list[Predicate]:
    least, most = schema.get('minLength', 0), schema.get('maxLength')
    checks: list[Predicate] = []
    if least or most is not None:
        checks.append(
            lambda v: type(v) is not str or (least <= len(v) and (most is None or len(v) <= most))
        )
    if 'pattern' in schema:
        pattern = re.compile(schema['pattern'])
        checks.append(lambda v: type(v) is not str or pattern.search(v) is not None)
    return checks


def _arrays(schema: Json) -> list[Predicate]:
    least, most = schema.get('minItems', 0), schema.get('maxItems')
    items = _compile(schema['items']) if 'items' in schema else None
    if not least and most is None and items is None:
        return []

    def fits(value: Any) -> bool:
        if type(value) is not list:
            return True
        if len(value) < least or (most is not None and len(value) > most):
            return False
        return items is None or all(map(items, value))

    return [fits]


def _unique(schema: Json) -> list[Predicate]:
    if not schema.get('uniqueItems', False):
        return []
    if not _are_strings(schema.get('items')):
        raise _Unknown  # equality of numbers and truth values is the library's business

    def fits(value: Any) -> bool:
        if type(value) is not list or not all(type(v) is str for v in value):
            return True  # what is no string fails as an item
        return len(set(value)) == len(value)

    return [fits]


def _are_strings(items: Any) -> bool:
    """Whether only strings fit a schema: by its type, or because they are listed."""
    if not isinstance(items, dict):
        return False
    listed = items.get('enum', ())
    return items.get('type') == 'string' or (
        len(listed) > 0 and all(type(v) is str for v in listed)
    )


def _objects(schema: Json) -> list[Predicate]:
    names = {'properties', 'required', 'additionalProperties'}
    if not names & set(schema):
        return []
    inner = {k: _compile(v) for k, v in schema.get('properties', {}).items()}
    required = frozenset(schema.get('required', ()))
    extra = schema.get('additionalProperties', True)
    others = None if extra is False else _compile(extra)

    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return True
        if not required <= value.keys():
            return False
        for name, each in value.items():
            check = inner.get(name, others)
            if check is None or not check(each):
                return False
        return True

    return [fits]


def narrow(schema: Json, value: Any) -> tuple[list[str | int], Json, Any]:
    """
    Return the innermost place that does not fit: its path, the rule it breaks, its value.

    The value must not fit, and the schema must be one that :func:`compile_schema` knows. Only that
    place and that rule are left for the library to look at, so that words for a wrong point among
    a thousand cost no more than for one, and those for too many points no more than for none.
    """
    path: list[str | int] = []
    while True:
        inside = _misfit(schema, value)
        if inside is None:
            return path, _broken_rule(schema, value), value
        step, schema = inside
        value = value[step]
        path.append(step)


def _fits_itself(schema: Json, value: Any) -> bool:
    """Whether a value keeps what a schema says of it, whatever is inside it."""
    own = {k: v for k, v in schema.items() if k not in ('items', 'properties', 'uniqueItems')}
    if 'properties' in schema:
        own['properties'] = dict.fromkeys(schema['properties'], True)
    return _compile(own)(value) and all(check(value) for check in _unique(schema))


def _broken_rule(schema: Json, value: Any) -> Json:
    """Return the first keyword, in an order that begins with the cheapest, that does not hold."""
    for keyword in _RULES:
        if keyword in schema:
            rule = {keyword: schema[keyword]}
            whole = {'items': schema['items'], **rule} if keyword == 'uniqueItems' else rule
            if keyword == 'additionalProperties':
                rule['properties'] = dict.fromkeys(schema.get('properties', ()), True)
            if not _fits_itself(whole, value):
                return rule
    return schema


def _misfit(schema: Json, value: Any) -> tuple[str | int, Json] | None:
    """Return the member that does not fit and its schema; None where the value itself does not."""
    if not _fits_itself(schema, value):
        return None
    if type(value) is dict:
        for name, inner in schema.get('properties', {}).items():
            if name in value and not _compile(inner)(value[name]):
                return name, inner
    elif type(value) is list and 'items' in schema:
        check = _compile(schema['items'])
        for index, each in enumerate(value):
            if not check(each):
                return index, schema['items']
    return None
