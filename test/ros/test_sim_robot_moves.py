"""PTP and LIN moves of the simulated robot: targets, speeds, cancels, refusals."""

from collections.abc import Iterator
import math
from typing import Any

from action_msgs.msg import GoalStatus
import pytest
from ros_peer import Listener, RosPeer
from sensor_msgs.msg import JointState
from sim_robot_goals import (
    arm_speed_radps,
    away,
    braked_s,
    LIN,
    move,
    PTP,
    reset,
    send_moves,
    send_trajectory,
    set_fault,
    trajectory,
    wait_moving,
)

from awp_ros_bridge.kinematics import Chain, Pose
from awp_ros_bridge.sim_robot.description import load_arm_chain, load_urdf

DEMO = [(0.3, 0.2, 0.5), (-0.2, 0.1, 0.3), (0.0, -0.3, 0.45), (0.0, 0.0, 0.4)]
pytestmark = pytest.mark.usefixtures('sim_robot')


@pytest.fixture(scope='module')
def arm() -> Chain:
    return load_arm_chain(load_urdf())


@pytest.fixture(scope='module')
def joint_states(peer: RosPeer) -> Iterator[Listener]:
    listener = peer.listen(JointState, 'joint_states', 100)
    yield listener
    listener.close()


@pytest.fixture(autouse=True)
def at_home(peer: RosPeer, joint_states: Listener) -> None:
    reset(peer)
    joint_states.wait_next()
    joint_states.clear()


def top_speed_mps(arm: Chain, messages: list[Any]) -> float:
    return max(arm.tip_speed_mps(m.position[:6], m.velocity[:6]) for m in messages)


def tip(arm: Chain, joint_states: Listener) -> Pose:
    return arm.forward(joint_states.wait_next().position[:6])


@pytest.mark.parametrize('kind', [PTP, LIN])
def test_the_demo_targets_are_reached_below_half_a_metre_per_second(
    peer: RosPeer, joint_states: Listener, arm: Chain, kind: int
) -> None:
    for target in DEMO:
        goal = send_moves(peer, move(kind, target))
        assert goal.is_accepted
        ended = goal.wait_result()
        assert ended.status == GoalStatus.STATUS_SUCCEEDED
        assert ended.result.error_code == ended.result.SUCCESSFUL
        assert tip(arm, joint_states).distance_m(Pose(target, (0, 0, 0, 1))) < 1e-3
        assert tip(arm, joint_states).angle_rad(Pose(target, (0, 0, 0, 1))) < 1e-3
    assert 0.25 < top_speed_mps(arm, joint_states.messages) < 0.33


@pytest.mark.parametrize(
    ('kind', 'arguments', 'limit_mps'),
    [
        (LIN, {'velocity': 0.1}, 0.1),
        (LIN, {'velocity': 9.0, 'acceleration': 9.0}, 0.48),
        (PTP, {'tip_velocity': 0.1}, 0.1),
        (PTP, {'velocity': 9.0}, 0.48),
        (LIN, {'move_time': 0.01}, 0.48),
    ],
)
def test_speeds_are_bounded(
    peer: RosPeer,
    joint_states: Listener,
    arm: Chain,
    kind: int,
    arguments: dict[str, float],
    limit_mps: float,
) -> None:
    goal = send_moves(peer, move(kind, (0.1, 0.2, 0.4), **arguments))
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    top = top_speed_mps(arm, joint_states.messages)
    assert 0.6 * limit_mps < top < 1.03 * limit_mps


def test_move_time(peer: RosPeer, joint_states: Listener) -> None:
    goal = send_moves(peer, move(PTP, (0.1, 0.1, 0.4), move_time=2.5))
    goal.wait_result()
    assert braked_s(joint_states) == pytest.approx(2.5, abs=0.15)


def test_joints_as_the_target_of_both_kinds(
    peer: RosPeer, joint_states: Listener, arm: Chain
) -> None:
    for kind in (PTP, LIN):
        goal = send_moves(peer, move(kind, joints_rad=away(0.2 if kind == PTP else 0.0)))
        assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    assert tip(arm, joint_states).position_m == pytest.approx((0.0, 0.0, 0.4), abs=1e-3)


def test_a_pose_in_another_frame(peer: RosPeer, joint_states: Listener, arm: Chain) -> None:
    goal = send_moves(peer, move(LIN, (0.1, 0.0, 1.0), frame='world'))
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    assert tip(arm, joint_states).position_m == pytest.approx((0.1, 0.0, 0.4), abs=1e-3)
    goal = send_moves(peer, move(LIN, (0.0, 0.0, 0.1), frame='tool0'))
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    assert tip(arm, joint_states).position_m == pytest.approx((0.1, 0.0, 0.5), abs=1e-3)


