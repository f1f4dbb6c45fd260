"""Every fault of the simulated robot does what it says, and heals."""

from collections.abc import Iterator
from itertools import pairwise
import math
import time
from typing import Any

from action_msgs.msg import GoalStatus, GoalStatusArray
from processes import start_sim_robot, StartedProcess
import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_peer import Listener, RosPeer
from sensor_msgs.msg import JointState
from sim_robot_goals import (
    arm_speed_radps,
    away,
    braked_s,
    HOME,
    move,
    parameter_request,
    PTP,
    reset,
    send_gripper,
    send_moves,
    send_trajectory,
    set_fault,
    set_parameter,
    TRAJECTORY,
    trajectory,
    wait_at_rest,
    wait_moving,
)
from std_msgs.msg import Bool

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@pytest.fixture(scope='module')
def joint_states(sim_robot: StartedProcess, peer: RosPeer) -> Iterator[Listener]:
    listener = peer.listen(JointState, 'joint_states', 100)
    yield listener
    listener.close()


@pytest.fixture(autouse=True)
def healthy(peer: RosPeer, joint_states: Listener) -> Iterator[None]:
    reset(peer)
    joint_states.wait_next()
    joint_states.clear()
    yield
    reset(peer)


def short(peer: RosPeer, seconds: float = 1.0) -> Any:
    return send_trajectory(
        peer, trajectory([(seconds, away(0.2))], velocities=[[0.0] * 6])
    )


def test_unknown_faults_are_refused_and_named(peer: RosPeer) -> None:
    answer = set_parameter(peer, 'fault', 'stal')
    assert not answer.successful
    assert 'stall' in answer.reason


def test_refuse(peer: RosPeer) -> None:
    set_fault(peer, 'refuse')
    assert not short(peer).is_accepted
    assert not send_moves(peer, move(PTP, (0.1, 0.0, 0.4))).is_accepted
    assert not send_gripper(peer, 0.01).is_accepted


def test_slow_accept(peer: RosPeer, joint_states: Listener) -> None:
    set_fault(peer, 'slow_accept=600')
    goal = short(peer)
    assert goal.is_accepted
    assert goal.answer_s > 0.55
    # Nothing else waits for it.
    assert max(b - a for a, b in pairwise(joint_states.stamps_s())) < 0.5
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED


def test_slow_cancel(peer: RosPeer, joint_states: Listener) -> None:
    set_fault(peer, 'slow_cancel=700')
    goal = short(peer, 3.0)
    start_s = time.monotonic()
    goal.cancel()
    assert time.monotonic() - start_s > 0.65
    assert goal.wait_result().status == GoalStatus.STATUS_CANCELED


def test_refuse_cancel(peer: RosPeer) -> None:
    set_fault(peer, 'refuse_cancel')
    goal = short(peer)
    assert not goal.cancel().goals_canceling
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED


@pytest.mark.parametrize('kind', ['trajectory', 'move', 'gripper'])
def test_ignore_cancel(peer: RosPeer, joint_states: Listener, kind: str) -> None:
    set_fault(peer, 'ignore_cancel')
    if kind == 'trajectory':
        goal = short(peer, 1.5)
    elif kind == 'move':
        goal = send_moves(peer, move(PTP, (0.1, 0.0, 0.4), tip_velocity=0.07))
    else:
        goal = send_gripper(peer, 0.02, velocity=[0.015])
    assert len(goal.cancel().goals_canceling) == 1
    joint_states.wait_next()

    def has_moved() -> bool:
        newest = joint_states.newest
        is_away = list(newest.position[:6]) != HOME or newest.position[6] < 0.039
        return is_away and max(map(abs, newest.velocity)) < 1e-3

    peer.wait_until(has_moved, what='the end of the motion')
    peer.turn_for(0.3)
    assert not goal.is_over
    moved = joint_states.newest.position
    assert list(moved[:6]) != HOME or moved[6] == pytest.approx(0.02, abs=1e-3)
    set_fault(peer, '')
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED


def test_succeed_while_cancelling(peer: RosPeer, joint_states: Listener) -> None:
    set_fault(peer, 'succeed_while_cancelling')
    goal = send_moves(peer, move(PTP, (0.1, 0.1, 0.4), tip_velocity=0.1))
    wait_moving(peer, joint_states, 0.05)
    assert len(goal.cancel().goals_canceling) == 1
    ended = goal.wait_result()
    assert ended.status == GoalStatus.STATUS_SUCCEEDED


