"""Measured rest, silence, lost servers and safe-state steps, against real publishers."""

from __future__ import annotations

from collections.abc import Iterator
import math
import time

from fakes import eventually, FakeRobot
from gateway_rig import config, IMPATIENT, MEASURED, outcome, Rig, running, SILENT_MS
from lateness import Lateness
import pytest

from awp_ros_bridge.engine.inputs import (
    AvailabilityChanged,
    GoalAccepted,
    GoalEnded,
    GoalOutcome,
    Meaning,
    RestChanged,
    SafetyChanged,
)
from awp_ros_bridge.ros import goal_watch
from awp_ros_bridge.ros.plan import MS

# a server of rclpy that is asked for a goal it does not know warns through a deprecated call
pytestmark = pytest.mark.filterwarnings('ignore:Deprecated in favor:DeprecationWarning')

REST = 'joint_states:stale'


@pytest.fixture
def robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        yield robot


@pytest.fixture
def rig(robot: FakeRobot) -> Iterator[Rig]:
    with running(config()) as rig:
        yield rig


# ---------------------------------------------------------------- rest


@pytest.fixture
def measured(robot: FakeRobot) -> Iterator[Rig]:
    robot.publish_joints(100)
    with running(config(at_rest=MEASURED)) as rig:
        rig.ready()
        yield rig


@pytest.fixture
def impatient(robot: FakeRobot) -> Iterator[Rig]:
    """Measure likewise, where silence is soon too long."""
    robot.publish_joints(100)
    with running(config(at_rest={**MEASURED, **IMPATIENT})) as rig:
        rig.ready()
        yield rig


