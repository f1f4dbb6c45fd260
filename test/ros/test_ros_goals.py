"""Goals against a real action server: accepted, progress, one end, and every way it can fail."""

from __future__ import annotations

from collections.abc import Iterator
import random
import threading
import time
from typing import Any

from fakes import eventually, FakeRobot, Knobs, Seen
from gateway_rig import config, outcome, Rig, running
import pytest

from awp_ros_bridge.engine.inputs import (
    AvailabilityChanged,
    GoalAccepted,
    GoalEnded,
    GoalOutcome,
    GoalProgressed,
    Meaning,
    SafetyChanged,
)
from awp_ros_bridge.ros.goals import NEWS_NS
from awp_ros_bridge.ros.live_goals import Cancel, Stage

F6_S = 8.0  # how long the server of case F6 takes to answer a cancel

# a server of rclpy that is asked for a goal it does not know warns through a deprecated call
pytestmark = pytest.mark.filterwarnings('ignore:Deprecated in favor:DeprecationWarning')


@pytest.fixture(scope='module')
def module_robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        yield robot


@pytest.fixture(scope='module')
def module_rig(module_robot: FakeRobot) -> Iterator[Rig]:
    with running(config()) as rig:
        rig.ready()
        yield rig


def _cancellers(rig: Rig) -> list[Any]:
    gateway = rig.gateway
    threads = (gateway.goals_thread, gateway.safety_thread)
    return [gateway._stopping.canceller_of(thread) for thread in threads]


def _is_ready(rig: Rig) -> bool:
    are_proven = all(each.is_ready('arm/move') for each in _cancellers(rig))
    return are_proven and rig.gateway.gate.is_open('arm')


@pytest.fixture
def robot(module_robot: FakeRobot) -> Iterator[FakeRobot]:
    module_robot.knobs, module_robot.seen = Knobs(), Seen()
    yield module_robot
    module_robot.knobs = Knobs()
    if module_robot.server is None:
        module_robot.run(module_robot.start_server)
    for uuid in list(module_robot.handles):
        module_robot.end(uuid.hex(), 'abort')


@pytest.fixture
def rig(module_rig: Rig, robot: FakeRobot) -> Iterator[Rig]:
    eventually(lambda: _is_ready(module_rig), 'the server is there and the gate is open')
    module_rig.clear()
    yield module_rig
    module_rig.release_goals()
    robot.release()
    for run in list(module_rig.gateway.goals._goals):
        module_rig.cancel_goal(run)
        if bytes.fromhex(run) in robot.handles:
            robot.end(run, 'abort')
    eventually(lambda: module_rig.gateway.health()['held'] == 0, 'nothing is held')


@pytest.mark.parametrize(
    ('how', 'sequence', 'expected'),
    [
        ('succeed', (0, 1), GoalOutcome.SUCCEEDED),
        ('succeed', (-1,), GoalOutcome.ABORTED),  # success with an error code inside
        ('abort', (0, 1), GoalOutcome.ABORTED),
    ],
)
def test_f5_one_end_that_tells_the_outcome(
    rig: Rig, robot: FakeRobot, how: str, sequence: tuple[int, ...], expected: GoalOutcome
) -> None:
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    robot.end(goal_id, how, sequence)
    assert outcome(rig, goal_id) is expected
    assert 'arm/move' in rig.ended(goal_id).detail
    assert isinstance(rig.of_goal(goal_id)[0], GoalAccepted)


