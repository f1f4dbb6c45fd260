"""From the description of a field to the shape of a param: units, bounds, choices, refusals."""

from __future__ import annotations

from typing import Any

import field_samples as s
from jsonschema import Draft202012Validator
import pytest

from awp_ros_bridge.engine.params_check import compile_schema
from awp_ros_bridge.manifest.field_types import FieldType, ListType, locate, NoSuchField, written
from awp_ros_bridge.manifest.params import NoShape, param_shape, ParamSettings, suits
from awp_ros_bridge.manifest.shapes import (
    BooleanShape,
    ChoiceShape,
    DurationShape,
    FrameShape,
    IntegerShape,
    ListShape,
    NumberShape,
    ObjectShape,
    PoseShape,
    QuaternionShape,
    Shape,
    TextShape,
)
from awp_ros_bridge.manifest.units import suffix_of, SUFFIXES, with_suffix


def shape_of(
    name: str, kind: FieldType, holder: Any = s.GOAL, is_scaled: bool = False, **settings: Any
) -> Shape:
    return param_shape(name, kind, holder, ParamSettings(**settings), is_scaled)


# ---------------------------------------------------------------- what is derived


@pytest.mark.parametrize(
    ('name', 'kind', 'settings', 'expected'),
    [
        ('dry', s.BOOL, {}, BooleanShape()),
        ('level', s.UINT8, {}, IntegerShape(0, 255)),
        ('level', s.UINT8, {'minimum': 3, 'maximum': 9.0}, IntegerShape(3, 9)),
        ('count', s.INT64, {}, IntegerShape(-(2**53 - 1), 2**53 - 1)),
        ('width_m', s.DOUBLE, {}, NumberShape()),
        ('width_m', s.DOUBLE, {'minimum': 0.5}, NumberShape(0.5)),
        ('ratio', s.FLOAT, {'unitless': True}, NumberShape(-s.FLOAT.largest, s.FLOAT.largest)),
        ('label', s.SHORT, {}, TextShape(4)),
        ('frame', s.TEXT, {'is_frame': True}, FrameShape()),
        ('widths_m', ListType(s.DOUBLE), {}, ListShape(NumberShape(), 0, 1000)),
        ('widths_m', ListType(s.DOUBLE, size=3), {}, ListShape(NumberShape(), 3, 3)),
        ('widths_m', ListType(s.DOUBLE, most=5), {}, ListShape(NumberShape(), 0, 5)),
        (
            'widths_m',
            ListType(s.DOUBLE),
            {'max_items': 4, 'maximum': 1.0},
            ListShape(NumberShape(high=1.0), 0, 4),
        ),
        ('target', s.POSE_STAMPED, {}, PoseShape()),
        ('target', s.POSE, {}, PoseShape(has_frame=False)),
        ('turn', s.QUATERNION, {}, QuaternionShape()),
        ('wait_ms', s.DURATION, {}, DurationShape(1000, 0, (2**31 - 1) * 1000)),
        ('wait_ns', s.DURATION, {}, DurationShape(10**9, 0, 2**53 - 1)),
        ('wait_ms', s.DURATION, {'maximum': 500}, DurationShape(1000, 0, 500)),
        ('where', s.HEADER, {}, ObjectShape({'frame': ('frame_id', FrameShape())})),
        (
            'mode',
            s.UINT8,
            {'choices': ['MODE_*']},
            ChoiceShape((('MODE_SLOW', 1), ('MODE_FAST', 2))),
        ),
        ('mode', s.UINT8, {'choices': ['MODE_FAST']}, ChoiceShape((('MODE_FAST', 2),))),
        (
            'tool',
            s.TEXT,
            {'choices': ['cup', 'jaw']},
            ChoiceShape((('cup', 'cup'), ('jaw', 'jaw'))),
        ),
        (
            'modes',
            ListType(s.UINT8, most=2),
            {'choices': ['MODE_SLOW']},
            ListShape(ChoiceShape((('MODE_SLOW', 1),)), 0, 2),
        ),
    ],
)
def test_a_field_becomes_a_shape(
    name: str, kind: FieldType, settings: Any, expected: Shape
) -> None:
    found = shape_of(name, kind, **settings)
    assert found == expected
    schema = found.schema()
    Draft202012Validator.check_schema(schema)
    assert compile_schema(schema) is not None, 'the engine checks it quickly'


def test_a_choice_of_texts_may_stand_for_constants() -> None:
    shape = shape_of('name', s.SHORT, s.JOINT, choices=['NAME', 'leg'])
    assert shape == ChoiceShape((('NAME', 'arm'), ('leg', 'leg')))
    assert shape_of('name', s.TEXT, s.POINT, choices=['a']) == ChoiceShape((('a', 'a'),))


