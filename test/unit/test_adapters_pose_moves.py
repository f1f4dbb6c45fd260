"""The check of moves to a pose: frame, orientation, box, reach, speed; progress by measurement."""

from __future__ import annotations

from typing import Any

from adapter_context import BOX_M, CHAIN, pose_params, Robot
from jsonschema import Draft202012Validator
import numpy as np
import pytest

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.kinematics import Chain, Pose, sample_tip_line, solve_inverse
from awp_ros_bridge.ros.adapters.base import Limits
from awp_ros_bridge.ros.adapters.motion_primitive import MotionPrimitiveAdapter
from awp_ros_bridge.ros.adapters.pose_moves import Ends, Move, plan_move
from awp_ros_bridge.sim_robot.description import (
    ARM_HOME_RAD,
    ARM_JOINTS,
    load_arm_chain,
    load_urdf,
)

NAN = float('nan')


def refusal(params: dict[str, Any], robot: Robot | None = None, **options: Any) -> tuple[str, str]:
    limits = options.pop('limits', None)
    context = (robot or Robot()).context(**({'limits': limits} if limits else {}), **options)
    found = MotionPrimitiveAdapter(context).check(params)
    return ('', '') if found is None else (found.kind.value, found.detail)


def schema_accepts(params: dict[str, Any]) -> bool:
    return Draft202012Validator(MotionPrimitiveAdapter.params_schema({})).is_valid(params)


@pytest.mark.parametrize('motion', ['ptp', 'lin'])
@pytest.mark.parametrize('p_m', [(0.3, 0.2, 0.5), (-0.2, -0.3, 0.1), (0.0, 0.1, 0.35)])
def test_a_move_within_the_limits_passes(p_m: tuple[float, float, float], motion: str) -> None:
    params = pose_params(p_m, motion=motion, max_velocity_mps=0.4)
    assert schema_accepts(params)
    assert refusal(params) == ('', '')


@pytest.mark.parametrize(
    'params',
    [
        {'pose': {}},
        {**pose_params(), 'typo': 1},
        pose_params(q=(0, 0, 1)),  # type: ignore[arg-type]
        pose_params(frame=''),
        pose_params(frame='/map'),
        pose_params(p_m=(1, 2, '3')),  # type: ignore[arg-type]
        pose_params(max_velocity_mps=0),
        pose_params(max_velocity_mps=True),
        pose_params(motion='circ'),
    ],
)
def test_the_schema_is_strict(params: dict[str, Any]) -> None:
    assert not schema_accepts(params)


@pytest.mark.parametrize(
    ('params', 'kind', 'text'),
    [
        (pose_params((0.9, 0.0, 0.4)), 'envelope', 'params.pose.p_m: the tip at (0.900'),
        (pose_params((0.3, 0.2, NAN)), 'params', 'params.pose.p_m[2]'),
        (pose_params(q=(0, 0, 0, 0)), 'params', 'params.pose.q: a quaternion of length 0'),
        (pose_params(q=(0, 0, 0, 1.01)), 'params', 'params.pose.q'),
        (pose_params(frame=''), 'params', 'known frames: world, base, tool0, camera'),
        (pose_params(frame='/map'), 'params', "params.pose.frame: unknown frame '/map'"),
        (pose_params(frame='nope'), 'params', 'params.pose.frame'),
        (pose_params(max_velocity_mps=100.0), 'envelope', 'params.max_velocity_mps: 100 m/s'),
        (pose_params(frame='camera'), 'unready', "frame 'camera' cannot be related"),
    ],
)
def test_a_bad_move_is_refused_with_its_path(params: Any, kind: str, text: str) -> None:
    for motion in ('ptp', 'lin'):
        found = refusal({**params, 'motion': motion})
        assert found[0] == kind
        assert text in found[1]


def test_a_nearly_unit_quaternion_is_taken() -> None:
    assert refusal(pose_params(q=(0, 0, 0, 1.0005))) == ('', '')


def test_out_of_reach_is_said() -> None:
    kind, detail = refusal(pose_params((5.0, 0.0, 0.4)), limits=Limits())
    assert kind == 'params'
    assert 'out of reach' in detail


def test_poses_in_other_frames_are_related_to_the_box() -> None:
    inside, outside = pose_params((0.3, 0.2, 1.1), frame='world'), pose_params(frame='world')
    robot = Robot()
    assert refusal(inside, robot) == ('', '')
    assert refusal(outside, robot)[0] == 'envelope'
    robot.poses['camera', 'base'] = Pose((0.0, 0.0, 0.4), (0.0, 0.0, 0.0, 1.0))
    assert refusal(pose_params((0.1, 0.0, 0.0), frame='camera'), robot) == ('', '')
    assert refusal(pose_params((0.1, 0.0, 0.5), frame='camera'), robot)[0] == 'envelope'


