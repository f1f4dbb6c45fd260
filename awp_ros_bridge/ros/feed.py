"""Owns the way of one channel's samples to the engine: keep the newest, thin out, time, encode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from awp_ros_bridge.engine.inputs import ObservationCaptured
from awp_ros_bridge.ros.capture_time import CaptureClock, Clocks

# What was held up, by a busy machine say, may come in a burst: this much of it is no excess rate.
_BURST_NS = 100_000_000
# A publisher's clock may run a little faster than ours.
_TOLERANCE = 0.98

Encode = Callable[[Any], tuple[bytes, int | None]]
Post = Callable[[ObservationCaptured], None]


@dataclass(slots=True)
class _Sample:
    """What arrived last."""

    value: Any
    arrival_ns: int
    ros_arrival_ns: int
    encoded: ObservationCaptured | None = None


class ChannelFeed:
    """
    One channel between its subscription and the engine; used from one thread.

    While nobody listens a sample is kept and not looked at. Above the wanted rate the newest
    sample goes out when it is due.

    :param encode: sample to payload and stamp in ns, may raise
    :param hold: called when a sample waits; :meth:`flush` is due after the given ns
    :param fail: told what could not be encoded
    :ivar count: samples that arrived
    :ivar unbelieved: how many samples in a row had a stamp of another clock
    """

    def __init__(
        self,
        channel: str,
        encode: Encode,
        post: Post,
        clocks: Clocks,
        hold: Callable[[int], object],
        fail: Callable[[Exception], None],
    ) -> None:
        self.channel = channel
        self.count = 0
        self.unbelieved = 0
        self._encode = encode
        self._post = post
        self._clocks = clocks
        self._hold = hold
        self._fail = fail
        self._capture = CaptureClock(clocks)
        self._newest: _Sample | None = None
        self._is_held = False
        self._period_ns = 0
        self._due_ns = 0

    @property
    def last_arrival_ns(self) -> int | None:
        """Give the steady time at which the newest sample arrived."""
        return None if self._newest is None else self._newest.arrival_ns

    def offer(self, value: Any, delay_ns: int = 0) -> None:
        """
        Take a sample.

        :param delay_ns: how long ago it arrived
        """
        clocks = self._clocks
        now_ns = clocks.steady_ns()
        self._newest = _Sample(value, now_ns - delay_ns, clocks.ros_ns() - delay_ns)
        self.count += 1
        if not self._period_ns:
            return
        wait_ns = self._due_ns - now_ns
        if wait_ns <= 0:
            self._deliver(now_ns)
        elif not self._is_held:
            self._is_held = True
            self._hold(wait_ns)

    def flush(self) -> None:
        """Deliver the sample that waited, if it still does."""
        if not self._is_held:
            return
        self._is_held = False
        now_ns = self._clocks.steady_ns()
        if not self._period_ns:
            return
        if now_ns < self._due_ns:
            self._is_held = True
            self._hold(self._due_ns - now_ns)
            return
        self._deliver(now_ns)

    def demand(self, rate_hz: float, fresh: bool) -> None:
        """
        Set the wanted rate, 0 for nobody.

        :param fresh: deliver the newest sample now, with the time it had when it came
        """
        self._period_ns = int(_TOLERANCE * 1e9 / rate_hz) if rate_hz > 0 else 0
        if fresh:
            self._send()
            self._due_ns = 0 if self._newest is None else self._due_ns

    def _deliver(self, now_ns: int) -> None:
        self._is_held = False
        self._due_ns = max(self._due_ns or now_ns, now_ns - _BURST_NS) + self._period_ns
        self._send()

    def _send(self) -> None:
        sample = self._newest
        if sample is None:
            return
        if sample.encoded is None:
            try:
                payload, stamp_ns = self._encode(sample.value)
            except Exception as error:  # noqa: BLE001 bad data harms its own channel only
                self._fail(error)
                return
            at = self._capture.capture(stamp_ns, sample.arrival_ns, sample.ros_arrival_ns)
            self.unbelieved = 0 if at.is_stamp_used else self.unbelieved + 1
            sample.encoded = ObservationCaptured(self.channel, payload, at.captured_ns, at.sim_ns)
        self._post(sample.encoded)
