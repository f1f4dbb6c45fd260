"""Zeros, stop services and cancels of a node that stops robots, against real listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
import time
from typing import Any
import uuid

from control_msgs.msg import JointJog
from fakes import eventually, FakeRobot
from geometry_msgs.msg import Twist, TwistStamped
from lateness import Lateness
import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from ros_peer import RosPeer
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool
from test_msgs.action import Fibonacci

from awp_ros_bridge.config import CallService, PublishZeros
from awp_ros_bridge.ros.cancel_clients import cancelling, PROVE_NS
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stop_actuators import StepReport, StopActuators
from awp_ros_bridge.ros.stop_plan import Downstream, StopPlan

TWIST = 'geometry_msgs/msg/Twist'
TWIST_STAMPED = 'geometry_msgs/msg/TwistStamped'


def zeros(topic: str, kind: str, **more: Any) -> PublishZeros:
    settings = {'for_ms': 200, 'rate_hz': 100.0, **more}
    return PublishZeros(step='publish_zeros', topic=topic, type=kind, **settings)  # type: ignore[arg-type]


def call(service: str, **more: Any) -> CallService:
    settings = {'timeout_ms': 1000, **more}
    return CallService(step='call_service', service=service, **settings)  # type: ignore[arg-type]


@dataclass
class Stopper:
    """Actuators on a node and a thread of their own, and what they reported."""

    thread: RosThread
    actuators: StopActuators
    reports: list[StepReport]

    def begin(self) -> list[str]:
        """Begin the immediate steps and return their labels."""
        labels: list[list[str]] = []
        self.thread.post(lambda: labels.append(self.actuators.begin('arm', self.reports.append)))
        return eventually(lambda: labels, 'the steps begin')[0]  # type: ignore[no-any-return]

    def report(self, step: str) -> StepReport:
        """Wait for the report of a step."""

        def found() -> StepReport | None:
            return next((each for each in self.reports if each.step == step), None)

        return eventually(found, f'the report of {step}')  # type: ignore[no-any-return]


Make = Callable[..., Stopper]


@pytest.fixture
def make(ros_domain_id: int) -> Iterator[Make]:
    """Give a factory of stoppers; nothing of them may fail."""
    context = Context()
    quiet = SignalHandlerOptions.NO
    rclpy.init(context=context, domain_id=ros_domain_id, signal_handler_options=quiet)
    fatal: list[str] = []
    made_of: list[tuple[RosThread, Node]] = []

    def made(answer_ms: int = 1000, **plan: Any) -> Stopper:
        node = Node(f'stopper_{len(made_of)}', context=context)
        thread = RosThread('stopper', fatal.append)
        plans = {'arm': StopPlan(**plan)}
        actuators = StopActuators(node, thread, plans, answer_ns=answer_ms * 1_000_000)
        thread.start(node)
        made_of.append((thread, node))
        return Stopper(thread, actuators, [])

    yield made
    for thread, node in made_of:
        thread.stop(5.0)
        thread.close()
        node.destroy_node()
    context.try_shutdown()
    assert not fatal


@pytest.fixture
def robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        yield robot


def test_zeros_leave_at_once_at_the_rate_and_for_the_time(
    make: Make, peer: RosPeer, lateness: Lateness
) -> None:
    heard = peer.listen(TwistStamped, 'cmd_vel', 100)
    step = zeros('cmd_vel', TWIST_STAMPED, frame_id='base_link', for_ms=300, rate_hz=50.0)
    stopper = make(zeros=(step,))
    peer.wait_until(lambda: not stopper.actuators.missing('arm'), what='a match')
    began_ns, stamped_ns = time.monotonic_ns(), time.time_ns()
    assert stopper.begin() == ['publish_zeros cmd_vel']
    peer.wait_until(lambda: heard.messages, what='the first zero')
    peer.wait_until(lambda: stopper.reports, what='the report')
    report = stopper.reports[0]
    assert report.ok
    assert 'in 300 ms' in report.detail
    sent = int(report.detail.split()[0])
    peer.wait_until(lambda: len(heard.messages) >= sent, what='every zero')
    peer.turn_for(0.1)
    assert len(heard.messages) == sent
    first_s, last_s = (heard.arrivals_s[at] - began_ns * 1e-9 for at in (0, -1))
    lost_s = lateness.since(began_ns) * 1e-9
    assert first_s < 0.1 + lost_s
    assert 0.2 < last_s < 0.4 + lost_s
    assert 10 - lost_s * 50.0 <= sent <= 16
    for message in heard.messages:
        assert message.header.frame_id == 'base_link'
        assert message.twist == Twist()
        stamp_ns = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        assert stamped_ns <= stamp_ns <= time.time_ns()
    stamps = [(m.header.stamp.sec, m.header.stamp.nanosec) for m in heard.messages]
    assert len(set(stamps)) == len(stamps)  # a driver drops what is stamped long ago
    heard.close()


def test_zeros_have_the_shape_of_their_type(make: Make, peer: RosPeer) -> None:
    arrays = peer.listen(Float64MultiArray, 'velocities', 10)
    jogs = peer.listen(JointJog, 'jog', 10)
    twists = peer.listen(Twist, 'twist', 10)
    stopper = make(
        zeros=(
            zeros('velocities', 'std_msgs/msg/Float64MultiArray', size=6),
            zeros('jog', 'control_msgs/msg/JointJog', joints=('a', 'b'), frame_id='base'),
            zeros('twist', TWIST),
        )
    )
    peer.wait_until(lambda: not stopper.actuators.missing('arm'), what='a match')
    stopper.begin()
    peer.wait_until(lambda: len(stopper.reports) == 3, what='the reports')
    assert all(report.ok for report in stopper.reports)
    assert list(arrays.newest.data) == [0.0] * 6
    assert list(jogs.newest.joint_names) == ['a', 'b']
    assert list(jogs.newest.velocities) == [0.0, 0.0]
    assert jogs.newest.header.frame_id == 'base'
    assert twists.newest == Twist()
    for each in (arrays, jogs, twists):
        each.close()


def test_a_stop_on_top_of_another_has_its_own_time(
    make: Make, peer: RosPeer, lateness: Lateness
) -> None:
    heard = peer.listen(Twist, 'cmd_vel', 100)
    stopper = make(zeros=(zeros('cmd_vel', TWIST, for_ms=300),))
    peer.wait_until(lambda: not stopper.actuators.missing('arm'), what='a match')
    stopper.begin()
    peer.turn_for(0.15)
    again_ns = time.monotonic_ns()
    stopper.begin()
    peer.wait_until(lambda: len(stopper.reports) == 2, what='both reports')
    peer.turn_for(0.1)
    last_s = heard.arrivals_s[-1] - again_ns * 1e-9
    assert 0.25 < last_s < 0.45 + lateness.since(again_ns) * 1e-9
    heard.close()


def test_zeros_that_nobody_hears_are_reported(make: Make) -> None:
    stopper = make(zeros=(zeros('unheard', TWIST),))
    assert stopper.actuators.missing('arm') == ['nobody listens on unheard']
    stopper.begin()
    report = stopper.report('publish_zeros unheard')
    assert not report.ok
    assert 'nobody listens on unheard' in report.detail


def test_f112_zeros_of_another_type_than_the_listener_are_named(make: Make, peer: RosPeer) -> None:
    heard = peer.listen(TwistStamped, 'cmd_vel_stamped', 10)
    stopper = make(zeros=(zeros('cmd_vel_stamped', TWIST),))

    def is_named() -> bool:
        return stopper.actuators.missing('arm') == [
            f'cmd_vel_stamped is {TWIST_STAMPED} there, the configuration says {TWIST}'
        ]

    peer.wait_until(is_named, what='the other type in the graph')
    heard.close()


def test_a_type_that_is_not_installed_harms_its_own_step_only(make: Make, peer: RosPeer) -> None:
    heard = peer.listen(Twist, 'cmd_vel', 10)
    foreign = zeros('foreign', TWIST).model_copy(update={'type': 'no_such_msgs/msg/Foo'})
    stopper = make(zeros=(foreign, zeros('cmd_vel', TWIST)))
    peer.wait_until(lambda: len(stopper.actuators.missing('arm')) == 1, what='a match')
    stopper.begin()
    broken = stopper.report('publish_zeros foreign')
    assert not broken.ok
    assert 'no_such_msgs' in broken.detail
    assert stopper.report('publish_zeros cmd_vel').ok
    heard.close()


def test_stop_services_answer_yes_no_or_too_late(make: Make, robot: FakeRobot) -> None:
    asked: list[bool] = []

    def refuse(request: Any, response: Any) -> Any:
        asked.append(request.data)
        response.success, response.message = False, 'brake is hot'
        return response

    robot.node.create_service(SetBool, 'arm/brake', refuse)
    brake = call('arm/brake', type='std_srvs/srv/SetBool', data=True)
    stopper = make(calls=(call('arm/trigger'), brake, call('arm/nowhere', timeout_ms=300)))
    eventually(lambda: len(stopper.actuators.missing('arm')) == 1, 'two services are there')
    began_ns = time.monotonic_ns()
    stopper.begin()
    done = stopper.report('call_service arm/trigger')
    assert (done.ok, done.detail) == (True, 'done: done')
    refused = stopper.report('call_service arm/brake')
    assert (refused.ok, refused.detail) == (False, 'it answered no: brake is hot')
    assert asked == [True]
    missing = stopper.report('call_service arm/nowhere')
    assert not missing.ok
    assert missing.detail == 'no answer within 300 ms, service arm/nowhere is not available'
    assert time.monotonic_ns() - began_ns > 290e6
    robot.answer_services(False)
    stopper.reports.clear()
    stopper.begin()
    assert stopper.report('call_service arm/trigger').detail == 'no answer within 1000 ms'
    eventually(lambda: len(stopper.reports) == 3, 'each reports once')


def test_cancels_reach_goals_of_anybody_by_id_or_all(
    make: Make, robot: FakeRobot, peer: RosPeer
) -> None:
    stopper = make(servers=('plan',), downstream={'plan': Downstream(('arm/move',), 100_000_000)})
    assert set(stopper.actuators.cancels.servers) == {'plan', 'arm/move'}
    cancels = stopper.actuators.cancels
    peer.wait_until(lambda: cancels.is_ready('arm/move'), what='a match')
    first, second, third = (
        peer.send_goal(Fibonacci, 'arm/move', Fibonacci.Goal(order=3)) for _ in range(3)
    )
    answers: list[Any] = []
    late: list[str] = []

    def ask(method: Any, *arguments: Any) -> None:
        stopper.thread.post(method, *arguments, answers.append, lambda: late.append('late'))

    ask(cancels.cancel, 'arm/move', bytes(first.handle.goal_id.uuid))
    peer.wait_until(lambda: first.is_over and answers, what='the end of the first')
    assert cancelling(answers[0]) == 1
    assert not second.is_over
    ask(cancels.cancel, 'arm/move', uuid.uuid4().bytes)
    peer.wait_until(lambda: len(answers) == 2, what='an answer')
    assert cancelling(answers[1]) == 0
    ask(cancels.cancel_all, 'arm/move')
    peer.wait_until(lambda: len(answers) == 3, what='an answer')
    assert cancelling(answers[2]) == 2
    peer.wait_until(lambda: second.is_over and third.is_over, what='the end of the others')
    assert not late
    fourth = peer.send_goal(Fibonacci, 'arm/move', Fibonacci.Goal(order=3))
    robot.knobs.cancel_s = 1.5  # longer than the bound
    ask(cancels.cancel_all, 'arm/move')
    peer.wait_until(lambda: late, what='the bound')
    assert len(answers) == 3
    peer.wait_until(lambda: len(answers) == 4, what='the late answer')
    assert cancelling(answers[3]) == 1
    assert late == ['late']
    assert cancels.outstanding == 0
    peer.wait_until(lambda: fourth.is_over, what='its end')


def test_a_server_is_reached_only_once_it_has_answered(
    make: Make, peer: RosPeer, ros_domain_id: int
) -> None:
    """The graph shows a server that has not met the client yet: a cancel would be lost."""
    with FakeRobot(ros_domain_id, action='arm/other') as other:
        other.freeze()
        cancels = make(servers=('arm/other',)).actuators.cancels
        client = cancels._clients['arm/other']
        peer.wait_until(client.service_is_ready, what='the graph')
        peer.turn_for(3 * PROVE_NS * 1e-9)
        assert not cancels.is_ready('arm/other')
        other.thaw()
        peer.wait_until(lambda: cancels.is_ready('arm/other'), what='the proof')
        assert not other.seen.cancels
        peer.wait_until(lambda: cancels.outstanding == 0, what='every answer')
        other.stop_server()
        peer.wait_until(lambda: not cancels._proven, what='the end of the server')
        other.start_server()
        peer.wait_until(lambda: cancels.is_ready('arm/other'), what='a new proof')
