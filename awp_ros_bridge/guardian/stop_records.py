"""Owns what the guardian remembers of its stops, to tell it to bridges and operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, UTC
import logging
import time

from awp_ros_bridge.process.wall_time import utc_text
from awp_ros_bridge.ros.guardian_words import GuardedGoal, MS
from awp_ros_bridge.ros.stop_report import Reports, StoppedGoal, StopReport

_LOG = logging.getLogger('awp_ros_bridge.guardian')

MOST_STOPS = 8


def now_utc() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


class StopRecords:
    """
    The newest stops, each with its goals and how they ended; one thread.

    :ivar on_over: called when nothing of a stop is under way any more.
    """

    def __init__(self) -> None:
        self._records: dict[int, StopReport] = {}
        self._began_ns: dict[int, int] = {}
        self._count = 0
        self.on_over: Callable[[], None] = lambda: None

    def begin(self, instance: str, silent_ms: int, goals: Iterable[GuardedGoal]) -> int:
        """Note a stop that begins now; return its number."""
        self._count += 1
        at = utc_text(now_utc(), 'milliseconds')
        stopped = tuple(StoppedGoal(goal.goal_id, goal.server) for goal in goals)
        if len(self._records) >= MOST_STOPS:
            oldest = min(self._records)
            del self._records[oldest], self._began_ns[oldest]
        self._records[self._count] = StopReport(
            self._count, instance, at, 0, silent_ms, stopped
        )
        self._began_ns[self._count] = time.monotonic_ns()
        return self._count

    def goal_ended(self, goal_id: str, how: str, *, is_confirmed: bool) -> None:
        """Note how a goal ended, in every stop that is about it."""
        for number, record in list(self._records.items()):
            goals = tuple(
                StoppedGoal(goal_id, each.server, is_confirmed, how)
                if each.goal_id == goal_id and each.is_confirmed is None
                else each
                for each in record.goals
            )
            if goals != record.goals:
                self._put(number, replace(record, goals=goals))

    def steps_begun(self, number: int, count: int) -> None:
        """Note that immediate steps are under way."""
        record = self._records.get(number)
        if record is not None:
            self._put(number, replace(record, steps_left=record.steps_left + count))

    def step_ended(self, number: int, failure: str | None) -> None:
        """Note that a step ended, with what it says where it failed."""
        record = self._records.get(number)
        if record is None:
            return
        failed = record.failed_steps if failure is None else (*record.failed_steps, failure)
        left = record.steps_left - 1
        self._put(number, replace(record, steps_left=left, failed_steps=failed))

    def reports(self) -> Reports:
        """Return them as they are told, the oldest first."""
        now_ns = time.monotonic_ns()
        return tuple(
            replace(record, age_s=(now_ns - self._began_ns[number]) // (1_000 * MS))
            for number, record in self._records.items()
        )

    def _put(self, number: int, record: StopReport) -> None:
        was_over = self._records[number].is_over
        self._records[number] = record
        if record.is_over and not was_over:
            level = logging.WARNING if record.is_confirmed else logging.ERROR
            _LOG.log(level, '%s', record.text(f'bridge {record.instance}'))
            self.on_over()
