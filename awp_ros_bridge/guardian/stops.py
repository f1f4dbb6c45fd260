"""
Owns the stop of what a dead bridge left: its goals are cancelled by id until each is answered for.

A server that does not answer is asked to cancel everything it does, and so is what drives the
robot for a planner that does not confirm. Every cancel is repeated while it is not confirmed, at
most for the bound. The immediate steps of the configuration, zeros and services, begin at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
import logging
import time
from typing import Any

from action_msgs.srv import CancelGoal

from awp_ros_bridge.guardian.stop_records import StopRecords
from awp_ros_bridge.ros.guardian_words import GuardedGoal, MS
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stop_actuators import StepReport, StopActuators
from awp_ros_bridge.ros.stop_plan import StopPlan

_LOG = logging.getLogger('awp_ros_bridge.guardian')

ANSWER_NS = 300 * MS  # then all goals of the server are cancelled, and this one is asked again
UNKNOWN_NS = 50 * MS  # a cancel that overtook its goal is repeated until the goal is known
REFUSED_NS = 300 * MS
BOUND_NS = 6_000 * MS

_Response = CancelGoal.Response


@dataclass(slots=True, eq=False)
class _Cancel:
    """One goal on its way to its end; the server as the configuration calls it."""

    goal: GuardedGoal
    server: str
    until_ns: int
    number: int = 0
    is_told: bool = False


class Stops:
    """
    Stops robots, on one thread.

    :param actuators: their clients are matched in advance; its answers are due after ANSWER_NS.
    :param names: the configuration's name of each server, by its full name.
    """

    def __init__(
        self,
        thread: RosThread,
        actuators: StopActuators,
        plans: Mapping[str, StopPlan],
        names: Mapping[str, str],
    ) -> None:
        self._thread = thread
        self._actuators = actuators
        self._plans = plans
        self._names = names
        self._cancels: dict[str, _Cancel] = {}
        self._steps = 0
        self._all_asked: set[str] = set()
        self.records = StopRecords()
        self.failed = 0
        self.on_idle: Callable[[], None] = lambda: None

    @property
    def is_idle(self) -> bool:
        """Tell whether no cancel and no step is under way."""
        return not self._cancels and not self._steps

    def unreached(self) -> frozenset[str]:
        """Return the full names of the servers at which a cancel may not arrive."""
        cancels = self._actuators.cancels
        return frozenset(
            name for name, server in self._names.items() if not cancels.is_ready(server)
        )

    def stop(self, instance: str, silent_ms: int, goals: Collection[GuardedGoal]) -> None:
        """
        Begin to cancel these goals and to stop who pursues them; the requests leave now.

        :param instance: the bridge that fell silent, and for how long, for the record.
        """
        until_ns = time.monotonic_ns() + BOUND_NS
        begun, unknown = [], []
        for goal in goals:
            server = self._names.get(goal.server)
            if server is None:  # it was told to the bridge, which let nothing move
                unknown.append(goal)
            elif goal.goal_id not in self._cancels:
                each = self._cancels[goal.goal_id] = _Cancel(goal, server, until_ns)
                begun.append(each)
                self._ask(each)
        number = self.records.begin(instance, silent_ms, goals)
        self._begin_steps(number, {each.server for each in begun})
        for goal in unknown:
            self.failed += 1
            _LOG.error('goal=%s on %s cannot be cancelled', goal.goal_id, goal.server)
            how = 'cannot be cancelled: this guardian does not know the server'
            self.records.goal_ended(goal.goal_id, how, is_confirmed=False)
        for each in begun:
            self._watch_planner(each)

    # ------------------------------------------------------------ cancels

    def _ask(self, each: _Cancel) -> None:
        each.number += 1
        self._actuators.cancels.cancel(
            each.server,
            bytes.fromhex(each.goal.goal_id),
            partial(self._on_answer, each),
            partial(self._on_late, each, each.number),
        )

    def _on_late(self, each: _Cancel, number: int) -> None:
        """Go on where the server does not answer: with all of its goals."""
        if self._is_under_way(each) and each.number == number:
            self._cancel_all(each.server, f'it is silent for {ANSWER_NS // MS} ms')
            self._repeat(each, 0, 'did not answer')

    def _on_answer(self, each: _Cancel, response: Any) -> None:
        if not self._is_under_way(each):
            return
        uuid = bytes.fromhex(each.goal.goal_id)
        code = response.return_code
        named = any(bytes(info.goal_id.uuid) == uuid for info in response.goals_canceling)
        if code == _Response.ERROR_NONE and named:
            self._finish(each, 'is being cancelled')
        elif code == _Response.ERROR_GOAL_TERMINATED:
            self._finish(each, 'had ended')
        elif code == _Response.ERROR_UNKNOWN_GOAL_ID and each.goal.is_answered:
            self._finish(each, 'is not known any more')
        elif code == _Response.ERROR_UNKNOWN_GOAL_ID:
            self._repeat(each, UNKNOWN_NS, 'does not know the goal')
        else:  # rclpy says no with an empty list
            self._repeat(each, REFUSED_NS, 'refuses to cancel')

    def _repeat(self, each: _Cancel, delay_ns: int, why: str) -> None:
        each.number += 1  # what else is answered to the request before counts, its silence not
        if time.monotonic_ns() + delay_ns >= each.until_ns:
            self.failed += 1
            limit_ms = BOUND_NS // MS
            how = f'was not cancelled within {limit_ms} ms: {each.server} {why}'
            self._finish(each, how, is_confirmed=False)
            return
        if not each.is_told:
            each.is_told = True
            _LOG.warning('goal=%s %s %s: asking again', each.goal.goal_id, each.server, why)
        self._thread.call_later(delay_ns, partial(self._ask_again, each))

    def _ask_again(self, each: _Cancel) -> None:
        if self._is_under_way(each):
            self._ask(each)

    def _is_under_way(self, each: _Cancel) -> bool:
        return self._cancels.get(each.goal.goal_id) is each

    def _finish(self, each: _Cancel, how: str, *, is_confirmed: bool = True) -> None:
        del self._cancels[each.goal.goal_id]
        _LOG.warning('goal=%s on %s %s', each.goal.goal_id, each.server, how)
        self.records.goal_ended(each.goal.goal_id, how, is_confirmed=is_confirmed)
        self._end_if_idle()

    def _cancel_all(self, server: str, why: str) -> None:
        if server not in self._all_asked:
            self._all_asked.add(server)
            _LOG.error('%s: cancelling all its goals: %s', server, why)
            self._actuators.cancels.cancel_all(server, lambda response: None, lambda: None)

    # ------------------------------------------------------------ what else stops

    def _watch_planner(self, each: _Cancel) -> None:
        """Cancel what drives the robot for a planner that does not confirm in time."""
        for plan in self._plans.values():
            downstream = plan.downstream.get(each.server)
            if downstream is not None:
                below = partial(self._cancel_below, each, downstream.servers)
                self._thread.call_later(downstream.after_ns, below)

    def _cancel_below(self, each: _Cancel, servers: Iterable[str]) -> None:
        if self._is_under_way(each):
            for server in servers:
                self._cancel_all(server, f'{each.server} does not confirm a cancel')

    def _begin_steps(self, number: int, servers: set[str]) -> None:
        for name, plan in self._plans.items():
            if servers & set(plan.servers):
                begun = len(self._actuators.begin(name, partial(self._on_report, number)))
                self._steps += begun
                self.records.steps_begun(number, begun)

    def _on_report(self, number: int, report: StepReport) -> None:
        _LOG.log(logging.INFO if report.ok else logging.ERROR, '%s', report)
        # a report may come before its step was counted
        self._thread.post(self._end_step, number, None if report.ok else str(report))

    def _end_step(self, number: int, failure: str | None) -> None:
        self._steps -= 1
        self.records.step_ended(number, failure)
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self.is_idle:
            self._all_asked.clear()
            self.on_idle()
