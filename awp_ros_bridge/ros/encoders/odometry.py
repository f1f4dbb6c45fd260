"""Owns the encoding of nav_msgs/msg/Odometry."""

from __future__ import annotations

from typing import Any

from awp_ros_bridge.config import TopicChannel
from awp_ros_bridge.ros.encoders.base import JsonEncoder
from awp_ros_bridge.ros.encoders.values import (
    about,
    closed,
    deviations,
    FRAME,
    NAME,
    POSITION,
    position,
    ROTATION,
    rotation,
    triple,
    vector,
)

Json = dict[str, Any]

_SCHEMA = closed(
    {
        'frame': FRAME,
        'child_frame': about(NAME, 'frame whose pose it is, and that the velocities are in'),
        'p_m': POSITION,
        'q': ROTATION,
        'v_mps': triple('linear velocity x, y, z in child_frame; null: not finite'),
        'w_radps': triple('angular velocity about x, y, z in child_frame; null: not finite'),
        'p_std_m': triple('standard deviations of p_m; null: unknown', nullable=True),
        'r_std_rad': triple('standard deviations about x, y, z; null: unknown', nullable=True),
        'v_std_mps': triple('standard deviations of v_mps; null: unknown', nullable=True),
        'w_std_radps': triple('standard deviations of w_radps; null: unknown', nullable=True),
    },
    'pose and velocity of a body',
)


class OdometryEncoder(JsonEncoder):
    """Pose, velocity and their standard deviations."""

    types = ('nav_msgs/msg/Odometry',)
    keys = frozenset({'frame'})
    summary = (
        'Both frames have to be in the tree. Of the covariances the diagonal is sent, as standard '
        'deviations.'
    )

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return the schema of its payloads."""
        return _SCHEMA

    def body(self, message: Any) -> Json:
        """Return what the payload holds."""
        pose, twist = message.pose, message.twist
        return {
            'frame': self.frame_of(message.header.frame_id),
            'child_frame': self.frame_of(message.child_frame_id, 'child_frame_id'),
            'p_m': position(pose.pose.position, 'pose.pose.position'),
            'q': rotation(pose.pose.orientation, 'pose.pose.orientation'),
            'v_mps': vector(twist.twist.linear),
            'w_radps': vector(twist.twist.angular),
            'p_std_m': deviations(pose.covariance, 0, 6),
            'r_std_rad': deviations(pose.covariance, 3, 6),
            'v_std_mps': deviations(twist.covariance, 0, 6),
            'w_std_radps': deviations(twist.covariance, 3, 6),
        }
