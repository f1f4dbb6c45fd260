"""Clients that are slow, silent, gone or many: nobody else and no robot feels them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import os
from pathlib import Path
import signal
import time
from typing import Any

from agent import Agent
from agent_words import TERMINAL, to_pose
from bridge_cell import (
    AWAY_M,
    Cell,
    channel_id,
    HOME_M,
    may_move,
    open_when_free,
    patient_config,
    RobotTap,
    running_cell,
    set_moving,
    tapped,
    TcpProxy,
    under_way,
)
from lateness import Lateness
from patience import run, until
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE

Record = Any
HEARTBEAT_MS = 600
WINDOW_MS = 4000
SMALL_BYTES = 8192


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    folder = tmp_path_factory.mktemp('clients')
    session = {'heartbeat_interval_ms': HEARTBEAT_MS, 'reconnect_window_ms': WINDOW_MS}
    with running_cell(folder, patient_config(folder, {'session': session})) as started:
        run(started.warm_up())
        yield started


@pytest.fixture
def tap(peer: RosPeer, cell: Cell) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


async def delivered_share(agent: Agent, tap: RobotTap, span_s: float) -> float:
    """Return which part of the robot's joint states reached an agent in a while."""
    number = channel_id(agent, 'proprio')
    begins_ns = time.monotonic_ns()
    ends_ns = begins_ns + int(span_s * 1e9)
    await until(lambda: agent.frames and agent.frames[-1].at_ns > ends_ns, what='frames')
    frames = [
        f
        for f in agent.frames
        if f.params['channel_id'] == number and begins_ns <= f.at_ns <= ends_ns
    ]
    published = [s for s in tap.samples if begins_ns <= s.at_ns <= ends_ns]
    return len(frames) / len(published)


def test_a_client_that_stops_reading_slows_nobody_down_and_hears_control_first(
    cell: Cell, tap: RobotTap, record_testsuite_property: Record
) -> None:
    async def play() -> tuple[float, float]:
        async with cell.watching('proprio') as quick:
            alone = await delivered_share(quick, tap, 1.5)
            async with await cell.agent('stalled', receive_bytes=SMALL_BYTES) as stalled:
                channels = [{'channel': 'proprio'}, {'channel': 'arm_state'}]
                await open_when_free(stalled, 'arm_01', subscribe=channels)
                stalled.beat(0.2)
                await may_move(stalled)
                go = await set_moving(stalled, tap, max_velocity_mps=0.05)  # for 7.5 s
                await stalled.stop_reading()
                beside = await delivered_share(quick, tap, 1.5)
                assert tap.running(PRIMITIVE), 'the arm moves on'
                os.kill(cell.robot.pid, signal.SIGUSR1)
                await until(lambda: not tap.running(PRIMITIVE), what='the end of the goal')
                os.kill(cell.robot.pid, signal.SIGUSR2)
                read_ns = time.monotonic_ns()
                stalled.resume_reading()
                said = await stalled.status(go)
                assert (said['state'], said['reason']) == ('failed', 'e_stop')
                event = await stalled.event('e_stop_engaged')
                await stalled.settle()
                # What waited behind the stall: control messages before any fresh frame.
                first_fresh = next(f for f in stalled.frames if f.at_ns > event.at_ns)
                assert first_fresh.params['seq'] > stalled.frames[0].params['seq']
                late = [f for f in stalled.frames if read_ns < f.at_ns < event.at_ns]
                number = channel_id(stalled, 'proprio')
                proprio = [f for f in late if f.params['channel_id'] == number]
                assert len(proprio) < 40  # of the hundreds that were captured meanwhile
                await stalled.close()
            return alone, beside

    alone, beside = run(play())
    record_testsuite_property('bridge_share_alone', round(alone, 3))
    record_testsuite_property('bridge_share_beside_a_stalled_client', round(beside, 3))
    # The shares themselves are recorded; what came late is counted where it came.
    assert beside > 0.9 * min(alone, 1.0) > 0.5


