"""The compiled predicates say what the validator library says, on every kind of value."""

from __future__ import annotations

from collections.abc import Callable
import math
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
import pytest

from awp_ros_bridge.engine.params_check import compile_schema, narrow
from awp_ros_bridge.engine.params_faults import describe
from awp_ros_bridge.ros.adapters.registry import infos

DEAD_MAN_S = 0.25  # silence of the loop after which the robot is stopped


def best_cpu_s(call: Callable[[], object]) -> float:
    """Return the processor time of the quickest of five calls."""
    best = math.inf
    for _ in range(5):
        began = time.thread_time()
        call()
        best = min(best, time.thread_time() - began)
    return best


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
                {'items': {'enum': ['a', 'ab', 'lin']}, 'uniqueItems': True},
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


JOINTS = {'joints': [f'joint_{i}' for i in range(7)]}
NEEDED: dict[str, dict[str, Any]] = {  # what an adapter has no schema without
    'generic': {
        'type': 'nav2_msgs/action/NavigateToPose',
        'params': {'target': {}, 'plan': {'choices': ['quick', 'safe'], 'default': 'quick'}},
        'goal': {'pose': {'param': 'target'}, 'behavior_tree': {'param': 'plan'}},
    }
}


@pytest.mark.parametrize('options', [{}, JOINTS], ids=['without joints', 'with joints'])
@pytest.mark.parametrize('name', sorted(infos()))
def test_own_adapters_have_predicates(name: str, options: dict[str, Any]) -> None:
    schema = infos()[name].params_schema({**options, **NEEDED.get(name, {})})
    assert compile_schema(schema) is not None


def test_thousand_points_take_a_small_part_of_the_dead_man_time() -> None:
    check = compile_schema(infos()['follow_joint_trajectory'].params_schema({}))
    assert check is not None
    point = {'positions_rad': [0.1] * 7, 'velocities_radps': [0.0] * 7, 'time_from_start_ms': 10}
    params = {
        'joint_names': [f'joint_{i}' for i in range(7)],
        'points': [{**point, 'time_from_start_ms': 10 * (i + 1)} for i in range(1000)],
    }
    assert check(params)
    assert best_cpu_s(lambda: check(params)) < DEAD_MAN_S / 2


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
    path, _, value = narrow(schema, params)
    assert best_cpu_s(lambda: narrow(schema, params)) < DEAD_MAN_S / 2
    assert (path, value) == (['points', 998, 'positions_rad', 1], 'x')


@pytest.mark.parametrize(
    ('names', 'path', 'rule'),
    [
        (['joint_0', 'elbow'], ['joint_names', 1], 'enum'),
        (['joint_0', 'joint_0'], ['joint_names'], 'uniqueItems'),
        (['elbow', 'elbow'], ['joint_names'], 'uniqueItems'),
        (['joint_0', 5], ['joint_names', 1], 'enum'),
        ([], ['joint_names'], 'minItems'),
    ],
)
def test_wrong_joint_names_are_told_by_the_rule_they_break(
    names: list[Any], path: list[str | int], rule: str
) -> None:
    schema = infos()['follow_joint_trajectory'].params_schema(JOINTS)
    found, broken, value = narrow(schema, {'joint_names': names, 'points': [POINT]})
    assert (found, next(iter(broken))) == (path, rule)
    assert not Draft202012Validator(broken).is_valid(value)


POINT: dict[str, Any] = {'positions_rad': [0.1] * 7, 'time_from_start_ms': 10}


@pytest.mark.parametrize(
    ('params', 'validator'),
    [
        ({'joint_names': ['joint_1'], 'points': [POINT] * 8000}, 'maxItems'),
        ({'joint_names': [x for i in range(40_000) for x in (i, 'a')], 'points': []}, 'maxItems'),
        ({'joint_names': [f'a{i}' for i in range(80_000)], 'points': [POINT]}, 'maxItems'),
        ({'joint_names': ['joint_1'], 'points': [{**POINT, 'x': [POINT] * 8000}]}, None),
        ({f'f{i}': 1 for i in range(80_000)}, 'required'),
        ({'joint_names': ['joint_1'], 'points': [POINT] * 900, 'x': 1}, 'additionalProperties'),
    ],
)
def test_a_megabyte_of_bad_params_is_refused_in_a_small_part_of_the_dead_man_time(
    params: dict[str, Any], validator: str | None
) -> None:
    schema = infos()['follow_joint_trajectory'].params_schema(JOINTS)
    check = compile_schema(schema)
    assert check is not None
    began_s = time.thread_time()
    assert not check(params)
    _, rule, value = narrow(schema, params)
    error = best_match(Draft202012Validator(rule).iter_errors(value))
    assert error is not None
    assert len(describe(error)) < 500
    assert time.thread_time() - began_s < 0.1
    assert validator in (None, error.validator)
