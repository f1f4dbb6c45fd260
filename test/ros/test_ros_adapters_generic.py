"""The generic adapter and the drive to a pose on installed types: messages, without nodes."""

from __future__ import annotations

import json
from pathlib import Path
import sys
from typing import Any

from builtin_interfaces.msg import Time
from control_msgs.action import ExecuteMotionPrimitiveSequence, FollowJointTrajectory
from control_msgs.msg import MotionPrimitive
from nav2_msgs.action import NavigateToPose
import pytest
from rclpy.serialization import serialize_message
from test_msgs.action import Fibonacci, NestedMessage
from test_msgs.msg import Constants, MultiNested

sys.path.insert(0, str(Path(__file__).parent.parent / 'unit'))

from adapter_context import Robot

from awp_ros_bridge.engine.policy import RefusalKind
from awp_ros_bridge.manifest.field_types import ListType, MessageType, ScalarType
from awp_ros_bridge.ros.adapters import registry
from awp_ros_bridge.ros.adapters.base import AdapterContext, Limits
from awp_ros_bridge.ros.goal_values import fill, ValueRefused
from awp_ros_bridge.ros.interfaces import message_type

POSE = {'frame': 'camera', 'p_m': [1, 2, 0], 'q': [0, 0, 1, 0]}
NAVIGATE = {
    'type': 'nav2_msgs/action/NavigateToPose',
    'goal': {'pose': {'param': 'target'}, 'behavior_tree': 'slow.xml'},
    'progress': {'measure': 'remaining', 'field': 'distance_remaining'},
    'result': {'field': 'error_code', 'succeeded': ['NONE'], 'text': 'error_msg'},
}
NESTED = {
    'type': 'test_msgs/action/NestedMessage',
    'params': {
        'wait_ms': {'maximum': 60_000},
        'basic': {
            'units': {'float32_value': 'm', 'float64_value': 'none'},
            'description': 'everything at once',
        },
    },
    'goal': {
        'nested_field_no_pkg.duration_value': {'param': 'wait_ms'},
        'nested_field_no_pkg.time_value': {'stamp': 'now'},
        'nested_field': {'param': 'basic'},
        'nested_different_pkg': {'sec': 3, 'nanosec': 4},
    },
    'progress': {'measure': 'percent', 'field': 'nested_field.float32_value'},
    'result': {'field': 'nested_field.int8_value', 'at_least': 1},
}
BASIC = {
    'bool_value': True,
    'byte_value': 255,
    'char_value': 65,
    'float32_value_m': 0.5,
    'float64_value': 1,
    'int8_value': -128,
    'uint8_value': 255,
    'int16_value': -1,
    'uint16_value': 1,
    'int32_value': 1,
    'uint32_value': 1,
    'int64_value': -5,
    'uint64_value': 2**53 - 1,
}


def context(**options: Any) -> AdapterContext:
    made = Robot().context(Limits(), **options)
    made.now_stamp = lambda: Time(sec=7, nanosec=8)
    return made


def built(options: Any, name: str = 'generic') -> Any:
    return registry.build(name, context(**options))


# ---------------------------------------------------------------- goals


def test_a_pose_goal_of_nav2_by_configuration_alone() -> None:
    adapter = built(NAVIGATE)
    assert adapter.ros_type == 'nav2_msgs/action/NavigateToPose'
    assert adapter.check({'target': POSE}) is None
    goal = adapter.goal({'target': POSE})
    assert isinstance(goal, NavigateToPose.Goal)
    assert goal.pose.header.frame_id == 'rig/camera'
    assert (goal.pose.header.stamp.sec, goal.pose.header.stamp.nanosec) == (0, 0)
    assert (goal.pose.pose.position.x, goal.pose.pose.position.y) == (1.0, 2.0)
    assert goal.pose.pose.orientation.z == 1.0
    assert goal.behavior_tree == 'slow.xml'
    serialize_message(goal)
    feedback = NavigateToPose.Feedback()
    assert adapter.begin({}) == {}
    told = []
    for left_m in (0.0, 4.0, 1.0):
        feedback.distance_remaining = left_m
        told.append(adapter.progress({}, feedback))
    assert told == [None, 0.0, 0.75]
    result = NavigateToPose.Result(error_code=0, error_msg='there')
    assert (adapter.outcome(result).ok, adapter.outcome(result).detail) == (True, 'there')
    result = NavigateToPose.Result(error_code=77, error_msg='stuck')
    assert (adapter.outcome(result).ok, adapter.outcome(result).detail) == (
        False,
        'error_code is 77: stuck',
    )


