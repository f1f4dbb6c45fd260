"""Owns measured rest: is a body still, what moves it if not, who waits for it; safety thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
import time
from typing import Any

from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import JointState

from awp_ros_bridge.config import BridgeConfig, MeasuredRest, OdometryRest, TfRest, UnmeasuredRest
from awp_ros_bridge.engine.inputs import Input, Meaning, RestChanged
from awp_ros_bridge.ros.body_track import OdometrySpeed, TfSpeed
from awp_ros_bridge.ros.joint_track import RestTrack
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.rest_source import Source, TfSource, TopicSource
from awp_ros_bridge.ros.runtime import Deadline, RosThread
from awp_ros_bridge.ros.stop import LocalStop
from awp_ros_bridge.ros.unexpected import UnexpectedMotion

FORGET_NS = 120_000 * MS

Rested = Callable[[bool], None]


Measure = MeasuredRest | OdometryRest | TfRest
Track = RestTrack | OdometrySpeed | TfSpeed


class RestMonitor:
    """
    Measures the rest of every embodiment.

    Reading (:meth:`joints`, :meth:`joint_velocities`, :meth:`at_rest`, :meth:`silent_ns`,
    :meth:`unexpected`) and :meth:`await_rest` are safe on any thread, everything else happens on
    the safety thread.

    :param is_commanded: tells whether an action or a safe-state step moves an embodiment.
    """

    def __init__(
        self,
        thread: RosThread,
        post: Callable[[Input], None],
        stop: LocalStop,
        config: BridgeConfig,
        is_commanded: Callable[[str], bool],
    ) -> None:
        self._thread = thread
        self._embodiments: dict[str, _Measured | _Unmeasured] = {}
        self._sources: dict[str, Source] = {}
        rests = {name: each.at_rest for name, each in config.embodiments.items()}
        pairs = [rest.tf for rest in rests.values() if isinstance(rest, TfRest)]
        self._tf_frames = {frame for pair in pairs for frame in (pair.frame, pair.reference)}
        for name, rest in rests.items():
            if isinstance(rest, UnmeasuredRest):
                self._embodiments[name] = _Unmeasured(thread, rest)
                continue
            means = Meaning.FAULT if rest.unexpected_motion == 'stop' else Meaning.DEGRADED
            unexpected = UnexpectedMotion(
                name, stop, partial(is_commanded, name), means, rest.unexpected_after_ms * MS
            )
            source = self._source(rest)
            self._embodiments[name] = _Measured(name, rest, source, post, stop, unexpected)

    def _source(self, rest: Measure) -> Source:
        key = _source_name(rest)
        found = self._sources.get(key)
        if found is None:
            if isinstance(rest, TfRest):
                found = TfSource(self._thread, self._tf_frames)
            else:
                kind = Odometry if isinstance(rest, OdometryRest) else JointState
                found = TopicSource(self._thread, key, kind)
            self._sources[key] = found
        return found

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """Subscribe and begin to judge; before the thread starts."""
        for source in self._sources.values():
            source.start(node, resolve)

    def await_rest(
        self, embodiment: str, since_ns: int, rested: Rested, group: str = ''
    ) -> Callable[[], None]:
        """
        Call back once, on the safety thread, when all samples since a time were slow.

        :param rested: takes False where rest is not measured and the settle time passed.
        :param group: concurrency group whose joints must rest; all where it names none.
        :return: what forgets the wait; callable on any thread.
        """
        wait = _Wait(since_ns, rested, group)
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

    def unexpected(self, embodiment: str) -> str | None:
        """Return how an embodiment moves that nobody asked to, None while it does not."""
        return self._embodiments[embodiment].unexpected


class _Wait:
    __slots__ = ('group', 'is_over', 'rested', 'since_ns')

    def __init__(self, since_ns: int, rested: Rested, group: str) -> None:
        self.since_ns = since_ns
        self.rested = rested
        self.group = group
        self.is_over = False

    def end(self, measured: bool) -> None:
        if not self.is_over:
            self.is_over = True
            self.rested(measured)


class _Unmeasured:
    """An embodiment that nothing measures: it settles."""

    at_rest: bool | None = None
    unexpected: str | None = None

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


def _source_name(rest: Measure) -> str:
    if isinstance(rest, OdometryRest):
        return rest.odometry
    return 'tf' if isinstance(rest, TfRest) else rest.topic


def _track(rest: Measure) -> Track:
    if isinstance(rest, OdometryRest):
        return OdometrySpeed(rest)
    if isinstance(rest, TfRest):
        return TfSpeed(rest, rest.tf)
    return RestTrack(None if rest.joints == 'all' else rest.joints, rest.bound_of)


class _Measured:
    """An embodiment whose speed is measured."""

    def __init__(
        self,
        name: str,
        rest: Measure,
        source: Source,
        post: Callable[[Input], None],
        stop: LocalStop,
        unexpected: UnexpectedMotion,
    ) -> None:
        self._name = name
        self._input = f'{_source_name(rest)}:stale'
        self._source = source
        self._post = post
        self._stop = stop
        self._unexpected = unexpected
        self._for_ns = rest.for_ms * MS
        self.stale_ns = rest.stale_after_ms * MS
        self._track = _track(rest)
        self._groups: Mapping[str, Collection[str]] = (
            rest.groups if isinstance(rest, MeasuredRest) else {}
        )
        self._waits: list[_Wait] = []
        self._unsafe: str | None = None
        self._deadline: Deadline | None = None
        self.at_rest: bool | None = None
        source.users.append(self)

    @property
    def unexpected(self) -> str | None:
        return self._unexpected.detail

    @property
    def is_awaited(self) -> bool:
        return bool(self._waits)

    def begin(self) -> None:
        """Silence is unsafe from the first moment on."""
        self._judge(time.monotonic_ns())

    def take(self, now_ns: int, message: Any | None) -> None:
        if message is None:
            self._track.spoil(now_ns, 'the message cannot be read')
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
            moved = self._groups.get(wait.group)
            if self._unsafe is None and self._track.rests(wait.since_ns, self._for_ns, moved):
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
        self._unexpected.look(now_ns, rests, self._track.fast())
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
