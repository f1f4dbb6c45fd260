"""Owns services whose answer may follow later, which rclpy's own do not offer everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_srvs.srv import Trigger

Reply = Callable[[bool, str], None]


class LateTrigger:
    """
    A std_srvs/Trigger service; used on the thread that spins its node.

    :param handle: takes what answers the call, now or later, once.
    :param guard: makes a callback that reports an exception instead of raising it.
    """

    def __init__(
        self,
        node: Node,
        name: str,
        handle: Callable[[Reply], None],
        guard: Callable[[Callable[..., None]], Callable[..., None]],
    ) -> None:
        self._handle = guard(handle)
        self._calls: dict[int, _Call] = {}
        # the executor sends whatever the callback returns: it is kept back here until it is due
        service: Any = node.create_service(Trigger, name, self._on_request)
        self._send = service.send_response
        service.send_response = self._hold

    def _on_request(self, request: Any, response: Any) -> Any:
        call = self._calls[id(response)] = _Call(response, self._send)
        self._handle(call.reply)
        return response

    def _hold(self, response: Any, header: Any) -> None:
        self._calls.pop(id(response)).hold(header)


class _Call:
    def __init__(self, response: Any, send: Callable[[Any, Any], None]) -> None:
        self._response = response
        self._send = send
        self._header: Any = None
        self._is_answered = False

    def reply(self, success: bool, message: str) -> None:
        if self._is_answered:
            return
        self._is_answered = True
        self._response.success, self._response.message = success, message
        if self._header is not None:
            self._send(self._response, self._header)

    def hold(self, header: Any) -> None:
        self._header = header
        if self._is_answered:
            self._send(self._response, header)
