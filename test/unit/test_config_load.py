"""Tests loading: every problem in one run, with file, line, value, limit and advice (F119)."""

import hashlib
from pathlib import Path
from typing import Any

from config_sample import drop, loaded, put, said, SAMPLE
import pytest

from awp_ros_bridge.config import directory_of, load, load_text, Severity
from awp_ros_bridge.config.problems import dotted, nearest, Problem, shown, unit_of

INPUT = 'embodiments/arm_01/safety_inputs/0'


def test_the_sample_has_no_problem() -> None:
    result = loaded()
    assert result.problems == ()
    assert result.config is not None
    assert not result.adapters_checked


def test_every_problem_is_found_in_one_run() -> None:
    text = (
        'world: {name: a, vender: b}\n'
        'safety:\n'
        '  watchdg_ms: 3\n'
        '  watchdog_ms: 9000\n'
        "  max_basis_age_ms: '5'\n"
        'guardian: off\n'
        'guardian: off\n'
        'session: {reconnect_window_ms: 1.5}\n'
        'embodiments:\n'
        '  a1:\n'
        '    kind: x\n'
        '    actions: [go, gop]\n'
        '    at_rest: {topic: joint_states, joints: [], max_velocity_radps: .nan}\n'
        'actions:\n'
        '  go: {adapter: 5}\n'
    )
    result = load_text(text, 'robot.yaml')
    assert result.config is None
    assert [str(problem) for problem in result.problems] == [
        "robot.yaml:1: world.vender: unknown key 'vender'; did you mean 'vendor'?",
        "robot.yaml:1: world.vendor: 'vendor' is missing; add it",
        "robot.yaml:3: safety.watchdg_ms: unknown key 'watchdg_ms'; did you mean 'watchdog_ms'?",
        'robot.yaml:4: safety.watchdog_ms: 9000 ms is out of range, the most is 5000 ms; lower it',
        "robot.yaml:5: safety.max_basis_age_ms: expected a whole number, found the text '5'; "
        'write it without quotes and without a unit',
        "robot.yaml:7: guardian: key 'guardian' stands twice, first in line 6; keep one of them",
        'robot.yaml:8: session.reconnect_window_ms: expected a whole number, '
        'found the number 1.5; correct it',
        'robot.yaml:13: embodiments.a1.at_rest.joints: it is empty; write 1 or more',
        'robot.yaml:13: embodiments.a1.at_rest.max_velocity_radps: nan is not a finite number; '
        'write a finite one',
        'robot.yaml:15: actions.go.adapter: expected a text, found the number 5; put it in quotes',
    ]


def test_a_mistake_that_an_alias_repeats_is_told_once() -> None:
    def problems(second: str) -> list[str]:
        text = (
            'embodiments:\n'
            '  a: &a {kind: x, actions: [], at_rest: {topic: t, joints: all, for_ms: 1}}\n'
            f'  b: {second}\n'
        )
        found = load_text(text, 'robot.yaml').problems
        return [str(problem) for problem in found if 'for_ms' in problem.path]

    assert problems('*a') == [
        'robot.yaml:2: embodiments.a.at_rest.for_ms: 1 ms is out of range, the least is 10 ms; '
        'raise it'
    ]
    assert len(problems('{<<: *a, kind: y}')) == 1
    assert len(problems('{kind: x, actions: [], at_rest: {topic: t, for_ms: 1}}')) == 2


@pytest.mark.parametrize('word', ['off', 'never', 'none'])
def test_a_word_where_a_number_belongs_asks_for_a_number(word: str) -> None:
    problem = only(f'safety: {{watchdog_ms: {word}}}\n', 'safety.watchdog_ms')
    assert problem == f"expected a whole number, found the text '{word}'; write a number"


def only(text: str, path: str) -> str:
    (found,) = (p for p in load_text(text).problems if p.path == path)
    return f'{found.what}; {found.todo}'


def test_rules_between_values_are_applied_beside_wrong_values() -> None:
    def change(data: dict[str, Any]) -> None:
        data['server'] = {'prot': 1}
        data['embodiments']['arm_01']['actions'].append('moove')
        data['session'] = {'reconnect_window_ms': 1000}

    assert said(loaded(change)) == [
        'safety.watchdog_ms: 2000 ms is longer than session.reconnect_window_ms, 1000 ms; '
        'lower it, or raise the window (AWP-SAF-003)',
        "embodiments.arm_01.actions[3]: action 'moove' is not declared; declare it in actions; "
        "did you mean 'move'?",
        "server.prot: unknown key 'prot'; did you mean 'port'?",
    ]


