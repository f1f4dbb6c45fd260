"""The door of a running server: what a client at a real socket gets for an answer."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from transport_rig import (
    agent,
    gate,
    message,
    RawClient,
    received,
    RecordingHost,
    serving,
    SESSION_TOKEN,
    stream,
    TOKEN,
    until,
    WAIT_S,
)
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from awp_ros_bridge.engine.effects import CloseConnection
from awp_ros_bridge.engine.inputs import (
    ConnectionLost,
    ConnectionOpened,
    HandshakeRefused,
    StreamLost,
    StreamOpened,
)
from awp_ros_bridge.transport.limits import Limits
from awp_ros_bridge.transport.server import WebSocketTransport


async def refused(client: object) -> InvalidStatus:
    """Connect and return the refusal."""
    with pytest.raises(InvalidStatus) as caught:
        async with client:  # type: ignore[attr-defined]
            pass
    return caught.value


def body(refusal: InvalidStatus) -> str:
    """Return the text of a refusal."""
    return refusal.response.body.decode()


def test_a_token_in_the_header_opens_a_control_connection() -> None:
    async def run() -> None:
        async with serving() as (host, transport, url), agent(url) as client:
            assert client.subprotocol == 'awp'
            assert client.response is not None
            assert 'Sec-WebSocket-Extensions' not in client.response.headers
            opened = await host.first(ConnectionOpened)
            assert opened.peer == '{}:{}'.format(*client.local_address[:2])
            transport.apply(message(opened.conn, 'hello'))
            assert await received(client) == '{"jsonrpc":"2.0","method":"hello"}'

    asyncio.run(run())


@pytest.mark.parametrize('awp_first', [True, False])
def test_a_token_in_a_subprotocol_opens_and_is_never_echoed(awp_first: bool) -> None:
    # AWP-SEC-005
    offer = [Subprotocol('awp'), Subprotocol(f'awp.bearer.{TOKEN}')]

    async def run() -> None:
        async with serving() as (host, _, url):
            offered = offer if awp_first else offer[::-1]
            async with agent(url, token=None, subprotocols=offered) as client:
                assert client.subprotocol == 'awp'
                assert client.response is not None
                assert TOKEN not in str(client.response.headers)
                await host.first(ConnectionOpened)

    asyncio.run(run())


def test_a_session_token_opens_a_stream_and_control_and_stream_share_numbers() -> None:
    async def run() -> None:
        async with serving() as (host, _, url):
            async with agent(url), stream(url) as client:
                assert client.subprotocol == 'awp'
                opened = await host.first(ConnectionOpened)
                streamed = await host.first(StreamOpened)
                assert streamed.session_token == SESSION_TOKEN
                assert (opened.conn, streamed.stream) == (1, 2)
            assert (await host.first(StreamLost)).stream == 2
            assert (await host.first(ConnectionLost)).conn == 1

    asyncio.run(run())


def test_what_is_refused_gets_one_clear_text_and_no_secret_is_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    cases: list[tuple[dict[str, Any], str, int, str]] = [
        ({'token': None}, '/', 401, 'Authorization: Bearer <token>'),
        ({'token': 'not-the-right-token'}, '/', 401, 'not a valid token'),
        ({'token': TOKEN}, '/stream', 401, 'not a valid session token'),
        ({'token': SESSION_TOKEN}, '/', 401, 'not a valid token'),
        ({}, f'/?token={TOKEN}', 400, 'query is refused'),
        ({}, f'/stream?token={SESSION_TOKEN}', 400, 'query is refused'),
        ({}, f'/{TOKEN}', 404, "control connections use '/'"),
        ({'subprotocols': None}, '/', 400, "subprotocol 'awp'"),
        ({'subprotocols': ['chat']}, '/', 400, "subprotocol 'awp'"),
        ({'headers': {'Origin': 'https://evil.example'}}, '/', 403, 'Origin'),
        ({'origin': 'null'}, '/', 403, 'Origin'),
    ]

    async def run() -> None:
        async with serving() as (host, _, url):
            for options, path, status, text in cases:
                refusal = await refused(agent(url + path, **options))
                assert refusal.response.status_code == status, (options, path)
                assert text in body(refusal)
                assert TOKEN not in body(refusal)
                assert SESSION_TOKEN not in body(refusal)
                assert ('WWW-Authenticate' in refusal.response.headers) == (status == 401)
            rebound = url.replace('127.0.0.1', 'evil.example')
            refusal = await refused(agent(rebound, host='127.0.0.1'))
            assert refusal.response.status_code == 403
            assert 'Host' in body(refusal)
            assert [item.status for item in host.inputs] == [401, 400, 403]  # each once a minute
            assert all(isinstance(item, HandshakeRefused) for item in host.inputs)
            assert TOKEN not in repr(host.inputs)

    asyncio.run(run())
    said = [record for record in caplog.records if record.name.startswith('awp_ros_bridge')]
    assert any('handshake refused' in record.getMessage() for record in said)
    assert not any('websockets' in record.name for record in said)
    text = '\n'.join(record.getMessage() for record in said)
    assert TOKEN not in text
    assert SESSION_TOKEN not in text


def test_an_allowed_origin_is_served() -> None:
    async def run() -> None:
        origins = ['https://app.example']
        async with serving(origins=origins) as (_, _, url):
            async with agent(url, origin='https://app.example'):
                pass
            refusal = await refused(agent(url, origin='https://app.example.evil'))
            assert refusal.response.status_code == 403

    asyncio.run(run())


def test_failed_logins_are_answered_429_at_once_while_the_right_token_still_opens() -> None:
    async def run() -> None:
        limits = Limits(failed_logins_per_minute=3)
        async with serving(limits) as (_, _, url):
            statuses = [
                (await refused(agent(url, token='not-the-right-token'))).response.status_code
                for _ in range(5)
            ]
            assert statuses == [401, 401, 401, 429, 429]
            async with agent(url):
                pass

    asyncio.run(run())


def test_an_inactive_bridge_answers_503() -> None:
    async def run() -> None:
        async with serving() as (host, _, url):
            host.is_accepting = False
            refusal = await refused(agent(url))
            assert refusal.response.status_code == 503
            assert 'not active' in body(refusal)
            host.is_accepting = True
            async with agent(url):
                pass

    asyncio.run(run())


def test_one_connection_too_many_is_answered_503_until_another_ends() -> None:
    async def run() -> None:
        async with serving(Limits(max_connections=2)) as (host, _, url), agent(url):
            async with stream(url):
                refusal = await refused(agent(url))
                assert refusal.response.status_code == 503
                assert 'All 2 connections' in body(refusal)
            await host.first(StreamLost)
            async with agent(url):
                await host.first(ConnectionOpened, 2)

    asyncio.run(run())


def test_a_burst_of_handshakes_does_not_pass_the_connection_limit() -> None:
    async def attempt(url: str, opened: list[int]) -> None:
        try:
            async with agent(url) as client:
                opened.append(200)
                await client.wait_closed()
        except InvalidStatus as exc:
            opened.append(exc.response.status_code)

    async def run() -> None:
        async with serving(Limits(max_connections=5)) as (host, transport, url):
            outcomes: list[int] = []
            tasks = [asyncio.create_task(attempt(url, outcomes)) for _ in range(30)]
            await until(lambda: len(outcomes) == 30, 'an answer to each')
            assert sorted(outcomes) == [200] * 5 + [503] * 25
            for opened in host.of(ConnectionOpened):
                transport.apply(CloseConnection(opened.conn, 1000, 'done'))
            await asyncio.gather(*tasks)

    asyncio.run(run())


@pytest.mark.parametrize('sent', [b'', b'GET / HTTP/1.1\r\nHost: 127'])
def test_a_handshake_that_does_not_end_is_cut(sent: bytes) -> None:
    async def run() -> None:
        async with serving(Limits(open_timeout_s=0.2)) as (host, transport, url):
            raw = RawClient.unopened()
            await raw.connect_only(url)
            await raw.send_bytes(sent)
            await raw.until_cut()
            raw.close()
            assert host.inputs == []
            assert transport.stats() == []

    asyncio.run(run())


@pytest.mark.parametrize(
    'sent',
    [
        b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
        b'GET / HTTP/1.1\r\n' + b'X: ' + b'y' * 20000 + b'\r\n\r\n',
        b'GET / HTTP/1.1\r\n' + b'X: y\r\n' * 500 + b'\r\n',
        b'\r\n\r\n',
    ],
)
def test_garbage_instead_of_a_handshake_leaves_no_trace(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with serving(Limits(open_timeout_s=1.0)) as (host, _, url):
            raw = RawClient.unopened()
            await raw.connect_only(url)
            await raw.send_bytes(sent)
            await raw.until_cut()
            raw.close()
            async with agent(url):
                await host.first(ConnectionOpened)

    asyncio.run(run())
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_too_many_open_handshakes_are_cut_and_a_later_agent_is_served() -> None:
    async def run() -> None:
        async with serving(Limits(max_handshakes=4, open_timeout_s=WAIT_S)) as (host, _, url):
            crowd = [RawClient.unopened() for _ in range(6)]
            for raw in crowd:
                await raw.connect_only(url)
            for raw in crowd[4:]:
                await raw.until_cut()
            for raw in crowd:
                raw.close()
            async with agent(url):
                await host.first(ConnectionOpened)

    asyncio.run(run())


@pytest.mark.parametrize('address', ['0.0.0.0', '::', '192.168.1.10', 'robot.example', ''])
def test_an_address_that_leaves_the_machine_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match='without TLS'):
        WebSocketTransport(RecordingHost(), gate(TOKEN), address=address)


def test_an_address_in_use_is_an_error_at_start() -> None:
    async def run() -> None:
        async with serving() as (_, _, url):
            port = int(url.rpartition(':')[2])
            second = WebSocketTransport(RecordingHost(), gate(TOKEN), port=port)
            with pytest.raises(OSError, match='in use'):
                await second.start()
            await second.stop(1.0)

    asyncio.run(run())


def test_localhost_is_served_on_the_address_every_client_tries() -> None:
    async def run() -> None:
        async with serving(address='localhost') as (_, _, url):
            assert url.startswith('ws://127.0.0.1:')
            async with agent(url.replace('127.0.0.1', 'localhost')):
                pass

    asyncio.run(run())
