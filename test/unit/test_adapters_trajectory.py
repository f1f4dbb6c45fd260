"""The check of joint trajectories: shape, joints, limits of the tip, what is not known."""

from __future__ import annotations

from typing import Any

from adapter_context import BOX_M, home, point, Robot, trajectory
from jsonschema import Draft202012Validator
import pytest

from awp_ros_bridge.engine.policy import RefusalKind
from awp_ros_bridge.kinematics import Pose
from awp_ros_bridge.ros.adapters.base import Limits
from awp_ros_bridge.ros.adapters.follow_joint_trajectory import FollowJointTrajectoryAdapter
from awp_ros_bridge.sim_robot.description import ARM_JOINTS

NAN = float('nan')


def refusal(params: dict[str, Any], robot: Robot | None = None, **options: Any) -> tuple[str, str]:
    limits = options.pop('limits', None)
    context = (robot or Robot()).context(**({'limits': limits} if limits else {}), **options)
    found = FollowJointTrajectoryAdapter(context).check(params)
    return ('', '') if found is None else (found.kind.value, found.detail)


def schema_accepts(params: dict[str, Any], **options: Any) -> bool:
    schema = FollowJointTrajectoryAdapter.params_schema(options)
    return Draft202012Validator(schema).is_valid(params)


GOOD = trajectory(point(home(joint_1=0.3), 1000), goal_time_tolerance_ms=200)


def test_a_good_trajectory_passes() -> None:
    assert schema_accepts(GOOD)
    assert refusal(GOOD) == ('', '')
    smooth = trajectory(
        point(home(), 0, velocities_radps=[0] * 6, accelerations_radps2=[0] * 6),
        point(home(joint_1=0.1), 500, velocities_radps=[0.2] * 6, accelerations_radps2=[0] * 6),
        point(home(joint_1=0.2), 1000, velocities_radps=[0] * 6, accelerations_radps2=[0] * 6),
    )
    assert schema_accepts(smooth)
    assert refusal(smooth) == ('', '')


@pytest.mark.parametrize(
    'params',
    [
        trajectory(),
        {**GOOD, 'typo': 1},
        {'joint_names': list(ARM_JOINTS)},
        trajectory({'positions_rad': [0.0] * 6}),
        trajectory(point(home(), 1.5)),  # type: ignore[arg-type]
        trajectory(point(home(), -1)),
        trajectory(point(['x'] * 6, 100)),
        trajectory(point([True] * 6, 100)),
        trajectory(point(home(), 100), names=[*ARM_JOINTS[:5], 'joint_1']),
        trajectory(point(home(), 100, effort=[1.0])),
    ],
)
def test_the_schema_is_strict(params: dict[str, Any]) -> None:
    assert not schema_accepts(params)


def test_configured_joints_are_in_the_schema() -> None:
    assert schema_accepts(GOOD, joints=list(ARM_JOINTS))
    assert not schema_accepts(GOOD, joints=['other'])


@pytest.mark.parametrize(
    ('params', 'path'),
    [
        (trajectory(), 'params.points: empty'),
        (trajectory(point([NAN, *home()[1:]], 100)), 'params.points[0].positions_rad[0]'),
        (trajectory(point(home()[:4], 100)), 'params.points[0].positions_rad: 4 numbers for 6'),
        (
            trajectory(point(home(), 100, velocities_radps=[0])),
            'params.points[0].velocities_radps',
        ),
        (
            trajectory(point(home(), 100), point(home(), 100)),
            'params.points[1].time_from_start_ms: 100 does not follow 100',
        ),
        (trajectory(point(home(), 100, velocities_radps=[0, 0, 0, 0, 0, 0.5])), 'end at rest'),
        (
            trajectory(point(home(), 100), names=[*ARM_JOINTS[:5], 'joint_1']),
            'named twice: joint_1',
        ),
        (trajectory(point(home(), 100), names=[*ARM_JOINTS[:5], 'knee']), 'unknown: knee'),
        (trajectory(point([0.1] * 5, 100), names=ARM_JOINTS[:5]), 'missing: joint_6'),
        (trajectory(point(home(joint_1=50.0), 60_000)), 'joint_1 at 50.0000 is outside its range'),
        (trajectory(point(home(joint_1=0.3), 0)), 'would jump'),
    ],
)
def test_a_bad_trajectory_is_refused_with_its_path(params: dict[str, Any], path: str) -> None:
    kind, detail = refusal(params)
    assert kind == 'params'
    assert path in detail


