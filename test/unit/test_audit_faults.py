"""Tests the audit log on disks that take nothing: told once, kept, counted, recovered."""

import os
from pathlib import Path
import subprocess
import threading
from typing import Any

from audit_disk import all_records, Disk, files, kinds, PATIENCE_S, records, running, Told, until
import pytest

from awp_ros_bridge.audit import AuditLog, verify
from awp_ros_bridge.audit.files import DiskFile
from awp_ros_bridge.audit.intake import Framed, Intake, Opened

FULL = 'No space left on device'


def gaps(directory: Path) -> list[dict[str, Any]]:
    return [record['body'] for record in all_records(directory) if record['kind'] == 'gap']


def test_a_full_disk_is_told_once_and_nothing_is_lost_when_it_recovers(tmp_path: Path) -> None:
    disk, told = Disk(), Told()
    with running(tmp_path, told, opener=disk.open) as log:
        log.open('s1', 0, {})
        until(lambda: kinds(tmp_path) == ['session'], 'the first record')
        before = files(tmp_path)[0].read_bytes()
        disk.is_full = True
        for n in range(5):
            log.record('s1', n, 'agent', 'message', {'n': n})
        until(lambda: told.changes != [], 'the report')
        writes = disk.writes
        until(lambda: disk.writes > writes + 2, 'more attempts')
        assert not log.is_writable
        assert files(tmp_path)[0].read_bytes() == before  # no torn line is left
        disk.is_full = False
        until(lambda: len(told.changes) == 2, 'the recovery')
        log.record('s1', 9, 'agent', 'message', {'n': 9})
        log.close('s1')
    assert told.changes == [(False, f'{tmp_path}: {FULL}'), (True, '')]
    assert kinds(tmp_path) == ['session', *['message'] * 5, 'gap', 'message', 'end']
    assert gaps(tmp_path) == [{'dropped': 0, 'reason': FULL, 'from_ts_mono_ns': 4}]
    report = verify(tmp_path)
    assert report.ok
    assert report.logs[0].lost == 0


def test_memory_is_bounded_and_the_gap_says_how_much_is_missing(tmp_path: Path) -> None:
    disk, told = Disk(), Told()
    with running(tmp_path, told, opener=disk.open, most_waiting_bytes=2000) as log:
        log.open('s1', 0, {})
        until(lambda: kinds(tmp_path) == ['session'], 'the first record')
        disk.is_full = True
        log.record('s1', 1, 'agent', 'message', {'n': 0})
        until(lambda: told.changes != [], 'the report')
        for n in range(1, 100):
            log.record('s1', n, 'agent', 'message', {'n': n, 'pad': 'x' * 100})
        writes = disk.writes
        until(lambda: disk.writes > writes + 2, 'more attempts')
        disk.is_full = False
        until(lambda: len(told.changes) == 2, 'the recovery')
        log.close('s1')
    kept = kinds(tmp_path).count('message')
    assert 1 < kept < 25
    (gap,) = gaps(tmp_path)
    assert gap['dropped'] == 100 - kept
    bodies = [each['body']['n'] for each in all_records(tmp_path) if each['kind'] == 'message']
    assert bodies == list(range(kept))
    report = verify(tmp_path)
    assert report.ok
    assert report.logs[0].lost == 100 - kept


