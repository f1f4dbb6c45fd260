"""Runs the public client and the programs in examples/ against the bridge, as the README does."""

from __future__ import annotations

import os
from pathlib import Path
import subprocess
import sys

from bridge_cell import Cell
from processes import REPOSITORY


def play(cell: Cell, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, 'examples/move.py', cell.bridge.url, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, 'AWP_TOKEN': cell.bridge.token},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_example_moves_the_arm(cell: Cell) -> None:
    done = play(cell, '0.2', '0.1', '0.45')
    assert done.returncode == 0, done.stderr
    world, ended = done.stdout.splitlines()
    assert world == 'world demo-cell'
    assert ended.startswith('ended completed')


def test_the_example_says_what_was_refused(cell: Cell) -> None:
    done = play(cell, '0.9', '0', '0.4')
    assert done.returncode == 1, done.stderr
    assert 'refused AWP_ENVELOPE_EXCEEDED' in done.stdout
    assert 'outside' in done.stdout  # the field, the value and the limit


def test_the_example_says_that_its_token_is_refused(cell: Cell) -> None:
    done = subprocess.run(
        [sys.executable, 'examples/move.py', cell.bridge.url],
        cwd=REPOSITORY,
        env={**os.environ, 'AWP_TOKEN': 'wrong'},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f'cannot connect to {cell.bridge.url}: ')
    assert '401' in done.stderr


def test_the_public_demonstration_runs_to_its_end(cell: Cell) -> None:
    demo = Path(sys.executable).with_name('awp-demo')
    done = subprocess.run(
        [str(demo), '--url', cell.bridge.url],
        env={**os.environ, 'AWP_TOKEN': cell.bridge.token},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    moves = [line for line in lines if line.startswith('move to')]
    assert len(moves) == 4
    assert all(line.endswith(': completed') for line in moves), moves
    assert any(line.startswith('cancelled move: cancelled at 0.') for line in lines), lines
    assert 'outside the envelope: AWP_ENVELOPE_EXCEEDED' in lines
