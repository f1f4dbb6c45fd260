"""FollowJointTrajectory of the simulated robot, as joint_trajectory_controller behaves."""

from collections.abc import Callable, Iterator
from itertools import pairwise
import math
import time
from typing import Any

from action_msgs.msg import GoalStatus
from control_msgs.msg import JointTolerance
import pytest
from ros_peer import Listener, RosPeer, stamp_ns
from sensor_msgs.msg import JointState
from sim_robot_goals import (
    arm_speed_radps,
    away,
    HOME,
    reset,
    send_trajectory,
    set_fault,
    trajectory,
    wait_at_rest,
    wait_moving,
)

from awp_ros_bridge.sim_robot.description import ARM_JOINTS

pytestmark = pytest.mark.usefixtures('sim_robot')
REST = [0.0] * 6


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


def smooth(seconds: float, joint_1_rad: float) -> Any:
    return trajectory(
        [(0.0, HOME), (seconds, away(joint_1_rad))], velocities=[REST, REST]
    )


def test_a_trajectory_is_followed_with_feedback(peer: RosPeer, joint_states: Listener) -> None:
    goal = send_trajectory(peer, smooth(2.0, 0.8))
    ended = goal.wait_result()
    assert ended.status == GoalStatus.STATUS_SUCCEEDED
    assert ended.result.error_code == ended.result.SUCCESSFUL
    assert ended.result.error_string == 'Goal successfully reached!'
    assert joint_states.wait_next().position[0] == pytest.approx(0.8, abs=0.01)
    stamps = [stamp_ns(f.header.stamp) * 1e-9 for f in goal.feedback]
    gaps_s = sorted(b - a for a, b in pairwise(stamps))
    assert gaps_s[len(gaps_s) // 2] <= 0.05
    middle = goal.feedback[len(goal.feedback) // 2]
    assert list(middle.joint_names) == list(ARM_JOINTS)
    assert 0.1 < middle.actual.positions[0] < 0.7
    assert middle.desired.velocities[0] > 0.3
    for d, a, e in zip(
        middle.desired.positions, middle.actual.positions, middle.error.positions, strict=True
    ):
        assert e == pytest.approx(d - a)


def test_the_order_of_the_joints_is_the_goals(peer: RosPeer, joint_states: Listener) -> None:
    goal = send_trajectory(peer, trajectory([(1.5, away(0.4)[::-1])], joints=ARM_JOINTS[::-1]))
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    assert joint_states.wait_next().position[0] == pytest.approx(0.4, abs=0.01)


def test_cancel_ends_at_once_and_the_arm_brakes_to_hold(
    peer: RosPeer, joint_states: Listener
) -> None:
    goal = send_trajectory(peer, smooth(2.5, 1.6))
    wait_moving(peer, joint_states, 0.8)
    assert len(goal.cancel().goals_canceling) == 1
    assert goal.wait_result(0.2).status == GoalStatus.STATUS_CANCELED
    assert arm_speed_radps(joint_states.wait_next()) > 0.3  # it still moves
    assert 0.1 < wait_at_rest(peer, joint_states) < 0.7
    held = joint_states.newest.position[0]
    joint_states.clear()
    peer.turn_for(0.3)
    assert all(m.position[0] == held for m in joint_states.messages)


def test_a_new_goal_takes_over_without_a_stop(peer: RosPeer, joint_states: Listener) -> None:
    first = send_trajectory(peer, smooth(3.0, 1.2))
    wait_moving(peer, joint_states, 0.4)
    joint_states.clear()
    onwards = trajectory([(1.5, away(1.4))], velocities=[REST])
    second = send_trajectory(peer, onwards)
    ended = first.wait_result(0.5)
    assert ended.status == GoalStatus.STATUS_ABORTED
    assert ended.result.error_string == 'Current goal preempted by new incoming action.'
    peer.turn_for(0.4)
    assert min(arm_speed_radps(m) for m in joint_states.messages) > 0.3
    for a, b in pairwise(joint_states.messages):  # no jump in velocity
        gap_s = (stamp_ns(b.header.stamp) - stamp_ns(a.header.stamp)) * 1e-9
        assert abs(b.velocity[0] - a.velocity[0]) <= 1.8 * gap_s * 1.2 + 0.03
    assert second.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    assert joint_states.wait_next().position[0] == pytest.approx(1.4, abs=0.01)


def test_twenty_goals_a_second_keep_it_moving(peer: RosPeer, joint_states: Listener) -> None:
    # At the pace that its name says: sent faster, they ask for more than the arm can do.
    period_s, step_rad = 0.05, 0.02
    onwards = [step_rad / period_s, *REST[1:]]
    goals = []
    begun = time.monotonic()
    for index in range(1, 21):
        ahead_rad = step_rad * (index + 4)
        chunk = [(0.2, away(ahead_rad)), (0.6, away(ahead_rad + 0.08))]
        goals.append(send_trajectory(peer, trajectory(chunk, velocities=[onwards, REST])))
        peer.turn_for(max(0.0, begun + period_s * index - time.monotonic()))
    assert all(g.is_accepted for g in goals)
    joint_states.clear()
    peer.turn_for(0.1)
    assert min(arm_speed_radps(m) for m in joint_states.messages) > 0.1  # no stop between two
    assert goals[-1].wait_result().status == GoalStatus.STATUS_SUCCEEDED
    statuses = [g.wait_result(1.0).status for g in goals]
    terminal = {GoalStatus.STATUS_ABORTED, GoalStatus.STATUS_SUCCEEDED}
    assert set(statuses) <= terminal
    assert joint_states.wait_next().position[0] == pytest.approx(0.56, abs=0.01)


def unknown_joint() -> Any:
    return trajectory([(1.0, HOME)], joints=[*ARM_JOINTS[:5], 'joint_9'])


def partial() -> Any:
    return trajectory([(1.0, [0.1])], joints=['joint_1'])


def repeated() -> Any:
    return trajectory([(1.0, HOME)], joints=[*ARM_JOINTS[:5], 'joint_1'])


def not_increasing() -> Any:
    return trajectory([(1.0, HOME), (1.0, away(0.1))])


def too_few_positions() -> Any:
    return trajectory([(1.0, HOME[:5])])


def too_few_velocities() -> Any:
    return trajectory([(1.0, HOME)], velocities=[[0.0] * 5])


def moving_at_the_end() -> Any:
    return trajectory([(1.0, away(0.2))], velocities=[[0.1, 0, 0, 0, 0, 0]])


def with_effort() -> Any:
    goal = trajectory([(1.0, HOME)])
    goal.trajectory.points[0].effort = [0.0] * 6
    return goal


def in_the_past() -> Any:
    goal = trajectory([(1.0, HOME)])
    goal.trajectory.header.stamp.sec = 1000
    return goal


def not_a_number() -> Any:
    return trajectory([(1.0, away(math.nan))])


def no_points() -> Any:
    return trajectory([])


@pytest.mark.parametrize(
    'make',
    [
        unknown_joint,
        partial,
        repeated,
        not_increasing,
        too_few_positions,
        too_few_velocities,
        moving_at_the_end,
        with_effort,
        in_the_past,
        not_a_number,
        no_points,
    ],
)
def test_refusals_leave_the_running_goal_alone(
    peer: RosPeer, joint_states: Listener, make: Callable[[], Any]
) -> None:
    running = send_trajectory(peer, smooth(1.2, 0.2))
    assert not send_trajectory(peer, make()).is_accepted
    assert running.wait_result().status == GoalStatus.STATUS_SUCCEEDED


def test_a_stamp_in_the_future_waits(peer: RosPeer, joint_states: Listener) -> None:
    goal = smooth(1.0, 0.2)
    at = peer.node.get_clock().now().nanoseconds + 700_000_000
    goal.trajectory.header.stamp.sec, goal.trajectory.header.stamp.nanosec = divmod(at, 10**9)
    sent = send_trajectory(peer, goal)
    assert sent.is_accepted
    peer.turn_for(0.5)
    assert all(abs(m.position[0]) < 1e-3 for m in joint_states.messages)
    assert sent.wait_result().status == GoalStatus.STATUS_SUCCEEDED


def test_path_tolerance(peer: RosPeer, joint_states: Listener) -> None:
    goal = trajectory([(0.5, away(1.5))])
    goal.path_tolerance = [JointTolerance(name='joint_1', position=0.05)]
    ended = send_trajectory(peer, goal).wait_result()
    assert ended.status == GoalStatus.STATUS_ABORTED
    assert ended.result.error_code == ended.result.PATH_TOLERANCE_VIOLATED
    assert ended.result.error_string.startswith('Aborted due to path tolerance violation')
    assert 'joint_1' in ended.result.error_string
    wait_at_rest(peer, joint_states, 1.0)


def test_goal_tolerance_and_time(peer: RosPeer, joint_states: Listener) -> None:
    goal = trajectory([(0.2, away(1.5))])
    goal.path_tolerance = [JointTolerance(name='joint_1', position=-1.0)]
    goal.goal_time_tolerance.nanosec = 300_000_000
    ended = send_trajectory(peer, goal).wait_result()
    assert ended.status == GoalStatus.STATUS_ABORTED
    assert ended.result.error_code == ended.result.GOAL_TOLERANCE_VIOLATED
    assert 'goal_time_tolerance exceeding by' in ended.result.error_string
    wait_at_rest(peer, joint_states, 1.0)


def test_a_wide_goal_tolerance_ends_early(peer: RosPeer, joint_states: Listener) -> None:
    goal = trajectory([(0.2, away(0.4))])
    goal.path_tolerance = [JointTolerance(name='joint_1', position=-1.0)]
    goal.goal_tolerance = [JointTolerance(name='joint_1', position=-1.0, velocity=-1.0)]
    ended = send_trajectory(peer, goal).wait_result(0.5)
    assert ended.status == GoalStatus.STATUS_SUCCEEDED
    assert abs(joint_states.wait_next().position[0] - 0.4) > 0.02


def test_tolerances_that_make_no_sense_give_way_to_the_defaults(peer: RosPeer) -> None:
    goal = smooth(1.0, 0.1)
    goal.path_tolerance = [JointTolerance(name='nobody', position=0.1)]
    assert send_trajectory(peer, goal).wait_result().status == GoalStatus.STATUS_SUCCEEDED


def test_a_stalled_arm_never_ends_its_goal(peer: RosPeer, joint_states: Listener) -> None:
    goal = send_trajectory(peer, smooth(2.0, 0.8))
    wait_moving(peer, joint_states, 0.2)
    set_fault(peer, 'stall')
    wait_at_rest(peer, joint_states, 1.5)
    peer.turn_for(1.0)
    assert not goal.is_over
    set_fault(peer, '')
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED
