"""The form of frames as they leave: large inline ones are written in parts, and once for all."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from awp_ros_bridge.engine.effects import SendFrame
from awp_ros_bridge.transport import framing
from awp_ros_bridge.transport.framing import encode_frame, LARGE_BYTES
from awp_ros_bridge.wire import codec
from awp_ros_bridge.wire.frames import decode_binary, decode_inline, encode_inline, Frame, KEYFRAME

CHUNK = 3 * LARGE_BYTES


def effect(payload: bytes, *, inline: bool = True, session: str = 's', seq: int = 7) -> SendFrame:
    return SendFrame(
        conn=1,
        inline=inline,
        session_id=session,
        channel_id=2,
        seq=seq,
        ts_mono_ns=1_000,
        flags=KEYFRAME,
        payload=payload,
        sim_ns=-5,
        reliable=False,
        clock_zero_ns=100,
    )


@pytest.mark.parametrize(
    'size',
    [0, 1, LARGE_BYTES - 1, LARGE_BYTES, LARGE_BYTES + 1, CHUNK - 1, CHUNK, CHUNK + 2, 4 * CHUNK],
)
def test_a_frame_of_any_size_reads_as_if_it_were_written_at_once(size: int) -> None:
    payload = os.urandom(size)
    whole = Frame(2, 7, 1_000, KEYFRAME, payload, ts_sim_ns=-5, ts_send_ns=400)
    text = encode_frame(effect(payload), 500)
    assert isinstance(text, str)
    told = json.loads(text)
    assert told == json.loads(
        codec.encode({'jsonrpc': '2.0', 'method': 'obs.frame', 'params': encode_inline(whole)})
    )
    assert decode_inline(told['params']) == whole
    data = encode_frame(effect(payload, inline=False), 500)
    assert isinstance(data, bytes)
    assert decode_binary(data).payload == payload


def test_who_watches_the_same_image_shares_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks: list[int] = []
    real = framing.binascii.b2a_base64

    def counted(data: memoryview, **options: Any) -> bytes:
        if data:
            chunks.append(len(data))
        return real(data, **options)

    monkeypatch.setattr(framing.binascii, 'b2a_base64', counted)
    image, other = os.urandom(2 * CHUNK + 10), os.urandom(CHUNK)
    texts = {encode_frame(effect(image, session=f's{n}', seq=n), 500) for n in range(10)}
    assert len(texts) == 10  # each with its own number
    assert chunks == [CHUNK, CHUNK, 10]  # no call into C is longer
    seen = [json.loads(text)['params']['seq'] for text in texts]
    assert sorted(seen) == list(range(10))
    for payload in (other, image):  # another payload is not taken for it
        found = decode_inline(json.loads(encode_frame(effect(payload), 500))['params'])
        assert found.payload == payload
