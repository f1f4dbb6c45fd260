"""Ready-made safety inputs against real publishers: latched, per item, missing, not installed."""

from __future__ import annotations

from collections.abc import Iterator
import logging
import math
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from fakes import eventually, FakeRobot
from gateway_rig import config, outcome, PATIENT_MS, Rig, running, UNMEASURED
import pytest
from sensor_msgs.msg import BatteryState, JointState
from speakers import Speaker
from std_msgs.msg import Bool, Int8

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.engine.inputs import GoalOutcome, Meaning, SafetyChanged

STALE_S = 1.0  # the threads that speak here may be kept waiting for longer than a robot's
STALE = {'stale_after_ms': round(STALE_S * 1e3)}
UR = (
    {'kind': 'ur_safety_mode', 'name': 'safety', 'topic': 'ur/safety', 'field': 'data',
     'type': 'std_msgs/msg/Int8', **STALE},
    {'kind': 'ur_robot_mode', 'name': 'mode', 'topic': 'ur/mode', 'field': 'data',
     'type': 'std_msgs/msg/Int8', **STALE},
    {'kind': 'ur_program_running', 'name': 'program', 'topic': 'ur/program', **STALE},
)  # fmt: skip


@pytest.fixture
def robot(ros_domain_id: int) -> Iterator[FakeRobot]:
    with FakeRobot(ros_domain_id) as robot:
        yield robot


def permitted(rig: Rig) -> bool:
    return rig.gateway.gate.is_open('arm')


def test_f87_a_ur_moves_when_its_modes_and_its_program_say_so(
    robot: FakeRobot, ros_domain_id: int
) -> None:
    robot.publish_joints(50)
    with (
        Speaker(ros_domain_id, 'ur/safety', Int8) as safety,
        Speaker(ros_domain_id, 'ur/mode', Int8) as mode,
        Speaker(ros_domain_id, 'ur/program', Bool) as program,
    ):
        # each speaks once, before anybody listens
        safety.say(Int8(data=1))
        mode.say(Int8(data=7))
        program.say(Bool(data=False))
        with running(config(safety_inputs=UR)) as rig:
            change = rig.wait(SafetyChanged, input_name='program', engaged=True)
            assert (change.meaning, change.detail) == (
                Meaning.NOT_READY, 'ur/program.data is False',
            )  # fmt: skip
            eventually(lambda: list(rig.gateway.gate.causes('arm')) == ['program'])
            goal_id = rig.start_goal()
            assert outcome(rig, goal_id) is GoalOutcome.NOT_SENT
            assert 'program: ur/program.data is False' in rig.ended(goal_id).detail
            program.say(Bool(data=True))
            rig.ready()
            for value, meaning in (
                (5, Meaning.PROTECTIVE_STOP), (7, Meaning.E_STOP), (9, Meaning.FAULT),
                (99, Meaning.FAULT),
            ):  # fmt: skip
                rig.clear()
                safety.say(Int8(data=value))
                rig.wait(SafetyChanged, input_name='safety', engaged=True, meaning=meaning)
                assert not permitted(rig)
                safety.say(Int8(data=1))
                rig.wait(SafetyChanged, input_name='safety', engaged=False)
            eventually(lambda: permitted(rig), 'the gate opens')
            # silent publishers are vouched for by joint_states, dead ones until those end
            for each in (safety, mode, program):
                each.kill()
            with pytest.raises(AssertionError):
                rig.wait(
                    SafetyChanged, timeout_s=STALE_S + 0.3, engaged=True, input_name='mode:stale'
                )
            robot.publish_joints(0)
            change = rig.wait(SafetyChanged, input_name='mode:stale', engaged=True)
            assert 'joint_states, companion of ur/mode, silent for' in change.detail


def test_a_mode_that_gets_worse_says_so(robot: FakeRobot, ros_domain_id: int) -> None:
    robot.publish_joints(50)
    with (
        Speaker(ros_domain_id, 'ur/safety', Int8) as safety,
        running(config(safety_inputs=UR[:1])) as rig,
    ):
        safety.say(Int8(data=1))
        rig.ready()
        safety.say(Int8(data=3))
        rig.wait(SafetyChanged, input_name='safety', meaning=Meaning.PROTECTIVE_STOP)
        safety.say(Int8(data=6))
        rig.wait(SafetyChanged, input_name='safety', meaning=Meaning.E_STOP, engaged=True)
        assert not permitted(rig)


