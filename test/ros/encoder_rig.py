"""Owns what the tests of encoders stand on: a channel of any type, its payload, its schema."""

from __future__ import annotations

import json
from typing import Any

from agent_words import strict_json
from jsonschema import Draft202012Validator
import pytest
from rclpy.serialization import serialize_message

from awp_ros_bridge.config import load_text, LoadResult, TopicChannel
from awp_ros_bridge.ros.encoders.base import BadMessage, EncoderContext
from awp_ros_bridge.ros.encoders.registry import make_encoder, registry

Json = dict[str, Any]

STAMP_NS = 3_000_000_004
FRAMES = {'world': 'world', 'odom': 'odom', 'rig/base': 'base', 'rig/laser': 'laser'}
SETTINGS = {'topic': 'seen', 'rate_hz': 10.0, 'loss_class': 'latest-wins'}
CONFIG: Json = {
    'world': {'name': 'cell', 'vendor': 'maker'},
    'guardian': 'off',
    'frames': {
        'root': 'world',
        'include': {'odom': 'odom', 'base': 'rig/base', 'laser': 'rig/laser'},
    },
    'embodiments': {
        'arm_01': {
            'kind': 'manipulator',
            'actions': ['stop'],
            'channels': ['seen'],
            'at_rest': {'topic': 'joint_states', 'max_velocity_radps': 0.01},
            'safety_inputs': [
                {
                    'topic': 'safety/e_stop',
                    'type': 'std_msgs/msg/Bool',
                    'field': 'data',
                    'unsafe_when': True,
                    'means': 'e_stop',
                    'freshness': {'by': 'message'},
                    'stale_after_ms': 500,
                }
            ],
        }
    },
    'actions': {'stop': {'adapter': 'stop', 'concurrency_group': 'arm'}},
}


def topic(kind: str, modality: str = 'proprio/json', **more: Any) -> TopicChannel:
    """Make a channel of a type, the settings as in a file."""
    settings: Json = {**SETTINGS, 'type': kind, 'modality': modality, **more}
    return TopicChannel.model_validate(settings)


def kind_of(message: Any) -> str:
    """Return the name of a message's type as configurations write it."""
    package = type(message).__module__.partition('.')[0]
    return f'{package}/msg/{type(message).__name__}'


def stamped(message: Any, frame_id: str = 'rig/laser') -> Any:
    """Give a message the header that the tests expect."""
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(STAMP_NS, 10**9)
    message.header.frame_id = frame_id
    return message


def encoded(message: Any, channel: TopicChannel, max_bytes: int = 1 << 24) -> bytes:
    """Encode a message as it comes from the middleware, and look at the stamp."""
    encoder = make_encoder(channel, EncoderContext(FRAMES, max_bytes))
    payload, stamp_ns = encoder.encode(bytes(serialize_message(message)))
    assert stamp_ns == (STAMP_NS if hasattr(message, 'header') else None)
    return payload


def body_of(message: Any, modality: str = 'proprio/json', **more: Any) -> Json:
    """Return the JSON that a message becomes, read strictly and compared with its schema."""
    channel = topic(kind_of(message), modality, **more)
    body = strict_json(encoded(message, channel).decode())
    schema = registry().schema(channel)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(body)
    return body


def refused(message: Any, because: str, modality: str = 'proprio/json', **more: Any) -> BadMessage:
    """Require that a message is not sent, for a reason (a regular expression)."""
    with pytest.raises(BadMessage, match=because) as caught:
        encoded(message, topic(kind_of(message), modality, **more))
    assert '\n' not in str(caught.value)
    return caught.value


def checked(channel: Json, **sections: Any) -> LoadResult:
    """Load a configuration with one channel, told apart by its lines."""
    data = {**CONFIG, **sections, 'channels': {'seen': {**SETTINGS, **channel}}}
    return load_text(json.dumps(data, indent=1), 'robot.yaml', encoders=registry())


def problems(channel: Json, **sections: Any) -> list[str]:
    """Return what is wrong with one channel, as people read it."""
    return [str(problem) for problem in checked(channel, **sections).problems]
