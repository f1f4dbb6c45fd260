"""The loop that owns the engine: order of effects, facts, the timer, beats, faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
import dataclasses
import itertools
import logging
import threading
import time
from typing import Any, cast

import pytest

from awp_ros_bridge.bridge.loop import BEAT_S, BridgeLoop
from awp_ros_bridge.engine.effects import (
    AwaitRest,
    BeginBehavior,
    CancelGoal,
    CloseAudit,
    CloseConnection,
    DropFrames,
    Effect,
    Finish,
    OpenAudit,
    RecordAudit,
    ReportEmbodiment,
    ResetWorld,
    SendFrame,
    SendMessage,
    SetChannelDemand,
    StartGoal,
)
from awp_ros_bridge.engine.engine import Engine
from awp_ros_bridge.engine.inputs import Activated, ConnectionLost, Input, ShutdownRequested
from awp_ros_bridge.transport.port import Transport

BEHAVE = BeginBehavior(1, 'arm', 'safe_stop', 'a test', 10)
CANCEL = CancelGoal('g1', 'arm', 'move')
START = StartGoal('g2', 'arm', 'move', {}, 0)
SAY = SendMessage(1, {'jsonrpc': '2.0', 'method': 'x'})
FRAME = SendFrame(
    conn=1,
    inline=True,
    session_id='s',
    channel_id=2,
    seq=3,
    ts_mono_ns=40,
    flags=1,
    payload=b'xyz',
    sim_ns=None,
    reliable=False,
    clock_zero_ns=1000,
)


class StubEngine:
    """Answers each fact with the effects that a test wrote down for it."""

    def __init__(self) -> None:
        self.answers: dict[type, list[list[Effect]]] = {}
        self.due: list[Effect] = []
        self.deadline_ns: int | None = None
        self.facts: list[Input] = []
        self.advanced_ns: list[int] = []
        self.latencies: list[tuple[str, int]] = []
        self.sent: list[tuple[SendFrame, int]] = []
        self.is_accepting = True
        self.fails = ''

    def _may_fail(self, where: str) -> None:
        if self.fails == where:
            raise ZeroDivisionError(f'injected into {where}')

    def handle(self, fact: Input, now_ns: int) -> list[Effect]:
        self._may_fail('handle')
        self.facts.append(fact)
        answers = self.answers.get(type(fact), [])
        return answers.pop(0) if answers else []

    def advance(self, now_ns: int) -> list[Effect]:
        self._may_fail('advance')
        self.advanced_ns.append(now_ns)
        self.deadline_ns = None
        return self.due

    def next_deadline_ns(self) -> int | None:
        return self.deadline_ns

    def admission_sent(self, session_id: str, latency_ns: int) -> None:
        self.latencies.append((session_id, latency_ns))

    def stream_allowed(self, token: str) -> bool:
        self._may_fail('stream_allowed')
        return token == 'good'

    def frame_sent(self, effect: SendFrame, sent_ns: int) -> None:
        self._may_fail('frame_sent')
        self.sent.append((effect, sent_ns))


class Rig:
    """A loop between a stub engine and stubs of everything that it drives."""

    def __init__(self) -> None:
        self.engine = StubEngine()
        self.done: list[object] = []
        self.beats_ns: list[int] = []
        self.faults: list[str] = []
        self.finished = 0
        self.on_apply: Callable[[object], None] = lambda effect: None
        self.loop = BridgeLoop(
            cast(Engine, self.engine),
            self,
            self,
            on_finish=self._finish,
            on_fault=self.faults.append,
        )

    def _finish(self) -> None:
        self.finished += 1

    # robot and transport

    def apply(self, effect: object, /) -> None:
        self.done.append(effect)
        self.on_apply(effect)

    def beat(self, now_ns: int, /) -> None:
        self.beats_ns.append(now_ns)

    # recorder

    def open(self, *content: Any) -> None:
        self.done.append(('open', *content))

    def record(self, *content: Any) -> None:
        self.done.append(('record', *content))

    def frame(self, *content: Any) -> None:
        self.done.append(('frame', *content))

    def close(self, *content: Any) -> None:
        self.done.append(('close', *content))

    # tests

    def start(self) -> None:
        self.loop.start(asyncio.get_running_loop(), cast(Transport, self))

    def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(5.0):
                self.start()
                await work()
                self.loop.stop()

        asyncio.run(bounded())

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():  # noqa: ASYNC110 conditions of stubs, which know no events
            await asyncio.sleep(0.001)


@pytest.fixture
def rig() -> Rig:
    return Rig()


# ---------------------------------------------------------------- effects


def test_what_stops_the_robot_comes_first_then_goals_then_the_rest_in_order(rig: Rig) -> None:
    rest = [
        SAY,
        AwaitRest(2, 'arm', 'arm'),
        ResetWorld('home'),
        SetChannelDemand('proprio', 10.0, True),
        FRAME,
        DropFrames(1, 2),
        ReportEmbodiment('arm', True, None, None),
        CloseConnection(1, 1000, ''),
    ]
    first, second = CancelGoal('g3', 'arm', 'move'), StartGoal('g4', 'arm', 'move', {}, 0)
    rig.engine.answers[Activated] = [[rest[0], START, BEHAVE, *rest[1:], second, CANCEL, first]]

    async def work() -> None:
        rig.loop.post(Activated())
        assert rig.done == [BEHAVE, CANCEL, first, START, second, *rest]

    rig.run(work)


def test_records_and_the_end_go_where_they_belong(rig: Rig) -> None:
    rig.engine.answers[Activated] = [
        [
            OpenAudit('s', 1, {'agent': {'name': 'a'}}),
            RecordAudit('s', 2, 'world', 'message', {'method': 'x'}),
            CloseAudit('s'),
            Finish(),
        ]
    ]

    async def work() -> None:
        rig.loop.post(Activated())
        assert rig.done == [
            ('open', 's', 1, {'agent': {'name': 'a'}}),
            ('record', 's', 2, 'world', 'message', {'method': 'x'}),
            ('close', 's'),
        ]
        assert rig.finished == 1

    rig.run(work)


def test_the_latency_of_an_admission_is_reported_when_its_answer_was_handed_over(
    rig: Rig,
) -> None:
    begun_ns = time.monotonic_ns()
    rig.engine.answers[Activated] = [
        [
            SendMessage(1, {}, 's', begun_ns),
            SendMessage(1, {}, None, begun_ns),
            SendMessage(1, {}, 's', None),
        ]
    ]

    async def work() -> None:
        rig.loop.post(Activated())
        ((session_id, latency_ns),) = rig.engine.latencies
        assert session_id == 's'
        assert 0 < latency_ns <= time.monotonic_ns() - begun_ns

    rig.run(work)


def test_messages_before_the_start_are_forgotten(rig: Rig) -> None:
    rig.engine.answers[Activated] = [[SAY, BEHAVE]]
    rig.loop.post(Activated())
    assert rig.done == [BEHAVE]


# ---------------------------------------------------------------- facts


def test_facts_that_come_while_effects_are_carried_out_wait(rig: Rig) -> None:
    lost = ConnectionLost(1, '')
    rig.engine.answers[Activated] = [[SAY, FRAME]]
    rig.engine.answers[ConnectionLost] = [[CANCEL]]

    def lose(effect: object) -> None:
        if effect is SAY:
            rig.loop.post(lost)
            assert rig.engine.facts == [Activated()]

    rig.on_apply = lose

    async def work() -> None:
        rig.loop.post(Activated())
        assert rig.engine.facts == [Activated(), lost]
        assert rig.done == [SAY, FRAME, CANCEL]

    rig.run(work)


def test_facts_from_other_threads_keep_their_order_and_wait_for_the_start(rig: Rig) -> None:
    facts = [ConnectionLost(number, '') for number in range(200)]
    for fact in facts[:10]:
        rig.loop.post_from_thread(fact)
    assert not rig.engine.facts

    def post() -> None:
        for fact in facts[10:]:
            rig.loop.post_from_thread(fact)

    async def work() -> None:
        assert rig.engine.facts == facts[:10]
        thread = threading.Thread(target=post)
        thread.start()
        await rig.until(lambda: len(rig.engine.facts) == len(facts))
        assert rig.engine.facts == facts
        thread.join()

    rig.run(work)


def test_a_fact_that_comes_after_the_end_harms_nobody(rig: Rig) -> None:
    async def work() -> None:
        pass

    rig.run(work)
    rig.loop.post_from_thread(Activated())  # the asyncio loop is closed
    rig.loop.post(Activated())
    assert not rig.engine.facts
    assert not rig.faults


# ---------------------------------------------------------------- time


def test_the_timer_follows_the_next_deadline(rig: Rig) -> None:
    engine = rig.engine
    engine.due = [CANCEL]

    async def work() -> None:
        begun_ns = time.monotonic_ns()
        engine.deadline_ns = begun_ns + 3_000_000_000
        rig.loop.post(Activated())
        engine.deadline_ns = begun_ns + 20_000_000  # an earlier one comes
        rig.loop.post(Activated())
        rig.loop.post(Activated())  # the same again
        await rig.until(lambda: engine.advanced_ns)
        assert engine.advanced_ns[0] >= begun_ns + 20_000_000
        assert rig.done == [CANCEL]
        assert len(engine.advanced_ns) == 1

    rig.run(work)


def test_a_deadline_that_is_taken_back_does_not_wake(rig: Rig) -> None:
    engine = rig.engine

    async def work() -> None:
        engine.deadline_ns = time.monotonic_ns() + 10_000_000
        rig.loop.post(Activated())
        engine.deadline_ns = None
        rig.loop.post(Activated())
        engine.deadline_ns = time.monotonic_ns() + 30_000_000
        wanted_ns = engine.deadline_ns
        rig.loop.post(Activated())
        await rig.until(lambda: engine.advanced_ns)
        assert engine.advanced_ns[0] >= wanted_ns

    rig.run(work)


def test_a_frame_that_leaves_later_moves_the_timer(rig: Rig) -> None:
    async def work() -> None:
        rig.engine.deadline_ns = time.monotonic_ns() + 5_000_000
        rig.loop.frame_sent(FRAME, 2000)
        await rig.until(lambda: rig.engine.advanced_ns)

    rig.run(work)


def test_what_came_due_meanwhile_is_told_together_with_facts(rig: Rig) -> None:
    engine = rig.engine
    engine.due = [SAY]

    def post(effect: object) -> None:
        if effect is SAY and not engine.facts:
            rig.loop.post(Activated())
            assert not engine.facts

    rig.on_apply = post

    async def work() -> None:
        engine.deadline_ns = time.monotonic_ns()
        rig.loop.post(ConnectionLost(1, ''))
        engine.facts.clear()
        await rig.until(lambda: engine.facts)
        assert engine.facts == [Activated()]

    rig.run(work)


# ---------------------------------------------------------------- beats


def test_beats_go_on_while_the_loop_turns_and_stop_while_it_is_blocked(rig: Rig) -> None:
    async def work() -> None:
        await rig.until(lambda: len(rig.beats_ns) > 3)
        before = len(rig.beats_ns)
        time.sleep(0.4)  # noqa: ASYNC251 this is the fault: the loop is blocked
        assert len(rig.beats_ns) == before
        await rig.until(lambda: len(rig.beats_ns) > before + 2)
        gaps = [b - a for a, b in zip(rig.beats_ns, rig.beats_ns[1:], strict=False)]
        assert max(gaps) >= 400_000_000
        assert min(gaps) >= 0.5 * BEAT_S * 1e9

    rig.run(work)


def test_facts_that_keep_the_timer_waiting_beat_instead(rig: Rig) -> None:
    """Sockets that are always readable: each fact serves the engine, the timer comes late."""

    async def work() -> None:
        await rig.until(lambda: rig.beats_ns)
        before = len(rig.beats_ns)
        for _ in range(50):
            time.sleep(0.01)  # noqa: ASYNC251 this is the fault: the loop takes no turn
            rig.loop.post(Activated())
        beats = rig.beats_ns[before:]
        assert 5 <= len(beats) <= 11  # of half a second, and not one for each fact
        gaps = [b - a for a, b in itertools.pairwise(beats)]
        assert min(gaps) >= BEAT_S * 1e9

    rig.run(work)


def test_a_fact_that_takes_long_is_no_beat(rig: Rig) -> None:
    rig.on_apply = lambda effect: time.sleep(0.3)
    rig.engine.answers[Activated] = [[SAY]]

    async def work() -> None:
        await rig.until(lambda: rig.beats_ns)
        before = rig.beats_ns[-1]
        rig.loop.post(Activated())
        assert time.monotonic_ns() - before >= 300_000_000
        assert rig.beats_ns[-1] - before < 100_000_000

    rig.run(work)


def test_no_beat_follows_a_stop(rig: Rig) -> None:
    async def work() -> None:
        await rig.until(lambda: rig.beats_ns)
        rig.loop.stop()
        before = len(rig.beats_ns)
        await asyncio.sleep(2.5 * BEAT_S)
        assert len(rig.beats_ns) == before

    rig.run(work)


# ---------------------------------------------------------------- faults


def engine_fails(rig: Rig, where: str) -> None:
    """Make the engine raise there, once."""
    rig.engine.fails = where
    if where == 'advance':
        rig.engine.deadline_ns = time.monotonic_ns()
        rig.loop.frame_sent(FRAME, 2000)
    elif where == 'frame_sent':
        rig.loop.frame_sent(FRAME, 2000)
    elif where == 'stream_allowed':
        assert not rig.loop.stream_allowed('good')
    else:
        rig.loop.post(Activated())


@pytest.mark.parametrize('where', ['handle', 'advance', 'frame_sent', 'stream_allowed'])
def test_a_fault_of_the_engine_is_told_once_and_ends_the_beats(
    rig: Rig, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        assert rig.loop.accepting()
        assert rig.loop.stream_allowed('good')
        engine_fails(rig, where)
        await rig.until(lambda: rig.faults)
        assert rig.faults == [f'ZeroDivisionError: injected into {where}']
        assert not rig.loop.accepting()
        assert not rig.loop.stream_allowed('good')
        rig.engine.fails = ''
        facts = len(rig.engine.facts)
        rig.loop.post(Activated())
        assert len(rig.engine.facts) == facts
        await asyncio.sleep(1.5 * BEAT_S)
        before = len(rig.beats_ns)
        await asyncio.sleep(2.5 * BEAT_S)
        assert len(rig.beats_ns) == before
        assert len(rig.faults) == 1

    rig.run(work)
    (record,) = [r for r in caplog.records if r.levelno == logging.CRITICAL]
    assert 'the robot is being stopped' in record.message
    assert record.exc_info is not None


@pytest.mark.parametrize('effect', [SAY, CANCEL, START])
def test_a_fault_on_the_way_out_is_a_fault_too(rig: Rig, effect: Effect) -> None:
    rig.engine.answers[Activated] = [[BEHAVE, effect, FRAME]]

    def fail(each: object) -> None:
        if each is effect:
            raise ValueError('no way out')

    rig.on_apply = fail

    async def work() -> None:
        rig.loop.post(Activated())
        assert rig.faults == ['ValueError: no way out']
        assert rig.done[0] is BEHAVE  # the robot was told to stop before
        assert FRAME not in rig.done

    rig.run(work)


def test_facts_behind_a_fault_are_not_looked_at(rig: Rig) -> None:
    rig.engine.answers[Activated] = [[SAY]]

    def break_off(effect: object) -> None:
        rig.loop.post(ShutdownRequested(''))
        rig.engine.fails = 'frame_sent'
        rig.loop.frame_sent(FRAME, 2000)

    rig.on_apply = break_off

    async def work() -> None:
        rig.loop.post(Activated())
        assert rig.engine.facts == [Activated()]
        assert len(rig.faults) == 1

    rig.run(work)


# ---------------------------------------------------------------- frames


def test_a_frame_is_recorded_with_the_time_it_left(rig: Rig) -> None:
    async def work() -> None:
        rig.loop.frame_sent(FRAME, 3000)
        assert rig.engine.sent == [(FRAME, 3000)]
        ((kind, session_id, ts, header, payload),) = cast(list[Any], rig.done)
        assert (kind, session_id, ts, payload) == ('frame', 's', 2000, b'xyz')
        assert header == {
            'channel_id': 2,
            'seq': 3,
            'ts_mono_ns': 40,
            'flags': 1,
            'ts_send_ns': 2000,
            'binding': 'inline',
        }

    rig.run(work)


def test_a_frame_of_a_stream_with_simulated_time_says_both(rig: Rig) -> None:
    frame = dataclasses.replace(FRAME, inline=False, sim_ns=77)

    async def work() -> None:
        rig.loop.frame_sent(frame, 3000)
        header = cast(list[Any], rig.done)[0][3]
        assert (header['binding'], header['ts_sim_ns']) == ('ws', 77)

    rig.run(work)


def test_the_clock_is_steady(rig: Rig) -> None:
    before = time.monotonic_ns()
    assert before <= rig.loop.now_ns() <= time.monotonic_ns()
