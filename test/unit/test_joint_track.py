"""Joint states as velocities and as rest: told or differenced, finite or left out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from awp_ros_bridge.ros.joint_track import RestTrack

MS = 1_000_000
NAN = float('nan')


def sample(**arrays: Any) -> SimpleNamespace:
    fields: dict[str, Any] = {'name': ['a', 'b'], 'position': [0.0, 1.0], 'velocity': [0.5, -0.1]}
    return SimpleNamespace(**(fields | arrays))


def test_nothing_is_known_before_the_first_sample() -> None:
    assert RestTrack(None, 0.01).velocities() == {}
    assert RestTrack(['a', 'b'], 0.01).velocities() == {}


def test_velocities_are_the_newest_that_were_told() -> None:
    track = RestTrack(['b'], 0.01)
    track.take(1 * MS, sample())
    assert track.velocities() == {'b': -0.1}
    track.take(2 * MS, sample(name=['a'], position=[9.0], velocity=[9.0]))
    assert track.velocities() == {'b': -0.1}
    track.take(3 * MS, sample(velocity=[0.5, 0.2]))
    assert track.velocities() == {'b': 0.2}


@pytest.mark.parametrize('value', [NAN, float('inf'), -float('inf')])
def test_what_is_not_finite_is_left_out(value: float) -> None:
    track = RestTrack(None, 0.01)
    track.take(1 * MS, sample(velocity=[value, 0.2]))
    assert track.velocities() == {'b': 0.2}


def test_a_message_that_does_not_fit_tells_no_velocity() -> None:
    track = RestTrack(None, 0.01)
    track.take(1 * MS, sample())
    track.take(2 * MS, sample(velocity=[0.5]))
    assert track.velocities() == {}
    track.take(3 * MS, sample())
    assert track.velocities() == {'a': 0.5, 'b': -0.1}


def test_positions_are_differenced_where_no_velocity_is_told() -> None:
    track = RestTrack(None, 0.01)
    track.take(1 * MS, sample(velocity=[]))
    track.take(11 * MS, sample(position=[0.01, 1.0], velocity=[]))
    assert track.velocities() == {}
    track.take(31 * MS, sample(position=[0.03, 0.97], velocity=[]))
    assert track.velocities() == pytest.approx({'a': 1.0, 'b': -1.0})
    track.take(41 * MS, sample(position=[0.03, 0.97], velocity=[]))
    assert track.velocities() == pytest.approx({'a': 1.0, 'b': -1.0})


# ---------------------------------------------------------------- rest


def still(track: RestTrack, *times_ms: int, velocity: float = 0.0) -> None:
    for at_ms in times_ms:
        track.take(at_ms * MS, sample(velocity=[velocity, 0.0]))


def test_rest_takes_three_slow_samples_of_every_joint_over_the_whole_span() -> None:
    track = RestTrack(['a', 'b'], 0.01)
    assert not track.rests(0, 50 * MS)
    still(track, 10, 20)
    assert not track.rests(0, 0)
    still(track, 30)
    assert not track.rests(0, 50 * MS)
    still(track, 60)
    assert track.rests(0, 50 * MS)
    still(track, 70, velocity=0.02)
    assert not track.rests(0, 50 * MS)


def test_samples_from_before_the_question_prove_no_rest() -> None:
    track = RestTrack(['a', 'b'], 0.01)
    still(track, 10, 20, 30, 40)
    assert not track.rests(35 * MS, 0)
    still(track, 50, 60, 70)
    assert track.rests(35 * MS, 20 * MS)


@pytest.mark.parametrize('value', [NAN, float('inf')])
def test_a_velocity_that_is_no_number_is_no_rest_and_forbids_motion(value: float) -> None:
    track = RestTrack(['a', 'b'], 0.01)
    still(track, 10, 20, 30, velocity=value)
    assert not track.rests(0, 0)
    assert track.unsafe(40 * MS, 500 * MS) == 'joint a: not finite'
