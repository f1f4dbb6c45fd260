"""
Owns what waits to leave on one connection, and which of it goes next.

Control messages first and never dropped, newest frame wins on a latest-wins channel, a reliable
channel that stalls starts again from a resync keyframe (AWP-TRN-006, TRN-009, DAT-002, DAT-009).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from awp_ros_bridge.engine.effects import SendFrame
from awp_ros_bridge.transport.limits import Limits
from awp_ros_bridge.wire.frames import KEYFRAME, RESYNC


@dataclass(slots=True)
class _Waiting:
    """The frames of one channel that wait: at most one on a latest-wins channel."""

    frames: deque[SendFrame] = field(default_factory=deque)
    size: int = 0


@dataclass(frozen=True, slots=True)
class OutboxStats:
    """
    How an outbox stands.

    :param control_messages: control messages waiting.
    :param control_bytes: their characters.
    :param frames: frames waiting, by channel.
    :param dropped: frames that were replaced or given up so far, by channel.
    """

    control_messages: int
    control_bytes: int
    frames: Mapping[int, int]
    dropped: Mapping[int, int]


class Outbox:
    """
    The messages and frames that wait on one connection.

    Pure: no clock, no socket. Not for several threads.
    """

    __slots__ = (
        '_channels',
        '_control',
        '_control_bytes',
        '_dropped',
        '_limits',
        '_starting',
        '_turns',
    )

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._control: deque[str] = deque()
        self._control_bytes = 0
        self._channels: dict[int, _Waiting] = {}
        self._turns: deque[int] = deque()
        self._starting: set[int] = set()
        self._dropped: Counter[int] = Counter()

    @property
    def is_empty(self) -> bool:
        """Nothing waits at all."""
        return not self._control and not self._turns

    def put_message(self, text: str) -> bool:
        """
        Add a control message.

        :return: False when the bound is passed. Nothing was added then and the connection must
            end, since a control message is never dropped (AWP-TRN-006).
        """
        size = self._control_bytes + len(text)
        count = len(self._control)
        limits = self._limits
        if count and (count >= limits.control_messages or size > limits.control_bytes):
            return False
        self._control.append(text)
        self._control_bytes = size
        return True

    def put_frame(self, frame: SendFrame) -> int:
        """
        Add a frame, giving up older ones where the channel's class says so.

        :return: how many frames of a reliable channel were given up just now, the new one
            included; 0 nearly always. Until its next resync frame the channel then takes
            nothing, so that a receiver never sees a gap that is not announced.
        """
        if frame.reliable:
            return self._put_reliable(frame)
        self._put_latest(frame)
        return 0

    def _put_latest(self, frame: SendFrame) -> None:
        """AWP-DAT-002, AWP-TRN-009: at most one frame waits, the newest takes its place."""
        channel_id = frame.channel_id
        waiting = self._channels.get(channel_id)
        if waiting is None:
            waiting = self._channels[channel_id] = _Waiting()
        if not waiting.frames:
            waiting.frames.append(frame)
            self._turns.append(channel_id)
            return
        if waiting.frames[0].flags & ~frame.flags & RESYNC and frame.flags & KEYFRAME:
            # The discontinuity that the replaced frame announced is still unannounced.
            frame = replace(frame, flags=frame.flags | RESYNC)
        waiting.frames[0] = frame
        self._dropped[channel_id] += 1

    def _put_reliable(self, frame: SendFrame) -> int:
        channel_id = frame.channel_id
        if channel_id in self._starting:
            if not frame.flags & RESYNC:  # AWP-DAT-009
                self._dropped[channel_id] += 1
                return 0
            self._starting.remove(channel_id)
        waiting = self._channels.get(channel_id)
        if waiting is None:
            waiting = self._channels[channel_id] = _Waiting()
        size = waiting.size + len(frame.payload)
        count = len(waiting.frames)
        if count and (count >= self._limits.reliable_frames or size > self._limits.reliable_bytes):
            self._forget(channel_id)
            self._starting.add(channel_id)
            self._dropped[channel_id] += count + 1
            return count + 1
        waiting.frames.append(frame)
        waiting.size = size
        if not count:
            self._turns.append(channel_id)
        return 0

    def take(self) -> str | SendFrame | None:
        """
        Remove what shall leave next: a control message if one waits, else a frame.

        Channels that have frames waiting take turns, so that none delays another by more than
        one frame (AWP-TRN-009).
        """
        if self._control:
            text = self._control.popleft()
            self._control_bytes -= len(text)
            return text
        if not self._turns:
            return None
        channel_id = self._turns.popleft()
        waiting = self._channels[channel_id]
        frame = waiting.frames.popleft()
        if waiting.frames:
            waiting.size -= len(frame.payload)
            self._turns.append(channel_id)
        else:
            waiting.size = 0
        return frame

    def drop_frames(self, channel_id: int) -> None:
        """Forget a channel that was unsubscribed or moved, and that it had to start again."""
        self._forget(channel_id)
        self._starting.discard(channel_id)

    def clear_frames(self) -> None:
        """Forget all frames: the connection is about to close."""
        self._channels.clear()
        self._turns.clear()

    def clear(self) -> None:
        """Forget everything: the connection is gone."""
        self.clear_frames()
        self._control.clear()
        self._control_bytes = 0

    def stats(self) -> OutboxStats:
        """Give a copy of the counters."""
        return OutboxStats(
            control_messages=len(self._control),
            control_bytes=self._control_bytes,
            frames={
                channel_id: len(waiting.frames)
                for channel_id, waiting in self._channels.items()
                if waiting.frames
            },
            dropped=dict(self._dropped),
        )

    def _forget(self, channel_id: int) -> None:
        waiting = self._channels.pop(channel_id, None)
        if waiting is not None and waiting.frames:
            self._turns.remove(channel_id)
