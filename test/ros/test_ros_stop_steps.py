"""Stops with every configured step, against real topics, services and action servers."""

from __future__ import annotations

from collections.abc import Iterator
import time
from typing import Any
import uuid

from fakes import eventually, FakeRobot
from gateway_rig import config, E_STOP, MEASURED, outcome, Rig, running
from geometry_msgs.msg import Twist
from lateness import Lateness
import pytest
from ros_peer import Listener, RosPeer
from speakers import SafetyTopic
from test_msgs.action import Fibonacci

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.engine.inputs import (
    AvailabilityChanged,
    GoalAccepted,
    GoalEnded,
    GoalNoted,
    GoalOutcome,
    Meaning,
    RestChanged,
    SafetyChanged,
)
from awp_ros_bridge.ros.stop_watch import NAME as STOP_STEPS

ZEROS = {
    'step': 'publish_zeros',
    'topic': 'cmd_vel',
    'type': 'geometry_msgs/msg/Twist',
    'for_ms': 300,
    'rate_hz': 50.0,
}
CALL = {'step': 'call_service', 'service': 'arm/trigger', 'timeout_ms': 1500}
PARK = {'step': 'park', 'action': 'move', 'params': {'order': 7}, 'timeout_ms': 1000}


def steps(*between: Any, **more: Any) -> BridgeConfig:
    """Return a configuration with these steps between cancelling and rest."""
    return config(stop_steps=('cancel_goals', *between, 'wait_at_rest'), **more)


@pytest.fixture
def robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        yield robot


@pytest.fixture
def zeros(peer: RosPeer) -> Iterator[Listener]:
    heard = peer.listen(Twist, 'cmd_vel', 100)
    yield heard
    heard.close()


@pytest.fixture
def button(ros_domain_id: int) -> Iterator[SafetyTopic]:
    with SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as topic:
        topic.say(False)
        topic.repeat(50)
        yield topic


