"""FollowJointTrajectory of the simulated robot, as joint_trajectory_controller behaves."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
import math
import time
from typing import Any

from action_msgs.msg import GoalStatus
from control_msgs.msg import JointTolerance
import pytest
from ros_peer import Goal, Listener, RosPeer, stamp_ns
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
    assert gaps_s[len(gaps_s) // 2] <= 0.1
    middle = min(goal.feedback, key=lambda told: abs(told.desired.positions[0] - 0.4))
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
    set_fault(peer, 'slow_stop=4')
    assert len(goal.cancel().goals_canceling) == 1
    assert goal.wait_result().status == GoalStatus.STATUS_CANCELED
    assert arm_speed_radps(joint_states.wait_next()) > 0.05  # it still moves
    peer.wait_until(lambda: arm_speed_radps(joint_states.newest) == 0.0, what='the arm at rest')
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
    ended = first.wait_result()
    assert ended.status == GoalStatus.STATUS_ABORTED
    assert ended.result.error_string == 'Current goal preempted by new incoming action.'
    peer.turn_for(0.4)
    until_s = joint_states.stamps_s()[0] + 0.8  # later it comes to rest at its end
    taken = [m for m in joint_states.messages if stamp_ns(m.header.stamp) * 1e-9 < until_s]
    assert min(arm_speed_radps(m) for m in taken) > 0.3
    for a, b in pairwise(taken):  # no jump in velocity
        gap_s = (stamp_ns(b.header.stamp) - stamp_ns(a.header.stamp)) * 1e-9
        assert abs(b.velocity[0] - a.velocity[0]) <= 1.8 * gap_s * 1.2 + 0.03
    assert second.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    assert joint_states.wait_next().position[0] == pytest.approx(1.4, abs=0.01)


@dataclass
class Chunks:
    """
    Goals that replace each other, twenty a second where the machine is fast enough.

    :ivar last_s: when the last one was answered, time of the stamps.
    :ivar longest_s: the longest time between two answers.
    :ivar end_rad: where the last one ends.
    """

    goals: list[Goal]
    last_s: float
    longest_s: float
    end_rad: float


def send_chunks(peer: RosPeer) -> Chunks:
    """Ask for an even motion, half a second ahead each time, that would end within another."""
    period_s, speed_radps = 0.05, 0.4
    onwards = [speed_radps, *REST[1:]]
    goals: list[Goal] = []
    answered_s: list[float] = []
    begun_s, end_rad = time.time(), 0.0
    for index in range(1, 21):
        ahead_rad = speed_radps * (time.time() - begun_s + 0.55)
        end_rad = ahead_rad + speed_radps / 2.0
        chunk = [(0.5, away(ahead_rad)), (1.5, away(end_rad))]
        goals.append(send_trajectory(peer, trajectory(chunk, velocities=[onwards, REST])))
        answered_s.append(time.time())
        if answered_s[-1] - begun_s > 2.5:
            break
        peer.turn_for(max(0.0, begun_s + period_s * index - time.time()))
    longest_s = max(b - a for a, b in pairwise([begun_s, *answered_s]))
    return Chunks(goals, answered_s[-1], longest_s, end_rad)


def test_twenty_goals_a_second_keep_it_moving(peer: RosPeer, joint_states: Listener) -> None:
    for _ in range(5):
        reset(peer)
        joint_states.wait_next()
        joint_states.clear()
        sent = send_chunks(peer)
        if sent.longest_s < 0.3:  # each came before it was over what the one before had ahead
            break
    assert all(g.is_accepted for g in sent.goals)
    assert sent.goals[-1].wait_result().status == GoalStatus.STATUS_SUCCEEDED
    # no stop between two, from the first that moved it until the last comes to its end
    speeds = [
        arm_speed_radps(m)
        for m, stamp_s in zip(joint_states.messages, joint_states.stamps_s(), strict=True)
        if stamp_s < sent.last_s + 0.2
    ]
    begins = next(at for at, speed in enumerate(speeds) if speed > 0.2)
    assert min(speeds[begins:]) > 0.1
    statuses = [g.wait_result().status for g in sent.goals]
    terminal = {GoalStatus.STATUS_ABORTED, GoalStatus.STATUS_SUCCEEDED}
    assert set(statuses) <= terminal
    assert joint_states.wait_next().position[0] == pytest.approx(sent.end_rad, abs=0.01)


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
    at = peer.node.get_clock().now().nanoseconds + 1_000_000_000
    goal.trajectory.header.stamp.sec, goal.trajectory.header.stamp.nanosec = divmod(at, 10**9)
    sent = send_trajectory(peer, goal)
    assert sent.is_accepted
    assert sent.wait_result().status == GoalStatus.STATUS_SUCCEEDED
    early = at - 300_000_000  # a robot that turns late may begin as much before its time
    before = [m for m in joint_states.messages if stamp_ns(m.header.stamp) < early]
    assert before
    assert all(abs(m.position[0]) < 1e-3 for m in before)


def test_path_tolerance(peer: RosPeer, joint_states: Listener) -> None:
    goal = trajectory([(0.5, away(1.5))])
    goal.path_tolerance = [JointTolerance(name='joint_1', position=0.05)]
    ended = send_trajectory(peer, goal).wait_result()
    assert ended.status == GoalStatus.STATUS_ABORTED
    assert ended.result.error_code == ended.result.PATH_TOLERANCE_VIOLATED
    assert ended.result.error_string.startswith('Aborted due to path tolerance violation')
    assert 'joint_1' in ended.result.error_string
    wait_at_rest(peer, joint_states)


def test_goal_tolerance_and_time(peer: RosPeer, joint_states: Listener) -> None:
    goal = trajectory([(0.2, away(1.5))])
    goal.path_tolerance = [JointTolerance(name='joint_1', position=-1.0)]
    goal.goal_time_tolerance.nanosec = 300_000_000
    ended = send_trajectory(peer, goal).wait_result()
    assert ended.status == GoalStatus.STATUS_ABORTED
    assert ended.result.error_code == ended.result.GOAL_TOLERANCE_VIOLATED
    assert 'goal_time_tolerance exceeding by' in ended.result.error_string
    wait_at_rest(peer, joint_states)


def test_a_wide_goal_tolerance_ends_early(peer: RosPeer, joint_states: Listener) -> None:
    goal = trajectory([(0.2, away(1.5))])
    goal.path_tolerance = [JointTolerance(name='joint_1', position=-1.0)]
    goal.goal_tolerance = [JointTolerance(name='joint_1', position=-1.0, velocity=-1.0)]
    ended = send_trajectory(peer, goal).wait_result()
    assert ended.status == GoalStatus.STATUS_SUCCEEDED
    assert abs(joint_states.wait_next().position[0] - 1.5) > 0.02


def test_tolerances_that_make_no_sense_give_way_to_the_defaults(peer: RosPeer) -> None:
    goal = smooth(1.0, 0.1)
    goal.path_tolerance = [JointTolerance(name='nobody', position=0.1)]
    assert send_trajectory(peer, goal).wait_result().status == GoalStatus.STATUS_SUCCEEDED


def test_a_stalled_arm_never_ends_its_goal(peer: RosPeer, joint_states: Listener) -> None:
    goal = send_trajectory(peer, smooth(2.0, 0.8))
    wait_moving(peer, joint_states, 0.2)
    set_fault(peer, 'stall')
    wait_at_rest(peer, joint_states)
    peer.turn_for(1.0)
    assert not goal.is_over
    set_fault(peer, '')
    assert goal.wait_result().status == GoalStatus.STATUS_SUCCEEDED
