"""What the detail of a refusal says about params that fail their schema."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
import pytest

from awp_ros_bridge.engine.params_faults import describe

NUMBER: dict[str, Any] = {'type': 'number'}


def said(schema: dict[str, Any], params: Any) -> str:
    error = best_match(Draft202012Validator(schema).iter_errors(params))
    assert error is not None
    return describe(error)


def fields(**properties: Any) -> dict[str, Any]:
    return {
        'type': 'object',
        'properties': properties,
        'required': list(properties),
        'additionalProperties': False,
    }


@pytest.mark.parametrize(
    ('schema', 'params', 'detail'),
    [
        (fields(a=NUMBER, b=NUMBER), {}, 'params.a is missing; params.b is missing'),
        (fields(a=NUMBER), {'a': 1, 'c': 2}, 'params.c is not known; there are a'),
        (fields(), {'c': 2}, 'params.c is not known; it has no fields'),
        (fields(a=NUMBER), {'a': True}, 'params.a is true: must be a number'),
        (fields(a=NUMBER), {'a': None}, 'params.a is null: must be a number'),
        (fields(a=NUMBER), {'a': {}}, 'params.a is an object: must be a number'),
        (
            fields(a={'type': 'array', 'items': NUMBER}),
            {'a': [1, 'x']},
            'params.a[1] is "x": must be a number',
        ),
        (fields(a={'enum': ['x', 'y']}), {'a': 'z'}, 'params.a is "z": must be one of "x", "y"'),
        (fields(a={'const': 1}), {'a': 2}, 'params.a is 2: must be 1'),
        (fields(a={'minimum': 0.5}), {'a': 0}, 'params.a is 0: must be 0.5 or more'),
        (fields(a={'maximum': 2}), {'a': 3}, 'params.a is 3: must be 2 or less'),
        (fields(a={'exclusiveMinimum': 0}), {'a': 0}, 'params.a is 0: must be greater than 0'),
        (fields(a={'exclusiveMaximum': 0}), {'a': 0}, 'params.a is 0: must be less than 0'),
        (fields(a={'minLength': 1}), {'a': ''}, 'params.a is "": must have at least 1 characters'),
        (fields(a={'pattern': '^x'}), {'a': 'y'}, 'params.a is "y": must match ^x'),
        (fields(a={'minItems': 1}), {'a': []}, 'params.a has 0 items: must have at least 1 items'),
        (
            fields(a={'maxItems': 1}),
            {'a': [1, 2]},
            'params.a has 2 items: must have at most 1 items',
        ),
        (
            fields(a={'uniqueItems': True}),
            {'a': [1, 1]},
            'params.a is [1, 1]: must not name anything twice',
        ),
        (
            fields(a={'multipleOf': 2}),
            {'a': 3},
            'params.a is 3: 3 is not a multiple of 2',
        ),
    ],
)
def test_the_detail_names_field_value_and_rule(
    schema: dict[str, Any], params: Any, detail: str
) -> None:
    assert said(schema, params) == detail


@pytest.mark.parametrize(
    ('schema', 'params', 'ending'),
    [
        (fields(a={'maxLength': 5}), {'a': 'f' * 500_000}, 'must have at most 5 characters'),
        (fields(a={'maxItems': 5}), {'a': [0] * 100_000}, 'must have at most 5 items'),
        (fields(a={'uniqueItems': True}), {'a': [0] * 100}, 'must not name anything twice'),
        (fields(a={'enum': [f'n{n}' for n in range(999)]}), {'a': 'x'}, 'and 987 more'),
        (fields(a=NUMBER), {'a': 1, 'f' * 10_000: 2}, 'there are a'),
    ],
)
def test_a_huge_value_does_not_hide_the_rule(
    schema: dict[str, Any], params: Any, ending: str
) -> None:
    detail = said(schema, params)
    assert detail.endswith(ending)
    assert len(detail) < 300
