"""Owns the check that the engine asks for before it admits a goal (AWP-ENV-001)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.ros.adapters.base import Adapter

Json = dict[str, Any]


class GoalCheck:
    """
    Implements :class:`awp_ros_bridge.engine.policy.GoalChecker` over built adapters.

    :param adapters: one per embodiment and action type; the mapping may fill up later.
    """

    def __init__(self, adapters: Mapping[tuple[str, str], Adapter]) -> None:
        self._adapters = adapters

    def check(self, embodiment: str, action_type: str, params: Json) -> GoalRefusal | None:
        """Return why the goal must not run, or None; a pair without an adapter has no check."""
        adapter = self._adapters.get((embodiment, action_type))
        return None if adapter is None else adapter.check(params)
