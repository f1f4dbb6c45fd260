"""Owns the processes of a demonstration cell: a simulated robot, guardian, bridge, their end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
import json
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

REPOSITORY = Path(__file__).resolve().parents[2]
DEFAULT_CONFIG = REPOSITORY / 'config' / 'sim_arm.yaml'

NAMES = ('sim_robot', 'guardian', 'bridge')
EMBEDDED_ROBOT = 'awp_ros_bridge.sim_robot'

_START_S = 60.0
_STOP_S = 10.0


class CellError(RuntimeError):
    """A process of the cell did not start, or died; the text ends with what it printed."""


@dataclass(frozen=True)
class Cell:
    """
    A running cell.

    :param token: bearer token of control connections, which allows everything.
    :param tokens: file of tokens that the bridge follows.
    :param folder: where logs, ready files and the audit log of this run lie.
    """

    url: str
    token: str
    tokens: Path
    robot_pid: int
    bridge_pid: int
    folder: Path
    audit: Path
    children: tuple[subprocess.Popen[bytes], ...]

    def dead(self) -> str | None:
        """Return the name of a process that ended by itself, or None."""
        for name, child in zip(NAMES, self.children, strict=True):
            if child.poll() is not None:
                return f'{name} ended with {child.returncode}: {_tail(self.folder / name)}'
        return None


def _tail(stem: Path) -> str:
    log = stem.with_suffix('.log')
    text = log.read_text(encoding='utf-8', errors='replace') if log.exists() else ''
    return '\n'.join(text.splitlines()[-25:])


def _spawn(
    name: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    with (folder / f'{name}.log').open('wb') as log:
        return subprocess.Popen(
            [sys.executable, '-m', *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # our own interrupt must not reach it before we decide
            env={**os.environ, 'PYTHONUNBUFFERED': '1', **environment},
            cwd=REPOSITORY,
        )


def _ready(name: str, child: subprocess.Popen[bytes], folder: Path) -> dict[str, object]:
    path = folder / f'{name}.ready'
    end = time.monotonic() + _START_S
    while not path.exists():
        if child.poll() is not None:
            raise CellError(f'{name} ended with {child.returncode}:\n{_tail(folder / name)}')
        if time.monotonic() > end:
            raise CellError(f'{name} not ready after {_START_S:g} s:\n{_tail(folder / name)}')
        time.sleep(0.02)
    found: dict[str, object] = json.loads(path.read_text(encoding='utf-8'))
    return found


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
    try:
        child.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def make_token(tokens: Path) -> str:
    """
    Make a token that allows everything, as a person would.

    :param tokens: file of tokens; made when absent.
    :raises CellError: it cannot be made
    """
    command = [sys.executable, '-m', 'awp_ros_bridge.cli.main', 'token', 'make']
    command += ['--file', str(tokens), '--scopes', 'all', '--name', 'demo', '--json']
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=_START_S, check=False
    )
    if done.returncode != 0:
        raise CellError(f'awp token make ended with {done.returncode}: {done.stderr}')
    return str(json.loads(done.stdout)['token'])


@contextmanager
def running_cell(
    folder: Path,
    *,
    config: Path = DEFAULT_CONFIG,
    port: int = 0,
    robot_module: str = EMBEDDED_ROBOT,
    robot_parameters: Mapping[str, object] | None = None,
    bridge_arguments: Sequence[str] = (),
    audit: Path | None = None,
) -> Iterator[Cell]:
    """
    Start the robot, the guardian and the bridge as separate processes, stop all at the end.

    :param folder: for logs and ready files; must exist.
    :param port: port of the endpoint, 0 takes a free one.
    :param robot_module: Python module whose process is the robot.
    :param robot_parameters: ROS parameters of the robot, by name.
    :raises CellError: one of them did not become ready.
    """
    tokens = folder / 'tokens.yaml'
    tokens.unlink(missing_ok=True)
    token = make_token(tokens)
    audit = audit or folder / 'audit'
    audit.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob('*.ready'):
        stale.unlink()
    ros = [a for k, v in (robot_parameters or {}).items() for a in ('-p', f'{k}:={json.dumps(v)}')]
    robot = _spawn(
        'sim_robot',
        [
            robot_module,
            '--ready-file',
            str(folder / 'sim_robot.ready'),
            *(['--ros-args', *ros] if ros else []),
        ],
        folder,
        {},
    )
    children = [robot]
    try:
        guardian = _spawn(
            'guardian',
            [
                'awp_ros_bridge.guardian',
                '--config',
                str(config),
                '--ready-file',
                str(folder / 'guardian.ready'),
            ],
            folder,
            {},
        )
        children.append(guardian)
        bridge = _spawn(
            'bridge',
            [
                'awp_ros_bridge.bridge',
                '--config',
                str(config),
                '--port',
                str(port),
                '--audit-directory',
                str(audit),
                '--ready-file',
                str(folder / 'bridge.ready'),
                '--tokens-file',
                str(tokens),
                *bridge_arguments,
            ],
            folder,
            {},
        )
        children.append(bridge)
        _ready('sim_robot', robot, folder)
        _ready('guardian', guardian, folder)
        found = _ready('bridge', bridge, folder)
        pids = (robot.pid, bridge.pid)
        yield Cell(str(found['url']), token, tokens, *pids, folder, audit, tuple(children))
    finally:
        for child in reversed(children):  # the bridge first: it stops the robot and says goodbye
            _stop(child)
