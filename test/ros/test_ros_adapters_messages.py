"""Adapters and ROS messages: goals, feedback, results; strict values; types by name."""

from __future__ import annotations

from pathlib import Path
import sys
from typing import Any

from control_msgs.action import (
    ExecuteMotionPrimitiveSequence,
    FollowJointTrajectory,
    GripperCommand,
    ParallelGripperCommand,
)
from control_msgs.msg import MotionPrimitive
from geometry_msgs.msg import Pose as PoseMessage
import pytest
from sensor_msgs.msg import JointState
from std_srvs.srv import Empty, SetBool, Trigger
from test_msgs.msg import Arrays, BasicTypes, BoundedSequences, Strings
from test_msgs.msg import Empty as EmptyMessage

sys.path.insert(0, str(Path(__file__).parent.parent / 'unit'))

from adapter_context import home, point, pose_params, Robot, trajectory

from awp_ros_bridge.ros.adapters import registry
from awp_ros_bridge.ros.adapters.base import Limits
from awp_ros_bridge.ros.goal_values import fill, ValueRefused
from awp_ros_bridge.ros.interfaces import describe, InterfaceMissing, load_interface
from awp_ros_bridge.sim_robot.description import ARM_JOINTS

BASIC: dict[str, Any] = {
    'bool_value': True,
    'byte_value': 255,
    'char_value': 1,
    'float32_value': 1,
    'float64_value': 1.5,
    'int8_value': -128,
    'uint8_value': 255,
    'int16_value': -1,
    'uint16_value': 1,
    'int32_value': 1,
    'uint32_value': 1,
    'int64_value': -(2**63),
    'uint64_value': 2**64 - 1,
}


def built(name: str, robot: Robot | None = None, **options: Any) -> Any:
    return registry.build(name, (robot or Robot()).context(**options))


def arguments(goal: Any) -> dict[str, float]:
    return {a.name: a.value for a in goal.trajectory.motions[0].additional_arguments}


# ---------------------------------------------------------------- adapters


def test_a_trajectory_goal_holds_what_was_asked_for() -> None:
    adapter = built('follow_joint_trajectory')
    params = trajectory(
        point(home(joint_1=0.1), 1500, velocities_radps=[0] * 6, accelerations_radps2=[0] * 6),
        goal_time_tolerance_ms=250,
    )
    goal = adapter.goal(params)
    assert isinstance(goal, FollowJointTrajectory.Goal)
    assert goal.trajectory.joint_names == list(ARM_JOINTS)
    assert goal.trajectory.header.stamp.sec == 0
    first = goal.trajectory.points[0]
    assert list(first.positions) == home(joint_1=0.1)
    assert list(first.velocities) == list(first.accelerations) == [0.0] * 6
    assert (first.time_from_start.sec, first.time_from_start.nanosec) == (1, 500_000_000)
    assert goal.goal_time_tolerance.nanosec == 250_000_000
    feedback = FollowJointTrajectory.Feedback()
    assert adapter.progress(params, feedback) is None
    feedback.desired.time_from_start.nanosec = 750_000_000
    assert adapter.progress(params, feedback) == 0.5
    feedback.desired.time_from_start.sec = 9
    assert adapter.progress(params, feedback) == 1.0


def test_a_trajectory_that_waited_is_checked_again_where_it_begins() -> None:
    robot = Robot()
    adapter = built('follow_joint_trajectory', robot)
    params = trajectory(point(home(joint_1=0.1), 1000))
    assert adapter.check(params) is None
    assert robot.joints is not None
    robot.joints['joint_1'] = 2.0
    with pytest.raises(ValueError, match=r'outside the box|above the limit'):
        adapter.goal(params)


@pytest.mark.parametrize('name', ['follow_joint_trajectory', 'motion_primitive'])
def test_results_with_an_error_code_are_failures_with_code_and_text(name: str) -> None:
    adapter = built(name)
    types = {
        'follow_joint_trajectory': FollowJointTrajectory,
        'motion_primitive': ExecuteMotionPrimitiveSequence,
    }
    result = types[name].Result()
    assert adapter.outcome(result).ok
    result.error_code, result.error_string = -1, 'no such joint'
    outcome = adapter.outcome(result)
    assert not outcome.ok
    assert outcome.detail == 'INVALID_GOAL (-1): no such joint'
    result.error_code, result.error_string = -77, ''
    assert adapter.outcome(result).detail == 'error (-77)'


