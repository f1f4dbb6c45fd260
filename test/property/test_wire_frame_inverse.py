"""The frame codecs against arbitrary bytes, arbitrary frames, and the judge's own decoder."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
import pytest

from awp_ros_bridge.wire.codec import MAX_SAFE_INT
from awp_ros_bridge.wire.frames import (
    decode_binary,
    decode_inline,
    encode_binary,
    encode_inline,
    EXTENSIONS,
    Frame,
    FrameFault,
)

U53 = st.integers(0, MAX_SAFE_INT)
FRAMES = st.builds(
    Frame,
    channel_id=st.integers(1, 0xFFFF),
    seq=U53,
    ts_mono_ns=U53,
    flags=st.sampled_from([0, 1, 2, 3, 9, 11]),
    payload=st.binary(max_size=64),
    tick=st.none() | U53,
    ts_sim_ns=st.none() | st.integers(-MAX_SAFE_INT, MAX_SAFE_INT),
    ts_send_ns=st.none() | U53,
    vendor=st.dictionaries(st.integers(0x80, 0xFF), st.binary(max_size=255), max_size=3),
)


def is_extended(frame: Frame) -> bool:
    registered = (frame.tick, frame.ts_sim_ns, frame.ts_send_ns)
    return bool(frame.vendor) or any(value is not None for value in registered)


@given(FRAMES)
def test_binary_frames_come_back(frame: Frame) -> None:
    flags = frame.flags | (EXTENSIONS if is_extended(frame) else 0)
    assert decode_binary(encode_binary(frame)) == replace(frame, flags=flags)


@given(FRAMES)
def test_inline_frames_come_back(frame: Frame) -> None:
    assert decode_inline(encode_inline(frame)) == replace(frame, vendor={})


@given(FRAMES)
def test_the_judge_reads_the_same(frame: Frame) -> None:
    judge = pytest.importorskip('awp_conformance.frames')
    theirs = judge.decode(encode_binary(frame))
    assert theirs.as_inline() == encode_inline(frame)
    assert dict(theirs.vendor) == frame.vendor


@given(FRAMES, st.data())
def test_damaged_frames_meet_the_same_verdict(frame: Frame, data: st.DataObject) -> None:
    judge = pytest.importorskip('awp_conformance.frames')
    damaged = bytearray(encode_binary(frame))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(0, len(damaged))) :]
    try:
        theirs = judge.decode(bytes(damaged))
    except judge.FrameError:
        theirs = None
    if theirs is None or theirs.channel_id == 0:  # the judge looks for channel 0 elsewhere
        with pytest.raises(FrameFault):
            decode_binary(bytes(damaged))
        return
    ours = decode_binary(bytes(damaged))
    assert (ours.flags, ours.payload, dict(theirs.vendor)) == (
        theirs.flags,
        theirs.payload,
        ours.vendor,
    )


@given(st.binary() | st.binary().map(lambda tail: b'AWPF\x01' + tail))
def test_any_bytes_are_a_frame_or_a_fault(data: bytes) -> None:
    try:
        frame = decode_binary(data)
    except FrameFault:
        return
    assert 0 < frame.channel_id <= 0xFFFF
