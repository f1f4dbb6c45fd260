"""Owns the numbers that bound a connection, and the counters that compare peers with them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

_MINUTE_NS = 60_000_000_000
_SECOND_NS = 1_000_000_000
_MAX_KEYS = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """
    What a peer may take from the bridge.

    :param max_connections: control and stream connections together; one more is answered 503.
    :param max_handshakes: TCP connections that have not finished their handshake; one more is
        aborted unanswered.
    :param max_message_bytes: largest incoming message; a larger one closes with 1009.
    :param message_rate_hz: incoming messages a second and connection, above which reading pauses;
        every 4 KiB of a message count as one.
    :param message_burst: messages that may come at once before that rate counts.
    :param idle_timeout_s: silence after which a control connection that never had a session is
        closed. The configuration asks for 15 or more.
    :param open_timeout_s: time for a whole handshake.
    :param flush_timeout_s: time for control messages to leave before a close frame.
    :param close_timeout_s: time for the closing handshake, after which the connection is aborted.
    :param failed_logins_per_minute: wrong credentials from one address that are answered 401;
        more are answered 429.
    :param reliable_frames: frames of one reliable channel that may wait on a connection.
    :param reliable_bytes: payload bytes of one reliable channel that may wait on a connection.
    :param control_messages: control messages that may wait on a connection.
    :param control_bytes: characters of control messages that may wait on a connection.
    """

    max_connections: int = 256
    max_handshakes: int = 256
    max_message_bytes: int = 1 << 20
    message_rate_hz: float = 1000.0
    message_burst: int = 2000
    idle_timeout_s: float = 60.0
    open_timeout_s: float = 10.0
    flush_timeout_s: float = 1.0
    close_timeout_s: float = 2.0
    failed_logins_per_minute: int = 10
    reliable_frames: int = 32
    reliable_bytes: int = 16 << 20
    control_messages: int = 5000
    control_bytes: int = 8 << 20


class TokenBucket:
    """
    A rate limit that tells how long to wait instead of refusing.

    :param rate_hz: events a second in the long run.
    :param burst: events that may come at once.
    """

    __slots__ = ('_burst', '_level', '_period_ns', '_stamp_ns')

    def __init__(self, rate_hz: float, burst: int, now_ns: int) -> None:
        self._period_ns = _SECOND_NS / rate_hz
        self._burst = float(burst)
        self._level = float(burst)
        self._stamp_ns = now_ns

    def take(self, now_ns: int, events: float = 1.0) -> float:
        """
        Count one event, or a large one as several.

        :return: seconds to wait before the next event, 0 while the rate is kept.
        """
        gained = (now_ns - self._stamp_ns) / self._period_ns
        self._level = min(self._burst, self._level + gained) - events
        self._stamp_ns = now_ns
        if self._level >= 0.0:
            return 0.0
        return -self._level * self._period_ns / _SECOND_NS


class MinuteCounter:
    """
    Counts events per key within windows of one minute, in bounded memory.

    When more than a thousand keys are counted at once, the one quiet for longest is forgotten.
    """

    __slots__ = ('_windows',)

    def __init__(self) -> None:
        self._windows: dict[Hashable, tuple[int, int]] = {}

    def add(self, key: Hashable, now_ns: int) -> int:
        """
        Count one event.

        :return: events of that key in its present window, this one included.
        """
        start_ns, count = self._windows.pop(key, (now_ns, 0))
        if now_ns - start_ns >= _MINUTE_NS:
            start_ns, count = now_ns, 0
        if len(self._windows) >= _MAX_KEYS:
            del self._windows[next(iter(self._windows))]
        self._windows[key] = (start_ns, count + 1)
        return count + 1
