"""The watch over executed motion in the gateway, against real publishers (AWP-ENV-003)."""

from __future__ import annotations

from collections.abc import Iterator
import math
import threading
import time
from typing import Any

from fakes import eventually, FakeRobot
from gateway_rig import config, IMPATIENT, MEASURED, outcome, PATIENT_MS, Rig, running
from geometry_msgs.msg import TransformStamped
from lateness import Lateness
from nav_msgs.msg import Odometry
import pytest
from tf2_msgs.msg import TFMessage

from awp_ros_bridge.engine.inputs import (
    EnvelopeViolated,
    GoalAccepted,
    GoalOutcome,
    Meaning,
    SafetyChanged,
)

# a server of rclpy that is asked for a goal it does not know warns through a deprecated call
pytestmark = pytest.mark.filterwarnings('ignore:Deprecated in favor:DeprecationWarning')

SPATIAL, SPEED = 'envelope:spatial', 'envelope:max_velocity_mps'
BOX = {'frame': 'odom', 'aabb_m': [[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]]}
FRAMES = {'frames': {'root': 'odom', 'include': {'base': 'base_link'}}}


class Base:
    """Publishes odometry and tf of a base at 100 Hz."""

    def __init__(self, robot: FakeRobot, rate_hz: float = 100.0) -> None:
        self.x_m, self.vx_mps = 0.0, 0.0
        self.speaks = True
        self._robot = robot
        self._odometry = robot.node.create_publisher(Odometry, 'odom', 10)
        self._tf = robot.node.create_publisher(TFMessage, '/tf', 10)
        self._period_s = 1.0 / rate_hz
        self._thread = threading.Thread(target=self._pace, daemon=True)
        self._is_over = False
        self._thread.start()

    def end(self) -> None:
        self._is_over = True
        self._thread.join()

    def _pace(self) -> None:
        while not self._is_over:
            if self.speaks:
                self._publish()
            time.sleep(self._period_s)

    def _publish(self) -> None:
        stamp = self._robot.node.get_clock().now().to_msg()
        message = Odometry()
        message.header.stamp, message.header.frame_id = stamp, 'odom'
        message.pose.pose.position.x = self.x_m
        message.twist.twist.linear.x = self.vx_mps
        self._odometry.publish(message)
        transform = TransformStamped(child_frame_id='base_link')
        transform.header.stamp, transform.header.frame_id = stamp, 'odom'
        transform.transform.translation.x = self.x_m
        self._tf.publish(TFMessage(transforms=[transform]))


@pytest.fixture
def robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        robot.publish_joints(100)
        yield robot


@pytest.fixture
def base(robot: FakeRobot) -> Iterator[Base]:
    base = Base(robot)
    yield base
    base.end()


def limited(source: dict[str, Any], **changes: Any) -> Any:
    """Return a configuration whose motion is measured by a source."""
    measured = {'spatial_margin_m': 0.01, 'stale_after_ms': PATIENT_MS, **source}
    envelope = {'spatial': BOX, 'max_velocity_mps': 0.5, 'enforcement': 'measured', **changes}
    return config(at_rest=MEASURED, envelope={**envelope, 'measured': measured}, more=FRAMES)


@pytest.fixture
def rig(base: Base) -> Iterator[Rig]:
    with running(limited({'source': 'odometry'})) as rig:
        rig.ready()
        rig.clear()
        yield rig


@pytest.fixture
def impatient(base: Base) -> Iterator[Rig]:
    """Measure likewise, where silence is soon too long."""
    with running(limited({'source': 'odometry', **IMPATIENT})) as rig:
        rig.ready()
        rig.clear()
        yield rig


def moving(rig: Rig) -> str:
    """Start a goal and wait until a server has it."""
    goal_id = rig.start_goal()
    rig.wait(GoalAccepted, goal_id=goal_id)
    return goal_id


def is_open(rig: Rig) -> None:
    eventually(lambda: rig.gateway.gate.is_open('arm'), 'the gate is open')


def test_a_base_that_leaves_the_box_is_stopped_before_anybody_is_asked(
    rig: Rig, base: Base, robot: FakeRobot, lateness: Lateness
) -> None:
    robot.velocity = 0.3
    goal_id, epoch = moving(rig), rig.gateway.gate.epoch
    left_ns = time.monotonic_ns()
    base.x_m = 1.03
    fact, at_ns = rig.wait_timed(EnvelopeViolated)
    assert (fact.embodiment, fact.limit, fact.unit) == ('arm', 'spatial', 'm')
    assert (fact.measured, fact.bound, fact.tolerance) == (0.03, 0.0, 0.01)
    assert fact.epoch == epoch + 1
    assert '(1.030, 0.000, 0.000)' in fact.detail
    assert at_ns - left_ns < 150e6 + lateness.since(left_ns)
    assert not rig.gateway.gate.is_open('arm')
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    refused = rig.start_goal()
    assert outcome(rig, refused) is GoalOutcome.NOT_SENT
    assert 'envelope:spatial' in rig.ended(refused).detail


def test_motion_is_permitted_again_from_rest_and_only_inward(
    rig: Rig, base: Base, robot: FakeRobot
) -> None:
    robot.velocity = 0.3
    base.x_m = 1.2
    rig.wait(EnvelopeViolated)
    with pytest.raises(AssertionError):
        rig.wait(SafetyChanged, timeout_s=0.4, input_name=SPATIAL, engaged=False)
    robot.velocity = 0.0
    said = rig.wait(SafetyChanged, input_name=SPATIAL, engaged=False)
    assert said.detail == 'at rest beyond it; it may move back'
    assert said.meaning is Meaning.FAULT
    is_open(rig)
    rig.clear()
    base.x_m = 1.1  # on the way back
    eventually(lambda: rig.gateway.limits.report('arm')['spatial']['allowed'] < 0.12, 'the way')
    assert not rig.all(EnvelopeViolated)
    base.x_m = 1.15
    assert rig.wait(EnvelopeViolated).tolerance == pytest.approx(0.11)
    base.x_m = 0.5
    said = rig.wait(SafetyChanged, input_name=SPATIAL, engaged=False)
    assert said.detail == 'at rest within it'
    within = {'measured': 0.0, 'allowed': 0.01, 'violated': False}
    eventually(lambda: rig.gateway.limits.report('arm')['spatial'] == within, 'all is well')


