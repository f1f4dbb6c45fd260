"""The stop that waits for nobody, in parts and without ROS: gate, epoch, cancels, dead-man."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from safety_input_words import e_stop

from awp_ros_bridge.config import SafetyInput
from awp_ros_bridge.engine.inputs import Meaning, SafetyChanged
from awp_ros_bridge.ros import beat
from awp_ros_bridge.ros.beat import DeadMan
from awp_ros_bridge.ros.input_judge import InputJudge
from awp_ros_bridge.ros.live_goals import Cancel, LiveGoal, LiveGoals, Stage
from awp_ros_bridge.ros.stop import LocalStop, StopGate

MS = 1_000_000


def goal(number: int = 1, embodiment: str = 'arm') -> LiveGoal:
    return LiveGoal(f'{number:032x}', embodiment, 'move', 'arm', 'server')


class Stop:
    """A local stop with everything that it did, in order."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.gate = StopGate(['arm', 'base'])
        self.goals = LiveGoals()
        self.stop = LocalStop(self.gate, self.goals, self._post, lambda: self)  # type: ignore[arg-type, return-value]

    def cancel(self, live: LiveGoal) -> bool:
        """Stand in for the canceller."""
        open_now = self.gate.is_open(live.embodiment)
        self.did.append(f'cancel {int(live.goal_id, 16)} gate {"open" if open_now else "shut"}')
        return True

    def add(self, number: int, embodiment: str = 'arm') -> LiveGoal:
        """Begin a goal."""
        live = goal(number, embodiment)
        self.goals.add(live)
        return live

    def _post(self, fact: object) -> None:
        assert isinstance(fact, SafetyChanged)
        self.did.append(f'{"engaged" if fact.engaged else "released"} {fact.input_name}')


# ---------------------------------------------------------------- gate and epoch


def test_a_shut_gate_refuses_with_what_holds_it_and_opens_with_the_last_cause() -> None:
    gate = StopGate(['arm', 'base'])
    assert gate.refusal('arm', gate.epoch) is None
    gate.shut('arm', 'e_stop', 'button pressed')
    gate.shut('arm', 'guard', 'door open')
    refusal = gate.refusal('arm', gate.epoch)
    assert refusal is not None
    assert 'button pressed' in refusal
    assert 'door open' in refusal
    assert gate.refusal('base', gate.epoch) is None
    gate.open('arm', 'e_stop')
    assert gate.refusal('arm', gate.epoch) is not None
    gate.open('arm', 'guard')
    assert gate.refusal('arm', gate.epoch) is None


def test_a_decision_from_before_a_stop_stays_refused_after_its_release() -> None:
    gate = StopGate(['arm', 'base'])
    decided = gate.epoch
    gate.shut('arm', 'e_stop')
    gate.open('arm', 'e_stop')
    refusal = gate.refusal('arm', decided)
    assert refusal is not None
    assert 'stopped since the decision' in refusal
    assert gate.refusal('base', decided) is None
    assert gate.refusal('arm', gate.epoch) is None


# ---------------------------------------------------------------- the local stop


def test_an_engaged_input_shuts_the_gate_tells_and_cancels_in_this_order() -> None:
    rig = Stop()
    sent, other = rig.add(1), rig.add(2, 'base')
    assert rig.goals.begin_sending(sent)
    assert rig.goals.begin_sending(other)
    rig.stop.engage('arm', 'e_stop', Meaning.E_STOP, 'pressed')
    assert rig.did == ['engaged e_stop', 'cancel 1 gate shut']
    assert rig.gate.is_open('base')


def test_a_goal_that_is_still_queued_at_the_stop_is_not_sent_any_more() -> None:
    rig = Stop()
    queued = rig.add(1)
    rig.stop.engage('arm', 'e_stop', Meaning.E_STOP, 'pressed')
    rig.stop.release('arm', 'e_stop', Meaning.E_STOP, 'released')
    assert not rig.goals.begin_sending(queued)


