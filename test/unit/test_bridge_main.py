"""The command line, the library check and the tokens of the bridge process."""

from __future__ import annotations

from pathlib import Path

import pytest

from awp_ros_bridge.bridge.ids import SecretIds
from awp_ros_bridge.bridge.main import parse
from awp_ros_bridge.bridge.tokens import load_tokens, TokenError
from awp_ros_bridge.config import ServerConfig
from awp_ros_bridge.process import versions
from awp_ros_bridge.ros.goal_marks import BRIDGE

TOKEN = 'abcdefghijklmnop0123'


def test_own_arguments_win_over_ros_arguments() -> None:
    own = ['--config', 'a.yaml', '--log-level', 'debug']
    options = parse([*own, '--ros-args', '-p', 'config:=b'])
    assert options.config == Path('a.yaml')
    assert options.log_level == 'debug'
    assert options.ros_args == ['--ros-args', '-p', 'config:=b']


@pytest.mark.parametrize(
    ('level', 'expected'), [('warn', 'warning'), ('FATAL', 'error'), ('debug', 'debug')]
)
def test_ros_log_level_counts_where_no_own_is_given(level: str, expected: str) -> None:
    options = parse(['--ros-args', '--log-level', level, '-p', 'config:=/x/b.yaml'])
    assert options.log_level == expected
    assert options.config == Path('/x/b.yaml')


def test_log_level_of_another_logger_is_not_ours() -> None:
    assert parse(['--ros-args', '--log-level', 'rcl:=debug']).log_level == 'info'


def test_old_and_missing_libraries_are_named_with_what_was_found() -> None:
    found = versions.problems({'websockets': '10.4', 'pydantic': '2.7.0', 'jsonschema': None})
    assert len(found) == 2
    assert 'websockets 10.4 was found, 14.1 or newer' in found[0]
    assert 'jsonschema is not installed' in found[1]


def test_libraries_of_this_environment_are_new_enough() -> None:
    assert versions.problems() == []


def test_token_from_the_environment() -> None:
    gate = load_tokens(ServerConfig(), Path(), {'AWP_BRIDGE_TOKEN': TOKEN})
    assert gate.admits(TOKEN)
    assert not gate.admits(TOKEN + 'x')


def test_tokens_from_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / 'tokens.yaml'
    path.write_text(f'tokens: [{TOKEN}]')
    path.chmod(0o600)
    assert load_tokens(ServerConfig(tokens_file='tokens.yaml'), tmp_path, {}).admits(TOKEN)


@pytest.mark.parametrize(
    ('text', 'mode', 'says'),
    [
        (f'tokens: [{TOKEN}]', 0o644, 'readable by others'),
        ('tokens: 5', 0o600, 'a list of strings'),
        ('tokens: [short]', 0o600, '16'),
        ('tokens: []', 0o600, 'holds no token'),
        ('{', 0o600, 'not YAML'),
    ],
)
def test_unusable_token_files_are_refused_with_a_reason(
    tmp_path: Path, text: str, mode: int, says: str
) -> None:
    path = tmp_path / 'tokens.yaml'
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(TokenError, match=says) as caught:
        load_tokens(ServerConfig(tokens_file='tokens.yaml'), tmp_path, {})
    assert TOKEN not in str(caught.value)


def test_no_token_is_refused_and_says_how_to_make_one() -> None:
    with pytest.raises(TokenError, match='openssl rand'):
        load_tokens(ServerConfig(), Path(), {})


def test_missing_token_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match=r'nowhere\.yaml'):
        load_tokens(ServerConfig(tokens_file='nowhere.yaml'), tmp_path, {})


def test_names_are_unguessable_and_goals_carry_the_prefix() -> None:
    ids = SecretIds()
    assert ids.goal_id().startswith(BRIDGE)
    assert len(ids.goal_id()) == 32
    assert ids.token('st') != ids.token('st')
    assert len(ids.session_id()) == len('sess_') + 32
