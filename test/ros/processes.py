"""Owns the processes of a test: a ROS domain of their own, a start that is waited for, an end."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
from contextlib import contextmanager
import fcntl
import json
import os
from pathlib import Path
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

import secrets_written

REPOSITORY = Path(__file__).resolve().parents[2]
SIM_ARM = REPOSITORY / 'config' / 'sim_arm.yaml'
_DOMAINS = range(1, 101)  # beyond, the ports of a domain may be those of other programs
_POLL_S = 0.01


@contextmanager
def free_domain_id() -> Iterator[int]:
    """
    Reserve a ROS domain that no other test run on this machine uses.

    The lock files are those of ``claim_domain`` in ``scripts/lib/activate.sh``, so that a demo,
    a bench and the tests of several checkouts stay apart too.

    :raises RuntimeError: all are taken
    """
    folder = Path(tempfile.gettempdir()) / 'awp_ros_bridge-domains'
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)  # for every user
    first = os.getpid() % len(_DOMAINS)
    for offset in range(len(_DOMAINS)):
        domain_id = _DOMAINS[(first + offset) % len(_DOMAINS)]
        with contextlib.ExitStack() as held:
            try:
                lock = held.enter_context((folder / str(domain_id)).open('a', encoding='ascii'))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                continue
            if _is_domain_in_use(domain_id):
                continue
            yield domain_id
            return
    raise RuntimeError(f'all ROS domains {_DOMAINS} are reserved by lock files in {folder}')


def _is_domain_in_use(domain_id: int) -> bool:
    """Look for open ports of a domain, of programs that know nothing of the lock files."""
    first = 7400 + 250 * domain_id
    for table in ('/proc/net/udp', '/proc/net/udp6'):
        try:
            rows = Path(table).read_text(encoding='ascii').splitlines()[1:]
        except OSError:
            continue
        ports = (int(row.split()[1].rsplit(':', 1)[1], 16) for row in rows)
        if any(first <= port < first + 250 for port in ports):
            return True
    return False


class StartedProcess:
    """A child process whose output goes to a file and who says when it is ready."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        name: str,
        environment: Mapping[str, str] | None = None,
        group: int | None = None,
    ) -> None:
        """
        Start a process.

        :param arguments: the command line; ``{ready_file}`` stands for the path of the ready file
        :param folder: where its output and its ready file are kept
        :param environment: added to this process's own
        :param group: process group that it joins, 0 for a new one
        """
        self.name = name
        self.ready_file = folder / f'{name}.ready.json'
        self.log_file = folder / f'{name}.log'
        self.ready_file.unlink(missing_ok=True)
        command = [a.replace('{ready_file}', str(self.ready_file)) for a in arguments]
        paths = (str(REPOSITORY), os.environ.get('PYTHONPATH', ''))
        own = {'PYTHONPATH': os.pathsep.join(p for p in paths if p), 'PYTHONUNBUFFERED': '1'}
        with self.log_file.open('wb') as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **own, **(environment or {})},
                process_group=group,
            )
        _started.append(self)

    @property
    def pid(self) -> int:
        """Give the process id."""
        return self._child.pid

    @property
    def exit_status(self) -> int | None:
        """Give the exit status, None while it runs."""
        return self._child.poll()

    @property
    def output(self) -> str:
        """Read what it has printed so far."""
        return self.log_file.read_text(encoding='utf-8', errors='replace')

    def wait_ready(self, timeout_s: float = 60.0) -> dict[str, Any]:
        """
        Wait for the ready file and read it.

        :raises RuntimeError: it ended or did not become ready in time; its output is in the text
        """
        deadline_s = time.monotonic() + timeout_s
        while not self.ready_file.exists():
            if self.exit_status is not None:
                raise RuntimeError(f'{self.name} ended with {self.exit_status}:\n{self.output}')
            if time.monotonic() > deadline_s:
                raise RuntimeError(f'{self.name} not ready after {timeout_s} s:\n{self.output}')
            time.sleep(_POLL_S)
        ready: dict[str, Any] = json.loads(self.ready_file.read_text(encoding='utf-8'))
        return ready

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._child.send_signal(number)

    def cpu_s(self) -> float:
        """Read the processor time that it has used so far."""
        fields = Path(f'/proc/{self.pid}/stat').read_text(encoding='ascii').rsplit(')', 1)[1]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / os.sysconf('SC_CLK_TCK')

    def stop(self, timeout_s: float = 20.0) -> int:
        """
        Ask it to end, wait, and return its exit status.

        :raises RuntimeError: it did not end in time; it is killed then
        """
        if self.exit_status is None:
            self._child.terminate()
        try:
            return self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(
                f'{self.name} ignored SIGTERM for {timeout_s} s:\n{self.output}'
            ) from None

    def kill(self) -> None:
        """End it without asking."""
        self._child.kill()
        self._child.wait()


