"""Owns the other side of a test: a node that calls, listens and waits for conditions."""

from collections.abc import Callable
import time
from types import TracebackType
from typing import Any, Self

from patience import WAIT_S
import rclpy
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile


class WaitError(AssertionError):
    """A condition that did not come true in time."""


class RosPeer:
    """A node on an executor that turns only while something is waited for."""

    def __init__(self, name: str, namespace: str = '') -> None:
        """Open the node."""
        self.node = rclpy.create_node(name, namespace=namespace or None)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._action_clients: dict[str, ActionClient[Any, Any, Any]] = {}
        self._service_clients: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the clients and the node."""
        for client in self._action_clients.values():
            client.destroy()
        self._executor.shutdown(1.0)
        self.node.destroy_node()

    def wait_until(
        self, condition: Callable[[], object], timeout_s: float = WAIT_S, what: str = 'a condition'
    ) -> float:
        """
        Turn until a condition is true.

        :return: how long it took, in seconds
        :raises WaitError: it did not become true in time
        """
        start_s = time.monotonic()
        while not condition():
            if time.monotonic() - start_s > timeout_s:
                raise WaitError(f'{what} did not come true within {timeout_s} s')
            self._executor.spin_once(0.02)
        return time.monotonic() - start_s

    def turn_for(self, duration_s: float) -> None:
        """Turn for a while, to observe that something does not happen or how it goes on."""
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            self._executor.spin_once(max(0.0, min(0.02, end_s - time.monotonic())))

    def wait_for(self, future: Any, timeout_s: float = WAIT_S, what: str = 'an answer') -> Any:
        """Turn until a future is done and give its result."""
        self.wait_until(future.done, timeout_s, what)
        return future.result()

    def listen(self, message_type: Any, topic: str, qos: QoSProfile | int = 10) -> 'Listener':
        """Subscribe and keep what arrives."""
        return Listener(self, message_type, topic, qos)

    def call(
        self, service_type: Any, name: str, request: Any = None, timeout_s: float = WAIT_S
    ) -> Any:
        """Call a service and give its response."""
        future = self.send_request(service_type, name, request, timeout_s)
        return self.wait_for(future, timeout_s, f'the response of {name}')

    def send_request(
        self, service_type: Any, name: str, request: Any = None, timeout_s: float = WAIT_S
    ) -> Any:
        """Call a service that is there and give the future of its response."""
        client = self._service_clients.get(name)
        if client is None:
            client = self._service_clients[name] = self.node.create_client(service_type, name)
        self.wait_until(client.service_is_ready, timeout_s, f'service {name}')
        return client.call_async(service_type.Request() if request is None else request)

    def action_client(self, action_type: Any, name: str) -> Any:
        """Give the client of an action server that is there."""
        client = self._action_clients.get(name)
        if client is None:
            client = self._action_clients[name] = ActionClient(self.node, action_type, name)
        self.wait_until(client.server_is_ready, WAIT_S, f'action server {name}')
        return client

    def send_goal(
        self, action_type: Any, name: str, goal: Any, timeout_s: float = WAIT_S
    ) -> 'Goal':
        """Send a goal and wait for the answer, whichever it is."""
        return Goal(self, self.action_client(action_type, name), goal, timeout_s)


class Listener:
    """A subscription with everything that it has heard."""

    def __init__(
        self, peer: RosPeer, message_type: Any, topic: str, qos: QoSProfile | int
    ) -> None:
        """Subscribe."""
        self._peer = peer
        self.topic = topic
        self.messages: list[Any] = []
        self.arrivals_s: list[float] = []
        self._subscription = peer.node.create_subscription(message_type, topic, self._hear, qos)

    @property
    def newest(self) -> Any:
        """Give the newest message."""
        return self.messages[-1]

    def wait_next(self, timeout_s: float = WAIT_S) -> Any:
        """Wait for one more message and give it; one that has a stamp is newer than the call."""
        count, called_ns = len(self.messages), time.time_ns()

        def is_there() -> bool:
            if len(self.messages) <= count:
                return False
            header = getattr(self.newest, 'header', None)
            return header is None or stamp_ns(header.stamp) >= called_ns

        self._peer.wait_until(is_there, timeout_s, f'a message on {self.topic}')
        return self.newest

    def clear(self) -> None:
        """Forget what was heard."""
        self.messages.clear()
        self.arrivals_s.clear()

    def wait_silent(self, timeout_s: float = WAIT_S) -> None:
        """Wait until nothing is heard any more, and forget what was heard on the way."""
        ends_s = time.monotonic() + timeout_s
        while self.messages:
            self.clear()
            self._peer.turn_for(0.1)
            if time.monotonic() > ends_s:
                raise WaitError(f'{self.topic} did not fall silent within {timeout_s} s')

    def stamps_s(self) -> list[float]:
        """Give the stamps of what was heard, in seconds."""
        return [stamp_ns(each.header.stamp) * 1e-9 for each in self.messages]

    def close(self) -> None:
        """Unsubscribe."""
        self._peer.node.destroy_subscription(self._subscription)

    def _hear(self, message: Any) -> None:
        self.messages.append(message)
        self.arrivals_s.append(time.monotonic())


def stamp_ns(stamp: Any) -> int:
    """Read a builtin_interfaces Time."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


class Goal:
    """A goal that was sent."""

    def __init__(self, peer: RosPeer, client: Any, goal: Any, timeout_s: float) -> None:
        """Send it and wait for the answer."""
        self._peer = peer
        self.feedback: list[Any] = []
        start_s = time.monotonic()
        future = client.send_goal_async(goal, feedback_callback=self._hear)
        self.handle = peer.wait_for(future, timeout_s, 'the answer to a goal')
        self.answer_s = time.monotonic() - start_s
        self._ended = self.handle.get_result_async() if self.handle.accepted else None

    @property
    def is_accepted(self) -> bool:
        """Tell whether it was accepted."""
        return bool(self.handle.accepted)

    @property
    def is_over(self) -> bool:
        """Tell whether its result has arrived."""
        return self._ended is not None and bool(self._ended.done())

    def wait_result(self, timeout_s: float = WAIT_S) -> Any:
        """Wait for the result; gives an object with ``status`` and ``result``."""
        assert self._ended is not None, 'the goal was rejected'
        return self._peer.wait_for(self._ended, timeout_s, 'the result of a goal')

    def cancel(self, timeout_s: float = WAIT_S) -> Any:
        """Ask for its end and give the response."""
        return self._peer.wait_for(self.handle.cancel_goal_async(), timeout_s, 'a cancel response')

    def _hear(self, message: Any) -> None:
        self.feedback.append(message.feedback)
