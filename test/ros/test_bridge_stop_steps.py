"""Stops of a running bridge with every kind of step, seen from agents and from the robot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import os
import signal
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import (
    as_soon_as_possible,
    AWAY_M,
    Cell,
    HOME_M,
    may_move,
    open_when_free,
    patient_config,
    RobotTap,
    running_cell,
    set_moving,
    SLOWLY,
    tapped,
)
from geometry_msgs.msg import TwistStamped
from lateness import Lateness
from patience import run, until
import pytest
from ros_peer import Listener, RosPeer, stamp_ns
from sim_robot_goals import GRIPPER, HOME, PRIMITIVE, set_fault, TRAJECTORY

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
        'safety': {'watchdog_ms': WATCHDOG_MS},
        'embodiments.arm_01': {'stop_steps': STEPS, 'multi_bind_group': 'cell'},
        'embodiments.gripper_01': {'multi_bind_group': 'cell'},
    }
    with running_cell(folder, patient_config(folder, sections)) as started:
        run(started.warm_up())
        yield started


@pytest.fixture
def tap(peer: RosPeer, cell: Cell, zeros: Listener) -> Iterator[RobotTap]:
    zeros.clear()
    with tapped(peer) as opened:
        yield opened


def turn(duration_ms: int, by_rad: float = 0.5) -> dict[str, Any]:
    """Return a trajectory that turns the last joint."""
    point = {
        'positions_rad': [*HOME[:-1], HOME[-1] + by_rad],
        'time_from_start_ms': duration_ms,
    }
    return {'joint_names': list(ARM_JOINTS), 'points': [point]}


async def holding_both(cell: Cell) -> Agent:
    """Return an agent that holds the arm and the gripper in one session."""
    agent = await cell.agent()
    channels = [{'channel': 'arm_state'}, {'channel': 'gripper_state'}]
    both = ['arm_01', 'gripper_01']
    await as_soon_as_possible(lambda: agent.open(None, embodiments=both, subscribe=channels))
    agent.beat(0.2)
    await may_move(agent)
    return agent


def test_f11_a_close_is_answered_when_a_slow_brake_has_brought_the_arm_to_rest(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    set_fault(peer, 'slow_stop=3')

    async def play() -> None:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap, at_speed=True)
            asked_ns = time.monotonic_ns()
            await agent.call('session.close')
            assert (await agent.status(go))['state'] == 'cancelled'
            await tap.caught_up()
            assert tap.rested_ns(asked_ns) is not None
            assert tap.is_at_rest

    run(play())


@pytest.mark.parametrize('how', ['silent', 'cut'])
def test_f100_zeros_follow_the_silence_of_an_agent(
    cell: Cell,
    tap: RobotTap,
    peer: RosPeer,
    zeros: Listener,
    lateness: Lateness,
    how: str,
    record_testsuite_property: Record,
) -> None:
    asked_ns: list[int] = []
    silent_ns: list[int] = []

    async def play() -> None:
        async with await cell.agent() as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            await agent.call('ping', origin_ns=1)
            await may_move(agent)
            asked_ns.append(time.monotonic_ns())
            await agent.submit('go', 'follow_joint_trajectory', turn(20_000))
            silent_ns.append(time.monotonic_ns())
            if how == 'cut':
                await until(lambda: tap.running(TRAJECTORY), what='the goal')
                await agent.reset()
                await until(lambda: not tap.running(TRAJECTORY), what='the end of the goal')
                async with await cell.agent() as late:
                    await late.resume(agent)
                    await closed(late)
            else:
                await closed(agent)

    async def closed(agent: Agent) -> None:
        said = await agent.status('go')
        assert (said['state'], said['reason']) == ('failed', 'connection_lost')
        await agent.event('safe_state_entered')
        await agent.call('session.close')

    run(play())
    offset_ns = time.time_ns() - time.monotonic_ns()

    def since() -> list[Any]:  # before, others may have had their zeros
        begun_ns = silent_ns[0] + offset_ns
        return [m for m in zeros.messages if stamp_ns(m.header.stamp) >= begun_ns]

    peer.wait_until(lambda: len(since()) > 5, 20.0, 'zeros')
    assert all(message.twist == TwistStamped().twist for message in zeros.messages)
    first = since()[0]
    assert first.header.frame_id == 'base'
    took_ms = (stamp_ns(first.header.stamp) - offset_ns - silent_ns[0]) * 1e-6
    record_testsuite_property(f'f100_{how}_to_zero_ms', round(took_ms, 1))
    # The last word of the agent came somewhere between its question and the answer.
    least_ms = took_ms + (silent_ns[0] - asked_ns[0]) * 1e-6
    assert least_ms >= WATCHDOG_MS
    assert took_ms <= WATCHDOG_MS + 100 + lateness.since(silent_ns[0]) * 1e-6


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
            await tap.caught_up()
            assert tap.rested_ns(asked_ns) is not None
            assert not tap.running(TRAJECTORY)
            return took_ms

    took_ms = run(play())
    record_testsuite_property('close_with_a_deaf_server_ms', round(took_ms, 1))
    assert ABORT_MS <= took_ms < 2 * ABORT_MS + 1500


def test_a_gripper_that_ignores_cancels_is_named_and_holds_the_arm_up_no_longer_than_its_bound(
    cell: Cell,
    tap: RobotTap,
    peer: RosPeer,
    lateness: Lateness,
    record_testsuite_property: Record,
) -> None:
    async def play() -> tuple[float, float, float]:
        async with await holding_both(cell) as agent:
            slow = {'position_m': 0.0, 'max_velocity_mps': 0.004}
            body = {'embodiment_id': 'gripper_01'}
            await agent.submit('grip', 'gripper_move', slow, **body)
            body = {'embodiment_id': 'arm_01'}
            await agent.submit('go', 'move_to_pose', to_pose(*AWAY_M, **SLOWLY), **body)
            await until(lambda: tap.is_moving and tap.running(GRIPPER), what='motion')
            await asyncio.to_thread(set_fault, peer, 'gripper_ignore_cancel')
            asked_ns = time.monotonic_ns()
            first = asyncio.create_task(agent.call('session.close'))
            second = asyncio.create_task(agent.call('session.close'))
            arm = await agent.status('go')
            arm_ms = (time.monotonic_ns() - asked_ns) * 1e-6
            assert (arm['state'], arm['reason']) == ('cancelled', 'session_closed')
            assert not first.done()
            grip = await agent.status('grip')
            assert (grip['state'], grip['reason']) == ('failed', 'abort_failed')
            assert f'its goal on {GRIPPER} did not end within max_abort_ms' in grip['detail']
            assert await first == {}
            took_ms = (time.monotonic_ns() - asked_ns) * 1e-6
            await agent.settle()  # it answers what it was asked before this
            assert second.done()  # answered together
            assert await second == {}
            return arm_ms, took_ms, lateness.since(asked_ns) * 1e-6

    arm_ms, took_ms, lost_ms = run(play())
    record_testsuite_property('close_arm_beside_a_deaf_gripper_ms', round(arm_ms, 1))
    record_testsuite_property('close_with_a_deaf_gripper_ms', round(took_ms, 1))
    assert arm_ms < took_ms
    assert took_ms < 2 * ABORT_MS + 700 + lost_ms


def test_f20_a_body_that_did_not_come_to_rest_stays_unavailable_until_it_did(
    cell: Cell, tap: RobotTap, peer: RosPeer
) -> None:
    async def play() -> None:
        async with await cell.agent() as agent:
            channels = [{'channel': 'gripper_state'}]
            await open_when_free(agent, 'gripper_01', subscribe=channels)
            agent.beat(0.2)
            await may_move(agent)
            slow = {'position_m': 0.0, 'max_velocity_mps': 0.004}
            await agent.submit('grip', 'gripper_move', slow)
            await until(lambda: tap.running(GRIPPER), what='the goal')
            await asyncio.to_thread(set_fault, peer, 'gripper_ignore_cancel')
            await agent.call('session.close')
            assert (await agent.status('grip'))['reason'] == 'abort_failed'
        async with await cell.agent() as late:
            refused = await late.refusal('session.open', mode='streaming', embodiment='gripper_01')
            assert (refused.code, refused.is_retryable) == (2001, True)
            assert 'was not measured at rest' in refused.detail
        async with cell.holding() as other:  # the arm is not affected
            await other.submit('go', 'move_to_pose', to_pose(*HOME_M))
            assert (await other.status('go'))['state'] == 'completed'
        await asyncio.to_thread(set_fault, peer, '')  # the goal ends where it went
        async with cell.holding('gripper_01') as again:
            await again.submit('grip', 'gripper_move', {'position_m': 0.04})
            assert (await again.status('grip'))['state'] == 'completed'

    run(play())


def test_f99_an_e_stop_mid_motion_sends_zeros_and_calls_the_service(
    cell: Cell, tap: RobotTap, peer: RosPeer, zeros: Listener
) -> None:
    begun = len(cell.bridge.output)

    async def play() -> None:
        async with cell.holding() as agent:
            go = await set_moving(agent, tap)
            os.kill(cell.robot.pid, signal.SIGUSR1)
            tripped_ns = time.monotonic_ns()
            assert (await agent.status(go))['reason'] == 'e_stop'
            await agent.event('e_stop_engaged')
            await until(lambda: tap.rested_ns(tripped_ns), what='the arm at rest')
            await tap.caught_up()
            assert not tap.running(PRIMITIVE)
            os.kill(cell.robot.pid, signal.SIGUSR2)
            await agent.event('e_stop_released')

    run(play())
    peer.wait_until(lambda: len(zeros.messages) > 5, 20.0, 'zeros')
    for text in ('safe state: reached: ', 'call_service sim/stop: done: braking'):
        peer.wait_until(lambda text=text: text in cell.bridge.output[begun:], what=text)  # type: ignore[misc]