@pytest.mark.parametrize(
    ('path', 'value', 'only'),
    [
        # a wrong value is not also reported as the missing half of a rule
        ('actions/move/max_queue', 0, 'actions.move.max_queue'),
        ('actions/move/max_qeue', 4, 'actions.move.max_qeue'),
        ('actions/move/adapter', '', 'actions.move.adapter'),
        ('frames/include/base', '/base', 'frames.include.base'),
        ('channels/proprio/type', 'JointState', 'channels.proprio.type'),
        ('embodiments/arm_01/at_rest', 5, 'embodiments.arm_01.at_rest'),
    ],
)
def test_one_mistake_is_one_problem(path: str, value: object, only: str) -> None:
    result = loaded(put(path, value))
    assert [problem.path for problem in result.problems] == [only]


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        (drop('world'), "world: 'world' is missing; add it"),
        (
            put('world/name', ''),
            'world.name: the text is empty; write something that a person can read',
        ),
        (put('world/name', None), 'world.name: expected a text, found nothing; correct it'),
        (
            put('guardian', False),
            'guardian: expected one of required, off, found false; write one of them',
        ),
        (
            put('guardian', 'requird'),
            "guardian: expected one of required, off, found the text 'requird'; "
            "did you mean 'required'?",
        ),
        (
            put('server/idle_timeout_s', 14),
            'server.idle_timeout_s: 14 s is out of range, the least is 15 s; raise it',
        ),
        (
            put('server/port', True),
            'server.port: expected a whole number, found true; correct it',
        ),
        (
            put('session/heartbeat_interval_ms', 99),
            'session.heartbeat_interval_ms: 99 ms is out of range, the least is 100 ms; raise it',
        ),
        (
            put('session/grant_ttl_s', 0),
            'session.grant_ttl_s: 0 s is out of range, it must be more than 0 s; raise it',
        ),
        (
            put('frames/tf_rate_hz', float('inf')),
            'frames.tf_rate_hz: inf is not a finite number; write a finite one',
        ),
        (
            put('safety/behavior', 'stop'),
            "safety.behavior: 'stop' is not a safe-state behaviour; "
            'use one of hold, safe_stop, park, or x-<vendor>.<name>',
        ),
        (
            put('safety', []),
            'safety: expected a mapping, found a list; correct it',
        ),
        (
            put('embodiments/arm_01/actions', {'a': 1}),
            'embodiments.arm_01.actions: expected a list, found a mapping; correct it',
        ),
        (
            drop('embodiments/arm_01/at_rest'),
            "embodiments.arm_01.at_rest: 'at_rest' is missing; add it",
        ),
        (
            put('embodiments/arm_01/at_rest', {'unmeasured': False, 'settle_ms': 100}),
            'embodiments.arm_01.at_rest.unmeasured: expected one of True, found false; '
            'write one of them',
        ),
        (
            put('embodiments/arm_01/at_rest', {'topic': 'joint_states'}),
            'embodiments.arm_01.at_rest: rest has no velocity bound; add max_velocity_radps for '
            'revolute joints, max_velocity_mps for prismatic ones',
        ),
        (
            put('embodiments/arm_01/at_rest/max_velocity_mps', 0.1),
            'embodiments.arm_01.at_rest: it is not clear which bound a joint has; list the '
            'sliding joints in prismatic exactly when both bounds are given',
        ),
        (
            put('embodiments/arm_01/envelope/spatial/aabb_m', [[0, 0, 0], [1, 0, 1]]),
            'embodiments.arm_01.envelope.spatial: the box is empty along y: 0.0 m to 0.0 m; '
            'write the lower corner first',
        ),
        (
            put('embodiments/arm_01/envelope/spatial/aabb_m', [[0, 0, 0]]),
            'embodiments.arm_01.envelope.spatial.aabb_m[1]: item 1 is missing; add it',
        ),
        (
            put(f'{INPUT}/freshness', {'by': 'mesage'}),
            'embodiments.arm_01.safety_inputs[0].freshness: expected one of message, companion, '
            "found the text 'mesage'; did you mean 'message'?",
        ),
        (
            put(f'{INPUT}/freshness', {'by': 'companion'}),
            "embodiments.arm_01.safety_inputs[0].freshness.topic: 'topic' is missing; add it",
        ),
        (
            drop(f'{INPUT}/freshness'),
            "embodiments.arm_01.safety_inputs[0].freshness: 'freshness' is missing; add it",
        ),
        (
            drop(f'{INPUT}/stale_after_ms'),
            "embodiments.arm_01.safety_inputs[0].stale_after_ms: 'stale_after_ms' is missing; "
            'add it',
        ),
        (
            put(f'{INPUT}/unsafe_when', {'equals': 1, 'bit': 2}),
            'embodiments.arm_01.safety_inputs[0].unsafe_when: a condition needs exactly one '
            'comparison, found 2; write one of equals, in, not_in, above, below, bit (above and '
            'below may join)',
        ),
        (
            put(f'{INPUT}/unsafe_when', {'one_of': [1]}),
            "embodiments.arm_01.safety_inputs[0].unsafe_when.one_of: unknown key 'one_of'; "
            'known here: above, below, bit, equals, in, not_in',
        ),
        (
            put('channels/arm_state/topic', 'x'),
            "channels.arm_state.topic: unknown key 'topic'; "
            'known here: embodiment, loss_class, modality, rate_hz, source, stale_after_ms',
        ),
        (
            put('channels/proprio/modality', 'proprio'),
            "channels.proprio.modality: 'proprio' is not a registered modality; use one of "
            'image/jpeg, image/raw, audio/pcm, text/event+json, proprio/json, servo/json, '
            'pointcloud/xyz32, tensor/raw, or x-<vendor>.<name>',
        ),
        (
            put('channels/proprio/topic', 'joint states'),
            "channels.proprio.topic: 'joint states' is not a ROS name; use letters, digits and "
            'single _ in parts divided by /, no part beginning with a digit, such as '
            'arm_controller/follow_joint_trajectory',
        ),
        (
            put('channels/proprio/type', 'sensor_msgs/srv/JointState'),
            "channels.proprio.type: 'sensor_msgs/srv/JointState' does not name a ROS interface "
            'of the msg kind; write package/msg/Name',
        ),
        (
            put(f'{INPUT}/field', 'status..level'),
            "embodiments.arm_01.safety_inputs[0].field: 'status..level' is not a field path; "
            'write names divided by dots, a list item by its index or by a field of it, such as '
            'status[0].level or status[name=arm: drive].level',
        ),
        (
            put('server/public_url', 'http://robot'),
            "server.public_url: 'http://robot' is not a WebSocket address; write "
            'ws://host:port or wss://host, no query',
        ),
        (
            put('server/token_env', 'A B'),
            "server.token_env: 'A B' is not the name of an environment variable; "
            'use A-Z, 0-9 and _',
        ),
        (
            put('audit/redact_paths', ['note']),
            "audit.redact_paths[0]: 'note' is not a JSON pointer; begin with /, such as "
            '/params/note',
        ),
        (
            put('frames/include/tool0', 'tool 0'),
            "frames.include.tool0: 'tool 0' is not a tf frame; write its name without a leading /",
        ),
        (put('actions', {}), 'actions: it is empty; write 1 or more'),
    ],
)
def test_a_wrong_value_says_what_and_what_to_do(change: Any, problem: str) -> None:
    assert said(loaded(change))[0] == problem


