"""Owns what the transport tests stand on: a host that records, a running server, rude clients."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
import os
import socket
import struct
import time
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from awp_ros_bridge.engine.effects import SendFrame, SendMessage
from awp_ros_bridge.engine.inputs import ConnectionOpened, Input, StreamOpened
from awp_ros_bridge.engine.permissions import ALL_SCOPES, Permissions
from awp_ros_bridge.transport.credentials import Credential, digest_of, TokenGate
from awp_ros_bridge.transport.limits import Limits
from awp_ros_bridge.transport.server import WebSocketTransport
from awp_ros_bridge.transport.websocket import LinkStats
from awp_ros_bridge.wire.frames import KEYFRAME

TOKEN = 'agent-token-0123456789'
SESSION_TOKEN = 'session-token-0123456789'
WAIT_S = 10.0
EVERYTHING = Permissions('everything', ALL_SCOPES)


def gate(*tokens: str, permissions: Permissions = EVERYTHING) -> TokenGate:
    """Return a gate that knows these tokens."""
    return TokenGate([Credential(digest_of(token), permissions) for token in tokens])


class RecordingHost:
    """A bridge that keeps what it is told and answers what it is set to."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.sent: list[tuple[SendFrame, int]] = []
        self.is_accepting = True
        self.session_tokens = {SESSION_TOKEN}
        self.offset_ns = 0
        self.on_post: Callable[[Input], None] = lambda input_: None
        self.on_sent: Callable[[SendFrame], None] = lambda effect: None

    def post(self, input_: Input) -> None:
        self.inputs.append(input_)
        self.on_post(input_)

    def stream_allowed(self, token: str) -> bool:
        return token in self.session_tokens

    def accepting(self) -> bool:
        return self.is_accepting

    def frame_sent(self, effect: SendFrame, sent_ns: int) -> None:
        self.sent.append((effect, sent_ns))
        self.on_sent(effect)

    def now_ns(self) -> int:
        return time.monotonic_ns() + self.offset_ns

    def of(self, kind: type[Any]) -> list[Any]:
        """Return the inputs of one kind."""
        return [item for item in self.inputs if isinstance(item, kind)]

    async def first(self, kind: type[Any], number: int = 1) -> Any:
        """Wait for the n-th input of a kind."""
        await until(lambda: len(self.of(kind)) >= number, f'{number} x {kind.__name__}')
        return self.of(kind)[number - 1]


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition, bounded."""
    try:
        async with asyncio.timeout(WAIT_S):
            while not condition():  # noqa: ASYNC110 - any condition, not only an event
                await asyncio.sleep(0.002)
    except TimeoutError:
        raise AssertionError(f'not within {WAIT_S} s: {what}') from None


@asynccontextmanager
async def serving(
    limits: Limits | None = None, **options: Any
) -> AsyncIterator[tuple[RecordingHost, WebSocketTransport, str]]:
    """Run a transport on a free loopback port, and see that it leaves nothing behind."""
    before = asyncio.all_tasks()
    host = RecordingHost()
    known = options.pop('gate', None) or gate(TOKEN)
    transport = WebSocketTransport(host, known, limits=limits, **options)
    url = await transport.start()
    try:
        yield host, transport, url
    finally:
        await transport.stop(2.0)
    assert transport.stats() == []
    await until(lambda: asyncio.all_tasks() <= before, 'no task left')


def agent(url: str, *, token: str | None = TOKEN, **options: Any) -> connect:
    """Return a polite client for a control connection."""
    options.setdefault('subprotocols', [Subprotocol('awp')])
    headers = options.pop('headers', {})
    if token is not None:
        headers = {'Authorization': f'Bearer {token}', **headers}
    return connect(
        url,
        additional_headers=headers,
        compression=None,
        ping_interval=None,
        max_size=None,
        open_timeout=WAIT_S,
        **options,
    )


def stream(url: str, *, token: str | None = SESSION_TOKEN, **options: Any) -> connect:
    """Return a polite client for a stream connection."""
    return agent(url + '/stream', token=token, **options)


async def received(client: ClientConnection, wait_s: float = WAIT_S) -> str | bytes:
    """Wait for one message."""
    async with asyncio.timeout(wait_s):
        return await client.recv()


async def until_closed(client: ClientConnection) -> list[str | bytes]:
    """Return every message until the connection is closed."""
    got = []
    try:
        while True:
            got.append(await received(client))
    except ConnectionClosed:
        return got


class RawClient:
    """A client that reads only when told to, so that its window fills."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = b''

    @classmethod
    async def open(
        cls, url: str, *, path: str = '/', token: str = TOKEN, window: int = 4096
    ) -> RawClient:
        """Connect with a small receive window and finish the handshake."""
        raw = cls.unopened(window)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(raw.sock, _endpoint(url))
        await raw.send_bytes(
            f'GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n'
            'Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: awp\r\n'
            f'Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n'
            f'Authorization: Bearer {token}\r\n\r\n'.encode()
        )
        while b'\r\n\r\n' not in raw._buffer:
            raw._buffer += await loop.sock_recv(raw.sock, 1024)
        head, _, raw._buffer = raw._buffer.partition(b'\r\n\r\n')
        assert b' 101 ' in head, head
        return raw

    @classmethod
    def unopened(cls, window: int = 4096) -> RawClient:
        """Make a client with a socket that is not connected."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        sock.setblocking(False)
        return cls(sock)

    async def connect_only(self, url: str) -> None:
        """Open the TCP connection and send nothing."""
        await asyncio.get_running_loop().sock_connect(self.sock, _endpoint(url))

    async def send_bytes(self, data: bytes) -> None:
        """Send raw bytes."""
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def send_frame(self, opcode: int, payload: bytes) -> None:
        """Send one masked WebSocket frame."""
        assert len(payload) < 126
        await self.send_bytes(bytes((0x80 | opcode, 0x80 | len(payload))) + b'\0\0\0\0' + payload)

    async def next_frame(self) -> tuple[int, bytes]:
        """Read one WebSocket frame of the server: its opcode and its payload."""
        head = await self._exactly(2)
        size = head[1] & 0x7F
        if size == 126:
            (size,) = struct.unpack('>H', await self._exactly(2))
        elif size == 127:
            (size,) = struct.unpack('>Q', await self._exactly(8))
        return head[0] & 0x0F, await self._exactly(size)

    async def _exactly(self, size: int) -> bytes:
        async with asyncio.timeout(WAIT_S):
            while len(self._buffer) < size:
                data = await asyncio.get_running_loop().sock_recv(self.sock, 65536)
                if not data:
                    raise EOFError
                self._buffer += data
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    async def until_cut(self) -> None:
        """Read until the server ends the TCP connection."""
        try:
            while True:
                await self.next_frame()
        except (EOFError, ConnectionError):
            pass

    def reset(self) -> None:
        """Vanish without a word: TCP reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.sock.close()

    def close(self) -> None:
        """Close the TCP connection."""
        self.sock.close()


