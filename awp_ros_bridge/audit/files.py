"""Owns the log files: their names, their opening, their removal when the quota is used up."""

from __future__ import annotations

from collections.abc import Collection, Iterator
import contextlib
from dataclasses import dataclass
from datetime import datetime, UTC
import fcntl
import logging
import os
from pathlib import Path
import re
from typing import Protocol

_NAME = re.compile(
    r'^(?P<log>\d{8}T\d{6}\.\d{3}Z_[A-Za-z0-9_-]+)(?:\.(?P<part>[1-9]\d*))?\.jsonl$'
)
_PROBE = '.writable'
_PROBE_BYTES = 4096

logger = logging.getLogger(__name__)


class LogFile(Protocol):
    """What the writer needs of an open file; every method may raise OSError."""

    def append(self, data: bytes) -> None:
        """Write all of it at the end."""

    def sync(self) -> None:
        """Return when everything written is on disk."""

    def cut(self, size: int) -> None:
        """Forget everything behind this size."""

    def close(self) -> None:
        """Let go of the file."""


class DiskFile:
    """
    A new file that only grows, locked while it is open.

    :raises OSError: it cannot be made, or exists.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: others see it as closed
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with contextlib.suppress(OSError):
            _sync_directory(path.parent)

    def append(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def cut(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def close(self) -> None:
        os.close(self._fd)


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """
    A log file in a folder.

    :param log: what all parts of one log share in their names.
    """

    path: Path
    log: str
    part: int


def log_name(opened_at_s: float, session_id: str) -> str:
    """
    Return the name of a new log, without part and suffix: ``<utc>_<session_id>``.

    :param opened_at_s: wall-clock time.
    """
    moment = datetime.fromtimestamp(opened_at_s, UTC)
    stamp = f'{moment:%Y%m%dT%H%M%S}.{moment.microsecond // 1000:03d}Z'
    return f'{stamp}_{re.sub(r"[^A-Za-z0-9_-]", "-", session_id)[:128] or "-"}'


def part_name(log: str, part: int) -> str:
    """Return the file name of a part of a log; the first carries no number."""
    return f'{log}.jsonl' if part == 1 else f'{log}.{part}.jsonl'


def parse_name(path: Path) -> FoundFile | None:
    """Return what a file name says, None when it is not one of a log."""
    found = _NAME.match(path.name)
    return None if found is None else FoundFile(path, found['log'], int(found['part'] or 1))


def log_files(directory: Path) -> list[FoundFile]:
    """
    Return the log files of a folder, oldest first.

    :raises OSError: the folder cannot be read.
    """
    found = [each for each in map(parse_name, directory.iterdir()) if each is not None]
    return sorted(found, key=lambda each: (each.log, each.part))


def probe(directory: Path) -> None:
    """
    Make the folder and prove that it takes data.

    :raises OSError: it does not.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = directory / f'{_PROBE}-{os.getpid()}'
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    try:
        file = DiskFile(path)
        try:
            file.append(b'\n' * _PROBE_BYTES)
            file.sync()
        finally:
            file.close()
    finally:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def used_bytes(directory: Path) -> int:
    """Return the size of all log files of a folder, 0 where it cannot be read."""
    return sum(size for _, size in _sizes(directory))


def _sizes(directory: Path) -> Iterator[tuple[FoundFile, int]]:
    with contextlib.suppress(OSError):
        for found in log_files(directory):
            with contextlib.suppress(OSError):
                yield found, found.path.stat().st_size


def enforce_quota(
    directory: Path, quota_bytes: int, open_paths: Collection[Path], open_logs: Collection[str]
) -> int:
    """
    Remove the oldest closed files until the quota holds, and return what is then used.

    Logs of sessions that are over go first; then closed parts of logs that still grow.

    :param open_paths: files of this process that are open; never removed.
    :param open_logs: names of logs that still grow.
    """
    sizes = list(_sizes(directory))
    total = sum(size for _, size in sizes)
    for found, size in sorted(sizes, key=lambda each: each[0].log in open_logs):
        if total <= quota_bytes:
            break
        if found.path not in open_paths and _remove(found.path):
            total -= size
            logger.warning('removed audit file %s: quota of %d bytes', found.path, quota_bytes)
    return total


def _remove(path: Path) -> bool:
    """Remove a file unless another process holds it open."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
