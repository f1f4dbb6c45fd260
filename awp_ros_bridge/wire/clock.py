"""Owns the arithmetic between steady time and the clock of a session (AWP-CLK-001)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionClock:
    """
    The monotonic clock of one session.

    :param zero_ns: steady time, in ns, at which the session clock reads 0.
    """

    zero_ns: int

    def session_ns(self, now_ns: int) -> int:
        """Return the session time of a steady time; what lies before the zero is 0."""
        return max(0, now_ns - self.zero_ns)  # AWP-CLK-001: never negative

    def steady_ns(self, session_ns: int) -> int:
        """Return the steady time of a session time."""
        return session_ns + self.zero_ns
