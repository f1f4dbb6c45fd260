"""
Owns the file of bearer tokens: hashes with scopes, read strictly, replaced atomically.

It is written by ``awp token`` and read by a running bridge. Nothing here returns or quotes what a
file holds in clear, so that a token which somebody pasted into it reaches no message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
import fcntl
import json
import os
from pathlib import Path
import stat
import tempfile
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from awp_ros_bridge.config.base import Identifier, Items, StrictModel, Text
from awp_ros_bridge.config.document import Document, read
from awp_ros_bridge.config.problems import dotted, Problem
from awp_ros_bridge.config.problems import Path as KeyPath

ScopeName = Literal['observe', 'act', 'transfer', 'approve', 'admin']
MOST_BYTES = 1 << 20
_MODE = 0o600
_HEAD = """\
# Bearer tokens of the bridge, as SHA-256 only. Written by `awp token make` and `awp token revoke`;
# a running bridge follows changes within a second or two.
"""
_TODO = {
    'tokens': 'write "tokens:" and a list',
    'id': 'make tokens with `awp token make`; each has an id of its own',
    'name': 'write a text that a person can read',
    'sha256': 'write 64 hex digits; tokens in clear are not read, make new ones: awp token make',
    'scopes': 'list at least one of observe, act, transfer, approve, admin',
    'embodiments': 'list names of embodiments, or leave it out for all',
    'made': 'write when it was made, as a text',
}
_MEANT = 'this file is written by `awp token make`; keep only what it writes'
_OTHER = 'name the file that `awp token make` wrote'


class TokenEntry(StrictModel):
    """One token, without the token."""

    id: Identifier
    name: Text
    sha256: Annotated[str, Field(pattern=r'^[0-9a-f]{64}$')]
    scopes: Annotated[Items[ScopeName], Field(min_length=1)]
    embodiments: Annotated[Items[Identifier], Field(min_length=1)] | None = None
    made: Text


class TokenFile(StrictModel):
    """The whole file."""

    tokens: Items[TokenEntry]


@dataclass(frozen=True, slots=True)
class TokensRead:
    """
    What came of reading a file of tokens.

    :param problems: why nothing of it may be used; empty where all is well.
    """

    entries: tuple[TokenEntry, ...]
    problems: tuple[Problem, ...]


def read_tokens(path: Path) -> TokensRead:
    """Read a file of tokens that only its owner may read."""
    name = str(path)
    try:
        with path.open('rb') as stream:
            about = os.fstat(stream.fileno())
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        todo = f'awp token make --file {path}' if isinstance(error, FileNotFoundError) else _OTHER
        return _unread(name, f'cannot be read: {reason}', todo)
    if len(data) > MOST_BYTES:
        return _unread(name, f'is larger than {MOST_BYTES} bytes', _OTHER)
    try:
        text = data.decode('utf-8')
    except UnicodeDecodeError:
        return _unread(name, 'is not UTF-8', _OTHER)
    document = read(text)
    if not _holds_tokens(document):  # said first: it may be a file that others shall read
        return _no_tokens(name)
    if about.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        mode = f'{stat.S_IMODE(about.st_mode):o}'
        return _unread(name, f'is open to others (mode {mode})', f'chmod 600 {path}')
    if about.st_uid not in (os.geteuid(), 0):
        return _unread(
            name, 'belongs to another user', 'only the user of the bridge, or root, may own it'
        )
    return _tokens_of(document, name)


def parse_tokens(text: str, name: str) -> TokensRead:
    """
    Read tokens from text.

    :param name: what problems call the file.
    """
    return _tokens_of(read(text), name)


def _tokens_of(document: Document, name: str) -> TokensRead:
    if document.findings:
        rows = [
            (line, (), 'cannot be read as YAML with unique keys') for line, _ in document.findings
        ]
        return _refused(name, rows)
    if not _holds_tokens(document):
        return _no_tokens(name)
    try:
        found = TokenFile.model_validate(document.value)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        return _refused(name, [_row(document, each) for each in details])
    doubles = list(_doubles(document, found.tokens))
    return _refused(name, doubles) if doubles else TokensRead(found.tokens, ())


@contextmanager
def changing(path: Path) -> Iterator[Path]:
    """
    Keep other writers out of a file of tokens while it is read and replaced.

    :return: the file itself, where the path is a link to it
    :raises OSError: its folder does not exist or cannot be used
    """
    path = path.resolve()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield path
    finally:
        os.close(folder)


def write_tokens(path: Path, entries: Sequence[TokenEntry]) -> None:
    """
    Replace a file of tokens in one step: a reader finds the old one or the new one, whole.

    :raises OSError: it cannot be written; the old file is as it was
    """
    text = _HEAD + _written(entries)
    number, part = tempfile.mkstemp(prefix=f'.{path.name}.', dir=path.parent)  # made with 0600
    try:
        with os.fdopen(number, 'w', encoding='utf-8') as stream:
            os.fchmod(number, _MODE)
            stream.write(text)
            stream.flush()
            os.fsync(number)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    _sync_folder(path.parent)


def _written(entries: Sequence[TokenEntry]) -> str:
    """Write entries with every text quoted: a hash of digits, or with one e, is no number."""
    if not entries:
        return 'tokens: []\n'
    rows = [each.model_dump(mode='json', exclude_none=True) for each in entries]
    texts = [[f'{key}: {_quoted(value)}' for key, value in row.items()] for row in rows]
    return 'tokens:\n' + ''.join('- ' + '\n  '.join(lines) + '\n' for lines in texts)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # which YAML reads as it is


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _row(document: Document, error: ErrorDetails) -> tuple[int, KeyPath, str]:
    """Return line, path and fault of an error, without the value that is wrong."""
    known = [part for part in error['loc'] if isinstance(part, int) or part in _TODO]
    path: KeyPath = tuple(known)
    what = {
        'missing': 'is missing',
        'extra_forbidden': 'there is a key that does not belong here',
    }.get(error['type'], 'is not what belongs here')
    return document.line_of(path), path, what


def _doubles(
    document: Document, entries: Sequence[TokenEntry]
) -> Iterator[tuple[int, KeyPath, str]]:
    for key in ('id', 'sha256'):
        seen: set[str] = set()
        for index, each in enumerate(entries):
            value = getattr(each, key)
            if value in seen:
                path: KeyPath = ('tokens', index, key)
                yield document.line_of(path), path, 'stands twice in this file'
            seen.add(value)


def _refused(name: str, rows: Sequence[tuple[int, Any, str]]) -> TokensRead:
    problems = []
    for line, path, what in rows:
        keys = [part for part in path if isinstance(part, str)]
        todo = _TODO.get(keys[-1], _MEANT) if keys else _MEANT
        problems.append(Problem(name, line, dotted(path), what, todo))
    return TokensRead((), tuple(problems))


def _holds_tokens(document: Document) -> bool:
    """Tell whether it is a file of tokens at all, or broken so that it cannot be told."""
    value = document.value
    return bool(document.findings) or (isinstance(value, dict) and 'tokens' in value)


def _no_tokens(name: str) -> TokensRead:
    return _unread(name, 'is no file of tokens: there is no key "tokens"', _OTHER)


def _unread(name: str, what: str, todo: str) -> TokensRead:
    return TokensRead((), (Problem(name, 0, '', what, todo),))
