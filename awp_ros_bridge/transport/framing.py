"""Owns the form of a frame on the wire, which is known only when it leaves (AWP-OBS-006)."""

from __future__ import annotations

from awp_ros_bridge.engine.effects import SendFrame
from awp_ros_bridge.wire import codec
from awp_ros_bridge.wire.frames import encode_binary, encode_inline, Frame


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
    return codec.encode({'jsonrpc': '2.0', 'method': 'obs.frame', 'params': encode_inline(frame)})
