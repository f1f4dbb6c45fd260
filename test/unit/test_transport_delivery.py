"""What arrives, in what order, and what is given up when a receiver does not keep pace."""

from __future__ import annotations

import asyncio
import json

import pytest
from transport_rig import (
    agent,
    frame,
    message,
    received,
    serving,
    stall,
    stats_of,
    stream,
    until,
)

from awp_ros_bridge.engine.effects import CloseConnection, DropFrames, SendFrame
from awp_ros_bridge.engine.inputs import (
    BinaryReceived,
    ConnectionLost,
    ConnectionOpened,
    FramesDropped,
    StreamLost,
    StreamOpened,
    StreamReceived,
    TextReceived,
)
from awp_ros_bridge.transport.limits import Limits
from awp_ros_bridge.wire.frames import decode_binary, decode_inline, Frame, KEYFRAME, RESYNC

TEXT, BINARY, CLOSE = 1, 2, 8


@pytest.mark.parametrize('on_stream', [False, True])
def test_a_stalled_receiver_leaves_at_most_one_undelivered_frame_per_channel(
    on_stream: bool,
) -> None:
    # AWP-TRN-009, AWP-DAT-002
    async def run() -> None:
        async with serving() as (host, transport, url):
            raw, conn, seq = await stall(host, transport, url, on_stream=on_stream)
            taken = stats_of(transport, conn).frames
            # What the kernel took is a few frames, not seconds of them.
            assert taken <= 50
            last = seq + 500
            for number in range(seq + 1, last + 1):
                for channel_id in (1, 2, 3):
                    effect = frame(conn, number, channel_id=channel_id, inline=not on_stream)
                    transport.apply(effect)
                    waiting = stats_of(transport, conn).outbox.frames
                    assert max(waiting.values()) == 1
            stats = stats_of(transport, conn)
            assert stats.is_paused
            assert stats.frames == taken
            assert stats.outbox.dropped == {1: 500, 2: 499, 3: 499}
            newest: set[int] = set()
            while len(newest) < 3:
                opcode, payload = await raw.next_frame()
                assert opcode == (BINARY if on_stream else TEXT)
                if on_stream:
                    got = decode_binary(payload)
                else:
                    got = decode_inline(json.loads(payload)['params'])
                if got.seq == last:
                    newest.add(got.channel_id)
            raw.close()
            assert stats_of(transport, conn).frames == taken + 3
            assert [effect.seq for effect, _ in host.sent[-3:]] == [last] * 3

    asyncio.run(run())


def test_control_messages_overtake_frames_that_wait_and_none_is_lost() -> None:
    async def run() -> None:
        async with serving() as (host, transport, url):
            raw, conn, seq = await stall(host, transport, url)
            for channel_id in (1, 2, 3):
                transport.apply(frame(conn, seq + 1, channel_id=channel_id, inline=True))
            for number in range(1000):
                transport.apply(message(conn, f'm{number}'))
            order: list[str] = []
            while len(order) < 1003:
                _, payload = await raw.next_frame()
                body = json.loads(payload)
                if body['method'] != 'obs.frame':
                    order.append(body['method'])
                elif body['params']['seq'] == seq + 1:
                    order.append(f'frame {body["params"]["channel_id"]}')
            raw.close()
            assert order == [f'm{number}' for number in range(1000)] + [
                'frame 1',
                'frame 2',
                'frame 3',
            ]

    asyncio.run(run())


def test_a_frame_carries_the_time_at_which_it_leaves_not_at_which_it_was_made() -> None:
    # AWP-OBS-006
    async def run() -> None:
        async with serving() as (host, transport, url):
            raw, conn, seq = await stall(host, transport, url, on_stream=True)
            transport.apply(frame(conn, seq + 1))
            made_ns = host.now_ns()
            host.offset_ns = 5_000_000_000
            while True:
                got = decode_binary((await raw.next_frame())[1])
                if got.seq == seq + 1:
                    break
            raw.close()
            assert got.ts_send_ns is not None
            assert got.ts_send_ns >= made_ns + 5_000_000_000
            assert host.sent[-1] == (frame(conn, seq + 1), got.ts_send_ns)

    asyncio.run(run())