def test_constants_lists_and_choices_of_a_motion() -> None:
    options = {
        'type': 'control_msgs/action/ExecuteMotionPrimitiveSequence',
        'params': {'motion': {'choices': ['LINEAR_*']}},
        'goal': {
            'trajectory.motions': [
                {'type': {'constant': 'LINEAR_JOINT'}, 'joint_positions': [0.0, 0.5]},
                {
                    'type': {'param': 'motion'},
                    'joint_positions': [{'param': 'q_rad[0]'}, {'param': 'q_rad[1]'}],
                    'additional_arguments': [
                        {'name': 'velocity', 'value': {'param': 'part_ms', 'factor': 0.5}}
                    ],
                },
            ]
        },
        'result': {'field': 'error_code', 'succeeded': ['SUCCESSFUL'], 'text': 'error_string'},
    }
    adapter = built(options)
    params = {'motion': 'LINEAR_CARTESIAN', 'q_rad': [1, -2], 'part_ms': 3}
    assert adapter.check(params) is None
    first, second = adapter.goal(params).trajectory.motions
    assert (first.type, list(first.joint_positions)) == (MotionPrimitive.LINEAR_JOINT, [0.0, 0.5])
    assert second.type == MotionPrimitive.LINEAR_CARTESIAN
    assert list(second.joint_positions) == [1.0, -2.0]
    (argument,) = second.additional_arguments
    assert (argument.name, argument.value) == ('velocity', 1.5)
    serialize_message(adapter.goal(params))
    schema = adapter.params_schema(options)
    assert schema['required'] == ['motion', 'q_rad', 'part_ms']
    assert schema['properties']['motion'] == {'enum': ['LINEAR_JOINT', 'LINEAR_CARTESIAN']}
    result = ExecuteMotionPrimitiveSequence.Result(error_code=-1, error_string='no joint')
    assert adapter.outcome(result).detail == 'INVALID_GOAL (-1): no joint'


def test_every_kind_of_field_reaches_the_message_with_its_value() -> None:
    adapter = built(NESTED)
    params = {'basic': BASIC, 'wait_ms': 1500}
    assert adapter.check(params) is None
    goal = adapter.goal(params)
    assert isinstance(goal, NestedMessage.Goal)
    basic = goal.nested_field
    assert (basic.bool_value, basic.byte_value, basic.char_value) == (True, b'\xff', 65)
    assert (basic.float32_value, basic.float64_value) == (0.5, 1.0)
    assert (basic.int8_value, basic.uint64_value) == (-128, 2**53 - 1)
    wait = goal.nested_field_no_pkg.duration_value
    assert (wait.sec, wait.nanosec) == (1, 500_000_000)
    stamp = goal.nested_field_no_pkg.time_value
    assert (stamp.sec, stamp.nanosec) == (7, 8)
    assert (goal.nested_different_pkg.sec, goal.nested_different_pkg.nanosec) == (3, 4)
    serialize_message(goal)
    feedback = NestedMessage.Feedback()
    feedback.nested_field.float32_value = 25.0
    assert adapter.progress(params, feedback) == 0.25
    feedback.nested_field.float32_value = float('nan')
    assert adapter.progress(params, feedback) is None
    result = NestedMessage.Result()
    assert adapter.outcome(result).detail == 'nested_field.int8_value is 0'
    result.nested_field.int8_value = 1
    assert adapter.outcome(result).ok


@pytest.mark.parametrize(
    ('field', 'value', 'what'),
    [
        ('uint8_value', 300, '300 is outside the range 0 to 255'),
        ('int8_value', -129, '-129 is outside the range -128 to 127'),
        ('uint64_value', 2**53, f'{2**53} is outside the range 0 to {2**53 - 1}'),
        ('int64_value', -(2**53), 'is outside the range'),
        ('int32_value', 1.5, 'an integer is needed, not 1.5'),
        ('byte_value', True, 'an integer is needed, not true'),
        ('bool_value', 1, 'true or false is needed, not 1'),
        ('float64_value', float('inf'), 'a finite number is needed, not inf'),
        ('float64_value', None, 'a number is needed, not null'),
        ('float32_value_m', 1e39, '1e+39 is outside the range'),
    ],
)
def test_a_value_out_of_the_type_is_refused_by_its_path(field: str, value: Any, what: str) -> None:
    refusal = built(NESTED).check({'basic': {**BASIC, field: value}, 'wait_ms': 0})
    assert refusal is not None
    assert refusal.kind is RefusalKind.PARAMS
    assert refusal.detail.startswith(f'params.basic.{field}: ')
    assert what in refusal.detail


