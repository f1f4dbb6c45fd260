"""Owns the mobile base as ROS sees it: cmd_vel, odometry, tf, and where it is driven to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import math
import time

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, Quaternion, TransformStamped, Twist
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

from awp_ros_bridge.sim_robot.delays import Delays
from awp_ros_bridge.sim_robot.faults import Faults
from awp_ros_bridge.sim_robot.rate import Rate
from gazebo_robot.base_drive import BaseDrive
from gazebo_robot.hardware import Placed
from gazebo_robot.navigate_server import NavigateServer
from gazebo_robot.world import BASE_BEGINS_M

BASE_LINK = 'base_link'
_RATE_HZ = 50.0
_LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class MobileBase:
    """
    The driver of the base, and the simulated planner before it.

    :ivar navigation: the server of ``navigate_to_pose``
    """

    def __init__(
        self, node: Node, engaged: Callable[[], str], faults: Faults, delays: Delays
    ) -> None:
        """
        Open the topics and the action server.

        :param engaged: names the stops that are engaged, empty where none is
        """
        self._node = node
        self._engaged = engaged
        self._drive = BaseDrive()
        self._rate = Rate(_RATE_HZ)
        self._odometry = node.create_publisher(Odometry, 'odom', 10)
        self._truth = node.create_publisher(PoseStamped, 'sim/base_pose', 10)
        self._tf = node.create_publisher(TFMessage, '/tf', 100)
        self._tf_static = node.create_publisher(TFMessage, '/tf_static', _LATCHED)
        self._tf_static.publish(self._fixed())
        node.create_subscription(Twist, 'cmd_vel', self._on_command, 10)
        self.navigation = NavigateServer(node, self._drive, engaged, faults, delays)

    def brake(self) -> None:
        """Stop, whatever was commanded."""
        self._drive.brake()

    def restart(self) -> None:
        """Begin again where the world began again."""
        self._drive.restart()

    def advance(
        self,
        now_ns: int,
        elapsed_s: float,
        angles_rad: Sequence[float],
        speeds_radps: Sequence[float],
        truth: Placed,
    ) -> tuple[float, float]:
        """
        Take what the wheels did, tell of it, and give the speeds that they are to have.

        :param now_ns: steady clock
        :param truth: where the base is, which no robot would know
        """
        self._drive.measure(angles_rad, speeds_radps)
        if self._engaged():
            self._drive.brake()
        if self._rate.is_due(now_ns):
            self._tell(truth)
        return self._drive.wheels_radps(elapsed_s, now_ns)

    def _on_command(self, message: Twist) -> None:
        if not self._engaged():
            self._drive.command(message.linear.x, message.angular.z, time.monotonic_ns())

    def _tell(self, truth: Placed) -> None:
        drive = self._drive
        told = Odometry()
        told.header.stamp = self._node.get_clock().now().to_msg()
        told.header.frame_id, told.child_frame_id = 'odom', BASE_LINK
        told.pose.pose.position.x, told.pose.pose.position.y = drive.place.x_m, drive.place.y_m
        told.pose.pose.orientation = _about_z(drive.place.yaw_rad)
        told.twist.twist.linear.x = drive.linear_mps
        told.twist.twist.angular.z = drive.angular_radps
        self._odometry.publish(told)
        moved = _transform('odom', BASE_LINK, drive.place.x_m, drive.place.y_m)
        moved.header.stamp = told.header.stamp
        moved.transform.rotation = told.pose.pose.orientation
        self._tf.publish(TFMessage(transforms=[moved]))
        if self._truth.get_subscription_count():
            self._tell_truth(truth, told.header.stamp)

    def _tell_truth(self, truth: Placed, stamp: Time) -> None:
        real = PoseStamped()
        real.header.stamp, real.header.frame_id = stamp, 'world'
        p, q = real.pose.position, real.pose.orientation
        p.x, p.y, p.z = truth.position_m
        q.x, q.y, q.z, q.w = truth.quaternion_xyzw
        self._truth.publish(real)

    def _fixed(self) -> TFMessage:
        fixed = [_transform('world', 'map', *BASE_BEGINS_M), _transform('map', 'odom', 0.0, 0.0)]
        stamp = self._node.get_clock().now().to_msg()
        for each in fixed:
            each.header.stamp = stamp
        return TFMessage(transforms=fixed)


def _about_z(yaw_rad: float) -> Quaternion:
    return Quaternion(z=math.sin(yaw_rad / 2.0), w=math.cos(yaw_rad / 2.0))


def _transform(parent: str, child: str, x_m: float, y_m: float) -> TransformStamped:
    message = TransformStamped()
    message.header.frame_id, message.child_frame_id = parent, child
    message.transform.translation.x, message.transform.translation.y = x_m, y_m
    return message