def test_a_sequence_and_its_feedback(peer: RosPeer, joint_states: Listener, arm: Chain) -> None:
    goal = send_moves(
        peer, move(PTP, (0.1, 0.1, 0.4)), move(LIN, (0.1, -0.1, 0.4)), move(PTP, (0, 0, 0.4))
    )
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    indices = [f.current_primitive_index for f in goal.feedback]
    assert sorted(set(indices)) == [0, 1, 2]
    assert indices == sorted(indices)
    assert tip(arm, joint_states).position_m == pytest.approx((0.0, 0.0, 0.4), abs=1e-3)


@pytest.mark.parametrize('kind', [PTP, LIN])
def test_cancel_ends_the_goal_when_the_arm_rests(
    peer: RosPeer, joint_states: Listener, kind: int
) -> None:
    goal = send_moves(peer, move(kind, (0.4, 0.4, 0.6)))
    wait_moving(peer, joint_states, 0.15)
    joint_states.clear()
    assert len(goal.cancel().goals_canceling) == 1
    ended = goal.wait_result()
    assert ended.status == GoalStatus.STATUS_CANCELED
    assert arm_speed_radps(joint_states.wait_next()) < 1e-3, 'it ended at rest'
    tail = [m for m in joint_states.messages if arm_speed_radps(m) > 0.02]
    assert len(tail) > 3
    speeds = [arm_speed_radps(m) for m in tail]
    assert speeds[-1] < 0.5 * speeds[0]


def test_a_second_goal_is_rejected_while_one_runs(
    peer: RosPeer, joint_states: Listener
) -> None:
    first = send_moves(peer, move(PTP, (0.3, 0.2, 0.5), tip_velocity=0.1))
    assert not send_moves(peer, move(PTP, (0.0, 0.0, 0.4))).is_accepted
    assert not send_trajectory(peer, trajectory([(1.0, away(0.1))])).is_accepted
    wait_moving(peer, joint_states)
    first.cancel()
    assert first.wait_result().status == GoalStatus.STATUS_CANCELED
    second = send_moves(peer, move(PTP, (0.1, 0.0, 0.4)))
    assert second.wait_result().status == GoalStatus.STATUS_SUCCEEDED


def test_a_goal_waits_for_the_arm_to_rest(peer: RosPeer, joint_states: Listener) -> None:
    first = send_trajectory(peer, trajectory([(3.0, away(1.5))]))
    wait_moving(peer, joint_states, 0.3)
    set_fault(peer, 'slow_stop=6')
    first.cancel()
    first.wait_result()
    assert arm_speed_radps(joint_states.wait_next()) > 0.05
    goal = send_moves(peer, move(PTP, (0.0, 0.0, 0.4)))
    assert goal.is_accepted
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED


@pytest.mark.parametrize(
    'moves',
    [
        [],
        [move(51, (0.1, 0.1, 0.4))],
        [move(-1, (0.1, 0.1, 0.4))],
        [move(PTP)],
        [move(PTP, joints_rad=[0.0, 0.1])],
        [move(LIN, (math.nan, 0.0, 0.4))],
        [move(LIN, (0.1, 0.0, 0.4), quaternion=(0, 0, 0, 0))],
        [move(LIN, (0.1, 0.0, 0.4), frame='no_such_frame')],
        [move(LIN, (0.1, 0.0, 0.4), velocity=-1.0)],
        [move(LIN, (0.1, 0.0, 0.4), velocity=math.nan)],
        [move(LIN, (0.1, 0.0, 0.4), speed=1.0)],
        [move(LIN, (0.1, 0.0, 0.4)), move(LIN)],
    ],
    ids=[
        'nothing', 'circle', 'unknown type', 'no target', 'two joints', 'nan', 'no orientation',
        'unknown frame', 'negative velocity', 'nan velocity', 'unknown argument', 'second is bad',
    ],
)
def test_refusals(peer: RosPeer, moves: list[Any]) -> None:
    assert not send_moves(peer, *moves).is_accepted


@pytest.mark.parametrize('kind', [PTP, LIN])
def test_out_of_reach_is_aborted_with_the_reason(
    peer: RosPeer, joint_states: Listener, kind: int
) -> None:
    ended = send_moves(peer, move(kind, (5.0, 0.0, 0.4))).wait_result()
    assert ended.status == GoalStatus.STATUS_ABORTED
    assert ended.result.error_code == ended.result.INVALID_GOAL
    assert 'primitive 0' in ended.result.error_string
    assert all(arm_speed_radps(m) == 0.0 for m in joint_states.messages)