def array(**levels: bytes) -> DiagnosticArray:
    return DiagnosticArray(
        status=[DiagnosticStatus(name=name, level=level) for name, level in levels.items()]
    )


def test_diagnostics_are_judged_item_by_item(robot: FakeRobot, ros_domain_id: int) -> None:
    form = {
        'kind': 'diagnostics', 'topic': 'diagnostics', 'items': ['arm', 'hand'],
        **STALE,
    }  # fmt: skip
    with (
        Speaker(ros_domain_id, 'diagnostics', DiagnosticArray, latched=False) as arm,
        Speaker(ros_domain_id, 'diagnostics', DiagnosticArray, latched=False) as hand,
        running(config(safety_inputs=(form,))) as rig,
    ):
        arm.say(array(arm=DiagnosticStatus.OK))
        arm.repeat()
        change = rig.wait(SafetyChanged, input_name='diagnostics:stale', engaged=True)
        assert 'was not heard yet' in change.detail
        time.sleep(0.1)
        assert not permitted(rig), 'one of two items is missing'
        hand.say(array(hand=DiagnosticStatus.WARN))
        hand.repeat()
        rig.ready()
        for level in (DiagnosticStatus.ERROR, DiagnosticStatus.STALE, b'\x09'):
            rig.clear()
            hand.newest = array(hand=level)
            change = rig.wait(SafetyChanged, input_name='diagnostics', engaged=True)
            assert change.meaning is Meaning.FAULT
            assert change.detail == f'diagnostics.status[name=hand].level is {level[0]}'
            hand.newest = array(hand=DiagnosticStatus.OK)
            rig.wait(SafetyChanged, input_name='diagnostics', engaged=False)
        eventually(lambda: permitted(rig), 'the gate opens')
        rig.clear()
        hand.newest = array(other=DiagnosticStatus.OK)
        change = rig.wait(SafetyChanged, input_name='diagnostics:stale', engaged=True)
        assert 'diagnostics[hand] silent for' in change.detail


def test_controllers_must_be_active(robot: FakeRobot, ros_domain_id: int) -> None:
    form = {
        'kind': 'controller_state', 'topic': 'activity', 'controllers': ['arm_controller'],
        'type': 'diagnostic_msgs/msg/DiagnosticArray', 'list': 'status', 'field': 'message',
    }  # fmt: skip

    def state(name: str, label: str) -> DiagnosticArray:
        return DiagnosticArray(status=[DiagnosticStatus(name=name, message=label)])

    robot.publish_joints(50)
    with Speaker(ros_domain_id, 'activity', DiagnosticArray) as manager:
        manager.say(state('arm_controller', 'active'))
        with running(config(safety_inputs=(form,))) as rig:
            rig.ready()
            for worse in (state('arm_controller', 'inactive'), state('other', 'active')):
                rig.clear()
                manager.say(worse)
                change = rig.wait(SafetyChanged, input_name='activity', engaged=True)
                assert 'status[name=arm_controller].message' in change.detail
                manager.say(state('arm_controller', 'active'))
                rig.wait(SafetyChanged, input_name='activity', engaged=False)


def test_an_empty_battery_forbids_motion(robot: FakeRobot, ros_domain_id: int) -> None:
    form = {'kind': 'battery', 'min_percentage': 0.2}
    with (
        Speaker(ros_domain_id, 'battery_state', BatteryState, latched=False) as battery,
        running(config(safety_inputs=(form,))) as rig,
    ):
        battery.say(BatteryState(percentage=0.5))
        battery.repeat()
        rig.ready()
        for charge in (0.1, math.nan):
            rig.clear()
            battery.newest = BatteryState(percentage=charge)
            change = rig.wait(SafetyChanged, input_name='battery_state', engaged=True)
            assert change.meaning is Meaning.NOT_READY
            battery.newest = BatteryState(percentage=0.5)
            rig.wait(SafetyChanged, input_name='battery_state', engaged=False)


