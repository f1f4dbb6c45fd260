"""Encoders on real serialized messages: shape, units, gaps, another representation."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

from jsonschema import Draft202012Validator
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from awp_ros_bridge.config import TopicChannel
from awp_ros_bridge.manifest.channels import joint_state_schema
from awp_ros_bridge.ros.encoders.base import NoEncoder
from awp_ros_bridge.ros.encoders.joint_state import JointStateEncoder
from awp_ros_bridge.ros.encoders.registry import make_encoder


def raw(**fields: Any) -> bytes:
    message = JointState(**fields)
    message.header.stamp.sec, message.header.stamp.nanosec = 3, 4
    message.header.frame_id = 'base'
    return bytes(serialize_message(message))


def encoded(encoder: JointStateEncoder, data: bytes, prismatic: bool = False) -> Any:
    payload, stamp_ns = encoder.encode(data)
    assert stamp_ns == 3_000_000_004
    found = json.loads(payload)
    Draft202012Validator(joint_state_schema(prismatic)).validate(found)
    return found


def big_endian(names: tuple[str, ...], positions: tuple[float, ...]) -> bytes:
    """Serialize a joint state the other way round, by hand."""
    body = struct.pack('>iII', 3, 4, 1) + b'\0'
    body += b'\0' * (-len(body) % 4) + struct.pack('>I', len(names))
    for name in names:
        body += b'\0' * (-len(body) % 4) + struct.pack('>I', len(name) + 1)
        body += name.encode() + b'\0'
    body += b'\0' * (-len(body) % 4) + struct.pack('>I', len(positions))
    body += b'\0' * (-len(body) % 8) + struct.pack(f'>{len(positions)}d', *positions)
    return b'\x00\x00\x00\x00' + body + struct.pack('>II', 0, 0)


def test_turning_joints() -> None:
    encoder = JointStateEncoder()
    for _ in range(2):
        found = encoded(
            encoder,
            raw(name=['a', 'b'], position=[1.0, math.nan], velocity=[0.5, -math.inf]),
        )
        assert found == {
            'name': ['a', 'b'],
            'q_rad': [1.0, None],
            'dq_radps': [0.5, None],
            'tau_nm': [None, None],
        }


def test_sliding_joints_have_arrays_of_their_own() -> None:
    encoder = JointStateEncoder(['b'])
    data = raw(name=['a', 'b'], position=[1.0, 2.0], velocity=[3.0, 4.0], effort=[5.0, 6.0])
    assert encoded(encoder, data, prismatic=True) == {
        'name': ['a', 'b'],
        'q_rad': [1.0, None],
        'dq_radps': [3.0, None],
        'tau_nm': [5.0, None],
        'q_m': [None, 2.0],
        'dq_mps': [None, 4.0],
        'f_n': [None, 6.0],
    }


@pytest.mark.parametrize('size', [0, 1, 3])
def test_rows_of_another_length_than_the_names_are_fitted(size: int) -> None:
    values = [float(i) for i in range(size)]
    found = encoded(JointStateEncoder(), raw(name=['a', 'b'], position=values))
    assert found['q_rad'] == [*values, None, None][:2]


def test_the_joints_may_change() -> None:
    encoder = JointStateEncoder()
    encoded(encoder, raw(name=['a'], position=[1.0]))
    assert encoded(encoder, raw(name=['b', 'c'], position=[1.0, 2.0]))['name'] == ['b', 'c']
    assert encoded(encoder, raw())['name'] == []


def test_another_representation_goes_the_ordinary_way() -> None:
    found = encoded(JointStateEncoder(), big_endian(('a', 'bc'), (1.5, 2.5)))
    assert found['name'] == ['a', 'bc']
    assert found['q_rad'] == [1.5, 2.5]


def test_an_encoder_is_found_by_the_type() -> None:
    settings: dict[str, Any] = {
        'topic': 't',
        'modality': 'proprio/json',
        'rate_hz': 10.0,
        'loss_class': 'latest-wins',
    }
    known = TopicChannel(type='sensor_msgs/msg/JointState', prismatic=('f',), **settings)
    assert b'q_m' in make_encoder(known).encode(raw(name=['f'], position=[1.0]))[0]
    with pytest.raises(NoEncoder, match=r'no encoder for std_msgs/msg/Float32: .* data: <unit>'):
        make_encoder(TopicChannel(type='std_msgs/msg/Float32', **settings))
