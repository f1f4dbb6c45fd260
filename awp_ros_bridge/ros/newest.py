"""
Owns a subscription of which often only the newest message matters.

Called back for every message, a fast topic costs a thread a wake-up each. Resting, the middleware
keeps the newest messages and nothing wakes until somebody takes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from awp_ros_bridge.ros.runtime import NO_EVENTS


class NewestReader:
    """
    One subscription for the life of its node; used on the node's thread.

    :param on_message: takes serialised messages while the reader is dispatched; must not raise.
    """

    def __init__(
        self,
        node: Node,
        message_type: Any,
        topic: str,
        qos: QoSProfile,
        on_message: Callable[..., None],
    ) -> None:
        self._node = node
        self._type = message_type
        self._subscription: Any = node.create_subscription(
            message_type, topic, on_message, qos, event_callbacks=NO_EVENTS, raw=True
        )
        self.is_dispatched = True

    def dispatch(self, wanted: bool) -> bool:
        """Choose between a callback per message and rest; tell whether the choice holds."""
        if wanted is not self.is_dispatched:
            known = getattr(self._node, '_subscriptions', None)
            if known is None:  # another rclpy: every message is called back, only slower
                return False
            if wanted:
                known.append(self._subscription)
            else:
                known.remove(self._subscription)
            self.is_dispatched = wanted
            self._node._wake_executor()
        return True

    def take(self) -> bytes | None:
        """Fetch what the middleware keeps and return the newest message, or None."""
        kept = self.take_all()
        return kept[-1] if kept else None

    def take_all(self) -> list[bytes]:
        """Fetch what the middleware keeps, oldest first."""
        kept: list[bytes] = []
        with self._subscription.handle:
            while (taken := self._subscription.handle.take_message(self._type, True)) is not None:
                kept.append(taken[0])
        return kept
