"""Owns the cell of the tests in Gazebo: the robot in physics, bridge and guardian before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, ExitStack, suppress
from pathlib import Path
import sys
from typing import Any

from agent import Agent
from bridge_cell import Cell, completed, patient_config, STATE_CHANNELS
from patience import run
from processes import BridgeProcess, GuardianProcess, SIM_ARM, StartedProcess
import yaml

WHOLE = Path(__file__).parent / 'gazebo_cell.yaml'
Json = dict[str, Any]
# Far below the limit: drives that are told something late swing above what they are told.
EASY = {'max_velocity_mps': 0.3}
_STOPPED = {'x-ros2.safety_input', 'safe_state', 'deadline_exceeded'}  # a busy machine
STATE_CHANNELS['base_01'] = 'base_state'  # as WHOLE names it


class Cells:
    """One cell at a time: who asks for the configuration that runs gets the running one."""

    def __init__(self, make_folder: Callable[[], Path]) -> None:
        """Begin with none."""
        self._make_folder = make_folder
        self._config: Path | None = None
        self._cell: Cell | None = None
        self._running = ExitStack()

    def get(self, config: Path | None = None) -> Cell:
        """
        Give a cell with a configuration, after the end of one with another.

        :param config: by default that of the simulated arm with a guardian, and patient.
        """
        cell = self._cell
        if cell is not None and (config != self._config or _has_ended(cell)):
            self.close()
            cell = None
        if cell is None:
            folder = self._make_folder()
            used = patient_config(folder, guardian='required') if config is None else config
            started = running_in_gazebo(folder, used)
            self._cell = cell = self._running.enter_context(started)
            self._config = config
        return cell

    def close(self) -> None:
        """End what runs."""
        self._cell = None
        self._running.close()


async def arrive(agent: Agent, name: str, kind: str, params: Json) -> None:
    """Carry an action out, again where a busy machine made the bridge stop the robot."""
    await completed(agent, name, kind, params, tries=6, spoiled=_STOPPED)


def _has_ended(cell: Cell) -> bool:
    return any(process.exit_status is not None for process in (cell.robot, cell.bridge))


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
