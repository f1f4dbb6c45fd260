"""Rest from odometry and tf, joints of a group, and motion that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterator
import math
import time
from typing import Any

from fakes import eventually, FakeRobot
from gateway_rig import config, MEASURED, Rig, running
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
import pytest
from speakers import Speaker
from tf2_msgs.msg import TFMessage

from awp_ros_bridge.engine.inputs import (
    GoalAccepted,
    Meaning,
    RestChanged,
    SafetyChanged,
)

BOUNDS = {'max_linear_mps': 0.02, 'max_angular_radps': 0.05, 'for_ms': 50, 'stale_after_ms': 1000}
ODOMETRY = {'odometry': 'odom', **BOUNDS}
TF = {'tf': {'frame': 'base', 'reference': 'odom'}, **BOUNDS}


@pytest.fixture
def robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        yield robot


# ---------------------------------------------------------------- odometry


def odometry(linear: float = 0.0, angular: float = 0.0) -> Odometry:
    message = Odometry()
    message.twist.twist.linear.x = linear
    message.twist.twist.angular.z = angular
    return message


def test_f11_a_base_rests_by_its_odometry(robot: FakeRobot, ros_domain_id: int) -> None:
    with (
        Speaker(ros_domain_id, 'odom', Odometry, latched=False) as base,
        running(config(at_rest=ODOMETRY)) as rig,
    ):
        change = rig.wait(SafetyChanged, input_name='odom:stale', engaged=True)
        assert 'linear speed was not heard yet' in change.detail
        base.say(odometry())
        base.repeat(50)
        rig.ready()
        rig.wait(RestChanged, at_rest=True)
        for moving in (odometry(0.3), odometry(0.0, -0.2)):
            rig.clear()
            base.newest = moving
            rig.wait(RestChanged, at_rest=False)
            ticket = rig.await_rest()
            with pytest.raises(AssertionError):
                rig.rested(ticket, timeout_s=0.3)
            base.newest = odometry()
            assert rig.rested(ticket).measured
        rig.clear()
        base.newest = odometry(math.nan)
        change = rig.wait(SafetyChanged, input_name='odom:stale', engaged=True)
        assert change.detail == 'odom: linear speed: not finite'
        base.newest = odometry()
        rig.wait(SafetyChanged, input_name='odom:stale', engaged=False)
        rig.clear()
        base.repeat(0)
        change = rig.wait(SafetyChanged, input_name='odom:stale', engaged=True)
        assert 'silent for' in change.detail
        assert rig.gateway.joints('arm') is None


# ---------------------------------------------------------------- tf


class Mover(Speaker):
    """A frame that moves in odom at a speed, by its own clock."""

    def __init__(self, domain_id: int) -> None:
        super().__init__(domain_id, '/tf', TFMessage, latched=False)
        self.mps = 0.0
        self.x_m = 0.0
        self.is_frozen = False
        self._moved_s = time.monotonic()
        self._stamp: Any = None

    def next_message(self) -> TFMessage:
        now_s = time.monotonic()
        self.x_m += self.mps * (now_s - self._moved_s)
        self._moved_s = now_s
        if not self.is_frozen:
            self._stamp = self.node.get_clock().now().to_msg()
        moved = TransformStamped(child_frame_id='base')
        moved.header.frame_id, moved.header.stamp = 'odom', self._stamp
        moved.transform.translation.x = self.x_m
        moved.transform.rotation.w = 1.0
        return TFMessage(transforms=[moved])


def test_f56_a_body_rests_by_tf_and_frozen_stamps_are_silence(
    robot: FakeRobot, ros_domain_id: int
) -> None:
    with Mover(ros_domain_id) as body, running(config(at_rest=TF)) as rig:
        rig.wait(SafetyChanged, input_name='tf:stale', engaged=True)
        body.repeat(40)
        rig.ready()
        rig.wait(RestChanged, at_rest=True)
        rig.clear()
        body.mps = 0.3
        rig.wait(RestChanged, at_rest=False)
        ticket = rig.await_rest()
        with pytest.raises(AssertionError):
            rig.rested(ticket, timeout_s=0.3)
        body.mps = 0.0
        assert rig.rested(ticket).measured
        rig.clear()
        body.is_frozen = True
        change = rig.wait(SafetyChanged, input_name='tf:stale', engaged=True)
        assert 'silent for' in change.detail
        assert change.meaning is Meaning.NOT_READY


# ---------------------------------------------------------------- joints of a group


def test_an_end_waits_for_the_joints_of_its_group_alone(robot: FakeRobot) -> None:
    robot.publish_joints(100)
    robot.velocity = 0.3  # of j1
    with running(config(at_rest={**MEASURED, 'groups': {'arm': ['j2']}})) as rig:
        rig.wait(RestChanged, at_rest=False)
        assert rig.rested(rig.await_rest()).measured
    with running(config(at_rest={**MEASURED, 'groups': {'arm': ['j1']}})) as rig:
        rig.wait(RestChanged, at_rest=False)
        with pytest.raises(AssertionError):
            rig.rested(rig.await_rest(), timeout_s=0.3)


# ---------------------------------------------------------------- motion that nobody asked for


def watching(reaction: str) -> dict[str, Any]:
    return {**MEASURED, 'unexpected_motion': reaction, 'unexpected_after_ms': 200}


def resting(rig: Rig) -> None:
    rig.ready()
    eventually(lambda: rig.gateway.rest.at_rest('arm'), 'the arm rests')
    rig.clear()


def test_unexpected_motion_is_reported(
    robot: FakeRobot, caplog: pytest.LogCaptureFixture
) -> None:
    robot.publish_joints(100)
    with running(config(at_rest=watching('report'))) as rig:
        resting(rig)
        robot.velocity = 0.3
        change = rig.wait(SafetyChanged, input_name='unexpected_motion', engaged=True)
        assert change.meaning is Meaning.DEGRADED
        assert 'joint j1 moves with 0.3 (limit 0.01)' in change.detail
        assert 'while no action runs' in change.detail
        eventually(lambda: 'arm moves unexpectedly' in caplog.text, 'the line of the log')
        assert rig.gateway.gate.is_open('arm')
        assert rig.gateway.rest.unexpected('arm') == change.detail
        robot.velocity = 0.0
        rig.wait(SafetyChanged, input_name='unexpected_motion', engaged=False)


def test_unexpected_motion_forbids_motion_where_configured(robot: FakeRobot) -> None:
    robot.publish_joints(100)
    with running(config(at_rest=watching('stop'))) as rig:
        resting(rig)
        robot.velocity = 0.3
        change = rig.wait(SafetyChanged, input_name='unexpected_motion', engaged=True)
        assert change.meaning is Meaning.FAULT
        assert not rig.gateway.gate.is_open('arm')
        robot.velocity = 0.0
        rig.wait(SafetyChanged, input_name='unexpected_motion', engaged=False)
        eventually(lambda: rig.gateway.gate.is_open('arm'), 'the gate is open')


def test_motion_of_an_action_and_what_coasts_after_it_is_expected(robot: FakeRobot) -> None:
    robot.publish_joints(100)
    with running(config(at_rest=watching('stop'))) as rig:
        resting(rig)
        goal_id = rig.start_goal()
        rig.wait(GoalAccepted, goal_id=goal_id)
        robot.velocity = 0.3
        with pytest.raises(AssertionError):
            rig.wait(SafetyChanged, timeout_s=0.5, input_name='unexpected_motion')
        robot.end(goal_id, 'succeed')
        rig.ended(goal_id)
        with pytest.raises(AssertionError):
            rig.wait(SafetyChanged, timeout_s=0.5, input_name='unexpected_motion')
        robot.velocity = 0.0
        eventually(lambda: rig.gateway.rest.at_rest('arm'), 'the arm rests')
        robot.velocity = 0.3
        rig.wait(SafetyChanged, input_name='unexpected_motion', engaged=True)
