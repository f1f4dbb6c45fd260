"""
Owns the crowd that asks where a session stands, at a pace, from several connections.

It speaks WebSocket by hand: one ready-made question, answers told apart by their length. A client
library would take more of the machine than what is to be measured.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
import json
import struct
import time
from typing import Any
from urllib.parse import urlsplit

from bench.worker import serve, tell

Json = dict[str, Any]

_WAIT_S = 15.0
_TICK_S = 0.002
_MOST_DUE = 50  # answers that a connection waits for; then it leaves questions out
_LAST_S = 5.0  # for answers that are still due when the asking ends
_MASK = b'\0\0\0\0'  # allowed, and leaves the text as it is
_HELLO = {
    'protocol_versions': ['0.1'],
    'agent': {'name': 'bench-asker', 'version': '1', 'vendor': 'bench'},
    'consumes_modalities': ['text/event+json'],
}


def _frame(method: str, params: Json) -> bytes:
    """Return a request as a masked text frame."""
    text = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': method, 'params': params}).encode()
    size = bytes([0x80 | len(text)]) if len(text) < 126 else struct.pack('>BH', 0xFE, len(text))
    return b'\x81' + size + _MASK + text


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


class Asker(asyncio.Protocol):
    """
    One connection.

    :ivar asked: questions so far.
    :ivar took_ns: from each question to its answer.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.took_ns: list[int] = []
        self.failure = ''
        self._transport: asyncio.Transport | None = None
        self._read: Callable[[bytes], None] = self._keep
        self._data = b''
        self._news = asyncio.Event()
        self._sent_ns: deque[int] = deque()
        self._question = b''

    async def begin(self, url: str, token: str, session_id: str) -> None:
        """Connect, initialize, and ask once to see what an answer looks like."""
        where = urlsplit(url)
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, where.hostname, where.port)
        self._write(
            f'GET / HTTP/1.1\r\nHost: {where.netloc}\r\nUpgrade: websocket\r\n'
            'Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'
            'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: awp\r\n'
            f'Authorization: Bearer {token}\r\n\r\n'.encode()
        )
        head = await self._until(lambda: _head_length(self._data))
        if b' 101 ' not in head:
            raise RuntimeError(f'refused: {head[:200]!r}')
        self._write(_frame('initialize', _HELLO))
        await self._until(lambda: _length(self._data))
        self._question = _frame('session/status', {'sessionId': session_id})
        self._write(self._question)
        answer = await self._until(lambda: _length(self._data))
        if b'"active"' not in answer:
            raise RuntimeError(f'no active session: {answer[:200]!r}')
        self._read = self._count

    def ask(self) -> None:
        """Ask once more, unless too many answers are due."""
        if len(self._sent_ns) >= _MOST_DUE:
            return
        self.asked += 1
        self._sent_ns.append(time.monotonic_ns())
        self._write(self._question)

    @property
    def is_waiting(self) -> bool:
        """Tell whether an answer is due."""
        return bool(self._sent_ns)

    def end(self) -> None:
        """Cut the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    async def _until(self, found: Callable[[], int | None]) -> bytes:
        """Wait for so many bytes as a condition names, and take them."""
        async with asyncio.timeout(_WAIT_S):
            while (size := found()) is None or len(self._data) < size:
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
        if self._sent_ns:
            self.failure = f'the connection was lost with {len(self._sent_ns)} answers due: {exc}'
        self._sent_ns.clear()

    def _keep(self, data: bytes) -> None:
        self._data += data
        self._news.set()

    def _count(self, data: bytes) -> None:
        """Take answers; what they say is not looked at."""
        now_ns = time.monotonic_ns()
        self._data += data
        size = _length(self._data)
        while size is not None and len(self._data) >= size:
            self.took_ns.append(now_ns - self._sent_ns.popleft())
            self._data = self._data[size:]
            size = _length(self._data)


async def _storm(
    url: str, token: str, session_id: str, connections: int, rate_hz: float, seconds: float
) -> Json:
    askers = [Asker() for _ in range(connections)]
    try:
        await asyncio.gather(*(a.begin(url, token, session_id) for a in askers))
        tell('ready')
        began_ns = time.monotonic_ns()
        asked = await _pace(askers, rate_hz, seconds)
        ended_ns = time.monotonic_ns()
        took = [t for a in askers for t in a.took_ns]  # what came while it was asked
        await _drain(askers)
    finally:
        for asker in askers:
            asker.end()
    failures = [a.failure for a in askers if a.failure]
    if failures:
        raise RuntimeError(failures[0])
    return {
        'asked_hz': asked * 1e9 / (ended_ns - began_ns),
        'answered_hz': len(took) * 1e9 / (ended_ns - began_ns),
        'took_us': [t // 1000 for t in took],
        'began_ns': began_ns,
        'ended_ns': ended_ns,
    }


async def _drain(askers: list[Asker]) -> None:
    """Wait for the answers that are due."""
    for _ in range(round(_LAST_S / _TICK_S)):
        if not any(a.is_waiting for a in askers):
            return
        await asyncio.sleep(_TICK_S)
    due = sum(a.is_waiting for a in askers)
    raise RuntimeError(f'{due} connections had no answer {_LAST_S:g} s after the last question')


async def _pace(askers: list[Asker], rate_hz: float, seconds: float) -> int:
    """Ask in turn at the rate; what a late wake-up missed is asked at once, up to a tenth s."""
    began_s = time.monotonic()
    asked = 0
    while (passed_s := time.monotonic() - began_s) < seconds:
        due = int(passed_s * rate_hz)
        asked = max(asked, due - int(0.1 * rate_hz))
        while asked < due:
            askers[asked % len(askers)].ask()
            asked += 1
        await asyncio.sleep(_TICK_S)
    return sum(a.asked for a in askers)


def storm(
    url: str, token: str, session_id: str, connections: int, rate_hz: float, seconds: float
) -> Json:
    """Ask about a session at a rate; return rates reached and the time of each answer in us."""
    return asyncio.run(_storm(url, token, session_id, connections, rate_hz, seconds))


def main() -> None:
    """Run until the bench closes the pipe."""
    serve({'storm': storm})


if __name__ == '__main__':
    main()
