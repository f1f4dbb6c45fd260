"""Owns the observation channels that stand on topics: subscribing, pace, encoding, silence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
import logging
import time
from typing import Any

from rclpy.node import Node

from awp_ros_bridge.config import FramesConfig, TF_CHANNEL, TopicChannel
from awp_ros_bridge.ros.capture_time import Clocks
from awp_ros_bridge.ros.encoders.base import BadMessage, EncoderContext, NoEncoder
from awp_ros_bridge.ros.encoders.registry import make_encoder
from awp_ros_bridge.ros.feed import ChannelFeed
from awp_ros_bridge.ros.interfaces import InterfaceMissing, load_interface
from awp_ros_bridge.ros.tf import Frames
from awp_ros_bridge.ros.topic_reader import Thread, TopicReader

_LOG = logging.getLogger(__name__)

_REVIEW_NS = 1_000_000_000
_LOG_AGAIN_NS = 30_000_000_000
_LONGEST_SILENCE_NS = 2_000_000_000
_DEPTHS = {'reliable': 200, 'latest-wins': 50}
_ERROR_NS = 5_000_000_000  # what could not be sent is told for so long at least
# A topic this much faster than the wanted rate is looked at only when a frame is due.
_POLL_ABOVE = 2.5
_FOLLOW_BELOW = 1.5
_MISMATCHES = 100


class Pace(StrEnum):
    """Who gives the pace of a channel."""

    REST = 'rest'  # nobody listens: the middleware keeps the newest messages
    FOLLOW = 'follow'  # every message is called back
    POLL = 'poll'  # the topic is much faster than wanted: looked at when a frame is due


@dataclass(frozen=True, slots=True)
class ChannelState:
    """
    How a channel is, for diagnostics.

    :param rate_hz: of its topic, over the last second.
    :param is_counted_short: there may have been more messages than the middleware keeps.
    :param is_delivering: samples come, whatever the note says.
    :param note: what is the matter, empty where nothing is.
    """

    topic: str
    rate_hz: float
    is_counted_short: bool
    is_delivering: bool
    note: str


class TopicFeed:
    """One topic channel: its reader, its feed, and its pace. Used on the node's thread."""

    def __init__(
        self,
        node: Node,
        thread: Thread,
        name: str,
        channel: TopicChannel,
        post: Callable[[Any], None],
        clocks: Clocks,
        context: EncoderContext,
    ) -> None:
        """
        Prepare a channel.

        :raises InterfaceMissing: its type is not installed
        :raises NoEncoder: its type cannot be encoded
        """
        self.name = name
        self.pace = Pace.REST
        self._thread = thread
        self._channel = channel
        self._clocks = clocks
        self._error = ''
        self._bad_field = ''
        self._failed_ns = self._failed_count = 0
        message_type = load_interface(channel.type)
        encoder = make_encoder(channel, context)
        self.feed = ChannelFeed(name, encoder.encode, post, clocks, self._hold, self._fail)
        self._depth = min(_DEPTHS[channel.loss_class], encoder.most_kept)
        self.reader = TopicReader(
            node, thread, channel.topic, message_type, self._on_message, self._depth
        )
        self._rate_hz = 0.0
        self._topic_hz = 0.0
        self._is_full = False
        self._arrived = 0
        self._reviewed_ns = clocks.steady_ns()
        self._poll_due_ns = 0
        self._turn = 0

    def start(self) -> None:
        """Subscribe; nobody listens yet."""
        self.reader.dispatch(False)
        self.reader.start()

    def demand(self, rate_hz: float, fresh: bool) -> None:
        """Follow the demand of the engine."""
        self._rate_hz = rate_hz
        if self.pace is not Pace.FOLLOW:
            self._take_newest()
        self.feed.demand(rate_hz, fresh)
        self._choose()

    def review(self) -> None:
        """Once a second: the topic's rate, the pace that follows from it, silence."""
        if self.pace is Pace.REST:
            self._take_newest()
        now_ns = self._clocks.steady_ns()
        self._topic_hz = self._arrived * 1e9 / max(1, now_ns - self._reviewed_ns)
        is_silent = not self._arrived
        self._is_full = self.pace is Pace.REST and self._arrived >= self._depth
        self._arrived, self._reviewed_ns = 0, now_ns
        if is_silent:
            self.reader.review()
        elif self.pace is not Pace.REST:
            self._choose()

    def note(self) -> str:
        """Say what keeps samples from arriving or being timed, empty where nothing does."""
        last_ns = self.feed.last_arrival_ns
        if last_ns is None:
            return self.reader.note or f'nothing heard on {self.reader.topic} yet'
        now_ns = self._clocks.steady_ns()
        if self.reader.note:
            return self.reader.note
        is_last = self.feed.count == self._failed_count
        if self._error and (is_last or now_ns - self._failed_ns < _ERROR_NS):
            return self._error
        if now_ns - last_ns > max(_LONGEST_SILENCE_NS, 5e9 / self._channel.rate_hz):
            return f'{self.reader.topic} is silent'
        if self.feed.unbelieved >= _MISMATCHES:
            return f'{self.reader.topic}: clock mismatch: its stamps are of another clock'
        return ''

    def state(self) -> ChannelState:
        """Say how the channel is. Safe on any thread."""
        note = self.note()
        last_ns = self.feed.last_arrival_ns
        is_heard = last_ns is not None and not self._error and bool(self._topic_hz)
        return ChannelState(self.reader.topic, self._topic_hz, self._is_full, is_heard, note)

    def close(self) -> None:
        """Unsubscribe."""
        self._turn += 1
        self.reader.close()

    def _on_message(self, raw: bytes) -> None:
        self._arrived += 1
        self.feed.offer(raw)

    def _take_newest(self) -> None:
        taken = list(self.reader.take())
        self._arrived += len(taken)
        if taken:
            self.feed.offer(*taken[-1])

    def _choose(self) -> None:
        bound = _POLL_ABOVE if self.pace is Pace.FOLLOW else _FOLLOW_BELOW
        if not self._rate_hz:
            pace = Pace.REST
        elif self._topic_hz > bound * self._rate_hz:
            pace = Pace.POLL
        else:
            pace = Pace.FOLLOW
        if pace is self.pace:
            return
        self.pace = pace
        self.reader.dispatch(pace is Pace.FOLLOW)
        self._turn += 1
        if pace is Pace.POLL:
            self._poll_due_ns = self._clocks.steady_ns()
            self._poll(self._turn)

    def _poll(self, turn: int) -> None:
        if turn != self._turn:
            return
        self._take_newest()
        now_ns = self._clocks.steady_ns()
        period_ns = int(1e9 / self._rate_hz)
        self._poll_due_ns = max(self._poll_due_ns, now_ns - period_ns) + period_ns
        self._thread.call_later(self._poll_due_ns - now_ns, lambda: self._poll(turn))

    def _hold(self, wait_ns: int) -> None:
        self._thread.call_later(wait_ns, self.feed.flush)

    def _fail(self, error: Exception) -> None:
        now_ns, before_ns = self._clocks.steady_ns(), self._failed_ns
        self._failed_ns, self._failed_count = now_ns, self.feed.count
        if not isinstance(error, BadMessage):
            text = ' '.join(f'{type(error).__name__}: {error}'.split())
            self._error = f'{self.reader.topic}: cannot be encoded: {text}'
            self._bad_field = ''
        elif error.field != self._bad_field or now_ns - before_ns >= _ERROR_NS:
            # The same fault with other numbers, message by message, is told once.
            self._error = f'{self.reader.topic}: not sent: {error}'
            self._bad_field = error.field


