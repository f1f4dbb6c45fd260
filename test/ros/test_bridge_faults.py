"""Faults put into a running bridge: of the engine, of its threads, of its disk, of its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import contextlib
import errno
import logging
import os
from pathlib import Path
import signal
import subprocess
import threading
import time
from typing import Any

from agent import Agent
from agent_words import to_pose
from bridge_cell import as_soon_as_possible, AWAY_M, RobotTap, tapped
from bridge_host import holding, Host, moving, no_visit
from lateness import Lateness
from patience import run, until
from processes import StartedProcess
import pytest
from ros_peer import RosPeer
from sim_robot_goals import PRIMITIVE

from awp_ros_bridge.audit import verify
from awp_ros_bridge.bridge import main as bridge_main
from awp_ros_bridge.bridge import wiring
from awp_ros_bridge.engine.engine import Engine

MOST_KB = 256


@pytest.fixture
def tap(peer: RosPeer, sim_robot: StartedProcess) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


# ---------------------------------------------------------------- faults


def test_a_fault_of_the_engine_mid_motion_stops_the_arm_and_returns_1(
    host: Host,
    tap: RobotTap,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    lateness: Lateness,
    record_testsuite_property: Any,
) -> None:
    broken_ns: list[int] = []

    def fail(*_: object) -> None:
        raise ZeroDivisionError('injected')

    def visit(url: str) -> None:
        async def play() -> None:
            agent = await moving(url, tap)
            broken_ns.append(time.monotonic_ns())
            monkeypatch.setattr(Engine, 'handle', fail)
            assert (await agent.ended())[0] == 1001

        run(play())

    assert host.run(visit) == bridge_main.EXIT_FAULT
    ended_ns = time.monotonic_ns()
    run(tap.caught_up())
    rested_ns = tap.rested_ns(broken_ns[0])
    assert rested_ns is not None
    run(tap.caught_up())
    assert not tap.running(PRIMITIVE)
    record_testsuite_property(
        'bridge_engine_fault_to_rest_ms', round((rested_ns - broken_ns[0]) * 1e-6, 1)
    )
    assert (ended_ns - broken_ns[0]) * 1e-9 < 5.0 + lateness.since(broken_ns[0]) * 1e-9
    assert host.world is not None
    assert host.world.fault == 'ZeroDivisionError: injected'
    assert 'the engine failed; the robot is being stopped' in caplog.text


@pytest.mark.parametrize('thread', ['goals_thread', 'safety_thread', 'observations_thread'])
def test_a_fault_of_a_ros_thread_mid_motion_stops_the_arm_and_returns_1(
    host: Host, tap: RobotTap, thread: str
) -> None:
    def fail() -> None:
        raise ZeroDivisionError('injected')

    broken_ns: list[int] = []

    def visit(url: str) -> None:
        async def play() -> None:
            agent = await moving(url, tap)
            assert host.world is not None
            broken_ns.append(time.monotonic_ns())
            getattr(host.world.ros.gateway, thread).post(fail)
            assert (await agent.ended())[0] == 1001
            assert 'world_shutdown' in agent.events()

        run(play())

    assert host.run(visit) == bridge_main.EXIT_FAULT
    run(tap.caught_up())
    assert tap.rested_ns(broken_ns[0]) is not None
    assert host.world is not None
    assert 'ZeroDivisionError: injected' in str(host.world.fault)


def test_a_fault_of_our_own_during_the_start_stops_everything_and_returns_1(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> str:
        raise ZeroDivisionError('injected')

    monkeypatch.setattr(wiring, 'manifest_hash', fail)
    assert host.run(no_visit) == bridge_main.EXIT_FAULT
    assert host.world is not None
    assert host.world.ros.is_stopped
    assert 'the bridge failed' in caplog.text


def test_a_ros_side_that_hangs_does_not_hold_the_exit_up(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wiring, 'TEARDOWN_S', 0.1)
    released = threading.Event()

    def visit(url: str) -> None:
        assert host.world is not None
        stop = host.world.ros.stop

        def hang(timeout_s: float) -> bool:
            released.wait(20.0)
            return stop(timeout_s)

        monkeypatch.setattr(host.world.ros, 'stop', hang)
        os.kill(os.getpid(), signal.SIGTERM)
        with contextlib.suppress(AssertionError):
            asyncio.run(until(lambda: host.left is not None))
        released.set()

    host.run(visit)
    assert host.left == bridge_main.EXIT_OK
    assert 'the ROS side did not stop within' in caplog.text


def test_an_audit_log_that_hangs_does_not_hold_the_exit_up(
    host: Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def visit(url: str) -> None:
        assert host.world is not None
        audit = host.world.audit
        stop = audit.stop

        def late(timeout_s: float) -> bool:
            stop(timeout_s)
            return False

        monkeypatch.setattr(audit, 'stop', late)

    caplog.set_level(logging.INFO)
    host.run(visit)
    assert host.left == bridge_main.EXIT_OK
    assert 'the audit log was not written to its end' in caplog.text


# ---------------------------------------------------------------- the audit log


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk that is soon full."""
    folder = tmp_path / 'disk'
    folder.mkdir()
    mount = ['mount', '-t', 'tmpfs', '-o', f'size={MOST_KB}k', 'tmpfs', str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f'no small disk can be mounted here: {done.stderr.strip()}')
    yield folder
    subprocess.run(['umount', '-l', str(folder)], check=False)


