"""Owns the stream connection: binary frames of one session (AWP-TRN-010, TRN-012, TRN-013)."""

from __future__ import annotations

from awp_ros_bridge.engine.inputs import StreamLost, StreamOpened, StreamReceived
from awp_ros_bridge.transport.limits import Limits
from awp_ros_bridge.transport.port import Host
from awp_ros_bridge.transport.websocket import Link, Socket


class StreamLink(Link):
    """
    Our side of a stream connection.

    It has no limit on silence, since many only listen: the engine closes it with its session.

    :param session_token: what the peer presented and the engine accepted.
    """

    kind = 'stream connection'

    def __init__(
        self, number: int, peer: str, sock: Socket, host: Host, limits: Limits, session_token: str
    ) -> None:
        super().__init__(number, peer, sock, host, limits)
        self._session_token = session_token

    def _opened(self) -> None:
        self._host.post(StreamOpened(self.number, self._session_token))

    def _received(self, data: str | bytes) -> None:
        self._host.post(StreamReceived(self.number, data))

    def _lost(self, because: str) -> None:
        self._host.post(StreamLost(self.number))
