"""Owns what the robot publishes about itself: joint states, tf, description and speed scaling."""

from array import array
import math

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, String
from tf2_msgs.msg import TFMessage

from awp_ros_bridge.sim_robot.description import (
    ARM_JOINTS,
    GRIPPER_JOINT,
    GRIPPER_MIRROR_JOINT,
)
from awp_ros_bridge.sim_robot.faults import Faults
from awp_ros_bridge.sim_robot.frames import LinkFrames
from awp_ros_bridge.sim_robot.loads import GravityLoads
from awp_ros_bridge.sim_robot.motion import JointMotion
from awp_ros_bridge.sim_robot.stops import LATCHED

_NAMES = [*ARM_JOINTS, GRIPPER_JOINT]


class StateTopics:
    """The publishers; the loop decides when each one speaks."""

    def __init__(
        self, node: Node, urdf: str, arm: JointMotion, gripper: JointMotion, faults: Faults
    ) -> None:
        """Open the publishers and send what is latched."""
        self._clock = node.get_clock()
        self._arm = arm
        self._gripper = gripper
        self._faults = faults
        self._frames = LinkFrames(urdf)
        self._loads = GravityLoads(urdf)
        self._frozen: tuple[array[float], ...] | None = None
        self._message = JointState(name=_NAMES)
        self._joint_states = node.create_publisher(JointState, 'joint_states', 10)
        self._tf = node.create_publisher(TFMessage, '/tf', 100)
        tf_static_qos = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._tf_static = node.create_publisher(TFMessage, '/tf_static', tf_static_qos)
        self._description = node.create_publisher(String, 'robot_description', LATCHED)
        self._scaling = node.create_publisher(Float64, 'speed_scaling', LATCHED)
        self._tf_static.publish(self._frames.stamp_fixed(self._clock.now().to_msg()))
        self._description.publish(String(data=urdf))

    def publish_joint_states(self) -> None:
        """Publish positions, velocities and efforts of all joints."""
        if 'silence' in self._faults:
            return
        message = self._message
        message.header.stamp = self._clock.now().to_msg()
        message.position, message.velocity, message.effort = self._rows()
        self._joint_states.publish(message)

    def publish_tf(self) -> None:
        """Publish the transforms that joints change."""
        if 'silence' in self._faults:
            return
        positions = dict(zip(ARM_JOINTS, self._arm.positions_rad, strict=True))
        finger_m = self._gripper.positions_rad[0]
        positions[GRIPPER_JOINT] = positions[GRIPPER_MIRROR_JOINT] = finger_m
        self._tf.publish(self._frames.moved(positions, self._clock.now().to_msg()))

    def publish_scaling(self) -> None:
        """Publish the speed scaling, 0 to 1."""
        self._scaling.publish(Float64(data=self._arm.scaling))

    def _rows(self) -> 'tuple[array[float], ...]':
        if 'nan' in self._faults:
            row = array('d', [math.nan] * len(_NAMES))
            return row, row, row
        if 'frozen' not in self._faults:
            self._frozen = None
        elif self._frozen is not None:
            return self._frozen
        position = array('d', self._arm.positions_rad + self._gripper.positions_rad)
        velocity = array('d', self._arm.velocities_radps + self._gripper.velocities_radps)
        effort = array('d', (*self._loads.torques_nm(self._arm.positions_rad), 0.0))
        if 'frozen' in self._faults:
            self._frozen = (position, velocity, effort)
        return position, velocity, effort
