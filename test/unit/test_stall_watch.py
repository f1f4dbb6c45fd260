"""Which goals count as stalled, and what is said of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='the watch reads topics of ROS 2')

from awp_ros_bridge.ros.goal_run import GoalRun
from awp_ros_bridge.ros.live_goals import Cancel
from awp_ros_bridge.ros.stall_watch import StallWatch

MS = 1_000_000
LIMIT_MS = 2_000


class Goal:
    """A goal of a body that rests, looked at every 50 ms."""

    def __init__(self, limit_ms: int | None = LIMIT_MS) -> None:
        limit_ns = None if limit_ms is None else limit_ms * MS
        plan: Any = SimpleNamespace(embodiment='arm', stall_ns=limit_ns, speed_scaling=None)
        self.live = SimpleNamespace(cancel=Cancel.NONE)
        none: Any = SimpleNamespace()
        live: Any = self.live
        self.at_rest: bool | None = True
        self.run = GoalRun(none, plan, live, is_accepted=True)
        self.watch = StallWatch(none, none, [plan], lambda name: self.at_rest)
        self.now_ms = 0

    def said(self, span_ms: int) -> list[str]:
        ends_ms = self.now_ms + span_ms
        said = []
        while self.now_ms < ends_ms:
            self.now_ms += 50
            said.append(self.watch.look(self.run, self.now_ms * MS))
        return [text for text in said if text is not None]


def test_a_goal_of_a_body_that_rests_without_progress_is_stalled_and_it_is_said_once() -> None:
    goal = Goal()
    assert goal.said(LIMIT_MS) == []
    assert goal.said(10 * LIMIT_MS) == [
        'arm rests and no progress was told for 2000 ms (stall_after_ms 2000, no speed scaling)'
    ]


def test_without_a_limit_nothing_is_concluded() -> None:
    assert Goal(limit_ms=None).said(100 * LIMIT_MS) == []


@pytest.mark.parametrize('at_rest', [False, None])
def test_a_body_that_moves_or_of_which_nothing_is_known_is_not_stalled(
    at_rest: bool | None,
) -> None:
    goal = Goal()
    goal.at_rest = at_rest
    assert goal.said(10 * LIMIT_MS) == []


def test_a_goal_that_is_being_cancelled_ends_for_another_reason() -> None:
    goal = Goal()
    goal.live.cancel = Cancel.CONFIRMED
    assert goal.said(10 * LIMIT_MS) == []
