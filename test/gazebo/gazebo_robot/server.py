"""Owns the process of Gazebo's server: the unpacked program, its environment, its end."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
import secrets
import signal
import socket
import subprocess

from gazebo_robot.messages import gazebo_folder

_PREFIX = 'prefix'
_LIBRARIES = 'usr/lib/x86_64-linux-gnu'
_STOP_S = 3.0
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def program(name: str) -> list[str]:
    """Give the command of an unpacked program: its own loader, its own libraries, then itself."""
    prefix = gazebo_folder() / _PREFIX
    libraries = prefix / _LIBRARIES
    paths = [prefix / 'usr/lib', prefix / 'lib/x86_64-linux-gnu', libraries]
    paths += (libraries / part for part in ('blas', 'lapack', 'pulseaudio', 'gazebo-11/plugins'))
    loader = prefix / 'lib/x86_64-linux-gnu/ld-2.31.so'
    return [
        str(loader), '--library-path', ':'.join(map(str, paths)), str(prefix / 'usr/bin' / name)
    ]


def data_paths() -> dict[str, str]:
    """Give the environment variables that say where the unpacked data lie."""
    prefix = gazebo_folder() / _PREFIX
    libraries, share = prefix / _LIBRARIES, prefix / 'usr/share'
    return {
        'GAZEBO_MODEL_PATH': str(share / 'gazebo-11/models'),
        'GAZEBO_PLUGIN_PATH': str(libraries / 'gazebo-11/plugins'),
        'GAZEBO_RESOURCE_PATH': str(share / 'gazebo-11'),
        'OGRE_RESOURCE_PATH': str(libraries / 'OGRE-1.9.0'),
        'SDF_PATH': str(share / 'sdformat9/1.7'),
    }


class GazeboServer:
    """
    A headless world, paused until somebody starts it.

    :ivar partition: of its ignition topics
    :ivar port: of its master
    """

    def __init__(self, world: Path, log: Path) -> None:
        """Start the server; it ends with this process whatever happens."""
        self.partition = f'awp-{os.getpid()}-{secrets.token_hex(4)}'
        self.port = _free_port()
        environment = {
            'HOME': str(world.parent),  # it keeps logs there
            'PATH': '/usr/bin:/bin',
            'IGN_IP': '127.0.0.1',
            'IGN_PARTITION': self.partition,
            'GAZEBO_IP': '127.0.0.1',
            'GAZEBO_MASTER_URI': f'http://127.0.0.1:{self.port}',
            'GAZEBO_MODEL_DATABASE_URI': '',
            'ALSOFT_DRIVERS': 'none',
            **data_paths(),
        }
        self._log = log
        with log.open('wb') as output:
            self._child = subprocess.Popen(
                [*program('gzserver'), '-u', str(world)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # an interrupt of the terminal is for the robot alone
                preexec_fn=_die_with_parent,
            )

    @property
    def exit_status(self) -> int | None:
        """Give the exit status, None while it runs."""
        return self._child.poll()

    @property
    def output(self) -> str:
        """Give the end of what it printed."""
        text = self._log.read_text(encoding='utf-8', errors='replace')
        return '\n'.join(text.splitlines()[-20:])

    def stop(self) -> None:
        """End it."""
        if self._child.poll() is None:
            self._child.terminate()
        try:
            self._child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


def _free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as probe:
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
