"""Owns the processes of a bench run: helpers, bridges, the reference world, and their end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import contextlib
import json
import os
from pathlib import Path
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
CONFIG = REPOSITORY / 'bench' / 'bench_arm.yaml'

_START_S = 60.0
_STOP_S = 8.0


class BenchError(RuntimeError):
    """A process did not start, died, or did not answer in time; the text ends with its log."""


class Process:
    """
    One child with a log of its own.

    :param arguments: what follows the interpreter, or a whole command line.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        *,
        pipe: bool = False,
    ) -> None:
        self.name = name
        self._log = folder / f'{name}.log'
        with self._log.open('wb') as log:
            self.child = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE if pipe else subprocess.DEVNULL,
                stdout=subprocess.PIPE if pipe else log,
                stderr=log,
                start_new_session=True,  # our own interrupt must not reach it before we decide
                env={**os.environ, 'PYTHONUNBUFFERED': '1', **(environment or {})},
                cwd=REPOSITORY,
            )

    @property
    def pid(self) -> int:
        return self.child.pid

    def cpu_ns(self) -> int:
        """
        Return the processor time of all its threads so far.

        :raises BenchError: it has ended
        """
        try:
            # The id of another process's clock, as clock_getcpuclockid(3) makes it: the same
            # number as in /proc/PID/stat, in nanoseconds instead of ticks of 10 ms.
            return time.clock_gettime_ns(~self.pid << 3 | 2)
        except OSError:
            raise BenchError(self.failure('has ended')) from None

    def failure(self, what: str) -> str:
        """Return a text that says what is wrong and what the process said last."""
        code = self.child.poll()
        ended = '' if code is None else f' (exit status {code})'
        text = self._log.read_text(encoding='utf-8', errors='replace')
        return '\n'.join([f'{self.name} {what}{ended}', *text.splitlines()[-20:]])

    def ask_to_end(self) -> None:
        """Ask it to end, without waiting."""
        if self.child.stdin is not None:
            with contextlib.suppress(OSError):
                self.child.stdin.close()
        elif self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Ask it to end, and kill it where it does not; never raises."""
        self.ask_to_end()
        try:
            self.child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Worker(Process):
    """A helper of the bench: a module that calls :func:`bench.worker.serve`."""

    def __init__(
        self, name: str, module: str, folder: Path, arguments: Sequence[str] = ()
    ) -> None:
        super().__init__(name, [sys.executable, '-m', module, *arguments], folder, pipe=True)
        self._said: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.event('started', _START_S)
        except BaseException:
            self.stop()
            raise

    def call(self, command: str, timeout_s: float = 30.0, **arguments: object) -> Any:
        """
        Run a command and return its result.

        :raises BenchError: it failed or took too long
        """
        self.begin(command, **arguments)
        return self.result(timeout_s)

    def begin(self, command: str, **arguments: object) -> None:
        """Start a command; :meth:`event` and :meth:`result` follow."""
        self._write(json.dumps({'command': command, 'arguments': arguments}))

    def end(self) -> None:
        """Tell a command that waits for it that it shall end; :meth:`result` follows."""
        self._write('end')

    def _write(self, line: str) -> None:
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(f'{line}\n'.encode())
            self.child.stdin.flush()
        except OSError:
            raise BenchError(self.failure('takes no command')) from None

    def event(self, name: str, timeout_s: float = 30.0) -> Any:
        """Wait until it says something, and return what goes with it."""
        said = self._next(timeout_s, name)
        if said.get('event') != name:
            raise BenchError(self.failure(f'said {said} instead of {name}'))
        return said.get('value')

    def result(self, timeout_s: float = 30.0) -> Any:
        """Wait for the result of the command that was begun."""
        said = self._next(timeout_s, 'a result')
        if 'result' not in said:
            raise BenchError(self.failure(f'failed: {said.get("error", said)}'))
        return said['result']

    def _next(self, timeout_s: float, what: str) -> dict[str, Any]:
        try:
            said = self._said.get(timeout=timeout_s)
        except queue.Empty:
            raise BenchError(self.failure(f'gave no {what} within {timeout_s:g} s')) from None
        if not said:
            raise BenchError(self.failure('ended'))
        return said

    def stop(self) -> None:
        """Also wait until everything that it said was read."""
        super().stop()
        self._reader.join(_STOP_S)

    def _read(self) -> None:
        assert self.child.stdout is not None
        with self.child.stdout as said:
            for line in said:
                self._said.put(json.loads(line))
        self._said.put({})


def start_guardian(
    name: str, folder: Path, environment: Mapping[str, str] | None = None
) -> Process:
    """Start a guardian with the bench configuration; the bridge waits for it."""
    command = [sys.executable, '-m', 'awp_ros_bridge.guardian', '--config', str(CONFIG)]
    return Process(name, command, folder, environment)


def start_bridge(
    name: str,
    folder: Path,
    token: str,
    environment: Mapping[str, str] | None = None,
    *,
    config: Path = CONFIG,
    module: Sequence[str] = ('awp_ros_bridge.bridge',),
) -> tuple[Process, str]:
    """
    Start a bridge and return it with its URL.

    :param module: what runs, with arguments that stand before those of the bridge.

    :raises BenchError: it does not become ready
    """
    ready, audit = folder / f'{name}.ready', folder / f'{name}-audit'
    ready.unlink(missing_ok=True)
    options = ['--config', str(config), '--port', '0']
    options += ['--ready-file', str(ready), '--audit-directory', str(audit)]
    bridge = Process(
        name,
        [sys.executable, '-m', *module, *options],
        folder,
        {'AWP_BRIDGE_TOKEN': token, **(environment or {})},
    )
    try:
        _await(bridge, ready.exists)
    except BaseException:
        bridge.stop()
        raise
    return bridge, str(json.loads(ready.read_text(encoding='utf-8'))['url'])


def start_reference(folder: Path, token: str) -> tuple[Process, str] | None:
    """
    Start the reference world and return it with its URL, None where it is not installed.

    :raises BenchError: it does not listen
    """
    beside = Path(sys.executable).with_name('awp-sim')
    program = str(beside) if beside.exists() else shutil.which('awp-sim')
    if program is None:
        return None
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    command = [program, 'serve', '--port', str(port), '--stream-binding', 'ws']
    command += ['--token', token, '--audit-dir', str(folder / 'reference-audit')]
    world = Process('reference', command, folder)

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(('127.0.0.1', port)) == 0

    try:
        _await(world, listens)
    except BaseException:
        world.stop()
        raise
    return world, f'ws://127.0.0.1:{port}'


def _await(process: Process, is_ready: Callable[[], bool]) -> None:
    end = time.monotonic() + _START_S
    while not is_ready():
        if process.child.poll() is not None:
            raise BenchError(process.failure('ended'))
        if time.monotonic() > end:
            raise BenchError(process.failure(f'was not ready after {_START_S:g} s'))
        time.sleep(0.02)
