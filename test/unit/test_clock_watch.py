"""What the readings of the ROS clock mean: it runs, stands still, was never heard, jumps."""

from __future__ import annotations

import pytest

pytest.importorskip('rclpy', reason='the module lies beside those that need ROS')

from awp_ros_bridge.ros.clock_watch import ClockJudge

MS = 1_000_000
START_NS = 50_000 * MS


def readings(*rows: tuple[int, int]) -> tuple[ClockJudge, list[str]]:
    """Give readings in ms of steady and of ROS time; return the judge and the jumps it told."""
    judge = ClockJudge()
    told = [judge.look(START_NS + steady * MS, ros * MS) for steady, ros in rows]
    return judge, [text for text in told if text is not None]


def test_a_clock_that_runs_is_no_trouble_at_any_pace() -> None:
    for pace in (0.02, 1.0, 15.0):
        rows = [(t, int(7_000 + t * pace)) for t in range(0, 10_000, 500)]
        judge, jumps = readings(*rows)
        assert (judge.trouble, jumps) == (None, [])


def test_a_clock_that_stands_is_told_with_its_time_and_recovers() -> None:
    judge, jumps = readings((0, 7_000), (500, 7_000), (1_000, 7_000))
    assert judge.trouble == 'the ROS clock stands at 7.000 s (for 1000 ms)'
    judge.look(START_NS + 1_500 * MS, 7_400 * MS)
    assert judge.trouble is None
    assert not jumps


def test_a_clock_that_never_starts_is_told_and_its_start_is_no_jump() -> None:
    judge, _ = readings((0, 0), (500, 0), (1_500, 0))
    assert judge.trouble == 'the ROS clock was not heard yet (for 1500 ms)'
    assert judge.look(START_NS + 2_000 * MS, 900_000 * MS) is None
    assert judge.trouble is None


@pytest.mark.parametrize(('to_ms', 'said'), [(2_000, '-5.500 s'), (60_000, '+52.500 s')])
def test_a_jump_is_told_with_its_width(to_ms: int, said: str) -> None:
    _, (jump,) = readings((0, 7_000), (500, 7_500), (1_000, to_ms))
    assert said in jump
