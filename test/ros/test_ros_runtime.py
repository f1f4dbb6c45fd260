"""The threads, the nodes, the lifecycle, the dead-man timer, reset and status."""

from __future__ import annotations

from collections.abc import Iterator
import threading
import time

from fakes import eventually, FakeRobot
from gateway_rig import config, outcome, Rig, running
from lateness import Lateness
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
import pytest
import rclpy
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from ros_peer import RosPeer
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from awp_ros_bridge.engine.effects import ReportEmbodiment, ResetWorld
from awp_ros_bridge.engine.inputs import (
    Activated,
    Deactivated,
    GoalAccepted,
    GoalOutcome,
    Meaning,
    ResetFinished,
    SafetyChanged,
)
from awp_ros_bridge.ros.beat import NAME as LOOP
from awp_ros_bridge.ros.node import remap_rules
from awp_ros_bridge.ros.runtime import RosThread


@pytest.fixture
def robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        yield robot


@pytest.fixture
def spun(ros_domain_id: int) -> Iterator[tuple[RosThread, list[str]]]:
    """Give a thread that spins an empty node, and what it reported as fatal."""
    context = Context()
    rclpy.init(
        context=context,
        domain_id=ros_domain_id,
        signal_handler_options=SignalHandlerOptions.NO,
    )
    node = Node('spun', context=context)
    fatal: list[str] = []
    thread = RosThread('test', fatal.append)
    thread.start(node)
    yield thread, fatal
    thread.stop(5.0)
    thread.close()
    node.destroy_node()
    context.try_shutdown()


Spun = tuple[RosThread, list[str]]


def test_posted_work_runs_in_order_on_the_thread(spun: Spun) -> None:
    thread, _ = spun
    seen: list[int] = []
    names: set[str] = set()

    def note(number: int) -> None:
        seen.append(number)
        names.add(threading.current_thread().name)

    for number in range(1000):
        thread.post(note, number)
    eventually(lambda: len(seen) == 1000, 'all ran')
    assert seen == list(range(1000))
    assert names == {'ros-test'}


def test_deadlines_run_on_time_in_order_and_can_be_cancelled(spun: Spun) -> None:
    thread, _ = spun
    ran: list[tuple[str, int]] = []
    started_ns = time.monotonic_ns()

    def arm() -> None:
        thread.call_later(60_000_000, lambda: ran.append(('late', time.monotonic_ns())))
        thread.call_later(20_000_000, lambda: ran.append(('early', time.monotonic_ns())))
        thread.call_later(30_000_000, lambda: ran.append(('never', 0))).cancel()

    thread.post(arm)
    eventually(lambda: len(ran) == 2, 'both ran')
    assert [name for name, _ in ran] == ['early', 'late']
    assert ran[0][1] - started_ns >= 20e6
    assert ran[1][1] - started_ns >= 60e6


def test_an_exception_is_reported_once_and_the_thread_lives_on(spun: Spun) -> None:
    thread, fatal = spun

    def fails() -> None:
        raise ValueError('a bug')

    thread.post(fails)
    thread.post(fails)
    ran = threading.Event()
    thread.post(ran.set)
    assert ran.wait(5.0)
    assert fatal == ['thread test: ValueError: a bug']
    assert thread.is_alive


def test_an_idle_thread_costs_next_to_nothing(spun: Spun) -> None:
    thread, _ = spun
    clocks: list[int] = []
    thread.post(lambda: clocks.append(time.pthread_getcpuclockid(threading.get_ident())))
    eventually(lambda: clocks, 'the thread runs')
    before_s, started_s = time.clock_gettime(clocks[0]), time.monotonic()
    threading.Event().wait(1.0)
    used = (time.clock_gettime(clocks[0]) - before_s) / (time.monotonic() - started_s)
    assert used < 0.05  # an executor that spins idle takes all of a core that it gets


