"""The audit log of real runs: it verifies, it holds no token, and without it nothing moves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import errno
import os
from pathlib import Path
import subprocess
import sys

from agent import Agent
from agent_words import Refused, to_pose
from bridge_cell import AWAY_M, Cell, HOME_M, RobotTap
from patience import run, until
from processes import start_bridge
import pytest
from ros_peer import RosPeer
from sim_robot_goals import reset

MOST_KB = 256


@pytest.fixture
def tap(cell: Cell, peer: RosPeer) -> Iterator[RobotTap]:
    reset(peer)
    with RobotTap() as opened:
        peer.wait_until(lambda: opened.samples, 5.0, 'joint states')
        yield opened


def verify(folder: Path) -> tuple[int, str]:
    """Run the command that verifies a log."""
    command = [sys.executable, '-m', 'awp_ros_bridge.cli.main', 'audit', 'verify', str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30.0, check=False)
    return done.returncode, done.stdout + done.stderr


def files_with(folder: Path, secret: str) -> list[str]:
    """Return the files below a folder that hold a text."""
    paths = [path for path in folder.rglob('*') if path.is_file()]
    return [path.name for path in paths if secret.encode() in path.read_bytes()]


def test_sessions_of_all_kinds_leave_logs_that_verify_and_hold_no_token(
    cell: Cell, tap: RobotTap
) -> None:
    secrets = {cell.bridge.token}

    async def play() -> None:
        async with cell.watching('proprio') as watcher, cell.holding() as giver:
            secrets.update(str(a.ready['session_token']) for a in (watcher, giver))
            await giver.submit('go', 'move_to_pose', to_pose(*AWAY_M))
            await until(lambda: tap.is_moving, what='the arm moving')
            token = str((await giver.call('session.transfer'))['transfer_token'])
            secrets.add(token)
            async with await cell.agent('taker') as taker:
                wrong = await taker.refusal(
                    'session.resume', session_token=f'{token}x', last_status_seq=-1
                )
                assert token not in wrong.detail
                await taker.open(takeover=True, transfer_token=token)
                secrets.add(str(taker.ready['session_token']))
                await taker.reset()
            async with await cell.agent() as late:
                await late.resume(taker)
                secrets.add(str(late.ready['session_token']))
                await late.close()
            guess = 'guess-that-is-not-a-token'
            secrets.add(guess)
            with pytest.raises(Exception, match='401'):
                await Agent.dial(cell.bridge.url, guess)

    run(play())
    status, text = verify(cell.bridge.audit)
    assert status == 0, text
    logs = list(cell.bridge.audit.glob('*.jsonl'))
    assert len(logs) >= 4
    assert len(secrets) == 6
    for secret in secrets:
        assert not files_with(cell.folder, secret)


def test_a_changed_byte_of_a_log_is_found(cell: Cell, tmp_path: Path) -> None:
    found = [p for p in cell.bridge.audit.glob('*.jsonl') if b'"completed"' in p.read_bytes()]
    source = found[0]
    data = bytearray(source.read_bytes())
    data[data.index(b'"completed"') + 1] ^= 1
    (tmp_path / source.name).write_bytes(data)
    status, text = verify(tmp_path)
    assert status != 0
    assert source.name in text


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


async def refused_for_the_log(agent: Agent) -> Refused:
    """Wait until the audit log is what a submission is refused for."""
    while True:
        refused = await agent.refusal(
            'action.submit', action_id='no', type='move_to_pose', params=to_pose(*HOME_M)
        )
        assert (refused.code, refused.is_retryable) == (2001, True)
        if 'the audit log cannot be written' in refused.detail:
            return refused
        await asyncio.sleep(0.05)


def test_a_full_disk_refuses_actions_until_there_is_room(
    cell: Cell, tap: RobotTap, tmp_path: Path, small_disk: Path
) -> None:
    bridge = start_bridge(tmp_path, audit=small_disk)
    full = Cell(cell.robot, bridge, tmp_path)

    async def play() -> None:
        await full.warm_up()
        async with full.holding() as agent:
            stuffing = fill(small_disk)
            told = ' ERROR awp_ros_bridge: audit log cannot be written'
            await until(lambda: told in bridge.output, what='an error for the operator')
            refused = await refused_for_the_log(agent)
            assert 'No space left' in refused.detail
            stuffing.unlink()
            await until(lambda: 'audit log is writable again' in bridge.output, what='recovery')
            await agent.settle()
            await agent.submit('on', 'move_to_pose', to_pose(*HOME_M))
            assert (await agent.status('on'))['state'] == 'completed'

    try:
        run(play())
    finally:
        assert bridge.stop() == 0
    status, text = verify(small_disk)
    assert status == 0, text
