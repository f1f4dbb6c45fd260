"""Where sessions stand, asked of a real bridge while a robot moves: answers, storms, restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
import time
from typing import Any

from agent import Agent
from agent_words import Refused, to_pose
from bridge_cell import (
    AWAY_M,
    Cell,
    HOME_M,
    open_when_free,
    patient_config,
    RobotTap,
    running_cell,
    set_moving,
    SLOWLY,
    tapped,
)
from lateness import Lateness
from patience import run, until, WAIT_S
from processes import BridgeProcess
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE

Json = dict[str, Any]
Record = Any

WINDOW_MS = 3000
WATCHDOG_MS = 2000
RATE_HZ = 1000
UNKNOWN = 'unknown'


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    folder = tmp_path_factory.mktemp('status')
    session = {'reconnect_window_ms': WINDOW_MS}
    safety, server = {'watchdog_ms': WATCHDOG_MS}, {'max_message_rate_hz': RATE_HZ}
    config = patient_config(folder, {'session': session, 'safety': safety, 'server': server})
    with running_cell(folder, config) as started:
        run(started.warm_up())
        yield started


@pytest.fixture
def tap(cell: Cell, peer: RosPeer) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


async def until_told(asker: Agent, session_id: str, wanted: str, timeout_s: float) -> None:
    ends_s = time.monotonic() + timeout_s
    while (told := await asker.where(session_id)) != wanted:
        assert time.monotonic() < ends_s, f'{told}, not {wanted}, after {timeout_s} s'
        await asyncio.sleep(0.02)


def log_of(cell: Cell, session_id: str) -> bytes:
    return b''.join(p.read_bytes() for p in cell.bridge.audit.glob(f'*{session_id}*'))


def test_it_is_advertised(cell: Cell) -> None:
    async def play() -> None:
        async with await cell.agent() as agent:
            assert agent.manifest['capabilities']['x-acp.session'] == {'status': {}}

    run(play())


def test_a_session_of_a_moving_robot_through_all_it_can_be(cell: Cell, tap: RobotTap) -> None:
    async def play() -> None:
        async with await cell.agent('asker') as asker, cell.holding() as agent:
            session_id = str(agent.ready['session_id'])
            assert await asker.where(session_id) == 'idle'
            await agent.submit('go', 'move_to_pose', to_pose(*AWAY_M, max_velocity_mps=0.2))
            assert await asker.where(session_id) == 'running'
            await until(lambda: tap.is_moving, what='the arm moving')
            assert await asker.where(session_id) == 'running'
            assert (await agent.status('go'))['state'] == 'completed'
            assert await asker.where(session_id) == 'idle'
            await agent.submit('back', 'move_to_pose', to_pose(*HOME_M, **SLOWLY))
            await until(lambda: tap.is_moving, what='the arm moving')
            closing = await agent.ask('session.close', {})
            assert await asker.where(session_id) == 'running'
            assert await agent.answer(closing) == {}
            assert await asker.where(session_id) == UNKNOWN
            assert await agent.where(session_id) == UNKNOWN
        for _ in range(3):
            async with await cell.agent() as other:
                assert await other.where(session_id) == UNKNOWN

    run(play())


def test_a_lost_session_is_inactive_then_gone_and_its_log_stays_as_it_was(
    cell: Cell, tap: RobotTap
) -> None:
    async def play() -> None:
        async with await cell.agent('asker') as asker:
            agent = await cell.agent()
            await open_when_free(agent, 'arm_01')
            session_id = str(agent.ready['session_id'])
            await agent.reset()
            await until_told(asker, session_id, 'inactive', WAIT_S)
            await until(
                lambda: b'safe_state_entered' in log_of(cell, session_id), what='the watchdog'
            )
            before = log_of(cell, session_id)
            for _ in range(200):
                if await asker.where(session_id) != 'inactive':
                    break
            after = log_of(cell, session_id)
            assert after == before or b'window_expired' in after
            assert b'session/status' not in after
            await until_told(asker, session_id, UNKNOWN, WINDOW_MS * 1e-3 + WAIT_S)
            refused = await asker.refusal(
                'session.resume',
                session_token=agent.ready['session_token'],
                last_status_seq=0,
            )
            assert refused.code == 2003

    run(play())


def test_a_replaced_connection_and_a_holder_that_gave_the_arm_away(
    cell: Cell, tap: RobotTap
) -> None:
    async def play() -> None:
        async with await cell.agent('asker') as asker, cell.holding() as giver:
            session_id = str(giver.ready['session_id'])
            token = (await giver.call('session.transfer'))['transfer_token']
            async with await cell.agent('taker') as taker:
                await taker.open(takeover=True, transfer_token=token)
                taker.beat(0.2)
                assert await asker.where(session_id) == 'idle'
                await taker.submit('go', 'move_to_pose', to_pose(*AWAY_M, max_velocity_mps=0.2))
                assert await asker.where(session_id) == 'idle'
                assert await asker.where(str(taker.ready['session_id'])) == 'running'
                await taker.status('go')
                await taker.close()
            async with await cell.agent('back') as back:
                await back.resume(giver)
                back.beat(0.2)
                assert (await giver.ended())[0] == 1000
                assert await asker.where(session_id) == 'idle'
                await back.close()

    run(play())


async def storm(askers: list[Agent], session_id: str, is_over: asyncio.Event) -> int:
    """Ask from every connection, as fast as answers come, and return how many came."""

    async def one(asker: Agent) -> int:
        count = 0
        while not is_over.is_set():
            questions = [
                await asker.ask('session/status', {'sessionId': session_id}) for _ in range(8)
            ]
            for question in questions:
                await asker.answer(question)
            count += len(questions)
        return count

    return sum(await asyncio.gather(*(one(asker) for asker in askers)))


def test_the_watchdog_trips_on_time_under_a_storm(
    cell: Cell, tap: RobotTap, lateness: Lateness, record_testsuite_property: Record
) -> None:
    async def play() -> tuple[float, float, int, float]:
        askers = [await cell.agent(f'asker-{number}') for number in range(10)]
        is_over = asyncio.Event()
        async with cell.holding() as agent:
            session_id = str(agent.ready['session_id'])
            storming = asyncio.create_task(storm(askers, session_id, is_over))
            go = await set_moving(agent, tap, max_velocity_mps=0.05)
            await agent.hush()
            last_ns = time.monotonic_ns()
            await agent.settle()  # the last word of the agent, somewhere in between
            silent_ns = time.monotonic_ns()
            event = await agent.event('safe_state_entered')
            assert event.at_ns - last_ns >= WATCHDOG_MS * 1_000_000
            tripped_ms = (event.at_ns - silent_ns) * 1e-6
            await until(lambda: tap.rested_ns(silent_ns), what='the arm at rest')
            rested_ms = ((tap.rested_ns(silent_ns) or 0) - silent_ns) * 1e-6
            lost_ms = lateness.since(silent_ns) * 1e-6
            is_over.set()
            count = await storming
            assert (await agent.status(go))['reason'] == 'connection_lost'
            await tap.caught_up()
            assert not tap.running(PRIMITIVE)
        for asker in askers:
            await asker.drop()
        return tripped_ms, rested_ms, count, lost_ms

    tripped_ms, rested_ms, count, lost_ms = run(play())
    record_testsuite_property('bridge_watchdog_ms_under_status_storm', round(tripped_ms, 1))
    record_testsuite_property('bridge_watchdog_rest_ms_under_status_storm', round(rested_ms, 1))
    record_testsuite_property('bridge_status_answers_in_storm', count)
    assert count > 100  # as fast as both sides can
    assert tripped_ms < WATCHDOG_MS + 300.0 + lost_ms
    assert rested_ms < WATCHDOG_MS + 1500.0 + lost_ms


def test_questions_count_against_the_rate_of_their_connection_alone(
    cell: Cell, tap: RobotTap, lateness: Lateness
) -> None:
    async def play() -> tuple[float, float, float]:
        async with await cell.agent('many') as many, await cell.agent('few') as few:
            began_s = time.monotonic()
            questions = [
                await many.ask('session/status', {'sessionId': 'x'}) for _ in range(3 * RATE_HZ)
            ]
            begun_ns = time.monotonic_ns()
            few_s = time.monotonic()
            assert await few.where('x') == UNKNOWN
            few_s = time.monotonic() - few_s
            lost_s = lateness.since(begun_ns) * 1e-9
            for question in questions:
                with pytest.raises(Refused):
                    await many.answer(question, 20.0)
            return time.monotonic() - began_s, few_s, lost_s

    took_s, few_s, lost_s = run(play())
    # Twice the rate may come at once; the rest comes at the rate.
    assert took_s > 0.9
    assert few_s < 0.5 + lost_s


def test_after_a_restart_the_session_is_unknown(cell: Cell, tap: RobotTap) -> None:
    async def play(bridge: BridgeProcess, session_id: str) -> None:
        async with await Agent.connect(bridge.url, bridge.token) as asker:
            assert await asker.where(session_id) == UNKNOWN

    async def before() -> str:
        agent = await cell.agent()
        await open_when_free(agent, 'arm_01')
        session_id = str(agent.ready['session_id'])
        assert await agent.where(session_id) == 'idle'
        await agent.reset()
        return session_id

    session_id = run(before())
    cell.bridge.kill()
    config = Path(cell.folder) / 'patient.yaml'
    cell.bridge = BridgeProcess(cell.folder, 'again', config, audit=cell.bridge.audit)
    cell.bridge.wait_ready()
    run(play(cell.bridge, session_id))


def test_switched_off_the_method_is_unknown(ros: None, tmp_path: Path) -> None:
    config = patient_config(tmp_path, {'session': {'status_query': False}})
    bridge = BridgeProcess(tmp_path, 'off', config)

    async def play() -> None:
        async with await Agent.connect(bridge.url, bridge.token) as agent:
            assert agent.manifest['capabilities'] == {}
            assert (await agent.refusal('session/status', sessionId='x')).code == -32601

    try:
        bridge.wait_ready()
        run(play())
    finally:
        bridge.stop()
