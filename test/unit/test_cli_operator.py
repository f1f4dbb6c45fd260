"""An operator's stop reaches its embodiment however late the graph tells of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from awp_ros_bridge.cli import operator
from awp_ros_bridge.cli.ros_verb import NO, OK, UNUSABLE
from awp_ros_bridge.ros import visitor as visitor_module
from awp_ros_bridge.ros.visitor import LOOK_S, Visitor

LIMIT_S = 5.0
BRIDGE = '/cell/bridge'


class Graph:
    """
    Stands in for a visitor: a graph that tells of services and bridges as time passes.

    :param services: by what is told, when it is.
    :param bridges: the same of bridges.
    """

    def __init__(
        self, services: dict[str, float] | None = None, bridges: dict[str, float] | None = None
    ) -> None:
        self.now_s = 100.0
        self.timeout_s = LIMIT_S
        self.called: list[str] = []
        self._began_s = self.now_s
        self._services = services or {}
        self._bridges = bridges or {}

    @property
    def took_s(self) -> float:
        return self.now_s - self._began_s

    def triggers(self, bridge: str, word: str) -> list[str]:
        return self._told(self._services)

    def _seen(self) -> list[str]:
        return self._told(self._bridges)

    def _told(self, what: dict[str, float]) -> list[str]:
        return sorted(name for name, at_s in what.items() if at_s <= self.took_s + 1e-9)

    def wait(self, condition: Callable[[], bool]) -> bool:
        ends_s = self.now_s + self.timeout_s
        while not condition():
            if self.now_s >= ends_s:
                return False
            self._turn(LOOK_S)
        return True

    def call(self, service: str) -> tuple[bool, str]:
        self.called.append(service)
        return True, 'stopped'

    def _turn(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[Graph], Graph]:
    def set_by(graph: Graph) -> Graph:
        time = SimpleNamespace(monotonic=lambda: graph.now_s)
        monkeypatch.setattr(operator, 'time', time)
        monkeypatch.setattr(visitor_module, 'time', time)
        return graph

    return set_by


def stop(graph: Any, embodiment: str) -> tuple[int, dict[str, Any]]:
    args = argparse.Namespace(embodiment=embodiment, json=True)
    return operator.ask(args, graph, [BRIDGE], 'stop')


@pytest.mark.parametrize('told_s', [0.0, 1.0, 4.0])
def test_an_embodiment_that_the_graph_tells_late_is_stopped(
    clock: Callable[[Graph], Graph], told_s: float
) -> None:
    graph = clock(Graph({'arm_01': told_s}))
    code, _ = stop(graph, 'arm_01')
    assert (code, graph.called) == (OK, [f'{BRIDGE}/arm_01/stop'])
    assert graph.took_s == pytest.approx(told_s)


def test_an_embodiment_that_is_none_is_refused_soon_after_the_others_are_told(
    clock: Callable[[Graph], Graph],
) -> None:
    graph = clock(Graph({'gripper_01': 2.0, 'arm_01': 2.4}))
    code, said = stop(graph, 'arm_99')
    assert (code, graph.called) == (UNUSABLE, [])
    assert said['error'] == (
        f"no embodiment 'arm_99'; there are: arm_01 of {BRIDGE}, gripper_01 of {BRIDGE}"
    )
    assert graph.took_s == pytest.approx(3.5, abs=2 * LOOK_S)


def test_a_bridge_that_tells_nothing_is_waited_for_within_the_limit(
    clock: Callable[[Graph], Graph],
) -> None:
    graph = clock(Graph())
    code, said = stop(graph, 'arm_01')
    assert code == UNUSABLE != NO
    assert said['error'] == "no embodiment 'arm_01'; there are: none"
    assert graph.took_s == pytest.approx(LIMIT_S, abs=2 * LOOK_S)


def test_every_bridge_is_found_though_what_is_done_with_one_takes_long(
    clock: Callable[[Graph], Graph],
) -> None:
    graph: Any = clock(Graph(bridges={'/a': 0.0, '/b': 0.0, '/c': 0.5}))
    found = []
    for name in Visitor.bridges(graph):
        found.append(name)
        graph.now_s += LIMIT_S  # such as a call that is not answered
    assert found == ['/a', '/b', '/c']