class Observations:
    """
    All observation channels of a world that stand on topics, and ``awp.tf``.

    :param node: the node of observations; its thread calls everything but :meth:`demand`
    :param thread: the thread that spins the node
    :param channels: channels by name; those that are no topics are passed over
    :param post: takes ``ObservationCaptured`` and ``FrameTreeChanged``, on any thread
    :param max_payload_bytes: a larger payload is not sent; None for what streams usually take
    """

    def __init__(
        self,
        node: Node,
        thread: Thread,
        channels: Mapping[str, Any],
        frames: FramesConfig,
        post: Callable[[Any], None],
        clocks: Clocks,
        max_payload_bytes: int | None = None,
    ) -> None:
        if not clocks.uses_sim_time():
            clocks = replace(clocks, ros_ns=time.time_ns)  # the same time, cheaper to read
        self._thread = thread
        self._clocks = clocks
        self._feeds: dict[str, TopicFeed] = {}
        self._unusable: dict[str, str] = {}
        self._said: dict[str, tuple[str, int]] = {}
        self._is_closed = False
        self.frames = Frames(node, thread, frames, post, clocks)
        names = {tf_frame: name for name, tf_frame in frames.tf_frames.items()}
        context = EncoderContext(names)
        if max_payload_bytes is not None:
            context = replace(context, max_payload_bytes=max_payload_bytes)
        for name, channel in channels.items():
            if not isinstance(channel, TopicChannel):
                continue
            try:
                self._feeds[name] = TopicFeed(node, thread, name, channel, post, clocks, context)
            except (InterfaceMissing, NoEncoder) as error:
                # The others work on; this one is told as unusable.
                self._unusable[name] = str(error)

    def start(self) -> None:
        """Subscribe to everything; called once, before or on the node's thread."""
        self.frames.start()
        for feed in self._feeds.values():
            feed.start()
        self._review()

    def close(self) -> None:
        """Unsubscribe from everything. Called on the node's thread, or after it ended."""
        self._is_closed = True
        self.frames.close()
        for feed in self._feeds.values():
            feed.close()

    def demand(self, channel: str, rate_hz: float, fresh: bool) -> None:
        """Carry out ``SetChannelDemand``. Safe on any thread; unknown channels are passed over."""
        if channel == TF_CHANNEL:
            self._thread.post(self.frames.demand, rate_hz, fresh)
        elif channel in self._feeds:
            self._thread.post(self._feeds[channel].demand, rate_hz, fresh)

    def notes(self) -> dict[str, str]:
        """Say by channel what keeps it from delivering, for diagnostics. Safe on any thread."""
        notes = {name: feed.note() for name, feed in self._feeds.items()}
        notes |= self._unusable
        notes[TF_CHANNEL] = self.frames.note()
        return {name: note for name, note in notes.items() if note}

    def states(self) -> dict[str, ChannelState]:
        """Say how each channel is, for diagnostics. Safe on any thread."""
        states = {name: feed.state() for name, feed in self._feeds.items()}
        for name, why in self._unusable.items():
            states[name] = ChannelState('', 0.0, False, False, why)
        note = self.frames.note()
        states[TF_CHANNEL] = ChannelState('/tf', self.frames.rate_hz, False, not note, note)
        return states

    def _review(self) -> None:
        if self._is_closed:
            return
        for feed in self._feeds.values():
            feed.review()
        self.frames.review()
        self._log_notes()
        self._thread.call_later(_REVIEW_NS, self._review)

    def _log_notes(self) -> None:
        now_ns = self._clocks.steady_ns()
        notes = self.notes()
        for name, note in notes.items():
            said, at_ns = self._said.get(name, ('', 0))
            if note != said or now_ns - at_ns > _LOG_AGAIN_NS:
                self._said[name] = (note, now_ns)
                _LOG.warning('channel=%s %s', name, note)
        for name in [name for name in self._said if name not in notes]:
            del self._said[name]
            _LOG.info('channel=%s delivers', name)
