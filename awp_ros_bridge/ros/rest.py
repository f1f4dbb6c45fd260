"""Owns measured rest: joint states in, at rest or not out, and who waits for it; safety thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
import time
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from awp_ros_bridge.config import BridgeConfig, MeasuredRest, UnmeasuredRest
from awp_ros_bridge.engine.inputs import Input, Meaning, RestChanged
from awp_ros_bridge.ros.joint_track import RestTrack
from awp_ros_bridge.ros.newest import NewestReader
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import Deadline, RosThread
from awp_ros_bridge.ros.stop import LocalStop

PACE_NS = 40 * MS  # while nobody waits, rest is judged at 25 Hz; else with every sample
WINDOW_NS = 1_000 * MS
FAST = 2.5  # times the pace: the topic is then looked at, not followed
MISSES = 3  # looks without news after which it is followed again
FORGET_NS = 120_000 * MS

Rested = Callable[[bool], None]


class RestMonitor:
    """
    Measures the rest of every embodiment.

    Reading (:meth:`joints`, :meth:`joint_velocities`, :meth:`at_rest`, :meth:`silent_ns`) and
    :meth:`await_rest` are safe on any thread, everything else happens on the safety thread.
    """

    def __init__(
        self,
        thread: RosThread,
        post: Callable[[Input], None],
        stop: LocalStop,
        config: BridgeConfig,
    ) -> None:
        self._thread = thread
        self._embodiments: dict[str, _Measured | _Unmeasured] = {}
        self._sources: dict[str, _Source] = {}
        for name, embodiment in config.embodiments.items():
            rest = embodiment.at_rest
            if isinstance(rest, UnmeasuredRest):
                self._embodiments[name] = _Unmeasured(thread, rest)
                continue
            source = self._sources.setdefault(rest.topic, _Source(thread))
            self._embodiments[name] = _Measured(name, rest, source, post, stop)

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Subscribe and begin to judge; before the thread starts."""
        for topic, source in self._sources.items():
            source.start(node, resolve(topic))

    def await_rest(self, embodiment: str, since_ns: int, rested: Rested) -> Callable[[], None]:
        """
        Call back once, on the safety thread, when all samples since a time were slow.

        :param rested: takes False where rest is not measured and the settle time passed.
        :return: what forgets the wait; callable on any thread.
        """
        wait = _Wait(since_ns, rested)
        self._thread.post(self._embodiments[embodiment].await_rest, wait)

        def forget() -> None:
            wait.is_over = True

        return forget

    def joints(self, embodiment: str) -> dict[str, float] | None:
        """Return the newest joint positions, rad or m; None while not all were heard."""
        return self._embodiments[embodiment].joints()

    def joint_velocities(self, embodiment: str) -> dict[str, float] | None:
        """
        Return the newest finite joint velocities, rad/s or m/s; None while there is none.

        All are zero while the embodiment rests: what is measured then is noise.
        """
        return self._embodiments[embodiment].joint_velocities()

    def at_rest(self, embodiment: str) -> bool | None:
        """Return the measured rest, None while it is not known."""
        return self._embodiments[embodiment].at_rest

    def silent_ns(self, embodiment: str, now_ns: int) -> int | None:
        """Return for how long the rest topic has been silent; None where there is none."""
        return self._embodiments[embodiment].silent_ns(now_ns)


class _Wait:
    __slots__ = ('is_over', 'rested', 'since_ns')

    def __init__(self, since_ns: int, rested: Rested) -> None:
        self.since_ns = since_ns
        self.rested = rested
        self.is_over = False

    def end(self, measured: bool) -> None:
        if not self.is_over:
            self.is_over = True
            self.rested(measured)


class _Unmeasured:
    """An embodiment that nothing measures: it settles."""

    at_rest: bool | None = None

    def __init__(self, thread: RosThread, rest: UnmeasuredRest) -> None:
        self._thread = thread
        self._settle_ns = rest.settle_ms * MS

    def await_rest(self, wait: _Wait) -> None:
        self._thread.call_at(wait.since_ns + self._settle_ns, partial(wait.end, False))

    def joints(self) -> dict[str, float] | None:
        return None

    def joint_velocities(self) -> dict[str, float] | None:
        return None

    def silent_ns(self, now_ns: int) -> int | None:
        return None


