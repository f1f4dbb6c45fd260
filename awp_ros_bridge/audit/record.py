"""
Owns the audit record: its fields, its redaction, its form on a line (AWP-AUD-002, AUD-006).

A line is ASCII JSON. It is made without ``prev_hash`` first, because the chain is only known when
the line is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import hashlib
import json
import re
from typing import Any

import orjson

Json = dict[str, Any]

CLASS = 'audit_record'  # AWP-AUD-007: hashes of frames, not frames

_WITHOUT_TEXT = frozenset({int, float, bool, type(None)})
_SECRET_KEY = re.compile(r'(^|[_-])(token|authorization|bearer|password|secret)$', re.IGNORECASE)
_HINT = re.compile(r'token|bearer|authorization|awp_|st_|tt_', re.IGNORECASE)
_HINT_WORDS = (
    b'token', b'bearer', b'authorization', b'awp_', b'st_', b'tt_', b'password', b'secret',
)  # fmt: skip
_SECRET_TEXT = re.compile(
    r'(?P<subprotocol>awp\.bearer\.[^\s,;"\'\\]+)'
    r'|(?<=bearer )(?P<bearer>[^\s,;"\'\\]+)'
    r'|(?<![0-9A-Za-z])(?P<made>(?:awp|st|tt)_[0-9A-Za-z_-]{32,})'  # what the bridge makes
    r'|(?P<key>token(?:=|\\*["\']\s*:\s*\\*["\']))(?P<value>[^\s,;&"\'\\}]+)',
    re.IGNORECASE,
)


def mask(value: Any) -> str:
    """Return what stands in the log for a value that it must not hold (AWP-AUD-006)."""
    data = value.encode('utf-8', 'surrogatepass') if isinstance(value, str) else to_ascii(value)
    return f'[redacted:sha256:{hashlib.sha256(data).hexdigest()[:8]}]'


def to_ascii(value: Any) -> bytes:
    """Return a JSON value as ASCII bytes on one line; never raises for what a message can hold."""
    try:
        data = orjson.dumps(value)
        if data.isascii():
            return data
    except TypeError:
        pass  # a lone surrogate, a huge integer, or nothing that JSON knows
    try:
        return json.dumps(value, separators=(',', ':'), default=repr).encode('ascii')
    except (RecursionError, ValueError, TypeError) as error:
        return json.dumps({'unrecordable': type(error).__name__}).encode('ascii')


class Redactor:
    """
    Replaces secrets in bodies, never in place.

    :param pointers: JSON pointers of further values, relative to ``params`` or ``result``.
    """

    def __init__(self, pointers: Sequence[str] = ()) -> None:
        self._pointers = [
            [part.replace('~1', '/').replace('~0', '~') for part in pointer.split('/')[1:]]
            for pointer in pointers
        ]

    def clean(self, body: Json) -> Json:
        """Return the body as the log may hold it."""
        for pointer in self._pointers:
            for root in ('params', 'result'):
                body = _at(body, [root, *pointer], mask)
        if _is_free_of_hints(body):
            return body
        try:
            cleaned = _walk(body)
        except RecursionError:
            return {'unrecordable': 'RecursionError'}
        return cleaned if isinstance(cleaned, dict) else {}


def _at(value: Any, path: Sequence[str], change: Callable[[Any], Any]) -> Any:
    """Return the value with the part at this path changed; itself when there is no such part."""
    if not path:
        return change(value)
    first, rest = path[0], path[1:]
    if isinstance(value, dict) and first in value:
        return {**value, first: _at(value[first], rest, change)}
    if isinstance(value, list) and first.isdecimal() and int(first) < len(value):
        index = int(first)
        return [*value[:index], _at(value[index], rest, change), *value[index + 1 :]]
    return value


def _is_free_of_hints(body: Json) -> bool:
    """
    Tell whether nothing in a body looks like a secret or its name, far quicker than a walk.

    False means that somebody must look: whatever is not plain ASCII JSON counts as that.
    """
    try:
        data = orjson.dumps(body)
    except TypeError:
        return False
    lowered = data.lower()
    return data.isascii() and not any(word in lowered for word in _HINT_WORDS)


def _walk(value: Any) -> Any:
    if isinstance(value, dict):
        return {_key(key): _entry(key, inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        if set(map(type, value)) <= _WITHOUT_TEXT:  # a long list of numbers costs nothing
            return list(value)
        return [_walk(inner) for inner in value]
    if isinstance(value, str):
        return _text(value)
    return value


def _entry(key: Any, value: Any) -> Any:
    if isinstance(key, str) and _SECRET_KEY.search(key) and not _is_plain(value):
        return mask(value)
    return _walk(value)


def _is_plain(value: Any) -> bool:
    """Tell whether a value under a secret's name is none: nothing, a flag, or masked before."""
    if isinstance(value, str):
        return value.startswith('[redacted:sha256:')
    return value is None or isinstance(value, bool)


def _key(key: Any) -> str:
    return _text(key) if isinstance(key, str) else str(key)


def _text(text: str) -> str:
    if _HINT.search(text) is None:
        return text
    return _SECRET_TEXT.sub(_masked_match, text)


def _masked_match(found: re.Match[str]) -> str:
    value = found['value']
    if value is None:
        return mask(found['subprotocol'] or found['bearer'] or found['made'])
    return found['key'] + (value if value.startswith('[redacted:') else mask(value))


def unchained(ts_mono_ns: int, direction: str, kind: str, body: bytes) -> bytes:
    """
    Return a record as a line that still lacks its end.

    :param body: already redacted, as :func:`to_ascii` makes it.
    """
    return b'{"ts_mono_ns":%d,"direction":%b,"kind":%b,"body":%b' % (
        ts_mono_ns,
        to_ascii(direction),
        to_ascii(kind),
        body,
    )
