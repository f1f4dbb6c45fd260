"""Where credentials come from, and what a changed file does to a bridge that runs."""

from __future__ import annotations

import logging
from pathlib import Path
import threading

import pytest
from test_config_token_file import entry

from awp_ros_bridge.bridge.tokens import (
    credential_of,
    load_tokens,
    LOOK_S,
    TokenError,
    TokenKeeper,
    tokens_path,
    TokenWatch,
    UNUSABLE_NS,
)
from awp_ros_bridge.config import Problem, ServerConfig, TokensRead, write_tokens
from awp_ros_bridge.engine.permissions import ALL_SCOPES, Scope
from awp_ros_bridge.transport.credentials import digest_of, new_token, TokenGate

TOKEN = 'abcdefghijklmnop0123456789'
S = 1_000_000_000
BROKEN = TokensRead((), (Problem('t', 1, '', 'is broken', 'mend it'),))
WAIT_S = 10 * LOOK_S


def test_the_token_of_the_environment_allows_everything() -> None:
    gate = load_tokens(ServerConfig(), None, {'AWP_BRIDGE_TOKEN': TOKEN})
    found = gate.find(TOKEN)
    assert found is not None
    assert (found.credential, found.scopes) == ('environment', ALL_SCOPES)
    assert found.reaches(['anything'])
    assert gate.find(TOKEN + 'x') is None


@pytest.mark.parametrize(
    ('token', 'says'),
    [
        ('', 'holds no token; make one: ros2 run awp_ros_bridge awp token make'),
        ('too-short', 'at least 22'),
        ('passwordpasswordpassword', 'chosen by somebody'),
    ],
)
def test_a_token_that_is_missing_or_weak_is_refused(token: str, says: str) -> None:
    with pytest.raises(TokenError, match='AWP_BRIDGE_TOKEN') as caught:
        load_tokens(ServerConfig(), None, {'AWP_BRIDGE_TOKEN': token})
    assert says in str(caught.value)
    assert not token or token not in str(caught.value)


def test_a_file_gives_each_token_its_scopes(tmp_path: Path) -> None:
    token = new_token()
    path = tmp_path / 'tokens.yaml'
    write_tokens(path, [entry(1, sha256=digest_of(token).hex(), embodiments=('arm_01',))])
    gate = load_tokens(ServerConfig(), path, {})
    found = gate.find(token)
    assert found is not None
    assert found.scopes == {Scope.OBSERVE, Scope.ACT}
    assert found.reaches(['arm_01'])
    assert not found.reaches(['arm_01', 'gripper_01'])


def test_files_that_open_to_nobody_are_refused_at_start(tmp_path: Path) -> None:
    path = tmp_path / 'tokens.yaml'
    with pytest.raises(TokenError, match='No such file'):
        load_tokens(ServerConfig(), path, {'AWP_BRIDGE_TOKEN': TOKEN})
    write_tokens(path, [])
    with pytest.raises(TokenError, match='holds no token'):
        load_tokens(ServerConfig(), path, {'AWP_BRIDGE_TOKEN': TOKEN})
    path.chmod(0o644)
    with pytest.raises(TokenError, match='chmod 600'):
        load_tokens(ServerConfig(), path, {})


def test_the_command_line_goes_before_the_configuration() -> None:
    server = ServerConfig(tokens_file='tokens.yaml')
    assert tokens_path(server, Path('/etc/robot')) == Path('/etc/robot/tokens.yaml')
    assert tokens_path(server, Path('/etc/robot'), Path('x')) == Path('x')
    assert tokens_path(ServerConfig(), Path('/etc/robot')) is None


def keeper(*numbers: int) -> tuple[TokenKeeper, TokenGate]:
    """Return a keeper of a gate that knows some tokens."""
    gate = TokenGate([credential_of(entry(n)) for n in numbers])
    return TokenKeeper(gate), gate


def read(*numbers: int) -> TokensRead:
    """Return what a file with some tokens reads as."""
    return TokensRead(tuple(entry(n) for n in numbers), ())


def test_what_is_gone_or_changed_is_revoked_and_what_is_new_revokes_nothing() -> None:
    kept, _ = keeper(1, 2)
    assert kept.take(read(1, 2), 0) is None
    assert kept.take(read(1, 2, 3), 0) is None
    revoked = kept.take(read(1, 3), 0)
    assert revoked is not None
    assert revoked.credentials == {'tok_2'}
    changed = TokensRead((entry(1, scopes=('observe',)), entry(3, name='renamed')), ())
    revoked = kept.take(changed, 0)
    assert revoked is not None
    assert revoked.credentials == {'tok_1'}


def test_a_file_that_cannot_be_used_lets_nobody_in_and_ends_sessions_after_five_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept, gate = keeper(1)
    assert kept.take(BROKEN, 100 * S) is None
    assert not gate.is_usable
    assert kept.take(BROKEN, 104 * S) is None
    assert kept.take(read(1), 105 * S) is None  # mended in time: nobody notices
    assert gate.is_usable
    assert kept.take(BROKEN, 110 * S) is None
    revoked = kept.take(BROKEN, 110 * S + UNUSABLE_NS)
    assert revoked is not None
    assert revoked.credentials == {'tok_1'}
    assert kept.take(BROKEN, 200 * S) is None
    assert kept.take(read(1), 201 * S) is None
    assert gate.is_usable
    errors = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 3  # twice that it broke, once that sessions end


def test_the_watch_sees_changes_and_keeps_saying_that_a_file_is_broken(tmp_path: Path) -> None:
    path = tmp_path / 'tokens.yaml'
    write_tokens(path, [entry(1)])
    seen: list[TokensRead] = []
    news = threading.Semaphore(0)

    def look(found: TokensRead) -> None:
        seen.append(found)
        news.release()

    watch = TokenWatch(path, look)
    watch.start()
    assert news.acquire(timeout=WAIT_S)
    write_tokens(path, [entry(2)])
    assert news.acquire(timeout=WAIT_S)
    path.unlink()
    assert news.acquire(timeout=WAIT_S)
    assert news.acquire(timeout=WAIT_S)
    assert watch.stop()
    assert [r.entries for r in seen] == [(entry(1),), (entry(2),), (), ()]
    assert all(r.problems for r in seen[2:])


def test_a_watch_whose_reading_fails_says_so_instead_of_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> TokensRead:
        raise MemoryError

    monkeypatch.setattr('awp_ros_bridge.bridge.tokens.read_tokens', fail)
    seen: list[TokensRead] = []
    news = threading.Semaphore(0)
    watch = TokenWatch(tmp_path, lambda found: (seen.append(found), news.release())[0])
    watch.start()
    assert news.acquire(timeout=WAIT_S)
    assert news.acquire(timeout=WAIT_S)
    assert watch.stop()
    assert 'MemoryError' in seen[0].problems[0].what


def test_a_watch_that_never_began_is_stopped() -> None:
    assert TokenWatch(Path('nowhere'), lambda found: None).stop()
