"""Disks for the audit log's tests: in memory, with faults on demand, and ways to look at a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import errno
import json
import os
from pathlib import Path
import threading
import time
from typing import Any

from awp_ros_bridge.audit import AuditLog
from awp_ros_bridge.audit.files import DiskFile

Json = dict[str, Any]

PATIENCE_S = 10.0


class Disk:
    """Opens real files, and fails where a test says so."""

    def __init__(self) -> None:
        self.is_full = False
        self.cannot_open = False
        self.cannot_cut = False
        self.cannot_sync = False
        self.room: int | None = None
        self.writes = 0
        self.syncs = 0
        self.hold = threading.Event()
        self.hold.set()

    def open(self, path: Path) -> FaultyFile:
        if self.cannot_open:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return FaultyFile(self, path)


class FaultyFile(DiskFile):
    """A file of a :class:`Disk`."""

    def __init__(self, disk: Disk, path: Path) -> None:
        super().__init__(path)
        self._disk = disk

    def append(self, data: bytes) -> None:
        self._disk.writes += 1
        self._disk.hold.wait(PATIENCE_S)
        if self._disk.is_full:
            super().append(data[: len(data) // 2])  # a full disk takes a part of it
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().append(data)

    def sync(self) -> None:
        self._disk.syncs += 1
        if self._disk.cannot_sync:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync()

    def cut(self, size: int) -> None:
        if self._disk.cannot_cut:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().cut(size)


class Told:
    """What the owner of a log was told."""

    def __init__(self) -> None:
        self.changes: list[tuple[bool, str]] = []

    def __call__(self, writable: bool, reason: str) -> None:
        self.changes.append((writable, reason))


def until(condition: Callable[[], bool], what: str = 'the condition') -> None:
    """Wait for a condition, with a limit."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f'waited {PATIENCE_S} s for {what}'
        time.sleep(0.002)


@contextlib.contextmanager
def running(directory: Path, told: Told | None = None, **settings: Any) -> Iterator[AuditLog]:
    """Run a log, and stop it in the end."""
    defaults: Json = {'max_file_bytes': 10**8, 'quota_bytes': 10**9, 'retry_s': 0.01}
    log = AuditLog(directory, on_change=told or Told(), **(defaults | settings))
    try:
        yield log
    finally:
        assert log.stop(PATIENCE_S)


def files(directory: Path) -> list[Path]:
    """Return the log files of a folder, by name."""
    found = list(directory.glob('*.jsonl'))
    return sorted(found, key=lambda path: (path.name.split('.')[0], len(path.name), path.name))


def records(path: Path) -> list[Json]:
    """Return the records of a file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def all_records(directory: Path) -> list[Json]:
    """Return the records of all files of a folder, in order."""
    return [record for path in files(directory) for record in records(path)]


def kinds(directory: Path) -> list[str]:
    """Return the kinds of all records of a folder."""
    return [str(record['kind']) for record in all_records(directory)]
