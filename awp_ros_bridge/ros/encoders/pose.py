"""Owns the encoding of poses: geometry_msgs Pose, PoseStamped, PoseWithCovarianceStamped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from awp_ros_bridge.config import ChannelFault, TopicChannel
from awp_ros_bridge.ros.encoders.base import JsonEncoder
from awp_ros_bridge.ros.encoders.values import (
    closed,
    deviations,
    FRAME,
    POSITION,
    position,
    ROTATION,
    rotation,
    triple,
)

Json = dict[str, Any]

_POSE: Json = {'frame': FRAME, 'p_m': POSITION, 'q': ROTATION}
_BARE = 'geometry_msgs/msg/Pose'
_COVARIANCE = 'geometry_msgs/msg/PoseWithCovarianceStamped'


class PoseEncoder(JsonEncoder):
    """A pose in its frame."""

    types = (_BARE, 'geometry_msgs/msg/PoseStamped', _COVARIANCE)
    keys = frozenset({'frame'})
    summary = (
        'A `Pose` has no header: its channel names the `frame`. The deviations are those of '
        '`PoseWithCovarianceStamped` only.'
    )

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return the schema of its payloads."""
        if channel.type != _COVARIANCE:
            return closed(_POSE, 'a pose')
        std = {
            'p_std_m': triple('standard deviations of p_m; null: unknown', nullable=True),
            'r_std_rad': triple('standard deviations about x, y, z; null: unknown', nullable=True),
        }
        return closed(_POSE | std, 'a pose and how exact it is')

    @classmethod
    def faults(cls, channel: TopicChannel) -> Iterator[ChannelFault]:
        """Require the frame of a pose without a header."""
        if channel.type == _BARE and channel.frame is None:
            yield ChannelFault(
                (),
                'a Pose without header does not say its frame (AWP-UNI-003)',
                'add frame: its AWP frame, or publish a PoseStamped',
                ('frame',),
            )

    def body(self, message: Any) -> Json:
        """Return what the payload holds."""
        frame_id = message.header.frame_id if self._has_header else ''
        path, pose = ('pose', message.pose) if self._has_header else ('', message)
        std: Json = {}
        if self._channel.type == _COVARIANCE:
            path, covariance, pose = 'pose.pose', pose.covariance, pose.pose
            std = {
                'p_std_m': deviations(covariance, 0, 6),
                'r_std_rad': deviations(covariance, 3, 6),
            }
        return {
            'frame': self.frame_of(frame_id),
            'p_m': position(pose.position, f'{path}.position'.lstrip('.')),
            'q': rotation(pose.orientation, f'{path}.orientation'.lstrip('.')),
            **std,
        }
