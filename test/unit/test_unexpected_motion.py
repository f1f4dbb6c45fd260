"""Motion that nobody asked for: noticed after rest, while nothing runs, when it lasts."""

from __future__ import annotations

import pytest

from awp_ros_bridge.engine.inputs import Input, Meaning, SafetyChanged
from awp_ros_bridge.ros.live_goals import LiveGoals
from awp_ros_bridge.ros.stop import LocalStop, StopGate
from awp_ros_bridge.ros.unexpected import UnexpectedMotion

MS = 1_000_000


class Body:
    def __init__(self, means: Meaning = Meaning.DEGRADED) -> None:
        self.told: list[Input] = []
        self.gate = StopGate(['arm'])
        stop = LocalStop(self.gate, LiveGoals(), self.told.append, lambda: None)  # type: ignore[arg-type,return-value]
        self.is_commanded = False
        self.notice = UnexpectedMotion('arm', stop, lambda: self.is_commanded, means, 200 * MS)
        self.now_ms = 0

    def be(self, rests: bool | None, for_ms: int = 400) -> None:
        for _ in range(for_ms // 40):
            self.now_ms += 40
            self.notice.look(self.now_ms * MS, rests, '' if rests else 'joint a moves')

    @property
    def engaged(self) -> list[bool]:
        return [each.engaged for each in self.told if isinstance(each, SafetyChanged)]


def test_motion_after_rest_is_reported_and_ends_with_the_next_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    body = Body()
    body.be(True)
    body.be(False)
    assert body.engaged == [True]
    assert 'joint a moves, for 200 ms while no action runs' in str(body.notice.detail)
    assert 'arm moves unexpectedly' in caplog.text
    assert body.gate.is_open('arm'), 'a report forbids nothing'
    body.be(True)
    assert body.engaged == [True, False]
    assert body.notice.detail is None


def test_motion_that_stops_is_a_fault_until_rest() -> None:
    body = Body(Meaning.FAULT)
    body.be(True)
    body.be(False)
    assert not body.gate.is_open('arm')
    body.be(True)
    assert body.gate.is_open('arm')


def test_short_motion_is_none() -> None:
    body = Body()
    body.be(True)
    for _ in range(5):
        body.be(False, 160)
        body.be(True, 80)
    assert body.engaged == []


def test_what_coasts_after_an_action_is_not_unexpected_before_it_rested() -> None:
    body = Body()
    body.be(True)
    body.is_commanded = True
    body.be(False, 2000)
    body.is_commanded = False
    body.be(False, 2000)
    assert body.engaged == []
    body.be(True)
    body.be(False)
    assert body.engaged == [True]


def test_an_action_that_begins_explains_the_motion() -> None:
    body = Body()
    body.be(True)
    body.be(False)
    body.is_commanded = True
    body.be(False)
    assert body.engaged == [True, False]


def test_what_is_not_known_is_no_motion() -> None:
    body = Body()
    body.be(True)
    body.be(None, 2000)
    assert body.engaged == [], 'silence has an input of its own'