@pytest.mark.parametrize(
    ('params', 'what'),
    [
        ({'wait_ms': 1}, 'params.basic: missing'),
        (
            {'basic': BASIC, 'wait_ms': 60_001},
            'params.wait_ms: 60001 is outside the range',
        ),
        (
            {'basic': BASIC, 'wait_ms': 1, 'wiat_ms': 1},
            'params.wiat_ms: unknown; there are',
        ),
        ({'basic': {}, 'wait_ms': 1}, 'params.basic.bool_value: missing'),
        (
            {'basic': {**BASIC, 'x': 1}, 'wait_ms': 1},
            'params.basic.x: unknown field; there',
        ),
    ],
)
def test_a_field_too_many_or_too_few_is_refused_by_its_path(params: Any, what: str) -> None:
    refusal = built(NESTED).check(params)
    assert refusal is not None
    assert what in refusal.detail
    with pytest.raises(ValueError, match=r'^params\.'):
        built(NESTED).goal(params)


def test_a_number_that_leaves_its_field_on_the_way_is_refused() -> None:
    options = {
        'type': 'test_msgs/action/NestedMessage',
        'goal': {'nested_field.float32_value': {'param': 'width_m', 'factor': 1000.0}},
    }
    adapter = built(options)
    assert adapter.goal({'width_m': 2}).nested_field.float32_value == 2000.0
    refusal = adapter.check({'width_m': 1e37})
    assert refusal is not None
    assert 'goal.nested_field.float32_value' in refusal.detail


# ---------------------------------------------------------------- configuration


def test_the_schema_says_units_and_ranges_by_name() -> None:
    schema = registry.infos()['generic'].params_schema(NESTED)
    assert schema['description'] == 'the params of a test_msgs/action/NestedMessage'
    basic = schema['properties']['basic']
    assert basic['description'] == 'everything at once'
    assert basic['additionalProperties'] is False
    fields = basic['properties']
    assert list(fields) == list(BASIC)
    assert fields['int16_value'] == {'type': 'integer', 'minimum': -(2**15), 'maximum': 2**15 - 1}
    assert fields['float64_value'] == {'type': 'number'}
    assert schema['properties']['wait_ms'] == {
        'type': 'integer',
        'minimum': 0,
        'maximum': 60_000,
    }
    json.dumps(schema, allow_nan=False)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    options = {
        'type': 'control_msgs/action/FollowJointTrajectory',
        'params': {'used': {'unitless': True}, 'unused': {}},
        'goal': {
            'trajectory.points[0].positions': {'param': 'positions'},
            'trajectory.jiont_names': ['a'],
            'trajectory.points[0].time_from_start': {'param': 'used'},
        },
        'progress': {'measure': 'fraction', 'field': 'desired'},
        'result': {'field': 'error_code', 'succeeded': ['SUCCESFUL']},
    }
    found = [
        ('.'.join(map(str, f.path)), f'{f.what}; {f.todo}')
        for f in registry.infos()['generic'].option_findings(options)
    ]
    assert dict(found) == {
        'params.unused': "param 'unused' fills no field; use it in goal, or remove it",
        'goal.trajectory.jiont_names': 'trajectory.jiont_names: '
        "trajectory_msgs/msg/JointTrajectory has no field 'jiont_names'; did you mean "
        "'joint_names'?",
        'goal.trajectory.points[0].positions': "param 'positions' for "
        "trajectory.points[0].positions: 'positions' says no unit of the number it is; let the "
        'name end in one, such as positions_m, or write unitless: true (AWP-UNI-001)',
        'params.used': "param 'used' for trajectory.points[0].time_from_start: a duration is a "
        'whole number; let the name end in _ms: used_ms',
        'progress.field': 'desired is trajectory_msgs/msg/JointTrajectoryPoint, a number is '
        'needed; name another field',
        'result.succeeded.0': 'control_msgs/action/FollowJointTrajectory_Result has no constant '
        "'SUCCESFUL'; did you mean 'SUCCESSFUL'?",
    }


def test_a_default_in_a_frame_that_is_not_there_is_found_when_the_adapter_is_made() -> None:
    pose = {'frame': 'moon', 'p_m': [0, 0, 0], 'q': [0, 0, 0, 1]}
    options = {**NAVIGATE, 'params': {'target': {'default': pose}}}
    with pytest.raises(ValueError, match=r"params.target.default.frame: unknown frame 'moon'"):
        built(options)
    there = {**NAVIGATE, 'params': {'target': {'default': {**pose, 'frame': 'base'}}}}
    assert built(there).goal({}).pose.header.frame_id == 'base'


