"""
Owns the bearer credentials that open control connections, by their hashes (AWP-SEC-002).

A credential is kept as the plain SHA-256 of its token. A salt or a slow hash protects what people
choose; tokens are made by the machine, from 256 random bits (or given through the environment and
then refused when they look chosen), so there is nothing to guess a hash back from, and a slow hash
would only let strangers buy the bridge's time with wrong tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
import hashlib
import hmac
from math import log2
import re
import secrets

from awp_ros_bridge.engine.permissions import Permissions

TOKEN_PREFIX = 'awp_'
MIN_TOKEN_CHARS = 22  # what 128 random bits take in base64
_MIN_BITS = 72.0  # measured in the text itself; 128 random bits measure more
_CARRIED = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # a subprotocol carries no other (RFC 6455)
_WORDS = re.compile(r'[A-Za-z._-]+[0-9]{0,6}')
_LOWER_SHARE = 5  # words have so many small letters for each capital


@dataclass(frozen=True, slots=True)
class Credential:
    """
    One bearer credential.

    :param digest: SHA-256 of the token.
    """

    digest: bytes = field(repr=False)
    permissions: Permissions


class TokenGate:
    """
    The credentials that open a control connection; only digests are kept.

    It belongs to the thread of the bridge's loop.

    :ivar is_usable: False while it cannot be known which credentials are good; nobody is let in.
    """

    def __init__(self, credentials: Iterable[Credential]) -> None:
        self._known = tuple(credentials)
        self.is_usable = True

    def find(self, token: str) -> Permissions | None:
        """
        Return what a token allows, None where it is not known.

        Every known credential is compared, each in constant time, so that the time tells nothing.
        """
        presented = digest_of(token)
        found = None
        for each in self._known:
            if hmac.compare_digest(each.digest, presented):
                found = each.permissions
        return found if self.is_usable else None

    def still_gives(self, permissions: Permissions) -> bool:
        """Tell whether a credential that was let in is still one, with the same permissions."""
        return any(each.permissions == permissions for each in self._known)

    def replace(self, credentials: Iterable[Credential]) -> frozenset[str]:
        """
        Know these credentials from now on, and no others.

        :return: names of the credentials that are gone, or are not what they were.
        """
        known = tuple(credentials)
        gone = set(self._known) - set(known)
        self._known = known
        return frozenset(each.permissions.credential for each in gone)


def new_token() -> str:
    """Make a token from 256 random bits; its prefix lets scanners of secrets find it."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def digest_of(token: str) -> bytes:
    """Return the SHA-256 of a token."""
    return hashlib.sha256(token.encode('utf-8', 'surrogateescape')).digest()


def check_given(token: str) -> None:
    """
    Refuse a token that somebody gave and that could be guessed, or not be sent.

    It cannot tell every chosen token from a random one; what it refuses is certainly weak.

    :raises ValueError: why; the text does not hold the token
    """
    if len(token) < MIN_TOKEN_CHARS:
        raise ValueError(
            f'a token of {len(token)} characters was given, at least {MIN_TOKEN_CHARS} random'
            ' ones are needed'
        )
    if _CARRIED.fullmatch(token) is None:
        raise ValueError(
            'the token holds a character that a subprotocol cannot carry: use letters, digits,'
            " '-' and '_'"
        )
    if _measured_bits(token) < _MIN_BITS or _is_words(token):
        raise ValueError(
            'the token was chosen by somebody: it repeats itself, or is made of words'
        )


def _measured_bits(token: str) -> float:
    counts = Counter(token).values()
    return -sum(n * log2(n / len(token)) for n in counts)


def _is_words(token: str) -> bool:
    small = sum(map(str.islower, token))
    capitals = sum(map(str.isupper, token))
    return _WORDS.fullmatch(token) is not None and small >= _LOWER_SHARE * capitals
