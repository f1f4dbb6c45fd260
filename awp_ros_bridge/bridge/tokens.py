"""
Owns where the credentials of control connections come from, and follows them (AWP-SEC-002).

A file of tokens is looked at once a second, on a thread of its own, so that no disk can hold up
the loop that keeps the robot's dead-man timer quiet. What a running bridge lets in stands in
memory; a change reaches it within :data:`LOOK_S` and the time to read the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import logging
from pathlib import Path
import threading

from awp_ros_bridge.config import Problem, read_tokens, ServerConfig, TokenEntry, TokensRead
from awp_ros_bridge.engine.inputs import CredentialsRevoked
from awp_ros_bridge.engine.permissions import ALL_SCOPES, Permissions, Scope
from awp_ros_bridge.transport.credentials import check_given, Credential, digest_of, TokenGate

log = logging.getLogger('awp_ros_bridge')

LOOK_S = 1.0
UNUSABLE_NS = 5_000_000_000  # of a file that ran ahead of its repair; then its sessions end
STOP_S = 2.0
ENVIRONMENT = 'environment'

HOW = 'make one: ros2 run awp_ros_bridge awp token make --file tokens.yaml --scopes all'


class TokenError(ValueError):
    """No usable token; the text says which source was read and what to do, never the token."""


def tokens_path(server: ServerConfig, folder: Path, override: Path | None = None) -> Path | None:
    """
    Return the file of tokens, None where they come from the environment.

    :param folder: where relative paths of the configuration begin.
    :param override: a path from the command line.
    """
    if override is not None:
        return override
    if server.tokens_file is None:
        return None
    return folder / Path(server.tokens_file).expanduser()


def load_tokens(
    server: ServerConfig,
    path: Path | None,
    environment: Mapping[str, str],
) -> TokenGate:
    """
    Return the gate that knows the credentials of control connections.

    :param path: file of tokens; None takes the one token of the environment.
    :raises TokenError: there is none, or one that could be guessed
    """
    if path is not None:
        found = read_tokens(path)
        if found.problems:
            raise TokenError('\n'.join(f'server.tokens_file {p}' for p in found.problems))
        if not found.entries:
            raise TokenError(f'server.tokens_file {path} holds no token; {HOW}')
        return TokenGate(map(credential_of, found.entries))
    source = f'environment variable {server.token_env}'
    token = environment.get(server.token_env, '')
    if not token:
        raise TokenError(f'{source} holds no token; {HOW}, and set server.tokens_file')
    try:
        check_given(token)
    except ValueError as error:
        raise TokenError(f'{source}: {error}; take one from: openssl rand -hex 32') from None
    return TokenGate([Credential(digest_of(token), Permissions(ENVIRONMENT, ALL_SCOPES))])


def credential_of(entry: TokenEntry) -> Credential:
    """Return an entry of the file as the transport wants it."""
    reach = None if entry.embodiments is None else frozenset(entry.embodiments)
    scopes = frozenset(Scope(name) for name in entry.scopes)
    return Credential(bytes.fromhex(entry.sha256), Permissions(entry.id, scopes, reach))


class TokenKeeper:
    """
    Decides what a look at the file means for a running bridge.

    A file that cannot be used lets nobody in from that moment. Sessions that are open go on for
    :data:`UNUSABLE_NS`, the time of a slip of somebody's editor; then it is not known any more
    who may drive the robot, and they end.

    It belongs to the thread of the bridge's loop.
    """

    def __init__(self, gate: TokenGate) -> None:
        self._gate = gate
        self._unusable_since_ns: int | None = None

    def take(self, found: TokensRead, now_ns: int) -> CredentialsRevoked | None:
        """Take a look at the file in; return whose sessions end now."""
        if found.problems:
            return self._unusable(found, now_ns)
        if self._unusable_since_ns is not None:
            log.info('the file of tokens can be used again')
        self._unusable_since_ns = None
        self._gate.is_usable = True
        gone = self._gate.replace(map(credential_of, found.entries))
        if not gone:
            return None
        log.info('tokens revoked or changed: %s; their sessions end', ', '.join(sorted(gone)))
        return CredentialsRevoked(gone, 'the token was revoked, or what it allows was changed')

    def _unusable(self, found: TokensRead, now_ns: int) -> CredentialsRevoked | None:
        if self._unusable_since_ns is None:
            self._unusable_since_ns = now_ns
            self._gate.is_usable = False
            log.error(
                'no login until the file of tokens can be used; sessions end in %g s: %s',
                UNUSABLE_NS / 1e9,
                '; '.join(map(str, found.problems)),
            )
        if now_ns - self._unusable_since_ns < UNUSABLE_NS:
            return None
        gone = self._gate.replace(())
        if not gone:
            return None
        log.error('sessions end: the file of tokens cannot be used: %s', found.problems[0])
        return CredentialsRevoked(gone, 'the tokens of this world cannot be checked any more')


class TokenWatch:
    """
    Looks at a file of tokens once a second, on a thread of its own.

    :param on_look: told what was found whenever it changed, and each second while it cannot be
        used; called on that thread.
    """

    def __init__(self, path: Path, on_look: Callable[[TokensRead], None]) -> None:
        self._path = path
        self._on_look = on_look
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name='awp-tokens', daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> bool:
        """Stop looking; tell whether the thread ended in :data:`STOP_S`."""
        self._stopping.set()
        if self._thread.ident is None:
            return True
        self._thread.join(STOP_S)
        return not self._thread.is_alive()

    def _look(self) -> TokensRead:
        try:
            return read_tokens(self._path)
        except Exception as error:  # noqa: BLE001 - a silent end of looking would revoke nothing
            what = f'looking at it failed: {type(error).__name__}'
            return TokensRead((), (Problem(str(self._path), 0, '', what, 'see its file system'),))

    def _run(self) -> None:
        last: TokensRead | None = None
        while not self._stopping.wait(LOOK_S):
            found = self._look()
            if found.problems or found != last:
                self._on_look(found)
            last = found
