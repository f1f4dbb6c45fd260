"""
Owns what the ids of goals say: which are of a bridge, and which of this run of it.

An id is four bytes that every bridge has in common, four of this run, eight random ones.
"""

from __future__ import annotations

import secrets

BRIDGE = '61777062'  # 'awpb'


def new_instance() -> str:
    """Return a name for one run of the bridge, 8 hex digits."""
    return secrets.token_hex(4)


class GoalMarks:
    """
    Makes ids and tells them apart.

    :param instance: name of this run.
    """

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self._of_bridges = bytes.fromhex(BRIDGE)
        self._mine = bytes.fromhex(BRIDGE + instance)

    def new_goal_id(self) -> str:
        """Return a goal UUID as 32 hex digits."""
        return BRIDGE + self.instance + secrets.token_hex(8)

    def is_mine(self, uuid: bytes) -> bool:
        """Tell whether this run of the bridge made the goal."""
        return uuid.startswith(self._mine)

    def is_of_a_bridge(self, uuid: bytes) -> bool:
        """Tell whether some bridge made the goal."""
        return uuid.startswith(self._of_bridges)
