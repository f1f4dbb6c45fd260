"""Owns the processes of a run of the evidence: started once, stopped once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
import json
import os
from pathlib import Path
import secrets
import signal
import sys
from typing import TypeVar

from bench.processes import Process, REPOSITORY, start_bridge, Worker

CONFIG = REPOSITORY / 'config' / 'sim_arm.yaml'
GUARDIAN = 'awp_ros_bridge.guardian'

P = TypeVar('P', bound=Process)


@dataclass
class Rig:
    """
    What the rounds measure with.

    :param hardware: the safety topics.
    :param floor: the plain node beside which the e-stop is measured.
    """

    folder: Path
    config: Path
    robot: Worker
    hardware: Worker
    floor: Worker
    bridge: Process
    url: str
    token: str
    stalls: Path
    is_guarded: bool
    processes: list[Process]

    def stall(self) -> None:
        """Block the loop of the bridge."""
        self.stalls.unlink(missing_ok=True)
        os.kill(self.bridge.pid, signal.SIGUSR1)

    def last_beat_ns(self) -> int:
        """Return when the loop beat last before it was blocked."""
        return int(json.loads(self.stalls.read_text(encoding='ascii'))['last_beat_ns'])

    def kill(self) -> None:
        """Kill the bridge."""
        self.bridge.child.kill()
        self.bridge.child.wait()

    def restart(self) -> None:
        """Start a bridge after one was killed; it serves under another URL."""
        self.processes.remove(self.bridge)
        module = ('evidence.bridge', str(self.stalls))
        self.bridge, self.url = start_bridge(
            'bridge', self.folder, self.token, config=self.config, module=module
        )
        self.processes.append(self.bridge)

    def dead(self) -> str:
        """Say which processes ended by themselves, and their last words; empty for none."""
        ended = [p.failure('ended') for p in self.processes if p.child.poll() is not None]
        return '\n'.join(ended)


def cancelled(rig: Rig, kind: str, since_ns: int, seconds: float) -> int:
    """
    Wait for the first cancel of a server since a time and return when it was received.

    :raises AssertionError: none came
    """
    found = rig.robot.call('cancel', seconds + 10.0, kind=kind, since_ns=since_ns, seconds=seconds)
    assert found is not None, f'no cancel reached the {kind} server within {seconds:g} s'
    return int(found[1])


@contextmanager
def running_rig(folder: Path, config: Path = CONFIG) -> Iterator[Rig]:
    """
    Start everything and stop everything at the end.

    :raises BenchError: something does not start
    """
    processes: list[Process] = []

    def started(process: P) -> P:
        processes.append(process)
        return process

    try:
        token, stalls = secrets.token_urlsafe(24), folder / 'stall.json'
        robot = started(Worker('robot', 'evidence.robot', folder))
        hardware = started(Worker('hardware', 'evidence.hardware', folder))
        floor = started(Worker('floor', 'evidence.floor', folder))
        is_guarded = find_spec(GUARDIAN) is not None
        if is_guarded:
            command = [sys.executable, '-m', GUARDIAN, '--config', str(config)]
            started(Process('guardian', command, folder))
        module = ('evidence.bridge', str(stalls))
        bridge, url = start_bridge('bridge', folder, token, config=config, module=module)
        started(bridge)
        yield Rig(
            folder,
            config,
            robot,
            hardware,
            floor,
            bridge,
            url,
            token,
            stalls,
            is_guarded,
            processes,
        )
    finally:
        for process in reversed(processes):
            process.ask_to_end()
        for process in reversed(processes):
            process.stop()


@contextmanager
def loaded(rig: Rig, agents: int) -> Iterator[dict[str, Worker]]:
    """Add the image stream and the watching agents for a while."""
    with ExitStack() as stack:
        parts: dict[str, Worker] = {}
        for name in ('reader', 'camera', 'crowd'):
            parts[name] = Worker(name, 'evidence.load', rig.folder, [name])
            stack.callback(parts[name].stop)
        parts['reader'].call('hear')
        parts['camera'].call('publish')
        parts['crowd'].call('watch', url=rig.url, token=rig.token, count=agents)
        yield parts