def test_a_base_that_is_too_fast_is_stopped(rig: Rig, base: Base) -> None:
    goal_id = moving(rig)
    base.vx_mps = 0.54
    eventually(
        lambda: rig.gateway.limits.report('arm')['max_velocity_mps']['measured'] == 0.54,
        'the speed is measured',
    )
    assert not rig.all(EnvelopeViolated)
    base.vx_mps = -0.56
    fact = rig.wait(EnvelopeViolated)
    assert (fact.limit, fact.measured, fact.bound) == ('max_velocity_mps', 0.56, 0.5)
    assert fact.tolerance == pytest.approx(0.05)
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    base.vx_mps = 0.0
    rig.wait(SafetyChanged, input_name=SPEED, engaged=False)


def test_both_limits_are_told_and_each_is_released(rig: Rig, base: Base) -> None:
    base.x_m, base.vx_mps = 1.5, 0.9
    rig.wait(EnvelopeViolated, limit='spatial')
    rig.wait(EnvelopeViolated, limit='max_velocity_mps')
    base.x_m, base.vx_mps = 0.0, 0.0
    rig.wait(SafetyChanged, input_name=SPATIAL, engaged=False)
    rig.wait(SafetyChanged, input_name=SPEED, engaged=False)
    is_open(rig)


def test_silence_of_the_source_forbids_motion_and_is_no_violation(
    impatient: Rig, base: Base
) -> None:
    rig = impatient
    goal_id = moving(rig)
    base.speaks = False
    said = rig.wait(SafetyChanged, input_name='odom:limits', engaged=True)
    assert said.meaning is Meaning.NOT_READY
    assert 'odom silent for' in said.detail
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    assert not rig.all(EnvelopeViolated)
    base.speaks = True
    rig.wait(SafetyChanged, input_name='odom:limits', engaged=False)
    is_open(rig)


@pytest.mark.parametrize('bad', [math.nan, math.inf])
@pytest.mark.parametrize('field', ['x_m', 'vx_mps'])
def test_numbers_that_are_not_finite_forbid_motion(
    rig: Rig, base: Base, field: str, bad: float
) -> None:
    goal_id = moving(rig)
    setattr(base, field, bad)
    said = rig.wait(SafetyChanged, input_name='odom:limits', engaged=True)
    assert said.meaning is Meaning.NOT_READY
    assert 'not finite' in said.detail
    assert outcome(rig, goal_id) is GoalOutcome.CANCELED
    setattr(base, field, 0.0)
    rig.wait(SafetyChanged, input_name='odom:limits', engaged=False)


def test_a_source_that_was_never_heard_forbids_motion(robot: FakeRobot) -> None:
    with running(limited({'source': 'odometry'})) as rig:
        said = rig.wait(SafetyChanged, input_name='odom:limits', engaged=True)
        assert said.detail == 'odom was not heard yet'
        assert not rig.gateway.gate.is_open('arm')


def test_a_violation_while_the_source_falls_silent_is_released_after_both(
    impatient: Rig, base: Base, robot: FakeRobot
) -> None:
    rig = impatient
    robot.velocity = 0.3
    base.x_m = 1.2
    rig.wait(EnvelopeViolated)
    base.speaks = False
    rig.wait(SafetyChanged, input_name='odom:limits', engaged=True)
    robot.velocity = 0.0
    with pytest.raises(AssertionError):  # at rest, but nobody knows where
        rig.wait(SafetyChanged, timeout_s=0.4, input_name=SPATIAL, engaged=False)
    base.speaks = True
    rig.wait(SafetyChanged, input_name=SPATIAL, engaged=False)
    is_open(rig)


def test_tf_measures_place_and_speed(base: Base) -> None:
    with running(limited({'source': 'tf', 'tip': 'base', 'stale_after_ms': 1000})) as rig:
        rig.ready()
        base.x_m = 0.9  # a jump is a speed
        fact = rig.wait(EnvelopeViolated)
        assert fact.limit == 'max_velocity_mps'
        assert fact.measured > 0.55
        rig.wait(SafetyChanged, input_name=SPEED, engaged=False)
        is_open(rig)
        base.x_m = 1.5
        fact = rig.wait(EnvelopeViolated, limit='spatial')
        assert fact.measured == pytest.approx(0.5)
        rig.wait(SafetyChanged, input_name=SPATIAL, engaged=False)
        rig.clear()
        base.speaks = False
        said = rig.wait(SafetyChanged, input_name='tf of base:limits', engaged=True)
        assert 'silent for' in said.detail


def test_without_measured_rest_the_settle_time_counts(base: Base) -> None:
    made = limited({'source': 'odometry'}).model_dump(exclude_none=True, by_alias=True)
    made['embodiments']['arm']['at_rest'] = {'unmeasured': True, 'settle_ms': 200}
    with running(type(config()).model_validate(made)) as rig:
        rig.ready()
        base.x_m = 1.2
        _, at_ns = rig.wait_timed(EnvelopeViolated)
        _, released_ns = rig.wait_timed(SafetyChanged, input_name=SPATIAL, engaged=False)
        assert released_ns - at_ns >= 190e6
