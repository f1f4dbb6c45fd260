"""Owns the encoding of sensor_msgs/msg/LaserScan."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from awp_ros_bridge.config import TopicChannel
from awp_ros_bridge.ros.encoders.base import BadMessage, JsonEncoder
from awp_ros_bridge.ros.encoders.values import (
    about,
    closed,
    EXTENDED,
    extended_list,
    FRAME,
    NUMBER,
    number32,
    NUMBER_OR_NULL,
)

Json = dict[str, Any]

# Drivers differ by one in whether the last angle is counted.
_COUNT_TOLERANCE = 1

_SCHEMA = closed(
    {
        'frame': FRAME,
        'angle_min_rad': about(NUMBER, 'angle of the first range, about z from x'),
        'angle_increment_rad': about(NUMBER, 'angle between neighbours, never 0'),
        'range_min_m': about(NUMBER_OR_NULL, 'shorter ranges are no measurements'),
        'range_max_m': about(NUMBER_OR_NULL, 'longer ranges are no measurements'),
        'scan_time_s': about(NUMBER_OR_NULL, 'time from one scan to the next; 0: unknown'),
        'time_increment_s': about(NUMBER_OR_NULL, 'time between neighbours; 0: unknown'),
        'ranges_m': {
            'type': 'array',
            'items': EXTENDED,
            'description': 'null: an erroneous measurement, Infinity: nothing within range_max_m, '
            '-Infinity: something nearer than range_min_m',
        },
        'intensities': {
            'type': ['array', 'null'],
            'items': EXTENDED,
            'description': 'as many as ranges, in a unit of the sensor; null: it tells none',
        },
    },
    'one scan of a laser scanner',
)


class LaserScanEncoder(JsonEncoder):
    """One scan; infinite ranges keep their meaning."""

    types = ('sensor_msgs/msg/LaserScan',)
    keys = frozenset({'frame'})
    summary = (
        'As many ranges as the angles ask for (one more or less is let pass), and as many '
        'intensities as ranges or none; else the scan is not sent.'
    )

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return the schema of its payloads."""
        return _SCHEMA

    def body(self, message: Any) -> Json:
        """Return what the payload holds."""
        _check_angles(message)
        intensities = message.intensities
        if len(intensities) not in (0, len(message.ranges)):
            raise BadMessage(
                'intensities',
                f'has {len(intensities)} values beside {len(message.ranges)} ranges',
            )
        return {
            'frame': self.frame_of(message.header.frame_id),
            'angle_min_rad': np.float32(message.angle_min),
            'angle_increment_rad': np.float32(message.angle_increment),
            'range_min_m': number32(message.range_min),
            'range_max_m': number32(message.range_max),
            'scan_time_s': number32(message.scan_time),
            'time_increment_s': number32(message.time_increment),
            'ranges_m': extended_list(message.ranges),
            'intensities': extended_list(intensities) if intensities else None,
        }


def _check_angles(message: Any) -> None:
    first, last, step = message.angle_min, message.angle_max, message.angle_increment
    for path, value in (('angle_min', first), ('angle_max', last), ('angle_increment', step)):
        if not math.isfinite(value):
            raise BadMessage(path, f'is {value}')
    if not step:
        raise BadMessage('angle_increment', 'is 0')
    count, wanted = len(message.ranges), (last - first) / step + 1
    if not abs(count - wanted) < _COUNT_TOLERANCE + 0.5:
        raise BadMessage(
            'ranges',
            f'has {count} values; from {first:.4g} to {last:.4g} rad in steps of {step:.4g} '
            f'there are {wanted:.0f}',
        )
