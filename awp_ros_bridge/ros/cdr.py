"""
Owns reading the few message types whose rate matters straight from their serialized bytes.

Little-endian CDR as every current ROS 2 middleware writes it; anything else is told by
:class:`NotPlainCdr`, and the caller deserializes the ordinary way.
"""

from __future__ import annotations

from collections.abc import Iterator
import struct

_TIME = struct.Struct('<iI')
_COUNT = struct.Struct('<I')
_TRANSFORM = struct.Struct('<7d')
_BODY = 4  # alignment counts from behind the four bytes of encapsulation
_PLAIN = b'\x00\x01'

Numbers = tuple[float, ...]


class NotPlainCdr(ValueError):
    """Bytes in another representation, or not of the expected type."""


class JointStateReader:
    """
    Reads sensor_msgs/msg/JointState; the names, nearly always the same, are decoded once.

    An instance keeps what it saw: use it from one thread.

    :ivar names: joint names of the last message
    :ivar is_new_layout: whether the last message had other names than the one before
    """

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.is_new_layout = True
        self._block = b''
        self._end = 0

    def read(self, raw: bytes) -> tuple[int, Numbers, Numbers, Numbers]:
        """
        Return stamp in ns, positions, velocities, efforts.

        :raises NotPlainCdr: the bytes are no plain JointState
        """
        try:
            seconds, nanos = _TIME.unpack_from(raw, _BODY)
            # Frame and names are the bytes between the stamp and the first row.
            self.is_new_layout = not (self._end and raw[12 : self._end] == self._block)
            if self.is_new_layout:
                self._learn(raw)
            positions, at = _doubles(raw, self._end)
            velocities, at = _doubles(raw, at)
            efforts, _ = _doubles(raw, at)
        except (struct.error, UnicodeDecodeError) as error:
            self._end = 0
            raise NotPlainCdr(str(error)) from error
        return seconds * 1_000_000_000 + nanos, positions, velocities, efforts

    def _learn(self, raw: bytes) -> None:
        _check_plain(raw)
        _, at = _text(raw, 12)
        count, at = _count(raw, at)
        names = []
        for _ in range(count):
            name, at = _text(raw, at)
            names.append(name.decode())
        self.names, self._block, self._end = tuple(names), raw[12:at], at


def read_stamp_ns(raw: bytes) -> int:
    """
    Return the stamp of a message that begins with a std_msgs/msg/Header, in ns.

    :raises NotPlainCdr: the bytes are too short or of another representation
    """
    _check_plain(raw)
    try:
        seconds, nanos = _TIME.unpack_from(raw, _BODY)
    except struct.error as error:
        raise NotPlainCdr(str(error)) from error
    return int(seconds * 1_000_000_000 + nanos)


def walk_transforms(raw: bytes) -> Iterator[tuple[bytes, bytes, int, int]]:
    """
    Walk through a tf2_msgs/msg/TFMessage.

    :return: per transform child frame, parent frame, stamp in ns, and where its numbers stand,
        for :func:`read_transform`
    :raises NotPlainCdr: the bytes are no plain TFMessage
    """
    _check_plain(raw)
    try:
        count, at = _count(raw, _BODY)
        for _ in range(count):
            at = _aligned(at, 4)
            seconds, nanos = _TIME.unpack_from(raw, at)
            parent, at = _text(raw, at + 8)
            child, at = _text(raw, at)
            at = _aligned(at, 8)
            if at + 56 > len(raw):
                raise NotPlainCdr('a transform is cut off')
            yield child, parent, seconds * 1_000_000_000 + nanos, at
            at += 56
    except struct.error as error:
        raise NotPlainCdr(str(error)) from error


def read_transform(raw: bytes, at: int) -> Numbers:
    """Return translation x, y, z in m and rotation x, y, z, w of a transform."""
    return _TRANSFORM.unpack_from(raw, at)


def _check_plain(raw: bytes) -> None:
    if raw[:2] != _PLAIN:
        raise NotPlainCdr(f'representation {raw[:2].hex()} is not little-endian CDR')


def _aligned(at: int, size: int) -> int:
    return at + (_BODY - at) % size


def _count(raw: bytes, at: int) -> tuple[int, int]:
    at = _aligned(at, 4)
    (count,) = _COUNT.unpack_from(raw, at)
    if count > len(raw):
        raise NotPlainCdr(f'{count} items in {len(raw)} bytes')
    return count, at + 4


def _text(raw: bytes, at: int) -> tuple[bytes, int]:
    size, at = _count(raw, at)
    if at + size > len(raw):
        raise NotPlainCdr('a text is cut off')
    return raw[at : at + size - 1] if size else b'', at + size


def _doubles(raw: bytes, at: int) -> tuple[Numbers, int]:
    count, at = _count(raw, at)
    if not count:
        return (), at
    at = _aligned(at, 8)
    return struct.unpack_from(f'<{count}d', raw, at), at + 8 * count
