"""Owns clients that keep to no protocol: they trickle, flood, lie in HTTP, and drop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
import contextlib
import json
import re
import socket
import struct
from typing import Any, Self
from urllib.parse import urlsplit

from agent_words import hello
import secrets_written

from bench import websocket_words
from bench.websocket_words import handshake

HELLO = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': hello('rude')})
WATCH = json.dumps(
    {
        'jsonrpc': '2.0',
        'id': 2,
        'method': 'session.open',
        'params': {'mode': 'streaming', 'subscribe': [{'channel': 'proprio'}]},
    }
)
SWITCHED = b'HTTP/1.1 101'
_SESSION_TOKEN = re.compile(rb'"session_token": ?"([^"]+)"')
_RESET = struct.pack('ii', 1, 0)
_MASK = b'\x5a\xa5\x0f\xf0'


def frame(payload: bytes, opcode: int = websocket_words.TEXT, *, fin: bool = True) -> bytes:
    """Return a frame whose mask hides what it carries."""
    return websocket_words.frame(payload, opcode, fin=fin, mask=_MASK)


class RudeClient:
    """One TCP connection to a bridge."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def dial(cls, url: str) -> Self:
        """Connect and say nothing."""
        where = urlsplit(url)
        return cls(*await asyncio.open_connection(where.hostname, where.port))

    @classmethod
    async def let_in(cls, url: str, token: str) -> Self:
        """Connect and pass the handshake."""
        client = await cls.dial(url)
        await client.say(handshake(url, token))
        answer = await client.head()
        assert answer.startswith(SWITCHED), answer
        return client

    async def say(self, data: bytes) -> None:
        """Send bytes; that the other side is gone is no fault."""
        with contextlib.suppress(OSError):
            self._writer.write(data)
            await self._writer.drain()

    async def trickle(self, data: bytes, pause_s: float) -> None:
        """Send byte after byte for as long as the other side stays."""
        for number in range(len(data)):
            if self._reader.at_eof() or self._writer.is_closing():
                return
            await self.say(data[number : number + 1])
            await asyncio.sleep(pause_s)

    async def head(self) -> bytes:
        """Return the head of an HTTP answer, or what came of it."""
        try:
            return await self._reader.readuntil(b'\r\n\r\n')
        except asyncio.IncompleteReadError as error:
            return error.partial
        except OSError:
            return b''

    async def heard(self, least: int = 1) -> bytes:
        """Return the next bytes, nothing at the end."""
        try:
            return await self._reader.read(max(least, 65536))
        except OSError:
            return b''

    async def gone(self, timeout_s: float) -> bytes:
        """
        Wait until the other side has ended the connection, and return what it said before.

        :raises TimeoutError: it did not within the time
        """
        said = b''
        async with asyncio.timeout(timeout_s):
            while data := await self.heard():
                said += data
        return said

    def leave(self) -> None:
        """End the connection as a program does that ends: without a close frame."""
        self._writer.close()

    def reset(self) -> None:
        """Cut it, so that the other side sees a reset."""
        sock: socket.socket = self._writer.get_extra_info('socket')
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._writer.transport.abort()


async def _nothing(url: str, token: str) -> None:
    (await RudeClient.dial(url)).leave()


async def _half_a_handshake(url: str, token: str) -> None:
    client = await RudeClient.dial(url)
    await client.say(handshake(url, token)[:90])
    client.reset()


async def _garbage(url: str, token: str) -> None:
    client = await RudeClient.dial(url)
    await client.say(b'\x16\x03\x01\x02\x00' * 9 + b'\r\n\r\n')
    await client.gone(10.0)
    client.leave()


async def _wrong_token(url: str, token: str) -> None:
    client = await RudeClient.dial(url)
    await client.say(handshake(url, 'awp_wrong_wrong_wrong_wrong'))
    said = await client.head()
    assert said.split()[1] in (b'401', b'429'), said
    client.leave()


async def _let_in(url: str, token: str) -> None:
    (await RudeClient.let_in(url, token)).reset()


async def _hello(url: str, token: str) -> None:
    client = await RudeClient.let_in(url, token)
    await client.say(frame(HELLO.encode()))
    assert await client.heard()
    client.leave()


async def _half_a_message(url: str, token: str) -> None:
    client = await RudeClient.let_in(url, token)
    await client.say(frame(HELLO.encode())[:50])
    client.leave()


_COMMON: tuple[Callable[[str, str], Any], ...] = (
    _nothing, _let_in, _half_a_handshake, _hello, _garbage, _let_in, _wrong_token, _half_a_message,
)  # fmt: skip


async def watch_and_drop(url: str, token: str) -> None:
    """Open a session that observes, and vanish; it waits for its resume until its window ends."""
    client = await RudeClient.let_in(url, token)
    await client.say(frame(HELLO.encode()) + frame(WATCH.encode()))
    said = b''
    while (found := _SESSION_TOKEN.search(said)) is None:
        data = await client.heard()
        assert data, said
        said += data
    secrets_written.note(found.group(1).decode())
    client.reset()


async def come_and_go(url: str, token: str, count: int, at_once: int = 32) -> None:
    """Open and drop connections of every kind; one in a hundred leaves a session behind."""
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            kind = watch_and_drop if number % 100 == 0 else _COMMON[number % len(_COMMON)]
            await kind(url, token)

    await asyncio.gather(*(some() for _ in range(at_once)))
