"""The audit log of real runs: it verifies, it holds no token, and without it nothing moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
import subprocess
import sys

from agent import Agent
from bridge_cell import Cell, RobotTap, set_moving, tapped
from patience import run
import pytest
from ros_peer import RosPeer


@pytest.fixture
def tap(cell: Cell, peer: RosPeer) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
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
            await set_moving(giver, tap)
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
