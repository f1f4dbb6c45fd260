"""A robot that could not be stopped must not move: what stops it has to be there all the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.stop_watch import NAME, StopWatch


class Robot:
    """Thread, local stop and actuators of one arm."""

    def __init__(self) -> None:
        self.lacks: list[str] = []
        self.engaged: dict[tuple[str, str], str] = {}
        self.look: Callable[[], None] = lambda: None
        these: Any = self
        self.watch = StopWatch(these, these, lambda: these, ['arm'])
        self.watch.start()

    def every(self, period_ns: int, function: Callable[[], None]) -> None:
        self.look = function

    def missing(self, embodiment: str) -> list[str]:
        return self.lacks

    def engage(self, embodiment: str, name: str, meaning: Meaning, detail: str) -> None:
        assert meaning is Meaning.NOT_READY
        self.engaged[embodiment, name] = detail

    def release(self, embodiment: str, name: str, meaning: Meaning, detail: str) -> None:
        del self.engaged[embodiment, name]


def test_motion_is_forbidden_whenever_something_that_stops_is_missing() -> None:
    robot = Robot()
    assert robot.engaged == {('arm', NAME): 'not looked for yet'}
    robot.lacks = ['nobody listens on cmd_vel', 'service stop is not available']
    robot.look()
    assert robot.engaged == {
        ('arm', NAME): 'nobody listens on cmd_vel; service stop is not available'
    }
    robot.lacks = []
    robot.look()
    assert robot.engaged == {}
    robot.lacks = ['service stop is not available']
    robot.look()
    assert robot.engaged == {('arm', NAME): 'service stop is not available'}
