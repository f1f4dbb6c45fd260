"""Owns the time that counts for a stall: steady time, at the share that speed scaling leaves."""

from __future__ import annotations

import math
from typing import Any

from awp_ros_bridge.ros.plan import MS

NOTHING_HEARD = 'nothing was heard'
STEP = 0.001  # less progress than this is the noise of a measurement


class ScaledTime:
    """
    Steady time that passes as fast as the robot lets its motions run, and never faster.

    While nothing usable was heard it passes at its full rate: a stall is then told early, not
    late.

    :param full: the value at full speed.
    :param stale_ns: silence after which a value is of no use; None where silence says nothing.
    :ivar trouble: why all time counts though a scaling was asked for, None while one is heard.
    """

    def __init__(self, full: float, stale_ns: int | None, now_ns: int) -> None:
        self.trouble: str | None = NOTHING_HEARD
        self._full = full
        self._stale_ns = stale_ns
        self._heard_ns = now_ns
        self._last_ns = now_ns
        self._counted_ns = 0.0
        self._share = 1.0

    def hear(self, value: Any, now_ns: int) -> None:
        """Take a new value, which holds from now on."""
        self.counted_ns(now_ns)
        self._heard_ns = now_ns
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and math.isfinite(value):
            self._share, self.trouble = min(1.0, max(0.0, value / self._full)), None
        else:
            self._share, self.trouble = 1.0, 'its value is no finite number'

    def lose(self, why: str, now_ns: int) -> None:
        """Count all time from now on."""
        self.counted_ns(now_ns)
        self._share, self.trouble = 1.0, why

    def counted_ns(self, now_ns: int) -> int:
        """Return the time that counts, up to now, from a beginning of no meaning."""
        if self._stale_ns is not None and self.trouble is None:
            until_ns = self._heard_ns + self._stale_ns
            if now_ns > until_ns:
                self._advance(until_ns)
                self._share = 1.0
                self.trouble = f'silent for more than {self._stale_ns // MS} ms'
        self._advance(now_ns)
        return round(self._counted_ns)

    @property
    def share(self) -> float:
        """The part of the time that counts, 0 to 1."""
        return self._share

    def _advance(self, now_ns: int) -> None:
        self._counted_ns += max(0, now_ns - self._last_ns) * self._share
        self._last_ns = max(now_ns, self._last_ns)


class StallClock:
    """
    How long one goal has neither moved its body nor told progress.

    :param limit_ns: counted time after which that is a stall.
    """

    def __init__(self, limit_ns: int) -> None:
        self._limit_ns = limit_ns
        self._since_ns: int | None = None
        self._since_counted_ns = 0
        self._farthest = -1.0
        self._is_told = False

    def look(
        self, now_ns: int, counted_ns: int, rests: bool, progress: float | None
    ) -> tuple[int, int] | None:
        """
        Return once, when it is a stall, the steady and the counted time that passed.

        :param counted_ns: the time that counts, of a clock that begins anywhere.
        :param rests: False while the body moves, or nothing is known of it.
        :param progress: the newest that was told, None before any was.
        """
        is_farther = progress is not None and progress >= self._farthest + STEP
        if is_farther and progress is not None:
            self._farthest = progress
        if self._since_ns is None or not rests or is_farther:
            self._since_ns, self._since_counted_ns = now_ns, counted_ns
            return None
        stood_ns = counted_ns - self._since_counted_ns
        if self._is_told or stood_ns < self._limit_ns:
            return None
        self._is_told = True
        return now_ns - self._since_ns, stood_ns
