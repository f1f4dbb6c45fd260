"""The file of tokens: strict reading that quotes nothing, replacing in one step."""

from __future__ import annotations

import os
from pathlib import Path
import threading

from hypothesis import given
from hypothesis import strategies as st
import pytest

from awp_ros_bridge.config import changing, read_tokens, TokenEntry, write_tokens
from awp_ros_bridge.config.token_file import MOST_BYTES, parse_tokens

SECRET = 'awp_SecretSecretSecretSecretSecretSecretSecret'
HASH = 'ab' * 32


def entry(number: int = 1, **changes: object) -> TokenEntry:
    """Return an entry of the file."""
    fields: dict[str, object] = {
        'id': f'tok_{number}',
        'name': 'agent',
        'sha256': f'{number:064x}',
        'scopes': ('observe', 'act'),
        'made': '2026-01-01T00:00:00Z',
    }
    return TokenEntry(**{**fields, **changes})  # type: ignore[arg-type]


def row(**changes: str) -> str:
    """Return the text of a file with one token."""
    fields = {
        'id': 'tok_1',
        'name': 'agent',
        'sha256': f"'{HASH}'",
        'scopes': '[observe]',
        'made': "'2026-01-01'",
    }
    lines = [f'{key}: {value}' for key, value in {**fields, **changes}.items() if value]
    return 'tokens:\n- ' + '\n  '.join(lines) + '\n'


def test_what_is_written_is_read_again_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / 'tokens.yaml'
    odd = entry(3, sha256='1e' + '7' * 62, name='1e5: "x" # ü \U0001f916')
    entries = (entry(1), entry(2, scopes=('admin',), embodiments=('arm_01',)), odd)
    write_tokens(path, entries)
    assert read_tokens(path).entries == entries
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ['tokens.yaml']


@pytest.mark.parametrize(
    ('text', 'says'),
    [
        (f'tokens: [{SECRET}]', ':1: tokens[0]: is not what belongs here'),
        (f'- {SECRET}', 'tokens.yaml: is no file of tokens: there is no key "tokens"; name the'),
        ('tokens: 5', ':1: tokens: is not what belongs here'),
        ('', 'tokens.yaml: is no file of tokens'),
        (f'world: {{name: {SECRET}}}\nserver: {{}}', 'tokens.yaml: is no file of tokens'),
        (row(sha256=SECRET), ':4: tokens[0].sha256: is not what belongs here; write 64 hex'),
        (row(sha256=''), 'tokens[0].sha256: is missing'),
        (row(scopes='[fly]'), ':5: tokens[0].scopes[0]: is not what belongs here'),
        (row(scopes='[]'), ':5: tokens[0].scopes: is not'),
        (row(embodiments='[]'), ':7: tokens[0].embodiments: is not'),
        (row(token=SECRET), 'a key that does not belong here'),
        (row(**{SECRET: '1'}), 'a key that does not belong here'),
        (row() + row().removeprefix('tokens:\n'), 'tokens[1].id: stands twice'),
        (row() + 'tokens: []', 'cannot be read as YAML'),
        (f'{{{SECRET}', 'cannot be read as YAML'),
        (f'tokens: &a {SECRET}\nmore: *b', 'cannot be read as YAML'),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_never_quoted(text: str, says: str) -> None:
    found = parse_tokens(text, 'tokens.yaml')
    assert not found.entries
    told = '\n'.join(map(str, found.problems))
    assert says in told, told
    assert SECRET not in told


@given(st.text(alphabet=st.sampled_from('tokens:- []{}&*!|\n"\'ab1'), max_size=80))
def test_no_text_is_a_traceback(text: str) -> None:
    found = parse_tokens(text, 'tokens.yaml')
    assert found.problems or found.entries == ()


@pytest.mark.parametrize('mode', [0o644, 0o640, 0o604, 0o620, 0o602])
def test_a_file_that_is_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / 'tokens.yaml'
    write_tokens(path, [entry()])
    path.chmod(mode)
    (problem,) = read_tokens(path).problems
    assert f'mode {mode:o}' in problem.what
    assert problem.todo == f'chmod 600 {path}'


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can give a file away')
def test_a_file_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'tokens.yaml'
    write_tokens(path, [entry()])
    os.chown(path, 4711, 4711)
    assert 'another user' in read_tokens(path).problems[0].what
    monkeypatch.setattr(os, 'geteuid', lambda: 4711)
    assert not read_tokens(path).problems


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    assert 'No such file' in read_tokens(tmp_path / 'nowhere.yaml').problems[0].what
    assert 'directory' in read_tokens(tmp_path).problems[0].what
    big = tmp_path / 'big.yaml'
    big.write_bytes(b'#' * (MOST_BYTES + 1))
    big.chmod(0o600)
    assert 'larger' in read_tokens(big).problems[0].what
    big.write_bytes(b'\xff\xfe')
    assert 'UTF-8' in read_tokens(big).problems[0].what
    other = tmp_path / 'robot.yaml'
    other.write_text('world: {name: cell}\nserver: {}\n', encoding='utf-8')
    other.chmod(0o644)  # nothing to mend: it is another file
    (problem,) = read_tokens(other).problems
    assert problem.what == 'is no file of tokens: there is no key "tokens"'
    assert 'chmod' not in problem.todo


def test_many_writers_and_readers_lose_nothing_and_see_no_half_file(tmp_path: Path) -> None:
    path = tmp_path / 'tokens.yaml'
    write_tokens(path, [])
    seen: list[str] = []
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            seen.extend(str(p) for p in read_tokens(path).problems)

    def write(first: int) -> None:
        for number in range(first, first + 10):
            with changing(path) as real:
                write_tokens(real, [*read_tokens(real).entries, entry(number)])

    reader = threading.Thread(target=read)
    reader.start()
    writers = [threading.Thread(target=write, args=(n,)) for n in (100, 200, 300)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    is_over.set()
    reader.join()
    assert not seen
    assert len(read_tokens(path).entries) == 30


def test_a_file_that_cannot_be_replaced_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'tokens.yaml'
    write_tokens(path, [entry()])

    def full(*_: object) -> None:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, 'replace', full)
    with pytest.raises(OSError, match='No space'):
        write_tokens(path, [])
    assert read_tokens(path).entries == (entry(),)
    assert [p.name for p in tmp_path.iterdir()] == ['tokens.yaml']


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / 'real' / 'tokens.yaml'
    real.parent.mkdir()
    link = tmp_path / 'tokens.yaml'
    link.symlink_to(real)
    with changing(link) as path:
        write_tokens(path, [entry()])
    assert link.is_symlink()
    assert read_tokens(link).entries == read_tokens(real).entries == (entry(),)