def test_a_factor_takes_the_range_of_the_field_away() -> None:
    assert shape_of('wait_ms', s.FLOAT, is_scaled=True) == NumberShape()
    assert shape_of('wait_ms', s.FLOAT, is_scaled=True, maximum=5) == NumberShape(high=5.0)


def test_a_message_becomes_an_object_whose_names_say_units() -> None:
    shape = shape_of('speed', s.TWIST, units={'linear': 'mps', 'angular': 'radps'})
    assert isinstance(shape, ObjectShape)
    linear = shape.fields['linear'][1]
    assert isinstance(linear, ObjectShape)
    assert list(linear.fields) == ['x_mps', 'y_mps', 'z_mps']
    value = {
        'linear': {'x_mps': 1, 'y_mps': 0, 'z_mps': 0},
        'angular': {'x_radps': 0, 'y_radps': 0, 'z_radps': 0.5},
    }
    assert shape.to_ros(value, 'params.speed', str) == {
        'linear': {'x': 1.0, 'y': 0.0, 'z': 0.0},
        'angular': {'x': 0.0, 'y': 0.0, 'z': 0.5},
    }


def test_the_longest_path_of_a_unit_counts() -> None:
    units = {'linear': 'mps', 'linear.z': 'none', 'angular': 'radps'}
    shape = shape_of('speed', s.TWIST, units=units)
    linear = shape.schema()['properties']['linear']
    assert list(linear['properties']) == ['x_mps', 'y_mps', 'z']


def test_lists_of_messages_and_stamps_that_nobody_gives() -> None:
    stop = s.message(
        'maker_msgs/msg/Stop',
        at=s.TIME,
        header=s.HEADER,
        wait=s.DURATION,
        pause_ms=s.DURATION,
        levels=ListType(s.DOUBLE),
        place=s.POSE,
        is_last=s.BOOL,
    )
    shape = shape_of('stops', ListType(stop, most=3), units={'[].levels': 'm'})
    schema = shape.schema()['items']
    assert list(schema['properties']) == [
        'header', 'wait_ms', 'pause_ms', 'levels_m', 'place', 'is_last'
    ]  # fmt: skip
    assert schema['required'] == list(schema['properties'])
    value = {
        'header': {'frame': 'base'},
        'wait_ms': 1500,
        'pause_ms': 0,
        'levels_m': [1, 2.5],
        'place': {'p_m': [1, 2, 3], 'q': [0, 0, 0, 1]},
        'is_last': True,
    }
    assert shape.to_ros([value], 'params.stops', {'base': 'base_link'}.get) == [
        {
            'header': {'frame_id': 'base_link'},
            'wait': {'sec': 1, 'nanosec': 500_000_000},
            'pause_ms': {'sec': 0, 'nanosec': 0},
            'levels': [1.0, 2.5],
            'place': {
                'position': {'x': 1.0, 'y': 2.0, 'z': 3.0},
                'orientation': {'x': 0.0, 'y': 0.0, 'z': 0.0, 'w': 1.0},
            },
            'is_last': True,
        }
    ]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ('name', 'kind', 'settings', 'what', 'key'),
    [
        ('width', s.DOUBLE, {}, "'width' says no unit", None),
        ('widths', ListType(s.DOUBLE), {}, 'let the name end in one, such as widths_m', None),
        ('width', s.DOUBLE, {'minimum': 0.0}, 'AWP-UNI-001', None),
        ('speed', s.TWIST, {}, 'nothing says the unit of linear.x', 'units'),
        ('speed', s.TWIST, {'units': {'linear': 'mps'}}, 'unit of angular.x', 'units'),
        ('speed', s.TWIST, {'units': {'linear': 'mph'}}, "'mph' is no unit", 'units'),
        (
            'speed',
            s.TWIST,
            {'units': {'linear': 'mps', 'angular': 'radps', 'linea': 'm'}},
            "no number stands at 'linea'",
            'units',
        ),
        ('level', s.UINT8, {'unitless': True}, 'is no number, so unitless', 'unitless'),
        ('level', s.UINT8, {'minimum': 2.5}, '2.5 is no whole number', 'minimum'),
        ('level', s.UINT8, {'maximum': 300}, 'wider than the field, 0 to 255', 'maximum'),
        ('level', s.UINT8, {'minimum': -1}, 'wider than the field, 0 to 255', 'minimum'),
        ('level', s.UINT8, {'minimum': 9, 'maximum': 3}, 'nothing is between 9 and 3', 'minimum'),
        ('ratio_m', s.FLOAT, {'maximum': 1e39}, 'wider than the field', 'maximum'),
        (
            'width_m',
            s.DOUBLE,
            {'minimum': 2, 'maximum': 1},
            'nothing is between 2 and 1',
            'minimum',
        ),
        ('label', s.TEXT, {'minimum': 1}, 'only numbers have bounds; remove minimum', 'minimum'),
        ('label', s.TEXT, {'maximum': 1}, 'only numbers have bounds; remove maximum', 'maximum'),
        ('level', s.UINT8, {'is_frame': True}, 'a frame is a text, the field is uint8', 'form'),
        ('labels', ListType(s.TEXT), {'is_frame': True}, 'so it is no frame', 'form'),
        ('when', s.TIME, {}, 'write {stamp: now}', None),
        ('wait', s.DURATION, {}, 'let the name end in _ms: wait_ms', None),
        ('wait_m', s.DURATION, {}, 'let the name end in _ms', None),
        ('mode', s.UINT8, {'choices': ['MODUS_*']}, "has no constant 'MODUS_*'", 'choices'),
        ('mode', s.UINT8, {'choices': ['OTHER']}, 'OTHER of maker_msgs', 'choices'),
        ('target', s.POSE, {'choices': ['MODE_*']}, 'is no geometry_msgs/msg/Pose', 'choices'),
    ],
)
def test_settings_that_do_not_suit_a_field_are_refused(
    name: str, kind: FieldType, settings: Any, what: str, key: str | None
) -> None:
    with pytest.raises(NoShape) as caught:
        shape_of(name, kind, **settings)
    assert what in str(caught.value)
    assert caught.value.key == key