@pytest.fixture
def unhurried(robot: FakeRobot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """Measure likewise, and give servers that are asked whether they live time to answer."""
    monkeypatch.setattr(goal_watch, 'ANSWER_NS', 400 * MS)
    robot.publish_joints(100)
    with running(config(at_rest={**MEASURED, 'stale_after_ms': 1000})) as rig:
        rig.ready()
        yield rig


def test_rest_is_told_on_its_edges(measured: Rig, robot: FakeRobot) -> None:
    measured.wait(RestChanged, at_rest=True)
    robot.velocity = 0.3
    measured.wait(RestChanged, at_rest=False)
    assert measured.gateway.joints('arm') == {'j1': 0.0, 'j2': 0.0}


def test_f11_rest_counts_samples_after_the_request_only(measured: Rig, robot: FakeRobot) -> None:
    measured.wait(RestChanged, at_rest=True)
    asked_ns = time.monotonic_ns()
    ticket = measured.await_rest()
    reached, at_ns = measured.wait_timed(type(measured.rested(ticket)), ticket=ticket)
    assert reached.measured
    assert at_ns - asked_ns >= 50e6
    robot.velocity = 0.3
    measured.wait(RestChanged, at_rest=False)
    ticket = measured.await_rest()
    with pytest.raises(AssertionError):
        measured.rested(ticket, timeout_s=0.3)
    robot.velocity = 0.0
    assert measured.rested(ticket).measured


def test_a_fast_topic_is_looked_at_and_followed_while_somebody_waits(
    robot: FakeRobot,
) -> None:
    robot.publish_joints(400)
    with running(config(at_rest={**MEASURED, 'stale_after_ms': 1000})) as rig:
        source = rig.gateway.rest._sources['joint_states']
        reader = eventually(lambda: source._reader)
        eventually(lambda: not reader.is_dispatched, 'the reader rests')
        robot.velocity = 0.3
        rig.wait(RestChanged, at_rest=False)
        ticket = rig.await_rest()
        eventually(lambda: reader.is_dispatched, 'every sample counts')
        robot.velocity = 0.0
        assert rig.rested(ticket).measured
        eventually(lambda: not reader.is_dispatched, 'the reader rests again')
        robot.publish_joints(0)
        rig.wait(RestChanged, at_rest=None)


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_f45_a_velocity_that_is_no_number_is_no_rest(
    measured: Rig, robot: FakeRobot, value: float
) -> None:
    measured.wait(RestChanged, at_rest=True)
    robot.velocity = value
    change = measured.wait(
        SafetyChanged,
        input_name=REST,
        engaged=True,
        meaning=Meaning.NOT_READY,
        detail='joint_states: joint j1: not finite',
    )
    assert change.engaged
    ticket = measured.await_rest()
    with pytest.raises(AssertionError):
        measured.rested(ticket, timeout_s=0.3)
    measured.clear()
    robot.velocity = 0.0
    measured.wait(SafetyChanged, input_name=REST, engaged=False)
    measured.rested(ticket)


def test_arrays_that_do_not_match_are_unsafe(measured: Rig, robot: FakeRobot) -> None:
    measured.wait(RestChanged, at_rest=True)
    robot.publish_joints(0)

    def is_told() -> bool:
        robot.publish_joint_sample(velocity=[0.0])
        time.sleep(0.025)
        told = measured.all(SafetyChanged, input_name=REST, engaged=True)
        return any('1 velocities' in each.detail for each in told)

    eventually(is_told, 'the arrays that do not match')


def test_without_velocities_positions_are_differenced(robot: FakeRobot) -> None:
    robot.velocity = None
    robot.publish_joints(100)
    with running(config(at_rest=MEASURED)) as rig:
        rig.wait(RestChanged, at_rest=True)
        stop = time.monotonic() + 10.0
        while time.monotonic() < stop and not rig.all(RestChanged, at_rest=False):
            robot.position += 0.01
            time.sleep(0.005)
        rig.wait(RestChanged, at_rest=False)


def velocities(rig: Rig) -> dict[str, float] | None:
    return rig.gateway.joint_velocities('arm')


def test_joint_velocities_are_the_newest_and_zero_at_rest(
    measured: Rig, robot: FakeRobot
) -> None:
    measured.wait(RestChanged, at_rest=True)
    robot.velocity = 0.3
    eventually(lambda: velocities(measured) == {'j1': 0.3, 'j2': 0.0}, 'the arm moves')
    robot.velocity = 0.004  # below the bound of rest
    eventually(lambda: velocities(measured) == {'j1': 0.0, 'j2': 0.0}, 'the arm rests')
    robot.velocity = math.nan
    eventually(lambda: velocities(measured) == {'j2': 0.0}, 'what is no number is left out')


def test_without_measured_rest_no_velocity_is_known(rig: Rig, robot: FakeRobot) -> None:
    robot.publish_joints(100)
    rig.ready()
    assert velocities(rig) is None


def test_silence_of_joint_states_stops_and_names_the_server(
    unhurried: Rig, robot: FakeRobot
) -> None:
    measured = unhurried
    measured.wait(RestChanged, at_rest=True)
    goal_id = measured.start_goal()
    measured.wait(GoalAccepted, goal_id=goal_id)
    measured.clear()
    robot.publish_joints(0)
    change = measured.wait(SafetyChanged, input_name=REST, engaged=True)
    assert change.meaning is Meaning.NOT_READY
    assert 'arm/move' in change.detail
    measured.wait(RestChanged, at_rest=None)
    assert outcome(measured, goal_id) is GoalOutcome.CANCELED


def test_f25_killed_server_is_lost_from_silence(
    impatient: Rig, robot: FakeRobot, lateness: Lateness
) -> None:
    measured = impatient
    measured.wait(RestChanged, at_rest=True)
    goal_id = measured.start_goal()
    measured.wait(GoalAccepted, goal_id=goal_id)
    silent_ns = time.monotonic_ns()
    robot.freeze()
    ended, at_ns = measured.wait_timed(GoalEnded, goal_id=goal_id)
    assert ended.outcome is GoalOutcome.LOST
    assert 'arm/move' in ended.detail
    assert at_ns - silent_ns <= (SILENT_MS + 100) * 1e6 + lateness.since(silent_ns)
    robot.thaw()
    eventually(lambda: measured.gateway.health()['held'] == 0, 'nothing is held')


def test_a_lost_server_is_missing_until_it_answers(impatient: Rig, robot: FakeRobot) -> None:
    measured = impatient
    measured.wait(RestChanged, at_rest=True)
    goal_id = measured.start_goal()
    measured.wait(GoalAccepted, goal_id=goal_id)
    measured.clear()
    robot.freeze()  # the ROS graph goes on showing it
    assert outcome(measured, goal_id) is GoalOutcome.LOST
    missing = measured.wait(AvailabilityChanged, action_type='move', available=False)
    assert missing.detail == measured.ended(goal_id).detail
    robot.thaw()
    measured.wait(AvailabilityChanged, action_type='move', available=True)
    eventually(lambda: measured.gateway.health()['held'] == 0, 'nothing is held')


def test_f82_a_silent_server_that_answers_is_not_lost(unhurried: Rig, robot: FakeRobot) -> None:
    measured = unhurried
    goal_id = measured.start_goal()
    measured.wait(GoalAccepted, goal_id=goal_id)
    for length in range(1, 6):
        robot.feedback(goal_id, length)
    with pytest.raises(AssertionError):
        measured.wait(GoalEnded, timeout_s=1.6, goal_id=goal_id)
    robot.end(goal_id, 'succeed')
    assert outcome(measured, goal_id) is GoalOutcome.SUCCEEDED


# ---------------------------------------------------------------- behaviours


def test_behavior_cancels_and_waits_for_rest(measured: Rig, robot: FakeRobot) -> None:
    goal_id = measured.start_goal()
    measured.wait(GoalAccepted, goal_id=goal_id)
    robot.velocity = 0.5
    ticket = measured.behave()
    assert outcome(measured, goal_id) is GoalOutcome.CANCELED
    robot.velocity = 0.0
    finished = measured.behaved(ticket)
    assert finished.ok
    assert finished.detail.startswith('cancel_goals: 1 on arm/move; wait_at_rest: at rest after')


def test_behavior_names_the_step_that_ran_into_its_bound(
    measured: Rig, robot: FakeRobot, lateness: Lateness
) -> None:
    robot.velocity = 0.5
    measured.wait(RestChanged, at_rest=False)
    started_ns = time.monotonic_ns()
    ticket = measured.behave(bound_ms=300)
    finished, at_ns = measured.wait_timed(type(measured.behaved(ticket)), ticket=ticket)
    assert not finished.ok
    assert 'wait_at_rest: was not done within 300 ms' in finished.detail
    assert 300e6 <= at_ns - started_ns < 400e6 + lateness.since(started_ns)


def test_behavior_names_a_server_that_refuses(measured: Rig, robot: FakeRobot) -> None:
    robot.knobs.accepts_cancel = False
    goal_id = measured.start_goal()
    measured.wait(GoalAccepted, goal_id=goal_id)
    finished = measured.behaved(measured.behave())
    assert not finished.ok
    assert 'arm/move refused to cancel' in finished.detail
    robot.end(goal_id, 'succeed')
    measured.ended(goal_id)


def test_behavior_without_a_rest_source_says_so(rig: Rig, robot: FakeRobot) -> None:
    finished = rig.behaved(rig.behave())
    assert finished.ok
    assert finished.detail == 'wait_at_rest: rest not measured'


def test_behavior_spares_goals_decided_later(measured: Rig, robot: FakeRobot) -> None:
    ticket = measured.behave()
    goal_id = measured.start_goal()
    measured.wait(GoalAccepted, goal_id=goal_id)
    assert measured.behaved(ticket).ok
    assert not robot.seen.cancelled(goal_id)
    robot.end(goal_id, 'succeed')
    assert outcome(measured, goal_id) is GoalOutcome.SUCCEEDED
