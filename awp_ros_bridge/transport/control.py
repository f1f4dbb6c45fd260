"""Owns the control connection: channel 0 and the frames inline (AWP-TRN-001, TRN-004)."""

from __future__ import annotations

import asyncio

from awp_ros_bridge.engine.effects import SendMessage
from awp_ros_bridge.engine.inputs import (
    BinaryReceived,
    ConnectionLost,
    ConnectionOpened,
    TextReceived,
)
from awp_ros_bridge.engine.permissions import Permissions
from awp_ros_bridge.transport.limits import Limits
from awp_ros_bridge.transport.port import Host
from awp_ros_bridge.transport.websocket import Link, Socket

_GOING_AWAY = 1001


class ControlLink(Link):
    """
    Our side of a control connection.

    One that stays silent without ever having had a session is closed. That a session exists is
    seen from the messages sent for one; from the first on the engine's heartbeats watch over the
    connection (AWP-SAF-001), and silence is no longer counted here, not even after the session's
    end.

    :param permissions: what the credential that the peer presented allows.
    """

    kind = 'control connection'

    def __init__(
        self,
        number: int,
        peer: str,
        sock: Socket,
        host: Host,
        limits: Limits,
        permissions: Permissions,
    ) -> None:
        super().__init__(number, peer, sock, host, limits)
        self._permissions = permissions
        self._has_session = False
        self._heard_at_s = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None

    def send_message(self, effect: SendMessage) -> None:
        """Send a control message before any frame that waits; abort when too many wait."""
        if effect.session_id is not None:
            self._has_session = True
        super().send_message(effect)

    def _opened(self) -> None:
        self._heard_at_s = self._loop.time()
        self._watch_silence()
        self._host.post(ConnectionOpened(self.number, self.peer, self._permissions))

    def _received(self, data: str | bytes) -> None:
        self._heard_at_s = self._loop.time()
        if isinstance(data, str):
            self._host.post(TextReceived(self.number, data, self._host.now_ns()))
        else:
            self._host.post(BinaryReceived(self.number, len(data)))

    def _lost(self, because: str) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._host.post(ConnectionLost(self.number, because))

    def _watch_silence(self) -> None:
        """Close the silent connection, or come back when it could have become one."""
        if self._has_session or self._is_closing:
            return
        ends_at_s = self._heard_at_s + self._limits.idle_timeout_s
        if self._loop.time() >= ends_at_s:
            self.close(_GOING_AWAY, f'no message in {self._limits.idle_timeout_s:g} s, no session')
            return
        self._idle_timer = self._loop.call_at(ends_at_s, self._watch_silence)
