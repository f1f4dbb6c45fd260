"""
Owns the audit log of the process: one thread that writes what others only hand over.

Whoever records returns at once; hashing, redaction and the disk are the thread's work. Records
wait at most :data:`BATCH_S` before they are written and synced; a close does not wait. While the
disk takes nothing, records are kept up to a bound, then counted; the owner is told once, and once
more when it works again, and each log then says what it lacks (AWP-AUD-001).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import contextlib
import hashlib
import logging
from pathlib import Path
import threading
import time
from typing import Any

from awp_ros_bridge.audit.files import DiskFile, enforce_quota, log_name, probe, used_bytes
from awp_ros_bridge.audit.intake import Closed, Framed, Intake, Item, Opened, Recorded
from awp_ros_bridge.audit.record import Redactor, to_ascii
from awp_ros_bridge.audit.session_log import Opener, SessionLog

Json = dict[str, Any]

BATCH_S = 0.1  # together with the disk's own time below the 0.2 s that are promised
RETRY_S = 0.5
MOST_WAITING_BYTES = 32 * 1024 * 1024
MOST_UNFINISHED = 1000
_QUOTA_STEP_BYTES = 1024 * 1024
_ITEMS_PER_TURN = 32

logger = logging.getLogger(__name__)


class AuditLog:
    """
    The log of all sessions. Every public method may be called on any thread and returns at once.

    :param directory: where the files lie; made when absent.
    :param quota_bytes: size of the folder above which the oldest closed files are removed.
    :param redact_paths: JSON pointers of values that no record may hold (AWP-AUD-006).
    :param on_change: told (False, reason) when the log cannot be written, (True, '') when it can
        again; called on the writer's thread, or on a caller's when the queue is full.
    :param opener: makes the file at a path; for tests.
    :param intake: the queue in front; for tests.
    :param most_waiting_bytes: what is kept while the disk takes nothing.
    :param retry_s: pause between attempts while the disk takes nothing.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        max_file_bytes: int,
        quota_bytes: int,
        redact_paths: Sequence[str] = (),
        on_change: Callable[[bool, str], None],
        opener: Opener = DiskFile,
        intake: Intake | None = None,
        most_waiting_bytes: int = MOST_WAITING_BYTES,
        retry_s: float = RETRY_S,
    ) -> None:
        self._directory = Path(directory).expanduser()
        self._max_file_bytes = max_file_bytes
        self._quota_bytes = quota_bytes
        self._redactor = Redactor(redact_paths)
        self._on_change = on_change
        self._opener = opener
        self._intake = Intake() if intake is None else intake
        self._most_waiting_bytes = most_waiting_bytes
        self._retry_s = retry_s
        self._say_lock = threading.Lock()
        self._is_writable = True
        self._is_proven = False
        self._is_stopping = False
        self._logs: dict[str, SessionLog] = {}
        self._unfinished: list[SessionLog] = []
        self._digests: dict[int, str] = {}
        self._used_bytes = 0
        self._quota_check_bytes = quota_bytes
        self._retry_at_s: float | None = None
        self._thread = threading.Thread(target=self._run, name='awp-audit', daemon=True)
        self._thread.start()

    # ------------------------------------------------------------ callers

    def open(self, session_id: str, ts_mono_ns: int, header: Json) -> None:
        """
        Begin the log of a session.

        :param header: manifests and granted subset; must not change any more.
        """
        self._intake.put(Opened(session_id, ts_mono_ns, header, time.time()))

    def record(
        self, session_id: str, ts_mono_ns: int, direction: str, kind: str, body: Json
    ) -> None:
        """
        Add a record.

        :param direction: ``agent`` or ``world``.
        :param body: must not change any more; secrets are replaced on the way to the disk.
        """
        if not self._intake.put(Recorded(session_id, ts_mono_ns, direction, kind, body)):
            self._say(False, 'the disk does not keep up with the audit log')

    def frame(
        self,
        session_id: str,
        ts_mono_ns: int,
        header: Json,
        payload: bytes,
        direction: str = 'world',
    ) -> None:
        """Add a frame of a channel: its header, and the SHA-256 of its payload."""
        item = Framed(session_id, ts_mono_ns, direction, header, payload)
        if not self._intake.put(item, len(payload)):
            self._say(False, 'the disk does not keep up with the audit log')

    def close(self, session_id: str) -> None:
        """End the log of a session; it is on disk within 0.3 s."""
        self._intake.put(Closed(session_id))
        self._intake.hurry()

    def stop(self, timeout_s: float) -> bool:
        """
        Write what waits and end the thread.

        :returns: False when that takes longer than the limit.
        """
        self._is_stopping = True
        self._intake.hurry()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def is_writable(self) -> bool:
        """Whether the disk took what it was given last."""
        return self._is_writable

    @property
    def is_proven(self) -> bool:
        """Whether the disk was tried at all."""
        return self._is_proven

    @property
    def directory(self) -> Path:
        """Where the files lie."""
        return self._directory

    @property
    def used_bytes(self) -> int:
        """Size of the files there, as far as this log knows."""
        return self._used_bytes

    def _say(self, writable: bool, reason: str) -> None:
        with self._say_lock:
            if writable != self._is_writable:
                self._is_writable = writable
                self._on_change(writable, reason)

    # ------------------------------------------------------------ the thread

    def _run(self) -> None:
        try:
            self._begin()
            while not self._is_stopping:
                self._intake.wait(self._time_to_retry_s(), BATCH_S)
                self._work()
            self._work()
            self._release()
        finally:
            if not self._is_stopping:
                self._say(False, 'the writer of the audit log has ended')

    def _begin(self) -> None:
        failure = self._probe()
        if failure:
            self._failed(failure)
        self._used_bytes = used_bytes(self._directory)
        self._is_proven = True
        self._keep_quota()

    def _time_to_retry_s(self) -> float | None:
        if self._retry_at_s is None:
            return None
        return max(0.0, self._retry_at_s - time.monotonic())

    def _work(self) -> None:
        taken = self._intake.take()
        self._digests.clear()
        for number, item in enumerate(taken.items):
            self._take(item)
            if number % _ITEMS_PER_TURN == 0:
                time.sleep(0)  # else others get their turn from the interpreter after 5 ms only
        for session_id, count in taken.overflowed.items():
            log = self._newest_log(session_id)
            if log is not None:
                log.drop('records came faster than they were written', count)
        if self._is_stopping or not self._time_to_retry_s():
            self._write()

    def _take(self, item: Item) -> None:
        match item:
            case Opened():
                self._open(item)
            case Recorded():
                self._add(item, item.direction, item.kind, self._redactor.clean(item.body))
            case Framed():
                body = {**item.header, 'payload_sha256': self._digest(item.payload)}
                self._add(item, item.direction, 'frame', body)
            case Closed():
                self._close(item.session_id)

    def _digest(self, payload: bytes) -> str:
        """Hash a payload, once for all sessions that saw it: their items keep it alive."""
        digest = self._digests.get(id(payload))
        if digest is None:
            digest = self._digests[id(payload)] = hashlib.sha256(payload).hexdigest()
        return digest

    def _open(self, item: Opened) -> None:
        self._close(item.session_id)
        self._logs[item.session_id] = SessionLog(
            self._directory,
            log_name(item.opened_at_s, item.session_id),
            item.session_id,
            self._max_file_bytes,
            self._opener,
        )
        body = {'session_id': item.session_id, **self._redactor.clean(item.header)}
        self._add(item, 'world', 'session', body)

    def _close(self, session_id: str) -> None:
        log = self._logs.pop(session_id, None)
        if log is not None:
            self._unfinished.append(log)
        if len(self._unfinished) > MOST_UNFINISHED and self._retry_at_s is not None:
            lost = self._unfinished.pop(0)
            logger.error('audit log %s is lost: the disk takes nothing', lost.name)

    def _add(
        self, item: Opened | Recorded | Framed, direction: str, kind: str, body: Json
    ) -> None:
        log = self._logs.get(item.session_id)
        if log is None:
            logger.warning('session=%s has no audit log for a %s record', item.session_id, kind)
            return
        data = to_ascii(body)
        if log.is_dropping or not self._has_room(len(data)):
            log.drop('the disk took nothing for too long', 1)
        else:
            log.add(item.ts_mono_ns, direction, kind, data)

    def _has_room(self, size: int) -> bool:
        if self._retry_at_s is None:
            return True
        waiting = sum(log.waiting_bytes for log in self._all_logs())
        return waiting + size <= self._most_waiting_bytes

    def _all_logs(self) -> Iterator[SessionLog]:
        yield from self._logs.values()
        yield from self._unfinished

    def _newest_log(self, session_id: str) -> SessionLog | None:
        logs = [log for log in self._all_logs() if log.session_id == session_id]
        return self._logs.get(session_id) or (logs[-1] if logs else None)

    # ------------------------------------------------------------ the disk

    def _write(self) -> None:
        failure = self._write_logs()
        if not self._is_writable:  # the folder itself may have to be made again
            failure = self._probe() or (failure and self._write_logs())
        if failure:
            self._failed(failure)
        else:
            self._retry_at_s = None
            if not self._intake.has_overflowed:  # else there is a gap to write first
                self._say(True, '')
        self._keep_quota()

    def _write_logs(self) -> str:
        """Write what waits in every log; return why one could not be written."""
        failure = ''
        for log in self._logs.values():
            failure = self._write_log(log) or failure
        unfinished, self._unfinished = self._unfinished, []
        for log in unfinished:
            failure = self._finish_log(log) or failure
        return failure

    def _write_log(self, log: SessionLog) -> str:
        try:
            self._used_bytes += log.write()
            log.sync()
        except OSError as error:
            log.fail(_reason(error))
            return _reason(error)
        return ''

    def _finish_log(self, log: SessionLog) -> str:
        try:
            self._used_bytes += log.finish()
        except OSError as error:
            log.fail(_reason(error))
            self._unfinished.append(log)
            return _reason(error)
        self._quota_check_bytes = self._quota_bytes
        return ''

    def _probe(self) -> str:
        try:
            probe(self._directory)
        except OSError as error:
            return _reason(error)
        return ''

    def _failed(self, reason: str) -> None:
        self._retry_at_s = time.monotonic() + self._retry_s
        self._say(False, f'{self._directory}: {reason}')

    def _keep_quota(self) -> None:
        if self._used_bytes <= self._quota_check_bytes:
            return
        paths = {log.path for log in self._all_logs() if log.path is not None}
        names = {log.name for log in self._all_logs()}
        self._used_bytes = enforce_quota(self._directory, self._quota_bytes, paths, names)
        self._quota_check_bytes = self._quota_bytes
        if self._used_bytes > self._quota_bytes:  # all of it is open: look again a little later
            self._quota_check_bytes = self._used_bytes + _QUOTA_STEP_BYTES

    def _release(self) -> None:
        for log in self._all_logs():
            with contextlib.suppress(OSError):
                log.release()


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
