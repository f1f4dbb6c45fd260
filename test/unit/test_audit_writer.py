"""Tests the audit log on disks that work: shape, chain, parts, order, times, quota."""

from functools import partial
import hashlib
import json
from pathlib import Path
import stat
import threading
import time
from types import SimpleNamespace

from audit_disk import all_records, Disk, files, kinds, PATIENCE_S, records, running, Told, until
import pytest

from awp_ros_bridge.audit import AuditLog, verify
from awp_ros_bridge.audit.files import DiskFile, enforce_quota, log_files, log_name, used_bytes
from awp_ros_bridge.audit.intake import Intake


def test_a_session_becomes_one_file_of_chained_records(tmp_path: Path) -> None:
    with running(tmp_path) as log:
        log.open('s1', 10, {'manifest': {'a': 'ä'}, 'granted': {}})
        log.record('s1', 20, 'agent', 'message', {'method': 'ping'})
        log.frame('s1', 30, {'channel': 'proprio', 'seq': 1}, b'payload')
        log.record('s1', 40, 'world', 'status', {'state': 'executing'})
        log.close('s1')
    (path,) = files(tmp_path)
    raw = path.read_bytes()
    assert raw.isascii()
    assert raw.endswith(b'\n')
    lines = raw.splitlines()
    found = records(path)
    assert found[0]['class'] == 'audit_record'  # AWP-AUD-007
    assert [each.get('class') for each in found[1:]] == [None] * 4
    assert [(each['ts_mono_ns'], each['direction'], each['kind']) for each in found] == [
        (10, 'world', 'session'),
        (20, 'agent', 'message'),
        (30, 'world', 'frame'),
        (40, 'world', 'status'),
        (40, 'world', 'end'),
    ]
    assert found[0]['body'] == {'session_id': 's1', 'manifest': {'a': 'ä'}, 'granted': {}}
    assert found[2]['body'] == {
        'channel': 'proprio',
        'seq': 1,
        'payload_sha256': hashlib.sha256(b'payload').hexdigest(),
    }
    hashes = [None, *(hashlib.sha256(line).hexdigest() for line in lines)]  # AWP-AUD-003
    assert [each['prev_hash'] for each in found] == hashes[:-1]
    report = verify(path)
    assert report.ok
    assert report.logs[0].finished
    assert report.logs[0].head == hashes[-1]


def test_a_payload_is_hashed_once_for_all_sessions_that_saw_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[bytes] = []

    def sha256(data: bytes) -> object:
        hashed.append(data)
        return hashlib.sha256(data)

    monkeypatch.setattr('awp_ros_bridge.audit.writer.hashlib', SimpleNamespace(sha256=sha256))
    first, second = b'a' * 1000, b'b' * 1000
    intake = Intake()
    taken = threading.Event()  # everything waits until the writer may begin
    wait = intake.wait
    monkeypatch.setattr(intake, 'wait', lambda *a: (taken.wait(PATIENCE_S), wait(*a)))
    with running(tmp_path, intake=intake) as log:
        for number in range(5):
            log.open(f's{number}', 0, {})
            log.frame(f's{number}', 1, {}, first)
            log.frame(f's{number}', 2, {}, second)
        for number in range(5):
            log.close(f's{number}')
        taken.set()
    assert hashed == [first, second]
    digests = [each['body']['payload_sha256'] for each in all_records(tmp_path)
               if each['kind'] == 'frame']  # fmt: skip
    assert digests == [hashlib.sha256(p).hexdigest() for p in (first, second)] * 5


def test_files_are_flat_named_by_time_and_session_and_private(tmp_path: Path) -> None:
    folder = tmp_path / 'new' / 'audit'
    with running(folder) as log:
        log.open('a/../b c', 0, {})
        log.close('a/../b c')
    (path,) = folder.iterdir()
    assert path.name.endswith('Z_a----b-c.jsonl')
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert log_name(0.5, 'id') == '19700101T000000.500Z_id'
    assert log_name(0.0, '') == '19700101T000000.000Z_-'


def test_secrets_do_not_reach_the_disk(tmp_path: Path) -> None:
    with running(tmp_path, redact_paths=['/note']) as log:
        log.open('s1', 0, {'session_token': 'S3CRET1'})
        log.record('s1', 1, 'agent', 'message', {'params': {'note': 'S3CRET2'}})
        log.record('s1', 1, 'agent', 'message', {'authorization': 'Bearer S3CRET3'})
        log.close('s1')
    assert b'S3CRET' not in files(tmp_path)[0].read_bytes()


def has_end(folder: Path, name: str) -> bool:
    return any(
        path.stem.endswith(f'_{name}') and b'"kind":"end"' in path.read_bytes()
        for path in files(folder)
    )


