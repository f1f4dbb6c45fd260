"""What an operator may do by service: stop at once, and clear what is latched, or be told why."""

from __future__ import annotations

from collections.abc import Iterator
import threading
import time
from typing import Any

from fakes import eventually, FakeRobot
from gateway_rig import config, E_STOP, IMPATIENT, outcome, Rig, running
import pytest
from ros_peer import RosPeer
from speakers import SafetyTopic
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from awp_ros_bridge.engine.inputs import GoalAccepted, GoalOutcome, Meaning, SafetyChanged

# a server of rclpy that is asked for a goal it does not know warns through a deprecated call
pytestmark = pytest.mark.filterwarnings('ignore:Deprecated in favor:DeprecationWarning')


@pytest.fixture
def robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        yield robot


@pytest.fixture
def rig(robot: FakeRobot) -> Iterator[Rig]:
    with running(config()) as rig:
        rig.ready()
        yield rig


@pytest.fixture
def button(ros_domain_id: int) -> Iterator[SafetyTopic]:
    with SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as topic:
        topic.say(False)
        topic.repeat(50)
        yield topic


def ask(peer: RosPeer, word: str, place: str = '/arm') -> Any:
    return peer.call(Trigger, f'/awp_ros_bridge{place}/{word}')


def permitted(rig: Rig) -> bool:
    return rig.gateway.gate.is_open('arm')


def moving(rig: Rig) -> str:
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    return goal_id


def test_the_stop_cancels_what_runs_and_holds_until_it_is_cleared(
    rig: Rig, robot: FakeRobot, peer: RosPeer
) -> None:
    goal_id = moving(rig)
    rig.clear()
    answer = ask(peer, 'stop')
    assert answer.success
    assert 'until clear' in answer.message
    change = rig.wait(SafetyChanged, input_name='operator')
    assert (change.meaning, change.engaged) == (Meaning.OPERATOR_STOP, True)
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    assert robot.seen.cancelled(goal_id) == 1
    assert outcome(rig, rig.start_goal()) is GoalOutcome.NOT_SENT
    answer = ask(peer, 'clear')
    assert answer.success, answer.message
    assert answer.message == (
        'arm: operator stop cleared; nothing resumes by itself'
    )
    assert rig.wait(SafetyChanged, input_name='operator', engaged=False)
    assert permitted(rig)
    requests = len(robot.seen.requests)
    robot.knobs.ends_at_once = True
    assert outcome(rig, rig.start_goal()) is GoalOutcome.SUCCEEDED
    assert len(robot.seen.requests) == requests + 1, 'nothing else was resumed'


def test_the_stop_does_not_wait_for_the_goals_thread(
    rig: Rig, robot: FakeRobot, peer: RosPeer
) -> None:
    goal_id = moving(rig)
    release = threading.Event()
    rig.block_goals(release)
    rig.clear()
    assert ask(peer, 'stop').success
    eventually(lambda: robot.seen.cancelled(goal_id), 'the safety thread cancels it')
    assert not rig.of_goal(goal_id), 'the goals thread is still blocked'
    release.set()
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED


def test_the_stop_of_all_stops_every_embodiment(rig: Rig, peer: RosPeer) -> None:
    assert ask(peer, 'stop', '').success
    assert not permitted(rig)
    assert ask(peer, 'clear', '').success
    assert permitted(rig)


def test_f91_clear_without_a_fault_is_refused_and_touches_no_goal(
    rig: Rig, robot: FakeRobot, peer: RosPeer
) -> None:
    answer = ask(peer, 'clear')
    assert not answer.success
    assert answer.message == 'nothing was cleared: nothing is engaged on arm'
    goal_id = moving(rig)
    answer = ask(peer, 'clear')
    assert not answer.success
    assert 'goals run on arm/move and go on' in answer.message
    assert robot.seen.cancelled(goal_id) == 0
    robot.end(goal_id, 'succeed')
    assert outcome(rig, goal_id) is GoalOutcome.SUCCEEDED


