"""Owns one session's log on disk: parts, chain, and what waits while the disk takes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from awp_ros_bridge.audit.chain import finished, line_hash
from awp_ros_bridge.audit.files import LogFile, part_name
from awp_ros_bridge.audit.record import to_ascii, unchained

Json = dict[str, Any]
Opener = Callable[[Path], LogFile]

_Line = tuple[int, bytes]  # time, and the record without its end

_LINE_END_BYTES = 112  # room for prev_hash, class and the line feed


@dataclass(slots=True)
class Gap:
    """A time in which nothing could be written."""

    reason: str
    dropped: int = 0
    from_ts_mono_ns: int = 0


class SessionLog:
    """
    The log of one session. Only the writer's thread touches it.

    :param name: what its files are called, without part and suffix.
    """

    def __init__(
        self, directory: Path, name: str, session_id: str, max_file_bytes: int, opener: Opener
    ) -> None:
        self.name = name
        self.waiting_bytes = 0
        self.gap: Gap | None = None
        self._directory = directory
        self.session_id = session_id
        self._max_file_bytes = max_file_bytes
        self._opener = opener
        self._waiting: list[_Line] = []
        self._file: LogFile | None = None
        self._part = 0
        self._size = 0
        self._previous: str | None = None
        self._last_ts_ns = 0
        self._is_dirty = False
        self._is_torn = False
        self._has_ended = False

    @property
    def path(self) -> Path | None:
        """The file that is open, None while there is none."""
        if self._file is None:
            return None
        return self._directory / part_name(self.name, self._part)

    def add(self, ts_mono_ns: int, direction: str, kind: str, body: bytes) -> None:
        """Take a record that waits to be written."""
        line = unchained(ts_mono_ns, direction, kind, body)
        self._last_ts_ns = ts_mono_ns
        self._waiting.append((ts_mono_ns, line))
        self.waiting_bytes += len(line)

    @property
    def is_dropping(self) -> bool:
        """Whether records are only counted, until the gap is written."""
        return self.gap is not None and self.gap.dropped > 0

    def drop(self, reason: str, count: int) -> None:
        """Count records that are not kept."""
        self.fail(reason).dropped += count

    def fail(self, reason: str) -> Gap:
        """Remember that the disk took nothing, and return the gap that begins or goes on."""
        if self.gap is None:
            self.gap = Gap(reason, from_ts_mono_ns=self._last_ts_ns)
        return self.gap

    def write(self) -> int:
        """
        Write what waits, and return the number of bytes.

        :raises OSError: what could not be written waits again, nothing of it is in the file.
        """
        try:
            written = self._write(self._waiting)
        finally:
            self.waiting_bytes = sum(len(line) for _, line in self._waiting)
        if self.gap is not None:
            body: Json = {
                'dropped': self.gap.dropped,
                'reason': self.gap.reason,
                'from_ts_mono_ns': self.gap.from_ts_mono_ns,
            }
            written += self._write([self._own('gap', body)])
            self.gap = None
        return written

    def finish(self) -> int:
        """
        Say that the session is over, put everything on disk and let go of the file.

        :returns: number of bytes written.
        :raises OSError: the log is not finished; call again.
        """
        written = self.write()
        if not self._has_ended:
            written += self._write([self._own('end', {'session_id': self.session_id})])
            self._has_ended = True
        self.release()
        return written

    def sync(self) -> None:
        """
        Put on disk what was written.

        :raises OSError: the disk does not take it.
        """
        if self._file is not None and self._is_dirty:
            self._file.sync()
            self._is_dirty = False

    def release(self) -> None:
        """
        Put what was written on disk and let go of the file.

        :raises OSError: the file is still open.
        """
        if self._file is not None:
            self.sync()
            self._file.close()
            self._file = None

    # ------------------------------------------------------------ parts and chain

    def _own(self, kind: str, body: Json) -> _Line:
        return self._last_ts_ns, unchained(self._last_ts_ns, 'world', kind, to_ascii(body))

    def _write(self, lines: list[_Line]) -> int:
        """Write lines and take each from the list once it is in a file."""
        total = 0
        while lines:
            self._make_room(len(lines[0][1]) + _LINE_END_BYTES)
            chunk = self._chunk(lines)
            self._append(bytes(chunk.data))
            self._previous = chunk.previous
            self._size += len(chunk.data)
            total += len(chunk.data)
            del lines[: chunk.taken]
        return total

    def _make_room(self, size: int) -> None:
        """Have a file open that takes a line of this size; open the next part where needed."""
        is_full = self._size > 0 and self._size + size > self._max_file_bytes
        if self._file is not None and not is_full and not self._is_torn:
            return
        self.release()
        part = self._part + 1
        self._file = self._opener(self._directory / part_name(self.name, part))
        self._part, self._size, self._is_torn = part, 0, False

    def _chunk(self, lines: list[_Line]) -> _Chunk:
        """Chain as many lines as fit into the file, at least one."""
        chunk = _Chunk(previous=self._previous)
        if self._size == 0 and self._part > 1:
            continues = part_name(self.name, self._part - 1)
            body = {'session_id': self.session_id, 'part': self._part, 'continues': continues}
            line = unchained(lines[0][0], 'world', 'part', to_ascii(body))
            chunk.add(line, first=True)
        for _, line in lines:
            needed = self._size + len(chunk.data) + len(line) + _LINE_END_BYTES
            if needed > self._max_file_bytes and (self._size or chunk.taken):
                break
            chunk.add(line, first=self._size == 0 and not chunk.data)
            chunk.taken += 1
        return chunk

    def _append(self, data: bytes) -> None:
        assert self._file is not None  # _make_room opened it
        try:
            self._file.append(data)
        except OSError:
            self._mend()
            raise
        self._is_dirty = True

    def _mend(self) -> None:
        """Take a torn line out of the file again; where that fails, the next part goes on."""
        assert self._file is not None
        try:
            self._file.cut(self._size)
        except OSError:
            self._is_torn = True


@dataclass(slots=True)
class _Chunk:
    previous: str | None
    data: bytearray = field(default_factory=bytearray)
    taken: int = 0

    def add(self, line: bytes, first: bool) -> None:
        whole = finished(line, self.previous, first)
        self.data += whole
        self.data += b'\n'
        self.previous = line_hash(whole)
