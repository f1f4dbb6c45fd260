"""Any type as JSON by its fields: units, names, geometry, numbers that JSON does not have."""

from __future__ import annotations

import math
from typing import Any

from encoder_rig import body_of, kind_of, problems, refused, stamped, topic
from geometry_msgs.msg import Point, PoseArray, PoseStamped, TransformStamped, Twist, TwistStamped
from hypothesis import given, settings
from hypothesis import strategies as st
from nav_msgs.msg import Path
import numpy as np
import pytest
from sensor_msgs.msg import FluidPressure, Joy, Temperature
from std_msgs.msg import ColorRGBA, Empty, Float32, Float64MultiArray, String
from test_msgs.msg import Arrays, BasicTypes, Builtins, MultiNested, Strings, UnboundedSequences

from awp_ros_bridge.config.channels import UnitSuffix
from awp_ros_bridge.config.units import CONVERSIONS
from awp_ros_bridge.ros.encoders.base import NoEncoder
from awp_ros_bridge.ros.encoders.field_plan import planned
from awp_ros_bridge.ros.encoders.registry import make_encoder, registry

Json = dict[str, Any]

NUMBERS = {
    name: 'none'
    for name, kind in BasicTypes.get_fields_and_field_types().items()
    if kind not in ('boolean', 'octet')
}


def test_a_unit_is_the_end_of_the_name_and_no_unit_is_none() -> None:
    message = stamped(Temperature(temperature=20.5, variance=0.25), '')
    assert body_of(message, fields={'temperature': 'degc', 'variance': 'none'}) == {
        'temperature_k': 293.65,
        'variance': 0.25,
    }
    pressure = stamped(FluidPressure(fluid_pressure=101325.0), '')
    assert body_of(pressure, fields={'fluid_pressure': 'pa', 'variance': 'none'}) == {
        'fluid_pressure_pa': 101325.0,
        'variance': 0.0,
    }


@pytest.mark.parametrize(
    ('unit', 'value', 'name', 'result'),
    [
        ('deg', 180.0, 'data_rad', math.pi),
        ('degps', 90.0, 'data_radps', math.pi / 2),
        ('rpm', 60.0, 'data_radps', 2 * math.pi),
        ('mm', 1500.0, 'data_m', 1.5),
        ('degc', -273.15, 'data_k', 0.0),
        ('bar', 1.0, 'data_pa', 1e5),
        ('mv', 500.0, 'data_v', 0.5),
        ('ma', 500.0, 'data_a', 0.5),
        ('percent', 75.0, 'data', 0.75),
    ],
)
def test_what_is_not_si_becomes_si(unit: str, value: float, name: str, result: float) -> None:
    found = body_of(Float32(data=value), fields={'data': unit})
    assert found == {name: pytest.approx(result, abs=1e-4)}
    several = body_of(Float64MultiArray(data=[value, math.inf]), fields=dict.fromkeys(
        ('layout', 'data'), unit
    ) | {'layout': 'none'})  # fmt: skip
    assert several[name] == [pytest.approx(result), 'Infinity']


def test_every_conversion_is_a_unit_that_a_file_may_hold_and_ends_in_si() -> None:
    known = set(UnitSuffix.__args__)
    assert set(CONVERSIONS) < known
    assert {c.suffix for c in CONVERSIONS.values()} < known - set(CONVERSIONS)


def test_f44_not_a_number_is_null_and_infinity_a_text() -> None:
    message = BasicTypes(float32_value=math.nan, float64_value=-math.inf)
    found = body_of(message, fields=NUMBERS)
    assert (found['float32_value'], found['float64_value']) == (None, '-Infinity')
    assert body_of(Float32(data=0.1), fields={'data': 'v'}) == {'data_v': 0.1}


def test_basic_types() -> None:
    message = BasicTypes(
        bool_value=True,
        byte_value=b'\xff',
        char_value=65,
        int8_value=-128,
        int64_value=-(2**53 - 1),
        uint64_value=2**64 - 1,
    )
    found = body_of(message, fields=NUMBERS)
    assert found['bool_value'] is True
    assert found['byte_value'] == 255
    assert found['char_value'] == 65
    assert found['int8_value'] == -128
    assert found['int64_value'] == -(2**53 - 1)
    assert found['uint64_value'] == str(2**64 - 1)  # beyond what JSON counts everywhere


