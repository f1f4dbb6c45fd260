"""Tests the command line: what it prints, and its exit codes."""

from collections.abc import Callable
import json
from pathlib import Path
from typing import Any

from audit_disk import files, running
from config_sample import ADAPTERS, SAMPLE
import pytest
import yaml

from awp_ros_bridge import __version__
from awp_ros_bridge.cli import check, check_ros, ros_verb
from awp_ros_bridge.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def awp(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a way to run the command line."""

    def run(*args: object) -> tuple[int, str, str]:
        try:
            code = main([str(arg) for arg in args])
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run


SIM_ARM = Path(__file__).parents[2] / 'config' / 'sim_arm.yaml'


@pytest.fixture
def robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a configuration, with adapters that need no ROS."""
    monkeypatch.setattr(check, 'find_adapters', lambda: (ADAPTERS, ''))
    path = tmp_path / 'robot.yaml'
    path.write_text(SAMPLE)
    return path


def test_check_says_that_a_file_is_usable(awp: Run, robot: Path) -> None:
    assert awp('check', robot) == (0, f'{robot}: usable, 0 errors, 0 warnings\n', '')


def test_check_says_what_is_wrong_with_lines(awp: Run, robot: Path) -> None:
    robot.write_text(SAMPLE.replace('guardian:', 'gardian:').replace('vendor: maker', 'vendor: 1'))
    code, out, _ = awp('check', robot)
    assert code == 2
    assert out.splitlines() == [
        f'{robot}:1: world.vendor: expected a text, found the number 1; put it in quotes',
        f"{robot}:2: gardian: unknown key 'gardian'; did you mean 'guardian'?",
        f'{robot}: not usable, 2 errors, 0 warnings',
    ]


def test_check_finds_files_that_are_not_there(awp: Run, tmp_path: Path) -> None:
    body = yaml.safe_load(SIM_ARM.read_text(encoding='utf-8'))
    body['server'] = {'tokens_file': 'tokns.yaml'}
    body['embodiments']['arm_01']['kinematics']['urdf'] = {'file': 'nope/arm.urdf'}
    path = tmp_path / 'robot.yaml'
    path.write_text(yaml.safe_dump(body), encoding='utf-8')
    code, out, _ = awp('check', path)
    assert code == 2
    tokens, urdf = (
        next(line for line in out.splitlines() if place in line)
        for place in ('server.tokens_file', 'arm_01.kinematics.urdf.file')
    )
    assert 'tokns.yaml' in tokens
    assert f'{tmp_path}/nope/arm.urdf: No such file or directory; without it' in urdf


def test_check_lets_warnings_pass(awp: Run, robot: Path) -> None:
    robot.write_text(SAMPLE.replace('ros_action: arm/move', 'ros_action: /arm/move'))
    code, out, _ = awp('check', robot)
    assert code == 0
    assert "actions.move.ros_action: warning: '/arm/move' is absolute" in out
    assert out.endswith('usable, 0 errors, 1 warning\n')


def test_check_answers_in_json(awp: Run, robot: Path) -> None:
    robot.write_text(SAMPLE.replace('guardian:', 'gardian:'))
    code, out, _ = awp('check', '--json', robot)
    assert code == 2
    answer: Any = json.loads(out)
    assert answer['ok'] is False
    assert answer['adapters_checked'] is True
    assert answer['problems'] == [
        {
            'file': str(robot),
            'line': 2,
            'path': 'gardian',
            'what': "unknown key 'gardian'",
            'todo': "did you mean 'guardian'?",
            'severity': 'error',
        }
    ]


def test_check_says_so_when_adapters_are_not_at_hand(
    awp: Run, robot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(check, '_REGISTRY', 'awp_ros_bridge.no_such_room')
    code, out, _ = awp('check', robot)
    assert code == 0
    assert 'adapters, their options and limits were not checked' in out
    assert 'no_such_room' in out


def test_check_finds_the_adapters_of_the_installation() -> None:
    adapters, why_not = check.find_adapters()
    assert why_not == ''
    assert adapters is not None
    assert {'stop', 'follow_joint_trajectory'} <= set(adapters)


def test_check_reports_a_missing_file(awp: Run, robot: Path) -> None:
    code, out, _ = awp('check', robot.parent / 'no.yaml')
    assert code == 2
    assert 'cannot be read: No such file or directory' in out


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the file of a whole log."""
    with running(tmp_path) as writer:
        writer.open('s1', 0, {})
        writer.record('s1', 1, 'agent', 'message', {'n': 1})
        writer.close('s1')
    return files(tmp_path)[0]


def test_verify_says_that_a_log_is_whole(awp: Run, log: Path) -> None:
    code, out, _ = awp('audit', 'verify', log)
    assert code == 0
    assert out.startswith(f'{log.stem}: whole, 3 records in 1 part, session s1, last hash ')
    assert awp('audit', 'verify', log.parent)[:2] == (code, out)


def test_verify_says_where_a_log_is_broken(awp: Run, log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"n":1', b'"n":2'))
    code, out, _ = awp('audit', 'verify', log)
    assert code == 1
    assert out.splitlines()[0].startswith(f'{log.name}:3: prev_hash does not match')
    assert 'FAULTY' in out
    code, out, _ = awp('audit', 'verify', '--json', log)
    assert code == 1
    assert json.loads(out)['logs'][0]['faults'][0]['line'] == 3


def test_verify_notes_a_log_without_end_and_what_it_lacks(awp: Run, log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b''.join(lines[:-1]))
    code, out, _ = awp('audit', 'verify', log)
    assert code == 0
    assert f'{log.stem}: note: no end record' in out
    changed = lines[1].replace(b'"message"', b'"gap"').replace(b'"n":1', b'"dropped":7')
    log.write_bytes(lines[0] + changed)
    assert '7 records lost while the disk took nothing' in awp('audit', 'verify', log)[1]


def test_verify_has_a_code_for_what_cannot_be_read(awp: Run, tmp_path: Path) -> None:
    code, out, err = awp('audit', 'verify', tmp_path / '20200101T000000.000Z_a.jsonl')
    assert (code, out) == (2, '')
    assert 'No such file or directory' in err
    code, out, _ = awp('audit', 'verify', '--json', tmp_path)
    assert code == 2
    assert json.loads(out) == {
        'ok': False,
        'error': f'{tmp_path}: no audit log is in this folder',
    }


def test_help_tells_the_exit_codes(awp: Run) -> None:
    tokens = [['token', verb] for verb in ('make', 'list', 'revoke')]
    ros = [[verb] for verb in ('status', 'sessions', 'stop', 'clear')]
    for verb in (['check'], ['audit', 'verify'], *tokens, *ros):
        code, out, _ = awp(*verb, '--help')
        assert code == 0
        codes = out.partition('exit codes:\n')[2]
        assert codes.startswith('  0  ')
        assert 'not used' not in codes
    assert '\n  1  ' not in awp('sessions', '--help')[1]
    assert '\n  1  a part is in error\n' in awp('status', '--help')[1]


@pytest.mark.parametrize('verb', ['status', 'sessions', 'stop', 'clear'])
def test_a_verb_without_ros_says_what_to_source(
    awp: Run, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ros_verb, '_VISITOR', 'no_such_ros')
    code, out, err = awp(verb)
    assert (code, out) == (2, '')
    assert err == (
        "ROS 2 is not at hand (No module named 'no_such_ros'); source its setup file first\n"
    )
    code, out, err = awp(verb, '--json')
    assert (code, err) == (2, '')
    assert json.loads(out)['ok'] is False


def test_check_ros_without_ros_says_what_to_source(
    awp: Run, robot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_ros, '_VISITOR', 'no_such_ros')
    code, out, err = awp('check', '--ros', robot)
    assert (code, out) == (2, '')
    assert 'source its setup file first' in err
    code, out, _ = awp('check', '--ros', '--json', robot)
    assert code == 2
    assert json.loads(out)['ok'] is False
    robot.write_text(SAMPLE.replace('guardian:', 'gardian:'))
    assert awp('check', '--ros', robot)[0] == 2, 'a file with errors is compared with nothing'


@pytest.mark.parametrize('seconds', ['0', '-1', 'nan', 'soon', '601'])
def test_a_wait_without_a_bound_is_refused(awp: Run, seconds: str) -> None:
    code, _, err = awp('status', '--timeout-s', seconds)
    assert code == 2
    assert 'write 0.1 to 600 seconds' in err


def test_version_and_missing_verbs(awp: Run) -> None:
    assert awp('--version')[:2] == (0, f'awp_ros_bridge {__version__}\n')
    assert awp()[0] == 2
    assert awp('audit')[0] == 2
    assert awp('chekc')[0] == 2


def test_a_reader_that_goes_away_is_no_traceback(
    awp: Run, robot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(check, '_print', gone)
    monkeypatch.setattr('sys.stderr.close', lambda: None)
    assert awp('check', robot)[0] == 1
