"""Owns the encoding of diagnostic_msgs/msg/DiagnosticArray."""

from __future__ import annotations

from typing import Any

from awp_ros_bridge.config import TopicChannel
from awp_ros_bridge.ros.encoders.base import BadMessage, JsonEncoder
from awp_ros_bridge.ros.encoders.values import closed

Json = dict[str, Any]

_LEVELS = ('ok', 'warn', 'error', 'stale')
_TEXT: Json = {'type': 'string'}
_SCHEMA = closed(
    {
        'status': {
            'type': 'array',
            'items': closed(
                {
                    'name': _TEXT,
                    'level': {'enum': list(_LEVELS)},
                    'message': _TEXT,
                    'hardware_id': _TEXT,
                    'values': {
                        'type': 'array',
                        'items': closed({'key': _TEXT, 'value': _TEXT}, 'one value, as a text'),
                        'description': 'in their order; a key may stand twice',
                    },
                },
                'state of one part',
            ),
            'description': 'only the parts that this message tells of',
        }
    },
    'what parts of the robot say of themselves',
)


class DiagnosticsEncoder(JsonEncoder):
    """What parts of the robot say of themselves."""

    types = ('diagnostic_msgs/msg/DiagnosticArray',)
    modalities = ('text/event+json', 'proprio/json')
    summary = 'Levels are words; values stay texts, since their units are not known.'

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return the schema of its payloads."""
        return _SCHEMA

    def body(self, message: Any) -> Json:
        """Return what the payload holds."""
        return {'status': [_status(i, status) for i, status in enumerate(message.status)]}


def _status(index: int, status: Any) -> Json:
    level = status.level[0]
    if level >= len(_LEVELS):
        raise BadMessage(f'status[{index}].level', f'is {level}; levels are 0 to 3')
    return {
        'name': status.name,
        'level': _LEVELS[level],
        'message': status.message,
        'hardware_id': status.hardware_id,
        'values': [{'key': pair.key, 'value': pair.value} for pair in status.values],
    }
