"""A stall is told after the time that counts, which speed scaling stretches and nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest

from awp_ros_bridge.ros.stall_clock import NOTHING_HEARD, ScaledTime, StallClock

MS = 1_000_000
BEGUN_NS = 5_000 * MS
TURN_MS = 50
LIMIT_MS = 1_000


class Goal:
    """A goal on a clock of its own, looked at every 50 ms."""

    def __init__(self, full: float = 100.0, stale_ms: int | None = None) -> None:
        self.time = ScaledTime(full, None if stale_ms is None else stale_ms * MS, BEGUN_NS)
        self.clock = StallClock(LIMIT_MS * MS)
        self.now_ms = 0
        self.told: list[tuple[int, int, int]] = []

    def hear(self, value: Any) -> None:
        self.time.hear(value, BEGUN_NS + self.now_ms * MS)

    def run(self, span_ms: int, rests: bool = True, progress: float | None = 0.5) -> None:
        """Let time pass; what is told is kept with its moment."""
        ends_ms = self.now_ms + span_ms
        while self.now_ms < ends_ms:
            self.now_ms += TURN_MS
            now_ns = BEGUN_NS + self.now_ms * MS
            stood = self.clock.look(now_ns, self.time.counted_ns(now_ns), rests, progress)
            if stood is not None:
                self.told.append((self.now_ms, stood[0] // MS, stood[1] // MS))


@pytest.mark.parametrize(
    ('scaling', 'after_ms'),
    [(100.0, 1_000), (50.0, 2_000), (25, 4_000), (10.0, 10_000), (250.0, 1_000)],
)
def test_a_stall_is_told_once_when_the_time_that_counts_is_over(
    scaling: float, after_ms: int
) -> None:
    goal = Goal()
    goal.hear(scaling)
    goal.run(after_ms)
    assert goal.told == []
    goal.run(3 * after_ms)
    # counted from the first look
    assert goal.told == [(after_ms + TURN_MS, after_ms, LIMIT_MS)]


@pytest.mark.parametrize('scaling', [0.0, 0, -20.0])
def test_at_no_speed_nothing_is_a_stall(scaling: float) -> None:
    goal = Goal()
    goal.hear(scaling)
    goal.run(600_000)
    assert goal.told == []
    goal.hear(100.0)
    goal.run(LIMIT_MS - TURN_MS)
    assert goal.told == []
    goal.run(TURN_MS * 2)
    assert len(goal.told) == 1


def test_changes_midway_count_from_their_moment() -> None:
    goal = Goal(full=1.0)
    goal.hear(1.0)
    goal.run(TURN_MS + 400)  # 400 ms
    goal.hear(0.0)
    goal.run(5_000)
    goal.hear(0.5)
    goal.run(800)  # 400 ms
    assert goal.told == []
    goal.hear(1.0)
    goal.run(400)
    assert goal.told == [(TURN_MS + 6_400, 6_400, LIMIT_MS)]


@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf, True, 'slow', None])
def test_what_is_no_finite_number_counts_as_full_speed_and_is_said(value: object) -> None:
    goal = Goal()
    goal.hear(0.0)
    goal.run(3_000)
    assert goal.time.trouble is None
    goal.hear(value)
    assert goal.time.trouble == 'its value is no finite number'
    assert goal.time.share == 1.0
    goal.run(LIMIT_MS)
    assert len(goal.told) == 1


def test_while_nothing_was_heard_all_time_counts() -> None:
    goal = Goal()
    assert goal.time.trouble == NOTHING_HEARD
    goal.run(LIMIT_MS + TURN_MS)
    assert len(goal.told) == 1


def test_silence_counts_as_full_speed_from_its_limit_on_and_not_before() -> None:
    goal = Goal(stale_ms=700)
    goal.run(TURN_MS)
    goal.hear(0.0)
    goal.run(700 + LIMIT_MS - TURN_MS)
    assert goal.told == []
    assert goal.time.trouble == 'silent for more than 700 ms'
    goal.run(TURN_MS)
    assert [row[2] for row in goal.told] == [LIMIT_MS]
    goal.hear(50.0)
    assert (goal.time.share, goal.time.trouble) == (0.5, None)


def test_a_body_that_moves_stalls_never_and_its_rest_counts_from_its_beginning() -> None:
    goal = Goal()
    goal.run(10_000, rests=False)
    goal.run(LIMIT_MS - TURN_MS)
    assert goal.told == []
    goal.run(TURN_MS)
    assert [row[1] for row in goal.told] == [LIMIT_MS]


def test_progress_is_no_stall_but_its_noise_is() -> None:
    goal = Goal()
    for number in range(20):  # a pause of a trajectory: nothing moves, its time goes on
        goal.run(500, progress=0.002 * number)
    assert goal.told == []
    for number in range(20):
        goal.run(TURN_MS, progress=0.038 + (0.0008 if number % 2 else -0.0008))
    assert len(goal.told) == 1


def test_time_that_goes_back_counts_nothing() -> None:
    time = ScaledTime(1.0, None, BEGUN_NS)
    before = time.counted_ns(BEGUN_NS + 10 * MS)
    assert time.counted_ns(BEGUN_NS) == before