def test_a_degraded_input_stops_nothing() -> None:
    rig = Stop()
    assert rig.goals.begin_sending(rig.add(1))
    rig.stop.engage('arm', 'battery', Meaning.DEGRADED, 'low')
    assert rig.did == ['engaged battery']
    assert rig.gate.is_open('arm')


def test_a_goal_that_is_accepted_after_the_stop_must_be_cancelled_then() -> None:
    goals = LiveGoals()
    live = goal()
    goals.add(live)
    assert goals.begin_sending(live)
    goals.withdraw('arm')
    assert goals.claim_cancel(live)  # overtook the goal: proves nothing
    assert goals.accepted(live)
    assert live.stage is Stage.ACCEPTED
    assert goals.claim_cancel(live)
    assert not goals.claim_cancel(live)  # exactly one sends it
    goals.cancel_answered(live, Cancel.CONFIRMED, '')
    assert not goals.accepted(live)


# ---------------------------------------------------------------- the dead-man timer


class Loop:
    """A safety thread whose time a test moves."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * MS
        self._due: tuple[int, Callable[[], None]] | None = None

    def monotonic_ns(self) -> int:
        return self.now_ns

    def call_later(self, delay_ns: int, function: Callable[[], None]) -> None:
        self._due = (self.now_ns + delay_ns, function)

    def run_until(self, now_ns: int) -> None:
        while self._due is not None and self._due[0] <= now_ns:
            self.now_ns, function = self._due
            self._due = None
            function()
        self.now_ns = now_ns


def test_a_loop_that_falls_silent_stops_every_embodiment_in_time_and_releases_on_return(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig, loop = Stop(), Loop()
    monkeypatch.setattr(beat, 'time', SimpleNamespace(monotonic_ns=loop.monotonic_ns))
    man = DeadMan(loop, rig.stop, ['arm', 'base'], 250 * MS)  # type: ignore[arg-type]
    man.start()
    begun_ns = loop.now_ns
    for number in range(1, 41):  # 2 s of beats
        loop.run_until(begun_ns + number * 50 * MS)
        man.beat(loop.now_ns)
    assert rig.did == []
    last_ns = loop.now_ns
    loop.run_until(last_ns + 249 * MS)
    assert rig.did == []
    loop.run_until(last_ns + 350 * MS)
    assert rig.did == ['engaged bridge:loop'] * 2
    assert not rig.gate.is_open('arm')
    loop.run_until(last_ns + 5_000 * MS)
    assert rig.did == ['engaged bridge:loop'] * 2  # once
    man.beat(loop.now_ns)
    loop.run_until(loop.now_ns + 60 * MS)
    assert rig.did[2:] == ['released bridge:loop'] * 2


# ---------------------------------------------------------------- safety inputs


def judge() -> InputJudge:
    return InputJudge(SafetyInput.model_validate(e_stop(300)).spec)


def said(value: bool) -> Any:
    return SimpleNamespace(data=value)


def test_an_input_permits_nothing_before_it_was_heard_nor_after_it_fell_silent() -> None:
    asked = judge()
    assert not asked.permits_motion(0)
    asked.take(0, said(False), 100 * MS)
    assert asked.permits_motion(399 * MS)
    assert not asked.permits_motion(400 * MS)
    assert 'silent for 300 ms' in str(asked.stale(400 * MS))


def test_what_either_reader_hears_counts_and_a_trip_outlives_its_publisher() -> None:
    asked = judge()
    asked.take(0, said(True), 100 * MS)
    asked.take(1, said(False), 101 * MS)  # another publisher, heard by the other reader
    assert not asked.permits_motion(102 * MS)
    assert asked.tripped() is not None
    assert asked.tripped() is not None
    asked.take(0, said(False), 103 * MS)
    assert asked.permits_motion(104 * MS)


def test_a_message_that_cannot_be_read_forbids_motion() -> None:
    asked = judge()
    asked.take(0, said(False), 99 * MS)
    asked.take(0, None, 100 * MS)
    assert not asked.permits_motion(101 * MS)
    asked.take(0, SimpleNamespace(), 102 * MS)
    assert not asked.permits_motion(103 * MS)
