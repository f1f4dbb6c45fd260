"""Owns the encoding of sensor_msgs/msg/PointCloud2 as pointcloud/xyz32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from awp_ros_bridge.config import ChannelFault, TopicChannel
from awp_ros_bridge.ros.encoders.base import BadMessage, MessageEncoder

Json = dict[str, Any]

_AXES = ('x', 'y', 'z')
_DTYPES = {7: 'f4', 8: 'f8'}  # sensor_msgs/msg/PointField: FLOAT32, FLOAT64


class PointCloudEncoder(MessageEncoder):
    """The finite points as packed little-endian float32 triples."""

    types = ('sensor_msgs/msg/PointCloud2',)
    modalities = ('pointcloud/xyz32',)
    keys = frozenset({'frame'})
    most_kept = 4
    summary = (
        'The channel names the `frame`. Points that are not finite are left out, so an organised '
        'cloud loses its rows; other fields (intensity, colour) are not sent.'
    )

    @classmethod
    def faults(cls, channel: TopicChannel) -> Iterator[ChannelFault]:
        """Require the frame, which no payload can name."""
        if channel.frame is None:
            yield ChannelFault(
                (),
                'pointcloud/xyz32 declares the frame of its points',
                'add frame: the AWP name that frames.include gives the frame of the sensor',
                ('frame',),
            )

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return what is declared of the points."""
        return {'frame': channel.frame, 'unit': 'm', 'byte_order': 'little'}

    def payload(self, message: Any) -> bytes:
        """Return the points."""
        self.frame_of(message.header.frame_id)
        points = _points(message)
        found = np.empty((len(points), 3), '<f4')
        with np.errstate(over='ignore', invalid='ignore'):
            for column, axis in enumerate(_AXES):
                found[:, column] = points[axis]
        is_finite = np.isfinite(found).all(axis=1)
        return (found if is_finite.all() else found[is_finite]).tobytes()


def _points(message: Any) -> Any:
    """
    Return x, y, z of the points as a structured array.

    :raises BadMessage: a field is missing, or the numbers do not agree with the data
    """
    width, height, step = message.width, message.height, message.point_step
    if message.row_step < width * step:
        raise BadMessage(
            'row_step', f'is {message.row_step}; {width} points of {step} bytes need more'
        )
    if len(message.data) != message.row_step * height:
        raise BadMessage(
            'data',
            f'has {len(message.data)} bytes; {height} rows of {message.row_step} are '
            f'{message.row_step * height}',
        )
    if not width * height:
        return np.empty(0, [(axis, 'f4') for axis in _AXES])
    point = _point_type(message)
    rows = np.frombuffer(message.data, 'u1').reshape(height, message.row_step)
    return np.ascontiguousarray(rows[:, : width * step]).reshape(-1).view(point)


def _point_type(message: Any) -> Any:
    order = '>' if message.is_bigendian else '<'
    known = {field.name: field for field in message.fields}
    formats, offsets = [], []
    for axis in _AXES:
        field = known.get(axis)
        if field is None:
            names = ', '.join(known) or 'none'
            raise BadMessage('fields', f'have no {axis!r}; there are {names}')
        dtype = _DTYPES.get(field.datatype)
        if dtype is None or field.count != 1:
            raise BadMessage(
                f'fields[{axis}]',
                f'has datatype {field.datatype}, count {field.count}; a coordinate is one '
                'FLOAT32 (7) or FLOAT64 (8)',
            )
        if field.offset + np.dtype(dtype).itemsize > message.point_step:
            raise BadMessage(
                f'fields[{axis}]',
                f'begins at byte {field.offset} of a point of {message.point_step} bytes',
            )
        formats.append(order + dtype)
        offsets.append(field.offset)
    return np.dtype(
        {
            'names': list(_AXES),
            'formats': formats,
            'offsets': offsets,
            'itemsize': message.point_step,
        }
    )
