"""Safety inputs, the gate, the local stop, rest and behaviours, against real publishers."""

from __future__ import annotations

from collections.abc import Iterator
import math
import time

from fakes import eventually, FakeRobot, SafetyTopic
from gateway_rig import config, E_STOP, MEASURED, outcome, Rig, running
import pytest
from std_msgs.msg import Bool

from awp_ros_bridge.engine.inputs import (
    GoalAccepted,
    GoalEnded,
    GoalOutcome,
    Meaning,
    RestChanged,
    SafetyChanged,
)

# a server of rclpy that is asked for a goal it does not know warns through a deprecated call
pytestmark = pytest.mark.filterwarnings('ignore:Deprecated in favor:DeprecationWarning')

STALE = 'e_stop:stale'
REST = 'joint_states:stale'


@pytest.fixture
def robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        yield robot


@pytest.fixture(params=[True, False], ids=['latched', 'best effort'])
def button(ros_domain_id: int, request: pytest.FixtureRequest) -> Iterator[SafetyTopic]:
    with SafetyTopic(ros_domain_id, 'safety/e_stop', latched=request.param) as topic:
        yield topic


@pytest.fixture
def rig(robot: FakeRobot) -> Iterator[Rig]:
    with running(config(safety_inputs=(E_STOP,))) as rig:
        yield rig


def permitted(rig: Rig) -> bool:
    return rig.gateway.gate.is_open('arm')


def test_f95_never_heard_is_unsafe_and_named(rig: Rig, robot: FakeRobot) -> None:
    change = rig.wait(SafetyChanged, input_name=STALE)
    assert change.engaged
    assert change.meaning is Meaning.NOT_READY
    assert 'safety/e_stop was not heard yet' in change.detail
    assert not rig.gateway.inputs.permits_motion('arm', time.monotonic_ns())
    goal_id = rig.start_goal()
    assert outcome(rig, goal_id) is GoalOutcome.NOT_SENT
    assert not robot.seen.requests


def test_edge_trips_cancels_and_releases(
    rig: Rig, robot: FakeRobot, button: SafetyTopic
) -> None:
    button.say(False)
    button.repeat(50)
    rig.ready()
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    rig.clear()
    before = rig.gateway.gate.epoch
    button.say(True)
    change = rig.wait(SafetyChanged, input_name='e_stop')
    assert (change.engaged, change.meaning) == (True, Meaning.E_STOP)
    assert change.epoch > before
    assert 'safety/e_stop.data is True' in change.detail
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    assert robot.seen.cancelled(goal_id) == 1
    assert outcome(rig, rig.start_goal()) is GoalOutcome.NOT_SENT
    button.say(False)
    assert not rig.wait(SafetyChanged, input_name='e_stop', engaged=False).engaged
    eventually(lambda: permitted(rig), 'the gate opens')
    # a decision made before the stop stays refused after the release
    stale_id = rig.start_goal(epoch=before)
    assert outcome(rig, stale_id) is GoalOutcome.NOT_SENT
    assert 'stopped since the decision' in rig.ended(stale_id).detail
    robot.knobs.ends_at_once = True
    assert outcome(rig, rig.start_goal()) is GoalOutcome.SUCCEEDED


def test_a_single_unsafe_message_trips(rig: Rig, button: SafetyTopic) -> None:
    button.say(False)
    button.repeat(50)
    rig.ready()
    rig.clear()
    button.publisher.publish(Bool(data=True))
    rig.wait(SafetyChanged, input_name='e_stop', engaged=True)
    rig.wait(SafetyChanged, input_name='e_stop', engaged=False)


def test_f94_ok_ages_into_unknown(rig: Rig, button: SafetyTopic) -> None:
    button.say(False)
    button.repeat(50)
    rig.ready()
    rig.clear()
    killed_ns = time.monotonic_ns()
    button.kill()
    change, at_ns = rig.wait_timed(SafetyChanged, input_name=STALE, engaged=True)
    assert 'limit 300 ms' in change.detail
    assert at_ns - killed_ns < 600e6
    assert not rig.gateway.inputs.permits_motion('arm', time.monotonic_ns())


def test_f94_tripped_stays_tripped_without_its_publisher(rig: Rig, button: SafetyTopic) -> None:
    button.say(True)
    button.repeat(50)
    rig.wait(SafetyChanged, input_name='e_stop', engaged=True)
    rig.clear()
    button.kill()
    with pytest.raises(AssertionError):
        rig.wait(SafetyChanged, timeout_s=0.6, engaged=False, input_name='e_stop')
    assert not permitted(rig)


