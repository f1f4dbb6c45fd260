"""
Owns ``~/<embodiment>/close_session``: an operator ends a body's session; goals thread.

The session is closed as by its own agent: its actions end, the robot is brought to rest, then the
embodiment is free. The agent's connection stays; it may open another session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
import logging

from rclpy.node import Node

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.config.stop_steps import extra_ms
from awp_ros_bridge.engine.effects import ReportEmbodiment
from awp_ros_bridge.engine.inputs import Input, SessionCloseRequested
from awp_ros_bridge.ros.late_answers import LateTrigger, Reply
from awp_ros_bridge.ros.names import topic_token
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import Deadline, RosThread

_LOG = logging.getLogger(__name__)

REST_MS = 3_000  # for what a close does besides aborting actions and running its steps


def close_bound_ms(config: BridgeConfig) -> int:
    """Return the longest time that closing a session may take."""
    abort_ms = max(action.max_abort_ms for action in config.actions.values())
    steps_ms = max(extra_ms(body.stop_steps) for body in config.embodiments.values())
    return 2 * abort_ms + steps_ms + REST_MS


@dataclass(slots=True, eq=False)
class _Call:
    """One call that waits until a session does not hold an embodiment any more."""

    embodiment: str
    session_id: str
    reply: Reply
    deadline: Deadline


class SessionDesk:
    """
    Offers the services and answers when the engine reports that the embodiment was let go.

    :param holder: returns which session holds an embodiment, as last reported.
    :param bound_ms: longest wait for the end of a close.
    """

    def __init__(
        self,
        thread: RosThread,
        post: Callable[[Input], None],
        embodiments: Iterable[str],
        holder: Callable[[str], str | None],
        bound_ms: int,
    ) -> None:
        self._thread = thread
        self._post = post
        self._embodiments = tuple(embodiments)
        self._holder = holder
        self._bound_ms = bound_ms
        self._calls: list[_Call] = []
        self._services: list[LateTrigger] = []

    def start(self, node: Node) -> None:
        """Offer the services on the main node."""
        for name in self._embodiments:
            service = f'~/{topic_token(name)}/close_session'
            handle = partial(self._on_call, name)
            self._services.append(LateTrigger(node, service, handle, self._thread.guard))

    def _on_call(self, embodiment: str, reply: Reply) -> None:
        session_id = self._holder(embodiment)
        if session_id is None:
            reply(False, f'no session holds {embodiment}')
            return
        _LOG.warning('session=%s an operator closes it, it holds %s', session_id, embodiment)
        deadline = self._thread.call_later(self._bound_ms * MS, lambda: self._on_bound(call))
        call = _Call(embodiment, session_id, reply, deadline)
        self._calls.append(call)
        self._post(SessionCloseRequested(session_id, f'an operator asked, for {embodiment}'))

    def update(self, effect: ReportEmbodiment) -> None:
        """Answer who waited for this embodiment to be let go."""
        for call in [c for c in self._calls if c.embodiment == effect.embodiment]:
            if call.session_id != effect.session_id:
                state = 'is free' if effect.session_id is None else 'is held by another one'
                self._answer(call, True, f'{call.session_id} closed, {call.embodiment} {state}')

    def _on_bound(self, call: _Call) -> None:
        if call in self._calls:
            said = f'{call.session_id} is not closed after {self._bound_ms} ms; see the log'
            self._answer(call, False, said)

    def _answer(self, call: _Call, success: bool, message: str) -> None:
        self._calls.remove(call)
        call.deadline.cancel()
        call.reply(success, message)
