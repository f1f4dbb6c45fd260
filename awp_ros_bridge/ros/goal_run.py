"""Owns the record of one goal that was sent to an action server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from awp_ros_bridge.engine.effects import StartGoal
from awp_ros_bridge.ros.action_link import ActionLink, Pending
from awp_ros_bridge.ros.live_goals import LiveGoal
from awp_ros_bridge.ros.plan import ActionPlan
from awp_ros_bridge.ros.runtime import Deadline
from awp_ros_bridge.ros.stall_clock import StallClock


@dataclass(slots=True, eq=False)
class GoalRun:
    """
    One goal on the goals thread.

    :param heard_ns: steady time of the acceptance or the newest feedback.
    :param alive_ns: steady time at which the server last answered a question.
    :param told_ns: steady time at which progress was reported.
    :param feedbacks: number of feedback messages.
    :param regular: number of the newest ones in a row that came soon after each other.
    :param pauses: number of those that did not.
    :param early: feedback that came before the acceptance, kept back to keep the order.
    :param progress: newest that was told, None before any was.
    :param stall: how long it did nothing, None where nobody asks.
    :param start: what the adapter measures progress against.
    """

    effect: StartGoal
    plan: ActionPlan
    live: LiveGoal
    link: ActionLink | None = None
    answer: Pending | None = None
    result: Pending | None = None
    probe: Pending | None = None
    probe_ns: int = 0
    is_accepted: bool = False
    is_over: bool = False
    heard_ns: int = 0
    alive_ns: int = 0
    told_ns: int = 0
    measured_ns: int = 0
    feedbacks: int = 0
    regular: int = 0
    pauses: int = 0
    early: bytes | None = None
    progress: float | None = None
    stall: StallClock | None = None
    start: dict[str, Any] = field(default_factory=dict)
    _deadline: Deadline | None = None

    @property
    def goal_id(self) -> str:
        return self.effect.goal_id

    @property
    def uuid(self) -> bytes:
        return self.live.uuid

    @property
    def server(self) -> str:
        return self.plan.server

    @property
    def waits(self) -> bool:
        return self._deadline is not None and not self._deadline.is_cancelled

    def begin(self) -> None:
        """Note what progress is measured against; an adapter that fails here measures nothing."""
        try:
            self.start = self.plan.adapter.begin(self.effect.params)
        except Exception:  # noqa: BLE001 an adapter may come from another package
            self.start = {}

    def hear(self, now_ns: int) -> None:
        """Note a feedback message."""
        if self.feedbacks and now_ns - self.heard_ns >= self.plan.stale_ns // 2:
            self.regular = 0
            self.pauses += 1
        self.regular += 1
        self.feedbacks += 1
        self.heard_ns = now_ns

    def wait(self, deadline: Deadline | None) -> None:
        """Replace what the goal waits for."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = deadline

    def release(self) -> None:
        """Forget every request and deadline of the goal."""
        self.wait(None)
        for pending in (self.answer, self.result, self.probe):
            if pending is not None:
                pending.drop()
        self.answer = self.result = self.probe = None
        if self.link is not None:
            self.link.forget(self.uuid)
