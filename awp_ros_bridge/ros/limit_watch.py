"""
Owns the watch over executed motion and force: what leaves its limits is stopped here.

Everything happens on the safety thread, without the engine: the gate is shut and the goals are
cancelled in the look that found the violation (AWP-ENV-003). Silence of a source, or numbers that
are not finite, forbid motion like a silent safety input.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
import time
from typing import Any

from rclpy.node import Node

from awp_ros_bridge.config import BridgeConfig, Envelope
from awp_ros_bridge.engine.inputs import EnvelopeViolated, Meaning
from awp_ros_bridge.kinematics import Chain
from awp_ros_bridge.ros.interfaces import InterfaceMissing
from awp_ros_bridge.ros.limit_judge import FORCE, LimitJudge, Reading, SPATIAL, UNITS, VELOCITY
from awp_ros_bridge.ros.limit_sources import (
    Force,
    JointTip,
    motion_source,
    Places,
    Source,
    TfTip,
)
from awp_ros_bridge.ros.live_goals import LiveGoals
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.rest import RestMonitor
from awp_ros_bridge.ros.runtime import Deadline, RosThread
from awp_ros_bridge.ros.stop import LocalStop

FORCE_RATE_HZ = 100.0
RESTING_NS = 100 * MS  # so often is a body at rest looked at, of which no goal runs
ASK_AGAIN_NS = 60_000 * MS  # whoever waits for rest longer asks anew


class LimitWatch:
    """
    Watches every measured limit of every embodiment.

    :meth:`report` is safe on any thread, everything else happens on the safety thread.
    """

    def __init__(
        self,
        thread: RosThread,
        stop: LocalStop,
        rest: RestMonitor,
        goals: LiveGoals,
        config: BridgeConfig,
        places: Places,
    ) -> None:
        self._watches: dict[str, list[SourceWatch]] = {}
        self._tips: dict[str, JointTip] = {}
        for name, embodiment in config.embodiments.items():
            envelope = embodiment.envelope
            if envelope is None or not envelope.is_measured:
                continue
            make = partial(SourceWatch, name, thread, stop, rest, goals)
            watches = self._watches[name] = []
            motion = motion_source(name, envelope, config.frames.root, places)
            if motion is not None and envelope.measured is not None:
                measured = envelope.measured
                judges = _motion_judges(envelope)
                watches.append(make(motion, judges, measured.rate_hz, measured.stale_after_ms))
            if isinstance(motion, JointTip):
                self._tips[name] = motion
            if envelope.force is not None and envelope.max_force_n is not None:
                bound, force = envelope.max_force_n, envelope.force
                judge = LimitJudge(FORCE, bound, force.force_margin * bound)
                source = Force(force)
                watches.append(make(source, [judge], FORCE_RATE_HZ, force.stale_after_ms))

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Subscribe and begin to judge; before the thread starts."""
        for watches in self._watches.values():
            for watch in watches:
                watch.start(node, resolve)

    def hurry(self, embodiment: str) -> None:
        """Look now, and at the full rate from now on: a goal begins."""
        for watch in self._watches.get(embodiment, ()):
            watch.hurry()

    def watches(self, embodiment: str) -> bool:
        """Tell whether anything of an embodiment is measured; any thread."""
        return embodiment in self._watches

    def take_chain(self, embodiment: str, chain: Chain) -> None:
        """Measure an embodiment with a chain that nobody else uses."""
        tip = self._tips.get(embodiment)
        if tip is not None:
            tip.take_chain(chain)

    @property
    def tf_period_ns(self) -> int | None:
        """How often tf is looked at, None where nothing is measured by it."""
        periods = [
            watch.period_ns
            for watches in self._watches.values()
            for watch in watches
            if isinstance(watch.source, TfTip)
        ]
        return min(periods, default=None)

    def report(self, embodiment: str) -> dict[str, Any]:
        """Return the newest value of each measured limit, what is allowed, and what is wrong."""
        out: dict[str, Any] = {}
        for watch in self._watches.get(embodiment, ()):
            out |= watch.report()
        return out


def _motion_judges(envelope: Envelope) -> list[LimitJudge]:
    measured = envelope.measured
    judges: list[LimitJudge] = []
    if measured is not None and envelope.spatial is not None:
        judges.append(LimitJudge(SPATIAL, 0.0, measured.spatial_margin_m))
    if measured is not None and envelope.max_velocity_mps is not None:
        bound = envelope.max_velocity_mps
        judges.append(LimitJudge(VELOCITY, bound, measured.velocity_margin * bound))
    return judges


