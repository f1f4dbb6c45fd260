"""Owns a crowd of connections that are simply there: some observe, the others are silent."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench.raw_socket import RawSocket, request
from bench.worker import serve, tell, told

Json = dict[str, Any]

_AT_ONCE = 20
_CLOSE = request('session.close', {})


class Watcher(RawSocket):
    """
    One connection of the crowd.

    :ivar frames: messages that came while it observed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.frames = 0

    def came(self) -> None:
        self.frames += 1


async def _stand(
    url: str, token: str, connections: int, observers: int, channel: str, rate_hz: float
) -> Json:
    watch = {'mode': 'streaming', 'subscribe': [{'channel': channel, 'rate_hz': rate_hz}]}
    everybody = [Watcher() for _ in range(connections)]
    watching = everybody[:observers]
    gate = asyncio.Semaphore(_AT_ONCE)

    async def come(watcher: Watcher) -> None:
        async with gate:
            await watcher.dial(url, token)
            await watcher.hello()
            if watcher in watching:
                await watcher.call(request('session.open', watch))
                watcher.count()

    try:
        await asyncio.gather(*(come(each) for each in everybody))
        begun = [each.frames for each in watching]
        began_s = time.monotonic()
        tell('ready')
        await told()
        seconds = time.monotonic() - began_s
        frames = [each.frames - first for each, first in zip(watching, begun, strict=True)]
        lost = [each.loss for each in everybody if each.loss]
        for each in watching:
            each.keep()
            await each.call(_CLOSE)
    finally:
        for each in everybody:
            each.end()
    if lost:
        raise RuntimeError(f'{len(lost)} of {connections} connections were lost: {lost[0]}')
    return {'least_hz': min(frames) / seconds, 'frames_hz': sum(frames) / seconds}


def stand(
    url: str, token: str, connections: int, observers: int, channel: str, rate_hz: float
) -> Json:
    """Be there until told to leave; return the frames per second of the worst observer and all."""
    return asyncio.run(_stand(url, token, connections, observers, channel, rate_hz))


def main() -> None:
    """Run until the bench closes the pipe."""
    serve({'stand': stand})


if __name__ == '__main__':
    main()