class ForeignGoal:
    """A goal that is not the bridge's, as its server sees it."""

    def __init__(self, peer: RosPeer, robot: FakeRobot) -> None:
        before = len(robot.seen.requests)
        client = peer.action_client(Fibonacci, robot.action)
        client.send_goal_async(Fibonacci.Goal(order=1))
        peer.wait_until(lambda: len(robot.seen.requests) > before, what='a foreign goal')
        self.uuid, _ = robot.seen.requests[before]
        self._robot = robot

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended."""
        return self.uuid not in self._robot.handles

    def end(self) -> None:
        """Let it succeed."""
        self._robot.end(self.uuid.hex(), 'succeed')


def engage(rig: Rig, meaning: Meaning, name: str = 'test') -> None:
    """Let a safety input of some meaning forbid motion."""
    gateway = rig.gateway
    gateway.safety_thread.post(gateway.local_stop.engage, 'arm', name, meaning, 'by the test')


# ---------------------------------------------------------------- the local stop


def test_f99_a_trip_cancels_and_sends_zeros_and_calls_the_service_without_the_engine(
    robot: FakeRobot, peer: RosPeer, zeros: Listener, button: SafetyTopic, lateness: Lateness
) -> None:
    with running(steps(ZEROS, CALL, safety_inputs=(E_STOP,))) as rig:
        rig.ready()
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
        assert not zeros.messages
        tripped_ns = time.monotonic_ns()
        button.say(True)
        peer.wait_until(lambda: zeros.messages, what='a zero')
        first_s = zeros.arrivals_s[0] - tripped_ns * 1e-9
        assert first_s < 0.2 + lateness.since(tripped_ns) * 1e-9
        assert outcome(rig, goal_id) is GoalOutcome.CANCELED
        eventually(lambda: robot.service_calls == 1, 'the stop service is called')
        # the engine hears of it and calls for the behaviour: it joins what is under way
        finished = None
        ticket = rig.behave()
        peer.wait_until(lambda: rig.all(type(rig.behaved(ticket)), ticket=ticket), what='the end')
        finished = rig.behaved(ticket)
        assert finished.ok, finished.detail
        assert 'call_service arm/trigger: done: done' in finished.detail
        assert 'publish_zeros cmd_vel: ' in finished.detail
        assert 'wait_at_rest: rest not measured' in finished.detail
        peer.turn_for(0.1)
        assert robot.service_calls == 1
        lost_s = lateness.since(tripped_ns) * 1e-9
        assert 10 - lost_s * 50.0 <= len(zeros.messages) <= 17
        assert all(message == Twist() for message in zeros.messages)
        assert zeros.arrivals_s[-1] - zeros.arrivals_s[0] < 0.45 + lost_s


def test_a_bridge_that_starts_while_motion_is_forbidden_touches_nothing(
    robot: FakeRobot, peer: RosPeer, zeros: Listener, button: SafetyTopic
) -> None:
    button.say(True)
    with running(steps(ZEROS, CALL, safety_inputs=(E_STOP,))) as rig:
        rig.wait(SafetyChanged, input_name='e_stop', engaged=True)
        rig.wait(SafetyChanged, input_name=STOP_STEPS, engaged=False)
        peer.turn_for(0.3)
        assert not zeros.messages
        assert robot.service_calls == 0
        button.say(False)
        eventually(lambda: rig.gateway.gate.is_open('arm'), 'the gate opens')
        button.say(True)
        peer.wait_until(lambda: zeros.messages and robot.service_calls, what='a stop')


def test_a_second_stop_is_carried_out_again(
    robot: FakeRobot, peer: RosPeer, zeros: Listener
) -> None:
    with running(steps(ZEROS, CALL)) as rig:
        rig.ready()
        engage(rig, Meaning.FAULT)
        peer.wait_until(lambda: robot.service_calls == 1, what='the first stop')
        gateway = rig.gateway
        release = ('arm', 'test', Meaning.FAULT, 'by the test')
        gateway.safety_thread.post(gateway.local_stop.release, *release)
        eventually(lambda: gateway.gate.is_open('arm'), 'the gate opens')
        engage(rig, Meaning.FAULT)
        peer.wait_until(lambda: robot.service_calls == 2, what='the second stop')


def test_a_server_that_hangs_delays_neither_zeros_nor_the_service(
    ros_domain_id: int, robot: FakeRobot, peer: RosPeer, zeros: Listener, lateness: Lateness
) -> None:
    moved = {'ros_action': 'slow/move'}
    with (
        FakeRobot(ros_domain_id, action='slow/move') as slow,
        running(steps(ZEROS, CALL, move=moved)) as rig,
    ):
        rig.ready()
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
        slow.knobs.cancel_s = 1.2
        began_ns = time.monotonic_ns()
        ticket = rig.behave(bound_ms=600)
        peer.wait_until(lambda: zeros.messages, what='a zero')
        eventually(lambda: robot.service_calls == 1, 'the stop service is called')
        took_s = time.monotonic() - began_ns * 1e-9
        assert took_s < 0.4 + lateness.since(began_ns) * 1e-9, 'it does not hang with the server'
        finished = rig.behaved(ticket)
        assert not finished.ok
        assert 'cancel_goals: was not done within 600 ms: slow/move' in finished.detail
        assert outcome(rig, goal_id) is GoalOutcome.CANCELED


def test_what_cannot_stop_the_robot_forbids_its_motion(robot: FakeRobot, peer: RosPeer) -> None:
    with running(steps(ZEROS, CALL)) as rig:
        change = rig.wait(
            SafetyChanged, input_name=STOP_STEPS, detail='nobody listens on cmd_vel'
        )
        assert (change.engaged, change.meaning) == (True, Meaning.NOT_READY)
        assert outcome(rig, rig.start_goal()) is GoalOutcome.NOT_SENT
        heard = peer.listen(Twist, 'cmd_vel', 10)
        rig.ready()
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
        heard.close()
        assert outcome(rig, goal_id) is GoalOutcome.CANCELED
        assert not rig.gateway.gate.is_open('arm')


def test_f100_an_orderly_end_stops_what_runs_with_zeros_and_nothing_else(
    robot: FakeRobot, peer: RosPeer, zeros: Listener
) -> None:
    with running(steps(ZEROS, CALL)) as rig:
        rig.ready()
    peer.turn_for(0.1)
    assert not zeros.messages
    assert robot.service_calls == 0
    with running(steps(ZEROS, CALL)) as rig:
        rig.ready()
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    assert robot.service_calls == 1
    peer.wait_until(lambda: zeros.messages, what='a zero')
    assert all(message == Twist() for message in zeros.messages)


# ---------------------------------------------------------------- all goals of a server


@pytest.mark.parametrize('meaning', [Meaning.E_STOP, Meaning.PROTECTIVE_STOP])
def test_an_e_stop_cancels_all_goals_of_a_server_that_is_ours_alone(
    robot: FakeRobot, peer: RosPeer, meaning: Meaning
) -> None:
    with running(config(move={'shared_server': False})) as rig:
        rig.ready()
        goal = ForeignGoal(peer, robot)
        engage(rig, meaning)
        peer.wait_until(lambda: goal.is_over, what='the end of the foreign goal')
        finished = rig.behaved(rig.behave())
        assert 'cancel_goals arm/move: all its goals, 1 of them running' in finished.detail


@pytest.mark.parametrize(
    ('is_shared', 'meaning'),
    [(True, Meaning.E_STOP), (False, Meaning.NOT_READY), (False, Meaning.FAULT)],
)
def test_foreign_goals_are_left_alone_otherwise(
    robot: FakeRobot, peer: RosPeer, is_shared: bool, meaning: Meaning
) -> None:
    with running(config(move={'shared_server': is_shared})) as rig:
        rig.ready()
        goal = ForeignGoal(peer, robot)
        mine = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=mine)
        engage(rig, meaning)
        assert outcome(rig, mine) is GoalOutcome.CANCELED
        peer.turn_for(0.2)
        assert not goal.is_over
        goal.end()


def test_f20_a_server_that_does_not_answer_a_cancel_is_asked_to_cancel_all(
    robot: FakeRobot, peer: RosPeer
) -> None:
    with running(config()) as rig:
        rig.ready()
        foreign = ForeignGoal(peer, robot)
        mine = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=mine)
        robot.knobs.cancel_s = 1.3  # longer than the bound of an answer
        rig.cancel_goal(mine)
        eventually(lambda: robot.seen.cancelled(mine), 'the cancel arrives')
        robot.knobs.obeys_cancel = False  # neither obeys nor answers in time
        note = rig.wait(GoalNoted, goal_id=mine)
        assert note.detail.startswith('arm/move did not answer a cancel within 1000 ms')
        assert 'arm/move was asked to cancel all' in note.detail
        eventually(lambda: robot.seen.cancelled(foreign.uuid.hex()), 'the foreign goal too')
        robot.knobs.cancel_s = 0.0
        for each in list(robot.handles):
            robot.end(each.hex(), 'canceled')
        assert outcome(rig, mine) is GoalOutcome.CANCELED


# ---------------------------------------------------------------- planners


@pytest.mark.parametrize('fault', ['no answer', 'no end', 'refused'])
def test_f18_a_planner_that_does_not_obey_has_what_it_drives_cancelled(
    ros_domain_id: int, robot: FakeRobot, peer: RosPeer, fault: str, lateness: Lateness
) -> None:
    planned = {'ros_action': 'plan', 'downstream': ['arm/move'], 'downstream_after_ms': 300}
    with (
        FakeRobot(ros_domain_id, action='plan') as planner,
        running(config(move=planned)) as rig,
    ):
        rig.ready()
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
        driven = ForeignGoal(peer, robot)  # the planner's, to the controller
        if fault == 'no answer':
            planner.knobs.cancel_s = 0.8
        planner.knobs.obeys_cancel = False
        planner.knobs.accepts_cancel = fault != 'refused'
        cancelled_ns = time.monotonic_ns()
        ticket = rig.behave(bound_ms=1500)
        peer.wait_until(lambda: driven.is_over, what='the end of the driven goal')
        took_ns = time.monotonic_ns() - cancelled_ns
        assert 300e6 <= took_ns < 800e6 + lateness.since(cancelled_ns)
        note = rig.wait(GoalNoted, goal_id=goal_id).detail
        assert note.startswith('plan ')
        assert 'within 300 ms; arm/move was asked to cancel all and stopped 1 of its' in note
        planner.knobs.cancel_s = 0.0
        planner.end(goal_id, 'succeed')
        rig.ended(goal_id)
        finished = rig.behaved(ticket)
        if fault == 'no answer':
            assert note in finished.detail  # who stopped it
        assert finished.ok is (fault != 'refused')


def test_a_planner_that_obeys_keeps_what_it_drives(
    ros_domain_id: int, robot: FakeRobot, peer: RosPeer
) -> None:
    planned = {'ros_action': 'plan', 'downstream': ['arm/move'], 'downstream_after_ms': 600}
    with FakeRobot(ros_domain_id, action='plan'), running(config(move=planned)) as rig:
        rig.ready()
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
        driven = ForeignGoal(peer, robot)
        rig.cancel_goal(goal_id)
        assert outcome(rig, goal_id) is GoalOutcome.CANCELED
        peer.turn_for(0.8)
        assert not driven.is_over
        assert not rig.all(GoalNoted)
        driven.end()


def test_a_planner_whose_controller_could_not_be_stopped_is_not_available(
    ros_domain_id: int, robot: FakeRobot
) -> None:
    planned = {'downstream': ['below'], 'downstream_after_ms': 100}
    with running(config(move=planned)) as rig:
        far = 'action server below, which arm/move drives, is not available'
        rig.wait(AvailabilityChanged, action_type='move', available=False, detail=far)
        with FakeRobot(ros_domain_id, action='below'):
            rig.wait(AvailabilityChanged, action_type='move', available=True)


# ---------------------------------------------------------------- parking


@pytest.fixture
def parking(robot: FakeRobot) -> Iterator[Rig]:
    robot.publish_joints(100)
    with running(steps(PARK, at_rest=MEASURED, more={'safety': {'behavior': 'park'}})) as rig:
        rig.ready()
        rig.wait(RestChanged, at_rest=True)
        yield rig


def test_the_park_goal_follows_rest_and_is_not_told_to_the_engine(
    parking: Rig, robot: FakeRobot
) -> None:
    goal_id = parking.start_goal()
    parking.wait(GoalAccepted, goal_id=goal_id)
    robot.velocity = 0.5
    parking.wait(RestChanged, at_rest=False)
    park_goal = uuid.uuid4().hex
    ticket = parking.behave(bound_ms=4000, park_goal=park_goal)
    assert outcome(parking, goal_id) is GoalOutcome.CANCELED
    with pytest.raises(AssertionError):
        eventually(lambda: robot.seen.requested(park_goal), timeout_s=0.3)
    robot.velocity = 0.0
    eventually(lambda: robot.seen.requested(park_goal), 'the park goal arrives')
    assert robot.handles[bytes.fromhex(park_goal)].request.order == 7
    robot.end(park_goal, 'succeed')
    finished = parking.behaved(ticket)
    assert finished.ok, finished.detail
    assert 'park move: succeeded: arm/move' in finished.detail
    assert finished.detail.count('wait_at_rest: at rest') == 2
    assert not parking.of_goal(park_goal)


def test_without_permission_nothing_is_moved_to_park(parking: Rig, robot: FakeRobot) -> None:
    finished = parking.behaved(parking.behave(bound_ms=4000))
    assert not finished.ok
    assert 'park move: not sent, the robot must not move' in finished.detail
    assert not robot.seen.arrivals
    engage(parking, Meaning.E_STOP)
    finished = parking.behaved(parking.behave(bound_ms=4000, park_goal=uuid.uuid4().hex))
    assert not finished.ok
    assert 'park move: not sent, motion of arm is not permitted (test' in finished.detail
    assert not robot.seen.arrivals


def test_an_e_stop_ends_parking(parking: Rig, robot: FakeRobot) -> None:
    park_goal = uuid.uuid4().hex
    ticket = parking.behave(bound_ms=4000, park_goal=park_goal)
    eventually(lambda: robot.seen.requested(park_goal), 'the park goal arrives')
    engage(parking, Meaning.E_STOP)
    finished = parking.behaved(ticket)
    assert not finished.ok
    assert finished.detail.startswith('park move: canceled')
    assert robot.seen.cancelled(park_goal) == 1
    eventually(lambda: not robot.handles, 'no goal runs')


def test_a_park_goal_that_takes_too_long_is_cancelled(
    parking: Rig, robot: FakeRobot, lateness: Lateness
) -> None:
    park_goal = uuid.uuid4().hex
    began_ns = time.monotonic_ns()
    finished = parking.behaved(parking.behave(bound_ms=4000, park_goal=park_goal))
    assert not finished.ok
    assert 'park move: canceled' in finished.detail
    took_ns = time.monotonic_ns() - began_ns
    assert 1000e6 < took_ns < 2000e6 + lateness.since(began_ns)
    eventually(lambda: not robot.handles, 'no goal runs')


def test_a_robot_that_was_not_stopped_is_not_parked(parking: Rig, robot: FakeRobot) -> None:
    robot.knobs.accepts_cancel = False
    goal_id = parking.start_goal()
    parking.wait(GoalAccepted, goal_id=goal_id)
    park_goal = uuid.uuid4().hex
    finished = parking.behaved(parking.behave(bound_ms=4000, park_goal=park_goal))
    assert not finished.ok
    assert 'park move: not sent, it was not stopped as configured' in finished.detail
    assert not robot.seen.requested(park_goal)
    robot.end(goal_id, 'succeed')
    parking.wait(GoalEnded, goal_id=goal_id)
