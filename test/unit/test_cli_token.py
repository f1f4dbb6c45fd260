"""Tests ``awp token``: what it prints, what it keeps, its exit codes."""

from __future__ import annotations

from collections.abc import Callable
import json
from pathlib import Path

from config_sample import SAMPLE
import pytest

from awp_ros_bridge.bridge.tokens import load_tokens
from awp_ros_bridge.cli.main import main
from awp_ros_bridge.config import read_tokens, ServerConfig
from awp_ros_bridge.engine.permissions import ALL_SCOPES

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def awp(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a way to run ``awp token``."""

    def run(*args: object) -> tuple[int, str, str]:
        try:
            code = main(['token', *[str(arg) for arg in args]])
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / 'tokens.yaml'


def test_a_made_token_opens_and_is_kept_nowhere(awp: Run, path: Path) -> None:
    code, out, err = awp('make', '--file', path, '--scopes', 'act,observe', '--name', 'cell')
    assert (code, err) == (0, '')
    token = out.split()[1]
    assert 'may     observe, act; on all embodiments' in out
    assert token not in path.read_text()
    found = load_tokens(ServerConfig(), path, {}).find(token)
    assert found is not None
    assert {s.value for s in found.scopes} == {'observe', 'act'}
    code, out, _ = awp('list', '--file', path)
    assert code == 0
    assert found.credential in out
    assert 'observe,act  on all  cell' in out
    assert token not in out


def test_json_says_the_same(awp: Run, path: Path) -> None:
    code, out, _ = awp('make', '--file', path, '--scopes', 'all', '--json')
    made = json.loads(out)
    assert code == 0
    assert made['ok']
    gate = load_tokens(ServerConfig(), path, {})
    permissions = gate.find(made['token'])
    assert permissions is not None
    assert permissions.scopes == ALL_SCOPES
    code, out, _ = awp('list', '--file', path, '--json')
    (row,) = json.loads(out)['tokens']
    assert row['id'] == made['id']
    assert 'sha256' not in row
    code, out, _ = awp('revoke', made['id'], '--file', path, '--json')
    assert (code, json.loads(out)['revoked']['id']) == (0, made['id'])
    code, out, _ = awp('list', '--file', path)
    assert (code, out) == (0, f'{path}: no token; nobody can log in\n')


def test_a_token_is_revoked_by_id_or_by_a_name_that_is_alone(awp: Run, path: Path) -> None:
    for name in ('one', 'two', 'two'):
        assert awp('make', '--file', path, '--scopes', 'act', '--name', name)[0] == 0
    assert awp('revoke', 'one', '--file', path)[0] == 0
    code, out, err = awp('revoke', 'two', '--file', path)
    assert (code, out) == (1, '')
    assert 'several tokens have that name' in err
    first, second = read_tokens(path).entries
    assert awp('revoke', second.id, '--file', path)[0] == 0
    code, out, _ = awp('revoke', second.id, '--file', path, '--json')
    assert code == 1
    assert json.loads(out) == {
        'ok': False,
        'error': f'there is no such token; there are: {first.id}',
    }
    assert read_tokens(path).entries == (first,)


@pytest.mark.parametrize(
    ('arguments', 'says'),
    [
        (['make', '--scopes', 'act'], 'one of the arguments --file --config is required'),
        (['make', '--file', 'FILE'], 'required: --scopes'),
        (['make', '--file', 'FILE', '--scopes', 'fly'], "'fly' is no scope; there are observe"),
        (['make', '--file', 'FILE', '--scopes', ''], 'no scope is named'),
        (['make', '--file', 'FILE', '--scopes', 'act', '--name', ' '], '--name is empty'),
        (['make', '--file', 'FILE', '--scopes', 'act', '--name', 'a\nb'], 'cannot be printed'),
        (['make', '--file', 'FILE', '--scopes', 'act', '--embodiments', '1x'], 'AWP identifier'),
        (['make', '--file', '/nowhere/at/all', '--scopes', 'act'], '/nowhere/at: No such file'),
        (['list', '--file', '/nowhere/at/all'], 'No such file'),
        (['revoke', 'x', '--file', '/nowhere/at/all'], 'No such file'),
        (['revoke', '--file', 'FILE'], 'required: ID'),
        (['turn'], 'invalid choice'),
    ],
)
def test_wrong_arguments_change_nothing_and_return_2(
    awp: Run, path: Path, arguments: list[str], says: str
) -> None:
    code, out, err = awp(*[str(path) if word == 'FILE' else word for word in arguments])
    assert (code, out) == (2, '')
    assert says in err
    assert not path.exists()


def test_a_file_that_is_wrong_is_not_overwritten(awp: Run, path: Path) -> None:
    path.write_text('tokens: [a-token-in-clear]')
    path.chmod(0o600)
    for arguments in (['make', '--scopes', 'act'], ['list'], ['revoke', 'x']):
        code, _, err = awp(*arguments, '--file', path)
        assert code == 2
        assert f'{path}:1: tokens[0]: is not what belongs here' in err
    assert path.read_text() == 'tokens: [a-token-in-clear]'


def test_a_configuration_names_the_file_and_its_embodiments(awp: Run, tmp_path: Path) -> None:
    config = tmp_path / 'robot.yaml'
    config.write_text(SAMPLE)
    code, _, err = awp('list', '--config', config)
    assert code == 2
    assert 'server.tokens_file is not set' in err
    config.write_text(SAMPLE + 'server: {tokens_file: secret/tokens.yaml}\n')
    (tmp_path / 'secret').mkdir()
    ask = ['make', '--config', config, '--scopes', 'act', '--embodiments']
    code, _, err = awp(*ask, 'leg_01')
    assert code == 2
    assert "'leg_01' is not in" in err
    assert awp(*ask, 'arm_01')[0] == 0
    (entry,) = read_tokens(tmp_path / 'secret' / 'tokens.yaml').entries
    assert entry.embodiments == ('arm_01',)
    config.write_text('nonsense: 1')
    code, _, err = awp('list', '--config', config)
    assert code == 2
    assert f"{config}:1: nonsense: unknown key 'nonsense'" in err