def test_a_close_is_on_disk_within_its_time(tmp_path: Path) -> None:
    disk = Disk()
    with running(tmp_path, opener=disk.open) as log:
        log.open('s1', 0, {})
        until(lambda: bool(files(tmp_path)), 'the first batch')
        took_s = []
        for n in range(5):
            name = f'n{n}'
            log.open(name, 0, {})
            began = time.monotonic()
            log.close(name)
            until(partial(has_end, tmp_path, name), 'the end record')
            took_s.append(time.monotonic() - began)
    assert min(took_s) < 0.3, took_s
    assert disk.syncs >= 6


def test_what_is_recorded_is_on_disk_soon_without_a_close(tmp_path: Path) -> None:
    with running(tmp_path) as log:
        log.open('s1', 0, {})
        until(lambda: kinds(tmp_path) == ['session'], 'the first record')
        began = time.monotonic()
        log.record('s1', 1, 'agent', 'message', {})
        until(lambda: kinds(tmp_path) == ['session', 'message'], 'the second record')
        assert time.monotonic() - began < PATIENCE_S / 4


def test_a_long_log_goes_on_in_parts_with_one_chain(tmp_path: Path) -> None:
    with running(tmp_path, max_file_bytes=4000) as log:
        log.open('s1', 0, {})
        for n in range(1, 60):
            log.record('s1', n, 'agent', 'message', {'n': n, 'pad': 'x' * 100})
        log.close('s1')
    parts = files(tmp_path)
    assert len(parts) > 2
    assert [path.name.split('.')[2] for path in parts[1:]] == [
        str(n) for n in range(2, len(parts) + 1)
    ]
    assert all(path.stat().st_size <= 4000 for path in parts)
    previous = None
    for number, path in enumerate(parts, start=1):
        first = records(path)[0]
        assert first['class'] == 'audit_record'
        assert first['prev_hash'] == previous
        if number > 1:
            assert first['kind'] == 'part'
            assert first['body'] == {
                'session_id': 's1',
                'part': number,
                'continues': parts[number - 2].name,
            }
            assert first['ts_mono_ns'] == records(path)[1]['ts_mono_ns']
        previous = hashlib.sha256(path.read_bytes().splitlines()[-1]).hexdigest()
    numbers = [each['body']['n'] for each in all_records(tmp_path) if each['kind'] == 'message']
    assert numbers == list(range(1, 60))
    report = verify(tmp_path)
    assert report.ok
    assert report.logs[0].parts == len(parts)


def test_a_record_longer_than_a_file_has_a_part_of_its_own(tmp_path: Path) -> None:
    with running(tmp_path, max_file_bytes=500) as log:
        log.open('s1', 0, {})
        for n in range(3):
            log.record('s1', n, 'agent', 'message', {'pad': 'x' * 2000})
        log.close('s1')
    assert verify(tmp_path).ok
    assert kinds(tmp_path).count('message') == 3


def test_sessions_do_not_mix(tmp_path: Path) -> None:
    with running(tmp_path) as log:
        for name in ('a', 'b'):
            log.open(name, 0, {})
        for n in range(20):
            log.record('a' if n % 2 else 'b', n, 'agent', 'message', {'n': n})
        log.close('a')
        log.close('b')
    report = verify(tmp_path)
    assert report.ok
    assert sorted((each.session_id, each.records) for each in report.logs) == [
        ('a', 12),
        ('b', 12),
    ]


def test_a_session_that_opens_twice_has_two_logs(tmp_path: Path) -> None:
    with running(tmp_path) as log:
        log.open('a', 0, {})
        until(lambda: len(files(tmp_path)) == 1, 'the first log')
        log.open('a', 1, {})
        log.close('a')
    assert kinds(tmp_path) == ['session', 'end', 'session', 'end']


def test_records_without_a_log_are_dropped(tmp_path: Path) -> None:
    with running(tmp_path) as log:
        log.record('nobody', 0, 'agent', 'message', {})
        log.close('nobody')
        log.open('a', 0, {})
        log.close('a')
        log.record('a', 1, 'agent', 'message', {})
    assert kinds(tmp_path) == ['session', 'end']


