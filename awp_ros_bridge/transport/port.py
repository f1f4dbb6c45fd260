"""Owns the line between the bridge and any transport: what each may ask of the other."""

from __future__ import annotations

from typing import Protocol

from awp_ros_bridge.engine.effects import SendFrame, TransportEffect
from awp_ros_bridge.engine.inputs import Input


class Host(Protocol):
    """
    What a transport asks of the bridge.

    Every method is called on the thread of the bridge's asyncio loop and returns at once.
    """

    def post(self, input_: Input, /) -> None:
        """
        Tell the engine what happened.

        It may call :meth:`Transport.apply` before it returns.
        """
        ...

    def stream_allowed(self, token: str, /) -> bool:
        """
        Say whether this token is the one of a session with a live control connection.

        :param token: what the peer presented, never to be logged.
        """
        ...

    def accepting(self) -> bool:
        """Say whether new connections are welcome; if not, a handshake is answered 503."""
        ...

    def frame_sent(self, effect: SendFrame, sent_ns: int, /) -> None:
        """
        Note that a frame was handed to its socket.

        :param sent_ns: steady time of the hand-over, the one that the frame carries.
        """
        ...

    def now_ns(self) -> int:
        """Read the steady clock of the engine."""
        ...


class Transport(Protocol):
    """
    What any transport offers to the bridge.

    Everything here is called on the thread of the bridge's asyncio loop.
    """

    async def start(self) -> str:
        """
        Begin to listen.

        :return: the URL of the control endpoint, with the port that was really bound.
        :raises OSError: the address cannot be bound.
        """
        ...

    def apply(self, effect: TransportEffect, /) -> None:
        """
        Carry out one effect without waiting.

        An effect for a connection that is closing or gone is dropped. Raises only for a message
        that cannot be encoded, which is the caller's fault.
        """
        ...

    async def stop(self, timeout_s: float, /) -> None:
        """
        Stop listening and close every connection with 1001.

        :param timeout_s: after this time what is left is aborted.
        """
        ...
