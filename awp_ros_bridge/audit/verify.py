"""Owns the proof that a log is whole: chain, parts, record shape (AWP-AUD-002, AUD-003)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
import json
from pathlib import Path
from typing import Any

from awp_ros_bridge.audit.chain import line_hash
from awp_ros_bridge.audit.files import FoundFile, log_files, parse_name
from awp_ros_bridge.audit.record import CLASS

Json = dict[str, Any]

_FIELDS: dict[str, type | tuple[type, ...]] = {
    'ts_mono_ns': int,
    'direction': str,
    'kind': str,
    'body': dict,
    'prev_hash': (str, type(None)),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that a whole log does not have."""

    file: str
    line: int
    what: str


@dataclass(slots=True)
class LogReport:
    """
    What was found in one log.

    :param log: name of the log, without part and suffix.
    :param finished: it has its last record; else it still grows, or its end was cut off.
    :param lost: records that the log itself says it lacks, because the disk took nothing.
    :param head: hash of the last line; whoever knows it from elsewhere can tell that nothing was
        cut off.
    """

    log: str
    session_id: str | None = None
    parts: int = 0
    records: int = 0
    finished: bool = False
    lost: int = 0
    head: str | None = None
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in a file or folder."""

    logs: tuple[LogReport, ...]

    @property
    def ok(self) -> bool:
        """Whether no log has a fault."""
        return not any(log.faults for log in self.logs)

    def as_json(self) -> Json:
        """Return the report in plain values."""
        return {'ok': self.ok, 'logs': [asdict(log) for log in self.logs]}


def verify(path: str | Path) -> Report:
    """
    Check one log with all its parts, or every log of a folder.

    :raises OSError: the path cannot be read.
    :raises ValueError: it is no log, or there is none in the folder.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        found = log_files(path)
        if not found:
            raise ValueError(f'{path}: no audit log is in this folder')
    else:
        path.stat()  # that it is missing says more than how it is named
        one = parse_name(path)
        if one is None:
            raise ValueError(f'{path}: not named like an audit log, <utc>_<session>.jsonl')
        found = [each for each in log_files(path.parent) if each.log == one.log]
    logs: dict[str, list[FoundFile]] = {}
    for each in found:
        logs.setdefault(each.log, []).append(each)
    return Report(tuple(_Log(name).check(parts) for name, parts in logs.items()))


class _Log:
    """Walks through the parts of one log."""

    def __init__(self, name: str) -> None:
        self._report = LogReport(name)
        self._previous: str | None = None
        self._is_linked = True  # the line before is known
        self._file = ''
        self._line = 0

    def check(self, parts: list[FoundFile]) -> LogReport:
        expected = 1
        for part in parts:
            self._file, self._line = part.path.name, 0
            if part.part != expected:
                missing = f'{expected}' if part.part == expected + 1 else f'{expected} and more'
                self._fault(f'part {missing} before this one is missing')
                self._is_linked = False
            expected = part.part + 1
            self._report.parts += 1
            self._part(part)
        if not self._report.finished:
            self._report.notes.append('no end record: it still grows, or its end was cut off')
        self._report.head = self._previous
        return self._report

    def _fault(self, what: str) -> None:
        self._report.faults.append(Fault(self._file, self._line, what))

    def _part(self, part: FoundFile) -> None:
        first = True
        for line in _lines(part.path):
            self._line += 1
            if not line.endswith(b'\n'):
                self._report.notes.append(
                    f'{self._file}:{self._line}: half a line: writing it was interrupted'
                )
                break
            self._record(line[:-1], first)
            first = False
        if first:
            self._report.notes.append(f'{self._file}: it holds no record')

    def _record(self, line: bytes, first: bool) -> None:
        if self._report.finished:
            self._fault('a record follows the end record')
        record = self._parsed(line)
        if record is not None:
            self._shape(record, first)
            self._link(record)
            self._meaning(record)
        self._previous = line_hash(line)
        self._is_linked = True
        self._report.records += 1

    def _parsed(self, line: bytes) -> Json | None:
        if not line.isascii():
            self._fault('it is not ASCII')
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            self._fault('it is not JSON')
            return None
        if not isinstance(record, dict):
            self._fault('it is not a JSON object')
            return None
        return record

    def _shape(self, record: Json, first: bool) -> None:
        for name, kind in _FIELDS.items():
            if name not in record:
                self._fault(f'{name} is missing')
            elif not isinstance(record[name], kind) or isinstance(record[name], bool):
                self._fault(f'{name} has the wrong type')
        if first and record.get('class') != CLASS:
            self._fault(f'the first record does not say class {CLASS!r} (AWP-AUD-007)')

    def _link(self, record: Json) -> None:
        if not self._is_linked or 'prev_hash' not in record:
            return
        if record['prev_hash'] != self._previous:
            before = 'the line before' if self._line > 1 else 'the end of the part before'
            if self._previous is None:
                before = 'the beginning of a log, which has null'
            self._fault(f'prev_hash does not match {before}: a line was changed, added or removed')

    def _meaning(self, record: Json) -> None:
        body = record.get('body')
        body = body if isinstance(body, dict) else {}
        kind = record.get('kind')
        if kind == 'end':
            self._report.finished = True
        elif kind == 'gap' and isinstance(body.get('dropped'), int):
            self._report.lost += body['dropped']
        elif kind == 'session' and self._report.session_id is None:
            self._report.session_id = str(body.get('session_id'))


def _lines(path: Path) -> Iterator[bytes]:
    with path.open('rb') as stream:
        yield from stream