def stats_of(transport: WebSocketTransport, conn: int) -> LinkStats:
    """Return the counters of one connection."""
    return next(stats for stats in transport.stats() if stats.conn == conn)


async def stall(
    host: RecordingHost, transport: WebSocketTransport, url: str, *, on_stream: bool = False
) -> tuple[RawClient, int, int]:
    """
    Open a connection whose client stops reading and send frames until its window is full.

    :return: the client, the number of the connection, and the last seq that was sent.
    """
    kind = StreamOpened if on_stream else ConnectionOpened
    before = len(host.of(kind))
    if on_stream:
        raw = await RawClient.open(url, path='/stream', token=SESSION_TOKEN)
    else:
        raw = await RawClient.open(url)
    opened = await host.first(kind, before + 1)
    conn = opened.stream if on_stream else opened.conn
    seq = 0
    while stats_of(transport, conn).outbox.frames.get(1) is None:
        seq += 1
        transport.apply(frame(conn, seq, inline=not on_stream))
        await asyncio.sleep(0)
        assert seq < 10_000, 'the socket takes everything'
    return raw, conn, seq


def message(conn: int, text: str = 'm', session_id: str | None = None) -> SendMessage:
    """Build a control message that can be recognised by its method."""
    return SendMessage(conn, {'jsonrpc': '2.0', 'method': text}, session_id)


def frame(
    conn: int,
    seq: int,
    *,
    channel_id: int = 1,
    reliable: bool = False,
    inline: bool = False,
    payload: bytes = b'x' * 400,
    flags: int = KEYFRAME,
) -> SendFrame:
    """Build a frame."""
    return SendFrame(
        conn=conn,
        inline=inline,
        session_id='s',
        channel_id=channel_id,
        seq=seq,
        ts_mono_ns=seq,
        flags=flags,
        payload=payload,
        sim_ns=None,
        reliable=reliable,
        clock_zero_ns=0,
    )


def _endpoint(url: str) -> tuple[str, int]:
    host, port = url.removeprefix('ws://').split(':')
    return host, int(port)
