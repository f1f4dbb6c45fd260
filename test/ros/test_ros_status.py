"""What ROS sees of an embodiment: three values and every reason, repeated and on a change."""

from __future__ import annotations

from collections.abc import Iterator
import time

from diagnostic_msgs.msg import DiagnosticStatus
from fakes import FakeRobot
from gateway_rig import config, E_STOP, IMPATIENT, MEASURED, Rig, running
from lateness import Lateness
import pytest
from rclpy.duration import Duration
from rclpy.qos import QoSProfile
from ros_peer import Listener, RosPeer
from speakers import SafetyTopic
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from awp_ros_bridge.engine.effects import ReportEmbodiment
from awp_ros_bridge.engine.inputs import GoalAccepted

SAFETY = '/awp_ros_bridge/arm/safety'


@pytest.fixture
def robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        robot.publish_joints(100)
        yield robot


@pytest.fixture
def button(ros_domain_id: int) -> Iterator[SafetyTopic]:
    with SafetyTopic(ros_domain_id, 'safety/e_stop', latched=True) as topic:
        topic.say(False)
        topic.repeat(50)
        yield topic


@pytest.fixture
def rig(robot: FakeRobot, button: SafetyTopic) -> Iterator[Rig]:
    with running(config(at_rest={**MEASURED, **IMPATIENT}, safety_inputs=(E_STOP,))) as rig:
        rig.ready()
        yield rig


def values(heard: Listener) -> dict[str, str]:
    return {each.key: each.value for each in heard.newest.values} if heard.messages else {}


def await_value(peer: RosPeer, heard: Listener, key: str, value: str) -> None:
    """Wait until the account gives a key this value."""
    peer.wait_until(lambda: values(heard).get(key) == value, what=f'{key}: {value}')


def test_the_account_tells_values_and_reasons(
    rig: Rig, robot: FakeRobot, button: SafetyTopic, peer: RosPeer
) -> None:
    heard = peer.listen(DiagnosticStatus, SAFETY)
    rig.gateway.apply(ReportEmbodiment('arm', False, 'sess_1', None))
    all_is_well = {
        'motion_permitted': 'true', 'in_safe_state': 'false', 'at_rest': 'true',
        'session': 'sess_1', 'action': '',
    }  # fmt: skip
    peer.wait_until(lambda: values(heard) == all_is_well, what='rest and the report')
    assert heard.newest.level == DiagnosticStatus.OK
    assert heard.newest.message == 'motion permitted'
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    await_value(peer, heard, 'goals', '1 active: move on arm/move')
    button.say(True)
    await_value(peer, heard, 'e_stop', 'safety/e_stop.data is True')
    assert heard.newest.level == DiagnosticStatus.ERROR
    assert values(heard)['motion_permitted'] == 'false'
    assert heard.newest.message == 'motion forbidden: safety/e_stop.data is True'
    button.say(False)
    assert peer.call(Trigger, '/awp_ros_bridge/arm/stop').success
    peer.wait_until(lambda: 'operator' in values(heard), what='the operator')
    assert peer.call(Trigger, '/awp_ros_bridge/arm/clear').success
    robot.velocity = 0.3
    await_value(peer, heard, 'at_rest', 'false')
    robot.publish_joints(0)
    await_value(peer, heard, 'at_rest', 'unknown')
    peer.wait_until(
        lambda: 'silent for' in values(heard).get('joint_states:stale', ''), what='silence'
    )
    heard.close()


def test_what_the_engine_has_against_motion_is_a_warning(rig: Rig, peer: RosPeer) -> None:
    heard = peer.listen(DiagnosticStatus, SAFETY)
    why = (('watchdog', 'the agent sent no message for 2000 ms'),)
    rig.gateway.apply(ReportEmbodiment('arm', True, 'sess_1', None, why))
    await_value(peer, heard, 'watchdog', 'the agent sent no message for 2000 ms')
    peer.wait_until(lambda: heard.newest.level == DiagnosticStatus.WARN, what='WARN')
    assert values(heard)['watchdog'] == 'the agent sent no message for 2000 ms'
    assert values(heard)['in_safe_state'] == 'true'
    heard.close()


def test_the_account_is_repeated_ten_times_a_second_and_a_change_is_told_at_once(
    rig: Rig, button: SafetyTopic, peer: RosPeer, lateness: Lateness
) -> None:
    qos = QoSProfile(depth=10, deadline=Duration(seconds=0.2))
    heard = peer.listen(DiagnosticStatus, SAFETY, qos)
    permitted = peer.listen(Bool, '/awp_ros_bridge/arm/motion_permitted', qos)
    peer.wait_until(lambda: permitted.messages and permitted.newest.data, what='permission')
    heard.clear()
    began_ns = time.monotonic_ns()
    peer.wait_until(lambda: len(heard.messages) > 15, what='fifteen more')
    took_s = heard.arrivals_s[15] - heard.arrivals_s[0]
    assert took_s < 2.0 + lateness.since(began_ns) * 1e-9, 'about ten a second'
    tripped_ns = time.monotonic_ns()
    button.say(True)
    peer.wait_until(lambda: not permitted.newest.data, what='no permission')
    told_s = permitted.arrivals_s[-1] - tripped_ns * 1e-9
    assert told_s < 0.5 + lateness.since(tripped_ns) * 1e-9
    heard.close()
    permitted.close()
