"""A server is lost when it is silent and answers no question, and never before."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from awp_ros_bridge.ros import goal_watch
from awp_ros_bridge.ros.adapters.base import Adapter
from awp_ros_bridge.ros.goal_run import GoalRun
from awp_ros_bridge.ros.goal_watch import GoalWatch

MS = 1_000_000
STALE_MS = 500


class Plain:
    """An adapter that measures no progress."""

    measured_progress = Adapter.measured_progress


class Server:
    """A thread, a runner with one goal, and a server that answers questions or does not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 1_000 * MS
        self.silent_since_ns: int | None = None
        self.is_in_graph = True
        self.answers = True
        self.asked = 0
        self.lost: list[str] = []
        self.stall: str | None = None
        self.stalled: list[tuple[int, str]] = []
        self._due: list[tuple[int, Callable[[], None]]] = []
        clock = SimpleNamespace(monotonic_ns=lambda: self.now_ns)
        monkeypatch.setattr(goal_watch, 'time', clock)
        plan: Any = SimpleNamespace(
            adapter=Plain(), stale_ns=STALE_MS * MS, embodiment='arm'
        )
        these: Any = self
        self.run = GoalRun(these, plan, these, is_accepted=True, heard_ns=self.now_ns)
        self.run.link = these
        self.runs = {'goal': self.run}
        GoalWatch(
            these, these, lambda name, now_ns: self._silent_ns(), lambda run, now_ns: self._why()
        )
        self.on_running()

    on_running: Callable[[], None]

    def _silent_ns(self) -> int | None:
        return 0 if self.silent_since_ns is None else self.now_ns - self.silent_since_ns

    def call_later(self, delay_ns: int, function: Callable[[], None]) -> None:
        self._due.append((self.now_ns + delay_ns, function))

    def is_ready(self) -> bool:
        return self.is_in_graph

    def probe(self, on_answer: Callable[[], None]) -> Any:
        self.asked += 1
        if self.answers:
            self.call_later(10 * MS, on_answer)
        return SimpleNamespace(drop=lambda: None)

    def expect_result(self, run: GoalRun) -> None:
        """Find that it has not ended."""

    def tell_stalled(self, run: GoalRun, detail: str) -> None:
        self.stalled.append((self.now_ns // MS, detail))

    def _why(self) -> str | None:
        why, self.stall = self.stall, None
        return why

    def lose(self, run: GoalRun, why: str) -> None:
        self.lost.append(why)
        self.runs.clear()

    def tell(self, count: int, every_ms: int = 50) -> None:
        """Send feedback."""
        for _ in range(count):
            self.pass_ms(every_ms)
            self.run.hear(self.now_ns)

    def pass_ms(self, span_ms: int) -> None:
        ends_ns = self.now_ns + span_ms * MS
        while self._due and min(self._due)[0] <= ends_ns:
            self._due.sort(key=lambda row: row[0])
            self.now_ns, function = self._due.pop(0)
            function()
        self.now_ns = ends_ns


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_a_server_whose_robot_fell_silent_and_that_does_not_answer_is_lost_in_time(
    server: Server,
) -> None:
    server.pass_ms(1_000)
    assert server.asked == 0
    server.answers = False
    server.silent_since_ns = server.now_ns
    server.pass_ms(STALE_MS - 50)
    assert server.lost == []
    server.pass_ms(150)
    assert len(server.lost) == 1
    assert f'silent for {STALE_MS} ms' in server.lost[0]
    assert 'answers no request' in server.lost[0]


def test_a_server_that_answers_is_not_lost_however_silent_its_robot_is(server: Server) -> None:
    server.silent_since_ns = server.now_ns
    server.pass_ms(5 * STALE_MS)
    assert server.asked > 3
    assert server.lost == []


@pytest.mark.parametrize('is_late_once', [False, True])
def test_a_server_whose_regular_feedback_ends_is_lost_in_time_though_once_it_came_late(
    server: Server, is_late_once: bool
) -> None:
    server.tell(5)
    if is_late_once:  # as on a machine that is busy with others for a moment
        server.tell(1, STALE_MS - 100)
        server.tell(20)
    server.answers = False
    server.pass_ms(STALE_MS - 50)
    assert server.lost == []
    server.pass_ms(150)
    assert len(server.lost) == 1
    assert 'its feedback is silent for 500 ms' in server.lost[0]


def test_feedback_that_pauses_again_and_again_proves_nothing_when_it_pauses(
    server: Server,
) -> None:
    for _ in range(10):
        server.tell(4)
        server.tell(1, STALE_MS - 100)
    server.tell(4)
    server.answers = False
    server.pass_ms(5 * STALE_MS)
    assert server.lost == []


def test_a_server_that_leaves_the_graph_is_lost(server: Server) -> None:
    server.is_in_graph = False
    server.pass_ms(600)
    assert server.lost == ['it left the ROS graph']


def test_a_goal_that_stalls_is_told_within_a_turn_and_goes_on_until_it_is_cancelled(
    server: Server,
) -> None:
    server.pass_ms(1_000)
    server.stall = 'nothing moves'
    server.pass_ms(200)
    assert server.stalled == [(2_050, 'nothing moves')]
    assert server.lost == []
