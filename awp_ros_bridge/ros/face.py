"""Owns what ROS sees of the bridge and may ask of it: values, diagnostics, operators' services."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rclpy.node import Node

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.engine.effects import ReportEmbodiment
from awp_ros_bridge.engine.inputs import Input
from awp_ros_bridge.ros.account import MotionAccount
from awp_ros_bridge.ros.clock_watch import ClockWatch
from awp_ros_bridge.ros.diagnostics import Ask, Diagnostics
from awp_ros_bridge.ros.goal_desk import GoalDesk
from awp_ros_bridge.ros.guard import Guard
from awp_ros_bridge.ros.health import Health, Parts
from awp_ros_bridge.ros.limit_watch import LimitWatch
from awp_ros_bridge.ros.live_goals import LiveGoals
from awp_ros_bridge.ros.observations import Observations
from awp_ros_bridge.ros.operator import OperatorDesk
from awp_ros_bridge.ros.rest import RestMonitor
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.safety_inputs import SafetyInputs
from awp_ros_bridge.ros.session_desk import close_bound_ms, SessionDesk
from awp_ros_bridge.ros.status import EmbodimentStatus
from awp_ros_bridge.ros.stop import LocalStop, StopGate


@dataclass(frozen=True, slots=True)
class Threads:
    """The threads of the ROS side."""

    safety: RosThread
    goals: RosThread
    observations: RosThread


class RosFace:
    """
    The stop of an operator is the safety thread's; everything else runs on the goals thread.

    :param post: takes inputs for the engine; called on any thread.
    :param ask: has the bridge's loop report on itself, for diagnostics.
    """

    def __init__(
        self,
        config: BridgeConfig,
        threads: Threads,
        stop: LocalStop,
        gate: StopGate,
        guard: Guard,
        goals: LiveGoals,
        inputs: SafetyInputs,
        rest: RestMonitor,
        post: Callable[[Input], None],
        ask: Ask,
    ) -> None:
        names = config.embodiments
        self._config = config
        self._gate = gate
        self._guard = guard
        self._inputs = inputs
        account = MotionAccount(gate, inputs, rest, goals)
        self._status = EmbodimentStatus(threads.goals, names, account)
        stop.listen(self._status.changed)
        self._operator = OperatorDesk(threads.safety, stop, gate, goals, inputs, names)
        bound_ms = close_bound_ms(config)
        self._sessions = SessionDesk(threads.goals, post, names, self._status.holder, bound_ms)
        measured = (threads.safety, threads.goals, threads.observations)
        self._diagnostics = Diagnostics(threads.goals, ask, measured, config.world.name)

    def start(
        self,
        main: Node,
        safety: Node,
        desk: GoalDesk,
        limits: LimitWatch,
        observations: Observations,
        clock: ClockWatch,
    ) -> None:
        """Create topics and services on their nodes; before the threads start."""
        self._status.start(main)
        self._operator.start(safety, main.resolve_service_name)
        self._sessions.start(main)
        parts = Parts(
            self._gate,
            self._guard,
            self._inputs,
            limits,
            self._status,
            desk,
            observations,
            clock,
        )
        self._diagnostics.start(main, Health(self._config, parts))

    def update(self, effect: ReportEmbodiment) -> None:
        """Take what the engine reports of an embodiment; goals thread."""
        self._status.update(effect)
        self._sessions.update(effect)