_started: list[StartedProcess] = []


@contextmanager
def nothing_left() -> Iterator[None]:
    """Kill, in the end, what was started meanwhile and lives: a fixture that failed leaves it."""
    before = len(_started)
    try:
        yield
    finally:
        for process in _started[before:]:
            if process.exit_status is None:
                process.kill()
        del _started[before:]


def start_sim_robot(
    folder: Path,
    parameters: Mapping[str, object] | None = None,
    name: str = 'sim_robot',
    namespace: str = '',
) -> StartedProcess:
    """
    Start the simulated robot and wait until its servers are up.

    :param parameters: ROS parameters by name
    :param namespace: the ROS namespace of its node
    """
    command = [sys.executable, '-m', 'awp_ros_bridge.sim_robot', '--ready-file', '{ready_file}']
    command.append('--ros-args')
    for key, value in (parameters or {}).items():
        command += ['-p', f'{key}:={json.dumps(value)}']
    if namespace:
        command += ['-r', f'__ns:={namespace}']
    process = StartedProcess(command, folder, name)
    try:
        process.wait_ready()
    except BaseException:
        if process.exit_status is None:
            process.kill()
        raise
    return process


class GuardianProcess(StartedProcess):
    """A guardian beside a bridge under test; several bridges may follow each other."""

    def __init__(
        self,
        folder: Path,
        config: Path = SIM_ARM,
        name: str = 'guardian',
        *,
        arguments: Sequence[str] = (),
        ros_arguments: Sequence[str] = (),
        group: int | None = None,
    ) -> None:
        """Start it."""
        command = [sys.executable, '-m', 'awp_ros_bridge.guardian', '--config', str(config)]
        command += ['--ready-file', '{ready_file}', '--log-level', 'debug', *arguments]
        if ros_arguments:
            command += ['--ros-args', *ros_arguments]
        super().__init__(command, folder, name, group=group)
        secrets_written.watch(self.log_file)

    def end(self) -> None:
        """End it, after its bridge or before it."""
        if self.exit_status is None:
            self.kill()


@contextmanager
def guarding(folder: Path, config: Path = SIM_ARM, **options: Any) -> Iterator[GuardianProcess]:
    """Run a guardian; it is started first, ready at the same time as what is started next."""
    process = GuardianProcess(folder, config, **options)
    try:
        yield process
    finally:
        process.end()


class BridgeProcess(StartedProcess):
    """
    A bridge under test.

    :ivar token: bearer token of its control connections
    :ivar audit: its audit directory
    :ivar url: where it serves, once :meth:`wait_ready` returned
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        config: Path,
        *,
        arguments: Sequence[str] = (),
        ros_arguments: Sequence[str] = (),
        audit: Path | None = None,
        port: int = 0,
        log_level: str = 'info',
        token: str | None = None,
        group: int | None = None,
    ) -> None:
        """Start it; without a token it gets one of its own."""
        self.token = token or secrets.token_urlsafe(24)
        self.audit = audit or folder / f'{name}.audit'
        self.url = ''
        command = [sys.executable, '-m', 'awp_ros_bridge.bridge', '--config', str(config)]
        command += ['--port', str(port), '--ready-file', '{ready_file}']
        command += ['--audit-directory', str(self.audit), '--log-level', log_level, *arguments]
        if ros_arguments:
            command += ['--ros-args', *ros_arguments]
        super().__init__(command, folder, name, {'AWP_BRIDGE_TOKEN': self.token}, group)
        secrets_written.note(self.token)
        secrets_written.watch(self.log_file, self.audit)

    def wait_ready(self, timeout_s: float = 60.0) -> dict[str, Any]:
        """Wait until it serves."""
        ready = super().wait_ready(timeout_s)
        self.url = str(ready['url'])
        return ready

    def resident_kb(self) -> int:
        """Read how much memory it holds."""
        text = Path(f'/proc/{self.pid}/status').read_text(encoding='ascii')
        return int(text.split('VmRSS:')[1].split()[0])


def start_bridge(
    folder: Path, name: str = 'bridge', config: Path = SIM_ARM, **options: Any
) -> BridgeProcess:
    """
    Start a bridge on a free port and wait until it serves; the robot may still be missing.

    :param options: of :class:`BridgeProcess`
    """
    process = BridgeProcess(folder, name, config, **options)
    try:
        process.wait_ready()
    except BaseException:
        if process.exit_status is None:
            process.kill()
        raise
    return process
