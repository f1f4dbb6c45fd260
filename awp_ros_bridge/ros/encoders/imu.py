"""Owns the encoding of sensor_msgs/msg/Imu."""

from __future__ import annotations

from typing import Any

from awp_ros_bridge.config import TopicChannel
from awp_ros_bridge.ros.encoders.base import JsonEncoder
from awp_ros_bridge.ros.encoders.values import (
    closed,
    deviations,
    FRAME,
    is_measured,
    numbers,
    rotation,
    triple,
    vector,
)

Json = dict[str, Any]

_UNKNOWN = 'null: not measured'
_SCHEMA = closed(
    {
        'frame': FRAME,
        'q': numbers(4, f'rotation as unit quaternion x, y, z, w; {_UNKNOWN}', nullable=True),
        'w_radps': triple(f'angular velocity about x, y, z; {_UNKNOWN}', nullable=True),
        'a_mps2': triple(f'acceleration x, y, z, gravity included; {_UNKNOWN}', nullable=True),
        'r_std_rad': triple('standard deviations about x, y, z; null: unknown', nullable=True),
        'w_std_radps': triple('standard deviations of w_radps; null: unknown', nullable=True),
        'a_std_mps2': triple('standard deviations of a_mps2; null: unknown', nullable=True),
    },
    'what an inertial measurement unit says',
)


class ImuEncoder(JsonEncoder):
    """Rotation, angular velocity, acceleration; what the sensor does not measure is null."""

    types = ('sensor_msgs/msg/Imu',)
    keys = frozenset({'frame'})
    summary = (
        'Not measured is what has -1 as the first entry of its covariance, and a quaternion of '
        'four zeros.'
    )

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return the schema of its payloads."""
        return _SCHEMA

    def body(self, message: Any) -> Json:
        """Return what the payload holds."""
        turned, turns = message.orientation, message.angular_velocity
        body: Json = {
            'frame': self.frame_of(message.header.frame_id),
            'q': None,
            'w_radps': None,
            'a_mps2': None,
            'r_std_rad': None,
            'w_std_radps': None,
            'a_std_mps2': None,
        }
        is_told = any((turned.x, turned.y, turned.z, turned.w))
        if is_told and is_measured(message.orientation_covariance):
            body['q'] = rotation(turned, 'orientation')
            body['r_std_rad'] = deviations(message.orientation_covariance, 0, 3)
        if is_measured(message.angular_velocity_covariance):
            body['w_radps'] = vector(turns)
            body['w_std_radps'] = deviations(message.angular_velocity_covariance, 0, 3)
        if is_measured(message.linear_acceleration_covariance):
            body['a_mps2'] = vector(message.linear_acceleration)
            body['a_std_mps2'] = deviations(message.linear_acceleration_covariance, 0, 3)
        return body
