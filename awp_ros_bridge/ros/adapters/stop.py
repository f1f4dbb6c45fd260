"""Owns the built-in stop: end what moves in a concurrency group and hold."""

from __future__ import annotations

from typing import Any, ClassVar

from awp_ros_bridge.engine.policy import GoalRefusal
from awp_ros_bridge.ros.adapters.base import Adapter, Outcome
from awp_ros_bridge.ros.adapters.params import params

Json = dict[str, Any]


class StopAdapter(Adapter):
    """Cancel and hold the action's concurrency group; always admitted, moves nothing itself."""

    name: ClassVar[str] = 'stop'
    kind: ClassVar[str] = 'builtin'
    extended: ClassVar[bool] = False
    needs_motion: ClassVar[bool] = False
    checkable_limits: ClassVar[frozenset[str]] = frozenset({'spatial', 'max_velocity_mps'})
    ros_type: ClassVar[str] = ''

    @classmethod
    def params_schema(cls, options: Json) -> Json:
        return params({}, (), 'stop takes no params')

    def check(self, params: Json) -> GoalRefusal | None:
        return None

    def goal(self, params: Json) -> Any:
        """Return None: what stops the robot is the bridge itself, not a message."""
        return None

    def outcome(self, result: Any) -> Outcome:
        return Outcome(ok=True)
