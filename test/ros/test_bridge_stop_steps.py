"""Stops of a running bridge with every kind of step, seen from agents and from the robot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import time
from typing import Any

from agent_words import to_pose
from bridge_cell import AWAY_M, Cell, config_with, may_move, RobotTap, running_cell
from geometry_msgs.msg import TwistStamped
from patience import run, until
import pytest
from ros_peer import Listener, RosPeer, stamp_ns
from sim_robot_goals import HOME, reset, set_fault, TRAJECTORY

from awp_ros_bridge.sim_robot.description import ARM_JOINTS

Record = Any
WATCHDOG_MS = 2000
ABORT_MS = 1500
STEPS = [
    'cancel_goals',
    {
        'step': 'publish_zeros',
        'topic': 'cmd_vel',
        'type': 'geometry_msgs/msg/TwistStamped',
        'frame_id': 'base',
        'for_ms': 300,
        'rate_hz': 50.0,
    },
    {'step': 'call_service', 'service': 'sim/stop'},
    'wait_at_rest',
]


@pytest.fixture(scope='module')
def zeros(peer: RosPeer) -> Iterator[Listener]:
    """Listen on the setpoint topic: without a listener the arm must not move."""
    heard = peer.listen(TwistStamped, 'cmd_vel', 100)
    yield heard
    heard.close()


@pytest.fixture(scope='module')
def cell(
    ros: None, zeros: Listener, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cell]:
    folder = tmp_path_factory.mktemp('stop_steps')
    sections: dict[str, dict[str, Any]] = {
        'embodiments.arm_01': {'stop_steps': STEPS, 'multi_bind_group': 'cell'},
        'embodiments.gripper_01': {'multi_bind_group': 'cell'},
    }
    with running_cell(folder, config_with(folder, sections)) as started:
        run(started.warm_up())
        yield started


@pytest.fixture
def tap(peer: RosPeer, cell: Cell, zeros: Listener) -> Iterator[RobotTap]:
    reset(peer)
    zeros.clear()
    with RobotTap() as opened:
        peer.wait_until(lambda: opened.samples, 5.0, 'joint states')
        yield opened
    reset(peer)


def turn(duration_ms: int, by_rad: float = 0.5) -> dict[str, Any]:
    """Return a trajectory that turns the last joint."""
    point = {
        'positions_rad': [*HOME[:-1], HOME[-1] + by_rad],
        'time_from_start_ms': duration_ms,
    }
    return {'joint_names': list(ARM_JOINTS), 'points': [point]}


def test_f11_a_close_is_answered_when_a_slow_brake_has_brought_the_arm_to_rest(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    set_fault(peer, 'slow_stop=3')

    async def play() -> None:
        async with cell.holding() as agent:
            await agent.submit('go', 'move_to_pose', to_pose(*AWAY_M))
            await until(lambda: tap.speed_radps > 0.3, what='the arm at speed')
            asked_ns = time.monotonic_ns()
            await agent.call('session.close')
            assert (await agent.status('go'))['state'] == 'cancelled'
            rested_ns = tap.rested_ns(asked_ns)
            assert rested_ns is not None
            assert not tap.is_moving

    run(play())


def test_f100_zeros_follow_the_silence_of_an_agent(
    cell: Cell, tap: RobotTap, peer: RosPeer, zeros: Listener, record_testsuite_property: Record
) -> None:
    silent_ns: list[int] = []

    async def play() -> None:
        async with await cell.agent() as agent:
            await agent.open(subscribe=[{'channel': 'arm_state'}])
            await agent.call('ping', origin_ns=1)
            await may_move(agent)
            await agent.submit('go', 'follow_joint_trajectory', turn(20_000))
            silent_ns.append(time.monotonic_ns())
            said = await agent.status('go')
            assert (said['state'], said['reason']) == ('failed', 'connection_lost')
            await agent.event('safe_state_entered')
            await agent.call('session.close')

    run(play())
    peer.wait_until(lambda: len(zeros.messages) > 5, 5.0, 'zeros')
    assert all(message.twist == TwistStamped().twist for message in zeros.messages)
    assert zeros.messages[0].header.frame_id == 'base'
    offset_ns = time.time_ns() - time.monotonic_ns()
    first_ns = stamp_ns(zeros.messages[0].header.stamp) - offset_ns
    took_ms = (first_ns - silent_ns[0]) * 1e-6
    record_testsuite_property('f100_silence_to_zero_ms', round(took_ms, 1))
    assert WATCHDOG_MS - 50 <= took_ms <= WATCHDOG_MS + 100


def test_a_stop_service_stops_an_arm_that_ignores_cancels(
    cell: Cell, tap: RobotTap, peer: RosPeer, record_testsuite_property: Record
) -> None:
    async def play() -> float:
        async with cell.holding() as agent:
            await agent.submit('go', 'follow_joint_trajectory', turn(20_000))
            await until(lambda: tap.running(TRAJECTORY), what='the goal')
            await asyncio.to_thread(set_fault, peer, 'ignore_cancel')
            asked_ns = time.monotonic_ns()
            await agent.call('session.close')
            took_ms = (time.monotonic_ns() - asked_ns) * 1e-6
            said = await agent.status('go')
            assert (said['state'], said['reason']) == ('failed', 'abort_failed')
            assert f'its goal on {TRAJECTORY} did not end' in said['detail']
            assert tap.rested_ns(asked_ns) is not None
            assert not tap.running(TRAJECTORY)
            return took_ms

    took_ms = run(play())
    record_testsuite_property('close_with_a_deaf_server_ms', round(took_ms, 1))
    assert ABORT_MS <= took_ms < 2 * ABORT_MS + 1500
