"""Owns who carries out which action type: action server, service, or the built-in stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
import logging
from typing import Any

from rclpy.node import Node

from awp_ros_bridge.engine.effects import StartGoal
from awp_ros_bridge.engine.inputs import GoalEnded, GoalOutcome, Input
from awp_ros_bridge.ros.action_link import ActionLink
from awp_ros_bridge.ros.availability import Availability, Missing
from awp_ros_bridge.ros.cancels import Canceller
from awp_ros_bridge.ros.doubts import Doubts
from awp_ros_bridge.ros.goal_watch import GoalWatch
from awp_ros_bridge.ros.goals import GoalRunner
from awp_ros_bridge.ros.group_stop import GroupStop
from awp_ros_bridge.ros.guard import Guard
from awp_ros_bridge.ros.interfaces import load_interface
from awp_ros_bridge.ros.live_goals import Cancel, LiveGoal, LiveGoals
from awp_ros_bridge.ros.plan import ActionPlan, Key
from awp_ros_bridge.ros.rest import RestMonitor
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.services import ServiceRunner
from awp_ros_bridge.ros.stall_watch import StallWatch
from awp_ros_bridge.ros.stop import StopGate

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerState:
    """
    One server behind action types.

    :param serves: action types by embodiment, as ``arm_01.move``.
    :param missing: why it cannot be used, None when it can.
    """

    name: str
    noun: str
    ros_type: str
    serves: tuple[str, ...]
    missing: str | None


class GoalDesk:
    """
    Takes goals on the goals thread and gives them to who knows their kind.

    :param canceller: sends cancels from the goals thread.
    :param stopper: sends cancels from the safety thread, to what a planner drives too. A server
        that one of the two does not reach is not there.
    :param guard: told which goals are under way, here and on the servers; asked what it reaches.
    """

    def __init__(
        self,
        node: Node,
        thread: RosThread,
        post: Callable[[Input], None],
        gate: StopGate,
        goals: LiveGoals,
        plans: Mapping[Key, ActionPlan],
        canceller: Canceller,
        stopper: Canceller,
        rest: RestMonitor,
        guard: Guard,
    ) -> None:
        self._post = post
        self._plans = plans
        self._canceller = canceller
        self._stopper = stopper
        self._guard = guard
        self._goals = goals
        self._links: dict[str, ActionLink] = {}
        self._clients: dict[str, Any] = {}
        self._missing_types: dict[str, str] = {}
        for plan in plans.values():
            self._connect(node, thread, plan)
        self._doubts = Doubts(self._links, lambda: thread.post(self._availability.look))
        self._actions = GoalRunner(
            thread, post, gate, goals, self._links, canceller, self._doubts, guard.announce
        )
        guard.watch(node, self._links, canceller.cancel, self._actions.ghosts)
        self._services = ServiceRunner(thread, post, gate, goals, self._clients)
        self._stops = GroupStop(thread, post, goals, rest, self._actions.cancel)
        stalls = StallWatch(node, thread, plans.values(), rest.at_rest)
        GoalWatch(thread, self._actions, rest.silent_ns, stalls.look)
        asked: dict[str, Missing] = {
            plan.server: partial(self._missing, plan.kind, plan.server) for plan in plans.values()
        }
        self._availability = Availability(
            thread, post, {key: asked[plan.server] for key, plan in plans.items()}
        )
        thread.post(self._availability.look)

    @property
    def held(self) -> int:
        """Number of things kept on account of goals; 0 when none is under way."""
        return self._actions.held + self._services.held + self._stops.held

    def missing(self) -> list[str]:
        """Return the action types whose servers are missing; any thread."""
        return self._availability.missing()

    def servers(self) -> list[ServerState]:
        """Return every server behind an action type, as of the last look; any thread."""
        serves: dict[str, list[Key]] = {}
        plans = {plan.server: plan for plan in self._plans.values() if plan.server}
        for key, plan in self._plans.items():
            serves.setdefault(plan.server, []).append(key)
        return [
            ServerState(
                name,
                'action server' if plan.kind == 'action' else 'service',
                plan.adapter.ros_type,
                tuple('.'.join(key) for key in serves[name]),
                self._availability.why_missing(serves[name][0]),
            )
            for name, plan in plans.items()
        ]

    def start(self, effect: StartGoal, plan: ActionPlan, live: LiveGoal) -> None:
        """Begin a goal."""
        if plan.kind == 'action':
            self._actions.start(effect, plan, live)
        elif plan.kind == 'service':
            self._services.start(effect, plan, live)
        elif plan.adapter.name == 'stop':
            self._stops.start(effect, plan, live)
        else:
            detail = f'built-in {plan.adapter.name!r} is not known'
            self._goals.discard(effect.goal_id)
            self._post(GoalEnded(effect.goal_id, GoalOutcome.NOT_SENT, detail))

    def cancel(self, goal_id: str) -> None:
        """Cancel a goal; one that has ended, or that cannot be cancelled, is passed over."""
        self._stops.cancel(goal_id)
        self._actions.cancel(goal_id)

    def cancel_answered(self, goal: LiveGoal, answer: Cancel, detail: str) -> None:
        """Pass on what became of a cancel."""
        self._actions.cancel_answered(goal, answer, detail)

    def _connect(self, node: Node, thread: RosThread, plan: ActionPlan) -> None:
        server, ros_type = plan.server, plan.adapter.ros_type
        if not server or server in self._links or server in self._clients:
            return
        try:
            if plan.kind == 'action':
                self._links[server] = ActionLink(node, thread, server, ros_type)
            else:
                self._clients[server] = node.create_client(load_interface(ros_type), server)
        except ValueError as error:  # only the types on this server are unavailable
            self._missing_types[server] = str(error)
            _LOG.error('action=%s %s', plan.action_type, error)

    def _missing(self, kind: str, server: str) -> str | None:
        if kind == 'builtin':
            return None
        if server in self._missing_types:
            return self._missing_types[server]
        if kind == 'action':
            noun = 'action server'
            ready = self._links[server].is_ready() and self._is_reached(server)
            doubt = self._doubts.ask_again(server)
            why = doubt or self._guard.unreached(server) or self._missing_below(server)
            if ready and why is not None:
                return why
        else:
            ready, noun = self._clients[server].service_is_ready(), 'service'
        return None if ready else f'{noun} {server} is not available'

    def _is_reached(self, server: str) -> bool:
        """Tell whether cancels would arrive, whichever thread sends them."""
        return self._canceller.is_ready(server) and self._stopper.is_ready(server)

    def _missing_below(self, server: str) -> str | None:
        """Return what a planner drives and could not be stopped, None where all could."""
        below = (s for p in self._plans.values() if p.server == server for s in p.downstream)
        for each in below:
            if not self._stopper.is_ready(each):
                return f'action server {each}, which {server} drives, is not available'
            if (why := self._guard.unreached(each)) is not None:
                return f'{why}; {server} drives the robot with it'
        return None
