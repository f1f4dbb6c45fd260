"""What waits on a connection and what leaves first, without sockets."""

from __future__ import annotations

import pytest
from transport_rig import frame

from awp_ros_bridge.engine.effects import SendFrame
from awp_ros_bridge.transport.limits import Limits
from awp_ros_bridge.transport.outbox import Outbox
from awp_ros_bridge.wire.frames import KEYFRAME, RESYNC


def drained(outbox: Outbox) -> list[str | tuple[int, int]]:
    """Take everything: messages as they are, frames as channel and seq."""
    left: list[str | tuple[int, int]] = []
    while (item := outbox.take()) is not None:
        left.append((item.channel_id, item.seq) if isinstance(item, SendFrame) else item)
    return left


def test_control_messages_leave_in_order_and_before_frames_that_came_earlier() -> None:
    outbox = Outbox(Limits())
    outbox.put_frame(frame(1, 1))
    outbox.put_frame(frame(1, 1, channel_id=2, reliable=True))
    assert outbox.put_message('first')
    assert outbox.put_message('second')
    assert drained(outbox) == ['first', 'second', (1, 1), (2, 1)]
    assert outbox.is_empty


def test_a_latest_wins_channel_holds_only_the_newest_frame() -> None:
    # AWP-DAT-002, AWP-TRN-009
    outbox = Outbox(Limits())
    for seq in range(1, 101):
        assert outbox.put_frame(frame(1, seq)) == 0
        assert outbox.stats().frames == {1: 1}
    assert drained(outbox) == [(1, 100)]
    assert outbox.stats().dropped == {1: 99}


def test_a_replaced_frame_keeps_its_place_in_line() -> None:
    outbox = Outbox(Limits())
    outbox.put_frame(frame(1, 1, channel_id=1))
    outbox.put_frame(frame(1, 1, channel_id=2))
    outbox.put_frame(frame(1, 2, channel_id=1))
    assert drained(outbox) == [(1, 2), (2, 1)]


def test_the_resync_mark_of_a_replaced_frame_passes_to_its_successor() -> None:
    # AWP-TRN-012: the first frame on a new stream connection carries it
    outbox = Outbox(Limits())
    outbox.put_frame(frame(1, 1, flags=KEYFRAME | RESYNC))
    outbox.put_frame(frame(1, 2, flags=KEYFRAME))
    left = outbox.take()
    assert isinstance(left, SendFrame)
    assert (left.seq, left.flags) == (2, KEYFRAME | RESYNC)
    outbox.put_frame(frame(1, 3, flags=KEYFRAME))
    assert outbox.take() == frame(1, 3, flags=KEYFRAME)


def test_a_reliable_channel_keeps_every_frame_in_order() -> None:
    outbox = Outbox(Limits())
    for seq in range(1, 33):
        assert outbox.put_frame(frame(1, seq, reliable=True)) == 0
    assert drained(outbox) == [(1, seq) for seq in range(1, 33)]
    assert outbox.stats().dropped == {}


def test_channels_with_waiting_frames_take_turns() -> None:
    outbox = Outbox(Limits())
    for seq in (1, 2, 3):
        outbox.put_frame(frame(1, seq, channel_id=1, reliable=True))
    for seq in (1, 2):
        outbox.put_frame(frame(1, seq, channel_id=2, reliable=True))
    outbox.put_frame(frame(1, 9, channel_id=3))
    assert drained(outbox) == [(1, 1), (2, 1), (3, 9), (1, 2), (2, 2), (1, 3)]


def test_an_overflow_clears_the_channel_and_is_reported_once() -> None:
    outbox = Outbox(Limits(reliable_frames=4))
    outbox.put_frame(frame(1, 1, channel_id=2, reliable=True))
    reports = [outbox.put_frame(frame(1, seq, reliable=True)) for seq in range(1, 11)]
    assert reports == [0, 0, 0, 0, 5, 0, 0, 0, 0, 0]
    assert outbox.stats().dropped == {1: 10}
    assert drained(outbox) == [(2, 1)]


