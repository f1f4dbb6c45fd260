"""Owns the cell of the tests in Gazebo: the robot in physics, bridge and guardian before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
import sys

from bridge_cell import Cell
from patience import run
from processes import BridgeProcess, GuardianProcess, SIM_ARM, StartedProcess
import yaml


@contextmanager
def running_in_gazebo(folder: Path, config: Path = SIM_ARM) -> Iterator[Cell]:
    """Start everything at once, move the arm home when it may move, and stop all at the end."""
    is_guarded = yaml.safe_load(config.read_text(encoding='utf-8'))['guardian'] == 'required'
    guardian = GuardianProcess(folder, config) if is_guarded else None
    bridge = BridgeProcess(folder, 'bridge', config, log_level='debug')
    robot = StartedProcess(
        [sys.executable, '-m', 'gazebo_robot', '--ready-file', '{ready_file}'],
        folder,
        'gazebo_robot',
    )
    try:
        robot.wait_ready(60.0)
        bridge.wait_ready()
        started = Cell(robot, bridge, folder, guardian)
        run(started.warm_up())
        yield started
    finally:
        for process in (bridge, robot):
            with suppress(RuntimeError):
                process.stop(8.0)
        if guardian is not None:
            guardian.end()