@pytest.mark.parametrize('thread', ['safety_thread', 'goals_thread', 'observations_thread'])
def test_f71_a_failing_thread_stops_the_robot(robot: FakeRobot, thread: str) -> None:
    rig = Rig(config())
    rig.gateway.start()
    try:
        rig.ready()
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)

        def fails() -> None:
            raise RuntimeError('broken')

        getattr(rig.gateway, thread).post(fails)
        eventually(lambda: robot.seen.cancelled(goal_id) == 1, 'the goal is cancelled')
        eventually(lambda: rig.fatal, 'it is reported')
        assert 'broken' in rig.fatal[0]
        change = rig.wait(SafetyChanged, input_name='bridge:threads', engaged=True)
        assert change.meaning is Meaning.FAULT
        assert not rig.gateway.gate.is_open('arm')
        assert rig.gateway.health()['fatal'] == rig.fatal[0]
    finally:
        rig.gateway.stop(2.0)


def test_f73_a_context_shut_down_elsewhere_is_fatal() -> None:
    rig = Rig(config())
    rig.gateway.start()
    try:
        rig.wait(Activated)
        rig.gateway.node.context.shutdown()
        eventually(lambda: rig.fatal, 'it is reported')
        assert not rig.gateway.gate.is_open('arm')
    finally:
        rig.gateway.stop(2.0)


# ---------------------------------------------------------------- nodes and names


def test_nodes_follow_namespace_and_remapping_but_not_the_name(
    peer: RosPeer, ros_domain_id: int
) -> None:
    arguments = (
        'bridge', '--ros-args', '-r', '__ns:=/cell', '-r', '__node:=special',
        '-r', 'arm/move:=robot/act', '-p', 'autostart:=true',
    )  # fmt: skip
    with (
        FakeRobot(ros_domain_id, action='robot/act', namespace='/cell') as robot,
        running(config(), arguments) as rig,
    ):
        rig.ready()
        names = {
            (namespace, name)
            for name, namespace in peer.node.get_node_names_and_namespaces()
            if namespace == '/cell'
        }
        expected = {'special', 'special_safety', 'special_observations'}
        assert {name for _, name in names} >= expected
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
        rig.behaved(rig.behave())  # the safety thread's cancel goes to the same server
        assert outcome(rig, goal_id) is GoalOutcome.CANCELED
        assert robot.seen.cancelled(goal_id) == 1


def test_remap_rules_leave_out_the_node_itself() -> None:
    arguments = [
        'a:=no', '--ros-args', '-r', '__node:=x', '--remap', 'b:=c', '-r', 'other:d:=e',
        '-r', 'bridge:f:=g', '-r', '__ns:=/n', '-p', 'q:=1', '--', '-r', 'h:=i',
    ]  # fmt: skip
    assert list(remap_rules(arguments, {'bridge'})) == ['b:=c', 'f:=g']


# ---------------------------------------------------------------- lifecycle


def change(peer: RosPeer, transition: int) -> bool:
    request = ChangeState.Request(transition=Transition(id=transition))
    return bool(peer.call(ChangeState, '/awp_ros_bridge/change_state', request).success)


def test_deactivation_stops_and_activation_permits(peer: RosPeer, robot: FakeRobot) -> None:
    with running(config()) as rig:
        rig.ready()
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
        epoch = rig.gateway.gate.epoch
        assert change(peer, Transition.TRANSITION_DEACTIVATE)
        rig.wait(Deactivated)
        assert outcome(rig, goal_id) is GoalOutcome.CANCELED
        assert outcome(rig, rig.start_goal()) is GoalOutcome.NOT_SENT
        rig.clear()
        assert change(peer, Transition.TRANSITION_ACTIVATE)
        rig.wait(Activated)
        assert outcome(rig, rig.start_goal(epoch=epoch)) is GoalOutcome.NOT_SENT
        robot.knobs.ends_at_once = True
        assert outcome(rig, rig.start_goal()) is GoalOutcome.SUCCEEDED


def test_without_autostart_the_gate_stays_shut(peer: RosPeer, robot: FakeRobot) -> None:
    arguments = ('bridge', '--ros-args', '-p', 'autostart:=false')
    with running(config(), arguments) as rig:
        assert outcome(rig, rig.start_goal()) is GoalOutcome.NOT_SENT
        assert not rig.all(Activated)
        assert change(peer, Transition.TRANSITION_CONFIGURE)
        assert change(peer, Transition.TRANSITION_ACTIVATE)
        rig.ready()


