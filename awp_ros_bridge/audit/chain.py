"""
Owns the hash chain over lines (AWP-AUD-003).

``prev_hash`` of a record is the SHA-256 of the previous line without its line feed, as hex; null
in the first record of a log. The chain runs on from part to part.
"""

from __future__ import annotations

import hashlib

from awp_ros_bridge.audit.record import CLASS

_FIRST = b'{"class":"%b",' % CLASS.encode('ascii')


def finished(unchained: bytes, previous: str | None, first: bool) -> bytes:
    """
    Return the whole line of a record, without a line feed.

    :param previous: hash of the line before, None for the first line of a log.
    :param first: the line begins a file, so it names the record class (AWP-AUD-007).
    """
    if first:
        unchained = _FIRST + unchained[1:]
    if previous is None:
        return unchained + b',"prev_hash":null}'
    return b'%b,"prev_hash":"%b"}' % (unchained, previous.encode('ascii'))


def line_hash(line: bytes) -> str:
    """Return the hash that the next record carries."""
    return hashlib.sha256(line).hexdigest()
