"""Owns what the configuration says of stopping, per embodiment; the bridge and the guardian."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from awp_ros_bridge.config import BridgeConfig, CallService, Park, PublishZeros
from awp_ros_bridge.ros.plan import MS


@dataclass(frozen=True, slots=True)
class Downstream:
    """
    What drives the robot for a server that plans.

    :param servers: action servers that the planner sends goals to.
    :param after_ns: from the planner's cancel to theirs, while its goal has not ended.
    """

    servers: tuple[str, ...]
    after_ns: int


@dataclass(frozen=True, slots=True)
class StopPlan:
    """
    How one embodiment is stopped.

    :param servers: action servers behind its action types.
    :param unshared: those of them that nobody but the bridge sends goals to.
    :param downstream: by server, what is cancelled when that server does not obey.
    :param waits_for_rest: whether the behaviour ends with measured rest.
    """

    zeros: tuple[PublishZeros, ...] = ()
    calls: tuple[CallService, ...] = ()
    park: Park | None = None
    servers: tuple[str, ...] = ()
    unshared: tuple[str, ...] = ()
    downstream: Mapping[str, Downstream] = field(default_factory=dict)
    waits_for_rest: bool = True

    @property
    def all_servers(self) -> tuple[str, ...]:
        """Every action server that a stop may cancel goals of, each once."""
        below = [server for each in self.downstream.values() for server in each.servers]
        return tuple(dict.fromkeys((*self.servers, *below)))


def stop_plans(config: BridgeConfig) -> dict[str, StopPlan]:
    """Return the plan of every embodiment."""
    return {name: _plan(config, name) for name in config.embodiments}


def cancelled_servers(plans: Iterable[StopPlan]) -> tuple[str, ...]:
    """Return every action server that a stop may cancel goals of, each once."""
    return tuple(dict.fromkeys(server for plan in plans for server in plan.all_servers))


def _plan(config: BridgeConfig, name: str) -> StopPlan:
    embodiment = config.embodiments[name]
    actions = [config.actions[action] for action in embodiment.actions]
    served = [action for action in actions if action.ros_action is not None]
    steps = embodiment.stop_steps
    downstream: dict[str, Downstream] = {}
    for action in served:
        if action.downstream:
            before = downstream.get(action.server)
            servers = (*(before.servers if before else ()), *action.downstream)
            after_ns = action.downstream_after_ms * MS
            if before is not None:
                after_ns = min(after_ns, before.after_ns)
            downstream[action.server] = Downstream(tuple(dict.fromkeys(servers)), after_ns)
    return StopPlan(
        zeros=tuple(step for step in steps if isinstance(step, PublishZeros)),
        calls=tuple(step for step in steps if isinstance(step, CallService)),
        park=next((step for step in steps if isinstance(step, Park)), None),
        servers=tuple(dict.fromkeys(action.server for action in served)),
        unshared=tuple(dict.fromkeys(a.server for a in served if not a.shared_server)),
        downstream=downstream,
        waits_for_rest='wait_at_rest' in steps,
    )
