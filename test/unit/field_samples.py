"""Descriptions of ROS interfaces made by hand: what the tests of templates and params stand on."""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Any

from awp_ros_bridge.manifest.field_types import FieldType, ListType, MessageType, ScalarType

BOOL = ScalarType('boolean', 'boolean')
UINT8 = ScalarType('integer', 'uint8', low=0, high=255)
INT32 = ScalarType('integer', 'int32', low=-(2**31), high=2**31 - 1)
INT64 = ScalarType('integer', 'int64', low=-(2**63), high=2**63 - 1)
FLOAT = ScalarType('float', 'float', largest=3.4028234663852886e38)
DOUBLE = ScalarType('float', 'double', largest=math.inf)
TEXT = ScalarType('text', 'string')
SHORT = ScalarType('text', 'string', most_bytes=4)


def message(
    name: str, constants: Mapping[str, Any] | None = None, /, **fields: Any
) -> MessageType:
    """Describe a message."""
    known: dict[str, FieldType] = fields
    return MessageType(name, known, constants or {})


TIME = message('builtin_interfaces/msg/Time', sec=INT32, nanosec=INT32)
DURATION = message('builtin_interfaces/msg/Duration', sec=INT32, nanosec=INT32)
HEADER = message('std_msgs/msg/Header', stamp=TIME, frame_id=TEXT)
POINT = message('geometry_msgs/msg/Point', x=DOUBLE, y=DOUBLE, z=DOUBLE)
VECTOR = message('geometry_msgs/msg/Vector3', x=DOUBLE, y=DOUBLE, z=DOUBLE)
QUATERNION = message('geometry_msgs/msg/Quaternion', x=DOUBLE, y=DOUBLE, z=DOUBLE, w=DOUBLE)
POSE = message('geometry_msgs/msg/Pose', position=POINT, orientation=QUATERNION)
POSE_STAMPED = message('geometry_msgs/msg/PoseStamped', header=HEADER, pose=POSE)
TWIST = message('geometry_msgs/msg/Twist', linear=VECTOR, angular=VECTOR)

JOINT = message(
    'maker_msgs/msg/JointTarget',
    {'ABSOLUTE': 0, 'RELATIVE': 1, 'NAME': 'arm', 'RATIO': 0.5},
    name=SHORT,
    position=DOUBLE,
    mode=UINT8,
)
GOAL = message(
    'maker_msgs/action/Work_Goal',
    {'MODE_SLOW': 1, 'MODE_FAST': 2, 'OTHER': 900},
    mode=UINT8,
    label=SHORT,
    is_dry=BOOL,
    count=INT64,
    ratio=FLOAT,
    weights=ListType(DOUBLE),
    corners=ListType(DOUBLE, size=3),
    few=ListType(UINT8, most=2),
    joints=ListType(JOINT),
    pair=ListType(JOINT, size=2),
    target=POSE_STAMPED,
    pose=POSE,
    offset=VECTOR,
    point=POINT,
    turn=QUATERNION,
    header=HEADER,
    stamp=TIME,
    timeout=DURATION,
    speed=TWIST,
)