def test_lists_of_everything() -> None:
    fields = dict.fromkeys(planned(UnboundedSequences, {}).numbers, 'none')
    message = UnboundedSequences(
        bool_values=[True, False],
        byte_values=[b'\x01', b'\x02'],
        uint8_values=[1, 2, 3],
        int8_values=[-1],
        int64_values=[2**60, 5],
        float32_values=[0.1, math.nan],
        float64_values=[math.inf, 1.0],
        string_values=['a', 'ö'],
        basic_types_values=[BasicTypes(int32_value=7)],
    )
    found = body_of(message, fields=fields)
    assert found['bool_values'] == [True, False]
    assert found['byte_values_b64'] == 'AQI='
    assert found['uint8_values_b64'] == 'AQID'
    assert found['int8_values'] == [-1]
    assert found['int64_values'] == [str(2**60), 5]
    assert found['float32_values'] == [0.1, None]
    assert found['float64_values'] == ['Infinity', 1.0]
    assert found['string_values'] == ['a', 'ö']
    assert found['basic_types_values'][0]['int32_value'] == 7


@pytest.mark.parametrize('message', [Arrays(), MultiNested(), Strings(), Builtins()])
def test_any_type_has_a_body_that_its_schema_allows(message: Any) -> None:
    body_of(message, fields=dict.fromkeys(planned(type(message), {}).numbers, 'none'))


def test_times_are_seconds_and_texts_need_nothing() -> None:
    message = Builtins()
    message.duration_value.sec, message.duration_value.nanosec = -1, 500_000_000
    message.time_value.sec = 12
    assert body_of(message) == {'duration_value_s': -0.5, 'time_value_s': 12.0}
    assert body_of(String(data='hello'), 'text/event+json') == {'data': 'hello'}
    assert body_of(Empty(), 'x-maker.pulse') == {}


def test_a_path_stands_for_all_below_it() -> None:
    message = Float64MultiArray(data=[1.0, 2.0])
    found = body_of(message, fields={'layout': 'none', 'data': 'rad'})
    assert found['data_rad'] == [1.0, 2.0]
    assert found['layout'] == {'dim': [], 'data_offset': 0}
    colour = body_of(ColorRGBA(r=1.0), fields={'r': 'none', 'g': 'none', 'b': 'none', 'a': 'v'})
    assert colour == {'r': 1.0, 'g': 0.0, 'b': 0.0, 'a_v': 0.0}


def test_the_units_of_geometry_are_known_and_its_frame_is_told() -> None:
    twist = stamped(TwistStamped(), 'rig/base')
    twist.twist.linear.x, twist.twist.angular.z = 0.5, math.inf
    assert body_of(twist) == {
        'frame': 'base',
        'twist': {'linear_mps': [0.5, 0.0, 0.0], 'angular_radps': [0.0, 0.0, 'Infinity']},
    }
    transform = stamped(TransformStamped(child_frame_id='tool'), 'odom')
    transform.transform.translation.z = 2.0
    assert body_of(transform) == {
        'frame': 'odom',
        'child_frame_id': 'tool',
        'transform': {'p_m': [0.0, 0.0, 2.0], 'q': [0.0, 0.0, 0.0, 1.0]},
    }
    assert body_of(Point(x=1.0), frame='odom') == {
        'frame': 'odom', 'x_m': 1.0, 'y_m': 0.0, 'z_m': 0.0
    }  # fmt: skip
    assert body_of(Twist(), frame='base')['frame'] == 'base'


