"""
Owns one subscription: quality of service as the publishers offer it, dispatched or at rest.

A dispatched reader calls back for each message. A reader at rest costs the executor nothing: the
middleware keeps the newest messages, and :meth:`TopicReader.take` fetches them when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import time
from typing import Any, Protocol

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

RCLError = rclpy_implementation.RCLError

_RETRY_NS = 200_000_000
_RETRIES = 10
_RETIRE_NS = 2_000_000_000


class Thread(Protocol):
    """The thread that spins the node: :class:`awp_ros_bridge.ros.runtime.RosThread`."""

    def post(self, function: Callable[..., None], *arguments: Any) -> None: ...

    def call_later(self, delay_ns: int, function: Callable[[], None]) -> Any: ...


class TopicReader:
    """
    Reads serialized messages of one topic; used on the thread that spins its node.

    :param on_message: told each message while the reader is dispatched; must not raise
    :param depth: how many messages the middleware keeps
    :param is_latched: the topic is latched by convention: never read it volatile
    :ivar note: what keeps messages from arriving, empty where nothing is known to
    """

    def __init__(
        self,
        node: Node,
        thread: Thread,
        topic: str,
        message_type: Any,
        on_message: Callable[[bytes], None],
        depth: int,
        is_latched: bool = False,
    ) -> None:
        self.topic = node.resolve_topic_name(topic)
        self.note = ''
        self._node = node
        self._thread = thread
        self._type = message_type
        self._on_message = on_message
        self._depth = depth
        self._is_latched = is_latched
        self._is_dispatched = True
        self._is_closed = False
        self._subscription: Any = None
        self._offered: tuple[bool, bool] | None = None
        self._is_refresh_posted = False

    def start(self) -> None:
        """Subscribe."""
        self._refresh()

    def review(self) -> None:
        """Look at the publishers again, for a topic that stays silent."""
        self._refresh(retries=0)

    def close(self) -> None:
        """Give the subscription back."""
        self._is_closed = True
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            self._retire(subscription)

    @property
    def has_publisher(self) -> bool:
        """Tell whether somebody publishes what can be read here."""
        subscription = self._subscription
        return subscription is not None and bool(subscription.get_publisher_count())

    @property
    def is_dispatched(self) -> bool:
        """Tell whether every message is called back."""
        return self._is_dispatched

    def dispatch(self, wanted: bool) -> None:
        """Choose between a callback per message and rest."""
        if wanted == self._is_dispatched:
            return
        self._is_dispatched = wanted
        if self._subscription is not None:
            self._place(self._subscription)

    def take(self) -> Iterator[tuple[bytes, int]]:
        """Fetch what the middleware keeps, oldest first: message, ns since its arrival."""
        subscription = self._subscription
        if subscription is None:
            return
        try:
            with subscription.handle:
                while (taken := subscription.handle.take_message(self._type, True)) is not None:
                    message, info = taken
                    received_ns = info.get('received_timestamp') or 0
                    delay_ns = time.time_ns() - received_ns if received_ns else 0
                    yield message, max(0, delay_ns)
        except InvalidHandle:
            return

    def _refresh(self, retries: int = _RETRIES) -> None:
        """Subscribe anew where the publishers offer something else than what is read."""
        self._is_refresh_posted = False
        if self._is_closed:
            return
        offers = self._node.get_publishers_info_by_topic(self.topic)
        wanted_type = '/'.join(_type_name(self._type))
        fitting = [o for o in offers if o.topic_type == wanted_type]
        self.note = _note(offers, fitting, self.topic, wanted_type)
        reliable = all(o.qos_profile.reliability == ReliabilityPolicy.RELIABLE for o in fitting)
        latched = all(
            o.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for o in fitting
        )
        # Best effort and volatile hears everybody; more is asked for only where all offer it.
        wanted = (bool(fitting) and reliable, bool(fitting) and latched)
        if self._is_latched:
            wanted = (reliable, True)
        if self._subscription is None or wanted != self._offered:
            try:
                self._subscribe(*wanted)
            except RCLError as error:  # the topic is in use with another type, say
                self.note = f'{self.topic} cannot be subscribed to: {error}'
                return
            self._offered = wanted
        # The match is told before the graph knows the publisher.
        if retries and self._subscription.get_publisher_count() > len(fitting):
            self._thread.call_later(_RETRY_NS, lambda: self._refresh(retries - 1))

    def _subscribe(self, reliable: bool, latched: bool) -> None:
        qos = QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=self._depth,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=(
                DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
            ),
        )
        before = self._subscription
        self._subscription = self._node.create_subscription(
            self._type,
            self.topic,
            self._on_message,
            qos,
            raw=True,
            event_callbacks=SubscriptionEventCallbacks(
                matched=self._on_change,
                incompatible_qos=self._on_change,
                use_default_callbacks=False,
            ),
        )
        self._place(self._subscription)
        if before is not None:
            self._retire(before)

    def _on_change(self, event: Any) -> None:
        # Not here: a subscription must not be destroyed inside its own callback.
        if not self._is_refresh_posted:
            self._is_refresh_posted = True
            self._thread.post(self._refresh)

    def _place(self, subscription: Any) -> None:
        """Put the subscription among those that the executor looks at, or take it away."""
        known = getattr(self._node, '_subscriptions', None)
        if known is None:  # another rclpy: every message is called back, only slower
            return
        if self._is_dispatched and subscription not in known:
            known.append(subscription)
        elif not self._is_dispatched and subscription in known:
            known.remove(subscription)
        else:
            return
        self._node._wake_executor()

    def _retire(self, subscription: Any) -> None:
        """
        Take a subscription away from the executor now and destroy it a little later.

        Events of it may wait in the executor's queue, and one for a destroyed handle ends the
        spin of the events executor.
        """
        known = getattr(self._node, '_subscriptions', None)
        if known is None:
            self._node.destroy_subscription(subscription)
            return
        if subscription in known:
            known.remove(subscription)
        for handler in subscription.event_handlers:
            self._node.remove_waitable(handler)
        self._node._wake_executor()
        self._thread.call_later(_RETIRE_NS, subscription.destroy)


def _type_name(message_type: Any) -> tuple[str, str, str]:
    package, kind = message_type.__module__.split('.')[:2]
    return package, kind, message_type.__name__


def _note(offers: list[Any], fitting: list[Any], topic: str, wanted_type: str) -> str:
    if fitting:
        return ''
    if offers:
        return f'{topic} carries {offers[0].topic_type}, not {wanted_type}'
    return f'nobody publishes {topic}'
