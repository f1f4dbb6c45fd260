"""
Owns the judgement of measured values against limits, without ROS (AWP-ENV-003).

One rule for all limits: a value beyond its bound and its tolerance is a violation, and it stays
one until the body has come to rest. A body at rest beyond a limit may move again, since otherwise
nothing could bring it back; then the value may only shrink: what grows again is a new violation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
import math

SPATIAL, VELOCITY, FORCE = 'spatial', 'max_velocity_mps', 'max_force_n'
UNITS = {SPATIAL: 'm', VELOCITY: 'm/s', FORCE: 'N'}

Point = Sequence[float]
Box = tuple[Point, Point]


@dataclass(frozen=True, slots=True)
class Reading:
    """
    What a source measured at one moment.

    :param values: by limit; for spatial the distance outside the box.
    :param where: words for people: where the body is.
    """

    values: dict[str, float]
    where: str = ''


class LimitJudge:
    """
    One limit of one embodiment.

    :param bound: what the envelope declares; 0 m outside the box for spatial.
    :param tolerance: how much more is tolerated, in the same unit.
    :ivar allowed: the greatest value that is no violation now.
    """

    def __init__(self, limit: str, bound: float, tolerance: float) -> None:
        self.limit = limit
        self.bound = bound
        self.tolerance = tolerance
        self.allowed = bound + tolerance
        self.is_engaged = False
        self.newest = math.nan

    def take(self, value: float) -> bool:
        """Note a measured value; tell whether it is a new violation."""
        self.newest = value
        if self.is_engaged:
            return False
        if not value <= self.allowed:  # so that NaN does not pass
            self.is_engaged = True
            return True
        self.allowed = max(self._usual, min(self.allowed, value + self.tolerance))
        return False

    def settle(self, value: float) -> None:
        """Permit motion again from a body at rest: back within the bound, and not farther out."""
        self.is_engaged = False
        self.allowed = max(self._usual, value + self.tolerance)

    @property
    def _usual(self) -> float:
        return self.bound + self.tolerance

    def words(self, value: float, where: str) -> str:
        """Say what was measured, the bound, and what is tolerated."""
        unit = UNITS[self.limit]
        if self.limit == SPATIAL:
            said = f'the tip is {value:.4f} m outside the box'
        else:
            said = f'{value:.4g} {unit}, the limit {self.limit} is {self.bound:g} {unit}'
        return f'{said} (tolerated {self.allowed - self.bound:.4g} {unit}){where and ", "}{where}'


def outside_m(position_m: Point, box: Box) -> float:
    """Measure how far a point is outside a box, by its worst axis; 0 inside, NaN for no point."""
    if not all(map(math.isfinite, position_m)):
        return math.nan
    rows = zip(position_m, *box, strict=True)
    return max(0.0, *(max(low - value, value - high) for value, low, high in rows))


class SpeedOfPlace:
    """
    The speed of a point of which only places are told.

    It is the way over a window of stamps, long enough to hide the noise of the places.

    :param window_ns: shortest span over which places are differenced.
    """

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._places: deque[tuple[int, tuple[float, ...]]] = deque()
        self._speed_mps: float | None = None

    def take(self, stamp_ns: int, position_m: Point) -> float | None:
        """Note a place; return the speed, None while it is not known: at first, after a jump."""
        places = self._places
        if places and stamp_ns < places[-1][0]:
            places.clear()  # the clock went back
            self._speed_mps = None
        if places and stamp_ns == places[-1][0]:
            return self._speed_mps
        place = tuple(map(float, position_m))
        places.append((stamp_ns, place))
        while len(places) > 2 and stamp_ns - places[1][0] >= self._window_ns:
            places.popleft()
        since_ns, before = places[0]
        if stamp_ns - since_ns >= self._window_ns:
            self._speed_mps = math.dist(place, before) / ((stamp_ns - since_ns) * 1e-9)
        return self._speed_mps
