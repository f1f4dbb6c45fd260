"""Safety inputs, the gate, the local stop, rest and behaviours, against real publishers."""

from __future__ import annotations

from collections.abc import Iterator
import threading
import time
from typing import Any

from fakes import eventually, FakeRobot
from gateway_rig import config, E_STOP, IMPATIENT, outcome, Rig, running, SILENT_MS
from lateness import Lateness
import pytest
from speakers import SafetyTopic
from std_msgs.msg import Bool

from awp_ros_bridge.engine.inputs import (
    GoalAccepted,
    GoalEnded,
    GoalOutcome,
    Meaning,
    SafetyChanged,
)

STALE = 'e_stop:stale'
TURNS = 500


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


@pytest.fixture
def impatient(robot: FakeRobot) -> Iterator[Rig]:
    with running(config(safety_inputs=({**E_STOP, **IMPATIENT},))) as rig:
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


def test_edge_trips_cancels_and_releases(rig: Rig, robot: FakeRobot, button: SafetyTopic) -> None:
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


def test_f94_ok_ages_into_unknown(
    impatient: Rig, button: SafetyTopic, lateness: Lateness
) -> None:
    button.say(False)
    button.repeat(50)
    impatient.ready()
    impatient.clear()
    began_ns = time.monotonic_ns()
    button.kill()
    killed_ns = time.monotonic_ns()
    change, at_ns = impatient.wait_timed(SafetyChanged, input_name=STALE, engaged=True)
    assert f'limit {SILENT_MS} ms' in change.detail
    assert at_ns - killed_ns < (SILENT_MS + 100) * 1e6 + lateness.since(began_ns)
    assert not impatient.gateway.inputs.permits_motion('arm', time.monotonic_ns())


def test_f94_tripped_stays_tripped_without_its_publisher(
    impatient: Rig, button: SafetyTopic
) -> None:
    button.say(True)
    button.repeat(50)
    impatient.wait(SafetyChanged, input_name='e_stop', engaged=True)
    impatient.clear()
    button.kill()
    with pytest.raises(AssertionError):
        impatient.wait(SafetyChanged, timeout_s=0.8, engaged=False, input_name='e_stop')
    assert not permitted(impatient)


def test_f96_latched_trip_before_the_start_is_heard(robot: FakeRobot, ros_domain_id: int) -> None:
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
    by_companion = {
        **E_STOP, 'freshness': {'by': 'companion', 'topic': 'joint_states'},
        'stale_after_ms': 1000,
    }  # fmt: skip
    robot.publish_joints(50)
    with (
        SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button,
        running(config(safety_inputs=(by_companion,))) as rig,
    ):
        button.say(False)
        rig.ready()
        rig.clear()
        with pytest.raises(AssertionError):
            rig.wait(SafetyChanged, timeout_s=1.2, input_name=STALE, engaged=True)
        robot.publish_joints(0)
        eventually(lambda: not permitted(rig), 'silence of the companion shuts the gate')
        said = rig.wait(SafetyChanged, input_name=STALE, engaged=True)
        assert 'companion' in said.detail


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


@pytest.mark.timeout(240)
def test_a_trip_between_decision_and_send_500_times(
    rig: Rig, robot: FakeRobot, ros_domain_id: int, lateness: Lateness,
    record_testsuite_property: Any,
) -> None:
    """Nothing reaches the server, or what does is cancelled at once; no goal runs on."""
    not_sent = 0
    latest_ns = 0
    with SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button:
        button.say(False)
        button.repeat(50)
        rig.ready()
        for turn in range(TURNS):
            epoch = rig.gateway.gate.epoch
            button.say(True)
            wait_until_ns = time.monotonic_ns() + turn % 20 * 50_000
            while time.monotonic_ns() < wait_until_ns:
                pass  # the goal leaves somewhere around the moment of the trip
            goal_id = rig.start_goal(epoch=epoch)
            eventually(lambda: not permitted(rig), 'the trip is noticed')
            shut_ns = time.monotonic_ns()
            ended = rig.ended(goal_id)
            if ended.outcome is GoalOutcome.NOT_SENT:
                not_sent += 1
                assert not robot.seen.requested(goal_id)
            else:
                assert ended.outcome is GoalOutcome.CANCELED
                assert robot.seen.cancelled(goal_id) >= 1
                at_ns = next(ns for uuid, ns in robot.seen.cancels if uuid.hex() == goal_id)
                latest_ns = max(latest_ns, at_ns - shut_ns - lateness.since(shut_ns))
            assert not robot.handles  # nothing runs on
            button.say(False)
            eventually(lambda: permitted(rig), 'the release is noticed')
            rig.clear()
    assert 0 < not_sent < TURNS  # both happened
    assert latest_ns < 500e6
    record_testsuite_property('trips_between_decision_and_send', TURNS)
    record_testsuite_property('trips_with_nothing_sent', not_sent)
    record_testsuite_property('trips_latest_cancel_ms', round(latest_ns * 1e-6, 1))


def test_goal_accepted_after_the_trip_is_cancelled_at_once(
    rig: Rig, robot: FakeRobot, ros_domain_id: int
) -> None:
    with SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button:
        button.say(False)
        button.repeat(50)
        rig.ready()
        robot.knobs.decides = threading.Event()
        goal_id = rig.start_goal()
        eventually(lambda: robot.seen.arrivals, 'the goal arrives')
        button.say(True)
        eventually(lambda: not permitted(rig), 'the trip is noticed')
        robot.knobs.decides.set()
        assert outcome(rig, goal_id) is GoalOutcome.CANCELED
        assert [type(e) for e in rig.of_goal(goal_id)] == [GoalAccepted, GoalEnded]


def test_stop_does_not_wait_for_the_goals_thread(
    rig: Rig, robot: FakeRobot, ros_domain_id: int
) -> None:
    with SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as button:
        button.say(False)
        button.repeat(50)
        rig.ready()
        robot.knobs.decides = threading.Event()
        goal_id = rig.start_goal()
        eventually(lambda: robot.seen.arrivals, 'the goal arrives')
        release = threading.Event()
        rig.block_goals(release)  # nobody hears of the acceptance
        robot.knobs.decides.set()
        button.say(True)
        eventually(lambda: robot.seen.cancelled(goal_id), 'the safety thread cancels it')
        assert not rig.all(GoalAccepted), 'the goals thread is still blocked'
        release.set()
        assert outcome(rig, goal_id) is GoalOutcome.CANCELED


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