def test_stop_cancels_what_runs_and_waits(robot: FakeRobot) -> None:
    rig = Rig(config())
    rig.gateway.start()
    rig.ready()
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    assert rig.gateway.stop(3.0)
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    assert robot.seen.cancelled(goal_id) == 1


# ---------------------------------------------------------------- the dead-man timer


def test_a_silent_loop_stops_the_robot_within_the_lease(
    robot: FakeRobot, lateness: Lateness
) -> None:
    with running(config()) as rig:
        rig.ready()
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
        for _ in range(50):
            rig.gateway.beat(time.monotonic_ns())
            time.sleep(0.01)  # far below the lease: this thread may be kept waiting
        assert not rig.all(SafetyChanged, input_name=LOOP)
        last_ns = time.monotonic_ns()
        rig.gateway.beat(last_ns)
        eventually(lambda: robot.seen.cancelled(goal_id), 'the goal is cancelled')
        took_ns = robot.seen.cancels[0][1] - last_ns
        assert 250e6 <= took_ns < 350e6 + lateness.since(last_ns)
        assert rig.wait(SafetyChanged, input_name=LOOP, engaged=True)
        rig.ended(goal_id)
        stop = threading.Event()

        def turn() -> None:
            while not stop.wait(0.05):
                rig.gateway.beat(time.monotonic_ns())

        loop = threading.Thread(target=turn)
        loop.start()
        try:
            rig.wait(SafetyChanged, input_name=LOOP, engaged=False)
        finally:
            stop.set()
            loop.join()


# ---------------------------------------------------------------- status and reset


def test_status_is_repeated_with_a_deadline(
    peer: RosPeer, robot: FakeRobot, lateness: Lateness
) -> None:
    qos = QoSProfile(depth=10, deadline=Duration(nanoseconds=250_000_000))
    with running(config()) as rig:
        rig.ready()
        permitted = peer.listen(Bool, '/awp_ros_bridge/arm/motion_permitted', qos)
        in_safe_state = peer.listen(Bool, '/awp_ros_bridge/arm/in_safe_state', qos)
        at_rest = peer.listen(Bool, '/awp_ros_bridge/arm/at_rest', qos)
        began_ns = time.monotonic_ns()
        peer.wait_until(lambda: len(permitted.messages) > 10, what='repetition')
        took_s = permitted.arrivals_s[10] - permitted.arrivals_s[0]
        assert took_s < 1.05 + lateness.since(began_ns) * 1e-9
        assert permitted.newest.data
        assert in_safe_state.wait_next().data  # nothing was reported yet
        assert not at_rest.wait_next().data  # unmeasured
        rig.gateway.apply(ReportEmbodiment('arm', False, 's', None))
        peer.wait_until(lambda: not in_safe_state.newest.data, what='the report')
        rig.gateway.gate.shut('arm', 'test')
        peer.wait_until(lambda: not permitted.newest.data, what='the gate')
        for listener in (permitted, in_safe_state, at_rest):
            listener.close()
        status = rig.gateway._face._status
        eventually(lambda: not status._is_repeating, 'nothing is repeated for nobody')


RESET = {
    'simulation': {
        'initial_states': {'home': {'service': 'sim/reset', 'type': 'std_srvs/srv/Trigger'}}
    }
}


def test_reset_calls_the_service_of_the_state(robot: FakeRobot) -> None:
    def answer(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = True, 'at home'
        return response

    robot.run(lambda: robot.node.create_service(Trigger, 'sim/reset', answer))
    with running(config(more=RESET)) as rig:
        rig.ready()
        eventually(
            lambda: rig.gateway._reset._clients['home'].service_is_ready(), 'the service is there'
        )
        rig.gateway.apply(ResetWorld('home'))
        finished = rig.wait(ResetFinished)
        assert finished.ok
        assert 'at home' in finished.detail


def test_reset_without_its_service_says_so(robot: FakeRobot) -> None:
    with running(config(more=RESET)) as rig:
        rig.gateway.apply(ResetWorld('home'))
        finished = rig.wait(ResetFinished)
        assert not finished.ok
        assert 'sim/reset is not available' in finished.detail
        rig.clear()
        rig.gateway.apply(ResetWorld('mars'))
        assert "no service reaches 'mars'" in rig.wait(ResetFinished).detail
