"""Owns the transforms of the robot's links, ready to be published on tf and tf_static."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
import xml.etree.ElementTree as ET

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Quaternion, TransformStamped, Vector3
import numpy as np
import pinocchio as pin
from tf2_msgs.msg import TFMessage

from awp_ros_bridge.kinematics.chain import Vector


@dataclass(slots=True)
class _Link:
    """One link below its parent: the transform at zero, the axis, and the message to fill."""

    joint: str
    is_sliding: bool
    axis: Vector
    at_zero: Any
    turned_at_zero: Any
    message: TransformStamped


class LinkFrames:
    """The frame tree of a description, split into what moves and what does not."""

    def __init__(self, urdf: str) -> None:
        """Read the joints of a URDF; a mimic joint moves as the joint that it names."""
        self._moving: list[_Link] = []
        fixed: list[TransformStamped] = []
        for joint in ET.fromstring(urdf).iter('joint'):
            link = _read(joint)
            _fill_vector(link.message.transform.translation, link.at_zero.translation)
            _fill_quaternion(link.message.transform.rotation, link.turned_at_zero)
            if joint.get('type') == 'fixed':
                fixed.append(link.message)
            else:
                self._moving.append(link)
        self.fixed = TFMessage(transforms=fixed)
        self._message = TFMessage(transforms=[link.message for link in self._moving])

    def stamp_fixed(self, stamp: Time) -> TFMessage:
        """Give the transforms that never change, with a stamp."""
        for transform in self.fixed.transforms:
            transform.header.stamp = stamp
        return self.fixed

    def moved(self, positions: Mapping[str, float], stamp: Time) -> TFMessage:
        """
        Compute the transforms that joints change; the message is reused by the next call.

        :param positions: by joint name, rad or m
        """
        for link in self._moving:
            value = positions[link.joint]
            transform = link.message.transform
            if link.is_sliding:
                shift = link.at_zero.rotation @ link.axis * value
                _fill_vector(transform.translation, link.at_zero.translation + shift)
            else:
                turn = pin.Quaternion(pin.AngleAxis(value, link.axis))
                _fill_quaternion(transform.rotation, link.turned_at_zero * turn)
            link.message.header.stamp = stamp
        return self._message


def _read(joint: ET.Element) -> _Link:
    origin, axis, mimic = joint.find('origin'), joint.find('axis'), joint.find('mimic')
    xyz = _numbers(origin, 'xyz', '0 0 0')
    rpy = _numbers(origin, 'rpy', '0 0 0')
    message = TransformStamped()
    message.header.frame_id = _link_name(joint, 'parent')
    message.child_frame_id = _link_name(joint, 'child')
    name = joint.get('name', '')
    rotation = pin.rpy.rpyToMatrix(rpy)
    return _Link(
        joint=name if mimic is None else mimic.get('joint', name),
        is_sliding=joint.get('type') == 'prismatic',
        axis=_numbers(axis, 'xyz', '1 0 0'),
        at_zero=pin.SE3(rotation, xyz),
        turned_at_zero=pin.Quaternion(rotation),
        message=message,
    )


def _link_name(joint: ET.Element, role: str) -> str:
    element = joint.find(role)
    return '' if element is None else element.get('link', '')


def _numbers(element: ET.Element | None, name: str, default: str) -> Vector:
    text = default if element is None else element.get(name, default)
    return np.array([float(v) for v in text.split()])


def _fill_vector(message: Vector3, values: Vector) -> None:
    message.x, message.y, message.z = values.tolist()


def _fill_quaternion(message: Quaternion, value: Any) -> None:
    message.x, message.y, message.z, message.w = value.x, value.y, value.z, value.w