def test_the_order_of_the_joints_is_theirs() -> None:
    names = tuple(reversed(ARM_JOINTS))
    near = trajectory(point(reversed(home(joint_1=0.3)), 1000), names=names)
    assert refusal(near) == ('', '')
    far = trajectory(point(reversed(home(joint_1=1.5)), 9000), names=names)
    assert refusal(far)[0] == 'envelope'


def test_partial_goals_need_permission() -> None:
    params = trajectory(point([0.3], 1000), names=['joint_1'])
    assert refusal(params)[0] == 'params'
    assert refusal(params, allow_partial=True) == ('', '')
    far = trajectory(point([1.5], 9000), names=['joint_1'])
    assert refusal(far, allow_partial=True)[0] == 'envelope'


def test_a_far_first_point_is_refused_where_configured() -> None:
    assert 'joint_1 would jump' in refusal(GOOD, max_first_point_jump_rad=0.2)[1]


def test_the_way_leaves_the_box_though_its_ends_are_inside() -> None:
    # Both ends lie beside the work surface, the way between them sweeps in front of it.
    limits = Limits('base', ((-0.9, -0.6, 0.0), (-0.05, 0.6, 0.9)), None)
    robot = Robot()
    assert robot.joints is not None
    robot.joints['joint_1'] = -0.5
    params = trajectory(point(home(joint_1=0.5), 9000))
    kind, detail = refusal(params, robot, limits=limits)
    assert kind == 'envelope'
    assert 'at 3.' in detail or 'at 2.' in detail or 'at 1.' in detail
    assert "in frame 'base' is outside the box" in detail


def test_too_fast_is_refused_with_value_and_limit() -> None:
    kind, detail = refusal(trajectory(point(home(joint_1=0.3), 300)))
    assert kind == 'envelope'
    assert 'm/s is above the limit max_velocity_mps of 0.5 m/s' in detail


def test_the_velocity_at_the_beginning_counts() -> None:
    # A chunk that goes on at the speed the arm has is smooth; from standstill it would overshoot.
    steady = point(home(joint_1=0.005), 10, velocities_radps=[0.5, 0, 0, 0, 0, 0])
    params = trajectory(steady, point(home(joint_1=0.05), 190, velocities_radps=[0] * 6))
    assert refusal(params)[0] == 'envelope'
    moving = dict.fromkeys(ARM_JOINTS, 0.0) | {'joint_1': 0.5}
    assert refusal(params, Robot(velocities=moving)) == ('', '')


def test_a_way_back_into_the_box_is_allowed_but_not_farther_out() -> None:
    robot = Robot()
    assert robot.joints is not None
    robot.joints['joint_1'] = 0.8  # y above 0.5 m
    assert refusal(trajectory(point(home(joint_1=0.3), 4000)), robot) == ('', '')
    assert refusal(trajectory(point(home(joint_1=0.9), 4000)), robot)[0] == 'envelope'
    assert refusal(trajectory(point(home(joint_1=0.75), 4000)), robot)[0] == 'envelope'


def test_what_is_not_known_yet_is_unready() -> None:
    assert refusal(GOOD, Robot(joints=None))[0] == 'unready'
    assert refusal(GOOD, Robot(joints=None, chain=None))[0] == 'unready'
    assert refusal(GOOD, Robot(chain=None)) == (
        'unready',
        'the limits need the robot description, which is not known yet',
    )
    assert refusal(GOOD, Robot(chain=None), limits=Limits()) == ('', '')
    robot = Robot()
    assert robot.joints is not None
    robot.joints['joint_2'] = NAN
    assert 'joint_2' in refusal(GOOD, robot)[1]
    del robot.joints['joint_2']
    partial = trajectory(point([0.1], 1000), names=['joint_1'])
    assert refusal(partial, robot, allow_partial=True)[0] == 'unready'


