"""How well a part is, as a value: ERROR until proven, and what it then says."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import time
from types import SimpleNamespace
from typing import Any

import pytest

from awp_ros_bridge.config import Condition, InputSpec, Part, Rule
from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.engine.session_view import ChannelView, SessionView
from awp_ros_bridge.ros.diagnosis import Diagnosis, Level
from awp_ros_bridge.ros.goal_desk import ServerState
from awp_ros_bridge.ros.input_judge import InputJudge, Verdict
from awp_ros_bridge.ros.latency import Latencies
from awp_ros_bridge.ros.observations import ChannelState
from awp_ros_bridge.ros.part_diagnosis import (
    channel_diagnosis,
    input_diagnosis,
    server_diagnosis,
    session_values,
    sessions_diagnosis,
)

SESSION = SessionView(
    'sess_1', 'active', 'mover', '127.0.0.1:1', 'tok_1', ('arm',), ('go move executing',),
    ('proprio',), 1000, 10, '', False,
)  # fmt: skip


def spec(means: Meaning = Meaning.E_STOP) -> InputSpec:
    part = Part('', 'data', (Rule(Condition(equals=True), means),))
    return InputSpec(
        'stop', 'safety/stop', 'std_msgs/msg/Bool', (part,), means, None, 500, 'until_clear'
    )


class Watched:
    """A safety input without its topic."""

    def __init__(self, means: Meaning = Meaning.E_STOP) -> None:
        self.spec = spec(means)
        self.judge = InputJudge(self.spec)
        self.latches: dict[str, Verdict] = {}

    def latched(self) -> dict[str, Verdict]:
        return self.latches

    def hear(self, value: bool, age_ms: int = 0) -> None:
        at_ns = time.monotonic_ns() - age_ms * 1_000_000
        self.judge.take(0, SimpleNamespace(data=value), at_ns)


def said(watched: Watched) -> Diagnosis:
    return input_diagnosis(watched)  # type: ignore[arg-type]


def test_a_safety_input_is_an_error_until_a_message_permits_motion() -> None:
    watched = Watched()
    found = said(watched)
    assert (found.level, found.values['age_ms']) == (Level.ERROR, 'never heard')
    assert found.message == 'safety/stop was not heard yet'
    watched.hear(False)
    found = said(watched)
    assert (found.level, found.message) == (Level.OK, 'safety/stop permits motion')
    assert int(found.values['age_ms']) < 500
    watched.hear(False, age_ms=900)
    assert said(watched).level is Level.ERROR
    assert 'silent for' in said(watched).message
    watched.hear(True)
    assert (said(watched).level, said(watched).message) == (
        Level.ERROR, 'safety/stop.data is True',
    )  # fmt: skip


def test_a_latch_that_holds_alone_says_for_whom() -> None:
    watched = Watched()
    watched.hear(False)
    watched.latches['arm'] = Verdict(Meaning.E_STOP, 'safety/stop.data is True')
    found = said(watched)
    assert found.level is Level.ERROR
    assert found.message == (
        'safety/stop.data is True (latched until an operator clears it: arm)'
    )


def test_a_degraded_input_only_warns() -> None:
    watched = Watched(Meaning.DEGRADED)
    assert said(watched).level is Level.WARN
    watched.hear(True)
    assert said(watched).level is Level.WARN


def test_a_server_is_an_error_while_it_is_missing() -> None:
    server = ServerState('arm/move', 'action server', 'a/action/B', ('arm.move',), 'not there')
    assert server_diagnosis(server) == Diagnosis(
        Level.ERROR, 'not there', {'type': 'a/action/B', 'serves': 'arm.move'}
    )
    there = dataclasses.replace(server, missing=None)
    assert server_diagnosis(there).level is Level.OK


@pytest.mark.parametrize(
    ('note', 'is_delivering', 'level'),
    [('', True, Level.OK), ('clock mismatch', True, Level.WARN), ('silent', False, Level.ERROR)],
)
def test_a_channel_tells_its_rate_and_what_is_the_matter(
    note: str, is_delivering: bool, level: Level
) -> None:
    state = ChannelState('/joint_states', 99.96, False, is_delivering, note)
    found = channel_diagnosis(state, ChannelView(2, 50.0))
    assert (found.level, found.message) == (level, note or '100.0 Hz')
    assert found.values == {
        'topic': '/joint_states', 'rate_hz': '100.0', 'readers': '2', 'granted_hz': '50',
    }  # fmt: skip
    short = dataclasses.replace(state, is_counted_short=True, note='')
    assert 'or more' in channel_diagnosis(short, ChannelView(0, 0.0)).message


def test_sessions_warn_of_those_that_are_not_well() -> None:
    found = sessions_diagnosis((SESSION,))
    assert (found.level, found.message) == (Level.OK, '1 session')
    assert found.values == {'sess_1': 'active, mover holds arm, 1 action'}
    lost = dataclasses.replace(SESSION, state='suspended', peer='', watchdog_tripped=True)
    found = sessions_diagnosis((SESSION, lost))
    assert found.level is Level.WARN
    assert found.message == (
        '2 sessions, of which: sess_1 suspended, mover holds arm, 1 action, '
        'the watchdog has tripped'
    )
    closing = dataclasses.replace(SESSION, closing='session_closed', actions=())
    assert sessions_diagnosis((closing,)).values['sess_1'].endswith('closing (session_closed)')
    assert sessions_diagnosis(()) == Diagnosis(Level.OK, '0 sessions', {})


def test_every_value_of_a_session_is_text() -> None:
    values = session_values(SESSION)
    assert all(isinstance(value, str) for value in values.values())
    assert values['embodiments'] == 'arm'
    assert values['watchdog_tripped'] == 'false'


# ---------------------------------------------------------------- how long threads take


class Post:
    """A thread that runs what it got when the test says so."""

    def __init__(self) -> None:
        self.work: list[Callable[[], None]] = []

    def __call__(self, run: Callable[[], None]) -> None:
        self.work.append(run)

    def turn(self) -> None:
        for run in self.work:
            run()
        self.work.clear()


def test_a_thread_is_an_error_until_it_answered_and_again_when_it_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now: list[int] = [10**12]
    monkeypatch.setattr(time, 'monotonic_ns', lambda: now[0])
    safety, loop = Post(), Post()
    failure: list[Any] = [None]
    found = Latencies({'safety': safety, 'loop': loop}, {'safety': lambda: failure[0]})
    assert found.diagnosis().level is Level.ERROR
    assert found.diagnosis().values == {'safety_ms': 'unknown', 'loop_ms': 'unknown'}
    found.ask()
    now[0] += 2_500_000
    safety.turn()
    loop.turn()
    told = found.diagnosis()
    assert (told.level, told.message) == (Level.OK, 'every thread answers within 100 ms')
    assert told.values == {'safety_ms': '2.50', 'loop_ms': '2.50'}
    found.ask()
    safety.turn()
    now[0] += 300_000_000
    told = found.diagnosis()
    assert (told.level, told.message) == (Level.WARN, 'loop answered after 300 ms')
    now[0] += 800_000_000
    found.ask()
    assert len(loop.work) == 1, 'a thread that hangs gathers no work'
    told = found.diagnosis()
    assert (told.level, told.message) == (Level.ERROR, 'loop has not answered for 1100 ms')
    safety.turn()
    loop.turn()
    failure[0] = 'thread safety: boom'
    told = found.diagnosis()
    assert (told.level, told.message) == (
        Level.ERROR, 'thread safety: boom; loop answered after 1100 ms',
    )  # fmt: skip
