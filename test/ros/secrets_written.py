"""
Owns the search for secrets that were written: tokens of a test run in what its bridges left.

Every token that a test gives to a bridge or gets from one is noted here, and every file that a
bridge writes by itself. None of them may hold a token; nor may an error, a parameter, a topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
import re

LEAST_CHARS = 12  # a shorter one would be found by chance

_known: set[str] = set()
_places: dict[Path, None] = {}
_RUN = re.compile(rb'[A-Za-z0-9_-]{%d,}' % LEAST_CHARS)
_HEX = re.compile(r'[0-9a-f]*')


def note(secret: object) -> None:
    """Remember a secret of this run."""
    text = str(secret)
    if len(text) >= LEAST_CHARS:
        _known.add(text)


def watch(*places: Path) -> None:
    """Remember files, and folders of files, that a bridge or its guardian writes."""
    _places.update(dict.fromkeys(places))


def known() -> frozenset[str]:
    """Return the secrets that were noted so far."""
    return frozenset(_known)


def in_text(text: str) -> list[str]:
    """Return the secrets that a text holds, shortened so that they stay secret."""
    return sorted(_short(secret) for secret in _known if secret in text)


def in_places() -> Iterator[str]:
    """Yield where a watched file holds a secret."""
    for place in _places:
        files = sorted(place.rglob('*')) if place.is_dir() else [place]
        for path in files:
            if path.is_file():
                for secret in _in_bytes(path.read_bytes()):
                    yield f'{path} holds {_short(secret)}'


def _in_bytes(data: bytes) -> set[str]:
    """Look at the words that a token could be part of, each once: logs are long."""
    words = {match.group().decode() for match in _RUN.finditer(data)}
    found = words & _known
    for word in words - found:
        if not _HEX.fullmatch(word):  # hashes, by the thousand; as a whole they were compared
            found.update(secret for secret in _known if secret in word)
    return found


def _short(secret: str) -> str:
    return f'{secret[:6]}...'
