"""Owns what the tests of observations stand on: a spun node, a publisher side, what was posted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import json
import os
import time
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions

from awp_ros_bridge.config import FramesConfig, TopicChannel
from awp_ros_bridge.engine.inputs import FrameTreeChanged, ObservationCaptured
from awp_ros_bridge.ros.capture_time import Clocks
from awp_ros_bridge.ros.observations import Observations
from awp_ros_bridge.ros.runtime import RosThread

BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=10)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
JOINTS = ('j1', 'j2')


def wait_for(condition: Callable[[], Any], what: str, timeout_s: float = 15.0) -> Any:
    """Wait until a condition holds and return what it gave."""
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError(f'{what}: not within {timeout_s} s')


def topic_channel(**changes: Any) -> TopicChannel:
    """Make a channel of joint states."""
    settings = {
        'topic': 'joint_states',
        'type': 'sensor_msgs/msg/JointState',
        'modality': 'proprio/json',
        'rate_hz': 100.0,
        'loss_class': 'latest-wins',
    }
    return TopicChannel(**{**settings, **changes})


class World:
    """One side observes, the other publishes, each in a context of its own."""

    def __init__(
        self,
        context: Context,
        talking: Context,
        channels: dict[str, Any],
        frames: FramesConfig,
        clocks: Clocks,
    ) -> None:
        self.posted: list[Any] = []
        self.failures: list[str] = []
        plain = {'start_parameter_services': False, 'enable_rosout': False}
        self.node = Node('observing', context=context, **plain)
        self.talker = Node('talking', context=talking, **plain)
        self.thread = RosThread('observing', self.failures.append)
        self.observations = Observations(
            self.node, self.thread, channels, frames, self.posted.append, clocks
        )

    def start(self) -> None:
        """Subscribe and spin."""
        self.observations.start()
        self.thread.start(self.node)

    def samples(self, channel: str = 'proprio') -> list[ObservationCaptured]:
        """List what was captured of a channel."""
        return [
            p for p in self.posted if isinstance(p, ObservationCaptured) and p.channel == channel
        ]

    def payloads(self, channel: str = 'proprio') -> list[Any]:
        """Decode what was captured of a channel."""
        return [json.loads(sample.payload) for sample in self.samples(channel)]

    def trees(self) -> list[tuple[dict[str, Any], ...]]:
        """List the frame trees that were told."""
        return [p.frames for p in self.posted if isinstance(p, FrameTreeChanged)]

    def note(self, channel: str = 'proprio') -> str:
        """Return what the channel says of itself."""
        return self.observations.notes().get(channel, '')

    def close(self) -> None:
        """End the thread, then the nodes."""
        self.thread.stop(5.0)
        self.observations.close()
        self.thread.close()
        self.node.destroy_node()
        self.talker.destroy_node()


@contextmanager
def world(
    channels: dict[str, Any] | None = None,
    frames: FramesConfig | None = None,
    ros_ns: Callable[[], int] = time.time_ns,
    uses_sim_time: bool = False,
) -> Iterator[World]:
    """Make a world, spin it, and end it."""
    contexts = Context(), Context()
    for context in contexts:
        rclpy.init(
            context=context,
            domain_id=int(os.environ['ROS_DOMAIN_ID']),
            signal_handler_options=SignalHandlerOptions.NO,
        )
    clocks = Clocks(time.monotonic_ns, ros_ns, lambda: uses_sim_time)
    made = World(
        *contexts,
        {'proprio': topic_channel()} if channels is None else channels,
        frames or FramesConfig(),
        clocks,
    )
    try:
        made.start()
        yield made
        assert not made.failures, made.failures
    finally:
        made.close()
        for context in contexts:
            rclpy.shutdown(context=context)
