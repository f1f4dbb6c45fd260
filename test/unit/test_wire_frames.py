"""Frames, binary and inline: the published vectors, our own, and every refusal."""

from base64 import b64encode
from dataclasses import replace
from importlib.resources import files
import json
from pathlib import Path
from typing import Any

import pytest

from awp_ros_bridge.wire.codec import MAX_SAFE_INT
from awp_ros_bridge.wire.errors import ErrorCode
from awp_ros_bridge.wire.frames import (
    decode_binary,
    decode_inline,
    encode_binary,
    encode_inline,
    END_OF_BURST,
    EXTENSIONS,
    Frame,
    FrameFault,
    KEYFRAME,
    RESYNC,
)

Json = dict[str, Any]


def published(kind: str) -> list[Any]:
    """Return the published vectors of one kind, or one parameter set that skips."""
    try:
        path = Path(str(files('awp_conformance'))) / '_spec' / 'frames.json'
        vectors = json.loads(path.read_text())['vectors']
    except ModuleNotFoundError:
        reason = 'awp-conformance, which carries the vectors, is not installed'
        return [pytest.param({}, marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(v, id=v['name']) for v in vectors if kind in v]


@pytest.mark.parametrize('vector', published('expect'))
def test_published_vector(vector: Json) -> None:
    # AWP-DAT-008
    data, expect = bytes.fromhex(vector['hex']), vector['expect']
    frame = decode_binary(data)
    assert frame.channel_id == expect['channel_id']
    assert frame.seq == expect['seq']
    assert frame.ts_mono_ns == expect['ts_mono_ns']
    assert frame.flags == expect['flags']
    assert bool(frame.flags & KEYFRAME) == expect['keyframe']
    assert bool(frame.flags & END_OF_BURST) == expect['end_of_burst']
    assert bool(frame.flags & RESYNC) == expect.get('resync', False)
    assert frame.payload.hex() == expect['payload_hex']
    assert len(frame.payload) == expect['payload_len']
    assert frame.tick == expect.get('tick')
    assert frame.ts_sim_ns == expect.get('ts_sim_ns')
    assert frame.ts_send_ns == expect.get('ts_send_ns')
    assert frame.vendor == {v['type']: bytes(v['value']) for v in expect.get('vendor', [])}
    if vector['name'] not in ('unknown_extension', 'reserved_bits_set'):
        assert encode_binary(frame) == data


@pytest.mark.parametrize('vector', published('expect_error'))
def test_published_malformed_vector(vector: Json) -> None:
    # AWP-DAT-008
    with pytest.raises(FrameFault) as caught:
        decode_binary(bytes.fromhex(vector['hex']))
    assert caught.value.code.message == vector['expect_error']


# ---------------------------------------------------------------- own vectors, written by hand

OURS = [
    (
        Frame(1, 2, 3, 0, b''),
        '41575046 01 00 0100 0200000000000000 0300000000000000 00000000',
    ),
    (
        Frame(0x1234, 1, 0, KEYFRAME | EXTENSIONS, b'ab', ts_send_ns=0x0102),
        '41575046 01 05 3412 0100000000000000 0000000000000000 02000000'
        ' 0a00 03 08 0201000000000000 6162',
    ),
    (
        Frame(1, 1, 0, EXTENSIONS, b'z', ts_sim_ns=-1, ts_send_ns=1),
        '41575046 01 04 0100 0100000000000000 0000000000000000 01000000'
        ' 1400 02 08 ffffffffffffffff 03 08 0100000000000000 7a',
    ),
    (
        Frame(1, 1, 0, EXTENSIONS, b'', tick=1, ts_sim_ns=2, ts_send_ns=3, vendor={0x80: b''}),
        '41575046 01 04 0100 0100000000000000 0000000000000000 00000000'
        ' 2000 01 08 0100000000000000 02 08 0200000000000000 03 08 0300000000000000 80 00',
    ),
    (
        Frame(1, 1, 0, KEYFRAME | END_OF_BURST | RESYNC, b''),
        '41575046 01 0b 0100 0100000000000000 0000000000000000 00000000',
    ),
]


@pytest.mark.parametrize(('frame', 'text'), OURS)
def test_own_vector(frame: Frame, text: str) -> None:
    data = bytes.fromhex(text)
    assert encode_binary(frame) == data
    assert decode_binary(data) == frame
    judge = pytest.importorskip('awp_conformance.frames')
    theirs = judge.decode(data)
    assert (theirs.flags, theirs.payload, theirs.reserved) == (frame.flags, frame.payload, [])
    assert dict(theirs.vendor) == frame.vendor


def test_the_extension_flag_follows_the_contents() -> None:
    # AWP-DAT-006
    assert decode_binary(encode_binary(Frame(1, 1, 0, EXTENSIONS, b''))).flags == 0
    assert decode_binary(encode_binary(Frame(1, 1, 0, 0, b'', tick=0))).flags == EXTENSIONS
    assert decode_binary(encode_binary(Frame(1, 1, 0, 0, b'', ts_sim_ns=0))).ts_sim_ns == 0


def test_reads_any_buffer_and_keeps_no_view() -> None:
    data = bytearray(encode_binary(Frame(1, 1, 0, 0, b'abc', vendor={0xFF: b'v'})))
    frame = decode_binary(data)
    data[-1] = 0
    assert (frame.payload, frame.vendor) == (b'abc', {0xFF: b'v'})


def raw(flags: int = 0, rest: str = '', channel: int = 1, seq: int = 1, size: int = 0) -> bytes:
    head = b'AWPF' + bytes((1, flags)) + channel.to_bytes(2, 'little')
    head += seq.to_bytes(8, 'little') + bytes(8) + size.to_bytes(4, 'little')
    return head + bytes.fromhex(rest)


@pytest.mark.parametrize(
    ('data', 'words'),
    [
        (b'', '0 bytes'),
        (raw()[:-1], '27 bytes'),
        (b'awpf' + raw()[4:], 'magic'),
        (b'AWPF\x00' + raw()[5:], 'version 0'),
        (raw(flags=8), 'resync'),
        (raw(flags=0xF8), 'resync'),
        (raw(channel=0), 'channel 0'),
        (raw(flags=4), 'extension block is missing'),
        (raw(flags=4, rest='00'), 'extension block is missing'),
        (raw(flags=4, rest='0100'), 'ext_len'),
        (raw(flags=4, rest='010001'), 'beyond the extension block'),
        (raw(flags=4, rest='0300 80 02 00'), 'beyond the extension block'),
        (raw(flags=4, rest='0300 80 02 00 00'), 'beyond the extension block'),
        (raw(flags=4, rest='0400 80 00 80 00'), 'twice'),
        (raw(flags=4, rest='0400 3f 00 3f 00'), 'twice'),
        (raw(flags=4, rest='0900 02 07 00000000000000'), 'registered with 8'),
        (raw(size=1), 'payload_len'),
        (raw(size=0xFFFFFFFF), 'payload_len'),
        (raw(rest='00'), 'payload_len'),
        (raw(flags=4, rest='0000', size=1), 'payload_len'),
    ],
)
def test_malformed(data: bytes, words: str) -> None:
    # AWP-DAT-010
    with pytest.raises(FrameFault, match=words) as caught:
        decode_binary(data)
    assert caught.value.code is ErrorCode.MALFORMED


@pytest.mark.parametrize(
    'data',
    [
        raw(seq=2**53),
        raw(seq=2**64 - 1),
        raw(flags=4, rest='0a00 01 08 0000000000002000'),
        raw(flags=4, rest='0a00 02 08 000000000000e0ff'),
        raw(flags=4, rest='0a00 03 08 ffffffffffffffff'),
    ],
)
def test_binary_integer_range(data: bytes) -> None:
    with pytest.raises(FrameFault) as caught:
        decode_binary(data)
    assert caught.value.code is ErrorCode.INTEGER_RANGE


def test_an_empty_extension_block_is_fine() -> None:
    assert decode_binary(raw(flags=4, rest='0000')).flags == EXTENSIONS


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        ({'channel_id': 0}, 'channel_id 0'),
        ({'channel_id': 65536}, 'channel_id 65536'),
        ({'seq': -1}, 'seq -1'),
        ({'seq': 2**53}, 'out of range'),
        ({'ts_mono_ns': -1}, 'ts_mono_ns -1'),
        ({'ts_mono_ns': 2**53}, 'out of range'),
        ({'tick': -1}, 'tick -1'),
        ({'tick': 2**53}, 'out of range'),
        ({'ts_sim_ns': -(2**53)}, 'out of range'),
        ({'ts_send_ns': -1}, 'ts_send_ns -1'),
        ({'ts_send_ns': 2**53}, 'out of range'),
        ({'flags': 16}, 'reserved'),
        ({'flags': -1}, 'reserved'),
        ({'flags': RESYNC}, 'resync needs keyframe'),
    ],
)
def test_own_mistakes_are_not_sent(change: Json, words: str) -> None:
    fields: Json = {'channel_id': 1, 'seq': 1, 'ts_mono_ns': 0, 'flags': 0, 'payload': b''}
    frame = Frame(**{**fields, **change})
    for encode in (encode_binary, encode_inline):
        with pytest.raises(ValueError, match=words) as caught:
            encode(frame)
        assert not isinstance(caught.value, FrameFault)