def test_late_result(peer: RosPeer) -> None:
    statuses = peer.listen(GoalStatusArray, f'{TRAJECTORY}/_action/status', LATCHED)
    set_fault(peer, 'late_result=1500')
    goal = short(peer)
    wanted = bytes(goal.handle.goal_id.uuid)

    def is_succeeded() -> bool:
        return bool(statuses.messages) and any(
            bytes(s.goal_info.goal_id.uuid) == wanted and s.status == GoalStatus.STATUS_SUCCEEDED
            for s in statuses.newest.status_list
        )

    peer.wait_until(is_succeeded, what='the final status')
    assert not goal.is_over
    start_s = time.monotonic()
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    assert time.monotonic() - start_s > 0.5
    statuses.close()


def test_no_result(peer: RosPeer) -> None:
    set_fault(peer, 'no_result')
    goal = short(peer, 0.5)
    peer.turn_for(1.5)
    assert not goal.is_over


def test_feedback_silence(peer: RosPeer) -> None:
    set_fault(peer, 'feedback_silence')
    goal = short(peer)
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    assert goal.feedback == []


def test_stall(peer: RosPeer, joint_states: Listener) -> None:
    goal = send_moves(peer, move(PTP, (0.4, 0.4, 0.6)))
    wait_moving(peer, joint_states, 0.1)
    set_fault(peer, 'stall')
    wait_at_rest(peer, joint_states)
    peer.turn_for(0.5)
    assert not goal.is_over
    goal.cancel()
    assert goal.wait_result().status == GoalStatus.STATUS_CANCELED


def test_nan(peer: RosPeer, joint_states: Listener) -> None:
    set_fault(peer, 'nan')
    state = joint_states.wait_next()
    peer.wait_until(lambda: math.isnan(joint_states.newest.position[0]), what='nan')
    assert all(map(math.isnan, joint_states.newest.velocity))
    set_fault(peer, '')
    peer.wait_until(lambda: not math.isnan(joint_states.newest.position[0]), what='numbers')
    assert len(state.name) == 7


def test_frozen(peer: RosPeer, joint_states: Listener) -> None:
    goal = short(peer, 1.5)
    wait_moving(peer, joint_states, 0.05)
    set_fault(peer, 'frozen')
    joint_states.wait_next()
    joint_states.clear()
    peer.wait_until(lambda: len(joint_states.messages) > 20, what='what it repeats')
    assert len({tuple(m.position) for m in joint_states.messages}) == 1
    assert arm_speed_radps(joint_states.newest) > 0.0, 'it froze on the move'
    assert len(set(joint_states.stamps_s())) > 20
    goal.wait_result()


def test_silence(peer: RosPeer, joint_states: Listener) -> None:
    joint_states.wait_next()
    set_fault(peer, 'silence')
    joint_states.wait_silent()
    peer.turn_for(0.4)
    assert joint_states.messages == []
    set_fault(peer, '')
    joint_states.wait_next()


def test_safety_silence(peer: RosPeer) -> None:
    stop = peer.listen(Bool, 'safety/e_stop', LATCHED)
    stop.wait_next()
    set_fault(peer, 'safety_silence')
    stop.wait_silent()
    peer.turn_for(0.5)
    assert stop.messages == []
    stop.close()


def test_slow_stop(peer: RosPeer, joint_states: Listener) -> None:
    goal = send_trajectory(peer, trajectory([(3.0, away(1.5))]))
    wait_moving(peer, joint_states, 0.45)
    set_fault(peer, 'slow_stop=6')
    joint_states.clear()
    goal.cancel()
    assert goal.wait_result().status == GoalStatus.STATUS_CANCELED
    assert arm_speed_radps(joint_states.wait_next()) > 0.05, 'it ended at once'
    wait_at_rest(peer, joint_states, 10.0)
    assert 1.0 < braked_s(joint_states) < 3.5


def test_die(
    ros_domain_id: int, peer: RosPeer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # A robot of its own, in a namespace, so that the other one stays.
    process = start_sim_robot(
        tmp_path_factory.mktemp('die'), {'fault': 'nan'}, 'dying', namespace='/mortal'
    )
    state = peer.listen(JointState, '/mortal/joint_states')
    assert math.isnan(state.wait_next(10.0).position[0])
    state.close()
    with RosPeer('deadly', '/mortal') as killer:
        set_fault(killer, '')
        request = parameter_request('fault', 'die')
        killer.send_request(SetParameters, 'sim_robot/set_parameters', request)
        killer.wait_until(lambda: process.exit_status is not None, what='the end')
    assert process.exit_status == 1
