"""Owns the frame envelope, binary and inline (AWP-DAT-001 to AWP-DAT-010)."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Any

from awp_ros_bridge.wire.codec import MAX_SAFE_INT
from awp_ros_bridge.wire.errors import ErrorCode

Json = dict[str, Any]

KEYFRAME = 1
END_OF_BURST = 2
EXTENSIONS = 4
RESYNC = 8

_SENT_FLAGS = KEYFRAME | END_OF_BURST | RESYNC
_KNOWN_FLAGS = _SENT_FLAGS | EXTENSIONS

_MAGIC = b'AWPF'
_VERSION = 1
_TICK, _TS_SIM, _TS_SEND = 0x01, 0x02, 0x03
_FIRST_VENDOR_TYPE = 0x80

_HEADER = Struct('<4sBBHQQI')
_EXT_LEN = Struct('<H')
_UNSIGNED = Struct('<BBQ')
_SIGNED = Struct('<BBq')
# Header and extension block of the two usual observation frames in one go.
_HEADER_SEND = Struct('<4sBBHQQIHBBQ')
_HEADER_SIM_SEND = Struct('<4sBBHQQIHBBqBBQ')


class FrameFault(ValueError):
    """
    A received frame that is malformed, or carries an integer beyond 2^53-1.

    :param code: MALFORMED or INTEGER_RANGE.
    """

    def __init__(self, detail: str, code: ErrorCode = ErrorCode.MALFORMED) -> None:
        super().__init__(f'{code.message}: {detail}')
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Frame:
    """
    One frame of a channel.

    :param flags: KEYFRAME, END_OF_BURST, RESYNC. EXTENSIONS is set by decoding a binary frame and
        ignored by encoding, which knows itself whether there are any.
    :param ts_mono_ns: capture time on the session clock.
    :param ts_send_ns: time on the session clock at which the frame was handed to the transport.
    :param vendor: vendor extensions, type (0x80 to 0xff) to value; binary frames only.
    """

    channel_id: int
    seq: int
    ts_mono_ns: int
    flags: int
    payload: bytes
    tick: int | None = None
    ts_sim_ns: int | None = None
    ts_send_ns: int | None = None
    vendor: dict[int, bytes] = field(default_factory=dict)


# ---------------------------------------------------------------- sending


def encode_binary(frame: Frame) -> bytes:
    """
    Write a frame for a stream connection.

    :raises ValueError: a field beyond its range; the fault is ours.
    """
    flags = _sendable_flags(frame)
    send_ns, sim_ns, size = frame.ts_send_ns, frame.ts_sim_ns, len(frame.payload)
    head = (frame.channel_id, frame.seq, frame.ts_mono_ns, size)
    if send_ns is not None and frame.tick is None and not frame.vendor:
        flags |= EXTENSIONS
        if sim_ns is None:
            return (
                _HEADER_SEND.pack(_MAGIC, _VERSION, flags, *head, 10, _TS_SEND, 8, send_ns)
                + frame.payload
            )
        return (
            _HEADER_SIM_SEND.pack(
                _MAGIC, _VERSION, flags, *head, 20, _TS_SIM, 8, sim_ns, _TS_SEND, 8, send_ns
            )
            + frame.payload
        )
    extensions = _extensions(frame)
    if extensions:  # AWP-DAT-006: bit 2 if and only if there are any
        header = _HEADER.pack(_MAGIC, _VERSION, flags | EXTENSIONS, *head)
        return b''.join((header, _EXT_LEN.pack(len(extensions)), extensions, frame.payload))
    return _HEADER.pack(_MAGIC, _VERSION, flags, *head) + frame.payload


def encode_inline(frame: Frame) -> Json:
    """
    Return a frame as the params of ``obs.frame`` (AWP-DAT-004); vendor extensions are left out.

    :raises ValueError: a field beyond its range; the fault is ours.
    """
    params: Json = {
        'channel_id': frame.channel_id,
        'seq': frame.seq,
        'ts_mono_ns': frame.ts_mono_ns,
        'flags': _sendable_flags(frame),
        'payload_b64': binascii.b2a_base64(frame.payload, newline=False).decode('ascii'),
    }
    # AWP-DAT-007: extensions are named fields here
    if frame.tick is not None:
        params['tick'] = frame.tick
    if frame.ts_sim_ns is not None:
        params['ts_sim_ns'] = frame.ts_sim_ns
    if frame.ts_send_ns is not None:
        params['ts_send_ns'] = frame.ts_send_ns
    return params


def _sendable_flags(frame: Frame) -> int:
    """Check the numbers of a frame and return its flags without EXTENSIONS."""
    flags = frame.flags & ~EXTENSIONS
    if flags & ~_SENT_FLAGS:
        raise ValueError(f'flags {frame.flags:#x}: bits 4 to 7 are reserved')  # AWP-DAT-005
    if flags & RESYNC and not flags & KEYFRAME:
        raise ValueError(f'flags {frame.flags:#x}: resync needs keyframe')  # AWP-DAT-009
    if not (
        0 < frame.channel_id <= 0xFFFF  # AWP-TRN-005: channel 0 carries no frames
        and 0 <= frame.seq <= MAX_SAFE_INT
        and 0 <= frame.ts_mono_ns <= MAX_SAFE_INT
        and (frame.ts_send_ns is None or 0 <= frame.ts_send_ns <= MAX_SAFE_INT)
        and (frame.ts_sim_ns is None or -MAX_SAFE_INT <= frame.ts_sim_ns <= MAX_SAFE_INT)
        and (frame.tick is None or 0 <= frame.tick <= MAX_SAFE_INT)
        and len(frame.payload) <= 0xFFFFFFFF
    ):
        raise ValueError(  # AWP-CTL-009
            f'frame field out of range: channel_id {frame.channel_id}, seq {frame.seq}, '
            f'ts_mono_ns {frame.ts_mono_ns}, ts_send_ns {frame.ts_send_ns}, '
            f'ts_sim_ns {frame.ts_sim_ns}, tick {frame.tick}, {len(frame.payload)} bytes'
        )
    return flags


def _extensions(frame: Frame) -> bytes:
    entries = bytearray()
    if frame.tick is not None:
        entries += _UNSIGNED.pack(_TICK, 8, frame.tick)
    if frame.ts_sim_ns is not None:
        entries += _SIGNED.pack(_TS_SIM, 8, frame.ts_sim_ns)
    if frame.ts_send_ns is not None:
        entries += _UNSIGNED.pack(_TS_SEND, 8, frame.ts_send_ns)
    for kind, value in frame.vendor.items():
        if not (_FIRST_VENDOR_TYPE <= kind <= 0xFF and len(value) <= 0xFF):
            raise ValueError(
                f'vendor extension {kind:#x} of {len(value)} bytes: types are 0x80 to 0xff, '
                'values at most 255 bytes'
            )
        entries += bytes((kind, len(value))) + value
    return bytes(entries)


# ---------------------------------------------------------------- receiving


def decode_binary(data: bytes | bytearray) -> Frame:
    """
    Read a frame from a stream connection.

    :raises FrameFault: the frame is malformed (AWP-DAT-010), or a number beyond 2^53-1.
    """
    if len(data) < _HEADER.size:
        raise FrameFault(f'{len(data)} bytes, the header alone has {_HEADER.size}')
    magic, version, flags, channel_id, seq, ts_mono_ns, size = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:  # AWP-DAT-010
        raise FrameFault(f'magic {magic!r} and version {version}, not {_MAGIC!r} and {_VERSION}')
    flags &= _KNOWN_FLAGS  # AWP-DAT-005: ignore bits 4 to 7
    _check_flags(flags)
    if channel_id == 0:
        raise FrameFault('channel 0 carries no frames')  # AWP-TRN-005
    start = _HEADER.size
    fields: dict[str, int] = {}
    vendor: dict[int, bytes] = {}
    if flags & EXTENSIONS:
        start, fields, vendor = _read_extensions(data)
    if start + size != len(data):  # AWP-DAT-010: neither missing nor trailing bytes
        raise FrameFault(f'payload_len {size}, but {len(data) - start} bytes follow')
    for name, value in (('seq', seq), ('ts_mono_ns', ts_mono_ns), *fields.items()):
        _check_range(name, value)
    return Frame(channel_id, seq, ts_mono_ns, flags, bytes(data[start:]), vendor=vendor, **fields)


def _read_extensions(data: bytes | bytearray) -> tuple[int, dict[str, int], dict[int, bytes]]:
    """Return where the payload starts, the registered extensions and those of vendors."""
    at = _HEADER.size + _EXT_LEN.size
    if len(data) < at:
        raise FrameFault('the extension block is missing')
    end = at + _EXT_LEN.unpack_from(data, _HEADER.size)[0]
    if end > len(data):
        raise FrameFault(f'ext_len reaches {end - len(data)} bytes beyond the frame')
    entries: dict[int, bytes] = {}
    while at < end:
        if at + 2 > end or at + 2 + data[at + 1] > end:
            raise FrameFault('an extension reaches beyond the extension block')
        kind, stop = data[at], at + 2 + data[at + 1]
        if kind in entries:  # AWP-DAT-006
            raise FrameFault(f'extension {kind:#04x} twice')
        entries[kind] = bytes(data[at + 2 : stop])
        at = stop
    fields = {
        name: _registered(kind, entries[kind])
        for kind, name in ((_TICK, 'tick'), (_TS_SIM, 'ts_sim_ns'), (_TS_SEND, 'ts_send_ns'))
        if kind in entries
    }
    vendor = {kind: value for kind, value in entries.items() if kind >= _FIRST_VENDOR_TYPE}
    return end, fields, vendor


def _registered(kind: int, value: bytes) -> int:
    if len(value) != 8:
        raise FrameFault(f'extension {kind:#04x} of {len(value)} bytes, registered with 8')
    return int.from_bytes(value, 'little', signed=kind == _TS_SIM)


def decode_inline(params: Mapping[str, Any]) -> Frame:
    """
    Read a frame from the params of ``obs.frame`` or ``cmd.frame`` (AWP-DAT-004).

    :raises FrameFault: the params are malformed, or a number is beyond 2^53-1.
    """
    flags = _integer(params, 'flags', 0, 0xFF) & _SENT_FLAGS
    _check_flags(flags)
    return Frame(
        channel_id=_integer(params, 'channel_id', 1, 0xFFFF),
        seq=_integer(params, 'seq', 0, MAX_SAFE_INT),
        ts_mono_ns=_integer(params, 'ts_mono_ns', 0, MAX_SAFE_INT),
        flags=flags,
        payload=_payload(params.get('payload_b64')),
        tick=_optional(params, 'tick', 0),
        ts_sim_ns=_optional(params, 'ts_sim_ns', -MAX_SAFE_INT),
        ts_send_ns=_optional(params, 'ts_send_ns', 0),
    )


def _payload(text: Any) -> bytes:
    if not isinstance(text, str):
        raise FrameFault('payload_b64 must be a string')
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:  # binascii.Error is one
        raise FrameFault(f'payload_b64 is not base64: {error}') from None


def _optional(params: Mapping[str, Any], name: str, low: int) -> int | None:
    return _integer(params, name, low, MAX_SAFE_INT) if name in params else None


def _integer(params: Mapping[str, Any], name: str, low: int, high: int) -> int:
    value = params.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1.0 is an integer to JSON Schema
    if not isinstance(value, int) or isinstance(value, bool):
        raise FrameFault(f'{name} must be an integer')
    _check_range(name, value)
    if not low <= value <= high:
        raise FrameFault(f'{name} is {value}, must be {low} to {high}')
    return value


def _check_flags(flags: int) -> None:
    if flags & RESYNC and not flags & KEYFRAME:  # AWP-DAT-010
        raise FrameFault('resync without keyframe')


def _check_range(name: str, value: int) -> None:
    if not -MAX_SAFE_INT <= value <= MAX_SAFE_INT:
        # AWP-CTL-009
        raise FrameFault(f'{name} is beyond ±(2^53-1)', ErrorCode.INTEGER_RANGE)
