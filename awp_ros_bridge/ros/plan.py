"""Owns what the gateway reads out of the configuration, per embodiment and action type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from awp_ros_bridge.config import BridgeConfig, SpeedScaling, UnmeasuredRest
from awp_ros_bridge.ros.adapters.base import Adapter

MS = 1_000_000
DEFAULT_STALE_NS = 1_000 * MS  # where nothing measures the robot, its feedback is judged by this

Key = tuple[str, str]
Adapters = Mapping[Key, Adapter]


@dataclass(frozen=True, slots=True)
class ActionPlan:
    """
    One action type of one embodiment, as the goals thread handles it.

    :param server: name of the action server or service, empty for a built-in.
    :param downstream: action servers that the server drives the robot with.
    :param stale_ns: silence after which the embodiment's topic or the feedback proves a loss.
    :param stall_ns: time without motion or progress that counts as a stall, None for no limit.
    :param speed_scaling: of the embodiment; the limit goes by it.
    """

    embodiment: str
    action_type: str
    adapter: Adapter
    group: str
    server: str
    ack_ns: int
    abort_ns: int
    duration_ns: int | None
    stale_ns: int
    downstream: tuple[str, ...] = ()
    stall_ns: int | None = None
    speed_scaling: SpeedScaling | None = None

    @property
    def kind(self) -> str:
        return self.adapter.kind


def action_plans(config: BridgeConfig, adapters: Adapters) -> dict[Key, ActionPlan]:
    """Return a plan for each pair of embodiment and action type that has an adapter."""
    plans = {}
    for (embodiment, action_type), adapter in adapters.items():
        action = config.actions[action_type]
        rest = config.embodiments[embodiment].at_rest
        stale_ns = DEFAULT_STALE_NS
        if not isinstance(rest, UnmeasuredRest):
            stale_ns = rest.stale_after_ms * MS
        plans[embodiment, action_type] = ActionPlan(
            embodiment=embodiment,
            action_type=action_type,
            adapter=adapter,
            group=action.concurrency_group or action_type,
            server='' if adapter.kind == 'builtin' else action.server,
            ack_ns=action.ack_timeout_ms * MS,
            abort_ns=action.max_abort_ms * MS,
            duration_ns=None if action.max_duration_ms is None else action.max_duration_ms * MS,
            stale_ns=stale_ns,
            downstream=action.downstream,
            stall_ns=None if action.stall_after_ms is None else action.stall_after_ms * MS,
            speed_scaling=config.embodiments[embodiment].speed_scaling,
        )
    return plans
