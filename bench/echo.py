"""
Owns the WebSocket floors: a server that sends back what it gets, or always the same.

On the path ``/answers`` the first message of a connection is the answer to all of its messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading

from websockets.asyncio.server import serve as listen
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from bench.worker import serve

_found: list[int] = []
_ready = threading.Event()


async def _echo(connection: ServerConnection) -> None:
    assert connection.request is not None
    if connection.request.path == '/answers':
        await _answer(connection)
        return
    async for message in connection:
        await connection.send(message)


async def _answer(connection: ServerConnection) -> None:
    with contextlib.suppress(ConnectionClosed):  # askers leave without a close frame
        answer = await connection.recv()
        await connection.send(answer)
        async for _ in connection:
            await connection.send(answer)


async def _listen() -> None:
    async with listen(
        _echo, '127.0.0.1', 0, compression=None, ping_interval=None, max_size=None
    ) as server:
        _found.append(next(iter(server.sockets)).getsockname()[1])
        _ready.set()
        await asyncio.Event().wait()


def url() -> str:
    """Return where it listens."""
    if not _ready.wait(10.0):
        raise TimeoutError('the echo server did not listen within 10 s')
    return f'ws://127.0.0.1:{_found[0]}'


def main() -> None:
    """Run until the bench closes the pipe."""
    threading.Thread(target=lambda: asyncio.run(_listen()), daemon=True).start()
    serve({'url': url})


if __name__ == '__main__':
    main()
