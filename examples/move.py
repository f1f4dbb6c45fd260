"""
Moves an arm to a pose through the bridge and prints what happens, with the public client.

    AWP_TOKEN=... python examples/move.py [URL] [X Y Z]
"""

from __future__ import annotations

import asyncio
import os
import sys

from awp import AwpError, ClientConnection
from awp.aio import AsyncClient
from websockets.exceptions import InvalidHandshake

IDENTITY = {'name': 'example', 'version': '1', 'vendor': 'example'}
MODALITIES = ['proprio/json', 'text/event+json']


async def move(url: str, token: str | None, position_m: list[float]) -> str:
    """Open a session, have the arm move, close the session whatever happened."""
    connection = ClientConnection(IDENTITY, MODALITIES)
    async with AsyncClient(connection, url, token=token, heartbeat=False) as client:
        manifest = await client.initialize()
        print('world', manifest['world']['name'])
        await client.open_session('streaming', embodiment='arm_01', subscribe=['proprio'])
        try:
            return await go(client, position_m)
        finally:  # else the arm stays bound to this session until its window is over
            await client.close_session()


async def go(client: AsyncClient, position_m: list[float]) -> str:
    """Submit one action and return how it ended."""
    pose = {'frame': 'base', 'p_m': position_m, 'q': [0, 0, 0, 1]}
    try:
        action = await client.submit(
            'move_to_pose',
            {'pose': pose, 'max_velocity_mps': 0.3},
            basis=client.latest['proprio'].frame,
            valid_for_ms=200,
        )
    except AwpError as refusal:
        print('refused', refusal)
        return 'refused'
    waiting = asyncio.ensure_future(client.wait_terminal(action.action_id))
    while not waiting.done():  # from the loop that decides, so that an agent that hangs is stopped
        await client.ping()
        await asyncio.wait({waiting}, timeout=0.5)
    ended = waiting.result()
    print('ended', ended.state, ended.reason or '', ended.status.get('detail', ''))
    return str(ended.state)


if __name__ == '__main__':
    url = sys.argv[1] if len(sys.argv) > 1 else 'ws://127.0.0.1:8710'
    target_m = [float(value) for value in sys.argv[2:5]] or [0.3, 0.2, 0.5]
    try:
        state = asyncio.run(move(url, os.environ.get('AWP_TOKEN'), target_m))
    except (OSError, InvalidHandshake) as error:
        sys.exit(f'cannot connect to {url}: {error}; is the token in AWP_TOKEN?')
    sys.exit(0 if state == 'completed' else 1)
