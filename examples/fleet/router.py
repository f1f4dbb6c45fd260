"""
Routes agents to one of several bridges, and takes each back to the bridge that has its session.

    python examples/fleet/router.py --port 8720 cell_a=ws://127.0.0.1:8711 cell_b=ws://127.0.0.1:8712

A new connection goes to the next bridge in turn. Of every session that begins through it the
router keeps the id, under the hash of its token. `session.resume` names only the token: the router
asks every bridge where the session with that id stands (`session/status`, which changes nothing)
and forwards to the one that does not answer -32002.

It holds no credential of its own. The one that an agent presents is presented to the bridges, both
to connect and to ask, so that they alone decide who may do what.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import OrderedDict
import contextlib
from dataclasses import dataclass, field
import hashlib
from http import HTTPStatus
import itertools
import json
import signal
from typing import Any
from weakref import WeakKeyDictionary

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import serve, ServerConnection
from websockets.datastructures import HeadersLike
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.http11 import Request, Response

Json = dict[str, Any]

ASK_S = 2.0  # for a bridge to say where a session stands; a dead one must not hold the others up
DIAL_S = 2.0
REMEMBERED = 10_000
BAD_GATEWAY = 1014
NO_CODE = (None, 1005, 1006)
MAX_MESSAGE_BYTES = 1 << 20  # of an agent, as the bridges have it
NOT_FOUND = -32002
UNAVAILABLE = 2001
SELF = {
    'protocol_versions': ['0.1'],
    'agent': {'name': 'fleet-router', 'version': '1', 'vendor': 'example'},
    'consumes_modalities': ['text/event+json'],
}
UNREACHABLE = (OSError, InvalidHandshake, ConnectionClosed, TimeoutError)


def say(text: str) -> None:
    """Print a line at once; none holds a token."""
    print(f'[router] {text}', flush=True)


async def dial(url: str, credential: HeadersLike) -> ClientConnection:
    """Connect to a bridge with the credential of the agent, without a limit of our own."""
    return await connect(
        url,
        subprotocols=['awp'],  # type: ignore[list-item]
        additional_headers=credential,
        compression=None,
        ping_interval=None,  # heartbeats are the protocol's own
        max_size=None,
        open_timeout=DIAL_S,
        close_timeout=1.0,
    )


async def call(bridge: ClientConnection, number: str, method: str, params: Json) -> Json:
    """Send a request and return the whole answer to it; nothing else is expected before."""
    request = {'jsonrpc': '2.0', 'id': number, 'method': method, 'params': params}
    await bridge.send(json.dumps(request))
    while True:
        answer: Json = json.loads(await bridge.recv())
        if answer.get('id') == number and 'method' not in answer:
            return answer


class Book:
    """Which session id belongs to which token; of a token only the hash is kept."""

    def __init__(self) -> None:
        self._ids: OrderedDict[bytes, str] = OrderedDict()

    @staticmethod
    def _key(token: str) -> bytes:
        return hashlib.sha256(token.encode()).digest()

    def note(self, token: str, session_id: str) -> None:
        """Keep the id of a session that began; the oldest one is forgotten at some point."""
        self._ids[self._key(token)] = session_id
        self._ids.move_to_end(self._key(token))
        while len(self._ids) > REMEMBERED:
            self._ids.popitem(last=False)

    def find(self, token: str) -> str | None:
        """Return the id of the session that a token belongs to."""
        return self._ids.get(self._key(token))


@dataclass
class Whereabouts:
    """
    What the bridges said of a session.

    :param here: bridges that have it, active or not.
    :param unasked: bridges that gave no answer.
    """

    here: list[str] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)


class Router:
    """
    Knows the bridges, and which sessions began through it.

    :param bridges: WebSocket URL by name.
    """

    def __init__(self, bridges: dict[str, str]) -> None:
        self.bridges = bridges
        self.book = Book()
        self._turns = itertools.count()

    async def place(self, credential: HeadersLike) -> tuple[str, ClientConnection]:
        """
        Connect to the next bridge in turn that can be reached.

        :raises InvalidStatus: the bridge refuses, as it refuses whoever presents this credential
        :raises OSError: no bridge can be reached
        """
        names = list(self.bridges)
        first = next(self._turns) % len(names)
        for name in names[first:] + names[:first]:
            try:
                return name, await dial(self.bridges[name], credential)
            except InvalidStatus as refused:
                if refused.response.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                    raise
            except UNREACHABLE as error:
                say(f'{name} cannot be reached: {error}')
        raise OSError(f'none of {", ".join(self.bridges)} can be reached')

    async def whereabouts(self, session_id: str, credential: HeadersLike) -> Whereabouts:
        """Ask every bridge at once where a session stands; nothing is changed by that."""
        found = Whereabouts()
        asked = (self._ask(url, session_id, credential) for url in self.bridges.values())
        for name, answer in zip(self.bridges, await asyncio.gather(*asked), strict=True):
            if answer is None:
                found.unasked.append(name)
            elif answer:
                found.here.append(name)
        return found

    async def _ask(self, url: str, session_id: str, credential: HeadersLike) -> bool | None:
        """Return whether a bridge has the session, None where it does not say."""
        try:
            async with asyncio.timeout(ASK_S), await dial(url, credential) as bridge:
                await call(bridge, 'i', 'initialize', SELF)
                answer = await call(bridge, 's', 'session/status', {'sessionId': session_id})
        except UNREACHABLE:
            return None
        if 'error' not in answer:
            return True  # a status that is not known is to be read as inactive
        return False if answer['error']['code'] == NOT_FOUND else None


class Relay:
    """
    One agent and the bridge that it talks to.

    :param name: of the bridge.
    :param credential: what the agent presented.
    """

    def __init__(
        self, router: Router, agent: ServerConnection, name: str, bridge: ClientConnection,
        credential: HeadersLike,
    ) -> None:  # fmt: skip
        self._router = router
        self._agent = agent
        self._name = name
        self._bridge = bridge
        self._credential = credential
        self._hello: Json | None = None
        self._beginning: set[str] = set()
        self._listening: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Carry messages both ways until one side is gone."""
        self._listen()
        try:
            with contextlib.suppress(ConnectionClosed):  # of the bridge: who listens tells why
                async for text in self._agent:
                    await self._from_agent(text)
        finally:
            if self._listening is not None:
                self._listening.cancel()
            await self._bridge.close()

    def _listen(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        self._listening = asyncio.create_task(self._from_bridge(self._bridge))

    # ------------------------------------------------------------ from the agent

    async def _from_agent(self, text: str | bytes) -> None:
        message = _object(text)
        match message.get('method'), message.get('params'):
            case 'initialize', dict(params):
                self._hello = params
            case 'session.open', _:
                self._beginning.add(_name(message))
            case 'session.resume', {'session_token': str(token)} if not await self._go_to(token):
                await self._agent.send(_unavailable(message))
                return
            case 'session.resume', _:
                self._beginning.add(_name(message))
        await self._bridge.send(text)

    async def _go_to(self, token: str) -> bool:
        """Go to the bridge that has the session; False where that cannot be told now."""
        session_id = self._router.book.find(token)
        if session_id is None:
            return True  # whoever is asked says that it does not know the token
        found = await self._router.whereabouts(session_id, self._credential)
        say(f'session {session_id}: at {found.here or "none"}, no answer from {found.unasked}')
        if self._name in found.here or not (found.here or found.unasked):
            return True
        if not found.here:
            return False
        return await self._move(found.here[0])

    async def _move(self, name: str) -> bool:
        """Connect to another bridge, as the agent that introduced itself here."""
        try:
            bridge = await dial(self._router.bridges[name], self._credential)
            if self._hello is not None:
                await asyncio.wait_for(call(bridge, 'i', 'initialize', self._hello), ASK_S)
        except UNREACHABLE:
            return False
        before, self._bridge, self._name = self._bridge, bridge, name
        self._listen()
        await before.close()
        return True

    # ------------------------------------------------------------ from the bridge

    async def _from_bridge(self, bridge: ClientConnection) -> None:
        code, reason = BAD_GATEWAY, f'{self._name} is gone'
        with contextlib.suppress(ConnectionClosed):
            async for text in bridge:
                if self._beginning:
                    self._note_beginning(text)
                await self._agent.send(text)
        if bridge.close_code not in NO_CODE:  # it said why
            code, reason = bridge.close_code or code, bridge.close_reason or ''
        await self._agent.close(code, reason)

    def _note_beginning(self, text: str | bytes) -> None:
        """Keep the id of a session that begins here, under the hash of its token."""
        message = _object(text)
        if 'method' in message or _name(message) not in self._beginning:
            return
        self._beginning.discard(_name(message))
        ready = message.get('result') or {}
        if 'session_token' in ready:
            self._router.book.note(ready['session_token'], ready['session_id'])
            say(f'session {ready["session_id"]} at {self._name}')


def _name(message: Json) -> str:
    """Return the id of a request or an answer as something that a set can hold."""
    return json.dumps(message.get('id'))


def _object(text: str | bytes) -> Json:
    """Return what a message says, {} where it cannot be read: that is the bridge's affair."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _unavailable(message: Json) -> str:
    detail = 'a bridge that may have this session cannot be asked now; try again'
    error = {
        'code': UNAVAILABLE,
        'message': 'AWP_EMBODIMENT_UNAVAILABLE',
        'data': {'retryable': True, 'detail': detail},
    }
    return json.dumps({'jsonrpc': '2.0', 'id': message.get('id'), 'error': error})


# ---------------------------------------------------------------- the door


def _credential(request: Request) -> HeadersLike:
    """Return what the agent presented: headers that carry credentials, origin, nothing else."""
    found = [('Authorization', v) for v in request.headers.get_all('Authorization')]
    found += [('Origin', v) for v in request.headers.get_all('Origin')]
    for value in request.headers.get_all('Sec-WebSocket-Protocol'):
        for name in (part.strip() for part in value.split(',')):
            if name.startswith('awp.bearer.'):
                found.append(('Authorization', f'Bearer {name.removeprefix("awp.bearer.")}'))
    return found


async def run(bridges: dict[str, str], host: str, port: int) -> None:
    """Serve until asked to end."""
    router = Router(bridges)
    placed: WeakKeyDictionary[ServerConnection, tuple[str, ClientConnection, HeadersLike]]
    placed = WeakKeyDictionary()  # one that ends before it is open is not kept

    async def enter(agent: ServerConnection, request: Request) -> Response | None:
        """Let an agent in when a bridge does; its refusal is passed on."""
        credential = _credential(request)
        try:
            placed[agent] = (*await router.place(credential), credential)
        except InvalidStatus as refused:
            text = (refused.response.body or b'').decode(errors='replace')
            return agent.respond(HTTPStatus(refused.response.status_code), text)
        except OSError as error:
            return agent.respond(HTTPStatus.SERVICE_UNAVAILABLE, f'{error}\n')
        return None

    async def carry(agent: ServerConnection) -> None:
        await Relay(router, agent, *placed.pop(agent)).run()

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serve(
        carry, host, port, process_request=enter, subprotocols=['awp'],  # type: ignore[list-item]
        compression=None, ping_interval=None, max_size=MAX_MESSAGE_BYTES, close_timeout=1.0,
    ):  # fmt: skip
        say(f'listening on ws://{host}:{port}, bridges {", ".join(bridges)}')
        await stop.wait()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description='Routes AWP agents to several bridges.')
    parser.add_argument('--host', default='127.0.0.1', help='address to listen on')
    parser.add_argument('--port', type=int, default=8720, help='port to listen on')
    parser.add_argument('bridges', nargs='+', metavar='NAME=URL', help='a bridge and where it is')
    found = parser.parse_args()
    asyncio.run(run(dict(b.split('=', 1) for b in found.bridges), found.host, found.port))


if __name__ == '__main__':
    main()
