"""Owns what the engine knows of an embodiment: its groups, its stops, its rest, who holds it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from awp_ros_bridge.engine.actions import Action, Goal
from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.engine.policy import EmbodimentPolicy

if TYPE_CHECKING:
    from awp_ros_bridge.engine.sessions import Session

STOPS = frozenset({Meaning.E_STOP, Meaning.PROTECTIVE_STOP, Meaning.OPERATOR_STOP})
BLOCKS = frozenset({Meaning.FAULT, Meaning.NOT_READY, Meaning.MANUAL_MODE})


@dataclass(frozen=True, slots=True)
class Stop:
    """One engaged safety input, or one reason of the engine's own."""

    input_name: str
    meaning: Meaning
    detail: str


@dataclass(eq=False, slots=True)
class Group:
    """
    One concurrency group of one embodiment (AWP-PRE-006).

    :param running: the action whose goal was handed to ROS, or is about to be.
    :param incoming: a native replacement whose goal is not answered yet.
    :param waiting: admitted and accepted, starts when the group is free.
    :param queue: in order of submission (AWP-PRE-002).
    :param draining: goals whose action is over while the server may still move.
    """

    embodiment: Embodiment
    name: str
    running: Action | None = None
    incoming: Action | None = None
    waiting: Action | None = None
    queue: deque[Action] = field(default_factory=deque)
    draining: set[Goal] = field(default_factory=set)

    @property
    def is_busy(self) -> bool:
        """Return whether an action is executing or in a pre-execution state here."""
        return bool(self.running or self.incoming or self.waiting or self.queue)

    def live(self) -> list[Action]:
        """Return the live actions, what runs first."""
        found = [self.running, self.incoming, self.waiting, *self.queue]
        return [a for a in found if a is not None and not a.is_terminal]

    def forget(self, action: Action) -> None:
        """Take an ended action out of whatever place it held."""
        if self.running is action:
            self.running = None
        if self.incoming is action:
            self.incoming = None
        if self.waiting is action:
            self.waiting = None
        if action in self.queue:
            self.queue.remove(action)


@dataclass(eq=False, slots=True)
class Embodiment:
    """
    One embodiment at run time.

    :param epoch: newest stop epoch heard of; every goal carries it.
    :param e_stop_active: from ``e_stop_engaged`` to ``e_stop_released`` (AWP-EVT-002).
    :param behavior_ticket: safe-state steps under way, None when there are none.
    :param rest_owed: why the robot must be measured at rest before it is available again.
    :param rest_ticket: the question whose answer pays that debt.
    :param missing: action types whose server is not there, with what is missing.
    """

    policy: EmbodimentPolicy
    session: Session | None = None
    groups: dict[str, Group] = field(default_factory=dict)
    stops: dict[str, Stop] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    epoch: int = 0
    e_stop_active: bool = False
    in_safe_state: bool = False
    at_rest: bool | None = None
    behavior_ticket: int | None = None
    rest_owed: str | None = None
    rest_ticket: int | None = None
    last_admission_ns: int | None = None

    @property
    def id(self) -> str:
        return self.policy.id

    @property
    def permits_motion(self) -> bool:
        """Return whether the safety inputs alone allow motion (``motion_permitted``)."""
        return not any(s.meaning in STOPS or s.meaning in BLOCKS for s in self.stops.values())

    def group(self, name: str) -> Group:
        """Return the group, made on first use."""
        found = self.groups.get(name)
        if found is None:
            found = self.groups[name] = Group(self, name)
        return found

    def stopped_by(self) -> Stop | None:
        """Return an engaged e-stop-like input, or None."""
        return next((s for s in self.stops.values() if s.meaning in STOPS), None)

    def blocked_by(self) -> Stop | None:
        """Return an engaged input that forbids motion without being an e-stop, or None."""
        return next((s for s in self.stops.values() if s.meaning in BLOCKS), None)

    def live_actions(self) -> list[Action]:
        return [a for g in self.groups.values() for a in g.live()]
