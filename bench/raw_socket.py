"""
Owns a WebSocket connection that is spoken by hand: ready-made frames, lengths instead of contents.

A client library would take more of the machine than what is to be measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
import json
import struct
from typing import Any, Self
from urllib.parse import urlsplit

from bench.websocket_words import frame, handshake

Json = dict[str, Any]

_WAIT_S = 15.0
_HELLO = {
    'protocol_versions': ['0.1'],
    'agent': {'name': 'bench-crowd', 'version': '1', 'vendor': 'bench'},
    'consumes_modalities': ['proprio/json', 'text/event+json'],
}


def request(method: str, params: Json) -> bytes:
    """Return a request as a masked text frame."""
    words = {'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}
    return frame(json.dumps(words).encode())


def _length(data: bytes) -> int | None:
    """Return the length of the first frame of a server, None while its head is not there."""
    if len(data) < 2:
        return None
    size, head = data[1], 2
    if size >= 126:
        head, form = (4, '>H') if size == 126 else (10, '>Q')
        if len(data) < head:
            return None
        (size,) = struct.unpack_from(form, data, 2)
    return head + int(size)


def _head_length(data: bytes) -> int | None:
    """Return the length of the answer to a handshake, None while it is not whole."""
    end = data.find(b'\r\n\r\n')
    return None if end < 0 else end + 4


class RawSocket(asyncio.Protocol):
    """One connection; its answers are read one by one, or counted."""

    def __init__(self) -> None:
        self.loss = ''
        self._transport: asyncio.Transport | None = None
        self._read: Callable[[bytes], None] = self._keep
        self._data = b''
        self._news = asyncio.Event()

    async def dial(self, url: str, token: str) -> Self:
        """Connect and pass the handshake."""
        where = urlsplit(url)
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, where.hostname, where.port)
        self.write(handshake(url, token))
        head = await self._until(lambda: _head_length(self._data))
        if b' 101 ' not in head:
            raise RuntimeError(f'refused: {head[:200]!r}')
        return self

    async def hello(self) -> None:
        """Initialize."""
        await self.call(request('initialize', _HELLO))

    async def call(self, data: bytes, holds: bytes = b'"result"') -> bytes:
        """
        Send a request and return the first frame that comes and holds these bytes.

        :raises RuntimeError: it is an error
        """
        self.write(data)
        while True:
            answer = await self._until(lambda: _length(self._data))
            if b'"error"' in answer[:60]:
                raise RuntimeError(f'refused: {answer[:300]!r}')
            if holds in answer:
                return answer

    def write(self, data: bytes) -> None:
        """Send bytes."""
        assert self._transport is not None
        self._transport.write(data)

    def count(self) -> None:
        """Tell :meth:`came` of each frame from now on, instead of keeping it."""
        self._read = self._count
        self._count(b'')

    def keep(self) -> None:
        """Keep what comes for :meth:`call` again."""
        self._read = self._keep

    def came(self) -> None:
        """Note a frame; for the subclass."""

    def end(self) -> None:
        """Cut the connection."""
        if self._transport is not None:
            self._transport.abort()

    async def _until(self, found: Callable[[], int | None]) -> bytes:
        """Wait for so many bytes as a condition names, and take them."""
        async with asyncio.timeout(_WAIT_S):
            while (size := found()) is None or len(self._data) < size:
                if self.loss:
                    raise RuntimeError(f'the connection was lost: {self.loss}')
                self._news.clear()
                await self._news.wait()
        taken, self._data = self._data[:size], self._data[size:]
        return taken

    # ------------------------------------------------------------ what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.loss = str(exc) or 'closed'
        self._news.set()

    def _keep(self, data: bytes) -> None:
        self._data += data
        self._news.set()

    def _count(self, data: bytes) -> None:
        """Take frames; what they say is not looked at."""
        if not self._data and _length(data) == len(data):
            self.came()  # the usual case: just one
            return
        self._data += data
        size = _length(self._data)
        while size is not None and len(self._data) >= size:
            self._data = self._data[size:]
            self.came()
            size = _length(self._data)
