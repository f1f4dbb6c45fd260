"""Owns the rig of a run: every process that takes part, started once and stopped once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
import itertools
import os
from pathlib import Path
import secrets
import signal
import time
from typing import TypeVar

from bench.processes import (
    BenchError,
    Process,
    start_bridge,
    start_guardian,
    start_reference,
    Worker,
)

_ADMITTED_S = 40.0


@dataclass
class World:
    """
    Something that agents connect to.

    :param channel: its fastest channel.
    :param action: an action type that ends quickly.
    """

    process: Process
    url: str
    token: str
    channel: str
    action: str


@dataclass
class Rig:
    """
    What the cases measure with.

    :param peer: the robot of the bench.
    :param floors: plain rclpy client and subscriber.
    :param agent: the agent.
    :param askers: connections that ask where sessions stand.
    :param crowd: connections that are there.
    :param echo: the WebSocket floor.
    :param idle: a bridge on a ROS domain where nobody else is.
    :param reference: the reference world, None where it is not installed.
    """

    peer: Worker
    floors: Worker
    agent: Worker
    askers: Worker
    crowd: Worker
    engine: Worker
    echo: Worker
    echo_url: str
    bridge: World
    idle: Process
    reference: World | None
    processes: list[Process]
    _runs: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def run(self) -> int:
        """Return a number for a stretch of publishing."""
        return next(self._runs)

    def dead(self) -> str:
        """Say which processes ended by themselves, and their last words; empty for none."""
        ended = [p.failure('ended') for p in self.processes if p.child.poll() is not None]
        return '\n'.join(ended)


class Meter:
    """Measures the processor share of a process from its making on."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._began_ns = time.monotonic_ns()
        self._used_ns = process.cpu_ns()

    def share(self) -> float:
        """Return the share of one core that it used."""
        used_ns = self._process.cpu_ns() - self._used_ns
        return used_ns / (time.monotonic_ns() - self._began_ns)


P = TypeVar('P', bound=Process)


@contextmanager
def _stopping() -> Iterator[list[Process]]:
    """Stop at the end all processes in the list, whatever happens meanwhile."""
    processes: list[Process] = []
    try:
        yield processes
    finally:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is ending, and bounded
        for process in reversed(processes):
            process.ask_to_end()
        for process in reversed(processes):
            process.stop()
        signal.signal(signal.SIGINT, before)


@contextmanager
def running_rig(folder: Path) -> Iterator[Rig]:
    """
    Start everything, wait until the robot may move, and stop everything at the end.

    :raises BenchError: something does not start
    """
    with _stopping() as processes:

        def started(process: P) -> P:
            processes.append(process)
            return process

        def worker(name: str) -> Worker:
            return started(Worker(name, f'bench.{name}', folder))

        token = secrets.token_urlsafe(24)
        peer = worker('peer')
        started(start_guardian('guardian', folder))
        bridge, url = start_bridge('bridge', folder, token)
        started(bridge)
        empty = {'ROS_DOMAIN_ID': os.environ.get('BENCH_EMPTY_DOMAIN_ID', '')}
        if not empty['ROS_DOMAIN_ID']:
            raise BenchError('BENCH_EMPTY_DOMAIN_ID names no ROS domain: start scripts/bench')
        started(start_guardian('idle-guardian', folder, empty))
        idle, _ = start_bridge('idle', folder, token, empty)
        started(idle)
        reference = None
        found = start_reference(folder, token)
        if found is not None:
            reference = World(started(found[0]), found[1], token, 'proprio', 'move_to_pose')
        echo = worker('echo')
        rig = Rig(
            peer,
            worker('floors'),
            worker('agent'),
            worker('askers'),
            worker('crowd'),
            worker('engine_alone'),
            echo,
            echo.call('url'),
            World(bridge, url, token, 'joints', 'follow_joint_trajectory'),
            idle,
            reference,
            processes,
        )
        rig.agent.call('admitted', _ADMITTED_S + 20.0, url=url, token=token, seconds=_ADMITTED_S)
        yield rig
