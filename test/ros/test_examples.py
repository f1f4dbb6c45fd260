"""Runs the programs in examples/ against the bridge, as the README says to."""

from __future__ import annotations

import os
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
