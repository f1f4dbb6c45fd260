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
_FORCE = struct.Struct('<3d24x')
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
    """

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self._block = b''
        self._end = 0
        self._sizes = (-1, -1, -1)
        self._rows = _COUNT

    def read(self, raw: bytes) -> tuple[int, Numbers, Numbers, Numbers]:
        """
        Return stamp in ns, positions, velocities, efforts.

        :raises NotPlainCdr: the bytes are no plain JointState
        """
        try:
            seconds, nanos = _TIME.unpack_from(raw, _BODY)
            # Frame and names are the bytes between the stamp and the first row.
            if not (self._end and raw.startswith(self._block, 12)):
                self._learn(raw)
            rows = self._as_before(raw) or self._read_rows(raw)
        except (struct.error, UnicodeDecodeError) as error:
            self._end = 0
            raise NotPlainCdr(str(error)) from error
        return seconds * 1_000_000_000 + nanos, *rows

    def _as_before(self, raw: bytes) -> tuple[Numbers, Numbers, Numbers] | None:
        """Read the rows in one go, if they are as long as those of the message before."""
        first, second, _ = self._sizes
        if first < 0 or len(raw) - self._end < self._rows.size:
            return None
        found = self._rows.unpack_from(raw, self._end)
        after = first + 1
        last = after + second + 1
        if (found[0], found[after], found[last]) != self._sizes:
            return None
        return found[1:after], found[after + 1 : last], found[last + 1 :]

    def _read_rows(self, raw: bytes) -> tuple[Numbers, Numbers, Numbers]:
        """Read the rows one by one, and learn how long they are."""
        self._sizes = (-1, -1, -1)
        rows, pattern, at = [], '<', self._end
        for _ in range(3):
            begin = _aligned(at, 4)
            row, end = _doubles(raw, at)
            gap = end - begin - 4 - 8 * len(row)
            pattern += f'{begin - at}xI{gap}x{len(row)}d'
            rows.append(row)
            at = end
        self._rows = struct.Struct(pattern)
        self._sizes = (len(rows[0]), len(rows[1]), len(rows[2]))
        return rows[0], rows[1], rows[2]

    def _learn(self, raw: bytes) -> None:
        _check_plain(raw)
        _, at = _text(raw, 12)
        count, at = _count(raw, at)
        names = []
        for _ in range(count):
            name, at = _text(raw, at)
            names.append(name.decode())
        self.names, self._block, self._end = tuple(names), raw[12:at], at
        self._sizes = (-1, -1, -1)


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


def read_wrench_force(raw: bytes) -> Numbers:
    """
    Return the force x, y, z of a geometry_msgs/msg/WrenchStamped, N.

    :raises NotPlainCdr: the bytes are no plain WrenchStamped
    """
    _check_plain(raw)
    try:
        _, at = _text(raw, _BODY + _TIME.size)
        return _FORCE.unpack_from(raw, _aligned(at, 8))
    except struct.error as error:
        raise NotPlainCdr(str(error)) from error


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
