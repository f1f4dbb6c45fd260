"""Owns what a client says to open a WebSocket and in it, as bytes made by hand (RFC 6455)."""

from __future__ import annotations

import struct
from urllib.parse import urlsplit

NO_MASK = b'\0\0\0\0'  # allowed, and leaves the payload as it is
TEXT = 1


def handshake(url: str, token: str, *more: str) -> bytes:
    """Return the request that opens a control connection, with more lines of headers."""
    where = urlsplit(url)
    lines = [
        f'GET {where.path or "/"} HTTP/1.1',
        f'Host: {where.netloc}',
        'Upgrade: websocket',
        'Connection: Upgrade',
        'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Protocol: awp',
        f'Authorization: Bearer {token}',
        *more,
    ]
    return '\r\n'.join([*lines, '', '']).encode()


def frame(
    payload: bytes, opcode: int = TEXT, *, fin: bool = True, mask: bytes = NO_MASK
) -> bytes:
    """Return a masked frame as a client sends it."""
    first = opcode | (0x80 if fin else 0)
    size = len(payload)
    if size < 126:
        head = struct.pack('!BB', first, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack('!BBH', first, 0xFE, size)
    else:
        head = struct.pack('!BBQ', first, 0xFF, size)
    if mask == NO_MASK:
        return head + mask + payload
    stream = (mask * (size // 4 + 1))[:size]
    masked = (int.from_bytes(payload) ^ int.from_bytes(stream)).to_bytes(size)
    return head + mask + masked
