"""The counters that bound a peer, on a clock of the test."""

from __future__ import annotations

import pytest

from awp_ros_bridge.transport.limits import MinuteCounter, TokenBucket

SECOND_NS = 1_000_000_000


def test_a_burst_passes_and_then_the_rate_counts() -> None:
    bucket = TokenBucket(10.0, 5, 0)
    assert [bucket.take(0) for _ in range(5)] == [0.0] * 5
    assert bucket.take(0) == pytest.approx(0.1)
    assert bucket.take(0) == pytest.approx(0.2)
    assert bucket.take(SECOND_NS) == 0.0


def test_silence_does_not_save_up_more_than_a_burst() -> None:
    bucket = TokenBucket(10.0, 2, 0)
    late = 3600 * SECOND_NS
    assert [bucket.take(late), bucket.take(late)] == [0.0, 0.0]
    assert bucket.take(late) > 0.0


def test_keeping_the_rate_never_waits() -> None:
    bucket = TokenBucket(100.0, 1, 0)
    assert {bucket.take(n * SECOND_NS // 100) for n in range(1, 1000)} == {0.0}


def test_a_minute_counter_starts_again_after_a_minute() -> None:
    counter = MinuteCounter()
    assert [counter.add('a', 0), counter.add('a', 59 * SECOND_NS), counter.add('b', 0)] == [
        1,
        2,
        1,
    ]
    assert counter.add('a', 60 * SECOND_NS) == 1


def test_a_minute_counter_keeps_a_bounded_number_of_keys() -> None:
    counter = MinuteCounter()
    for key in range(1024):
        counter.add(key, 0)
    assert counter.add(0, 1) == 2
    counter.add('new', 1)  # forgets 1, which was quiet longest
    assert counter.add(0, 1) == 3
    assert counter.add(1, 1) == 1


def test_a_large_event_counts_as_several() -> None:
    bucket = TokenBucket(100.0, 10, 0)
    assert bucket.take(0, 10.0) == 0.0
    assert bucket.take(0, 5.0) == pytest.approx(0.05)