@pytest.mark.parametrize('vendor', [{0x7F: b''}, {0x100: b''}, {0x80: bytes(256)}])
def test_own_vendor_extensions_are_checked(vendor: dict[int, bytes]) -> None:
    with pytest.raises(ValueError, match='vendor extension'):
        encode_binary(Frame(1, 1, 0, 0, b'', vendor=vendor))


# ---------------------------------------------------------------- inline

INLINE: Json = {'channel_id': 1, 'seq': 2, 'ts_mono_ns': 3, 'flags': 0, 'payload_b64': 'YWI='}


@pytest.mark.parametrize(('frame', '_'), OURS)
def test_inline_frames_are_canonical_and_come_back(frame: Frame, _: str) -> None:
    # AWP-DAT-004
    params = encode_inline(frame)
    flags = frame.flags & ~EXTENSIONS
    assert decode_inline(params) == replace(frame, flags=flags, vendor={})
    spec = pytest.importorskip('awp_conformance.spec')
    assert spec.schema_errors('frame-inline', params, sender=True) == []


def test_inline_field_names() -> None:
    frame = Frame(1, 2, 3, 5, b'\x00\xff\xfe', tick=4, ts_sim_ns=-5, ts_send_ns=6)
    assert encode_inline(frame) == {
        'channel_id': 1,
        'seq': 2,
        'ts_mono_ns': 3,
        'flags': 1,
        'payload_b64': b64encode(b'\x00\xff\xfe').decode(),
        'tick': 4,
        'ts_sim_ns': -5,
        'ts_send_ns': 6,
    }


