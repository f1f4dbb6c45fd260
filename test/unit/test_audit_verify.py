"""Tests that a log which was changed, cut or is incomplete is seen, with its line."""

from collections.abc import Callable
import json
from pathlib import Path

from audit_disk import files, running
import pytest

from awp_ros_bridge.audit import Report, verify
from awp_ros_bridge.audit.verify import LogReport


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with one log of three parts or more."""
    with running(tmp_path, max_file_bytes=2000) as log:
        log.open('s1', 0, {})
        for n in range(20):
            log.record('s1', n, 'agent', 'message', {'n': n, 'pad': 'x' * 60})
        log.close('s1')
    assert len(files(tmp_path)) >= 3
    return tmp_path


def change(path: Path, edit: Callable[[list[bytes]], object]) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    edit(lines)
    path.write_bytes(b''.join(lines))


def faults(folder: Path) -> list[tuple[str, int, str]]:
    (log,) = verify(folder).logs
    names = {path.name: f'part{n}' for n, path in enumerate(files(folder), start=1)}
    return [(names[each.file], each.line, each.what) for each in log.faults]


BROKEN = 'prev_hash does not match the line before: a line was changed, added or removed'
BROKEN_PART = (
    'prev_hash does not match the end of the part before: a line was changed, added or removed'
)


def test_a_whole_log_has_no_fault(folder: Path) -> None:
    report = verify(folder)
    assert report.ok
    assert report.logs[0].notes == []
    for path in files(folder):  # any part leads to the whole log
        assert verify(path).as_json() == report.as_json()


def test_a_changed_line_breaks_the_chain_at_the_next(folder: Path) -> None:
    def edit(lines: list[bytes]) -> None:
        lines[2] = lines[2].replace(b'"n":1', b'"n":7')

    change(files(folder)[0], edit)
    assert faults(folder) == [('part1', 4, BROKEN)]
    assert not verify(folder).ok


def test_a_removed_line_breaks_the_chain(folder: Path) -> None:
    change(files(folder)[1], lambda lines: lines.pop(2))
    assert faults(folder) == [('part2', 3, BROKEN)]


def test_an_added_line_breaks_the_chain(folder: Path) -> None:
    change(files(folder)[1], lambda lines: lines.insert(2, lines[2]))
    assert ('part2', 4, BROKEN) in faults(folder)


def test_a_removed_beginning_breaks_the_chain(folder: Path) -> None:
    change(files(folder)[0], lambda lines: lines.pop(0))
    assert faults(folder) == [
        ('part1', 1, "the first record does not say class 'audit_record' (AWP-AUD-007)"),
        (
            'part1',
            1,
            'prev_hash does not match the beginning of a log, which has null: a line was '
            'changed, added or removed',
        ),
    ]


def test_a_cut_part_breaks_the_chain_in_the_next(folder: Path) -> None:
    change(files(folder)[0], lambda lines: lines.pop())
    assert faults(folder) == [('part2', 1, BROKEN_PART)]


def test_a_missing_part_is_named(folder: Path) -> None:
    files(folder)[1].unlink()
    (log,) = verify(folder).logs
    assert [each.what for each in log.faults] == ['part 2 before this one is missing']


def test_missing_first_parts_are_named(folder: Path) -> None:
    for path in files(folder)[:2]:
        path.unlink()
    (log,) = verify(folder).logs
    assert [each.what for each in log.faults] == ['part 1 and more before this one is missing']


def test_a_missing_end_is_noted(folder: Path) -> None:
    change(files(folder)[-1], lambda lines: lines.pop())
    report = verify(folder)
    assert report.ok
    assert not report.logs[0].finished
    assert 'no end record' in report.logs[0].notes[0]


def test_half_a_line_at_the_end_is_noted(folder: Path) -> None:
    path = files(folder)[-1]
    path.write_bytes(path.read_bytes()[:-10])
    report = verify(folder)
    assert report.ok
    assert 'half a line' in report.logs[0].notes[0]


def test_an_empty_part_is_noted(folder: Path) -> None:
    path = files(folder)[-1]
    path.write_bytes(b'')
    assert f'{path.name}: it holds no record' in verify(folder).logs[0].notes


def test_a_record_after_the_end_is_a_fault(folder: Path) -> None:
    change(files(folder)[-1], lambda lines: lines.append(lines[-1]))
    assert 'a record follows the end record' in [what for _, _, what in faults(folder)]


@pytest.mark.parametrize(
    ('line', 'what'),
    [
        (b'nonsense\n', 'it is not JSON'),
        (b'[1]\n', 'it is not a JSON object'),
        (b'"\xff"\n', 'it is not ASCII'),
        (b'{"ts_mono_ns":1}\n', 'direction is missing'),
        (
            b'{"ts_mono_ns":true,"direction":"a","kind":"b","body":{},"prev_hash":null}\n',
            'ts_mono_ns has the wrong type',
        ),
        (
            b'{"ts_mono_ns":1,"direction":"a","kind":"b","body":[],"prev_hash":null}\n',
            'body has the wrong type',
        ),
        (b'[' * 100_000 + b'\n', 'it is not JSON'),
    ],
)
def test_a_line_that_is_no_record_is_a_fault(folder: Path, line: bytes, what: str) -> None:
    def edit(lines: list[bytes]) -> None:
        lines[2] = line

    change(files(folder)[0], edit)
    found = faults(folder)
    assert ('part1', 3, what) in found
    assert ('part1', 4, BROKEN) in found


def test_what_is_no_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match='no audit log'):
        verify(tmp_path)
    other = tmp_path / 'notes.txt'
    other.write_text('')
    with pytest.raises(ValueError, match='not named like an audit log'):
        verify(other)
    with pytest.raises(FileNotFoundError):
        verify(tmp_path / '20200101T000000.000Z_a.jsonl')


def test_the_report_is_plain_json(folder: Path) -> None:
    report = verify(folder)
    assert json.loads(json.dumps(report.as_json()))['ok'] is True
    assert Report((LogReport('a'),)).ok
