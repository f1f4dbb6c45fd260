"""Owns which goals are under way, shared by the threads that send, cancel and watch them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
import threading


class Stage(Enum):
    """How far a goal has come."""

    QUEUED = 'queued'  # decided, not handed to ROS
    SENT = 'sent'  # the server may already move
    ACCEPTED = 'accepted'


class Cancel(Enum):
    """How far the cancel of a goal has come."""

    NONE = 'none'
    WANTED = 'wanted'  # to be sent on acceptance
    SENT = 'sent'
    CONFIRMED = 'confirmed'  # the server is cancelling
    REFUSED = 'refused'
    UNCONFIRMED = 'unconfirmed'  # the server does not know the goal, or has ended it


@dataclass(slots=True, eq=False)
class LiveGoal:
    """
    One goal between its decision and its end; fields change under the lock of its registry.

    :param goal_id: UUID as 32 hex digits.
    :param server: name of the action server or service, empty for a built-in.
    :param is_cancellable: True for a goal on an action server.
    :param notes: what else was done to stop it, for details.
    """

    goal_id: str
    embodiment: str
    action_type: str
    group: str
    server: str
    is_cancellable: bool = True
    stage: Stage = Stage.QUEUED
    cancel: Cancel = Cancel.NONE
    cancel_detail: str = ''
    notes: list[str] = field(default_factory=list)

    @property
    def uuid(self) -> bytes:
        return bytes.fromhex(self.goal_id)


class LiveGoals:
    """The goals under way; every method is callable on any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._goals: dict[str, LiveGoal] = {}
        self._watches: list[tuple[set[str], Callable[[], None]]] = []

    def __len__(self) -> int:
        return len(self._goals)

    def add(self, goal: LiveGoal) -> None:
        """Begin to know a goal, before it can be sent."""
        with self._lock:
            self._goals[goal.goal_id] = goal

    def get(self, goal_id: str) -> LiveGoal | None:
        """Return a goal under way, or None."""
        with self._lock:
            return self._goals.get(goal_id)

    def of(self, embodiment: str, group: str | None = None) -> list[LiveGoal]:
        """Return the goals of an embodiment, or of one of its concurrency groups."""
        with self._lock:
            return [
                goal
                for goal in self._goals.values()
                if goal.embodiment == embodiment and group in {None, goal.group}
            ]

    def sent(self) -> list[LiveGoal]:
        """Return the goals of action servers that were handed to ROS."""
        with self._lock:
            return [
                goal
                for goal in self._goals.values()
                if goal.is_cancellable and goal.stage is not Stage.QUEUED
            ]

    def discard(self, goal_id: str) -> None:
        """Forget a goal that ended, and tell who waits for it."""
        due: list[Callable[[], None]] = []
        with self._lock:
            self._goals.pop(goal_id, None)
            for watch in list(self._watches):
                watch[0].discard(goal_id)
                if not watch[0]:
                    self._watches.remove(watch)
                    due.append(watch[1])
        for callback in due:
            callback()

    def watch(self, goal_ids: Iterable[str], callback: Callable[[], None]) -> Callable[[], None]:
        """
        Call back once when none of these goals is under way, at once if so already.

        The callback runs on the thread that discards the last. Returns what forgets the watch.
        """
        with self._lock:
            waiting = {goal_id for goal_id in goal_ids if goal_id in self._goals}
            entry = (waiting, callback)
            if waiting:
                self._watches.append(entry)
        if not waiting:
            callback()

        def forget() -> None:
            with self._lock:
                if entry in self._watches:
                    self._watches.remove(entry)

        return forget

    def withdraw(self, embodiment: str) -> list[LiveGoal]:
        """
        Want every goal of an embodiment cancelled; return them.

        A goal that is still queued is not sent any more.
        """
        with self._lock:
            out: list[LiveGoal] = []
            for goal in self._goals.values():
                if goal.embodiment == embodiment and goal.is_cancellable:
                    if goal.cancel is Cancel.NONE:
                        goal.cancel = Cancel.WANTED
                    out.append(goal)
            return out

    def want_cancel(self, goal_id: str) -> None:
        """Want one goal cancelled, now or on acceptance."""
        with self._lock:
            goal = self._goals.get(goal_id)
            if goal is not None and goal.cancel is Cancel.NONE:
                goal.cancel = Cancel.WANTED

    def begin_sending(self, goal: LiveGoal) -> bool:
        """Move a goal to sent unless it was withdrawn; from here a stop cancels it by id."""
        with self._lock:
            if goal.cancel is not Cancel.NONE:
                return False
            goal.stage = Stage.SENT
            return True

    def accepted(self, goal: LiveGoal) -> bool:
        """Note the acceptance; tell whether the goal must be cancelled now."""
        with self._lock:
            goal.stage = Stage.ACCEPTED
            # what was sent before the acceptance proved nothing unless it was confirmed
            if goal.cancel not in {Cancel.NONE, Cancel.CONFIRMED}:
                goal.cancel = Cancel.WANTED
            return goal.cancel is Cancel.WANTED

    def claim_cancel(self, goal: LiveGoal) -> bool:
        """Tell whether the caller is the one who sends the cancel: exactly one does."""
        with self._lock:
            if goal.stage is not Stage.QUEUED and goal.cancel in {Cancel.NONE, Cancel.WANTED}:
                goal.cancel = Cancel.SENT
                return True
            return False

    def reopen_cancel(self, goal: LiveGoal) -> bool:
        """Tell whether a cancel came before its goal, and want it again then."""
        with self._lock:
            if goal.stage is not Stage.SENT or goal.goal_id not in self._goals:
                return False
            goal.cancel = Cancel.WANTED
            return True

    def cancel_answered(self, goal: LiveGoal, answer: Cancel, detail: str) -> None:
        """Note the server's answer to a cancel."""
        with self._lock:
            if goal.cancel is Cancel.SENT:
                goal.cancel = answer
            goal.cancel_detail = detail

    def note(self, goal: LiveGoal, text: str) -> None:
        """Keep what else was done to stop a goal."""
        with self._lock:
            goal.notes.append(text)