class _Source:
    """
    One JointState topic, for every embodiment that looks at it.

    A topic much faster than rest is judged is looked at when that is due, unless somebody waits
    for rest: then every sample counts.
    """

    def __init__(self, thread: RosThread) -> None:
        self.thread = thread
        self.heard_ns = 0
        self.started_ns = time.monotonic_ns()
        self.users: list[_Measured] = []
        self._reader: NewestReader | None = None
        self._decoded_ns = 0
        self._pace_ns = PACE_NS
        self._window_ns = 0
        self._arrived = 0
        self._misses = 0

    def start(self, node: Node, topic: str) -> None:
        # best effort hears every publisher; a lost sample is followed by the next
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        callback = self.thread.guard(self._on_sample)
        self._reader = NewestReader(node, JointState, topic, qos, callback)
        self.started_ns = time.monotonic_ns()
        self._pace_ns = min(PACE_NS, *(user.stale_ns // 4 for user in self.users))
        for user in self.users:
            user.begin()

    def follow(self) -> None:
        """Look at every sample from now on: somebody waits."""
        if self._reader is not None:
            self._reader.dispatch(True)

    def _on_sample(self, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        self.heard_ns = now_ns
        is_awaited = any(user.is_awaited for user in self.users)
        self._arrived += 1
        if now_ns - self._window_ns >= WINDOW_NS:
            self._choose(now_ns, is_awaited)
        # a little early rather than a whole period late
        if is_awaited or now_ns - self._decoded_ns >= self._pace_ns - MS:
            self._decode(data, now_ns)

    def _decode(self, data: bytes, now_ns: int) -> None:
        self._decoded_ns = now_ns
        try:
            message: Any = deserialize_message(data, JointState)
        except Exception:  # noqa: BLE001 whatever cannot be read is no proof of rest
            message = None
        for user in self.users:
            user.take(now_ns, message)

    def _choose(self, now_ns: int, is_awaited: bool) -> None:
        passed_ns = now_ns - self._window_ns
        is_fast = self._arrived * self._pace_ns > FAST * passed_ns
        self._window_ns, self._arrived = now_ns, 0
        if is_fast and not is_awaited and self._reader and self._reader.dispatch(False):
            self._misses = 0
            self.thread.call_later(self._pace_ns, self._look)

    def _look(self) -> None:
        reader = self._reader
        if reader is None or reader.is_dispatched:
            return
        data = reader.take()
        self._misses = 0 if data is not None else self._misses + 1
        if self._misses >= MISSES:
            reader.dispatch(True)
            return
        self.thread.call_later(self._pace_ns, self._look)
        if data is not None:
            now_ns = time.monotonic_ns()
            self.heard_ns = now_ns
            self._decode(data, now_ns)


class _Measured:
    """An embodiment whose joints are measured."""

    def __init__(
        self,
        name: str,
        rest: MeasuredRest,
        source: _Source,
        post: Callable[[Input], None],
        stop: LocalStop,
    ) -> None:
        self._name = name
        self._input = f'{rest.topic}:stale'
        self._source = source
        self._post = post
        self._stop = stop
        self._for_ns = rest.for_ms * MS
        self.stale_ns = rest.stale_after_ms * MS
        bounds = [b for b in (rest.max_velocity_radps, rest.max_velocity_mps) if b is not None]
        # where both are given the kind of a joint is not known here: the stricter bound holds
        self._track = RestTrack(None if rest.joints == 'all' else rest.joints, min(bounds))
        self._waits: list[_Wait] = []
        self._unsafe: str | None = None
        self._deadline: Deadline | None = None
        self.at_rest: bool | None = None
        source.users.append(self)

    @property
    def is_awaited(self) -> bool:
        return bool(self._waits)

    def begin(self) -> None:
        """Silence is unsafe from the first moment on."""
        self._judge(time.monotonic_ns())

    def take(self, now_ns: int, message: Any | None) -> None:
        if message is None:
            for track in self._track.tracks.values():
                track.spoil(now_ns, 'the message cannot be read')
        else:
            self._track.take(now_ns, message)
        self._judge(now_ns)
        if self._waits:
            self._serve()

    def await_rest(self, wait: _Wait) -> None:
        oldest_ns = wait.since_ns - FORGET_NS
        self._waits = [w for w in self._waits if not w.is_over and w.since_ns > oldest_ns]
        self._waits.append(wait)
        self._source.follow()

    def joints(self) -> dict[str, float] | None:
        return self._track.positions()

    def joint_velocities(self) -> dict[str, float] | None:
        found = self._track.velocities()
        return dict.fromkeys(found, 0.0) if self.at_rest else found or None

    def silent_ns(self, now_ns: int) -> int | None:
        source = self._source
        return now_ns - (source.heard_ns or source.started_ns)

    def _serve(self) -> None:
        left: list[_Wait] = []
        for wait in self._waits:
            if self._unsafe is None and self._track.rests(wait.since_ns, self._for_ns):
                wait.end(True)
            elif not wait.is_over:
                left.append(wait)
        self._waits = left

    def _judge(self, now_ns: int) -> None:
        unsafe = self._track.unsafe(now_ns, self.stale_ns)
        before, self._unsafe = self._unsafe, unsafe
        if unsafe is not None and before is None:
            detail = f'{self._source_name()}: {unsafe}'
            servers = self._stop.servers(self._name)
            detail = f'{detail}; goals run on {servers}' if servers else detail
            self._stop.engage(self._name, self._input, Meaning.NOT_READY, detail)
        elif unsafe is None and before is not None:
            self._stop.release(self._name, self._input, Meaning.NOT_READY, 'heard again')
        rests = self._track.rests(0, self._for_ns) if unsafe is None else None
        if rests is not self.at_rest:
            self.at_rest = rests
            self._post(RestChanged(self._name, rests))
        if unsafe is None and (self._deadline is None or self._deadline.is_cancelled):
            self._deadline = self._source.thread.call_at(now_ns + self.stale_ns, self._on_silence)

    def _source_name(self) -> str:
        return self._input.removesuffix(':stale')

    def _on_silence(self) -> None:
        """Look whether something came since; the next look is due one limit after that."""
        now_ns = time.monotonic_ns()
        tracks = self._track.tracks.values()
        oldest_ns = min((track.heard_ns for track in tracks), default=0)
        due_ns = oldest_ns + self.stale_ns
        if due_ns > now_ns:
            self._deadline = self._source.thread.call_at(due_ns, self._on_silence)
        else:
            self._deadline = None
            self._judge(now_ns)