def test_a_joint_space_move_sends_the_configuration_that_was_checked() -> None:
    goal = built('motion_primitive').goal(pose_params())
    motion = goal.trajectory.motions[0]
    assert motion.type == MotionPrimitive.LINEAR_JOINT
    assert len(motion.joint_positions) == 6
    assert not motion.poses
    assert 0.0 < arguments(goal)['velocity'] < 1.2


def test_a_straight_move_sends_the_pose_and_the_speed_of_the_tip() -> None:
    params = pose_params((0.1, 0.1, 1.0), frame='world', motion='lin', max_velocity_mps=0.2)
    goal = built('motion_primitive').goal(params)
    motion = goal.trajectory.motions[0]
    assert motion.type == MotionPrimitive.LINEAR_CARTESIAN
    assert not motion.joint_positions
    stamped = motion.poses[0]
    assert stamped.header.frame_id == 'world'
    assert (stamped.header.stamp.sec, stamped.pose.position.z) == (0, 1.0)
    assert stamped.pose.orientation.w == 1.0
    assert 0.18 < arguments(goal)['velocity'] < 0.2


def test_options_of_a_move() -> None:
    goal = built('motion_primitive', motion='lin').goal(pose_params())
    assert goal.trajectory.motions[0].type == MotionPrimitive.LINEAR_CARTESIAN
    goal = built('motion_primitive', ptp_target='pose', tip_velocity_argument='tip_velocity').goal(
        pose_params(max_velocity_mps=0.1)
    )
    assert len(goal.trajectory.motions[0].poses) == 1
    assert arguments(goal)['tip_velocity'] == pytest.approx(0.095)
    free = built('motion_primitive', Robot(chain=None), limits=Limits())
    goal = free.goal(pose_params())
    assert arguments(goal) == {}
    with pytest.raises(ValueError, match='unknown frame'):
        free.goal(pose_params(frame='nope'))


def test_a_parallel_gripper_goal_and_what_comes_back() -> None:
    robot = Robot(joints={'finger': 0.0})
    adapter = built('parallel_gripper', robot, joint='finger', max_effort_n=20.0)
    params = {'position_m': 0.04, 'max_velocity_mps': 0.05}
    assert adapter.check(params) is None
    command = adapter.goal(params).command
    assert command.name == ['finger']
    assert list(command.position) == [0.04]
    assert list(command.velocity) == [0.05]
    assert list(command.effort) == [20.0]
    start = adapter.begin(params)
    feedback = ParallelGripperCommand.Feedback()
    assert adapter.progress(params, feedback) is None
    feedback.state = JointState(name=['other', 'finger'], position=[9.0, 0.01])
    assert adapter.progress(params, feedback) == pytest.approx(0.25)
    assert robot.joints is not None
    robot.joints['finger'] = 0.02
    assert adapter.measured_progress(params, start) == pytest.approx(0.5)
    assert adapter.outcome(ParallelGripperCommand.Result(reached_goal=True)).ok
    assert adapter.outcome(ParallelGripperCommand.Result(stalled=True)).ok
    assert not adapter.outcome(ParallelGripperCommand.Result()).ok
    strict = built('parallel_gripper', robot, joint='finger', fail_when_stalled=True)
    assert not strict.outcome(ParallelGripperCommand.Result(stalled=True)).ok
    refusal = adapter.check({'position_m': 0.04, 'max_velocity_mps': 5.0})
    assert refusal is not None
    assert 'max_velocity_mps' in refusal.detail
    refusal = adapter.check({'position_m': float('nan')})
    assert refusal is not None
    assert 'params.position_m' in refusal.detail


def test_a_parallel_gripper_without_a_joint_name() -> None:
    adapter = built('parallel_gripper', limits=Limits())
    command = adapter.goal({'position_m': 0.01, 'max_effort_n': 5}).command
    assert (list(command.name), list(command.velocity)) == ([], [])
    assert list(command.effort) == [5.0]
    feedback = ParallelGripperCommand.Feedback(state=JointState(position=[0.01]))
    assert adapter.progress({'position_m': 0.01}, feedback) == 1.0
    assert adapter.measured_progress({'position_m': 0.01}, {}) is None


