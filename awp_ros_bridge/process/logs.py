"""
Owns the way of log lines out of the process: whoever logs never waits for who reads.

A terminal that was paused, or a pipe that nobody empties, blocks a write for good. The bridge logs
on the thread that stops the robot and on the loop whose beats keep it moving, so the writing is
done by a thread of its own, behind a bounded queue.
"""

from __future__ import annotations

import logging
from logging.handlers import QueueHandler
import queue
import threading
from typing import TextIO

MOST_WAITING = 10_000
FORMAT = '%(asctime)s %(levelname)s %(name)s: %(message)s'


class LogWriter(QueueHandler):
    """
    Takes the records of all loggers and writes them on a daemon thread.

    Lines that find no place are counted, and the count is written when there is place again.

    :param stream: where the lines go.
    """

    def __init__(self, stream: TextIO, most_waiting: int = MOST_WAITING) -> None:
        waiting: queue.Queue[logging.LogRecord | None] = queue.Queue(most_waiting)
        super().__init__(waiting)
        self._waiting = waiting
        self._out = logging.StreamHandler(stream)
        self._out.setFormatter(logging.Formatter(FORMAT))
        self._lost = 0
        self._thread = threading.Thread(target=self._write, name='log', daemon=True)
        self._level_before = logging.WARNING

    def start(self, level: str) -> None:
        """Begin to take what is logged at a level or above."""
        root = logging.getLogger()
        self._level_before = root.level
        root.addHandler(self)
        root.setLevel(level)
        self._thread.start()

    def enqueue(self, record: logging.LogRecord) -> None:
        """Hand a record over, or count it as lost."""
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self._lost += 1

    def finish(self, timeout_s: float) -> bool:
        """Take nothing more and write what waits; tell whether that was done in time."""
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self._level_before)
        try:
            self._waiting.put(None, timeout=timeout_s)
        except queue.Full:
            return False
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _write(self) -> None:
        while (record := self._waiting.get()) is not None:
            self._out.handle(record)
            if self._lost:
                self._out.handle(self._confession())

    def _confession(self) -> logging.LogRecord:
        lost, self._lost = self._lost, 0
        text = f'{lost} log lines are lost: they came faster than they could be written'
        return logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, None, None)