def test_a_reliable_channel_that_overflows_is_reported_once_and_resumes_with_a_resync() -> None:
    # AWP-DAT-009
    async def run() -> None:
        async with serving(Limits(reliable_frames=8)) as (host, transport, url):
            raw, conn, _ = await stall(host, transport, url, on_stream=True)
            for seq in range(1, 20):
                transport.apply(frame(conn, seq, channel_id=7, reliable=True))
            assert host.of(FramesDropped) == [FramesDropped(conn, 7, 9)]
            transport.apply(frame(conn, 20, channel_id=7, reliable=True, flags=KEYFRAME | RESYNC))
            transport.apply(frame(conn, 21, channel_id=7, reliable=True))
            got: list[Frame] = []
            while not got or got[-1].seq != 21:
                one = decode_binary((await raw.next_frame())[1])
                if one.channel_id == 7:
                    got.append(one)
            raw.close()
            assert [one.seq for one in got] == [20, 21]
            assert got[0].flags & RESYNC
            assert stats_of(transport, conn).outbox.dropped[7] == 19

    asyncio.run(run())


def test_an_answer_to_a_reported_drop_may_come_back_at_once() -> None:
    async def run() -> None:
        async with serving(Limits(reliable_frames=1)) as (host, transport, url):
            raw, conn, _ = await stall(host, transport, url, on_stream=True)

            def restart(input_: object) -> None:
                if isinstance(input_, FramesDropped):
                    transport.apply(
                        frame(conn, 3, channel_id=7, reliable=True, flags=KEYFRAME | RESYNC)
                    )

            host.on_post = restart
            for seq in (1, 2):
                transport.apply(frame(conn, seq, channel_id=7, reliable=True))
            assert stats_of(transport, conn).outbox.frames[7] == 1
            raw.close()

    asyncio.run(run())


def test_a_frame_may_be_answered_by_the_next_one_without_end() -> None:
    async def run() -> None:
        async with serving() as (host, transport, url), stream(url) as client:
            conn = (await host.first(StreamOpened)).stream

            def next_one(effect: SendFrame) -> None:
                if effect.seq < 3000:
                    transport.apply(frame(conn, effect.seq + 1, reliable=True))

            host.on_sent = next_one
            transport.apply(frame(conn, 1, reliable=True))
            seqs: list[int] = []
            while len(seqs) < 3000:
                got = await received(client)
                assert isinstance(got, bytes)
                seqs.append(decode_binary(got).seq)
            assert seqs == list(range(1, 3001))

    asyncio.run(run())


def test_dropped_channels_do_not_arrive() -> None:
    async def run() -> None:
        async with serving() as (host, transport, url):
            raw, conn, seq = await stall(host, transport, url, on_stream=True)
            transport.apply(frame(conn, 1, channel_id=2, reliable=True))
            transport.apply(frame(conn, 1, channel_id=3))
            transport.apply(DropFrames(conn, 1))
            transport.apply(DropFrames(conn, 2))
            assert stats_of(transport, conn).outbox.frames == {3: 1}
            while True:
                got = decode_binary((await raw.next_frame())[1])
                if got.channel_id == 3:
                    break
                assert (got.channel_id, got.seq < seq) == (1, True)
            raw.close()

    asyncio.run(run())


@pytest.mark.parametrize('limits', [Limits(control_messages=50), Limits(control_bytes=4000)])
def test_too_many_unread_control_messages_end_the_connection(limits: Limits) -> None:
    async def run() -> None:
        async with serving(limits) as (host, transport, url):
            raw, conn, _ = await stall(host, transport, url)
            for number in range(1000):
                transport.apply(message(conn, f'm{number}'))
            lost = await host.first(ConnectionLost)
            assert lost.conn == conn
            assert 'does not read' in lost.detail
            await raw.until_cut()
            raw.close()
            assert len(host.of(ConnectionLost)) == 1
            assert transport.stats() == []

    asyncio.run(run())


