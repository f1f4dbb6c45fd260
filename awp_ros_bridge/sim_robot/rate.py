"""Owns when something periodic is due, in a loop that turns more often."""


class Rate:
    """A rate that catches up after a late turn instead of drifting."""

    def __init__(self, rate_hz: float) -> None:
        """Be due at the first question."""
        self._period_ns = round(1e9 / rate_hz)
        self._next_ns: int | None = None

    def is_due(self, now_ns: int) -> bool:
        """Tell whether it is time; True once per period."""
        if self._next_ns is None or now_ns - self._next_ns > self._period_ns:
            self._next_ns = now_ns + self._period_ns
            return True
        if now_ns < self._next_ns:
            return False
        self._next_ns += self._period_ns
        return True