class SourceWatch:
    """One source of one embodiment, and the limits that it measures."""

    def __init__(
        self,
        embodiment: str,
        thread: RosThread,
        stop: LocalStop,
        rest: RestMonitor,
        goals: LiveGoals,
        source: Source,
        judges: list[LimitJudge],
        rate_hz: float,
        stale_after_ms: int,
    ) -> None:
        self._name = embodiment
        self._thread = thread
        self._stop = stop
        self._rest = rest
        self._goals = goals
        self.source = source
        self._judges = {judge.limit: judge for judge in judges}
        self._input = f'{source.label}:limits'
        self.period_ns = round(1e9 / rate_hz)
        self._stale_ns = stale_after_ms * MS
        self._heard_ns = 0
        self._started_ns = 0
        self._next: Deadline | None = None
        self._doubt: str | None = None
        self._has_rested = False
        self._asked_ns: int | None = None
        self._forget: Callable[[], None] | None = None

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Subscribe; motion is forbidden until something was measured."""
        self._started_ns = time.monotonic_ns()
        self._change(f'{self.source.label} was not heard yet')
        try:
            self.source.start(node, resolve)
        except InterfaceMissing as error:
            self._change(f'{self.source.label} cannot be heard: {error}')
            return
        self._next = self._thread.call_later(self.period_ns, self._turn)

    def hurry(self) -> None:
        """Look now, unless the next look is as near as it can be."""
        due = self._next
        if due is not None and due.at_ns > time.monotonic_ns() + self.period_ns:
            due.cancel()
            self._turn()

    def report(self) -> dict[str, Any]:
        """Return what diagnostics show; any thread."""
        out: dict[str, Any] = {
            judge.limit: {
                'measured': judge.newest,
                'allowed': judge.allowed,
                'violated': judge.is_engaged,
            }
            for judge in self._judges.values()
        }
        return out | ({self._input: self._doubt} if self._doubt is not None else {})

    # ------------------------------------------------------------ looking

    def _turn(self) -> None:
        now_ns = time.monotonic_ns()
        self._look(now_ns)
        is_quiet = self._rest.at_rest(self._name) is not False and not self._is_engaged
        wait_ns = self.period_ns
        if is_quiet and not self._goals.of(self._name):
            wait_ns = max(wait_ns, min(RESTING_NS, self._stale_ns // 2))
        self._next = self._thread.call_at(now_ns + wait_ns, self._turn)

    def _look(self, now_ns: int) -> None:
        found = self.source.look(now_ns)
        if found is None:
            self._change(self._stale(now_ns) if self._doubt is None else self._doubt)
        elif isinstance(found, str):
            self._change(f'{self.source.label}: {found}', is_news=True)
        else:
            self._heard_ns = now_ns
            self._judge(found, now_ns)
            self._change(None)
        if self._doubt is not None:
            self._forget_rest()
        elif self._is_engaged:
            self._ask_for_rest(now_ns)

    def _stale(self, now_ns: int) -> str | None:
        silent_ns = now_ns - (self._heard_ns or self._started_ns)
        if silent_ns < self._stale_ns:
            return None
        label, limit_ms = self.source.label, self._stale_ns // MS
        return f'{label} silent for {silent_ns // MS} ms (limit {limit_ms} ms)'

    def _change(self, doubt: str | None, is_news: bool = False) -> None:
        """
        Forbid motion while nothing is measured, and permit it again.

        :param is_news: tell another doubt too.
        """
        before, self._doubt = self._doubt, doubt
        if doubt is not None and before is None:
            self._stop.engage(self._name, self._input, Meaning.NOT_READY, doubt)
        elif doubt is not None and is_news and doubt != before:
            self._stop.tell_again(self._name, self._input, Meaning.NOT_READY, doubt)
        elif doubt is None and before is not None:
            self._stop.release(self._name, self._input, Meaning.NOT_READY, 'measured again')

    # ------------------------------------------------------------ judging

    @property
    def _is_engaged(self) -> bool:
        return any(judge.is_engaged for judge in self._judges.values())

    def _judge(self, reading: Reading, now_ns: int) -> None:
        for limit, value in reading.values.items():
            judge = self._judges[limit]
            if judge.take(value):
                self._violated(judge, value, reading.where)
        if self._has_rested:
            self._settle(reading)

    def _violated(self, judge: LimitJudge, value: float, where: str) -> None:
        """Stop now; the engine is told in the same call, before the goals are cancelled."""
        self._forget_rest()
        self._stop.violated(
            EnvelopeViolated(
                self._name,
                judge.limit,
                round(value, 6),
                judge.bound,
                round(judge.allowed - judge.bound, 6),
                UNITS[judge.limit],
                judge.words(value, where),
                epoch=0,
            )
        )

    def _settle(self, reading: Reading) -> None:
        """Permit motion from rest, wherever the body stands: it must be able to come back."""
        self._forget_rest()
        for limit, value in reading.values.items():
            judge = self._judges[limit]
            if judge.is_engaged:
                judge.settle(value)
                within = value <= judge.bound + judge.tolerance
                detail = 'at rest within it' if within else 'at rest beyond it; it may move back'
                name = f'envelope:{limit}'
                self._stop.release(self._name, name, Meaning.FAULT, detail)

    # ------------------------------------------------------------ rest

    def _ask_for_rest(self, now_ns: int) -> None:
        if self._asked_ns is not None and now_ns - self._asked_ns < ASK_AGAIN_NS:
            return
        self._forget_rest()
        self._asked_ns = now_ns
        self._forget = self._rest.await_rest(self._name, now_ns, self._on_rest)

    def _on_rest(self, measured: bool) -> None:
        self._has_rested = True  # the next look, a newer one, settles

    def _forget_rest(self) -> None:
        if self._forget is not None:
            self._forget()
        self._forget = self._asked_ns = None
        self._has_rested = False
