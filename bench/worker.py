"""
Owns the talk between the bench and its helper processes: one JSON object a line.

A helper answers commands from its standard input, one at a time, and ends when that closes, so
none outlives the bench.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
import json
import os
import sys
import traceback
from typing import Any, TextIO

_channel: TextIO | None = None


def _open_channel() -> TextIO:
    """Keep the pipe for ourselves: what libraries print goes to the log instead."""
    global _channel
    if _channel is None:
        _channel = os.fdopen(os.dup(1), 'w', encoding='utf-8')
        os.dup2(2, 1)
    return _channel


def tell(event: str, value: object = None) -> None:
    """Say something while a command runs."""
    channel = _open_channel()
    channel.write(json.dumps({'event': event, 'value': value}) + '\n')
    channel.flush()


async def told() -> None:
    """Wait, while a command runs, until the bench says that it shall end."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), news.set)
    try:
        await news.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    sys.stdin.readline()


def serve(commands: Mapping[str, Callable[..., Any]]) -> None:
    """Answer commands until the bench closes the pipe."""
    channel = _open_channel()
    tell('started')
    for line in sys.stdin:
        call = json.loads(line)
        try:
            answer = {'result': commands[call['command']](**call['arguments'])}
        except Exception as error:  # noqa: BLE001 whatever it is, the bench shall hear of it
            traceback.print_exc()
            answer = {'error': f'{type(error).__name__}: {error}'}
        channel.write(json.dumps(answer) + '\n')
        channel.flush()
