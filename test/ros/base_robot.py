"""Owns a mobile base for tests: Nav2's action server, odometry, tf and health, with knobs."""

from __future__ import annotations

import threading
import time
from typing import Any, Self

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import TransformStamped, TwistStamped
from nav2_msgs.action import NavigateToPose
from nav_msgs.msg import Odometry
import rclpy
from rclpy.action import ActionServer, CancelResponse
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions
from test_msgs.action import Fibonacci
from tf2_msgs.msg import TFMessage

# What the planner drives with, each by a server of its own. Here only cancels reach them, which
# are the same for every type.
BELOW = ('follow_path', 'spin', 'backup', 'drive_on_heading')
HEALTH = 'lifecycle_manager_navigation: Nav2 Health'
_STEADY = Clock(clock_type=ClockType.STEADY_TIME)


class BaseRobot:
    """
    One node on a thread of its own; every message is a real one.

    :ivar speed_mps: what odometry tells; a cancel makes it zero.
    :ivar x_m: where the base stands in odom.
    :ivar health: level of the diagnostics of Nav2.
    :ivar told: what reached the server, in order: ``goal x y`` and ``cancel x``.
    :ivar zeros: zero velocities on cmd_vel.
    """

    def __init__(self, domain_id: int) -> None:
        self.speed_mps = 0.0
        self.x_m = 0.0
        self.health = DiagnosticStatus.OK
        self.told: list[str] = []
        self.frames: list[str] = []
        self.zeros = 0
        self._handles: list[Any] = []
        self._context = Context()
        rclpy.init(
            context=self._context,
            domain_id=domain_id,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self._node = rclpy.create_node('base_robot', context=self._context)
        self._server = ActionServer(
            self._node,
            NavigateToPose,
            'navigate_to_pose',
            execute_callback=lambda handle: NavigateToPose.Result(),
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._on_cancel,
        )
        self._below = [
            ActionServer(self._node, Fibonacci, name, lambda handle: Fibonacci.Result())
            for name in BELOW
        ]
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._odometry = self._publisher(Odometry, 'odom', 10)
        self._tf = self._publisher(TFMessage, '/tf', 10)
        self._static = self._publisher(TFMessage, '/tf_static', latched)
        self._diagnostics = self._publisher(DiagnosticArray, '/diagnostics', 10)
        self._node.create_subscription(TwistStamped, 'cmd_vel', self._on_velocity, 10)
        self._static.publish(TFMessage(transforms=[self._transform('map', 'odom')]))
        self._node.create_timer(0.02, self._tell_motion, clock=_STEADY)
        self._node.create_timer(0.2, self._tell_health, clock=_STEADY)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._is_closing = False
        self._thread = threading.Thread(target=self._spin, name='base-robot', daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closing = True
        self._executor.wake()
        self._thread.join(5.0)
        for server in (self._server, *self._below):
            server.destroy()
        self._executor.shutdown(1.0)
        self._node.destroy_node()
        self._context.try_shutdown()

    def _publisher(self, kind: Any, topic: str, qos: Any) -> Any:
        # Each safety input has two readers; the one that fits no publisher is no news.
        quiet = PublisherEventCallbacks(use_default_callbacks=False)
        return self._node.create_publisher(kind, topic, qos, event_callbacks=quiet)

    def feedback(self, left_m: float) -> None:
        """Tell how far the newest goal still is."""
        message = NavigateToPose.Feedback(distance_remaining=left_m)
        self._run(lambda: self._handles[-1].publish_feedback(message))

    def end(self, how: str, code: int = 0, text: str = '') -> None:
        """End the newest goal: succeed or abort."""
        self._run(lambda: self._end(self._handles[-1], how, code, text))

    def _run(self, work: Any) -> None:
        done = threading.Event()

        def task() -> None:
            work()
            done.set()

        self._executor.create_task(task)
        assert done.wait(5.0), 'the base did not answer'

    def _spin(self) -> None:
        while not self._is_closing:
            self._executor.spin_once(timeout_sec=0.05)

    def _end(self, handle: Any, how: str, code: int, text: str) -> None:
        def execute(goal: Any) -> Any:
            getattr(goal, how)()
            return NavigateToPose.Result(error_code=code, error_msg=text)

        self.speed_mps = 0.0
        handle.execute(execute)

    def _on_accepted(self, handle: Any) -> None:
        pose = handle.request.pose
        self.frames.append(pose.header.frame_id)
        self.told.append(f'goal {pose.pose.position.x:g} {pose.pose.position.y:g}')
        self._handles.append(handle)
        self.speed_mps = 0.3

    def _on_cancel(self, handle: Any) -> CancelResponse:
        self.told.append(f'cancel {handle.request.pose.pose.position.x:g}')
        self._executor.create_task(self._end, handle, 'canceled', 0, '')
        return CancelResponse.ACCEPT

    def _on_velocity(self, message: Any) -> None:
        linear, angular = message.twist.linear, message.twist.angular
        self.zeros += linear.x == linear.y == angular.z == 0.0

    def _tell_motion(self) -> None:
        message = Odometry()
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.header.frame_id, message.child_frame_id = 'odom', 'base_link'
        message.pose.pose.position.x = self.x_m
        message.twist.twist.linear.x = self.speed_mps
        self._odometry.publish(message)
        self._tf.publish(TFMessage(transforms=[self._transform('odom', 'base_link', self.x_m)]))

    def _tell_health(self) -> None:
        message = DiagnosticArray()
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.status = [DiagnosticStatus(name=HEALTH, level=self.health)]
        self._diagnostics.publish(message)

    def _transform(self, parent: str, child: str, x_m: float = 0.0) -> TransformStamped:
        found = TransformStamped(child_frame_id=child)
        found.header.frame_id = parent
        found.header.stamp = self._node.get_clock().now().to_msg()
        found.transform.translation.x = x_m
        found.transform.rotation.w = 1.0
        return found


def wait_for(condition: Any, what: str, timeout_s: float = 10.0) -> None:
    """Wait for something on the base's thread."""
    ends_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < ends_s, f'{what} did not come true within {timeout_s} s'
        time.sleep(0.005)