def test_a_gripper_command_needs_an_effort_from_somewhere() -> None:
    adapter = built('gripper_command')
    assert 'max_effort_n' in adapter.params_schema({})['required']
    with pytest.raises(ValueError, match='max_effort_n'):
        adapter.goal({'position_m': 0.01})
    goal = adapter.goal({'position_m': 0.01, 'max_effort_n': 5})
    assert (goal.command.position, goal.command.max_effort) == (0.01, 5.0)
    configured = built('gripper_command', max_effort_n=40.0)
    assert configured.params_schema({'max_effort_n': 40.0})['required'] == ['position_m']
    assert configured.goal({'position_m': 0.01}).command.max_effort == 40.0
    assert adapter.progress({'position_m': 0.01}, GripperCommand.Feedback(position=0.0)) == 0.0
    assert adapter.progress({'position_m': 0.01}, GripperCommand.Feedback(position=0.005)) == 0.5
    nan = GripperCommand.Feedback(position=float('nan'))
    assert adapter.progress({'position_m': 0.01}, nan) is None
    assert adapter.outcome(GripperCommand.Result(stalled=True)).ok
    assert adapter.check({'position_m': 0.01}) is None
    assert adapter.begin({}) == {}
    assert adapter.measured_progress({}, {}) is None


def test_the_services_of_an_instant_action() -> None:
    trigger = built('trigger_service')
    assert isinstance(trigger.goal({}), Trigger.Request)
    outcome = trigger.outcome(Trigger.Response(success=False, message='not now'))
    assert (outcome.ok, outcome.detail) == (False, 'not now')
    empty = built('trigger_service', service_type='std_srvs/srv/Empty', moves_robot=False)
    assert isinstance(empty.goal({}), Empty.Request)
    assert empty.outcome(Empty.Response()).ok
    assert empty.limits_checked({'moves_robot': False}) == {'spatial', 'max_velocity_mps'}
    assert trigger.limits_checked({}) == frozenset()
    boolean = built('trigger_service', service_type='std_srvs/srv/SetBool')
    assert boolean.ros_type == 'std_srvs/srv/SetBool'
    request = boolean.goal({'data': True})
    assert isinstance(request, SetBool.Request)
    assert request.data is True
    assert boolean.params_schema({'service_type': 'std_srvs/srv/SetBool'})['required'] == ['data']
    assert boolean.check({'data': True}) is None


# ---------------------------------------------------------------- values


def test_values_become_a_message_without_loss() -> None:
    message = fill(BasicTypes(), BASIC)
    assert message.float32_value == 1.0
    assert message.byte_value == b'\xff'
    assert message.uint64_value == 2**64 - 1
    pose = {
        'position': {'x': 1, 'y': 2.5, 'z': 0},
        'orientation': {'x': 0, 'y': 0, 'z': 0, 'w': 1},
    }
    assert fill(PoseMessage(), pose).position.x == 1.0
    assert fill(EmptyMessage(), {}) == EmptyMessage()
    texts = dict.fromkeys(Strings.get_fields_and_field_types(), '') | {'string_value': 'ä'}
    assert fill(Strings(), texts).string_value == 'ä'


