"""Owns what a guardian tells of a stop: for which bridge, when, which goals, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

RECENT_S = 600


def as_text(value: Any) -> str:
    """
    Return a field of a message that is a text.

    :raises TypeError: it is none
    """
    if not isinstance(value, str):
        raise TypeError(f'{value!r} is no text')
    return value


@dataclass(frozen=True, slots=True)
class StoppedGoal:
    """
    One goal of a stop.

    :param server: full name of the action, remapped.
    :param is_confirmed: whether its server confirmed that it ends, None while it is asked.
    :param how: in words, empty while it is asked.
    """

    goal_id: str
    server: str
    is_confirmed: bool | None = None
    how: str = ''

    def __str__(self) -> str:
        return f'{self.goal_id} on {self.server} {self.how or "is being asked to end"}'


@dataclass(frozen=True, slots=True)
class StopReport:
    """
    One stop, because a bridge with goals under way had fallen silent.

    :param number: of all stops of this run of the guardian.
    :param instance: the run of the bridge that fell silent.
    :param at: when, UTC by the system's clock.
    :param age_s: how long ago, by a steady clock.
    :param steps_left: how many immediate steps of the configuration are under way.
    :param failed_steps: what each that failed says.
    """

    number: int
    instance: str
    at: str
    age_s: int
    silent_ms: int
    goals: tuple[StoppedGoal, ...]
    steps_left: int = 0
    failed_steps: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Tell whether nothing of it is under way."""
        return not self.steps_left and all(each.is_confirmed is not None for each in self.goals)

    @property
    def is_confirmed(self) -> bool:
        """Tell whether every goal was confirmed to end, and no step failed."""
        return self.is_over and not self.failed_steps and all(g.is_confirmed for g in self.goals)

    @property
    def verdict(self) -> str:
        """Say whether the stop was confirmed, and what was not."""
        if not self.is_over:
            return 'not confirmed yet'
        if self.is_confirmed:
            return 'all confirmed by their servers'
        missing = [str(goal) for goal in self.goals if not goal.is_confirmed]
        return f'NOT CONFIRMED: {"; ".join([*missing, *self.failed_steps])}; look at the robot'

    def text(self, bridge: str) -> str:
        """Say all of it in a line; ``bridge`` names who fell silent."""
        goals = ', '.join(f'{goal.goal_id} on {goal.server}' for goal in self.goals)
        return (
            f'the guardian stopped the robot at {self.at}, when {bridge} had been silent for '
            f'{self.silent_ms} ms: cancelled {goals or "no goal"}: {self.verdict}'
        )

    def to_row(self) -> list[Any]:
        """Return it as it stands in a message."""
        goals = [[g.goal_id, g.server, g.is_confirmed, g.how] for g in self.goals]
        return [
            self.number, self.instance, self.at, self.age_s, self.silent_ms, goals,
            self.steps_left, self.failed_steps,
        ]  # fmt: skip

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> StopReport:
        """
        Read it from a message.

        :raises TypeError: a field has another type
        :raises ValueError: there are more or fewer fields
        """
        number, instance, at, age_s, silent_ms, goals, steps_left, failed_steps = row
        return cls(
            int(number),
            as_text(instance),
            as_text(at),
            int(age_s),
            int(silent_ms),
            tuple(_goal(each) for each in goals),
            int(steps_left),
            tuple(as_text(each) for each in failed_steps),
        )


Reports = tuple[StopReport, ...]


def _goal(row: Sequence[Any]) -> StoppedGoal:
    goal_id, server, is_confirmed, how = row
    if is_confirmed is not None and not isinstance(is_confirmed, bool):
        raise TypeError(f'{is_confirmed!r} tells nothing')
    return StoppedGoal(as_text(goal_id), as_text(server), is_confirmed, as_text(how))
