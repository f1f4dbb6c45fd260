"""Owns publishers of any type that a test can kill, each a participant of its own for DDS."""

from __future__ import annotations

import threading
import time
from typing import Any, Self

from fakes import LATCHED
import rclpy
from rclpy.context import Context
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Bool


class Speaker:
    """One topic, latched and reliable or volatile and best effort."""

    def __init__(
        self, domain_id: int, topic: str, message_type: Any, *, latched: bool = True
    ) -> None:
        self._context = Context()
        rclpy.init(
            context=self._context,
            domain_id=domain_id,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self.node = rclpy.create_node('speaker', context=self._context)
        best_effort = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
        qos = LATCHED if latched else best_effort
        self.publisher = self.node.create_publisher(message_type, topic, qos)
        self.newest: Any = None
        self._period_s = 0.0
        self._speaking = threading.Lock()  # nothing older is repeated after what is said
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def say(self, message: Any) -> None:
        """Publish once, at once."""
        with self._speaking:
            self.newest = message
            self.publisher.publish(message)

    def repeat(self, rate_hz: float = 50.0) -> None:
        """Repeat what was said last, until the rate is 0."""
        self._period_s = 0.0 if rate_hz == 0 else 1 / rate_hz
        if rate_hz and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._pace, daemon=True)
            self._thread.start()

    def kill(self) -> None:
        """Vanish."""
        self._period_s = 0.0
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._context.ok():
            self.node.destroy_node()
            self._context.try_shutdown()

    def next_message(self) -> Any:
        """Return what is repeated next; tests of motion override it."""
        return self.newest

    def _pace(self) -> None:
        while self._period_s:
            with self._speaking:
                self.publisher.publish(self.next_message())
            time.sleep(self._period_s)


class SafetyTopic(Speaker):
    """A Bool, false until it says something else."""

    def __init__(self, domain_id: int, topic: str, *, latched: bool) -> None:
        super().__init__(domain_id, topic, Bool, latched=latched)
        self.newest = Bool()

    def say(self, value: bool) -> None:
        super().say(Bool(data=value))
