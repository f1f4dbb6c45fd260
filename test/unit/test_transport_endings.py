"""How connections end: by whom, with which code, within which bound, reported how often."""

from __future__ import annotations

import asyncio
from collections import Counter
import json
import logging

import pytest
from transport_rig import (
    agent,
    frame,
    message,
    RawClient,
    received,
    serving,
    SESSION_TOKEN,
    stall,
    stats_of,
    stream,
    TOKEN,
    until,
    until_closed,
)
from websockets.exceptions import ConnectionClosedError

from awp_ros_bridge.engine.effects import CloseConnection
from awp_ros_bridge.engine.inputs import (
    ConnectionLost,
    ConnectionOpened,
    StreamLost,
    StreamOpened,
    TextReceived,
)
from awp_ros_bridge.transport.limits import Limits

PING, CLOSE = 9, 8
SHORT = Limits(flush_timeout_s=0.2, close_timeout_s=0.3)


@pytest.mark.parametrize(
    ('code', 'reason'), [(1000, ''), (1002, 'AWP_MALFORMED'), (1008, 'ü' * 200), (4000, 'own')]
)
def test_a_close_delivers_its_code_and_reason_after_the_messages_before_it(
    code: int, reason: str
) -> None:
    async def run() -> None:
        async with serving() as (host, transport, url), agent(url) as client:
            conn = (await host.first(ConnectionOpened)).conn
            for number in range(300):
                transport.apply(message(conn, f'm{number}'))
            transport.apply(CloseConnection(conn, code, reason))
            transport.apply(message(conn, 'too late'))
            transport.apply(frame(conn, 1, inline=True))
            transport.apply(CloseConnection(conn, 1011, 'too late'))
            names = [json.loads(text)['method'] for text in await until_closed(client)]
            assert names == [f'm{number}' for number in range(300)]
            assert client.close_code == code
            assert reason.startswith(client.close_reason or '')
            assert len((client.close_reason or '').encode()) in (len(reason.encode()), 122)
            lost = await host.first(ConnectionLost)
            assert lost.detail == f'closed by the bridge: {code} {reason}'.rstrip()
            assert len(host.of(ConnectionLost)) == 1

    asyncio.run(run())


def test_a_close_waits_for_messages_that_a_slow_reader_takes_in_time() -> None:
    async def run() -> None:
        async with serving() as (host, transport, url):
            raw, conn, seq = await stall(host, transport, url)
            transport.apply(frame(conn, seq + 1, inline=True))
            transport.apply(message(conn, 'last words'))
            transport.apply(CloseConnection(conn, 1002, 'AWP_MALFORMED'))
            seen = []
            while True:
                opcode, payload = await raw.next_frame()
                if opcode == CLOSE:
                    break
                seen.append(json.loads(payload))
            assert seen[-1]['method'] == 'last words'
            assert payload == b'\x03\xea' + b'AWP_MALFORMED'
            await raw.send_frame(CLOSE, payload)
            raw.close()
            await host.first(ConnectionLost)

    asyncio.run(run())


def test_a_client_that_reads_nothing_is_cut_when_the_bounds_of_a_close_pass() -> None:
    async def run() -> None:
        async with serving(SHORT) as (host, transport, url):
            raw = await RawClient.open(url)
            conn = (await host.first(ConnectionOpened)).conn
            for _ in range(10):  # the first one alone is more than the socket takes
                transport.apply(message(conn, 'x' * 500_000))
            loop = asyncio.get_running_loop()
            started = loop.time()
            transport.apply(CloseConnection(conn, 1000, 'bye'))
            assert (await host.first(ConnectionLost)).conn == conn
            assert loop.time() - started < 1.5
            raw.close()
            assert len(host.of(ConnectionLost)) == 1

    asyncio.run(run())


