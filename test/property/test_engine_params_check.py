"""The compiled predicates say what the validator library says, on every kind of value."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
import pytest

from awp_ros_bridge.engine.params_check import compile_schema, narrow
from awp_ros_bridge.ros.adapters.registry import infos

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-3, 3, allow_nan=False)
    | st.sampled_from(['', 'a', 'ab', 'lin', 'ptp', 'base'])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(['a', 'b', 'c']), inner, max_size=3),
    max_leaves=12,
)


@st.composite
def words(draw: st.DrawFn) -> dict[str, Any]:
    return draw(
        st.sampled_from(
            [
                {'pattern': '^a'},
                {'pattern': 'b$'},
                {'enum': ['a', 'lin']},
                {'const': 'ptp'},
                {'items': {'type': 'string'}, 'uniqueItems': True},
            ]
        )
    )


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    out: dict[str, Any] = draw(words()) if draw(st.integers(0, 4)) == 0 else {}
    if 'uniqueItems' in out:
        return out
    if draw(st.booleans()):
        kinds = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']
        out['type'] = draw(st.sampled_from(kinds))
    for key in ('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'):
        if draw(st.integers(0, 5)) == 0:
            out[key] = draw(st.integers(-2, 2))
    for key in ('minItems', 'maxItems', 'minLength', 'maxLength'):
        if draw(st.integers(0, 5)) == 0:
            out[key] = draw(st.integers(0, 3))
    if depth and draw(st.booleans()):
        out['items'] = draw(schemas(depth - 1))
    if depth and draw(st.booleans()):
        out['properties'] = {'a': draw(schemas(depth - 1)), 'b': draw(schemas(0))}
        out['required'] = draw(st.sampled_from([[], ['a'], ['a', 'b']]))
        out['additionalProperties'] = draw(st.sampled_from([True, False]))
    return out


@given(schemas(), VALUES)
def test_predicate_and_library_agree(schema: dict[str, Any], value: Any) -> None:
    check = compile_schema(schema)
    assert check is not None
    assert check(value) == Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    'schema',
    [
        {'multipleOf': 2},
        {'uniqueItems': True, 'items': {}},
        {'type': ['string', 'null']},
        {'enum': [1, 'a']},
        {'const': True},
        {'properties': {'a': {'anyOf': [{}]}}},
        {'items': {'$ref': '#'}},
        {'enum': ['a'], 'const': 'b'},
        False,
    ],
)
def test_schema_with_an_unknown_keyword_has_no_predicate(schema: Any) -> None:
    assert compile_schema(schema) is None


@pytest.mark.parametrize('name', sorted(infos()))
def test_own_adapters_have_predicates(name: str) -> None:
    assert compile_schema(infos()[name].params_schema({})) is not None


def test_thousand_points_take_a_small_part_of_the_dead_man_time() -> None:
    check = compile_schema(infos()['follow_joint_trajectory'].params_schema({}))
    assert check is not None
    point = {'positions_rad': [0.1] * 7, 'velocities_radps': [0.0] * 7, 'time_from_start_ms': 10}
    params = {
        'joint_names': [f'joint_{i}' for i in range(7)],
        'points': [{**point, 'time_from_start_ms': 10 * (i + 1)} for i in range(1000)],
    }
    best_s = 1.0
    for _ in range(5):
        began_s = time.perf_counter()
        assert check(params)
        best_s = min(best_s, time.perf_counter() - began_s)
    assert best_s < 0.1  # the dead-man stops the robot after 0.25 s of silence


@given(schemas(), VALUES)
def test_the_innermost_misfit_is_a_misfit(schema: dict[str, Any], value: Any) -> None:
    check = compile_schema(schema)
    assert check is not None
    if not check(value):
        path, inner, part = narrow(schema, value)
        assert not Draft202012Validator(inner).is_valid(part)
        for step in path:
            value = value[step]
        assert value == part


def test_one_wrong_point_among_a_thousand_is_named_quickly() -> None:
    schema = infos()['follow_joint_trajectory'].params_schema({})
    point = {'positions_rad': [0.1] * 7, 'time_from_start_ms': 10}
    points: list[dict[str, Any]] = [dict(point) for _ in range(1000)]
    points[998] = {'positions_rad': [0.1, 'x'], 'time_from_start_ms': 10}
    params = {'joint_names': ['a', 'b'], 'points': points}
    began_s = time.perf_counter()
    path, _, value = narrow(schema, params)
    assert time.perf_counter() - began_s < 0.1
    assert (path, value) == (['points', 998, 'positions_rad', 1], 'x')