def test_a_type_that_its_package_lacks_is_missing_too() -> None:
    options = {'type': 'nav2_msgs/action/NavigateToPos', 'goal': {}}
    (finding,) = registry.infos()['generic'].option_findings(options)
    assert "package 'nav2_msgs' has no action 'NavigateToPos'" in finding.what
    assert 'did you mean NavigateToPose?' in finding.todo
    assert built(options).check({}).kind is RefusalKind.UNREADY


# ---------------------------------------------------------------- descriptions


def test_a_message_class_is_described_as_plain_data() -> None:
    goal = message_type(FollowJointTrajectory.Goal)
    assert goal.name == 'control_msgs/action/FollowJointTrajectory_Goal'
    trajectory = goal.fields['trajectory']
    assert isinstance(trajectory, MessageType)
    assert trajectory.fields['joint_names'] == ListType(ScalarType('text', 'string'))
    assert message_type(Fibonacci.Goal).fields['order'] == ScalarType(
        'integer', 'int32', low=-(2**31), high=2**31 - 1
    )
    arrays = message_type(MultiNested).fields['array_of_arrays']
    assert isinstance(arrays, ListType)
    assert arrays.size == 3
    motion = message_type(MotionPrimitive)
    assert motion.constants['LINEAR_CARTESIAN'] == 50
    assert 'TYPE__DEFAULT' not in motion.constants
    assert 'SLOT_TYPES' not in motion.constants
    constants = message_type(Constants)
    assert constants.fields == {}
    assert constants.constants['BYTE_CONST'] == 50
    assert constants.constants['BOOL_CONST'] is True


def test_a_message_is_filled_in_part() -> None:
    goal = fill(
        FollowJointTrajectory.Goal(),
        {'trajectory': {'points': [{'positions': [1]}], 'header': {'frame_id': 'a'}}},
    )
    assert list(goal.trajectory.points[0].positions) == [1.0]
    assert goal.trajectory.header.frame_id == 'a'
    assert goal.goal_time_tolerance.sec == 0
    for value, text in (
        (
            {'trajectory': {'points': [{'positoins': []}]}},
            r'trajectory.points\[0\].positoins',
        ),
        ({'trajectory': {'points': {}}}, 'goal.trajectory.points: a list is needed'),
        ({'trajectory': 3}, 'goal.trajectory: an object is needed, not 3'),
        ({'trajectroy': {}}, 'goal.trajectroy: unknown field; did you mean trajectory'),
    ):
        with pytest.raises(ValueRefused, match=text):
            fill(FollowJointTrajectory.Goal(), value)


# ---------------------------------------------------------------- drive to a pose


def test_a_drive_goal_and_what_comes_back() -> None:
    adapter: Any = registry.build('navigate_to_pose', context(behavior_tree='quiet.xml'))
    goal = adapter.goal({'pose': POSE})
    assert isinstance(goal, NavigateToPose.Goal)
    assert goal.pose.header.frame_id == 'rig/camera'
    assert (goal.pose.header.stamp.sec, goal.behavior_tree) == (0, 'quiet.xml')
    assert (goal.pose.pose.position.y, goal.pose.pose.orientation.z) == (2.0, 1.0)
    serialize_message(goal)
    with pytest.raises(ValueError, match='unknown frame'):
        adapter.goal({'pose': {**POSE, 'frame': 'nope'}})
    feedback, told = NavigateToPose.Feedback(), []
    for left_m in (0.0, 8.0, 2.0, 0.0):
        feedback.distance_remaining = left_m
        told.append(adapter.progress({}, feedback))
    assert told == [None, 0.0, 0.75, 1.0]
    assert adapter.begin({}) == {}
    assert adapter.progress({}, feedback) is None, 'a new goal begins without a way'
    assert adapter.outcome(NavigateToPose.Result()).ok
    said = adapter.outcome(NavigateToPose.Result(error_code=77, error_msg='no way'))
    assert (said.ok, said.detail) == (False, 'error (77): no way')


def test_an_error_of_a_drive_is_named_where_its_distribution_names_it() -> None:
    adapter: Any = registry.build('navigate_to_pose', context())
    named = message_type(NavigateToPose.Result).constants
    detail = adapter.outcome(NavigateToPose.Result(error_code=9003)).detail
    assert detail == ('TIMEOUT (9003)' if 'TIMEOUT' in named else 'error (9003)')
