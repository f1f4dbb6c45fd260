"""How the bridge's process ends, is killed, is started wrongly, and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
import fcntl
import os
from pathlib import Path
import signal
import time
from typing import Any

from agent import Agent
from bridge_cell import Cell, may_move, patient_config, RobotTap, set_moving, tapped
from patience import run, until
from processes import (
    BridgeProcess,
    guarding,
    SIM_ARM,
    start_bridge,
    start_sim_robot,
    StartedProcess,
)
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE

Record = Any
EXIT_S = 4.0


@pytest.fixture(scope='module')
def folder(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('ending')


@pytest.fixture(scope='module')
def robot(folder: Path) -> Iterator[StartedProcess]:
    with guarding(folder, patient_config(folder, guardian='required')):
        process = start_sim_robot(folder)
        yield process
        process.stop()


@pytest.fixture
def tap(peer: RosPeer, robot: StartedProcess) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


@pytest.fixture
def cell(
    folder: Path, robot: StartedProcess, request: pytest.FixtureRequest
) -> Iterator[Cell]:
    bridge = start_bridge(folder, request.node.name[:60], folder / 'patient.yaml')
    started = Cell(robot, bridge, folder)
    run(started.warm_up())
    yield started
    if started.bridge.exit_status is None:
        started.bridge.kill()


@dataclass(frozen=True, slots=True)
class Ended:
    """
    How a process ended.

    :param at_ns: steady time.
    """

    status: int
    at_ns: int
    took_s: float


async def end_of(process: StartedProcess, since_ns: int, timeout_s: float = 15.0) -> Ended:
    """Wait until a process has ended."""
    await until(lambda: process.exit_status is not None, timeout_s, f'the end of {process.name}')
    now_ns = time.monotonic_ns()
    assert process.exit_status is not None
    return Ended(process.exit_status, now_ns, (now_ns - since_ns) * 1e-9)


async def moving(cell: Cell, tap: RobotTap) -> tuple[Agent, str]:
    """Return an agent and its action, which moves the arm at some speed."""
    agent = await cell.agent()
    await agent.open(subscribe=[{'channel': 'arm_state'}])
    agent.beat(0.2)
    await may_move(agent)
    return agent, await set_moving(agent, tap, at_speed=True)


def test_after_a_kill_a_new_bridge_works_knows_no_old_session_and_ends_after_the_arm(
    cell: Cell, folder: Path, tap: RobotTap, record_testsuite_property: Record
) -> None:
    port = int(cell.bridge.url.rsplit(':', 1)[1])

    async def killed() -> Agent:
        agent, _ = await moving(cell, tap)
        cell.bridge.kill()
        await agent.ended()
        return agent

    async def again(lost: Agent) -> None:
        async with await cell.agent() as late:
            refused = await late.refusal(
                'session.resume', session_token=lost.ready['session_token'], last_status_seq=0
            )
            assert (refused.code, refused.is_retryable) == (2005, False)
        await cell.warm_up()

    async def signalled() -> Ended:
        agent, go = await moving(cell, tap)
        sent_ns = time.monotonic_ns()
        cell.bridge.send_signal(signal.SIGTERM)
        assert await agent.ended() == (1001, 'world_shutdown')
        ended = await end_of(cell.bridge, sent_ns)
        assert agent.states(go) == ['executing', 'cancelling', 'cancelled']
        assert (await agent.status(go))['reason'] == 'session_closed'
        assert agent.events()[-1] == 'world_shutdown'
        closed = await agent.session_state('closed')
        assert closed.params['reason'] == 'world_shutdown'
        rested_ns = tap.rested_ns(sent_ns)
        assert rested_ns is not None
        assert rested_ns < ended.at_ns
        await tap.caught_up()
        assert not tap.running(PRIMITIVE)
        return ended

    lost = run(killed())
    url = cell.bridge.url
    cell.bridge = start_bridge(cell.folder, 'again', folder / 'patient.yaml', port=port)
    assert cell.bridge.url == url
    run(again(lost))
    ended = run(signalled())
    record_testsuite_property('bridge_sigterm_to_exit_s', round(ended.took_s, 3))
    assert ended.status == 0
    assert ended.took_s < EXIT_S
    assert 'ended with 0: as asked' in cell.bridge.output
    # But for a busy machine, which may strike the dead-man timer before anything is asked.
    errors = [row for row in cell.bridge.output.splitlines() if ' ERROR ' in row]
    assert not [row for row in errors if 'the bridge loop was silent' not in row]


def test_nobody_reading_the_log_stops_neither_the_bridge_nor_its_stops(
    folder: Path, robot: StartedProcess, tap: RobotTap
) -> None:
    pipe = folder / 'unread.log'
    pipe.unlink(missing_ok=True)  # of an earlier try
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    bridge = BridgeProcess(folder, 'unread', folder / 'patient.yaml', log_level='debug')
    cell = Cell(robot, bridge, folder)

    async def play() -> None:
        await asyncio.to_thread(bridge.wait_ready)
        await cell.warm_up()
        agent, go = await moving(cell, tap)
        tripped_ns = time.monotonic_ns()
        os.kill(robot.pid, signal.SIGUSR1)
        assert (await agent.status(go))['reason'] == 'e_stop'
        await agent.event('e_stop_engaged')
        await until(lambda: tap.rested_ns(tripped_ns), what='the arm at rest')
        os.kill(robot.pid, signal.SIGUSR2)
        await agent.event('e_stop_released')
        sent_ns = time.monotonic_ns()
        bridge.send_signal(signal.SIGTERM)
        assert (await agent.ended())[0] == 1001
        ended = await end_of(bridge, sent_ns)
        assert ended.status == 0

    try:
        run(play())
    finally:
        if bridge.exit_status is None:
            bridge.kill()
        os.close(reader)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGHUP])
def test_a_signal_during_the_start_ends_the_bridge_as_asked(
    folder: Path, ros: None, number: signal.Signals
) -> None:
    process = BridgeProcess(folder, f'early_{number.name}', SIM_ARM)

    async def play() -> Ended:
        # The last of its own handlers is installed long before anything is started.
        caught = Path(f'/proc/{process.pid}/status')
        bit = 1 << (signal.SIGHUP - 1)

        def is_caught() -> bool:
            rows = caught.read_text(encoding='ascii').split('SigCgt:')
            return bool(int(rows[1].split()[0], 16) & bit)

        await until(is_caught, what='the handlers of signals')
        process.send_signal(number)
        return await end_of(process, time.monotonic_ns())

    ended = run(play())
    assert ended.status == 0
    assert 'Traceback' not in process.output