def test_geometry_that_is_none_is_not_sent() -> None:
    poses = stamped(PoseArray(), 'odom')
    assert body_of(poses) == {'frame': 'odom', 'poses': []}
    path = stamped(Path(), 'odom')
    path.poses = [stamped(PoseStamped(), 'odom'), stamped(PoseStamped(), 'odom')]
    first = body_of(path)['poses'][0]
    assert first['stamp_s'] == pytest.approx(3.000000004)
    assert first['frame'] == 'odom'
    path.poses[1].pose.orientation.w = 2.0
    refused(path, r'poses\[1\]\.pose\.orientation has norm 2')
    path.poses[1].header.frame_id = 'map'
    refused(path, r"poses\[1\]\.header\.frame_id is 'map'")
    path.header.frame_id = ''
    refused(path, r'^header\.frame_id is empty')


JOY = 'sensor_msgs/msg/Joy'


def told(**more: Any) -> list[str]:
    channel: Json = {'type': JOY, 'modality': 'proprio/json', **more}
    return problems(channel)


def test_numbers_without_a_unit_are_refused_at_load_with_their_line() -> None:
    (found,) = told()
    assert found.startswith('robot.yaml:')
    assert found.partition(': ')[2] == (
        'channels.seen: sensor_msgs/msg/Joy has numbers without a unit: axes: <unit>, buttons: '
        '<unit> (AWP-UNI-001); add each to fields with its unit, none where it has none; a path '
        'stands for all below it'
    )
    assert not told(fields={'axes': 'none', 'buttons': 'none'})
    assert 'buttons: <unit> (' in told(fields={'axes': 'none'})[0]
    many = problems({'type': 'test_msgs/msg/Arrays', 'modality': 'proprio/json'})
    assert 'and ' in many[0]
    assert ' more (AWP-UNI-001)' in many[0]


def test_paths_that_lead_nowhere_are_refused_at_their_line() -> None:
    fields = {'axes': 'none', 'buttons': 'none', 'axis': 'm'}
    (found,) = told(fields=fields)
    line = int(found.split(':')[1])
    assert line > 1
    assert found.partition(': ')[2] == (
        'channels.seen.fields.axis: no number of sensor_msgs/msg/Joy is there; did you mean axes?'
    )
    assert 'expected one of' in told(fields={'axes': 'furlong', 'buttons': 'none'})[0]


def test_geometry_without_a_header_needs_the_frame_of_its_channel() -> None:
    channel = {'type': 'geometry_msgs/msg/Twist', 'modality': 'proprio/json'}
    (found,) = problems(channel)
    assert 'holds geometry and has no header that names its frame' in found
    assert 'add frame: its AWP frame' in found
    assert not problems({**channel, 'frame': 'base'})


def test_a_type_that_is_not_installed_is_a_warning_and_still_declared() -> None:
    channel = {'type': 'no_such_msgs/msg/Foo', 'modality': 'proprio/json'}
    (found,) = problems(channel)
    assert 'channels.seen.type: warning: no_such_msgs/msg/Foo is not available' in found
    assert 'ros-' in found
    declared = registry().schema(topic(kind=channel['type']))
    assert declared == {'x-ros2.type': 'no_such_msgs/msg/Foo', 'type': 'object'}


def test_an_encoder_without_units_is_none() -> None:
    with pytest.raises(NoEncoder, match=r'no encoder for sensor_msgs/msg/Joy: .* axes: <unit>'):
        make_encoder(topic(JOY))


@settings(max_examples=60)
@given(
    doubles=st.lists(st.floats(), max_size=5),
    axes=st.lists(st.floats(width=32), max_size=5),
)
def test_no_number_is_beyond_strict_json(doubles: list[float], axes: list[float]) -> None:
    found = body_of(Float64MultiArray(data=doubles), fields={'layout': 'none', 'data': 'm'})
    assert [_back(v) for v in found['data_m']] == [_same(v) for v in doubles]
    message = stamped(Joy(axes=axes), '')
    found = body_of(message, fields={'axes': 'none', 'buttons': 'none'})
    assert kind_of(message) == JOY
    assert [_single(_back(v)) for v in found['axes']] == [_same(v) for v in axes]


def _same(value: float) -> float | str:
    return 'nan' if math.isnan(value) else value


def _back(value: Any) -> float | str:
    return 'nan' if value is None else float(value)


def _single(value: float | str) -> float | str:
    return value if isinstance(value, str) else float(np.float32(value))