@pytest.mark.parametrize(
    ('field', 'value', 'what'),
    [
        ('uint8_value', 300, 'outside the range 0 to 255'),
        ('uint8_value', -1, 'outside the range'),
        ('int32_value', 1.5, 'an integer is needed, not 1.5'),
        ('int32_value', 1.0, 'an integer is needed'),
        ('int32_value', True, 'a number is needed, not true'),
        ('float64_value', False, 'a number is needed, not false'),
        ('float64_value', float('nan'), 'finite'),
        ('float64_value', float('inf'), 'finite'),
        ('float64_value', 10**400, 'finite'),
        ('float32_value', 1e39, 'outside the range of float'),
        ('float64_value', 'nan', "not 'nan'"),
        ('float64_value', None, 'not null'),
        ('float64_value', [1.0], 'not a list'),
        ('float64_value', {}, 'not an object'),
        ('float64_value', 'x' * 99, r'\.\.\.'),
        ('bool_value', 1, 'true or false is needed'),
        ('byte_value', 256, 'outside the range'),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_path(
    field: str, value: Any, what: str
) -> None:
    with pytest.raises(ValueRefused, match=rf'^goal\.{field}: .*{what}') as caught:
        fill(BasicTypes(), {**BASIC, field: value})
    assert caught.value.path == f'goal.{field}'


def test_unknown_and_missing_fields_are_refused() -> None:
    with pytest.raises(ValueRefused, match=r'goal.positoin: unknown field; did you mean position'):
        fill(PoseMessage(), {'positoin': {}})
    with pytest.raises(ValueRefused, match=r'goal.zzz: unknown field; there are position'):
        fill(PoseMessage(), {'zzz': {}})
    with pytest.raises(ValueRefused, match=r'goal: an object is needed'):
        fill(PoseMessage(), [])


def test_lists_have_their_sizes_and_paths() -> None:
    fields = BoundedSequences.get_fields_and_field_types()
    empty: dict[str, Any] = {f: [] for f in fields if f.endswith(('values', 'default'))}
    empty['alignment_check'] = 1
    message = fill(BoundedSequences(), {**empty, 'float64_values': [1, 2.5]})
    assert list(message.float64_values) == [1.0, 2.5]
    with pytest.raises(ValueRefused, match=r'float64_values: 3 items at most'):
        fill(BoundedSequences(), {**empty, 'float64_values': [0.0] * 4})
    with pytest.raises(ValueRefused, match=r'float64_values\[1\]: a finite number'):
        fill(BoundedSequences(), {**empty, 'float64_values': [0.0, float('nan')]})
    with pytest.raises(ValueRefused, match=r'float64_values: a list is needed'):
        fill(BoundedSequences(), {**empty, 'float64_values': 'abc'})
    nested = {**empty, 'basic_types_values': [{**BASIC, 'uint8_value': 300}]}
    with pytest.raises(ValueRefused, match=r'basic_types_values\[0\].uint8_value: 300'):
        fill(BoundedSequences(), nested)
    with pytest.raises(ValueRefused, match=r'bool_values: 3 items are needed, not 1'):
        fill(Arrays(), {'bool_values': [True]})
    texts = dict.fromkeys(Strings.get_fields_and_field_types(), '')
    with pytest.raises(ValueRefused, match=r'bounded_string_value: 22 bytes at most'):
        fill(Strings(), {**texts, 'bounded_string_value': 'x' * 23})
    with pytest.raises(ValueRefused, match=r'string_value: a text is needed'):
        fill(Strings(), {**texts, 'string_value': 1})


# ---------------------------------------------------------------- types


def test_types_by_name() -> None:
    assert load_interface('control_msgs/action/GripperCommand') is GripperCommand
    fields = {f.path: f.type for f in describe(load_interface('geometry_msgs/msg/PoseArray'))}
    assert fields['header.frame_id'] == 'string'
    assert fields['poses'] == 'sequence<geometry_msgs/Pose>'
    assert fields['poses[].position.x'] == 'double'
    covariance = {f.path: f.type for f in describe(load_interface('nav_msgs/msg/Odometry'))}
    assert covariance['pose.covariance'] == 'double[36]'


@pytest.mark.parametrize(
    ('name', 'text'),
    [
        ('nonsense', 'names no ROS type'),
        ('no_such_msgs/msg/Foo', r"'no_such_msgs' is neither installed nor sourced.*no-such-msgs"),
        ('no_such_msgs/msg/Foo', r'sourced; install ros-'),
        ('contrl_msgs/action/Foo', r'sourced; did you mean control_msgs\? Else install ros-'),
        ('std_msgs/msg/Strin', 'did you mean String'),
        ('std_srvs/srv/Qqqqqq', 'it has Empty'),
        ('std_msgs/action/Foo', 'has no action types'),
    ],
)
def test_a_missing_type_says_what_to_do(name: str, text: str) -> None:
    with pytest.raises(InterfaceMissing, match=text):
        load_interface(name)
