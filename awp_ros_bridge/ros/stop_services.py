"""Owns the calls of services that stop a robot: clients made in advance, answers bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.client import Client
from rclpy.node import Node

from awp_ros_bridge.config import CallService
from awp_ros_bridge.ros.interfaces import load_interface
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import RosThread

Ended = Callable[[bool, str], None]


class StopService:
    """
    One service; used on the thread of its node only.

    :raises ValueError: the service type is not installed
    """

    def __init__(self, node: Node, thread: RosThread, step: CallService) -> None:
        self.step = step
        self._thread = thread
        self._type = load_interface(step.type)
        self._client: Client[Any, Any] = node.create_client(self._type, step.service)

    @property
    def outstanding(self) -> int:
        """Number of calls without an answer."""
        return len(self._client._pending_requests)

    def begin(self, on_end: Ended) -> None:
        """
        Call the service now, whether or not the graph shows it.

        :param on_end: called once with whether it said yes, and what to report.
        """
        request = self._type.Request()
        if self.step.data is not None:
            request.data = self.step.data
        future = self._client.call_async(request)

        def late() -> None:
            self._client.remove_pending_request(future)
            missing = self.missing()
            said = f'no answer within {self.step.timeout_ms} ms'
            on_end(False, said if missing is None else f'{said}, {missing}')

        deadline = self._thread.call_later(self.step.timeout_ms * MS, late)

        def done(_: Any) -> None:
            response = future.result()
            if response is None or deadline.is_cancelled:
                return
            deadline.cancel()
            verdict = 'done' if response.success else 'it answered no'
            on_end(
                response.success,
                f'{verdict}: {response.message}' if response.message else verdict,
            )

        future.add_done_callback(self._thread.guard(done))

    def missing(self) -> str | None:
        """Return that the service is not there, None when it is; any thread."""
        if self._client.service_is_ready():
            return None
        return f'service {self.step.service} is not available'
