"""Owns what the bridge sees of the robot beside its safety: channels, frames, the ROS clock."""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import Any

from rclpy.node import Node

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.engine.channels import FRAME_OVERHEAD
from awp_ros_bridge.engine.effects import SetChannelDemand
from awp_ros_bridge.engine.inputs import Input
from awp_ros_bridge.ros.capture_time import Clocks
from awp_ros_bridge.ros.clock_watch import ClockWatch
from awp_ros_bridge.ros.limit_sources import Places
from awp_ros_bridge.ros.observations import Observations
from awp_ros_bridge.ros.runtime import RosThread


class Sight:
    """
    The observations thread's part of the gateway; nothing is seen before :meth:`start`.

    :param post: takes inputs for the engine; called on any thread.
    """

    def __init__(
        self, config: BridgeConfig, thread: RosThread, post: Callable[[Input], None]
    ) -> None:
        self._config = config
        self._thread = thread
        self._post = post
        self._observations: Observations | None = None
        self._clock_watch: ClockWatch | None = None

    def start(self, node: Node, tf_period_ns: int | None) -> tuple[Observations, ClockWatch]:
        """
        Begin to look, on a node of its own; before its thread starts.

        :param tf_period_ns: how often tf is needed at least, None where nobody asks for more.
        """
        clock = node.get_clock()
        clocks = Clocks(
            steady_ns=time.monotonic_ns,
            ros_ns=lambda: clock.now().nanoseconds,
            uses_sim_time=lambda: bool(node.get_parameter('use_sim_time').value),
        )
        observations = self._observations = Observations(
            node,
            self._thread,
            self._config.channels,
            self._config.frames,
            self._post,
            clocks,
            self._config.server.max_frame_bytes - FRAME_OVERHEAD,
        )
        if tf_period_ns is not None:
            observations.frames.hasten(tf_period_ns)
        observations.start()
        clock_watch = self._clock_watch = ClockWatch(self._thread, clocks)
        clock_watch.start()
        return observations, clock_watch

    def close(self) -> None:
        """See nothing any more."""
        if self._observations is not None:
            self._observations.close()

    def demand(self, effect: SetChannelDemand) -> None:
        """Follow a channel as fast as its readers ask; any thread."""
        if self._observations is not None:
            self._observations.demand(effect.channel, effect.rate_hz, effect.fresh)

    def places(self) -> Places:
        """Return what tf tells, as limits ask for it."""
        frames = self._config.frames.tf_frames
        return Places(frames.get, lambda: list(frames), self.pose_in, self._placed_in)

    def pose_in(self, frame: str, reference: str) -> Any | None:
        """Return the pose of an AWP frame in another one by tf, None while unknown; any thread."""
        seen = self._observations
        return None if seen is None else seen.frames.pose_in(frame, reference)

    def health(self) -> dict[str, Any]:
        """Return what is the matter with channels and clock; any thread."""
        return {
            'channels': {} if self._observations is None else self._observations.notes(),
            'clock': None if self._clock_watch is None else self._clock_watch.trouble,
        }

    def _placed_in(self, frame: str, reference: str) -> Any | None:
        seen = self._observations
        return None if seen is None else seen.frames.placed_in(frame, reference)
