"""The judgement of measured values: violations, rest, the way back; speeds of places."""

from __future__ import annotations

import math

import pytest

from awp_ros_bridge.ros.limit_judge import (
    FORCE,
    LimitJudge,
    outside_m,
    SPATIAL,
    SpeedOfPlace,
    VELOCITY,
)

MS = 1_000_000
BOX = ((-0.5, -0.5, 0.0), (0.5, 0.5, 0.8))


def box_judge() -> LimitJudge:
    return LimitJudge(SPATIAL, 0.0, 0.01)


def test_what_is_within_bound_and_tolerance_is_no_violation() -> None:
    judge = LimitJudge(VELOCITY, 0.5, 0.05)
    assert not any(judge.take(v) for v in (0.0, 0.5, 0.55, 0.2))
    assert not judge.is_engaged


def test_one_value_beyond_is_a_violation_once_until_rest() -> None:
    judge = LimitJudge(VELOCITY, 0.5, 0.05)
    assert judge.take(0.551)
    assert judge.is_engaged
    assert not judge.take(0.9), 'the same violation'
    assert not judge.take(0.1)
    assert judge.is_engaged, 'back within, but not at rest'
    judge.settle(0.0)
    assert not judge.is_engaged
    assert judge.take(0.56)


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_a_value_that_is_no_number_is_a_violation(value: float) -> None:
    assert box_judge().take(value)


def test_a_body_at_rest_outside_may_come_back_but_not_go_farther() -> None:
    judge = box_judge()
    assert judge.take(0.2)
    judge.settle(0.2)
    assert not judge.take(0.205), 'within the tolerance of where it rests'
    assert not judge.take(0.12)
    assert not judge.take(0.125)
    assert judge.take(0.14), 'it came back to 0.12 and goes out again'


def test_a_body_that_came_back_has_its_usual_limit_again() -> None:
    judge = box_judge()
    judge.take(0.2)
    judge.settle(0.2)
    for value in (0.15, 0.05, 0.0):
        assert not judge.take(value)
    assert judge.allowed == 0.01
    assert judge.take(0.011)


def test_each_push_farther_out_is_told() -> None:
    judge = box_judge()
    for reach in (0.1, 0.2, 0.3):
        assert judge.take(reach)
        judge.settle(reach)


def test_force_of_a_body_that_presses_at_rest_may_only_shrink() -> None:
    judge = LimitJudge(FORCE, 50.0, 5.0)
    assert judge.take(80.0)
    judge.settle(80.0)
    assert not judge.take(84.0)
    assert judge.take(90.0)


def test_words_name_value_bound_tolerance_and_place() -> None:
    judge = LimitJudge(VELOCITY, 0.5, 0.05)
    assert judge.words(0.61234, '') == (
        '0.6123 m/s, the limit max_velocity_mps is 0.5 m/s (tolerated 0.05 m/s)'
    )
    said = box_judge().words(0.0214, "tip at (0.521, 0.000, 0.400) m in frame 'base'")
    assert said == (
        'the tip is 0.0214 m outside the box (tolerated 0.01 m), '
        "tip at (0.521, 0.000, 0.400) m in frame 'base'"
    )


@pytest.mark.parametrize(
    ('place', 'expected'),
    [
        ((0.0, 0.0, 0.4), 0.0),
        ((0.5, -0.5, 0.8), 0.0),
        ((0.53, 0.0, 0.4), 0.03),
        ((0.53, 0.6, 0.4), 0.1),
        ((0.0, 0.0, -0.02), 0.02),
        ((-0.7, 0.0, 0.4), 0.2),
    ],
)
def test_the_distance_outside_is_that_of_the_worst_axis(
    place: tuple[float, float, float], expected: float
) -> None:
    assert outside_m(place, BOX) == pytest.approx(expected)


@pytest.mark.parametrize('bad', [math.nan, math.inf, -math.inf])
def test_a_place_that_is_no_place_is_outside_everything(bad: float) -> None:
    assert math.isnan(outside_m((0.0, bad, 0.4), BOX))


# ---------------------------------------------------------------- speeds of places


def test_the_speed_is_the_way_over_the_window() -> None:
    speed = SpeedOfPlace(50 * MS)
    found = [speed.take(ms * MS, (ms * 0.001, 0.0, 0.0)) for ms in range(0, 200, 10)]
    assert found[:5] == [None] * 5
    assert found[5:] == [pytest.approx(1.0)] * 15


def test_the_noise_of_places_is_not_taken_for_speed() -> None:
    speed = SpeedOfPlace(50 * MS)
    found = [speed.take(k * 2 * MS, (0.001 * (k % 2), 0.0, 0.0)) for k in range(200)]
    assert max(v for v in found if v is not None) <= 0.001 / 0.05 + 1e-9


def test_a_repeated_stamp_repeats_the_speed_and_one_before_forgets_it() -> None:
    speed = SpeedOfPlace(50 * MS)
    speed.take(0, (0.0, 0.0, 0.0))
    assert speed.take(50 * MS, (0.1, 0.0, 0.0)) == pytest.approx(2.0)
    assert speed.take(50 * MS, (0.9, 0.0, 0.0)) == pytest.approx(2.0)
    assert speed.take(10 * MS, (0.1, 0.0, 0.0)) is None
    assert speed.take(60 * MS, (0.1, 0.0, 0.0)) == 0.0
