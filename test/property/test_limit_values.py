"""Whatever is measured: what is beyond a limit is a violation, and nothing else is."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from awp_ros_bridge.ros.limit_judge import LimitJudge, outside_m, SPATIAL, SpeedOfPlace

VALUES = st.floats(0.0, 10.0) | st.sampled_from([math.nan, math.inf])
STEPS = st.lists(st.tuples(VALUES, st.booleans()), max_size=60)
COORDINATE = st.floats(-2.0, 2.0)
POINT = st.tuples(COORDINATE, COORDINATE, COORDINATE)
BOX = ((-0.5, -0.5, 0.0), (0.5, 0.5, 0.8))


@given(STEPS, st.floats(0.0, 1.0), st.floats(0.001, 0.5))
def test_nothing_beyond_what_rest_allowed_passes(
    steps: list[tuple[float, bool]], bound: float, tolerance: float
) -> None:
    judge = LimitJudge(SPATIAL, bound, tolerance)
    reach = bound  # the least distance since the body rested, or the bound
    for value, rests in steps:
        told = judge.take(value)
        if not judge.is_engaged:
            assert value <= max(bound, reach) + tolerance
            reach = max(bound, min(reach, value))
        assert judge.is_engaged or not told
        if judge.is_engaged and rests and math.isfinite(value):
            judge.settle(value)
            reach = max(bound, value)
        assert judge.allowed >= bound + tolerance


@given(STEPS)
def test_every_violation_is_told_once_per_rest(steps: list[tuple[float, bool]]) -> None:
    judge = LimitJudge(SPATIAL, 0.0, 0.01)
    open_violation = False
    for value, rests in steps:
        told = judge.take(value)
        assert told == (judge.is_engaged and not open_violation)
        open_violation = judge.is_engaged
        if rests and judge.is_engaged and math.isfinite(value):
            judge.settle(value)
            open_violation = False


@given(POINT, POINT, st.floats(0.0, 1.0))
def test_a_straight_way_to_a_target_inside_never_leads_farther_out(
    start: tuple[float, float, float], end: tuple[float, float, float], share: float
) -> None:
    inside = tuple(
        min(max(v, low), high) for v, low, high in zip(end, *BOX, strict=True)
    )
    between = tuple(a + share * (b - a) for a, b in zip(start, inside, strict=True))
    assert outside_m(between, BOX) <= outside_m(start, BOX) + 1e-9


@given(st.lists(st.tuples(st.integers(-50, 200), POINT), max_size=40))
def test_a_speed_is_known_and_bounded_by_the_way(
    steps: list[tuple[int, tuple[float, float, float]]],
) -> None:
    speed, stamp_ns = SpeedOfPlace(50_000_000), 10**12
    for step_ms, place in steps:
        stamp_ns += step_ms * 1_000_000
        found = speed.take(stamp_ns, place)
        assert found is None or 0.0 <= found <= math.dist((-2, -2, -2), (2, 2, 2)) / 0.05