def test_f91_clear_waits_for_goals_and_says_which_have_not_ended(
    rig: Rig, robot: FakeRobot, peer: RosPeer
) -> None:
    robot.knobs.obeys_cancel = False
    goal_id = moving(rig)
    assert ask(peer, 'stop').success
    answer = ask(peer, 'clear')
    assert not answer.success
    assert answer.message == (
        'clear failed: still engaged after 2000 ms: arm: goals: goals on arm/move have not ended'
    )
    assert not permitted(rig)
    future = peer.send_request(Trigger, '/awp_ros_bridge/arm/clear')
    peer.turn_for(0.3)
    assert not future.done()
    robot.end(goal_id, 'canceled')
    assert peer.wait_for(future, 5.0).success
    assert permitted(rig)


def test_f90_clear_waits_for_the_status_and_else_says_that_it_failed(
    robot: FakeRobot, button: SafetyTopic, peer: RosPeer
) -> None:
    with running(config(safety_inputs=(E_STOP,))) as rig:
        rig.ready()
        button.say(True)
        rig.wait(SafetyChanged, input_name='e_stop', engaged=True)
        assert ask(peer, 'stop').success
        answer = ask(peer, 'clear')
        assert not answer.success
        assert answer.message.startswith('clear failed: still engaged after 2000 ms: ')
        assert 'e_stop: safety/e_stop.data is True' in answer.message
        assert {'e_stop', 'operator'} <= set(rig.gateway.gate.causes('arm')), 'nothing is cleared'
        # the reset was acknowledged, its status follows late
        future = peer.send_request(Trigger, '/awp_ros_bridge/arm/clear')
        peer.turn_for(0.5)
        assert not future.done()
        button.say(False)
        answer = peer.wait_for(future, 5.0)
        assert answer.success, answer.message
        assert permitted(rig)


def test_a_stop_during_a_clear_wins(
    robot: FakeRobot, button: SafetyTopic, peer: RosPeer
) -> None:
    with running(config(safety_inputs=(E_STOP,))) as rig:
        rig.ready()
        button.say(True)
        rig.wait(SafetyChanged, input_name='e_stop', engaged=True)
        future = peer.send_request(Trigger, '/awp_ros_bridge/arm/clear')
        peer.turn_for(0.2)
        assert ask(peer, 'stop').success
        answer = peer.wait_for(future, 5.0)
        assert (answer.success, answer.message) == (
            False, 'clear failed: the stop was asked for again meanwhile',
        )  # fmt: skip
        button.say(False)
        rig.wait(SafetyChanged, input_name='e_stop', engaged=False)
        assert list(rig.gateway.gate.causes('arm')) == ['operator']


def test_a_latched_input_holds_until_the_hardware_is_clear_and_an_operator_says_so(
    robot: FakeRobot, button: SafetyTopic, peer: RosPeer
) -> None:
    latching = {**E_STOP, 'latch': 'until_operator'}
    with running(config(safety_inputs=(latching,))) as rig:
        rig.ready()
        button.say(True)
        rig.wait(SafetyChanged, input_name='e_stop', engaged=True)
        answer = ask(peer, 'clear')
        assert not answer.success
        assert 'safety/e_stop.data is True' in answer.message
        rig.clear()
        button.say(False)
        change = rig.wait(SafetyChanged, input_name='e_stop', engaged=True)
        assert 'latched until an operator clears it' in change.detail
        with pytest.raises(AssertionError):
            rig.wait(SafetyChanged, timeout_s=0.5, input_name='e_stop', engaged=False)
        assert not permitted(rig)
        answer = ask(peer, 'clear')
        assert answer.message == 'arm: e_stop cleared; nothing resumes by itself'
        assert permitted(rig)
        # one flicker latches too
        button.publisher.publish(Bool(data=True))
        eventually(lambda: not permitted(rig), 'the flicker trips')
        time.sleep(0.2)
        assert not permitted(rig)
        assert ask(peer, 'clear').success


def test_a_latched_input_that_falls_silent_cannot_be_cleared(
    robot: FakeRobot, button: SafetyTopic, peer: RosPeer
) -> None:
    latching = {**E_STOP, **IMPATIENT, 'latch': 'until_operator'}
    with running(config(safety_inputs=(latching,))) as rig:
        rig.ready()
        button.say(True)
        rig.wait(SafetyChanged, input_name='e_stop', engaged=True)
        button.say(False)
        eventually(lambda: rig.gateway.inputs.only_latched('arm'), 'the latch alone')
        button.kill()
        eventually(lambda: not rig.gateway.inputs.only_latched('arm'), 'silence')
        answer = ask(peer, 'clear')
        assert not answer.success
        assert not permitted(rig)
