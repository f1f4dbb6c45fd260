"""The way of samples without ROS: pace on a virtual clock, time of capture, serialized bytes."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from awp_ros_bridge.ros.capture_time import CaptureClock, Clocks
from awp_ros_bridge.ros.cdr import (
    JointStateReader,
    NotPlainCdr,
    read_stamp_ns,
    read_transform,
    walk_transforms,
)
from awp_ros_bridge.ros.feed import ChannelFeed

MS = 1_000_000
START_NS = 10_000_000_000


class Clock:
    """A clock that tests move, and a feed on it whose held samples it flushes in time."""

    def __init__(self, encode: Any = None) -> None:
        self.now_ns = START_NS
        self.due: list[int] = []
        self.posted: list[Any] = []
        self.failed: list[Exception] = []
        self.encoded = 0
        clocks = Clocks(lambda: self.now_ns, lambda: self.now_ns)
        self.feed = ChannelFeed(
            'proprio',
            encode or self._encode,
            self.posted.append,
            clocks,
            lambda wait_ns: self.due.append(self.now_ns + wait_ns),
            self.failed.append,
        )

    def _encode(self, value: Any) -> tuple[bytes, int | None]:
        self.encoded += 1
        return str(value).encode(), None

    def run_to(self, at_ns: int) -> None:
        """Move the clock and flush what became due on the way."""
        while self.due and min(self.due) <= at_ns:
            self.now_ns = max(self.now_ns, min(self.due))
            self.due.remove(min(self.due))
            self.feed.flush()
        self.now_ns = max(self.now_ns, at_ns)

    def stream(self, hz: float, seconds: float) -> int:
        """Offer samples at a rate."""
        count = round(hz * seconds)
        begin_ns = self.now_ns
        for k in range(count):
            self.run_to(begin_ns + round(k * 1e9 / hz))
            self.feed.offer(k)
        return count


def test_nobody_listens_and_nothing_is_encoded() -> None:
    clock = Clock()
    clock.stream(500.0, 2.0)
    assert (clock.encoded, clock.posted, clock.due) == (0, [], [])
    clock.feed.demand(10.0, fresh=True)
    assert [sample.payload for sample in clock.posted] == [b'999']


@pytest.mark.parametrize('hz', [10.0, 100.0, 1000.0])
def test_a_topic_at_the_wanted_rate_arrives_whole(hz: float) -> None:
    clock = Clock()
    clock.feed.demand(hz, fresh=True)
    count = clock.stream(hz, 3.0)
    assert len(clock.posted) == count


def test_uneven_arrival_within_the_burst_loses_nothing() -> None:
    clock = Clock()
    clock.feed.demand(1000.0, fresh=True)
    for k in range(2000):
        clock.run_to(START_NS + k * MS - k % 10 * MS // 10)
        if k % 20 == 19:
            clock.run_to(clock.now_ns + 80 * MS)
        clock.feed.offer(k)
    assert len(clock.posted) == 2000


@pytest.mark.parametrize('wanted_hz', [5.0, 20.0, 100.0, 240.0])
def test_a_faster_topic_is_thinned_out_and_the_newest_goes_out(wanted_hz: float) -> None:
    clock = Clock()
    clock.feed.demand(wanted_hz, fresh=True)
    clock.stream(500.0, 4.0)
    assert 0.95 * 4 * wanted_hz <= len(clock.posted) <= 1.05 * 4 * wanted_hz + 1
    values = [int(sample.payload) for sample in clock.posted]
    assert values == sorted(set(values))


def test_a_sample_that_waited_goes_out_though_none_follows() -> None:
    clock = Clock()
    clock.feed.demand(10.0, fresh=True)
    clock.feed.offer('a')
    clock.run_to(START_NS + 5 * MS)
    clock.feed.offer('b')
    clock.feed.offer('c')
    clock.run_to(START_NS + 1000 * MS)
    assert [sample.payload for sample in clock.posted] == [b'a', b'c']
    assert clock.posted[-1].captured_ns == START_NS + 5 * MS


def test_demand_may_change_while_a_sample_waits() -> None:
    clock = Clock()
    clock.feed.demand(10.0, fresh=True)
    clock.feed.offer('a')
    clock.feed.offer('b')
    clock.feed.demand(0.0, fresh=False)
    clock.run_to(START_NS + 1000 * MS)
    assert [sample.payload for sample in clock.posted] == [b'a']
    clock.feed.flush()
    assert clock.feed.last_arrival_ns == START_NS


def test_a_flush_that_comes_too_early_waits_on() -> None:
    clock = Clock()
    clock.feed.demand(10.0, fresh=True)
    clock.feed.offer('a')
    clock.feed.offer('b')
    clock.feed.flush()
    assert len(clock.posted) == 1
    clock.run_to(START_NS + 1000 * MS)
    assert len(clock.posted) == 2


def test_the_same_sample_for_a_second_observer_is_the_same() -> None:
    clock = Clock()
    clock.feed.demand(10.0, fresh=True)
    clock.feed.offer('latched', delay_ns=3 * MS)
    clock.now_ns += 10_000 * MS
    clock.feed.demand(10.0, fresh=True)
    assert clock.posted[0] is clock.posted[1]
    assert clock.posted[0].captured_ns == START_NS - 3 * MS
    assert clock.encoded == 1


def test_an_encoder_that_raises_is_told_and_the_next_sample_works() -> None:
    def encode(value: Any) -> tuple[bytes, int | None]:
        if value == 'bad':
            raise ValueError('bad')
        return b'good', None

    clock = Clock(encode)
    clock.feed.demand(1000.0, fresh=True)
    clock.feed.offer('bad')
    clock.run_to(START_NS + 100 * MS)
    clock.feed.offer('good')
    assert len(clock.failed) == 1
    assert [sample.payload for sample in clock.posted] == [b'good']


@pytest.mark.parametrize(
    ('age_ns', 'is_used'),
    [(0, True), (5 * MS, True), (1000 * MS, True), (1001 * MS, False), (-1, False)],
)
def test_a_stamp_counts_when_it_is_young_enough(age_ns: int, is_used: bool) -> None:
    ros_ns = 1_700_000_000_000_000_000
    clock = CaptureClock(Clocks(lambda: 0, lambda: 0))
    found = clock.capture(ros_ns - age_ns, START_NS, ros_ns)
    assert found.is_stamp_used is is_used
    assert found.captured_ns == (START_NS - age_ns if is_used else START_NS)


def test_capture_never_goes_back_nor_into_the_future() -> None:
    clock = CaptureClock(Clocks(lambda: 0, lambda: 0))
    assert clock.capture(None, START_NS, 77).is_stamp_used
    assert clock.capture(50, START_NS + 10, 99).captured_ns == START_NS
    assert clock.capture(None, START_NS + 20, 99).captured_ns == START_NS + 20


def test_simulated_time_is_told_beside_the_arrival() -> None:
    clock = CaptureClock(Clocks(lambda: 0, lambda: 0, lambda: True))
    assert clock.capture(5, START_NS, 7).sim_ns == 5
    found = clock.capture(None, START_NS, 7)
    assert (found.captured_ns, found.sim_ns) == (START_NS, 7)


# ---------------------------------------------------------------- serialized bytes


class Writer:
    """Writes little-endian CDR."""

    def __init__(self) -> None:
        self.raw = b'\x00\x01\x00\x00'

    def align(self, size: int) -> None:
        self.raw += b'\xaa' * ((4 - len(self.raw)) % size)

    def pack(self, fmt: str, *values: Any) -> None:
        self.align(struct.calcsize(f'<{fmt[-1]}'))
        self.raw += struct.pack(f'<{fmt}', *values)

    def text(self, text: str) -> None:
        self.pack('I', len(text.encode()) + 1)
        self.raw += text.encode() + b'\0'

    def doubles(self, values: Any) -> None:
        self.pack('I', len(values))
        for value in values:
            self.pack('d', value)


def joint_state(
    names: Any = ('a', 'joint_b'), rows: Any = ((1.0, 2.0), (3.0, 4.0), ()), frame: str = 'base'
) -> bytes:
    writer = Writer()
    writer.pack('iI', 12, 34)
    writer.text(frame)
    writer.pack('I', len(names))
    for name in names:
        writer.text(name)
    for row in rows:
        writer.doubles(row)
    return writer.raw


@pytest.mark.parametrize('frame', ['', 'x', 'base', 'base_link'])
@pytest.mark.parametrize('names', [(), ('a',), ('a', 'joint_b'), ('ä', 'b', 'long_name')])
def test_joint_states_are_read(frame: str, names: tuple[str, ...]) -> None:
    reader = JointStateReader()
    values = tuple(float(i) for i in range(len(names)))
    for _ in range(2):
        raw = joint_state(names, (values, (), values), frame) + b'\xee' * 3
        assert reader.read(raw) == (12_000_000_034, values, (), values)
        assert reader.names == names
    assert read_stamp_ns(joint_state()) == 12_000_000_034


@pytest.mark.parametrize(
    'raw',
    [
        b'',
        b'\x00\x01',
        b'\x00\x00' + joint_state()[2:],
        joint_state()[:40],
        joint_state()[:-30],
        joint_state()[:20] + b'\xff' * 40,
    ],
)
def test_bytes_of_another_kind_are_told(raw: bytes) -> None:
    reader = JointStateReader()
    with pytest.raises(NotPlainCdr):
        reader.read(raw)
    assert reader.read(joint_state())[1] == (1.0, 2.0)


def test_a_layout_that_changes_is_learned_anew() -> None:
    reader = JointStateReader()
    reader.read(joint_state())
    reader.read(joint_state(('c',), ((9.0,), (), ())))
    assert reader.names == ('c',)
    reader.read(joint_state(('c',), ((9.0,), (8.0,), ())))
    assert reader.read(joint_state(('c',), ((9.0,), (), (7.0,))))[1:] == ((9.0,), (), (7.0,))


def test_transforms_are_walked_through() -> None:
    writer = Writer()
    writer.pack('I', 2)
    for parent, child, z in (('world', 'base', 0.5), ('base', 'tool', 0.25)):
        writer.align(4)
        writer.pack('iI', 1, 2)
        writer.text(parent)
        writer.text(child)
        writer.pack('d', 0.0)
        writer.raw += struct.pack('<6d', 0.0, z, 0.0, 0.0, 0.0, 1.0)
    found = list(walk_transforms(writer.raw))
    assert [(c, p, s) for c, p, s, _ in found] == [
        (b'base', b'world', 1_000_000_002),
        (b'tool', b'base', 1_000_000_002),
    ]
    assert read_transform(writer.raw, found[1][3]) == (0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 1.0)
    for size in (3, 6, 20, 60, len(writer.raw) - 8):
        with pytest.raises(NotPlainCdr):
            list(walk_transforms(writer.raw[:size]))
    with pytest.raises(NotPlainCdr):
        read_stamp_ns(b'\x00\x01\x00')