def test_f96_latched_trip_before_the_start_is_heard(
    robot: FakeRobot, ros_domain_id: int
) -> None:
    with SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button:
        button.say(True)
        with running(config(safety_inputs=(E_STOP,))) as rig:
            rig.wait(SafetyChanged, input_name='e_stop', engaged=True)


def test_unreadable_message_is_unsafe(ros_domain_id: int, robot: FakeRobot) -> None:
    broken = {**E_STOP, 'field': 'no_such_field'}
    with (
        SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button,
        running(config(safety_inputs=(broken,))) as rig,
    ):
        button.say(False)
        change = rig.wait(SafetyChanged, input_name='e_stop', engaged=True)
        assert 'no_such_field' in change.detail


def test_companion_keeps_a_latched_input_valid(ros_domain_id: int, robot: FakeRobot) -> None:
    by_companion = {**E_STOP, 'freshness': {'by': 'companion', 'topic': 'joint_states'}}
    robot.publish_joints(50)
    with (
        SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button,
        running(config(safety_inputs=(by_companion,))) as rig,
    ):
        button.say(False)
        rig.ready()
        with pytest.raises(AssertionError):
            rig.wait(SafetyChanged, timeout_s=0.6, input_name=STALE, engaged=True,
                     detail='not to come')
        robot.publish_joints(0)
        eventually(lambda: not permitted(rig), 'silence of the companion shuts the gate')
        assert any('companion' in each.detail for each in rig.all(SafetyChanged, engaged=True))


def test_degraded_leaves_motion_alone(ros_domain_id: int, robot: FakeRobot) -> None:
    degraded = {**E_STOP, 'means': 'degraded'}
    with (
        SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button,
        running(config(safety_inputs=(degraded,))) as rig,
    ):
        button.say(True)
        button.repeat(50)
        rig.wait(SafetyChanged, input_name='e_stop', meaning=Meaning.DEGRADED, engaged=True)
        rig.ready()
        robot.knobs.ends_at_once = True
        assert outcome(rig, rig.start_goal()) is GoalOutcome.SUCCEEDED


def test_trip_between_decision_and_send(
    rig: Rig, robot: FakeRobot, ros_domain_id: int
) -> None:
    """Nothing reaches the server, or what does is cancelled: 50 times."""
    with SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button:
        button.say(False)
        button.repeat(100)
        rig.ready()
        reached = 0
        for turn in range(50):
            epoch = rig.gateway.gate.epoch
            button.say(True)
            if turn % 2:
                time.sleep(turn * 2e-5)
            goal_id = rig.start_goal(epoch=epoch)
            eventually(lambda: not permitted(rig), 'the trip is noticed')
            ended = rig.ended(goal_id)
            if ended.outcome is GoalOutcome.NOT_SENT:
                assert not robot.seen.requested(goal_id)
            else:
                reached += 1
                assert ended.outcome is GoalOutcome.CANCELED
                assert robot.seen.cancelled(goal_id) >= 1
            button.say(False)
            eventually(lambda: permitted(rig), 'the release is noticed')
        print(f'{reached} of 50 reached the server')  # noqa: T201


def test_goal_accepted_after_the_trip_is_cancelled_at_once(
    rig: Rig, robot: FakeRobot, ros_domain_id: int
) -> None:
    with SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button:
        button.say(False)
        button.repeat(50)
        rig.ready()
        robot.knobs.accept_s = 0.2
        goal_id = rig.start_goal()
        eventually(lambda: rig.gateway.goals.get(goal_id).stage.value == 'sent', 'sent')
        button.say(True)
        assert outcome(rig, goal_id) is GoalOutcome.CANCELED
        assert [type(e) for e in rig.of_goal(goal_id)] == [GoalAccepted, GoalEnded]


def test_two_inputs_must_both_permit(ros_domain_id: int, robot: FakeRobot) -> None:
    other = {**E_STOP, 'name': 'guard', 'topic': 'safety/guard', 'means': 'protective_stop'}
    with (
        SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button,
        SafetyTopic(ros_domain_id, 'safety/guard', latched=True) as guard,
        running(config(safety_inputs=(E_STOP, other))) as rig,
    ):
        for each in (button, guard):
            each.say(False)
            each.repeat(50)
        rig.ready()
        guard.say(True)
        change = rig.wait(SafetyChanged, input_name='guard', engaged=True)
        assert change.meaning is Meaning.PROTECTIVE_STOP
        button.say(True)
        rig.wait(SafetyChanged, input_name='e_stop', engaged=True)
        guard.say(False)
        rig.wait(SafetyChanged, input_name='guard', engaged=False)
        assert not permitted(rig)


# ---------------------------------------------------------------- rest


