"""An input that latches: it holds until the hardware is clear and an operator says so."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from safety_input_words import e_stop

from awp_ros_bridge.config import SafetyInput
from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros import safety_inputs
from awp_ros_bridge.ros.runtime import Deadline
from awp_ros_bridge.ros.safety_inputs import LATCHED, WatchedInput

MS = 1_000_000
SPEC = SafetyInput.model_validate(e_stop(300, latch='until_operator')).spec


class Stop:
    """What the local stop is told, for each embodiment."""

    def __init__(self) -> None:
        self.engaged: dict[tuple[str, str], str] = {}

    def engage(self, embodiment: str, name: str, meaning: Meaning, detail: str) -> None:
        self.engaged[embodiment, name] = detail

    def release(self, embodiment: str, name: str, meaning: Meaning, detail: str) -> None:
        del self.engaged[embodiment, name]

    def tell_again(self, embodiment: str, name: str, meaning: Meaning, detail: str) -> None:
        self.engaged[embodiment, name] = detail

    def changed(self, embodiment: str) -> None:
        """Nobody listens."""


class Heard:
    """An input of two embodiments, and what it hears."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 1_000 * MS
        clock = SimpleNamespace(monotonic_ns=lambda: self.now_ns)
        monkeypatch.setattr(safety_inputs, 'time', clock)
        self.stop = Stop()
        thread: Any = SimpleNamespace(call_at=self._call_at)
        self.input = WatchedInput(['arm', 'base'], SPEC, thread, self.stop)  # type: ignore[arg-type]

    def _call_at(self, at_ns: int, function: Callable[[], None]) -> Deadline:
        return Deadline(at_ns, function)

    def say(self, unsafe: bool) -> None:
        self.now_ns += MS
        self.input.judge.take(0, SimpleNamespace(data=unsafe), self.now_ns)
        self.input._update()

    def permits(self, embodiment: str) -> bool:
        return self.input.permits_motion(embodiment, self.now_ns)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    return Heard(monkeypatch)


def test_a_latched_trip_holds_until_an_operator_clears_it_for_each_embodiment(
    heard: Heard,
) -> None:
    heard.say(False)
    assert heard.permits('arm')
    heard.say(True)
    heard.input.clear('arm')  # the hardware says no: nothing to clear
    assert set(heard.stop.engaged) == {('arm', 'e_stop'), ('base', 'e_stop')}
    heard.say(False)
    assert not heard.permits('arm')
    assert LATCHED in heard.stop.engaged['arm', 'e_stop']
    assert heard.input.is_only_latched('arm')
    heard.input.clear('arm')
    assert heard.permits('arm')
    assert set(heard.stop.engaged) == {('base', 'e_stop')}
    assert not heard.permits('base')


def test_a_latched_input_that_fell_silent_cannot_be_cleared(heard: Heard) -> None:
    heard.say(True)
    heard.say(False)
    heard.now_ns += 400 * MS
    heard.input.clear('arm')
    assert not heard.permits('arm')
    assert ('arm', 'e_stop') in heard.stop.engaged