def test_after_an_overflow_a_channel_starts_from_its_resync_frame() -> None:
    # AWP-DAT-009: a receiver never sees an unannounced gap
    outbox = Outbox(Limits(reliable_frames=1))
    outbox.put_frame(frame(1, 1, reliable=True))
    assert outbox.put_frame(frame(1, 2, reliable=True)) == 2
    assert outbox.put_frame(frame(1, 3, reliable=True)) == 0
    assert outbox.put_frame(frame(1, 4, reliable=True, flags=KEYFRAME | RESYNC)) == 0
    assert drained(outbox) == [(1, 4)]
    assert outbox.put_frame(frame(1, 5, reliable=True)) == 0
    assert drained(outbox) == [(1, 5)]


def test_a_reliable_channel_is_bounded_in_bytes_but_takes_one_frame_of_any_size() -> None:
    outbox = Outbox(Limits(reliable_bytes=100))
    assert outbox.put_frame(frame(1, 1, reliable=True, payload=b'x' * 500)) == 0
    assert outbox.put_frame(frame(1, 2, reliable=True, payload=b'')) == 2
    outbox.put_frame(frame(1, 3, reliable=True, payload=b'x' * 60, flags=KEYFRAME | RESYNC))
    outbox.take()
    outbox.put_frame(frame(1, 4, reliable=True, payload=b'x' * 60))
    outbox.put_frame(frame(1, 5, reliable=True, payload=b'x' * 40))
    assert outbox.put_frame(frame(1, 6, reliable=True, payload=b'x')) == 3


def test_taking_frames_frees_their_bytes() -> None:
    outbox = Outbox(Limits(reliable_bytes=100))
    for seq in range(1, 50):
        outbox.put_frame(frame(1, 2 * seq, reliable=True, payload=b'x' * 50))
        assert outbox.put_frame(frame(1, 2 * seq + 1, reliable=True, payload=b'x' * 50)) == 0
        assert len(drained(outbox)) == 2


def test_dropped_channels_are_forgotten_with_their_history() -> None:
    outbox = Outbox(Limits(reliable_frames=1))
    outbox.put_frame(frame(1, 1, channel_id=1))
    outbox.put_frame(frame(1, 1, channel_id=2, reliable=True))
    outbox.put_frame(frame(1, 2, channel_id=2, reliable=True))
    outbox.drop_frames(1)
    outbox.drop_frames(2)
    outbox.drop_frames(3)
    assert outbox.is_empty
    outbox.put_frame(frame(1, 3, channel_id=2, reliable=True))
    assert drained(outbox) == [(2, 3)]


@pytest.mark.parametrize(
    ('limits', 'fits'),
    [(Limits(control_messages=3), 3), (Limits(control_bytes=10), 2)],
)
def test_control_messages_are_refused_and_never_dropped_beyond_the_bound(
    limits: Limits, fits: int
) -> None:
    outbox = Outbox(limits)
    assert [outbox.put_message('12345') for _ in range(5)] == [True] * fits + [False] * (5 - fits)
    stats = outbox.stats()
    assert (stats.control_messages, stats.control_bytes) == (fits, 5 * fits)
    assert drained(outbox) == ['12345'] * fits
    assert outbox.put_message('12345')


def test_a_message_larger_than_the_bound_passes_alone() -> None:
    outbox = Outbox(Limits(control_bytes=10))
    assert outbox.put_message('x' * 50)
    assert not outbox.put_message('x')


def test_clearing_frames_keeps_messages_and_clearing_keeps_nothing() -> None:
    outbox = Outbox(Limits())
    outbox.put_message('kept')
    outbox.put_frame(frame(1, 1))
    outbox.clear_frames()
    assert drained(outbox) == ['kept']
    outbox.put_message('gone')
    outbox.put_frame(frame(1, 2))
    outbox.clear()
    assert outbox.is_empty
    assert outbox.stats().control_bytes == 0
