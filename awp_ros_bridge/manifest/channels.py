"""
Owns the observation channels of the manifest and the shape of the bridge's own JSON payloads.

What the bridge encodes follows its schema (AWP-MOD-001); those of topics other than joint states
stand with their encoders. Fields carry their unit (AWP-UNI-001); no payload holds a tick,
simulated time or send time (AWP-DAT-007), nor a stamp: the frame has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from awp_ros_bridge.config import (
    BridgeConfig,
    Channel,
    EmbodimentStateChannel,
    Encoders,
    TF_CHANNEL,
    TopicChannel,
)
from awp_ros_bridge.engine.inputs import Meaning

Json = dict[str, Any]

JOINT_STATE = 'sensor_msgs/msg/JointState'

_NUMBER_OR_NULL: Json = {'type': ['number', 'null']}
_NAME: Json = {'type': 'string', 'minLength': 1}
_ACTION_STATES = (
    'pending_approval',
    'queued',
    'accepted',
    'executing',
    'cancelling',
)


def _closed(properties: Json, required: Sequence[str], description: str) -> Json:
    return {
        'type': 'object',
        'description': description,
        'properties': properties,
        'required': list(required),
        'additionalProperties': False,
    }


def _per_joint(description: str) -> Json:
    return {'type': 'array', 'items': _NUMBER_OR_NULL, 'description': description}


def joint_state_schema(prismatic: bool) -> Json:
    """
    Return the schema of a JointState payload.

    All arrays are as long as ``name``. A value is null where the robot says nothing, says a
    number that is not finite, or where the joint has another unit.

    :param prismatic: True adds the arrays of sliding joints.
    """
    properties: Json = {
        'name': {
            'type': 'array',
            'items': _NAME,
            'description': 'joints, in their order',
        },
        'q_rad': _per_joint('positions of turning joints'),
        'dq_radps': _per_joint('velocities of turning joints'),
        'tau_nm': _per_joint('torques of turning joints'),
    }
    if prismatic:
        properties |= {
            'q_m': _per_joint('positions of sliding joints'),
            'dq_mps': _per_joint('velocities of sliding joints'),
            'f_n': _per_joint('forces of sliding joints'),
        }
    return _closed(properties, tuple(properties), 'joint states; null: not known, or another unit')


EMBODIMENT_STATE_SCHEMA: Json = _closed(
    {
        'embodiment': _NAME,
        'motion_permitted': {
            'type': 'boolean',
            'description': 'the safety inputs alone: all of them permit motion',
        },
        'in_safe_state': {
            'type': 'boolean',
            'description': 'from safe_state_entered to safe_state_exited',
        },
        'at_rest': {
            'type': ['boolean', 'null'],
            'description': 'measured; null while it is not known',
        },
        'action_id': {
            'type': ['string', 'null'],
            'description': 'the action under way',
        },
        'action_state': {'enum': [*_ACTION_STATES, None]},
        'progress': {'type': ['number', 'null'], 'minimum': 0, 'maximum': 1},
        'stops': {
            'type': 'array',
            'description': 'what forbids motion now',
            'items': _closed(
                {
                    'input': _NAME,
                    'meaning': {'enum': [meaning.value for meaning in Meaning]},
                    'detail': {'type': 'string'},
                },
                ('input', 'meaning', 'detail'),
                'one engaged, unknown or stale safety input',
            ),
        },
    },
    (
        'embodiment',
        'motion_permitted',
        'in_safe_state',
        'at_rest',
        'action_id',
        'action_state',
        'progress',
        'stops',
    ),
    'what an embodiment does and what stops it',
)


def _numbers(count: int, description: str) -> Json:
    return {
        'type': 'array',
        'items': {'type': 'number'},
        'minItems': count,
        'maxItems': count,
        'description': description,
    }


TF_SCHEMA: Json = _closed(
    {
        'transforms': {
            'type': 'array',
            'items': _closed(
                {
                    'frame': _NAME,
                    'parent': _NAME,
                    'p_m': _numbers(3, 'origin of the frame in its parent'),
                    'q': _numbers(4, 'orientation as unit quaternion [x, y, z, w]'),
                },
                ('frame', 'parent', 'p_m', 'q'),
                'where a frame stands in its parent',
            ),
        }
    },
    ('transforms',),
    'transforms of the dynamic frames of the tree (AWP-UNI-004)',
)


def payload_schema(channel: Channel, encoders: Encoders | None = None) -> Json:
    """
    Return the ``schema`` of a channel's declaration (AWP-DAT-002).

    :param encoders: what is known of message types; without them only joint states are known.
    """
    if isinstance(channel, EmbodimentStateChannel):
        return EMBODIMENT_STATE_SCHEMA
    if encoders is not None:
        return encoders.schema(channel)
    if channel.type == JOINT_STATE:
        return joint_state_schema(bool(channel.prismatic))
    return {'x-ros2.type': channel.type}


def declared_channels(config: BridgeConfig, encoders: Encoders | None = None) -> dict[str, Json]:
    """Return the channel declarations by id; awp.tf is one of them when frames are included."""
    declared = {name: _entry(name, channel, encoders) for name, channel in config.channels.items()}
    if config.frames.include:
        declared[TF_CHANNEL] = {
            'id': TF_CHANNEL,
            'modality': 'proprio/json',
            'rate_hz': config.frames.tf_rate_hz,
            'loss_class': 'latest-wins',
            'schema': TF_SCHEMA,
        }
    return declared


def channels_of(config: BridgeConfig, embodiment: str) -> list[str]:
    """Return the channel ids of an embodiment: those it lists, and awp.tf."""
    names = list(config.embodiments[embodiment].channels)
    if config.frames.include and TF_CHANNEL not in names:
        names.append(TF_CHANNEL)
    return names


def state_owner(config: BridgeConfig, name: str) -> str | None:
    """Return the embodiment that a state channel tells of; None for every other channel."""
    channel = config.channels.get(name)
    if not isinstance(channel, EmbodimentStateChannel):
        return None
    if channel.embodiment is not None:
        return channel.embodiment
    return next((id_ for id_, each in config.embodiments.items() if name in each.channels), None)


def _entry(
    name: str, channel: TopicChannel | EmbodimentStateChannel, encoders: Encoders | None
) -> Json:
    entry: Json = {
        'id': name,
        'modality': channel.modality,
        'rate_hz': channel.rate_hz,
        'loss_class': channel.loss_class,
    }
    if channel.stale_after_ms is not None:
        entry['stale_after_ms'] = channel.stale_after_ms
    entry['schema'] = payload_schema(channel, encoders)
    return entry