def test_a_stop_that_the_result_overtook_on_its_way_is_told_before_it(
    rig: Rig, robot: FakeRobot
) -> None:
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    gateway = rig.gateway
    release = threading.Event()
    rig.block_goals(release)
    robot.end(goal_id, 'abort')
    news = ('arm', 'news', Meaning.E_STOP, 'a test')

    def engage() -> None:
        gateway.local_stop.engage(*news)

    # the goals thread has the result when the safety thread has the news
    gateway.goals_thread.post(lambda: gateway.goals_thread.call_later(NEWS_NS // 5, engage))
    release.set()
    try:
        assert outcome(rig, goal_id) is GoalOutcome.ABORTED
        rig.wait(SafetyChanged, input_name='news', engaged=True)
        told = [e for e, _ in rig.heard if isinstance(e, SafetyChanged | GoalEnded)]
        assert [type(e) for e in told] == [SafetyChanged, GoalEnded]
    finally:
        gateway.safety_thread.post(gateway.local_stop.release, *news)
    rig.wait(SafetyChanged, input_name='news', engaged=False)


def test_f5_a_cancelled_goal_ends_canceled(rig: Rig, robot: FakeRobot) -> None:
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    rig.cancel_goal(goal_id)
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    assert robot.seen.cancelled(goal_id) == 1


def test_goal_carries_the_id_of_the_bridge(rig: Rig, robot: FakeRobot) -> None:
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    assert robot.seen.requested(goal_id) == 1


def test_f7_refused_goal_names_the_server(rig: Rig, robot: FakeRobot) -> None:
    robot.knobs.accepts = False
    goal_id = rig.start_goal()
    assert outcome(rig, goal_id) is GoalOutcome.REFUSED
    assert 'arm/move' in rig.ended(goal_id).detail
    assert not rig.all(GoalAccepted, goal_id=goal_id)


def test_goal_that_cannot_be_made_is_not_sent(rig: Rig, robot: FakeRobot) -> None:
    goal_id = rig.start_goal(order='three')
    assert outcome(rig, goal_id) is GoalOutcome.NOT_SENT
    assert not robot.seen.requests


def test_f3_cancel_before_the_answer_is_sent_on_acceptance_once(
    rig: Rig, robot: FakeRobot
) -> None:
    robot.knobs.decides = threading.Event()
    goal_id = rig.start_goal()
    eventually(lambda: robot.seen.arrivals, 'the goal arrives')
    assert rig.live(goal_id).stage is Stage.SENT
    rig.cancel_goal(goal_id)
    eventually(lambda: rig.live(goal_id).cancel is Cancel.WANTED, 'the cancel is wanted')
    assert not robot.seen.cancels
    robot.knobs.decides.set()
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    assert robot.seen.cancelled(goal_id) == 1
    assert [type(e) for e in rig.of_goal(goal_id)] == [GoalAccepted, GoalEnded]


def test_cancel_of_a_queued_goal_sends_nothing(rig: Rig, robot: FakeRobot) -> None:
    release = threading.Event()
    rig.block_goals(release)
    goal_id = rig.start_goal()
    rig.cancel_goal(goal_id)
    release.set()
    assert outcome(rig, goal_id) is GoalOutcome.NOT_SENT
    assert not robot.seen.requests


def test_f28_no_answer_in_time_then_late_acceptance_is_cancelled(
    rig: Rig, robot: FakeRobot
) -> None:
    robot.knobs.decides = threading.Event()
    goal_id = rig.start_goal('measured')
    ended = rig.wait(GoalEnded, goal_id=goal_id)
    assert ended.outcome is GoalOutcome.UNANSWERED
    assert '500 ms' in ended.detail
    robot.knobs.decides.set()
    eventually(lambda: robot.seen.cancelled(goal_id), 'the late goal is cancelled')
    eventually(lambda: bytes.fromhex(goal_id) not in robot.handles, 'the late goal ended')
    assert [type(e) for e in rig.of_goal(goal_id)] == [GoalEnded]


def test_f21_feedback_before_the_answer_and_after_the_end(rig: Rig, robot: FakeRobot) -> None:
    robot.knobs.early_feedback = True
    goal_id = rig.start_goal()
    rig.wait(GoalProgressed, goal_id=goal_id)
    handle = robot.handles[bytes.fromhex(goal_id)]
    robot.end(goal_id, 'succeed')
    rig.ended(goal_id)
    robot.run(lambda: robot.late_feedback(handle))
    assert outcome(rig, rig.start_goal('trigger')) is GoalOutcome.SUCCEEDED
    kinds = [type(e) for e in rig.of_goal(goal_id)]
    assert kinds[0] is GoalAccepted
    assert kinds[-1] is GoalEnded
    assert kinds.count(GoalEnded) == 1


def test_feedback_becomes_progress_at_ten_hertz_at_most(rig: Rig, robot: FakeRobot) -> None:
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    began_s = time.monotonic()
    for length in range(1, 9):
        robot.feedback(goal_id, length)
    assert rig.wait(GoalProgressed, goal_id=goal_id).progress == pytest.approx(0.1)
    told = len(rig.all(GoalProgressed, goal_id=goal_id))
    assert told <= 2 + (time.monotonic() - began_s) * 10
    assert told < 8 or time.monotonic() - began_s > 0.6


def test_progress_is_measured_where_feedback_tells_none(rig: Rig, robot: FakeRobot) -> None:
    goal_id = rig.start_goal('measured')
    rig.wait(GoalAccepted, goal_id=goal_id)
    assert rig.wait(GoalProgressed, goal_id=goal_id).progress == pytest.approx(0.25)
    robot.end(goal_id, 'succeed')
    rig.ended(goal_id)


def test_f6_cancel_without_an_answer_is_not_a_refusal(rig: Rig, robot: FakeRobot) -> None:
    robot.knobs.cancel_s = F6_S
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    asked_ns = time.monotonic_ns()
    rig.cancel_goal(goal_id)
    with pytest.raises(AssertionError, match='no GoalEnded'):
        rig.wait(GoalEnded, F6_S - 1.0, goal_id=goal_id)
    assert rig.live(goal_id).cancel is Cancel.SENT  # neither confirmed nor refused
    ended, at_ns = rig.wait_timed(GoalEnded, goal_id=goal_id)
    assert at_ns - asked_ns >= F6_S * 1e9
    assert ended.outcome is GoalOutcome.CANCELED
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    assert 'refused' not in ended.detail
    assert robot.seen.cancelled(goal_id) == 1


@pytest.mark.parametrize('thread', ['goals_thread', 'safety_thread'])
def test_a_server_is_there_when_cancels_reach_it_from_both_threads(
    rig: Rig, robot: FakeRobot, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    canceller = rig.gateway._stopping.canceller_of(getattr(rig.gateway, thread))
    assert canceller.is_ready('arm/move')
    with monkeypatch.context() as patch:
        patch.setattr(canceller, 'is_ready', lambda server: False)
        change = rig.wait(AvailabilityChanged, action_type='move', available=False)
        assert change.detail == 'action server arm/move is not available'
        assert not rig.all(AvailabilityChanged, action_type='trigger')
    rig.wait(AvailabilityChanged, action_type='move', available=True)


def test_refused_cancel_is_named_at_the_end(rig: Rig, robot: FakeRobot) -> None:
    robot.knobs.accepts_cancel = False
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    rig.cancel_goal(goal_id)
    eventually(lambda: rig.live(goal_id).cancel is Cancel.REFUSED, 'the refusal is known')
    robot.end(goal_id, 'succeed')
    assert outcome(rig, goal_id) is GoalOutcome.SUCCEEDED
    assert 'refused to cancel' in rig.ended(goal_id).detail


def test_f8_cancel_lands_while_the_goal_succeeds(rig: Rig, robot: FakeRobot) -> None:
    robot.knobs.obeys_cancel = False  # so that it is the goal's own end that is told
    dice = random.Random(8)
    for _ in range(200):
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
        if dice.random() < 0.5:
            rig.cancel_goal(goal_id)
            time.sleep(dice.random() * 2e-3)
            robot.end(goal_id, 'succeed')
        else:
            robot.end(goal_id, 'succeed')
            rig.cancel_goal(goal_id)
        assert outcome(rig, goal_id) is GoalOutcome.SUCCEEDED
        rig.clear()
    eventually(lambda: rig.gateway.health()['held'] == 0, 'nothing is held')


def test_service_is_an_instant_action(rig: Rig, robot: FakeRobot) -> None:
    goal_id = rig.start_goal('trigger')
    assert outcome(rig, goal_id) is GoalOutcome.SUCCEEDED
    assert rig.ended(goal_id).detail == 'arm/trigger: done'
    assert [type(e) for e in rig.of_goal(goal_id)] == [GoalAccepted, GoalEnded]


def test_service_without_an_answer_is_bounded(rig: Rig, robot: FakeRobot) -> None:
    robot.answer_services(False)
    goal_id = rig.start_goal('trigger')
    assert outcome(rig, goal_id) is GoalOutcome.UNANSWERED
    assert '1000 ms' in rig.ended(goal_id).detail
    robot.answer_services(True)
    robot.run(lambda: None)


def test_stop_cancels_the_group_and_waits_for_rest(rig: Rig, robot: FakeRobot) -> None:
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    stop_id = rig.start_goal('stop')
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    assert outcome(rig, stop_id) is GoalOutcome.SUCCEEDED
    assert rig.ended(stop_id).detail == 'rest not measured'


def test_stop_names_the_server_that_does_not_obey(rig: Rig, robot: FakeRobot) -> None:
    robot.knobs.obeys_cancel = False
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    stop_id = rig.start_goal('stop')
    assert outcome(rig, stop_id) is GoalOutcome.ABORTED
    assert 'arm/move' in rig.ended(stop_id).detail
    assert '1500 ms' in rig.ended(stop_id).detail
    robot.end(goal_id, 'canceled')
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED


def test_500_goals_leave_nothing_behind(rig: Rig, robot: FakeRobot) -> None:
    robot.knobs.ends_at_once = True
    for _ in range(500):
        goal_id = rig.start_goal()
        rig.ended(goal_id)
        rig.clear()
    eventually(lambda: rig.gateway.health()['held'] == 0, 'nothing is held')
    gateway = rig.gateway
    assert len(gateway.goals) == 0
    assert all(not c.outstanding for c in gateway._stopping._cancellers.values())
    eventually(lambda: len(gateway.goals_thread._heap) < 20, 'no deadlines pile up')


def test_f36_missing_server_is_not_sent_and_told_on_every_edge(rig: Rig, robot: FakeRobot) -> None:
    robot.stop_server()
    change = rig.wait(AvailabilityChanged, action_type='move', available=False)
    assert 'arm/move' in change.detail
    goal_id = rig.start_goal()
    assert outcome(rig, goal_id) is GoalOutcome.NOT_SENT
    assert 'arm/move' in rig.ended(goal_id).detail
    assert not rig.all(AvailabilityChanged, action_type='trigger')
    rig.clear()
    robot.run(robot.start_server)
    rig.wait(AvailabilityChanged, action_type='move', available=True)
    robot.knobs.ends_at_once = True
    assert outcome(rig, rig.start_goal()) is GoalOutcome.SUCCEEDED