def test_many_threads_record_in_their_own_order(tmp_path: Path) -> None:
    with running(tmp_path) as log:
        log.open('s1', 0, {})

        def work(thread: int) -> None:
            for n in range(200):
                log.record('s1', n, 'agent', 'message', {'thread': thread, 'n': n})

        threads = [threading.Thread(target=work, args=(each,)) for each in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        log.close('s1')
    bodies = [each['body'] for each in all_records(tmp_path) if each['kind'] == 'message']
    assert len(bodies) == 800
    for thread in range(4):
        assert [b['n'] for b in bodies if b['thread'] == thread] == list(range(200))
    assert verify(tmp_path).ok


def test_stopping_writes_what_waits_and_leaves_open_logs_without_an_end(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, max_file_bytes=10**6, quota_bytes=10**9, on_change=Told())
    log.open('s1', 0, {})
    log.record('s1', 1, 'agent', 'message', {})
    assert log.stop(PATIENCE_S)
    assert kinds(tmp_path) == ['session', 'message']
    report = verify(tmp_path)
    assert report.ok
    assert not report.logs[0].finished
    log.record('s1', 2, 'agent', 'message', {})  # too late, and no error
    assert log.stop(PATIENCE_S)


def test_nobody_waits_for_a_disk_that_hangs(tmp_path: Path) -> None:
    disk = Disk()
    told = Told()
    log = AuditLog(
        tmp_path, max_file_bytes=10**6, quota_bytes=10**9, on_change=told, opener=disk.open
    )
    disk.hold.clear()
    log.open('s1', 0, {})
    until(lambda: disk.writes == 1, 'the write that hangs')
    began = time.monotonic()
    for n in range(1000):
        log.record('s1', n, 'agent', 'message', {'n': n})
    log.close('s1')
    assert time.monotonic() - began < 1.0
    assert not log.stop(0.01)
    disk.hold.set()
    assert log.stop(PATIENCE_S)
    assert kinds(tmp_path).count('message') == 1000


# ---------------------------------------------------------------- quota


def some_log(folder: Path, name: str, size: int) -> Path:
    path = folder / f'{name}.jsonl'
    path.write_bytes(b'x' * size)
    return path


def test_the_oldest_closed_logs_go_when_the_quota_is_used_up(tmp_path: Path) -> None:
    old = some_log(tmp_path, '20200101T000000.000Z_old', 3000)
    older = some_log(tmp_path, '20190101T000000.000Z_older', 3000)
    foreign = tmp_path / 'notes.txt'
    foreign.write_bytes(b'x' * 5000)
    with running(tmp_path, quota_bytes=6000) as log:
        log.open('s1', 0, {'pad': 'x' * 1000})
        until(lambda: not older.exists(), 'the oldest to go')
        log.close('s1')
    assert old.exists()
    assert foreign.exists()
    assert len(files(tmp_path)) == 2


def test_a_quota_that_is_used_up_at_the_start_is_kept_at_once(tmp_path: Path) -> None:
    old = some_log(tmp_path, '20200101T000000.000Z_old', 3000)
    with running(tmp_path, quota_bytes=2000):
        until(lambda: not old.exists(), 'the old log to go')


def test_an_open_log_is_never_removed(tmp_path: Path) -> None:
    with running(tmp_path, quota_bytes=100) as log:
        log.open('s1', 0, {'pad': 'x' * 5000})
        until(lambda: bool(files(tmp_path)), 'the file')
        log.open('s2', 0, {})
        log.close('s2')
        until(lambda: len(files(tmp_path)) == 1, 'the closed log to go')
        assert files(tmp_path)[0].stem.endswith('_s1')
        log.close('s1')


def test_closed_parts_of_a_growing_log_go_last(tmp_path: Path) -> None:
    growing = '20190101T000000.000Z_growing'
    closed_part = some_log(tmp_path, growing, 1000)
    open_part = some_log(tmp_path, f'{growing}.2', 1000)
    over = some_log(tmp_path, '20200101T000000.000Z_over', 1000)
    assert used_bytes(tmp_path) == 3000
    left = enforce_quota(tmp_path, 2000, {open_part}, {growing})
    assert left == 2000
    assert not over.exists()
    assert enforce_quota(tmp_path, 500, {open_part}, {growing}) == 1000
    assert not closed_part.exists()
    assert open_part.exists()


def test_a_file_that_another_process_holds_open_stays(tmp_path: Path) -> None:
    path = tmp_path / '20200101T000000.000Z_held.jsonl'
    held = DiskFile(path)
    held.append(b'x' * 100)
    assert enforce_quota(tmp_path, 10, (), ()) == 100
    held.close()
    assert enforce_quota(tmp_path, 10, (), ()) == 0


def test_a_folder_that_is_not_there_uses_nothing(tmp_path: Path) -> None:
    assert used_bytes(tmp_path / 'no') == 0
    assert enforce_quota(tmp_path / 'no', 0, (), ()) == 0


def test_a_file_that_vanished_is_not_removed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = some_log(tmp_path, '20200101T000000.000Z_gone', 100)
    found = log_files(tmp_path)
    monkeypatch.setattr('awp_ros_bridge.audit.files._sizes', lambda _: [(found[0], 100)])
    path.unlink()
    assert enforce_quota(tmp_path, 10, (), ()) == 100


def test_a_new_file_never_takes_the_place_of_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / 'x.jsonl'
    DiskFile(path).close()
    with pytest.raises(FileExistsError):
        DiskFile(path)


def test_lines_can_be_read_by_any_json_reader(tmp_path: Path) -> None:
    with running(tmp_path) as log:
        log.open('s1', 0, {})
        log.record('s1', 1, 'agent', 'message', {'text': '\u2028\x00"\\', 'n': 2**53})
        log.close('s1')
    (path,) = files(tmp_path)
    with path.open(encoding='ascii') as stream:
        bodies = [json.loads(line)['body'] for line in stream]
    assert bodies[1] == {'text': '\u2028\x00"\\', 'n': 2**53}
