"""Owns what one joint's samples say: is it slow, since when, and can they be read at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
import math

SAMPLES = 3  # fewer prove no rest
_DIFFERENCE_NS = 20_000_000  # shortest span over which positions are differenced


class JointTrack:
    """
    The newest samples of one joint.

    :param bound_radps: speed at or below which the joint is slow; m/s for a prismatic one.
    """

    __slots__ = (
        '_anchor',
        '_run',
        'bound',
        'fault',
        'heard_ns',
        'position',
        'slow_since_ns',
        'velocity',
    )

    def __init__(self, bound_radps: float) -> None:
        self.bound = bound_radps
        self._anchor: tuple[int, float] | None = None
        self._run: deque[int] = deque(maxlen=SAMPLES)
        self.position = math.nan
        self.velocity = math.nan
        self.heard_ns = 0
        self.slow_since_ns = 0
        self.fault: str | None = None

    def take(self, at_ns: int, position: float, velocity: float | None) -> None:
        """
        Note a sample; a speed that is missing is the difference of positions.

        :param velocity: None where the message has none.
        """
        self.heard_ns = at_ns
        self.position = position
        if velocity is None:
            velocity = self._difference(at_ns, position)
            if velocity is None:
                return
        self.velocity = velocity
        self.fault = None if math.isfinite(velocity) and math.isfinite(position) else 'not finite'
        # written as the permission, so that NaN does not pass
        if self.fault is None and -self.bound <= velocity <= self.bound:
            if not self._run:
                self.slow_since_ns = at_ns
            self._run.append(at_ns)
        else:
            self._run.clear()

    def spoil(self, at_ns: int, fault: str) -> None:
        """Note a sample that cannot be read."""
        self.heard_ns = at_ns
        self.velocity = math.nan
        self.fault = fault
        self._run.clear()

    def rests(self, since_ns: int, for_ns: int) -> bool:
        """Tell whether three samples or more since a time, over a span, were all slow."""
        run = self._run
        if len(run) < SAMPLES or run[0] < since_ns:
            return False
        return run[-1] - max(self.slow_since_ns, since_ns) >= for_ns

    def _difference(self, at_ns: int, position: float) -> float | None:
        anchor = self._anchor
        if anchor is None:
            self._anchor = (at_ns, position)
            return None
        passed_ns = at_ns - anchor[0]
        if passed_ns < _DIFFERENCE_NS:
            return None
        self._anchor = (at_ns, position)
        return (position - anchor[1]) / (passed_ns * 1e-9)


class Tracks:
    """
    What must be slow for an embodiment to rest.

    :ivar tracks: by name.
    :ivar word: what a name stands for, in reasons.
    """

    word = ''

    def __init__(self, tracks: dict[str, JointTrack]) -> None:
        self.tracks = tracks

    def rests(self, since_ns: int, for_ns: int, names: Collection[str] | None = None) -> bool:
        """
        Tell whether everything rests since a time.

        :param names: look at these alone; one that was never heard does not rest.
        """
        tracks = self.tracks
        if names is not None:
            found = [tracks.get(name) for name in names]
            return all(track is not None and track.rests(since_ns, for_ns) for track in found)
        return bool(tracks) and all(track.rests(since_ns, for_ns) for track in tracks.values())

    def fast(self) -> str:
        """Say what is faster than its bound in the newest sample, or cannot be read."""
        found = [
            f'{self.word}{name} moves with {track.velocity:.3g} (limit {track.bound:g})'
            for name, track in self.tracks.items()
            if not -track.bound <= track.velocity <= track.bound
        ]
        return ', '.join(found)

    def positions(self) -> dict[str, float] | None:
        """Return the newest joint positions by name; None where there are none."""
        return None

    def velocities(self) -> dict[str, float]:
        """Return the newest joint velocities by name, where they are known and finite."""
        return {}

    def spoil(self, at_ns: int, fault: str) -> None:
        """Note a sample that cannot be read."""
        for track in self.tracks.values():
            track.spoil(at_ns, fault)

    def unsafe(self, now_ns: int, stale_ns: int) -> str | None:
        """Return what forbids motion: something never heard, silent or unreadable; else None."""
        if not self.tracks:
            return f'no {self.word}was heard yet'
        for name, track in self.tracks.items():
            said = f'{self.word}{name}'
            if track.heard_ns == 0:
                return f'{said} was not heard yet'
            silent_ms = (now_ns - track.heard_ns) // 1_000_000
            if now_ns - track.heard_ns >= stale_ns:
                return f'{said} silent for {silent_ms} ms (limit {stale_ns // 1_000_000} ms)'
            if track.fault is not None:
                return f'{said}: {track.fault}'
        return None


class RestTrack(Tracks):
    """
    The joints of one embodiment.

    :param joints: names, None for every joint that the topic carries.
    :param bound_of: speed at or below which a joint is slow; a number is that of all.
    """

    word = 'joint '

    def __init__(
        self, joints: Sequence[str] | None, bound_of: float | Callable[[str], float]
    ) -> None:
        self._every = joints is None
        self._bound_of = bound_of
        super().__init__({name: self._track(name) for name in joints or ()})

    def take(self, at_ns: int, message: object) -> None:
        """Note one JointState; joints of others are ignored, its arrays may be partial."""
        names: Sequence[str] = message.name  # type: ignore[attr-defined]
        positions: Sequence[float] = message.position  # type: ignore[attr-defined]
        velocities: Sequence[float] = message.velocity  # type: ignore[attr-defined]
        count = len(names)
        readable = len(positions) == count and len(velocities) in {0, count}
        for index, name in enumerate(names):
            track = self.tracks.get(name)
            if track is None:
                if not self._every:
                    continue
                track = self.tracks[name] = self._track(name)
            if readable:
                velocity = velocities[index] if velocities else None
                track.take(at_ns, positions[index], velocity)
            else:
                track.spoil(at_ns, f'{count} names, {len(positions)} positions, '
                                   f'{len(velocities)} velocities')  # fmt: skip

    def positions(self) -> dict[str, float] | None:
        """Return the newest positions by name; None before every joint was heard."""
        found = {name: track.position for name, track in list(self.tracks.items())}
        if not found or not all(math.isfinite(value) for value in found.values()):
            return None
        return found

    def velocities(self) -> dict[str, float]:
        """Return the newest velocities by name, where they are known and finite."""
        found = {name: track.velocity for name, track in list(self.tracks.items())}
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def _track(self, name: str) -> JointTrack:
        bound_of = self._bound_of
        return JointTrack(bound_of(name) if callable(bound_of) else bound_of)
