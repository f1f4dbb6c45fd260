"""Log lines leave the process without holding up who writes them."""

from __future__ import annotations

from collections.abc import Iterator
import io
import logging
import threading
import time

import pytest

from awp_ros_bridge.process.logs import LogWriter

log = logging.getLogger('awp_ros_bridge.test_logs')


class StuckStream(io.StringIO):
    """A stream whose reader is away until a test says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = threading.Event()
        self.is_reached = threading.Event()

    def write(self, text: str) -> int:
        self.is_reached.set()
        self.is_read.wait(10.0)
        return super().write(text)


@pytest.fixture
def stream() -> Iterator[StuckStream]:
    made = StuckStream()
    yield made
    made.is_read.set()


def test_lines_are_written_in_order_and_finished(stream: StuckStream) -> None:
    stream.is_read.set()
    writer = LogWriter(stream)
    writer.start('INFO')
    try:
        for number in range(100):
            log.info('line %d', number)
        log.debug('not this one')
        try:
            raise ValueError('with its trace')
        except ValueError:
            log.exception('a fault')
    finally:
        assert writer.finish(5.0)
    text = stream.getvalue()
    assert [line.rsplit(' ', 1)[1] for line in text.splitlines()[:100]] == [
        str(n) for n in range(100)
    ]
    assert 'INFO awp_ros_bridge.test_logs: line 0' in text
    assert 'ValueError: with its trace' in text
    assert 'not this one' not in text


def test_nobody_waits_for_a_reader_that_is_away_and_lost_lines_are_counted(
    stream: StuckStream,
) -> None:
    writer = LogWriter(stream, most_waiting=10)
    writer.start('INFO')
    begun_s = time.monotonic()
    log.info('first')
    assert stream.is_reached.wait(5.0)
    for number in range(50):
        log.info('line %d', number)
    assert time.monotonic() - begun_s < 2.0
    assert not writer.finish(0.01)  # bounded, whoever is away
    stream.is_read.set()
    for _ in range(500):
        if '40 log lines are lost' in stream.getvalue():
            break
        time.sleep(0.01)
    text = stream.getvalue()
    assert '40 log lines are lost' in text
    assert text.count('are lost') == 1


def test_finishing_gives_the_root_logger_back() -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    writer = LogWriter(io.StringIO())
    writer.start('ERROR')
    assert root.level == logging.ERROR
    assert writer.finish(5.0)
    assert (root.level, list(root.handlers)) == before
    log.error('nobody writes this any more')
