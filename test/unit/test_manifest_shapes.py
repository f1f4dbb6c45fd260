"""Values of params on their way to a message: what passes, and what is refused by path."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
import pytest

from awp_ros_bridge.manifest.shapes import (
    BooleanShape,
    ChoiceShape,
    DurationShape,
    FrameShape,
    IntegerShape,
    ListShape,
    NumberShape,
    ObjectShape,
    ParamRefused,
    PoseShape,
    QuaternionShape,
    Shape,
    TextShape,
)

FRAMES = {'base': 'robot/base_link'}.get
POSE = {'frame': 'base', 'p_m': [1, 2, 3], 'q': [0, 0, 0, 1]}
OBJECT = ObjectShape({'width_m': ('width', NumberShape()), 'level': ('level', IntegerShape(0, 9))})


@pytest.mark.parametrize(
    ('shape', 'value', 'expected'),
    [
        (BooleanShape(), True, True),
        (IntegerShape(0, 9), 9, 9),
        (IntegerShape(0, 9), 3.0, 3),
        (NumberShape(), 3, 3.0),
        (NumberShape(0.0, 1.0), 1.0, 1.0),
        (TextShape(4), 'äb', 'äb'),
        (ChoiceShape((('FAST', 2),)), 'FAST', 2),
        (ListShape(IntegerShape(0, 9), 0, 3), [], []),
        (ListShape(NumberShape(), 2, 2), [1, 2], [1.0, 2.0]),
        (FrameShape(), 'base', 'robot/base_link'),
        (DurationShape(1000), 1250, {'sec': 1, 'nanosec': 250_000_000}),
        (DurationShape(10**9, 0, 2**53), 10**9 + 7, {'sec': 1, 'nanosec': 7}),
        (OBJECT, {'width_m': 1, 'level': 2}, {'width': 1.0, 'level': 2}),
        (
            PoseShape(),
            POSE,
            {
                'header': {'frame_id': 'robot/base_link'},
                'pose': {
                    'position': {'x': 1.0, 'y': 2.0, 'z': 3.0},
                    'orientation': {'x': 0.0, 'y': 0.0, 'z': 0.0, 'w': 1.0},
                },
            },
        ),
    ],
)
def test_a_value_on_its_way(shape: Shape, value: Any, expected: Any) -> None:
    found = shape.to_ros(value, 'params.a', FRAMES)
    assert found == expected
    assert json.dumps(found) == json.dumps(expected), 'numbers have the kind that ROS takes'
    Draft202012Validator(shape.schema()).validate(value)


@pytest.mark.parametrize(
    ('shape', 'value', 'text'),
    [
        (BooleanShape(), 1, 'params.a: true or false is needed, not 1'),
        (IntegerShape(0, 9), 10, 'params.a: 10 is outside the range 0 to 9'),
        (IntegerShape(0, 9), -1, 'params.a: -1 is outside'),
        (IntegerShape(0, 9), 1.5, 'params.a: an integer is needed, not 1.5'),
        (IntegerShape(0, 9), True, 'params.a: an integer is needed, not true'),
        (IntegerShape(0, 9), math.inf, 'params.a: an integer is needed'),
        (IntegerShape(0, 9), '3', "params.a: an integer is needed, not '3'"),
        (NumberShape(), math.nan, 'params.a: a finite number is needed, not nan'),
        (NumberShape(), -math.inf, 'params.a: a finite number is needed'),
        (NumberShape(), 10**400, 'params.a: a finite number is needed'),
        (NumberShape(), False, 'params.a: a number is needed, not false'),
        (NumberShape(), None, 'params.a: a number is needed, not null'),
        (NumberShape(0.0, 1.0), 1.0000001, 'params.a: 1.0000001 is outside the range 0 to 1'),
        (TextShape(), 3, 'params.a: a text is needed, not 3'),
        (TextShape(4), 'äöü', 'params.a: 4 bytes at most, not 6'),
        (TextShape(), 'x' * 1025, 'params.a: 1024 characters at most, not 1025'),
        (TextShape(), 'a\0b', 'params.a: a character in it cannot stand in a text of ROS'),
        (TextShape(), '\ud800', 'params.a: a character in it'),
        (ChoiceShape((('FAST', 2), ('SLOW', 1))), 'fast', "'fast' is none of FAST, SLOW"),
        (ChoiceShape((('FAST', 2),)), 2, 'params.a: 2 is none of FAST'),
        (ListShape(NumberShape(), 2, 2), [1], 'params.a: 2 items are needed, not 1'),
        (ListShape(NumberShape(), 0, 1), [1, 2], 'params.a: 0 to 1 items are needed, not 2'),
        (ListShape(NumberShape(), 2, 2), [1, 'x'], "params.a[1]: a number is needed, not 'x'"),
        (ListShape(NumberShape(), 2, 2), 'ab', "params.a: a list is needed, not 'ab'"),
        (FrameShape(), 'map', "params.a: unknown frame 'map'"),
        (FrameShape(), ['base'], 'params.a: unknown frame a list'),
        (FrameShape(), 'x' * 99, '...'),
        (DurationShape(1000, 0, 500), 501, 'params.a: 501 is outside the range 0 to 500'),
        (DurationShape(1000), -1, 'params.a: -1 is outside'),
        (QuaternionShape(), [0, 0, 0, 0], 'params.a: a quaternion of length 0 is no orientation'),
        (QuaternionShape(), [0, 0, 0, 1.01], 'length 1.01'),
        (QuaternionShape(), [0, 0, 1], 'params.a: 4 items are needed, not 3'),
        (OBJECT, {'width_m': 1}, 'params.a.level: missing'),
        (
            OBJECT,
            {'width_m': 1, 'level': 1, 'x': 1},
            'params.a.x: unknown field; there are width_m',
        ),
        (OBJECT, {'width_m': 1, 'level': 99}, 'params.a.level: 99 is outside the range 0 to 9'),
        (OBJECT, [1], 'params.a: an object is needed, not a list'),
        (PoseShape(), {}, 'params.a.frame: missing'),
        (PoseShape(), {**POSE, 'frame': 'nope'}, "params.a.frame: unknown frame 'nope'"),
        (PoseShape(), {**POSE, 'p_m': [1, 2, math.nan]}, 'params.a.p_m[2]: a finite number'),
        (PoseShape(has_frame=False), POSE, 'params.a.frame: unknown field; there are p_m, q'),
        (PoseShape(), {**POSE, 'p_m': {}}, 'params.a.p_m: a list is needed, not an object'),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_path(
    shape: Shape, value: Any, text: str
) -> None:
    with pytest.raises(ParamRefused) as caught:
        shape.to_ros(value, 'params.a', FRAMES)
    assert text in str(caught.value)
    assert str(caught.value).startswith('params.a')


def test_an_orientation_is_made_one_of_length_one() -> None:
    found = QuaternionShape().to_ros([0, 0, 0, 1.0005], 'params.q', FRAMES)
    assert found == {'x': 0.0, 'y': 0.0, 'z': 0.0, 'w': 1.0}


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(['frame', 'p_m', 'q', 'width_m', 'level', 'x']), inner)
    ),
    max_leaves=8,
)
SHAPES = (
    BooleanShape(),
    IntegerShape(-5, 5),
    NumberShape(-5.0, 5.0),
    TextShape(4),
    ChoiceShape((('a', 1),)),
    ListShape(IntegerShape(-5, 5), 1, 2),
    DurationShape(1000, 0, 5),
    QuaternionShape(),
    PoseShape(),
    OBJECT,
)


@settings(max_examples=200)
@given(shape=st.sampled_from(SHAPES), value=ANY)
def test_what_passes_also_fits_the_schema(shape: Shape, value: Any) -> None:
    """Whatever comes, it is refused with a path or is a value that the manifest promises."""
    try:
        found = shape.to_ros(value, 'params.a', FRAMES)
    except ParamRefused as error:
        text = str(error)
    else:
        text = 'params.a fits'
        Draft202012Validator(shape.schema()).validate(value)
        json.dumps(found, allow_nan=False)
    assert text.startswith('params.a')
