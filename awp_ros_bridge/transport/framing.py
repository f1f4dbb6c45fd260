"""Owns the form of a frame on the wire, which is known only when it leaves (AWP-OBS-006)."""

from __future__ import annotations

import binascii
from dataclasses import replace

from awp_ros_bridge.engine.effects import SendFrame
from awp_ros_bridge.wire import codec
from awp_ros_bridge.wire.frames import encode_binary, encode_inline, Frame

LARGE_BYTES = 16 * 1024
# One call into C per chunk: a long one would keep the interpreter from the safety thread.
_CHUNK_BYTES = 3 * LARGE_BYTES
_NOTHING = '"payload_b64":""'


class _Base64:
    """The base64 of the newest large payload, which all who watch its channel inline share."""

    def __init__(self) -> None:
        self._payload = b''
        self._text = ''

    def text_of(self, payload: bytes) -> str:
        """Return the base64 of a payload."""
        if payload is not self._payload:
            view = memoryview(payload)
            chunks = [
                binascii.b2a_base64(view[at : at + _CHUNK_BYTES], newline=False)
                for at in range(0, len(payload), _CHUNK_BYTES)
            ]
            self._payload, self._text = payload, b''.join(chunks).decode('ascii')
        return self._text


_base64 = _Base64()  # of the loop's thread, as all of the transport


def encode_frame(effect: SendFrame, sent_ns: int) -> str | bytes:
    """
    Put a frame in the form of its binding, stamped with the time it leaves.

    :return: text for the inline binding (AWP-DAT-004), bytes for a stream (AWP-TRN-013).
    """
    frame = Frame(
        channel_id=effect.channel_id,
        seq=effect.seq,
        ts_mono_ns=effect.ts_mono_ns,
        flags=effect.flags,
        payload=effect.payload,
        ts_sim_ns=effect.sim_ns,
        ts_send_ns=sent_ns - effect.clock_zero_ns,  # AWP-OBS-006
    )
    if not effect.inline:
        return encode_binary(frame)
    if len(frame.payload) < LARGE_BYTES:
        return _inline(frame)
    before, _, after = _inline(replace(frame, payload=b'')).partition(_NOTHING)
    return f'{before}"payload_b64":"{_base64.text_of(effect.payload)}"{after}'


def _inline(frame: Frame) -> str:
    return codec.encode({'jsonrpc': '2.0', 'method': 'obs.frame', 'params': encode_inline(frame)})
