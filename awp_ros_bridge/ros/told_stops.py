"""
Owns what the bridge was told of the guardian's stops: it logs each, and diagnostics show it.

A bridge that was killed mid-motion cannot say that the robot was stopped; the one that is started
after it does. Nothing is forbidden by it: what still runs is found by ``earlier_goal``.
"""

from __future__ import annotations

from collections.abc import Iterable
import logging

from awp_ros_bridge.ros.diagnosis import Diagnosis, Level
from awp_ros_bridge.ros.stop_report import RECENT_S, Reports, StopReport

_LOG = logging.getLogger(__name__)

MOST_GUARDIANS = 8


class ToldStops:
    """
    Remembers the newest report of each stop.

    :param instance: name of this run of the bridge.
    """

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self._by_guardian: dict[str, Reports] = {}
        self._reports: Reports = ()  # the oldest first; replaced as a whole: read on any thread

    def hear(self, guardian: str, reports: Iterable[StopReport]) -> None:
        """Take what a guardian tells, and log what is new; one thread."""
        known = {report.number: report for report in self._by_guardian.get(guardian, ())}
        if guardian not in self._by_guardian and len(self._by_guardian) >= MOST_GUARDIANS:
            self._by_guardian.clear()
        told = self._by_guardian[guardian] = tuple(reports)
        merged = [report for each in self._by_guardian.values() for report in each]
        self._reports = tuple(sorted(merged, key=lambda report: -report.age_s))
        for each in told:
            before = known.get(each.number)
            if before is None or before.is_over is not each.is_over:
                is_failed = each.is_over and not each.is_confirmed
                _LOG.log(logging.ERROR if is_failed else logging.WARNING, '%s', self._text(each))

    def diagnosis(self, guarded: str) -> Diagnosis:
        """Say how the guardian is that says nothing against motion; any thread."""
        reports = self._reports
        if not reports:
            return Diagnosis(Level.OK, guarded)
        newest = reports[-1]
        values = {f'stop_{n}': self._text(each) for n, each in enumerate(reports, 1)}
        asks_for_a_look = newest.age_s < RECENT_S or not all(r.is_confirmed for r in reports)
        level = Level.WARN if asks_for_a_look else Level.OK
        return Diagnosis(level, f'{guarded}; {self._text(newest)}', values)

    def _text(self, report: StopReport) -> str:
        if report.instance == self._instance:
            return report.text('this bridge')
        return report.text(f'bridge {report.instance}, an earlier run,')
