"""
Owns what the guardian knows of the bridges that it hears: leases and goals, without ROS or clock.

A ward is one run of a bridge. It is guarded from its first word on; a goodbye releases it, a
silence longer than the lease ends it, and a beat after that begins a new lease.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from awp_ros_bridge.ros.guardian_words import Beat, Guarded, GuardedGoal, Kind, MS

MOST_WARDS = 64
FORGET_NS = 60_000_000_000  # how long a bridge is remembered that has fallen silent


@dataclass(slots=True, eq=False)
class Ward:
    """
    One run of a bridge.

    :param heard_ns: steady time for which its newest beat vouches, or of its first word.
    :param is_guarded: False after a goodbye, and while its silence is longer than the lease.
    :param stops: how often its silence has ended the lease.
    """

    instance: str
    heard_ns: int
    digest: str
    seq: int = 0
    is_guarded: bool = True
    stops: int = 0
    goals: dict[str, GuardedGoal] = field(default_factory=dict)
    streams: tuple[str, ...] = ()

    @property
    def is_idle(self) -> bool:
        """Tell whether its death would leave nothing moving."""
        return not self.goals and not self.streams


class Wards:
    """
    Every bridge that was heard.

    :param digest: what a bridge must have in common with this guardian.
    """

    def __init__(self, digest: str, lease_ns: int) -> None:
        self._digest = digest
        self._lease_ns = lease_ns
        self._wards: dict[str, Ward] = {}

    @property
    def guarded(self) -> list[Ward]:
        """The bridges that live, as far as is known."""
        return [ward for ward in self._wards.values() if ward.is_guarded]

    def take(self, beat: Beat, now_ns: int) -> Ward | None:
        """Note a word of a bridge; return its ward when its guarding begins with it."""
        ward = self._wards.get(beat.instance)
        begins = ward is None or not ward.is_guarded
        if ward is None:
            if beat.kind is Kind.GOODBYE:
                return None
            self._make_room(now_ns)
            ward = self._wards[beat.instance] = Ward(beat.instance, now_ns, beat.digest)
        if beat.seq <= ward.seq:
            return None  # overtaken by a newer word on the other topic
        ward.seq = beat.seq
        if beat.kind is Kind.GOODBYE:
            ward.is_guarded = False
            ward.stops = 0  # it is answered by no word about this bridge any more
            ward.goals, ward.streams = {}, ()
            return None
        if begins:  # a goal that is sent without beats has a lease too
            ward.heard_ns = now_ns
            ward.is_guarded = True
        elif beat.kind is Kind.BEAT:
            ward.heard_ns = max(ward.heard_ns, now_ns - beat.age_ms * MS)
        ward.goals = {goal.goal_id: goal for goal in beat.goals}
        ward.streams = beat.streams
        return ward if begins else None

    def next_ns(self) -> int | None:
        """Return when the next lease ends, None while nobody is guarded."""
        return min((ward.heard_ns + self._lease_ns for ward in self.guarded), default=None)

    def expire(self, now_ns: int) -> list[Ward]:
        """End the leases that are over; return whose they were."""
        ended = [w for w in self.guarded if now_ns - w.heard_ns >= self._lease_ns]
        for ward in ended:
            ward.is_guarded = False
            ward.stops += 1
        return ended

    def answers(self) -> dict[str, Guarded]:
        """Return what the guardian says of each bridge it hears."""
        return {
            ward.instance: Guarded(ward.seq, ward.stops, self.problem_of(ward))
            for ward in self._wards.values()
            if ward.is_guarded or ward.stops
        }

    def problem_of(self, ward: Ward) -> str:
        """Return why a bridge cannot be guarded, empty where it can."""
        if ward.digest == self._digest:
            return ''
        return (
            'the guardian has other action servers or another safety.lease_ms than the bridge: '
            'give both the same --config, namespace and remappings'
        )

    def _make_room(self, now_ns: int) -> None:
        """Forget bridges that are gone; with too many names in use, the one silent longest."""
        old = [
            ward
            for ward in self._wards.values()
            if not ward.is_guarded and now_ns - ward.heard_ns > FORGET_NS
        ]
        if not old and len(self._wards) >= MOST_WARDS:
            old = [_longest_silent(self._wards.values())]
        for ward in old:
            del self._wards[ward.instance]


def _longest_silent(wards: Iterable[Ward]) -> Ward:
    return min(wards, key=lambda ward: (ward.is_guarded, ward.heard_ns))