def test_a_reset_connection_suspends_its_session_and_the_watchdog_stops_the_arm(
    cell: Cell, tap: RobotTap
) -> None:
    async def play() -> None:
        agent = await cell.agent()
        await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
        agent.beat(0.2)
        await may_move(agent)
        go = await set_moving(agent, tap, max_velocity_mps=0.05)
        await agent.reset()
        reset_ns = time.monotonic_ns()
        await until(lambda: tap.rested_ns(reset_ns), what='the arm at rest')
        await tap.caught_up()
        assert not tap.running(PRIMITIVE)
        async with await cell.agent() as late:
            busy = await late.refusal('session.open', mode='streaming', embodiment='arm_01')
            assert busy.code == 2001
            ready = await late.resume(agent)
            late.beat(0.2)
            assert ready['safe_state']
            said = await late.status(go)
            assert (said['state'], said['reason']) == ('failed', 'connection_lost')
            await late.event('safe_state_entered')
            await late.submit('on', 'move_to_pose', to_pose(*HOME_M))
            assert (await late.status('on'))['state'] == 'completed'
            await late.close()

    run(play())


def test_f64_and_f77_a_client_in_the_dark_is_reaped_and_resumes_with_an_ordered_replay(
    cell: Cell, tap: RobotTap, lateness: Lateness, record_testsuite_property: Record
) -> None:
    async def play() -> tuple[float, float]:
        async with TcpProxy(cell.bridge.url) as proxy:
            agent = await Agent.connect(proxy.url, cell.bridge.token)
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat(0.1)
            await may_move(agent)
            go = await under_way(agent, 'go', 'move_to_pose', to_pose(*AWAY_M))
            proxy.darken()
            dark_ns = time.monotonic_ns()
            lost = f'session={agent.ready["session_id"]} suspended (connection_lost)'
            await until(lambda: lost in cell.bridge.output, what='the end of the silent client')
            took_s = (time.monotonic_ns() - dark_ns) * 1e-9
            lost_ms = lateness.since(dark_ns) * 1e-6
            told = agent.status_seq
            async with await cell.agent() as late:
                ready = await late.resume(agent)
                late.beat(0.1)
                assert ready['replay_to_status_seq'] > told
                said = await late.status(go)
                assert said['state'] in TERMINAL
                await late.settle()
                # That they are in order and none comes twice, the agent judges itself.
                assert late.notifications[0].params['status_seq'] == told + 1
                resumed = [h for h in late.notifications if h.params.get('reason') == 'resumed']
                assert resumed[0].params['status_seq'] == ready['replay_to_status_seq'] + 1
                number = channel_id(late, 'arm_state')
                await until(
                    lambda: [f for f in late.frames if f.params['channel_id'] == number],
                    what='fresh frames',
                )
                await late.close()
            await agent.reset()
            return took_s, lost_ms

    took_s, lost_ms = run(play())
    record_testsuite_property('bridge_dark_client_reaped_s', round(took_s, 3))
    assert 2.0 * HEARTBEAT_MS < took_s * 1e3 < 3.0 * HEARTBEAT_MS + 1500.0 + lost_ms


def descriptors(pid: int) -> int:
    return len(list(Path(f'/proc/{pid}/fd').iterdir()))


def test_a_hundred_connections_that_come_and_go_leave_nothing_behind(
    cell: Cell, tap: RobotTap
) -> None:
    async def come_and_go(number: int) -> None:
        if number % 4 == 0:  # only a handshake
            await (await Agent.dial(cell.bridge.url, cell.bridge.token)).reset()
            return
        agent = await cell.agent(f'guest-{number}')
        if number % 2:
            await agent.open(None, subscribe=[{'channel': 'proprio'}])
        if number % 3:
            await agent.reset()
        else:
            await agent.close()
            await agent.drop()

    async def play() -> None:
        before = descriptors(cell.bridge.pid)
        async with cell.holding() as agent:
            await agent.submit('go', 'move_to_pose', to_pose(*AWAY_M))
            for first in range(0, 100, 10):
                await asyncio.gather(*(come_and_go(n) for n in range(first, first + 10)))
            said = await agent.status('go')
            assert said['state'] == 'completed', said
        await until(lambda: descriptors(cell.bridge.pid) <= before, what='closed sockets')

    run(play())
    assert cell.bridge.exit_status is None
    assert 'Traceback' not in cell.bridge.output
