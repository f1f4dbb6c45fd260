"""Owns what the bridge reads of a JPEG: whether it is whole, its size and its colours."""

from __future__ import annotations

from typing import NamedTuple

_START, _END = b'\xff\xd8', b'\xff\xd9'
_SCAN = 0xDA
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE = frozenset({0x01, *range(0xD0, 0xD8)})


class NotJpeg(ValueError):
    """Bytes that are no whole JPEG, with what is wrong."""


class JpegSize(NamedTuple):
    """What the header of a JPEG says; one component is grey, three are colour."""

    width: int
    height: int
    components: int


def whole(data: bytes) -> bytes:
    """
    Return a JPEG without the zeros that some cameras put behind it.

    :raises NotJpeg: its beginning or its end is missing
    """
    if not data.startswith(_START):
        raise NotJpeg(f'begins with {data[:4].hex(" ") or "nothing"}, a JPEG with ff d8')
    found = data if data.endswith(_END) else data.rstrip(b'\0')
    if not found.endswith(_END):
        raise NotJpeg('ends before the end of the image')
    return found


def size_of(data: bytes) -> JpegSize:
    """
    Read the size of a JPEG from its header.

    :raises NotJpeg: the header is broken, or there is none
    """
    at = len(_START)
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            raise NotJpeg(f'has no marker at byte {at}')
        kind = data[at + 1]
        if kind == 0xFF:  # a byte that only fills
            at += 1
            continue
        if kind in _BARE:
            at += 2
            continue
        if kind == _SCAN:
            break
        length = int.from_bytes(data[at + 2 : at + 4], 'big')
        if kind in _FRAMES and at + 10 <= len(data):
            height = int.from_bytes(data[at + 5 : at + 7], 'big')
            width = int.from_bytes(data[at + 7 : at + 9], 'big')
            return JpegSize(width, height, data[at + 9])
        if length < 2:
            raise NotJpeg(f'has a segment of {length} bytes at byte {at}')
        at += 2 + length
    raise NotJpeg('does not say its size')
