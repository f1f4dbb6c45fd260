"""Owns the call of the simulator's reset service, bounded; goals thread only."""

from __future__ import annotations

from collections.abc import Callable
import logging
from typing import Any

from rclpy.node import Node

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.engine.effects import ResetWorld
from awp_ros_bridge.engine.inputs import Input, ResetFinished
from awp_ros_bridge.ros.interfaces import load_interface
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import Deadline, RosThread

_LOG = logging.getLogger(__name__)

BOUND_NS = 8_000 * MS  # below the engine's own bound, so that the error names the service


class WorldReset:
    """Answers every :class:`ResetWorld` once."""

    def __init__(self, thread: RosThread, post: Callable[[Input], None]) -> None:
        self._thread = thread
        self._post = post
        self._clients: dict[str, Any] = {}

    def start(self, node: Node, config: BridgeConfig) -> None:
        """Make the clients in advance; a fresh one may miss its answer."""
        states = {} if config.simulation is None else config.simulation.initial_states
        for name, reset in states.items():
            try:
                service_type = load_interface(reset.type)
            except ValueError as error:
                _LOG.error('initial state %s cannot be reached: %s', name, error)
                continue
            self._clients[name] = node.create_client(service_type, reset.service)

    def begin(self, effect: ResetWorld) -> None:
        """Call the service of the state."""
        client = self._clients.get(effect.initial_state)
        if client is None:
            self._post(ResetFinished(False, f'no service reaches {effect.initial_state!r}'))
            return
        name = client.srv_name
        if not client.service_is_ready():
            self._post(ResetFinished(False, f'service {name} is not available'))
            return
        future = client.call_async(client.srv_type.Request())
        box: list[Deadline] = []

        def late() -> None:
            client.remove_pending_request(future)
            detail = f'service {name} did not answer within {BOUND_NS // MS} ms'
            self._post(ResetFinished(False, detail))

        def done(_: Any) -> None:
            response = future.result()
            if response is not None and not box[0].is_cancelled:
                box[0].cancel()
                self._post(_finished(name, response))

        box.append(self._thread.call_later(BOUND_NS, late))
        future.add_done_callback(self._thread.guard(done))


def _finished(name: str, response: Any) -> ResetFinished:
    result = getattr(response, 'result', None)
    if result is not None and hasattr(result, 'RESULT_OK'):
        ok, said = result.result == result.RESULT_OK, result.error_message
    else:
        ok, said = bool(getattr(response, 'success', True)), getattr(response, 'message', '')
    return ResetFinished(ok, f'{name}: {said}' if said else name)