def test_f45_joint_states_without_numbers_forbid_motion_and_nan_efforts_do_not(
    robot: FakeRobot, ros_domain_id: int
) -> None:
    form = {'kind': 'joint_states', 'topic': 'joints', 'joints': ['j1'], **STALE}

    def sample(**arrays: Any) -> JointState:
        fields = {'position': [0.0], 'velocity': [0.0], 'effort': [math.nan]}
        return JointState(name=['j1'], **(fields | arrays))

    with (
        Speaker(ros_domain_id, 'joints', JointState, latched=False) as joints,
        running(config(safety_inputs=(form,))) as rig,
    ):
        joints.say(sample())
        joints.repeat()
        rig.ready()
        joints.newest = sample(velocity=[math.nan])
        change = rig.wait(SafetyChanged, input_name='joints', engaged=True)
        assert change.detail == 'joints.velocity[j1] is nan'
        joints.newest = sample()
        rig.wait(SafetyChanged, input_name='joints', engaged=False)
        rig.clear()
        joints.repeat(0)
        change = rig.wait(SafetyChanged, input_name='joints:stale', engaged=True)
        assert 'joints[j1] silent for' in change.detail


def test_a_type_that_is_not_installed_is_one_error_and_unsafe(
    robot: FakeRobot, caplog: pytest.LogCaptureFixture
) -> None:
    with running(config(safety_inputs=({'kind': 'ur_robot_mode', 'name': 'mode'},))) as rig:
        change = rig.wait(SafetyChanged, input_name='mode:stale', engaged=True)
        assert "package 'ur_dashboard_msgs' is neither installed nor sourced" in change.detail
        assert not permitted(rig)
        said = [r.levelno for r in caplog.records if 'safety input mode' in r.getMessage()]
        assert said == [logging.ERROR]
        assert 'safety input mode cannot be heard' in caplog.text


# ---------------------------------------------------------------- flicker


@pytest.mark.parametrize('latched', [True, False], ids=['latched', 'best effort'])
def test_a_flicker_reaches_the_engine_though_the_thread_was_busy(
    robot: FakeRobot, ros_domain_id: int, latched: bool
) -> None:
    form = {'kind': 'bool', 'topic': 'flicker', 'stale_after_ms': 5000}
    with (
        Speaker(ros_domain_id, 'flicker', Bool, latched=latched) as button,
        running(config(safety_inputs=(form,))) as rig,
    ):
        button.say(Bool(data=False))
        button.repeat()  # best effort: what is said before the readers are known is lost
        rig.ready()
        button.repeat(0)
        rig.clear()
        before = rig.gateway.gate.epoch
        if not latched:  # one that keeps one message cannot tell a second one to a busy reader
            rig.gateway.safety_thread.post(time.sleep, 0.3)
        button.publisher.publish(Bool(data=True))
        if latched:
            rig.wait(SafetyChanged, input_name='flicker', engaged=True)
        button.publisher.publish(Bool(data=False))
        rig.wait(SafetyChanged, input_name='flicker', engaged=True)
        rig.wait(SafetyChanged, input_name='flicker', engaged=False)
        assert rig.gateway.gate.epoch > before


# ---------------------------------------------------------------- the world


def two_bodies() -> BridgeConfig:
    inputs = [{'kind': 'bool', 'topic': 'safety/cell', 'means': 'protective_stop',
               'stale_after_ms': PATIENT_MS}]  # fmt: skip
    base = config().model_dump(by_alias=True, exclude_unset=True)
    hand = {'kind': 'gripper', 'actions': ['stop'], 'at_rest': UNMEASURED}
    base['embodiments'] = {'arm': base['embodiments']['arm'], 'hand': hand}
    return BridgeConfig.model_validate({**base, 'safety': {'inputs': inputs}})


def test_an_input_of_the_world_stops_every_embodiment_with_news_for_each(
    robot: FakeRobot, ros_domain_id: int
) -> None:
    with (
        Speaker(ros_domain_id, 'safety/cell', Bool, latched=False) as door,
        running(two_bodies()) as rig,
    ):
        door.say(Bool(data=False))
        door.repeat()
        rig.ready()
        eventually(lambda: rig.gateway.gate.is_open('hand'), 'the gate of the hand')
        rig.clear()
        door.newest = Bool(data=True)
        for name in ('arm', 'hand'):
            change = rig.wait(SafetyChanged, embodiment=name, engaged=True)
            assert change.meaning is Meaning.PROTECTIVE_STOP
            assert not rig.gateway.gate.is_open(name)
        door.newest = Bool(data=False)
        for name in ('arm', 'hand'):
            rig.wait(SafetyChanged, embodiment=name, engaged=False)
        assert len(rig.all(SafetyChanged, engaged=True)) == 2