def test_a_message_without_constants_says_so() -> None:
    with pytest.raises(NoShape, match='it has none: write the value itself'):
        shape_of('mode', s.UINT8, s.POINT, choices=['FAST'])


def test_a_factor_needs_a_floating_point_number() -> None:
    with pytest.raises(
        NoShape, match='a factor needs a floating point number, the field is uint8'
    ):
        shape_of('level', s.UINT8, is_scaled=True)


@pytest.mark.parametrize(
    ('value', 'kind', 'fits'),
    [
        (True, s.BOOL, True),
        (1, s.BOOL, False),
        (True, s.UINT8, False),
        (256, s.UINT8, False),
        (1, s.DOUBLE, True),
        (True, s.DOUBLE, False),
        ('a', s.TEXT, True),
        (1, s.TEXT, False),
        (1, s.POINT, False),
    ],
)
def test_which_constant_is_a_value_of_a_field(value: Any, kind: FieldType, fits: bool) -> None:
    assert suits(value, kind) is fits


# ---------------------------------------------------------------- paths and units


def test_the_way_to_a_field() -> None:
    kind, holder = locate(s.GOAL, ('joints', 4, 'position'))
    assert (kind, holder) == (s.DOUBLE, s.JOINT)
    assert locate(s.GOAL, ('corners', 2)) == (s.DOUBLE, s.GOAL)
    assert written(('joints', 4, 'position')) == 'joints[4].position'


@pytest.mark.parametrize(
    ('steps', 'what', 'known'),
    [
        (('jionts',), "maker_msgs/action/Work_Goal has no field 'jionts'", 'joints'),
        (('corners', 3), 'the list holds 3 items, counted from 0', None),
        (('few', 2), 'the list holds 2 items', None),
        (('mode', 0), 'uint8 is no list', None),
        (('mode', 'x'), 'uint8 has no fields', None),
        (('joints', 'x'), 'a list of maker_msgs/msg/JointTarget has no fields', None),
        (('target', 0), 'geometry_msgs/msg/PoseStamped is no list', None),
    ],
)
def test_a_path_that_leads_nowhere_says_where(
    steps: tuple[str | int, ...], what: str, known: str | None
) -> None:
    with pytest.raises(NoSuchField, match=what) as caught:
        locate(s.GOAL, steps)
    assert caught.value.at == written(steps)
    assert known is None or known in caught.value.known


def test_units_in_names() -> None:
    assert suffix_of('positions_rad') == 'rad'
    assert suffix_of('v_radps2') == 'radps2'
    assert suffix_of('m') is None
    assert suffix_of('items') is None
    assert with_suffix('x', 'm') == 'x_m'
    assert with_suffix('x_m', 'm') == 'x_m'
    assert with_suffix('x', 'none') == 'x'
    assert len(set(SUFFIXES)) == len(SUFFIXES)
