"""Leases and goals of the bridges that a guardian hears, without ROS or clock."""

from __future__ import annotations

from awp_ros_bridge.guardian.wards import FORGET_NS, MOST_WARDS, Ward, Wards
from awp_ros_bridge.ros.guardian_words import Beat, GuardedGoal, Kind

MS = 1_000_000
LEASE_NS = 300 * MS
GOAL = GuardedGoal('61777062' + 'ab' * 12, '/arm/move', True)
A, B = 'aaaaaaaa', 'bbbbbbbb'


def wards() -> Wards:
    return Wards('same', LEASE_NS)


def said(
    seq: int,
    kind: Kind = Kind.BEAT,
    *goals: GuardedGoal,
    of: str = A,
    age_ms: int = 0,
    digest: str = 'same',
) -> Beat:
    return Beat(of, seq, kind, digest, age_ms, goals)


def test_a_lease_ends_exactly_after_the_last_beat() -> None:
    heard = wards()
    assert heard.next_ns() is None
    assert isinstance(heard.take(said(1, Kind.BEAT, GOAL), 0), Ward)
    assert heard.take(said(2, Kind.BEAT, GOAL), 50 * MS) is None
    assert heard.next_ns() == 350 * MS
    assert heard.expire(350 * MS - 1) == []
    ended = heard.expire(350 * MS)
    assert [list(ward.goals.values()) for ward in ended] == [[GOAL]]
    assert not ended[0].is_idle
    assert heard.expire(10_000 * MS) == []
    assert heard.next_ns() is None


def test_the_lease_counts_from_when_the_threads_turned() -> None:
    heard = wards()
    heard.take(said(1), 0)
    heard.take(said(2, age_ms=30), 50 * MS)
    assert heard.next_ns() == 320 * MS
    heard.take(said(3, age_ms=130), 100 * MS)  # vouches for an earlier time than was known
    assert heard.next_ns() == 320 * MS


def test_a_notice_says_what_is_under_way_and_renews_nothing() -> None:
    heard = wards()
    heard.take(said(1), 0)
    heard.take(said(2, Kind.GOALS, GOAL), 200 * MS)
    [ended] = heard.expire(300 * MS)
    assert GOAL.goal_id in ended.goals


def test_a_notice_without_any_beat_has_a_lease_of_its_own() -> None:
    heard = wards()
    assert heard.take(said(1, Kind.GOALS, GOAL), 7 * MS) is not None
    assert heard.next_ns() == 307 * MS
    assert len(heard.expire(307 * MS)) == 1
    assert heard.take(said(2, Kind.GOALS, GOAL), 400 * MS) is not None
    assert len(heard.expire(700 * MS)) == 1


def test_a_word_that_was_overtaken_counts_for_nothing() -> None:
    heard = wards()
    heard.take(said(1), 0)
    heard.take(said(3, Kind.GOALS, GOAL), 10 * MS)
    heard.take(said(2), 20 * MS)
    [ended] = heard.expire(300 * MS)
    assert list(ended.goals) == [GOAL.goal_id]


def test_a_goodbye_ends_the_guarding_for_good() -> None:
    heard = wards()
    heard.take(said(1, Kind.BEAT, GOAL), 0)
    heard.take(said(2, Kind.GOODBYE), 10 * MS)
    assert heard.guarded == []
    assert heard.expire(10_000 * MS) == []
    assert heard.answers() == {}
    assert heard.take(said(9, Kind.GOODBYE, of=B), 0) is None
    assert heard.answers() == {}


def test_a_bridge_that_beats_again_is_told_how_often_it_was_stopped() -> None:
    heard = wards()
    heard.take(said(1, Kind.BEAT, GOAL), 0)
    heard.expire(300 * MS)
    assert heard.answers()[A].stops == 1
    again = heard.take(said(2), 2_000 * MS)
    assert again is not None
    assert again.is_guarded
    answer = heard.answers()[A]
    assert (answer.seq, answer.stops, answer.problem) == (2, 1, '')


def test_bridges_have_leases_of_their_own() -> None:
    heard = wards()
    heard.take(said(1, Kind.BEAT, GOAL), 0)
    heard.take(said(1, of=B), 100 * MS)
    assert [ward.instance for ward in heard.expire(300 * MS)] == [A]
    assert [ward.instance for ward in heard.guarded] == [B]


def test_a_bridge_with_other_servers_is_guarded_and_told() -> None:
    heard = wards()
    ward = heard.take(said(1, Kind.BEAT, GOAL, digest='other'), 0)
    assert ward is not None
    assert 'other action servers' in heard.problem_of(ward)
    assert '--config' in heard.answers()[A].problem
    assert len(heard.expire(300 * MS)) == 1


def test_bridges_that_are_gone_are_forgotten_and_their_number_is_bounded() -> None:
    heard = wards()
    heard.take(said(1), 0)
    heard.expire(300 * MS)
    heard.take(said(1, of=B), FORGET_NS + 1)
    assert set(heard.answers()) == {B}
    for number in range(3 * MOST_WARDS):
        heard.take(said(1, of=f'{number:08x}'), FORGET_NS + 2)
    assert len(heard.answers()) <= MOST_WARDS
