"""
Owns one WebSocket connection: its single writer, its reader, its end (AWP-TRN-001, 002, 007, 009).

The writer is no task. Whoever adds something to the outbox pumps it into the socket as far as the
socket takes it; asyncio says through ``pause_writing`` when that is no more, and through
``resume_writing`` when to go on. Both write limits of the asyncio buffer are zero and the kernel's
unsent queue is bounded, so what a slow receiver does not take stays in the outbox, where newer
frames replace older ones.

Messages are handed over with ``websockets.broadcast`` on this one connection: the library's public
way to send without waiting. It ignores backpressure; the pump does not.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
import logging
import socket
from typing import Any, cast, Protocol

from websockets.asyncio.server import broadcast, ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from awp_ros_bridge.engine.effects import SendFrame, SendMessage
from awp_ros_bridge.engine.inputs import FramesDropped
from awp_ros_bridge.transport.access import Admission
from awp_ros_bridge.transport.framing import encode_frame
from awp_ros_bridge.transport.limits import Limits, TokenBucket
from awp_ros_bridge.transport.outbox import Outbox, OutboxStats
from awp_ros_bridge.transport.port import Host
from awp_ros_bridge.wire import codec

_log = logging.getLogger(__name__)

_PUMP_AT_ONCE = 128
_READ_AT_ONCE = 4  # of one connection, before others have their turn
_LARGE_BYTES = 4096  # reading costs time by the size: so much counts as one more message
_MAX_REASON_BYTES = 123
_MAX_UNSENT_BYTES = 1
# Beyond our own messages the library writes only answers to pings: a peer that makes it pile
# up this much sends pings and reads nothing.
_MAX_PILE_BYTES = 1 << 20


class SocketWatch(Protocol):
    """Who wants to know of TCP connections, with or without a finished handshake."""

    def socket_opened(self, sock: Socket, /) -> None:
        """Note a new TCP connection; it may be aborted here."""
        ...

    def socket_lost(self, sock: Socket, /) -> None:
        """Note that a TCP connection is gone."""
        ...


class Socket(ServerConnection):
    """
    A connection of the library that says what asyncio told it about its transport.

    It uses nothing of the library but documented calls and the callbacks of asyncio.Protocol.

    :ivar admission: what the handshake decided, None before and where it refused.
    :ivar link: our side of an open connection.
    :ivar is_write_paused: True while a byte waits that the kernel did not take.
    """

    def __init__(
        self, watch: SocketWatch, close_timeout_s: float, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.admission: Admission | None = None
        self.link: Link | None = None
        self.is_write_paused = False
        self._watch = watch
        self._close_timeout_s = close_timeout_s
        self._closing_timer: asyncio.TimerHandle | None = None
        self._channel: asyncio.Transport | None = None

    def abort(self) -> None:
        """Cut the TCP connection without waiting; what was not sent is lost."""
        if self._channel is not None:
            self._channel.abort()

    def bound_closing(self) -> None:
        """Cut a connection that is ending already, unless it is gone within the bound."""
        if self._closing_timer is None and self.link is not None:
            self._closing_timer = asyncio.get_running_loop().call_later(
                self._close_timeout_s, self.abort
            )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._channel = cast(asyncio.Transport, transport)
        _bound_unsent(transport)
        super().connection_made(transport)
        self._watch.socket_opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._closing_timer is not None:
            self._closing_timer.cancel()
        self._channel = None
        super().connection_lost(exc)
        self._watch.socket_lost(self)

    def pause_writing(self) -> None:
        self.is_write_paused = True
        super().pause_writing()

    def resume_writing(self) -> None:
        self.is_write_paused = False
        super().resume_writing()
        if self.link is not None:
            self.link.pump()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.state is not State.OPEN:
            self.bound_closing()
        elif self.is_write_paused and self._pile_bytes() > _MAX_PILE_BYTES:
            self.abort()

    def eof_received(self) -> None:
        super().eof_received()
        if self._channel is not None and self._channel.get_write_buffer_size():
            # asyncio would now wait without a bound for a peer that is half gone to read.
            self.abort()

    def _pile_bytes(self) -> int:
        handed = 0 if self.link is None else self.link.last_size
        return 0 if self._channel is None else self._channel.get_write_buffer_size() - handed


@dataclass(frozen=True, slots=True)
class LinkStats:
    """
    What a connection did so far and what waits on it.

    :param is_paused: True while its receiver does not take what was sent.
    :param messages: control messages handed to the socket.
    :param frames: frames handed to the socket.
    """

    conn: int
    kind: str
    peer: str
    is_paused: bool
    messages: int
    frames: int
    outbox: OutboxStats


class Link:
    """
    Our side of one open connection; a subclass says what its messages mean.

    :param number: what the engine calls the connection.
    :param peer: address and port of the peer.
    """

    kind = 'link'

    def __init__(self, number: int, peer: str, sock: Socket, host: Host, limits: Limits) -> None:
        self.number = number
        self.peer = peer
        self.last_size = 0
        self._socket = sock
        self._host = host
        self._limits = limits
        self._outbox = Outbox(limits)
        self._bucket = TokenBucket(limits.message_rate_hz, limits.message_burst, host.now_ns())
        self._loop = asyncio.get_running_loop()
        self._is_pumping = False
        self._is_closing = False
        self._drained = asyncio.Event()
        self._closer: asyncio.Task[None] | None = None
        self._lost_because = ''
        self._messages = 0
        self._frames = 0

    # ------------------------------------------------------------ what the engine wants

    def send_message(self, effect: SendMessage) -> None:
        """Send a control message before any frame that waits; abort when too many wait."""
        text = codec.encode(effect.message)
        if self._is_closing:
            return
        if self._is_free():
            self._messages += 1
            self._write(text)
            return
        if not self._outbox.put_message(text):
            stats = self._outbox.stats()
            self.abort(
                f'the peer does not read: {stats.control_messages} control messages of'
                f' {stats.control_bytes} characters wait, limits'
                f' {self._limits.control_messages} and {self._limits.control_bytes}'
            )
            return
        self.pump()

    def send_frame(self, effect: SendFrame) -> None:
        """Send a frame now if the socket takes it, else put it where its channel's class says."""
        if self._is_closing:
            return
        given_up = self._outbox.put_frame(effect)
        if given_up:
            self._host.post(FramesDropped(self.number, effect.channel_id, given_up))
        else:
            self.pump()

    def drop_frames(self, channel_id: int) -> None:
        """Forget the frames of a channel that still wait."""
        self._outbox.drop_frames(channel_id)

    def close(self, code: int, reason: str) -> None:
        """
        Let waiting control messages leave, then close.

        Both are bounded; where a bound is passed the connection is aborted. Frames that wait are
        forgotten, and what the peer still sends is not reported any more.
        """
        if self._is_closing:
            return
        self._is_closing = True
        self._lost_because = f'closed by the bridge: {code} {reason}'.rstrip()
        self._outbox.clear_frames()
        self.pump()
        self._closer = self._loop.create_task(self._close(code, _shortened(reason)))

    def abort(self, because: str) -> None:
        """Cut the connection now; its loss is reported with this text."""
        self._is_closing = True
        self._lost_because = because
        self._outbox.clear()
        self._drained.set()
        self._socket.abort()

    def stats(self) -> LinkStats:
        """Give a copy of the counters."""
        return LinkStats(
            conn=self.number,
            kind=self.kind,
            peer=self.peer,
            is_paused=self._socket.is_write_paused,
            messages=self._messages,
            frames=self._frames,
            outbox=self._outbox.stats(),
        )

    # ------------------------------------------------------------ writing

    def pump(self) -> None:
        """Hand what waits to the socket, as far as it takes it."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            self._pump()
        finally:
            self._is_pumping = False

    def _pump(self) -> None:
        for _ in range(_PUMP_AT_ONCE):
            if self._socket.is_write_paused:
                return
            item = self._outbox.take()
            if item is None:
                if self._is_closing:
                    self._drained.set()
                return
            if self._socket.state is not State.OPEN:
                self._outbox.clear()
                return
            if isinstance(item, str):
                self._messages += 1
                self._write(item)
            else:
                self._write_frame(item)
        self._loop.call_soon(self.pump)  # one quick receiver shall not hold the loop

    def _is_free(self) -> bool:
        """Tell whether nothing waits and the socket takes more: then nothing needs to queue."""
        return (
            self._outbox.is_empty
            and not self._is_pumping
            and not self._socket.is_write_paused
            and self._socket.state is State.OPEN
        )

    def _write_frame(self, effect: SendFrame) -> None:
        sent_ns = self._host.now_ns()
        self._frames += 1
        self._write(encode_frame(effect, sent_ns))
        self._host.frame_sent(effect, sent_ns)

    def _write(self, data: str | bytes) -> None:
        self.last_size = len(data)
        broadcast((self._socket,), data)

    # ------------------------------------------------------------ reading and ending

    async def serve(self) -> None:
        """Carry the connection until it is gone, and report its loss once."""
        try:
            self._opened()
            await self._read()
        except ConnectionClosed as exc:
            self._lost_because = self._lost_because or _end_of(exc)
        finally:
            self._ended()

    async def _read(self) -> None:
        for turn in count(1):
            data = await self._socket.recv()
            if turn % _READ_AT_ONCE == 0 or len(data) > _LARGE_BYTES:
                await asyncio.sleep(0)  # recv() does not yield while it has more
            if self._is_closing:
                continue
            self._received(data)
            delay_s = self._bucket.take(self._host.now_ns(), 1.0 + len(data) / _LARGE_BYTES)
            if delay_s > 0.0 and await self._is_lost_within(delay_s):
                return

    async def _is_lost_within(self, delay_s: float) -> bool:
        """
        Leave a peer that sends too fast to its own backpressure, without missing its end.

        Messages beyond the rate that were not looked at when the connection ends are not looked
        at any more.
        """
        try:
            async with asyncio.timeout(delay_s):
                await self._socket.wait_closed()
        except TimeoutError:
            return False
        return True

    def _ended(self) -> None:
        self._is_closing = True
        self._outbox.clear()
        self._drained.set()
        if self._socket.state is not State.CLOSED:
            self._socket.bound_closing()
        because = self._lost_because or 'the connection is gone'
        _log.info('%s lost conn=%d peer=%s: %s', self.kind, self.number, self.peer, because)
        self._lost(because)

    async def _close(self, code: int, reason: str) -> None:
        try:
            async with asyncio.timeout(self._limits.flush_timeout_s):
                await self._drained.wait()
        except TimeoutError:
            self._outbox.clear()
        try:
            async with asyncio.timeout(self._limits.close_timeout_s):
                await self._socket.close(code, reason)
        except TimeoutError:
            pass
        finally:
            self._socket.abort()

    # ------------------------------------------------------------ for the subclass

    def _opened(self) -> None:
        """Report the new connection."""
        raise NotImplementedError

    def _received(self, data: str | bytes) -> None:
        """Report one message."""
        raise NotImplementedError

    def _lost(self, because: str) -> None:
        """Report the end; called exactly once."""
        raise NotImplementedError


def _bound_unsent(transport: asyncio.BaseTransport) -> None:
    """
    Let the kernel take nothing while it still holds what it could not put on the wire.

    Otherwise it takes some megabytes from a sender whose receiver stalls: seconds of frames that
    no newer frame can replace any more (AWP-TRN-009). Where the option is unknown, the kernel's
    own send buffer is the bound.
    """
    option = getattr(socket, 'TCP_NOTSENT_LOWAT', None)
    sock = transport.get_extra_info('socket')
    if option is not None and sock is not None:
        sock.setsockopt(socket.IPPROTO_TCP, option, _MAX_UNSENT_BYTES)


def _shortened(reason: str) -> str:
    """Cut a reason to what a close frame holds, at a character's edge."""
    return reason.encode()[:_MAX_REASON_BYTES].decode(errors='ignore')


def _end_of(exc: ConnectionClosed) -> str:
    """Say who ended a connection that the engine did not close."""
    if exc.sent is not None and not exc.rcvd_then_sent:
        return f'refused by the transport: {exc.sent.code} {exc.sent.reason!r}'
    if exc.rcvd is not None:
        return f'closed by the peer: {exc.rcvd.code} {exc.rcvd.reason!r}'
    return 'lost without a close frame'
