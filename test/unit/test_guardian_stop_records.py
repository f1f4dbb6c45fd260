"""What a guardian remembers of its stops, and what the next bridge says of them."""

from __future__ import annotations

from datetime import datetime, UTC
import logging

import pytest

from awp_ros_bridge.guardian import stop_records
from awp_ros_bridge.guardian.stop_records import MOST_STOPS, StopRecords
from awp_ros_bridge.ros.diagnosis import Level
from awp_ros_bridge.ros.guardian_words import Alive, GuardedGoal
from awp_ros_bridge.ros.stop_report import RECENT_S, StopReport
from awp_ros_bridge.ros.told_stops import ToldStops

ARM = GuardedGoal('61777062' + 'a1' * 12, '/arm/move', True)
GRIPPER = GuardedGoal('61777062' + 'b2' * 12, '/gripper/move', True)
DEAD, NEXT = 'dddddddd', 'eeeeeeee'
GUARDED = 'a guardian guards the bridge'


class Clock:
    """Steady time as the test says it."""

    def __init__(self) -> None:
        self.now_ns = 7_000_000_000

    def monotonic_ns(self) -> int:
        return self.now_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(stop_records, 'time', made)
    at = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)
    monkeypatch.setattr(stop_records, 'now_utc', lambda: at)
    return made


@pytest.fixture
def records(clock: Clock) -> StopRecords:
    return StopRecords()


def told(records: StopRecords, told: ToldStops, guardian: str = 'g') -> ToldStops:
    """Carry what the guardian tells to a bridge, as its messages do."""
    alive = Alive.from_bytes(Alive(guardian, stopped=records.reports()).to_bytes())
    told.hear(alive.guardian, alive.stopped)
    return told


def test_a_stop_is_confirmed_when_every_goal_and_step_of_it_is(
    records: StopRecords, caplog: pytest.LogCaptureFixture
) -> None:
    over: list[StopReport] = []
    records.on_over = lambda: over.extend(records.reports())
    number = records.begin(DEAD, 312, [ARM, GRIPPER])
    records.steps_begun(number, 1)
    records.goal_ended(ARM.goal_id, 'is being cancelled', is_confirmed=True)
    records.step_ended(number, None)
    [report] = records.reports()
    assert not report.is_over
    assert 'not confirmed yet' in report.text('it')
    records.goal_ended(GRIPPER.goal_id, 'had ended', is_confirmed=True)
    assert over == list(records.reports())
    assert over[0].is_confirmed
    [said] = caplog.messages
    assert said == (
        f'the guardian stopped the robot at 2026-03-04T05:06:07.089Z, when bridge {DEAD} had been '
        f'silent for 312 ms: cancelled {ARM.goal_id} on /arm/move, '
        f'{GRIPPER.goal_id} on /gripper/move: all confirmed by their servers'
    )


@pytest.mark.parametrize('what', ['goal', 'step'])
def test_a_stop_that_is_not_confirmed_names_what_was_not(
    records: StopRecords, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    number = records.begin(DEAD, 312, [ARM, GRIPPER])
    records.steps_begun(number, 1)
    records.goal_ended(ARM.goal_id, 'is being cancelled', is_confirmed=True)
    how = 'was not cancelled within 6000 ms: gripper/move did not answer'
    records.goal_ended(GRIPPER.goal_id, how, is_confirmed=what == 'step')
    records.step_ended(number, 'call_service drop: no answer' if what == 'step' else None)
    [report] = records.reports()
    assert report.is_over
    assert not report.is_confirmed
    failed = 'call_service drop: no answer' if what == 'step' else f'/gripper/move {how}'
    assert f'{failed}; look at the robot' in caplog.messages[0]
    assert ARM.goal_id not in report.verdict
    assert caplog.records[0].levelno == logging.ERROR


def test_the_newest_stops_are_remembered_with_their_age(
    records: StopRecords, clock: Clock
) -> None:
    for number in range(MOST_STOPS + 3):
        records.begin(f'{number:08x}', 300, [ARM])
        clock.now_ns += 1_000_000_000
    records.steps_begun(1, 1)  # of one that is forgotten
    records.step_ended(1, 'late')
    kept = records.reports()
    assert [report.number for report in kept] == list(range(4, MOST_STOPS + 4))
    assert [report.age_s for report in kept] == list(range(MOST_STOPS, 0, -1))
    assert not any(report.failed_steps for report in kept)


def test_a_goal_that_two_stops_ask_to_end_is_confirmed_in_both(records: StopRecords) -> None:
    records.begin(DEAD, 300, [ARM])
    records.begin(DEAD, 400, [ARM])
    records.goal_ended(ARM.goal_id, 'had ended', is_confirmed=True)
    assert [report.is_confirmed for report in records.reports()] == [True, True]


# ---------------------------------------------------------------- the bridge that comes after


def test_the_next_bridge_says_each_stop_once_and_again_when_it_is_over(
    records: StopRecords, caplog: pytest.LogCaptureFixture
) -> None:
    records.begin(DEAD, 312, [ARM])
    bridge = ToldStops(NEXT)
    for _ in range(3):
        told(records, bridge)
    [first] = [r for r in caplog.records if r.name.endswith('told_stops')]
    assert first.levelno == logging.WARNING
    assert f'when bridge {DEAD}, an earlier run, had been silent for 312 ms' in first.message
    assert f'cancelled {ARM.goal_id} on /arm/move: not confirmed yet' in first.message
    records.goal_ended(ARM.goal_id, 'refuses to cancel', is_confirmed=False)
    for _ in range(3):
        told(records, bridge)
    _, last = [r for r in caplog.records if r.name.endswith('told_stops')]
    assert last.levelno == logging.ERROR
    assert 'NOT CONFIRMED' in last.message


def test_a_second_guardian_does_not_make_the_bridge_repeat_itself(
    records: StopRecords, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    records.begin(DEAD, 312, [ARM])
    records.goal_ended(ARM.goal_id, 'had ended', is_confirmed=True)
    caplog.clear()
    bridge = ToldStops(NEXT)
    for number in range(6):
        told(records if number % 2 else StopRecords(), bridge, f'g{number % 2}')
    assert len(caplog.records) == 1


def test_diagnostics_warn_of_a_recent_stop_and_of_every_unconfirmed_one(
    records: StopRecords, clock: Clock
) -> None:
    bridge = told(records, ToldStops(NEXT))
    assert bridge.diagnosis(GUARDED).level is Level.OK
    assert bridge.diagnosis(GUARDED).message == GUARDED
    records.begin(DEAD, 312, [ARM])
    records.goal_ended(ARM.goal_id, 'had ended', is_confirmed=True)
    found = told(records, bridge).diagnosis(GUARDED)
    assert found.level is Level.WARN
    assert found.message.startswith(f'{GUARDED}; the guardian stopped the robot at 2026-03-04')
    assert found.message.endswith(found.values['stop_1'][-30:])
    clock.now_ns += RECENT_S * 1_000_000_000
    found = told(records, bridge).diagnosis(GUARDED)
    assert found.level is Level.OK
    assert DEAD in found.message
    records.begin(NEXT, 300, [GRIPPER])
    records.goal_ended(GRIPPER.goal_id, 'refuses to cancel', is_confirmed=False)
    clock.now_ns += RECENT_S * 1_000_000_000
    found = told(records, bridge).diagnosis(GUARDED)
    assert found.level is Level.WARN
    assert 'when this bridge had been silent for 300 ms' in found.message
    assert list(found.values) == ['stop_1', 'stop_2']
