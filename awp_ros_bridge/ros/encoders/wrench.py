"""Owns the encoding of geometry_msgs/msg/WrenchStamped."""

from __future__ import annotations

from typing import Any

from awp_ros_bridge.config import TopicChannel
from awp_ros_bridge.ros.encoders.base import JsonEncoder
from awp_ros_bridge.ros.encoders.values import closed, FRAME, triple, vector

Json = dict[str, Any]

_SCHEMA = closed(
    {
        'frame': FRAME,
        'force_n': triple('force x, y, z; null: not finite'),
        'torque_nm': triple('torque about x, y, z; null: not finite'),
    },
    'force and torque',
)


class WrenchEncoder(JsonEncoder):
    """Force and torque in their frame."""

    types = ('geometry_msgs/msg/WrenchStamped',)
    keys = frozenset({'frame'})
    summary = 'The frame has to be in the tree.'

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return the schema of its payloads."""
        return _SCHEMA

    def body(self, message: Any) -> Json:
        """Return what the payload holds."""
        return {
            'frame': self.frame_of(message.header.frame_id),
            'force_n': vector(message.wrench.force),
            'torque_nm': vector(message.wrench.torque),
        }