def test_a_client_that_does_not_answer_a_close_is_cut() -> None:
    async def run() -> None:
        async with serving(SHORT) as (host, transport, url):
            raw = await RawClient.open(url)
            conn = (await host.first(ConnectionOpened)).conn
            transport.apply(CloseConnection(conn, 1000, 'bye'))
            await host.first(ConnectionLost)
            assert (await raw.next_frame())[0] == CLOSE
            raw.close()

    asyncio.run(run())


@pytest.mark.parametrize('ending', ['close frame', 'half close'])
def test_a_client_that_begins_an_end_and_stalls_is_cut(
    ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with serving(SHORT) as (host, transport, url):
            raw = await RawClient.open(url)
            conn = (await host.first(ConnectionOpened)).conn
            for _ in range(10):  # the first one alone is more than the socket takes
                transport.apply(message(conn, 'x' * 500_000))
            if ending == 'close frame':
                await raw.send_frame(CLOSE, b'\x03\xe8')
            else:
                raw.sock.shutdown(1)
            await host.first(ConnectionLost)
            raw.close()
            assert len(host.of(ConnectionLost)) == 1

    asyncio.run(run())
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_what_a_client_sends_after_the_engine_closed_it_is_not_reported() -> None:
    async def run() -> None:
        async with serving() as (host, transport, url):
            raw = await RawClient.open(url)
            conn = (await host.first(ConnectionOpened)).conn
            transport.apply(CloseConnection(conn, 1000, ''))
            await raw.send_frame(1, b'too late')
            await raw.send_frame(CLOSE, b'\x03\xe8')
            raw.close()
            await host.first(ConnectionLost)
            assert host.of(TextReceived) == []

    asyncio.run(run())


def test_a_clean_close_of_the_client_is_reported_with_its_code() -> None:
    async def run() -> None:
        async with serving() as (host, _, url):
            async with agent(url) as client:
                await client.send('last')
                await client.close(1001, 'good bye')
            lost = await host.first(ConnectionLost)
            assert lost.detail == "closed by the peer: 1001 'good bye'"
            assert host.of(TextReceived)[-1].text == 'last'
            assert host.inputs[-1] == lost

    asyncio.run(run())


def test_a_reset_of_the_client_is_reported_once() -> None:
    async def run() -> None:
        async with serving() as (host, transport, url):
            control = await RawClient.open(url)
            raw = await RawClient.open(url, path='/stream', token=SESSION_TOKEN)
            await host.first(StreamOpened)
            control.reset()
            raw.reset()
            assert 'lost' in (await host.first(ConnectionLost)).detail
            await host.first(StreamLost)
            assert (len(host.of(ConnectionLost)), len(host.of(StreamLost))) == (1, 1)
            await until(lambda: transport.stats() == [], 'forgotten')

    asyncio.run(run())


def test_an_oversized_message_is_refused_with_1009_and_reported_so() -> None:
    async def run() -> None:
        async with serving(Limits(max_message_bytes=1000)) as (host, _, url):
            async with agent(url) as client:
                await client.send('x' * 1000)
                await host.first(TextReceived)
                await client.send('x' * 1001)
                with pytest.raises(ConnectionClosedError):
                    await received(client)
                assert client.close_code == 1009
            lost = await host.first(ConnectionLost)
            assert lost.detail.startswith('refused by the transport: 1009')
            assert len(host.of(TextReceived)) == 1

    asyncio.run(run())


def test_a_client_that_stays_after_its_message_was_refused_is_cut() -> None:
    async def run() -> None:
        limits = Limits(max_message_bytes=10, close_timeout_s=0.3)
        async with serving(limits) as (host, _, url):
            raw = await RawClient.open(url)
            await raw.send_frame(1, b'x' * 11)
            await host.first(ConnectionLost)
            raw.close()

    asyncio.run(run())


def test_invalid_text_is_refused_with_1007() -> None:
    async def run() -> None:
        async with serving(SHORT) as (host, _, url):
            raw = await RawClient.open(url)
            await raw.send_frame(1, b'\xff\xfe')
            assert (await raw.next_frame())[1][:2] == b'\x03\xef'
            assert '1007' in (await host.first(ConnectionLost)).detail
            raw.close()

    asyncio.run(run())


def test_a_client_that_sends_too_fast_is_slowed_and_loses_nothing() -> None:
    async def run() -> None:
        limits = Limits(message_rate_hz=500.0, message_burst=50)
        async with serving(limits) as (host, _, url), agent(url) as client:
            started = asyncio.get_running_loop().time()
            for number in range(250):
                await client.send(str(number))
            await host.first(TextReceived, 250)
            took_s = asyncio.get_running_loop().time() - started
            assert took_s >= 0.35  # 200 beyond the burst at 500 a second, less some slack
            assert [item.text for item in host.of(TextReceived)] == [
                str(number) for number in range(250)
            ]

    asyncio.run(run())


def test_the_end_of_a_client_that_is_slowed_is_noticed_at_once() -> None:
    async def run() -> None:
        limits = Limits(message_rate_hz=0.1, message_burst=1)
        async with serving(limits) as (host, _, url):
            raw = await RawClient.open(url)
            for _ in range(3):
                await raw.send_frame(1, b'x')
            await host.first(TextReceived, 2)
            raw.reset()
            await host.first(ConnectionLost)
            assert len(host.of(TextReceived)) == 2

    asyncio.run(run())


def test_a_flood_of_one_client_does_not_keep_the_loop_from_others() -> None:
    async def run() -> None:
        limits = Limits(message_burst=100_000)
        async with serving(limits) as (host, _, url):
            raw = await RawClient.open(url)
            await host.first(ConnectionOpened)
            async with agent(url) as client:
                await raw.send_bytes(b'\x81\x81\0\0\0\0x' * 10_000)
                await host.first(TextReceived)
                await client.send('urgent')
                await until(
                    lambda: any(item.text == 'urgent' for item in host.of(TextReceived)), 'urgent'
                )
                counts = Counter(item.conn for item in host.of(TextReceived))
                assert counts[1] < 10_000
            raw.close()

    asyncio.run(run())


def test_a_client_that_pings_and_never_reads_is_cut() -> None:
    async def run() -> None:
        async with serving() as (host, transport, url):
            raw, _, _ = await stall(host, transport, url)
            ping = bytes((0x80 | PING, 0x80 | 100)) + b'\0\0\0\0' + b'p' * 100

            async def flood() -> None:
                for _ in range(1000):
                    await raw.send_bytes(ping * 500)

            with pytest.raises(ConnectionError):
                await flood()
            await host.first(ConnectionLost)
            raw.close()

    asyncio.run(run())


def test_a_silent_connection_without_a_session_is_closed_with_1001() -> None:
    async def run() -> None:
        async with serving(Limits(idle_timeout_s=0.3)) as (host, _, url):
            async with agent(url) as client, stream(url) as second:
                assert await until_closed(client) == []
                assert client.close_code == 1001
                assert 'no session' in (client.close_reason or '')
                assert host.of(StreamLost) == []
                await second.send(b'')
            await host.first(ConnectionLost)

    asyncio.run(run())


def test_messages_and_sessions_keep_a_connection_open() -> None:
    async def run() -> None:
        async with serving(Limits(idle_timeout_s=0.4)) as (host, transport, url):
            loop = asyncio.get_running_loop()
            async with agent(url) as talking, agent(url) as attached, agent(url) as silent:
                await host.first(ConnectionOpened, 3)
                transport.apply(message(2, 'session.ready', session_id='s'))
                transport.apply(message(3, 'no session'))
                started = loop.time()
                while loop.time() - started < 0.8:
                    await talking.send('x')
                    await asyncio.sleep(0.05)
                assert [lost.conn for lost in host.of(ConnectionLost)] == [3]
                assert silent.close_code == 1001
                assert attached.close_code is None

    asyncio.run(run())


def test_two_hundred_connections_leave_nothing_behind() -> None:
    async def visit(url: str, number: int) -> None:
        if number % 4 == 0:
            raw = await RawClient.open(url)
            raw.reset()
        elif number % 4 == 1:
            raw = RawClient.unopened()
            await raw.connect_only(url)
            raw.reset()
        else:
            async with agent(url) if number % 4 == 2 else stream(url) as client:
                await client.send('x')

    async def run() -> None:
        async with serving() as (host, transport, url):
            tasks = len(asyncio.all_tasks())
            for round_number in range(4):
                async with asyncio.TaskGroup() as group:
                    for number in range(50):
                        group.create_task(visit(url, number + round_number))
            await until(lambda: transport.stats() == [], 'no connection left')
            await until(lambda: len(asyncio.all_tasks()) == tasks, 'no task left')
            await until(lambda: not transport._sockets, 'no socket left')
            assert sorted(item.conn for item in host.of(ConnectionOpened)) == sorted(
                item.conn for item in host.of(ConnectionLost)
            )
            assert sorted(item.stream for item in host.of(StreamOpened)) == sorted(
                item.stream for item in host.of(StreamLost)
            )
            async with agent(url):
                pass

    asyncio.run(run())


def test_stopping_closes_everything_with_1001_and_refuses_newcomers() -> None:
    async def run() -> None:
        async with serving(SHORT) as (host, transport, url):
            stalled, _, _ = await stall(host, transport, url)
            waiting = RawClient.unopened()
            await waiting.connect_only(url)
            await until(lambda: len(transport._sockets) == 2, 'connected')
            async with agent(url) as client, stream(url) as second:
                await host.first(StreamOpened)
                loop = asyncio.get_running_loop()
                started = loop.time()
                await transport.stop(1.0)
                assert loop.time() - started < 2.0
                assert (client.close_code, second.close_code) == (1001, 1001)
            assert len(host.of(ConnectionLost)) == 2
            assert len(host.of(StreamLost)) == 1
            with pytest.raises(OSError):  # noqa: PT011 - the text is the system's
                async with agent(url):
                    pass
            stalled.close()
            waiting.close()

    asyncio.run(run())


def test_stopping_does_not_wait_for_handshakes() -> None:
    async def run() -> None:
        async with serving() as (_, transport, url):
            waiting = RawClient.unopened()
            await waiting.connect_only(url)
            await until(lambda: len(transport._sockets) == 1, 'connected')
            loop = asyncio.get_running_loop()
            started = loop.time()
            await transport.stop(5.0)
            assert loop.time() - started < 2.0
            waiting.close()

    asyncio.run(run())


def test_a_fault_of_the_bridge_ends_the_connection_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        async with serving() as (host, _, url):

            def fail(input_: object) -> None:
                if isinstance(input_, TextReceived):
                    raise RuntimeError('a fault of ours')

            host.on_post = fail
            async with agent(url) as client:
                await client.send('x')
                with pytest.raises(ConnectionClosedError):
                    await received(client)
                assert client.close_code == 1011
            await host.first(ConnectionLost)

    asyncio.run(run())
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1


def test_the_life_of_connections_is_logged_without_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)

    async def run() -> None:
        async with serving() as (host, transport, url), agent(url), stream(url):
            await host.first(StreamOpened)
            assert stats_of(transport, 1).kind == 'control connection'
            assert stats_of(transport, 2).kind == 'stream connection'
            assert SESSION_TOKEN not in repr(transport.stats())

    asyncio.run(run())
    said = '\n'.join(
        record.getMessage() for record in caplog.records if record.name.startswith('awp_')
    )
    assert 'control connection opened conn=1 peer=127.0.0.1:' in said
    assert 'stream connection lost conn=2' in said
    assert TOKEN not in said
    assert SESSION_TOKEN not in said