@pytest.mark.parametrize('frame', ['world', 'camera'])
def test_the_box_may_stand_in_another_frame(frame: str) -> None:
    low, high = BOX_M
    shifted = (low[0], low[1], low[2] + 0.6), (high[0], high[1], high[2] + 0.6)
    limits = Limits(frame, shifted, None)
    robot = Robot()
    if frame == 'camera':
        assert refusal(GOOD, robot, limits=limits)[0] == 'unready'
        robot.poses['base', 'camera'] = Pose((0.0, 0.0, 0.6), (0.0, 0.0, 0.0, 1.0))
    assert refusal(GOOD, robot, limits=limits) == ('', '')
    far = trajectory(point(home(joint_1=1.5), 9000))
    assert refusal(far, robot, limits=limits)[0] == 'envelope'


def test_an_endless_trajectory_is_refused_not_computed() -> None:
    kind, detail = refusal(trajectory(point(home(joint_1=0.1), 24 * 3600 * 1000)))
    assert kind == RefusalKind.PARAMS
    assert 'samples' in detail


HUGE = [1e308, 0, 0, 0, 0, 0]
BRAKE = [-1.7e308, 0, 0, 0, 0, 0]


@pytest.mark.parametrize('limits', [Limits('base', BOX_M, None), Limits(max_velocity_mps=0.5)])
@pytest.mark.parametrize('rows', [{'velocities_radps': HUGE}, {'accelerations_radps2': BRAKE}])
def test_numbers_too_large_to_compute_with_are_refused(rows: Any, limits: Limits) -> None:
    rest = {'velocities_radps': [0.0] * 6, 'accelerations_radps2': [0.0] * 6}
    params = trajectory(point(home(), 1000, **(rest | rows)), point(home(), 2000, **rest))
    assert schema_accepts(params)
    assert refusal(params, limits=limits)[0] == 'params'


@pytest.mark.parametrize(
    ('params', 'path'),
    [
        (trajectory(point(home(), 100), goal_time_tolerance_ms=NAN), 'goal_time_tolerance_ms'),
        (trajectory(point(home(), NAN)), 'params.points[0].time_from_start_ms'),  # type: ignore[arg-type]
        (trajectory(point(home(), 100, accelerations_radps2=[0, 0, 0, 0, 0, -NAN])), '_radps2[5]'),
    ],
)
def test_every_number_must_be_finite(params: dict[str, Any], path: str) -> None:
    kind, detail = refusal(params)
    assert kind == 'params'
    assert f'{path}: not a finite number' in detail


def test_joints_that_a_goal_does_not_name_stay_where_they_are() -> None:
    robot = Robot()
    assert robot.joints is not None
    robot.joints['joint_1'] = 0.4
    rows = {'velocities_radps': [0.0, 0.0], 'accelerations_radps2': [0.0, 0.0]}
    params = trajectory(
        point([0.05, 0.2], 1500, **rows),
        point([0.0, 0.0], 3000, **rows),
        names=['joint_6', 'joint_4'],
    )
    assert refusal(params, robot, allow_partial=True) == ('', '')
    robot.joints['joint_1'] = 1.5  # the tip is outside the box, and the goal leaves it there
    assert refusal(params, robot, allow_partial=True)[0] == 'envelope'


def test_progress_by_measurement() -> None:
    robot = Robot()
    adapter = FollowJointTrajectoryAdapter(robot.context())
    start = adapter.begin(GOOD)
    assert adapter.measured_progress(GOOD, start) == 0.0
    assert robot.joints is not None
    robot.joints['joint_1'] = 0.15
    assert adapter.measured_progress(GOOD, start) == pytest.approx(0.5)
    robot.joints['joint_1'] = NAN
    assert adapter.measured_progress(GOOD, start) is None
    robot.joints = None
    assert adapter.measured_progress(GOOD, start) is None
    assert adapter.measured_progress(GOOD, {}) is None