def test_the_way_in_joint_space_leaves_the_box_though_the_line_does_not() -> None:
    # From one side to the other the tip swings outwards on its arc.
    limits = Limits('base', ((-0.9, -0.6, 0.0), (-0.05, 0.6, 0.9)), None)
    robot = Robot()
    assert robot.joints is not None
    robot.joints['joint_1'] = -0.5
    turned = tuple(float(v) for v in CHAIN.forward([0.5, *ARM_HOME_RAD[1:]]).quaternion_xyzw)
    target = CHAIN.forward([0.5, *ARM_HOME_RAD[1:]]).position_m
    params = pose_params(target, turned)  # type: ignore[arg-type]
    assert refusal({**params, 'motion': 'lin'}, robot, limits=limits) == ('', '')
    kind, detail = refusal({**params, 'motion': 'ptp'}, robot, limits=limits)
    assert kind == 'envelope'
    assert 'on the way in joint space' in detail


@pytest.mark.parametrize('speed_mps', [0.5, 0.1, 0.005])
def test_the_velocity_asked_for_keeps_the_tip_below_its_limit(speed_mps: float) -> None:
    context = Robot().context()
    move = plan_move(context, pose_params(), speed_mps, False, False)
    assert isinstance(move, Move)
    assert move.joints_rad is not None
    assert move.velocity is not None
    farthest_rad = float(np.max(np.abs(np.subtract(move.joints_rad, ARM_HOME_RAD))))
    path = sample_tip_line(
        CHAIN,
        ARM_HOME_RAD,
        move.joints_rad,
        duration_s=farthest_rad / move.velocity,
        max_step_rad=0.001,
    )
    assert 0.9 * speed_mps < path.max_speed_mps <= speed_mps
    straight = plan_move(context, pose_params(), speed_mps, True, False)
    assert isinstance(straight, Move)
    assert straight.velocity is not None
    assert 0.9 * speed_mps < straight.velocity <= speed_mps


def test_without_a_chain_only_what_can_be_proved_passes() -> None:
    robot = Robot(chain=None)
    free, fast = Limits(), Limits(max_velocity_mps=0.5)
    assert refusal(pose_params(), robot)[0] == 'unready'
    assert refusal(pose_params(), robot, limits=free) == ('', '')
    assert refusal(pose_params(), robot, limits=fast)[0] == 'unready'
    assert refusal(pose_params(motion='lin'), robot, limits=fast) == ('', '')
    assert refusal(pose_params(), robot, limits=fast, tip_velocity_argument='tip_velocity') == (
        '',
        '',
    )


def test_without_joint_states_a_move_is_unready() -> None:
    assert refusal(pose_params(), Robot(joints=None))[0] == 'unready'
    robot = Robot()
    assert robot.joints is not None
    robot.joints['joint_4'] = NAN
    assert 'joint_4' in refusal(pose_params(), robot)[1]


def test_a_robot_outside_its_box_may_come_back() -> None:
    robot = Robot()
    assert robot.joints is not None
    robot.joints['joint_1'] = 0.8
    y_m = CHAIN.forward(list(robot.joints.values())).position_m[1]
    assert y_m > BOX_M[1][1]
    assert refusal(pose_params(motion='lin'), robot) == ('', '')
    assert refusal(pose_params(motion='ptp'), robot) == ('', '')


def test_progress_is_the_measured_way() -> None:
    robot = Robot()
    adapter = MotionPrimitiveAdapter(robot.context())
    params = pose_params()
    start = adapter.begin(params)
    assert adapter.measured_progress(params, start) == 0.0
    move = plan_move(robot.context(), params, 0.5, False, False)
    assert isinstance(move, Move)
    assert move.joints_rad is not None
    half = (np.array(move.joints_rad) + np.array(ARM_HOME_RAD)) / 2
    robot.joints = dict(zip(ARM_JOINTS, half.tolist(), strict=True))
    found = adapter.measured_progress(params, start)
    assert found is not None
    assert 0.4 < found < 0.6
    robot.joints = dict(zip(ARM_JOINTS, move.joints_rad, strict=True))
    found = adapter.measured_progress(params, start)
    assert found == pytest.approx(1.0, abs=0.01)
    assert adapter.measured_progress(params, adapter.begin(params)) == 1.0
    robot.joints = None
    assert adapter.measured_progress(params, start) is None
    assert adapter.begin(params) == {}


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Pose]:
    """Return the targets for which a configuration was searched."""
    targets: list[Pose] = []

    def noted(chain: Chain, target: Pose, *more: Any, **options: Any) -> Any:
        targets.append(target)
        return solve_inverse(chain, target, *more, **options)

    monkeypatch.setattr('awp_ros_bridge.ros.adapters.pose_moves.solve_inverse', noted)
    return targets