def fill(folder: Path) -> Path:
    """Leave no room on a disk; return what takes it."""
    stuffing = folder / 'stuffing'
    number = os.open(stuffing, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(number, b'x' * 4096)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    finally:
        os.close(number)
    return stuffing


async def refused_for_the_log(agent: Agent, word: str) -> None:
    """Wait until the audit log is what a submission is refused for."""
    content = {'action_id': 'no', 'type': 'move_to_pose', 'params': to_pose(*AWAY_M)}
    detail = ''
    while 'the audit log cannot be written' not in detail:
        refused = await agent.refusal('action.submit', **content)
        assert (refused.code, refused.is_retryable) == (2001, True)
        detail = refused.detail
        await asyncio.sleep(0.02)
    assert word in detail


async def works_again(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    """Wait until the log can be written, and move."""
    await until(lambda: 'audit log is writable again' in caplog.text, what='the recovery')
    states: list[str] = []
    for name in ('yes', 'again', 'once more'):
        # A busy machine: with everything in one process the dead-man timer may strike.
        await as_soon_as_possible(
            lambda name=name: agent.submit(  # type: ignore[misc]
                name, 'move_to_pose', to_pose(*AWAY_M, max_velocity_mps=0.5)
            )
        )
        states.append((await agent.status(name))['state'])
        if states[-1] == 'completed':
            break
    assert states[-1] == 'completed', states
    await agent.close()


def test_an_audit_directory_that_cannot_be_made_refuses_actions_until_it_can(
    host: Host, tap: RobotTap, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = tmp_path / 'a file'
    in_the_way.write_text('not a folder', encoding='ascii')
    caplog.set_level(logging.INFO)

    def visit(url: str) -> None:
        async def play() -> None:
            async with await holding(url) as agent:
                await refused_for_the_log(agent, str(in_the_way))
                in_the_way.unlink()
                await works_again(agent, caplog)

        run(play())

    assert host.run(visit, '--audit-directory', str(in_the_way / 'b')) == bridge_main.EXIT_OK
    assert 'audit log cannot be written' in caplog.text
    assert verify(in_the_way / 'b').ok


def test_a_full_disk_refuses_actions_until_there_is_room(
    host: Host, tap: RobotTap, small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def visit(url: str) -> None:
        async def play() -> None:
            async with await holding(url) as agent:
                stuffing = fill(small_disk)
                await until(lambda: 'audit log cannot be written' in caplog.text)
                await refused_for_the_log(agent, 'No space left')
                stuffing.unlink()
                await works_again(agent, caplog)

        run(play())

    assert host.run(visit, '--audit-directory', str(small_disk)) == bridge_main.EXIT_OK
    told = [r for r in caplog.records if 'audit log cannot be written' in r.message]
    assert [r.levelno for r in told] == [logging.ERROR]
    assert verify(small_disk).ok