def test_a_stalled_client_does_not_slow_another() -> None:
    # F64
    async def run() -> None:
        async with serving() as (host, transport, url):
            raw, stalled, _ = await stall(host, transport, url, on_stream=True)
            async with stream(url) as quick:
                conn = (await host.first(StreamOpened, 2)).stream
                for seq in range(1, 501):
                    transport.apply(frame(stalled, 10_000 + seq))
                    transport.apply(frame(conn, seq))
                    got = await received(quick, 1.0)
                    assert isinstance(got, bytes)
                    assert decode_binary(got).seq == seq
                assert stats_of(transport, conn).outbox.dropped == {}
                assert stats_of(transport, stalled).outbox.frames == {1: 1}
            raw.close()

    asyncio.run(run())


def test_many_messages_and_large_frames_arrive_whole_and_in_order() -> None:
    async def run() -> None:
        async with serving() as (host, transport, url), agent(url) as client:
            conn = (await host.first(ConnectionOpened)).conn
            large = bytes(range(256)) * 8000
            for seq in (1, 2):
                transport.apply(frame(conn, seq, inline=True, reliable=True, payload=large))
            for number in range(3000):
                transport.apply(message(conn, f'm{number}'))
            got = [json.loads(await received(client)) for _ in range(3002)]
            frames = [body['params'] for body in got if body['method'] == 'obs.frame']
            assert [decode_inline(params).payload == large for params in frames] == [True, True]
            assert [decode_inline(params).seq for params in frames] == [1, 2]
            names = [body['method'] for body in got if body['method'] != 'obs.frame']
            assert names == [f'm{number}' for number in range(3000)]
            assert stats_of(transport, conn).messages == 3000

    asyncio.run(run())


def test_messages_are_reported_with_their_arrival() -> None:
    async def run() -> None:
        async with serving() as (host, _, url), agent(url) as client, stream(url) as second:
            before_ns = host.now_ns()
            await client.send('{"a":1}')
            await client.send(b'\x00\x01')
            await client.send('ü')
            await second.send(b'AWPF')
            await second.send('text')
            first = await host.first(TextReceived)
            assert first.text == '{"a":1}'
            assert before_ns <= first.received_ns <= host.now_ns()
            assert (await host.first(TextReceived, 2)).text == 'ü'
            assert (await host.first(BinaryReceived)).size == 2
            await host.first(StreamReceived, 2)
            assert [item.data for item in host.of(StreamReceived)] == [b'AWPF', 'text']

    asyncio.run(run())


def test_effects_for_connections_that_are_gone_do_nothing() -> None:
    async def run() -> None:
        async with serving() as (host, transport, url):
            async with agent(url):
                conn = (await host.first(ConnectionOpened)).conn
            await host.first(ConnectionLost)
            for effect in (
                message(conn),
                frame(conn, 1),
                DropFrames(conn, 1),
                CloseConnection(conn, 1000, ''),
                message(999),
            ):
                transport.apply(effect)
            assert host.sent == []

    asyncio.run(run())


def test_effects_between_a_reset_and_its_notice_do_nothing() -> None:
    async def run() -> None:
        async with serving() as (host, transport, url):
            raw, conn, seq = await stall(host, transport, url, on_stream=True)
            raw.reset()
            for number in range(100):
                transport.apply(frame(conn, seq + number))
                await asyncio.sleep(0)
            assert (await host.first(StreamLost)).stream == conn
            assert len(host.of(StreamLost)) == 1
            await until(lambda: transport.stats() == [], 'forgotten')

    asyncio.run(run())