def test_a_folder_that_cannot_be_made_is_told_before_any_session(tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    told = Told()
    with running(tmp_path / 'file' / 'audit', told):
        until(lambda: told.changes != [], 'the report')
    assert told.changes == [(False, f'{tmp_path}/file/audit: Not a directory')]


def test_a_folder_that_comes_back_is_noticed_without_any_session(tmp_path: Path) -> None:
    blocker = tmp_path / 'audit'
    blocker.write_text('')
    told = Told()
    with running(blocker, told):
        until(lambda: told.changes != [], 'the report')
        blocker.unlink()
        until(lambda: len(told.changes) == 2, 'the recovery')
        assert list(blocker.iterdir()) == []  # the probe left nothing behind
    assert told.changes[1] == (True, '')


def test_a_folder_that_comes_back_is_made_again_while_a_session_waits(tmp_path: Path) -> None:
    told, in_the_way = Told(), tmp_path / 'a'
    in_the_way.write_text('a file')
    with running(in_the_way / 'b', told) as log:
        until(lambda: told.changes != [], 'the report')
        log.open('s1', 0, {})
        in_the_way.unlink()
        until(lambda: len(told.changes) == 2, 'the recovery')
        log.close('s1')
    assert kinds(in_the_way / 'b') == ['session', 'gap', 'end']
    assert verify(in_the_way / 'b').ok


def test_a_log_that_cannot_be_opened_waits(tmp_path: Path) -> None:
    disk, told = Disk(), Told()
    disk.cannot_open = True
    with running(tmp_path, told, opener=disk.open) as log:
        log.open('s1', 0, {})
        log.record('s1', 1, 'agent', 'message', {})
        log.close('s1')
        until(lambda: told.changes != [], 'the report')
        disk.cannot_open = False
        until(lambda: len(told.changes) == 2, 'the recovery')
    assert kinds(tmp_path) == ['session', 'message', 'gap', 'end']
    assert verify(tmp_path).ok


def test_a_line_that_cannot_be_taken_back_ends_its_part(tmp_path: Path) -> None:
    disk, told = Disk(), Told()
    with running(tmp_path, told, opener=disk.open) as log:
        log.open('s1', 0, {})
        until(lambda: kinds(tmp_path) == ['session'], 'the first record')
        disk.is_full = disk.cannot_cut = True
        log.record('s1', 1, 'agent', 'message', {})
        until(lambda: told.changes != [], 'the report')
        disk.is_full = disk.cannot_cut = False
        until(lambda: len(told.changes) == 2, 'the recovery')
        log.close('s1')
    first, second = files(tmp_path)
    assert not first.read_bytes().endswith(b'\n')
    assert [each['kind'] for each in records(second)] == ['part', 'message', 'gap', 'end']
    report = verify(tmp_path)
    assert report.ok
    assert any('half a line' in note for note in report.logs[0].notes)


def test_data_that_does_not_reach_the_disk_is_told(tmp_path: Path) -> None:
    disk, told = Disk(), Told()
    with running(tmp_path, told, opener=disk.open) as log:
        disk.cannot_sync = True
        log.open('s1', 0, {})
        until(lambda: told.changes != [], 'the report')
        disk.cannot_sync = False
        until(lambda: len(told.changes) == 2, 'the recovery')
        log.close('s1')
    assert told.changes[0] == (False, f'{tmp_path}: Input/output error')
    assert kinds(tmp_path) == ['session', 'gap', 'end']


def test_an_end_that_did_not_reach_the_disk_is_not_written_twice(tmp_path: Path) -> None:
    disk, told = Disk(), Told()
    with running(tmp_path, told, opener=disk.open) as log:
        log.open('s1', 0, {})
        until(lambda: kinds(tmp_path) == ['session'], 'the first record')
        disk.cannot_sync = True
        log.close('s1')
        until(lambda: told.changes != [], 'the report')
        disk.cannot_sync = False
        until(lambda: len(told.changes) == 2, 'the recovery')
    assert kinds(tmp_path).count('end') == 1


def test_one_broken_log_does_not_keep_another_from_the_disk(tmp_path: Path) -> None:
    def opener(path: Path) -> DiskFile:
        if '_bad' in path.name:
            raise OSError(28, os.strerror(28))
        return DiskFile(path)

    told = Told()
    with running(tmp_path, told, opener=opener) as log:
        log.open('bad', 0, {})
        log.open('good', 0, {})
        log.close('good')
        until(lambda: kinds(tmp_path) == ['session', 'end'], 'the good log')
        until(lambda: told.changes != [], 'the report')
        assert told.changes == [(False, f'{tmp_path}: {FULL}')]


def test_records_that_come_too_fast_are_counted_and_told(tmp_path: Path) -> None:
    disk, told = Disk(), Told()
    with running(tmp_path, told, opener=disk.open, intake=Intake(most_items=10)) as log:
        disk.hold.clear()
        log.open('s1', 0, {})
        until(lambda: disk.writes == 1, 'the write that hangs')
        for n in range(25):
            log.record('s1', n, 'agent', 'message', {'n': n})
        for _ in range(5):
            log.frame('s1', 30, {}, b'x')
        log.record('other', 0, 'agent', 'message', {})
        assert told.changes == [(False, 'the disk does not keep up with the audit log')]
        disk.hold.set()
        until(lambda: len(told.changes) == 2, 'the recovery')
        log.close('s1')
    assert kinds(tmp_path) == ['session', *['message'] * 10, 'gap', 'end']
    (gap,) = gaps(tmp_path)
    assert gap['dropped'] == 20
    assert gap['reason'] == 'records came faster than they were written'


def test_frames_that_wait_are_bounded_by_their_bytes() -> None:
    intake = Intake(most_bytes=1000)
    frame = Framed('s', 0, 'world', {}, b'x' * 600)
    assert intake.put(frame, 600)
    assert not intake.put(Framed('s', 0, 'world', {}, bytes(600)), 600)
    assert intake.put(Opened('s', 0, {}, 0.0), 10**6)  # the beginning always finds place
    taken = intake.take()
    assert len(taken.items) == 2
    assert taken.overflowed == {'s': 1}
    assert intake.put(frame, 600)


def test_an_image_that_many_sessions_saw_waits_once() -> None:
    intake = Intake(most_bytes=1000)
    payload = b'x' * 600
    for number in range(50):
        assert intake.put(Framed(f's{number}', 0, 'world', {}, payload), 600)
    assert not intake.put(Framed('s', 0, 'world', {}, bytes(600)), 600)
    assert len(intake.take().items) == 50
    assert intake.put(Framed('s', 0, 'world', {}, bytes(600)), 600)
    assert not intake.put(Framed('s', 0, 'world', {}, payload), 600)  # it counts anew


def test_sessions_that_end_while_nothing_can_be_written_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr('awp_ros_bridge.audit.writer.MOST_UNFINISHED', 3)
    disk, told = Disk(), Told()
    disk.cannot_open = True
    with running(tmp_path, told, opener=disk.open) as log:
        log.open('first', 0, {})
        until(lambda: told.changes != [], 'the report')
        for n in range(6):
            log.open(f's{n}', 0, {})
            log.close(f's{n}')
        until(lambda: 'is lost' in caplog.text, 'the loss')
        disk.cannot_open = False
        until(lambda: len(told.changes) == 2, 'the recovery')
        log.close('first')
    assert kinds(tmp_path).count('end') == 4
    assert verify(tmp_path).ok


def test_a_stop_does_not_wait_for_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    disk = Disk()
    disk.is_full = True
    log = AuditLog(
        tmp_path, max_file_bytes=10**6, quota_bytes=10**9, on_change=Told(), opener=disk.open
    )
    log.open('s1', 0, {})
    log.open('s2', 0, {})
    log.close('s2')
    assert log.stop(PATIENCE_S)
    assert kinds(tmp_path) == []


def test_a_file_that_cannot_be_let_go_does_not_keep_a_stop(tmp_path: Path) -> None:
    disk = Disk()
    log = AuditLog(
        tmp_path, max_file_bytes=10**6, quota_bytes=10**9, on_change=Told(), opener=disk.open
    )
    log.open('s1', 0, {})
    until(lambda: kinds(tmp_path) == ['session'], 'the first record')
    disk.cannot_sync = True
    log.record('s1', 1, 'agent', 'message', {})
    assert log.stop(PATIENCE_S)


@pytest.mark.filterwarnings('ignore::pytest.PytestUnhandledThreadExceptionWarning')
def test_a_writer_that_dies_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died = threading.Event()
    monkeypatch.setattr(threading, 'excepthook', lambda args: died.set())
    told = Told()
    log = AuditLog(
        tmp_path,
        max_file_bytes=10**6,
        quota_bytes=10**9,
        on_change=told,
        opener=lambda path: 1 / 0,  # type: ignore[arg-type, return-value]
    )
    log.open('s1', 0, {})
    assert died.wait(PATIENCE_S)
    until(lambda: told.changes != [], 'the report')
    assert told.changes == [(False, 'the writer of the audit log has ended')]


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    folder = tmp_path / 'small'
    folder.mkdir()
    mount = ['mount', '-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, timeout=10, check=False)
    except OSError as error:
        pytest.skip(f'mount cannot be called: {error}')
    if mounted.returncode != 0:
        pytest.skip(f'a small disk cannot be mounted here: {mounted.stderr.decode().strip()}')
    try:
        told = Told()
        with running(folder, told) as log:
            log.open('s1', 0, {})
            filler = folder / 'filler'
            for n in range(300):
                log.record('s1', n, 'agent', 'message', {'n': n, 'pad': 'x' * 300})
                if n == 100:
                    filler.write_bytes(b'x' * 20_000)
            until(lambda: told.changes != [], 'the report')
            assert told.changes == [(False, f'{folder}: {FULL}')]
            filler.unlink()
            log.close('s1')
        report = verify(folder)
        assert report.ok
        assert all(not log.faults for log in report.logs)
    finally:
        subprocess.run(['umount', '-l', str(folder)], check=True, timeout=10)


def test_the_device_that_is_always_full(tmp_path: Path) -> None:
    class Full(DiskFile):
        def __init__(self, path: Path) -> None:
            self._fd = os.open('/dev/full', os.O_WRONLY | os.O_CLOEXEC)

    told = Told()
    with running(tmp_path, told, opener=Full) as log:
        log.open('s1', 0, {})
        log.close('s1')
        until(lambda: told.changes != [], 'the report')
    assert told.changes == [(False, f'{tmp_path}: {FULL}')]