@pytest.fixture
def measured(robot: FakeRobot) -> Iterator[Rig]:
    robot.publish_joints(100)
    with running(config(at_rest=MEASURED)) as rig:
        rig.ready()
        yield rig


def test_rest_is_told_on_its_edges(measured: Rig, robot: FakeRobot) -> None:
    measured.wait(RestChanged, at_rest=True)
    robot.velocity = 0.3
    measured.wait(RestChanged, at_rest=False)
    assert measured.gateway.joints('arm') == {'j1': 0.0, 'j2': 0.0}


def test_f11_rest_counts_samples_after_the_request_only(
    measured: Rig, robot: FakeRobot
) -> None:
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


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_f45_a_velocity_that_is_no_number_is_no_rest(
    measured: Rig, robot: FakeRobot, value: float
) -> None:
    measured.wait(RestChanged, at_rest=True)
    robot.velocity = value
    change = measured.wait(SafetyChanged, input_name=REST, engaged=True, meaning=Meaning.NOT_READY,
                           detail='joint_states: joint j1: not finite')
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
    for _ in range(5):
        robot.publish_joint_sample(velocity=[0.0])
        time.sleep(0.025)
    assert any('1 velocities' in e.detail for e in measured.all(SafetyChanged, engaged=True))


def test_without_velocities_positions_are_differenced(robot: FakeRobot) -> None:
    robot.velocity = None
    robot.publish_joints(100)
    with running(config(at_rest=MEASURED)) as rig:
        rig.wait(RestChanged, at_rest=True)
        stop = time.monotonic() + 0.5
        while time.monotonic() < stop and not rig.all(RestChanged, at_rest=False):
            robot.position += 0.01
            time.sleep(0.005)
        rig.wait(RestChanged, at_rest=False)


def test_silence_of_joint_states_stops_and_names_the_server(
    measured: Rig, robot: FakeRobot
) -> None:
    measured.wait(RestChanged, at_rest=True)
    goal_id = measured.start_goal()
    measured.wait(GoalAccepted, goal_id=goal_id)
    measured.clear()
    silent_ns = time.monotonic_ns()
    robot.publish_joints(0)
    change, at_ns = measured.wait_timed(SafetyChanged, input_name=REST, engaged=True)
    assert change.meaning is Meaning.NOT_READY
    assert 'arm/move' in change.detail
    assert at_ns - silent_ns < (400 + 100) * 1e6
    measured.wait(RestChanged, at_rest=None)
    assert outcome(measured, goal_id) is GoalOutcome.CANCELED


def test_f25_killed_server_is_lost_from_silence(measured: Rig, robot: FakeRobot) -> None:
    measured.wait(RestChanged, at_rest=True)
    goal_id = measured.start_goal()
    measured.wait(GoalAccepted, goal_id=goal_id)
    silent_ns = time.monotonic_ns()
    robot.freeze()
    ended, at_ns = measured.wait_timed(GoalEnded, goal_id=goal_id)
    assert ended.outcome is GoalOutcome.LOST
    assert 'arm/move' in ended.detail
    assert at_ns - silent_ns < (400 + 150) * 1e6
    robot.thaw()
    eventually(lambda: measured.gateway.health()['held'] == 0, 'nothing is held')


def test_f82_a_silent_server_that_answers_is_not_lost(
    measured: Rig, robot: FakeRobot
) -> None:
    goal_id = measured.start_goal()
    measured.wait(GoalAccepted, goal_id=goal_id)
    for length in range(1, 6):
        robot.feedback(goal_id, length)
    with pytest.raises(AssertionError):
        measured.wait(GoalEnded, timeout_s=1.2, goal_id=goal_id)
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
    assert finished.detail == ''


def test_behavior_names_the_step_that_ran_into_its_bound(
    measured: Rig, robot: FakeRobot
) -> None:
    robot.velocity = 0.5
    measured.wait(RestChanged, at_rest=False)
    started_ns = time.monotonic_ns()
    ticket = measured.behave(bound_ms=300)
    finished, at_ns = measured.wait_timed(type(measured.behaved(ticket)), ticket=ticket)
    assert not finished.ok
    assert 'wait_at_rest was not done within 300 ms' in finished.detail
    assert 300e6 <= at_ns - started_ns < 400e6


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
    assert finished.detail == 'rest not measured'


def test_behavior_spares_goals_decided_later(measured: Rig, robot: FakeRobot) -> None:
    ticket = measured.behave()
    goal_id = measured.start_goal()
    measured.wait(GoalAccepted, goal_id=goal_id)
    assert measured.behaved(ticket).ok
    assert not robot.seen.cancelled(goal_id)
    robot.end(goal_id, 'succeed')
    assert outcome(measured, goal_id) is GoalOutcome.SUCCEEDED