def planned(robot: Robot, ends: Ends, params: dict[str, Any]) -> Move:
    move = plan_move(robot.context(), params, 0.5, params.get('motion') == 'lin', False, ends)
    assert isinstance(move, Move), move
    return move


def test_a_configuration_is_searched_once_from_one_place(searches: list[Pose]) -> None:
    robot, ends = Robot(), Ends()
    there, elsewhere = pose_params(), pose_params((-0.2, 0.1, 0.3))
    first = planned(robot, ends, there)
    assert planned(robot, ends, elsewhere) != first
    assert planned(robot, ends, there) == first
    assert planned(robot, ends, {**there, 'motion': 'lin'}).joints_rad == first.joints_rad
    assert len(searches) == 2
    # Another thread has a chain of its own from the same description.
    assert planned(Robot(chain=load_arm_chain(load_urdf())), ends, there) == first
    assert len(searches) == 2
    changed = load_arm_chain(load_urdf() + '<!-- changed -->')
    assert planned(Robot(chain=changed), ends, there) == first
    assert len(searches) == 3


def test_what_depends_on_where_the_move_begins_is_computed_again(searches: list[Pose]) -> None:
    robot, ends = Robot(), Ends()
    first = planned(robot, ends, pose_params())
    assert robot.joints is not None
    robot.joints['joint_2'] += 0.009
    near = planned(robot, ends, pose_params())
    assert len(searches) == 1
    assert near.joints_rad == first.joints_rad
    assert near.velocity != first.velocity
    assert near.velocity == pytest.approx(planned(robot, Ends(), pose_params()).velocity, rel=1e-5)
    robot.joints['joint_2'] += 0.002
    planned(robot, ends, pose_params())
    assert len(searches) == 3


def test_a_known_end_admits_no_way_that_leaves_the_box(searches: list[Pose]) -> None:
    # The tip swings outwards between two places at the same distance from the pedestal.
    robot, ends = Robot(), Ends()
    assert robot.joints is not None
    robot.joints['joint_1'] = -0.5
    turned = CHAIN.forward([0.5, *ARM_HOME_RAD[1:]])
    params = pose_params(turned.position_m, turned.quaternion_xyzw)
    wide = Limits('base', ((-0.9, -0.6, 0.0), (0.01, 0.6, 0.9)), None)
    narrow = Limits('base', ((-0.9, -0.6, 0.0), (-0.05, 0.6, 0.9)), None)
    found = [
        plan_move(robot.context(limits), params, 0.5, False, False, ends)
        for limits in (wide, narrow)
    ]
    assert [type(each) for each in found] == [Move, GoalRefusal]
    assert len(searches) == 1


def test_a_frame_that_moved_is_another_target(searches: list[Pose]) -> None:
    robot, ends = Robot(), Ends()
    params = pose_params((0.1, 0.0, 0.0), frame='camera')
    robot.poses['camera', 'base'] = Pose((0.0, 0.0, 0.4), (0.0, 0.0, 0.0, 1.0))
    first = planned(robot, ends, params)
    robot.poses['camera', 'base'] = Pose((0.0, 0.1, 0.4), (0.0, 0.0, 0.0, 1.0))
    assert planned(robot, ends, params).joints_rad != first.joints_rad
    assert len(searches) == 2


def test_only_the_newest_ends_are_kept(searches: list[Pose]) -> None:
    robot, ends = Robot(), Ends()
    targets = [pose_params((0.02 * i, 0.1, 0.4)) for i in range(9)]
    for params in targets:
        planned(robot, ends, params)
    planned(robot, ends, targets[-1])
    assert len(searches) == 9
    planned(robot, ends, targets[0])
    assert len(searches) == 10


def test_the_refusal_is_a_value() -> None:
    found = plan_move(Robot().context(), pose_params((9.0, 0.0, 0.0)), 0.1, True, False)
    assert isinstance(found, GoalRefusal)