@pytest.mark.parametrize(
    ('change', 'field', 'value'),
    [
        ({}, 'payload', b'ab'),
        ({'payload_b64': ''}, 'payload', b''),
        ({'payload_b64': '+/+/'}, 'payload', b'\xfb\xff\xbf'),
        ({'seq': 7.0}, 'seq', 7),
        ({'flags': 0xF1}, 'flags', KEYFRAME),
        ({'flags': 0x04}, 'flags', 0),
        ({'flags': 9}, 'flags', KEYFRAME | RESYNC),
        ({'ts_sim_ns': -MAX_SAFE_INT}, 'ts_sim_ns', -MAX_SAFE_INT),
        ({'channel_id': 65535}, 'channel_id', 65535),
        ({'unknown': None, 'x-acme.a': 1}, 'seq', 2),
    ],
)
def test_inline_is_read(change: Json, field: str, value: Any) -> None:
    params = {**INLINE, **change}
    assert getattr(decode_inline(params), field) == value
    spec = pytest.importorskip('awp_conformance.spec')
    assert spec.schema_errors('frame-inline', params) == []


@pytest.mark.parametrize(
    ('change', 'code'),
    [
        *(({name: None}, ErrorCode.MALFORMED) for name in INLINE),
        *(({name: '1'}, ErrorCode.MALFORMED) for name in INLINE),
        *(({name: True}, ErrorCode.MALFORMED) for name in INLINE),
        *(({name: -1}, ErrorCode.MALFORMED) for name in INLINE),
        *(({name: 0.5}, ErrorCode.MALFORMED) for name in INLINE),
        ({'channel_id': 0}, ErrorCode.MALFORMED),
        ({'channel_id': 65536}, ErrorCode.MALFORMED),
        ({'flags': 256}, ErrorCode.MALFORMED),
        ({'flags': 8}, ErrorCode.MALFORMED),
        ({'tick': None}, ErrorCode.MALFORMED),
        ({'tick': -1}, ErrorCode.MALFORMED),
        ({'ts_send_ns': -1}, ErrorCode.MALFORMED),
        ({'ts_sim_ns': 'now'}, ErrorCode.MALFORMED),
        ({'payload_b64': 'YWI'}, ErrorCode.MALFORMED),
        ({'payload_b64': 'YWI=\n'}, ErrorCode.MALFORMED),
        ({'payload_b64': 'Y W='}, ErrorCode.MALFORMED),
        ({'payload_b64': 'YW-_'}, ErrorCode.MALFORMED),
        ({'payload_b64': 'YQ==' * 2}, ErrorCode.MALFORMED),
        ({'payload_b64': '='}, ErrorCode.MALFORMED),
        ({'payload_b64': '\u00e4AAA'}, ErrorCode.MALFORMED),
        ({'seq': 2**53}, ErrorCode.INTEGER_RANGE),
        ({'ts_mono_ns': 1e16}, ErrorCode.INTEGER_RANGE),
        ({'ts_sim_ns': -(2**53)}, ErrorCode.INTEGER_RANGE),
    ],
)
def test_inline_is_refused(change: Json, code: ErrorCode) -> None:
    with pytest.raises(FrameFault) as caught:
        decode_inline({**INLINE, **change})
    assert caught.value.code is code


@pytest.mark.parametrize('name', INLINE)
def test_inline_fields_are_needed(name: str) -> None:
    with pytest.raises(FrameFault, match=name):
        decode_inline({key: value for key, value in INLINE.items() if key != name})
