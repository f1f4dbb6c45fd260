"""Owns the one place where the engine is called: facts in, effects carried out, one timer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
import logging
import threading
import time
from typing import assert_never, Protocol

from awp_ros_bridge.bridge.journal import Journal
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
    RobotEffect,
    SendFrame,
    SendMessage,
    SetChannelDemand,
    StartGoal,
)
from awp_ros_bridge.engine.engine import Engine
from awp_ros_bridge.engine.inputs import Input
from awp_ros_bridge.transport.port import Transport

log = logging.getLogger('awp_ros_bridge.loop')

BEAT_S = 0.05
BEAT_NS = 50_000_000

_STOPS = (BeginBehavior, CancelGoal)
_STARTS = (StartGoal,)  # before messages and records, which cost it up to a millisecond
_FIRST = (*_STOPS, *_STARTS)


class Robot(Protocol):
    """What the loop asks of the ROS side; every call returns at once."""

    def apply(self, effect: RobotEffect, /) -> None:
        """Carry out one effect."""
        ...

    def beat(self, now_ns: int, /) -> None:
        """Note that the loop is alive; without beats the robot is stopped."""
        ...


class Recorder(Protocol):
    """What the loop asks of the audit log; every call returns at once."""

    def open(self, session_id: str, ts_mono_ns: int, header: dict[str, object], /) -> None:
        """Begin the log of a session."""
        ...

    def record(
        self,
        session_id: str,
        ts_mono_ns: int,
        direction: str,
        kind: str,
        body: dict[str, object],
        /,
    ) -> None:
        """Add a record."""
        ...

    def frame(
        self, session_id: str, ts_mono_ns: int, header: dict[str, object], payload: bytes, /
    ) -> None:
        """Add the record of a frame."""
        ...

    def close(self, session_id: str, /) -> None:
        """Put the log of a session on disk."""
        ...


class BridgeLoop:
    """
    Drives the engine on one asyncio loop.

    :meth:`post` belongs to the loop's thread, :meth:`post_from_thread` to all others. Facts that
    arrive while effects are carried out wait until those are done, so effects keep their order.

    :param on_finish: called once, when the engine says that the process may end.
    :param on_fault: called once, when the engine itself failed; the robot is being stopped.
    """

    def __init__(
        self,
        engine: Engine,
        robot: Robot,
        recorder: Recorder,
        *,
        on_finish: Callable[[], None],
        on_fault: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._robot = robot
        self._recorder = recorder
        self._on_finish = on_finish
        self._on_fault = on_fault
        self._journal = Journal()
        self._transport: Transport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._facts: deque[Input] = deque()
        self._foreign: deque[Input] = deque()
        self._foreign_lock = threading.Lock()
        self._foreign_scheduled = False
        self._busy = False
        self._broken = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns: int | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._beaten_ns = 0

    # ------------------------------------------------------------ life

    def start(self, loop: asyncio.AbstractEventLoop, transport: Transport) -> None:
        """Begin; called on the loop's thread, before the transport listens."""
        self._loop = loop
        self._transport = transport
        self._keep_beating()
        with self._foreign_lock:
            waiting = bool(self._foreign)
        if waiting:
            self._drain_foreign()

    def stop(self) -> None:
        """Stop beating and waking up."""
        for handle in (self._timer, self._beat):
            if handle is not None:
                handle.cancel()
        self._timer = self._beat = None
        self._broken = True

    def _keep_beating(self) -> None:
        if self._loop is not None and not self._broken:
            self._give_beat(time.monotonic_ns())
            self._beat = self._loop.call_later(BEAT_S, self._keep_beating)

    def _give_beat(self, now_ns: int) -> None:
        """
        Tell the robot that the engine is served.

        A fact does that too, since what is due happens before it. Many connections that send at
        their limits to a busy machine keep the timer waiting, but not the engine.
        """
        self._beaten_ns = now_ns
        self._robot.beat(now_ns)

    # ------------------------------------------------------------ facts

    def now_ns(self) -> int:
        """Read the steady clock of the engine."""
        return time.monotonic_ns()

    def post(self, fact: Input, /) -> None:
        """Tell the engine something and carry out what it wants; loop thread only."""
        self._facts.append(fact)
        self._work()

    def post_from_thread(self, fact: Input, /) -> None:
        """Tell the engine something from any thread."""
        with self._foreign_lock:
            self._foreign.append(fact)
            if self._foreign_scheduled or self._loop is None:
                return
            self._foreign_scheduled = True
        try:
            self._loop.call_soon_threadsafe(self._drain_foreign)
        except RuntimeError:  # the loop is closed: the process is ending
            log.debug('a fact came after the loop had closed: %s', type(fact).__name__)

    def _drain_foreign(self) -> None:
        with self._foreign_lock:
            self._foreign_scheduled = False
            self._facts.extend(self._foreign)
            self._foreign.clear()
        self._work()

    def _work(self) -> None:
        if self._busy or self._broken:
            return
        self._busy = True
        try:
            while self._facts and not self._broken:
                fact = self._facts.popleft()
                now_ns = time.monotonic_ns()
                if now_ns - self._beaten_ns >= BEAT_NS:
                    self._give_beat(now_ns)
                self._journal.fact(fact)
                self._carry_out(self._engine.handle(fact, now_ns))
            self._arm()
        except Exception as error:  # noqa: BLE001 - our own fault, whatever it is: stop the robot
            self._fail(error)
        finally:
            self._busy = False

    def _fail(self, error: Exception) -> None:
        if self._broken:
            return
        self._broken = True
        log.critical('the engine failed; the robot is being stopped', exc_info=error)
        self._on_fault(f'{type(error).__name__}: {error}')

    # ------------------------------------------------------------ time

    def _arm(self) -> None:
        due = self._engine.next_deadline_ns()
        if due == self._timer_ns and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_ns = due
        if due is not None and self._loop is not None:
            delay_s = max(0.0, (due - time.monotonic_ns()) / 1e9)
            self._timer = self._loop.call_later(delay_s, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._busy or self._broken:
            return
        self._busy = True
        try:
            self._carry_out(self._engine.advance(time.monotonic_ns()))
        except Exception as error:  # noqa: BLE001 - our own fault, whatever it is: stop the robot
            self._fail(error)
        finally:
            self._busy = False
        self._work()

    # ------------------------------------------------------------ effects

    def _carry_out(self, effects: list[Effect]) -> None:
        """Carry effects out in order: what stops the robot first, then goals, then the rest."""
        if any(isinstance(effect, _FIRST) for effect in effects):
            self._move(effects)
        for effect in effects:
            if not isinstance(effect, _FIRST):
                self._journal.effect(effect)
                self._one(effect)

    def _move(self, effects: list[Effect]) -> None:
        for kinds in (_STOPS, _STARTS):
            for effect in effects:
                if isinstance(effect, kinds):
                    self._journal.effect(effect)
                    self._robot.apply(effect)

    def _one(self, effect: Effect) -> None:
        match effect:
            case SendFrame() | DropFrames() | CloseConnection():
                self._send(effect)
            case SendMessage():
                self._send(effect)
                if effect.answers_ns is not None and effect.session_id is not None:
                    latency = time.monotonic_ns() - effect.answers_ns
                    self._engine.admission_sent(effect.session_id, latency)
            case (
                StartGoal()
                | AwaitRest()
                | ResetWorld()
                | SetChannelDemand()
                | ReportEmbodiment()
                | BeginBehavior()
                | CancelGoal()
            ):
                self._robot.apply(effect)
            case RecordAudit(session_id, ts, direction, kind, body):
                self._recorder.record(session_id, ts, direction, kind, body)
            case OpenAudit(session_id, ts, header):
                self._recorder.open(session_id, ts, header)
            case CloseAudit(session_id):
                self._recorder.close(session_id)
            case Finish():
                self._on_finish()
            case _:
                assert_never(effect)

    def _send(self, effect: SendMessage | SendFrame | DropFrames | CloseConnection) -> None:
        if self._transport is not None:
            self._transport.apply(effect)

    # ------------------------------------------------------------ what the transport asks

    def stream_allowed(self, token: str, /) -> bool:
        """Say whether a stream connection may be opened with this session token."""
        try:
            return not self._broken and self._engine.stream_allowed(token)
        except Exception as error:  # noqa: BLE001 - our own fault, whatever it is: stop the robot
            self._fail(error)
            return False

    def accepting(self) -> bool:
        """Say whether new connections are welcome."""
        return self._engine.is_accepting and not self._broken

    def frame_sent(self, effect: SendFrame, sent_ns: int, /) -> None:
        """Note that a frame left: telemetry, staleness, audit (AWP-AUD-001)."""
        try:
            self._engine.frame_sent(effect, sent_ns)
            if not self._busy:  # a channel that is delivered again is watched again
                self._arm()
        except Exception as error:  # noqa: BLE001 - our own fault, whatever it is: stop the robot
            self._fail(error)
        self._record_frame(effect, sent_ns)

    def _record_frame(self, effect: SendFrame, sent_ns: int) -> None:
        header: dict[str, object] = {
            'channel_id': effect.channel_id,
            'seq': effect.seq,
            'ts_mono_ns': effect.ts_mono_ns,
            'flags': effect.flags,
            'ts_send_ns': sent_ns - effect.clock_zero_ns,
            'binding': 'inline' if effect.inline else 'ws',
        }
        if effect.sim_ns is not None:
            header['ts_sim_ns'] = effect.sim_ns
        ts = sent_ns - effect.clock_zero_ns
        self._recorder.frame(effect.session_id, ts, header, effect.payload)
