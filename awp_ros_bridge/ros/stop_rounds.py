"""
Owns the immediate steps of stops: zeros, stop services, and on an e-stop all goals of a server.

A stop of an embodiment is one round of them. The local stop begins it, before the engine knows;
the behaviour that the engine then calls for joins it instead of repeating it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
import logging
import time
from typing import Any

from awp_ros_bridge.ros.cancel_clients import cancelling
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.stop import StopGate
from awp_ros_bridge.ros.stop_actuators import Reported, StepReport, StopActuators
from awp_ros_bridge.ros.stop_plan import StopPlan

_LOG = logging.getLogger(__name__)

JOIN_NS = 1_000 * MS  # an older round is another stop


@dataclass(slots=True, eq=False)
class _Round:
    """
    One stop.

    :param period: of the gate; with a newer one goals may have left since.
    :param was_open: the gate was open, as for the end of a session: goals may have left since too.
    """

    began_ns: int
    period: int
    was_open: bool = False
    waiting: set[str] = field(default_factory=set)
    reports: list[StepReport] = field(default_factory=list)
    listeners: list[Reported] = field(default_factory=list)

    def take(self, report: StepReport) -> None:
        _LOG.log(logging.INFO if report.ok else logging.WARNING, 'stop step %s', report)
        self.waiting.discard(report.step)
        self.reports.append(report)
        for listener in self.listeners:
            listener(report)


class StopRounds:
    """
    Carries rounds out; safety thread only.

    :param actuators: of the safety node, there once the nodes were made.
    """

    def __init__(
        self,
        gate: StopGate,
        plans: Mapping[str, StopPlan],
        actuators: Callable[[], StopActuators],
    ) -> None:
        self._gate = gate
        self._plans = plans
        self._actuators = actuators
        self._rounds: dict[str, _Round] = {}

    def begin(self, embodiment: str, is_e_stop: bool) -> None:
        """Begin a round, unless one of the same stop has just begun."""
        found = self._current(embodiment)
        if found is None:
            found = self._begin(embodiment)
        if is_e_stop:
            self._cancel_unshared(embodiment, found)

    def follow(self, embodiment: str, on_report: Reported) -> list[str]:
        """
        Join the round of the stop that is under way, or begin one.

        :param on_report: takes a report per step, the earlier ones at once.
        :return: the labels of the steps that have not reported.
        """
        found = self._current(embodiment) or self._begin(embodiment)
        for report in found.reports:
            on_report(report)
        found.listeners.append(on_report)
        return sorted(found.waiting)

    def _current(self, embodiment: str) -> _Round | None:
        """Return the round of this stop: young, and the gate was shut then and ever since."""
        found = self._rounds.get(embodiment)
        if found is None or found.was_open or self._gate.is_open(embodiment):
            return None
        is_same = found.period == self._gate.period(embodiment)
        is_young = time.monotonic_ns() - found.began_ns < JOIN_NS
        return found if is_same and is_young else None

    def _begin(self, embodiment: str) -> _Round:
        is_open = self._gate.is_open(embodiment)
        began = _Round(time.monotonic_ns(), self._gate.period(embodiment), is_open)
        self._rounds[embodiment] = began
        # a step may report before the others have begun
        labels = self._actuators().begin(embodiment, began.take)
        done = {report.step for report in began.reports}
        began.waiting |= set(labels) - done
        return began

    def _cancel_unshared(self, embodiment: str, found: _Round) -> None:
        """Cancel every goal of the servers that are ours alone, and of what they drive."""
        plan = self._plans[embodiment]
        below = [plan.downstream[s].servers for s in plan.unshared if s in plan.downstream]
        servers = dict.fromkeys((*plan.unshared, *(s for each in below for s in each)))
        cancels = self._actuators().cancels
        for server in servers:
            label = f'cancel_goals {server}'
            if label in found.waiting or any(r.step == label for r in found.reports):
                continue
            found.waiting.add(label)
            on_answer, on_late = _all_cancelled(label, found, cancels.answer_ms)
            cancels.cancel_all(server, on_answer, on_late)


def _all_cancelled(
    label: str, found: _Round, bound_ms: int
) -> tuple[Callable[[Any], None], Callable[[], None]]:
    def on_answer(response: Any) -> None:
        if label in found.waiting:
            count = cancelling(response)
            found.take(StepReport(label, True, f'all its goals, {count} of them running'))

    def on_late() -> None:
        if label in found.waiting:
            found.take(StepReport(label, False, f'no answer within {bound_ms} ms'))

    return on_answer, on_late