@pytest.mark.parametrize('name', ['arm 01', '1arm', 'arm/1', 'ärm', 'a' * 129, ''])
def test_names_are_awp_identifiers(name: str) -> None:
    problem = load_text(SAMPLE.replace('arm_01:', f"'{name}':")).problems[0]
    assert 'is not an AWP identifier' in problem.what
    assert problem.line == 5


def test_all_lists_empty_and_all_types_wrong_stay_readable() -> None:  # F119
    text = (
        'world: []\nserver: 5\nsession: x\nsafety: 1.5\nguardian: []\naudit: no\nframes: []\n'
        'simulation: []\nembodiments: []\nchannels: []\nactions: []\n'
    )
    result = load_text(text, 'robot.yaml')
    assert [problem.line for problem in result.problems] == list(range(1, 12))
    assert all('expected' in problem.what for problem in result.problems)


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    result = load(tmp_path / 'no.yaml')
    assert result.config is None
    assert result.digest == ''
    expected = f'{tmp_path}/no.yaml: cannot be read: No such file or directory; check the path'
    assert [str(problem) for problem in result.problems] == [expected]


def test_a_folder_is_a_problem(tmp_path: Path) -> None:
    assert 'cannot be read' in load(tmp_path).problems[0].what


@pytest.mark.parametrize(
    ('text', 'what'),
    [
        ('', 'the file is empty'),
        ('- a\n', 'expected a mapping, found a list'),
        ('word', "expected a mapping, found the text 'word'"),
        ('a: [', 'YAML cannot be read'),
    ],
)
def test_what_is_no_configuration_is_one_problem(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / 'robot.yaml'
    path.write_text(text)
    result = load(path)
    assert len(result.problems) == 1
    assert what in result.problems[0].what


def test_a_file_that_is_not_utf8_says_where(tmp_path: Path) -> None:
    path = tmp_path / 'robot.yaml'
    path.write_bytes(b'world: 1\n# \xff\n')
    (problem,) = load(path).problems
    assert problem.line == 2
    assert 'not UTF-8' in problem.what


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / 'robot.yaml'
    with path.open('wb') as stream:
        stream.truncate(5 * 1024 * 1024)
    (problem,) = load(path).problems
    assert 'is larger than' in problem.what


def test_the_digest_is_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / 'robot.yaml'
    path.write_bytes(b'\xef\xbb\xbf' + SAMPLE.encode())
    result = load(path)
    assert result.config is not None
    assert result.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert load_text(SAMPLE).digest == hashlib.sha256(SAMPLE.encode()).hexdigest()


def test_relative_paths_start_beside_the_file(tmp_path: Path) -> None:
    assert directory_of(tmp_path / 'robot.yaml') == tmp_path


def test_a_configuration_does_not_change() -> None:
    result = loaded()
    assert result.config is not None
    with pytest.raises(ValueError, match='frozen'):
        result.config.world.name = 'x'  # type: ignore[misc]


def test_warnings_are_marked_and_do_not_forbid() -> None:
    result = loaded(put('actions/move/ros_action', '/arm/move'))
    assert result.config is not None
    assert [problem.severity for problem in result.problems] == [Severity.WARNING]
    assert result.warnings == result.problems
    assert "actions.move.ros_action: warning: '/arm/move' is absolute" in str(result.problems[0])


def test_long_values_are_shortened() -> None:
    assert len(shown('x' * 1000)) < 90
    assert shown(object()) == 'object'
    assert shown(1.5) == 'the number 1.5'


def test_paths_and_units_are_written_as_people_read_them() -> None:
    assert dotted(('a', 'b', 0, 'c')) == 'a.b[0].c'
    assert dotted(('a', 'b\nc')) == "a.'b\\nc'"
    assert unit_of(('max_velocity_mps', 0)) == ' m/s'
    assert unit_of(()) == ''
    assert nearest('x', ()) == 'none is known here'
    assert str(Problem('f', 0, '', 'what', 'do')) == 'f: what; do'


@pytest.mark.parametrize(
    ('path', 'value', 'problem'),
    [
        (
            'embodiments/arm_01/envelope/spatial/aabb_m',
            [[0, 0, 0], [1, 1, 1], [2, 2, 2]],
            'embodiments.arm_01.envelope.spatial.aabb_m: it has too many items; write at most 2',
        ),
        (
            'embodiments/arm_01/kinematics',
            {'urdf': {'file': 'a', 'topic': 'b'}, 'base_frame': 'a', 'tip_frame': 'b'},
            "embodiments.arm_01.kinematics.urdf.topic: unknown key 'topic'; known here: file",
        ),
    ],
)
def test_shapes_are_checked(path: str, value: object, problem: str) -> None:
    assert said(loaded(put(path, value))) == [problem]


def test_nothing_more_is_said_where_too_little_is_left() -> None:
    result = load_text('embodiments: {a: 5}\nactions: {b: 5}\nworld: {name: a, vendor: b}\n')
    assert [problem.path for problem in result.problems] == ['embodiments.a', 'actions.b']


def test_a_robot_description_may_come_from_a_file() -> None:
    kinematics = {'urdf': {'file': 'arm.urdf'}, 'base_frame': 'a', 'tip_frame': 'b'}
    config = loaded(put('embodiments/arm_01/kinematics', kinematics)).config
    assert config is not None
    again = type(config).model_validate({name: getattr(config, name) for name in dict(config)})
    assert again == config


@pytest.mark.parametrize(
    'path',
    [
        'world/name',
        'embodiments',
        'actions',
        'embodiments/arm_01/kind',
        'embodiments/arm_01/actions',
        f'{INPUT}/topic',
        f'{INPUT}/type',
        f'{INPUT}/field',
        f'{INPUT}/unsafe_when',
        f'{INPUT}/means',
        'embodiments/arm_01/envelope/spatial/frame',
        'embodiments/arm_01/envelope/spatial/aabb_m',
        'channels/proprio/rate_hz',
        'channels/proprio/loss_class',
        'actions/move/adapter',
    ],
)
def test_what_has_no_safe_default_must_be_written(path: str) -> None:
    key = path.rpartition('/')[2]
    (problem,) = said(loaded(drop(path)))
    assert (
        problem == f"{path.replace('/0/', '[0]/').replace('/', '.')}: '{key}' is missing; add it"
    )
