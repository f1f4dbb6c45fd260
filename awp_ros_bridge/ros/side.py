"""Owns the assembly of the ROS side: adapters with their contexts, descriptions, the gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.engine.effects import RobotEffect
from awp_ros_bridge.engine.inputs import Input
from awp_ros_bridge.ros.adapters.base import Adapter, AdapterContext, Limits
from awp_ros_bridge.ros.adapters.checker import GoalCheck
from awp_ros_bridge.ros.adapters.registry import Registry
from awp_ros_bridge.ros.description import Descriptions
from awp_ros_bridge.ros.diagnostics import Ask, asks_nobody
from awp_ros_bridge.ros.gateway import RosGateway
from awp_ros_bridge.ros.goal_marks import GoalMarks


class RosSide:
    """
    Everything of the bridge that talks to ROS, as one thing with a start and a stop.

    :param post: takes inputs for the engine; called on any thread
    :param folder: where relative file names of the configuration begin
    :param on_fatal: told that a ROS thread failed; the robot has been stopped
    :param marks: what the ids of this bridge's goals begin with
    :param ask: has the bridge's loop report on itself, for diagnostics
    :param shown: values of read-only parameters
    :raises ValueError: an action's options do not suit its adapter
    """

    def __init__(
        self,
        config: BridgeConfig,
        registry: Registry,
        post: Callable[[Input], None],
        ros_args: Sequence[str],
        folder: Path,
        on_fatal: Callable[[str], None],
        marks: GoalMarks | None = None,
        ask: Ask = asks_nobody,
        shown: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self.descriptions = Descriptions(
            config, folder, lambda name, chain: self.gateway.take_chain(name, chain)
        )
        self.adapters: dict[tuple[str, str], Adapter] = {}
        for name, embodiment in config.embodiments.items():
            for action_type in embodiment.actions:
                context = self._context(name, action_type)
                adapter = config.actions[action_type].adapter
                self.adapters[name, action_type] = registry.build(adapter, context)
        self.checker = GoalCheck(self.adapters)
        self.gateway = RosGateway(
            config, self.adapters, post, ros_args, on_fatal, marks, ask, shown
        )

    def start(self) -> None:
        """Make the nodes and begin to spin; returns without waiting for the robot."""
        self.descriptions.read_files()
        self.gateway.start()
        goals = self.gateway.goals_thread
        goals.post(self.descriptions.subscribe, self.gateway.node, goals.guard)

    def stop(self, timeout_s: float) -> bool:
        """Stop the robot and close everything; blocks. Tell whether every goal ended in time."""
        return self.gateway.stop(timeout_s)

    @property
    def is_stopped(self) -> bool:
        """Tell whether no thread of ROS runs any more; one that does cannot be ended."""
        return not any(t['alive'] for t in self.gateway.health()['threads'].values())

    def apply(self, effect: RobotEffect, /) -> None:
        """Carry out one effect without waiting."""
        self.gateway.apply(effect)

    def beat(self, now_ns: int, /) -> None:
        """Note that the bridge loop is alive."""
        self.gateway.beat(now_ns)

    def _context(self, embodiment: str, action_type: str) -> AdapterContext:
        envelope = self._config.embodiments[embodiment].envelope
        spatial = envelope.spatial if envelope else None
        limits = Limits(
            spatial.frame if spatial else None,
            spatial.aabb_m if spatial else None,
            envelope.max_velocity_mps if envelope else None,
        )
        return AdapterContext(
            embodiment=embodiment,
            action_type=action_type,
            limits=limits,
            joints=lambda: self.gateway.joints(embodiment),
            chain=lambda: self.descriptions.chain(embodiment),
            ros_frame=lambda frame: self._config.frames.tf_frames.get(frame),
            frames=lambda: list(self._config.frames.tf_frames),
            now_stamp=lambda: self.gateway.now_stamp(),
            options=dict(self._config.actions[action_type].options),
            joint_velocities=lambda: self.gateway.joint_velocities(embodiment),
            pose_in=self._pose_in,
        )

    def _pose_in(self, frame: str, reference: str) -> Any | None:
        return self.gateway.sight.pose_in(frame, reference)
