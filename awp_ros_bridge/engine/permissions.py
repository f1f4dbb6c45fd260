"""Owns what a credential allows: scopes and the embodiments that they reach (AWP-PRM-001)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """One kind of thing that a credential may be allowed to do."""

    OBSERVE = 'observe'  # read channels
    ACT = 'act'  # bind embodiments and submit actions
    TRANSFER = 'transfer'  # hand an embodiment over, or take one over
    APPROVE = 'approve'  # answer approval requests (AWP-APR-007)
    ADMIN = 'admin'  # world.reset, where the robot is simulated


ALL_SCOPES = frozenset(Scope)


@dataclass(frozen=True, slots=True)
class Permissions:
    """
    What a connection may do. What is not here is forbidden.

    :param credential: name of the credential that gives them, which is no secret.
    :param embodiments: the only ones that the scopes reach, None for all of the world.
    """

    credential: str
    scopes: frozenset[Scope]
    embodiments: frozenset[str] | None = None

    def allows(self, scope: Scope) -> bool:
        """Return whether a scope was given."""
        return scope in self.scopes

    def reaches(self, embodiments: Iterable[str]) -> bool:
        """Return whether the scopes reach every one of these embodiments."""
        return self.embodiments is None or self.embodiments.issuperset(embodiments)


NOTHING = Permissions('', frozenset())
