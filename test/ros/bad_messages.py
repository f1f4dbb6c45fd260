"""Owns the bad messages of the tests: what is sent, and what the answer must name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
import json
from typing import Any

from agent_words import hello, to_pose
from sim_robot_goals import HOME

from awp_ros_bridge.sim_robot.description import ARM_JOINTS

Json = dict[str, Any]

HOME_M = (0.0, 0.0, 0.4)
PING = {'origin_ns': 1}
POSE = to_pose(*HOME_M)
TRAJECTORY: Json = {
    'joint_names': list(ARM_JOINTS),
    'points': [{'positions_rad': list(HOME), 'time_from_start_ms': 500}],
}
GONE = object()


def request(method: str, params: Any, number: Any = 'q', **more: Any) -> str:
    body = {'jsonrpc': '2.0', 'id': number, 'method': method, 'params': params, **more}
    return json.dumps(body)


def submission(params: Any, kind: str = 'move_to_pose', **more: Any) -> str:
    return request('action.submit', {'action_id': 'bad', 'type': kind, 'params': params, **more})


def changed(base: Json, path: tuple[str | int, ...], value: Any) -> Json:
    made: Any = deepcopy(base)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return dict(made)


def pose(*path: str | int, value: Any = GONE) -> str:
    return submission(changed(POSE, path, value))


def trajectory(*path: str | int, value: Any = GONE) -> str:
    return submission(changed(TRAJECTORY, path, value), 'follow_joint_trajectory')


def nested(levels: int) -> str:
    return '[' * levels + ']' * levels


# Text, id of the answer, code, words that the detail must hold.
Case = tuple[str, Any, int, tuple[str, ...]]

NO_MESSAGE: Mapping[str, Case] = {
    'cut off': ('{"a":', None, -32700, ('not JSON',)),
    'empty': ('', None, -32700, ('not JSON',)),
    'words': ('go home', None, -32700, ('not JSON',)),
    'batch': (f'[{request("ping", PING)}]', None, -32600, ('batches',)),
    'nested 10,000': (nested(10_000), None, -32700, ('recursion',)),
    'objects nested 10,000': ('{"a":' * 10_000 + '1' + '}' * 10_000, None, -32700, ('recursion',)),
    'params nested 100': (
        request('ping', PING)[:-2] + f', "a": {nested(100)}}}}}', 'q', -32700, ('64 levels',),
    ),
    'a number': ('5', None, -32600, ('a JSON object', 'a number')),
    'NaN': (request('ping', {'origin_ns': 7}).replace('7', 'NaN'), None, -32700, ('not JSON',)),
    'Infinity': (
        request('ping', {'origin_ns': 7}).replace('7', '-Infinity'), None, -32700, ('not JSON',),
    ),
    '1e999': (
        request('ping', {'origin_ns': 7}).replace('7', '1e999'), 'q', -32700, ('double',),
    ),
    'lone surrogate': (request('ping', PING, '?').replace('?', '\\ud800'), None, -32700, ()),
    'no jsonrpc': ('{"id": "q", "method": "ping"}', 'q', -32600, ("'jsonrpc'", '2.0')),
    'boolean id': (request('ping', PING, True), None, -32600, ("'id'", 'a boolean')),
    'fractional id': (request('ping', PING, 1.5), None, -32600, ("'id'",)),
    'null id': (request('ping', PING, None), None, -32600, ("'id'", 'null')),
    'params an array': (request('ping', [1]), 'q', -32602, ("'params'", 'an array')),
    'params null': (request('ping', None), 'q', -32602, ("'params'", 'null')),
    'unknown method': (request('robot.fly', {}), 'q', -32601, ('robot.fly',)),
    'huge method': (request('x' * 500_000, {}), 'q', -32601, ('xxx',)),
    'missing field': (request('ping', {}), 'q', -32602, ('origin_ns is missing',)),
    'string for a number': (
        request('ping', {'origin_ns': '1'}), 'q', -32602, ('origin_ns', '"1"', 'integer'),
    ),
    'negative': (request('ping', {'origin_ns': -1}), 'q', -32602, ('origin_ns', '-1', '0')),
}  # fmt: skip

REFUSED: Mapping[str, Case] = {
    'no pose': (submission({}), 'q', 3001, ('params.pose is missing',)),
    'misspelt': (
        pose('max_velocty_mps', value=1.0), 'q', 3001,
        ('params.max_velocty_mps', 'not known', 'max_velocity_mps'),
    ),
    'stray in the pose': (pose('pose', 'yaw', value=1), 'q', 3001, ('params.pose.yaw', 'frame')),
    'unknown frame': (
        pose('pose', 'frame', value='nope'), 'q', 3001, ('params.pose.frame', 'nope', 'base'),
    ),
    'slashed frame': (pose('pose', 'frame', value='/base'), 'q', 3001, ('frame', '/base')),
    'huge frame': (
        pose('pose', 'frame', value='f' * 500_000), 'q', 3001, ('frame', '128 characters'),
    ),
    'two numbers': (pose('pose', 'p_m', value=[0, 0]), 'q', 3001, ('p_m', '2 items', '3')),
    'a string in it': (
        pose('pose', 'p_m', 1, value='0'), 'q', 3001, ('params.pose.p_m[1]', '"0"', 'a number'),
    ),
    'a boolean in it': (pose('pose', 'p_m', 1, value=True), 'q', 3001, ('p_m[1]', 'true')),
    'null in it': (pose('pose', 'p_m', 1, value=None), 'q', 3001, ('p_m[1]', 'null')),
    'zero quaternion': (
        pose('pose', 'q', value=[0, 0, 0, 0]), 'q', 3001, ('params.pose.q', 'length 0', '1'),
    ),
    'long quaternion': (pose('pose', 'q', value=[0, 0, 0, 2]), 'q', 3001, ('pose.q', '2')),
    '1e999 in the pose': (
        pose('pose', 'p_m', value=[0, 0, 7.5]).replace('7.5', '1e999'), 'q', -32700, ('double',),
    ),
    'NaN in the pose': (
        pose('pose', 'p_m', value=[0, 0, 7.5]).replace('7.5', 'NaN'), None, -32700, ('JSON',),
    ),
    'no speed': (
        pose('max_velocity_mps', value=0), 'q', 3001, ('params.max_velocity_mps', '0.0001'),
    ),
    'too fast': (
        pose('max_velocity_mps', value=2), 'q', 4002, ('max_velocity_mps', '2', '0.5 m/s'),
    ),
    'outside': (pose('pose', 'p_m', 0, value=0.6), 'q', 4002, ('p_m', '0.6', '0.5', 'base')),
    'far outside': (pose('pose', 'p_m', 0, value=1e300), 'q', 4002, ('params.pose.p_m',)),
    'empty trajectory': (trajectory('points', value=[]), 'q', 3001, ('params.points', '0 items')),
    'too many points': (
        trajectory('points', value=TRAJECTORY['points'] * 1001), 'q', 3001,
        ('params.points', '1001 items', 'at most 1000'),
    ),
    'unknown joint': (
        trajectory('joint_names', 0, value='elbow'), 'q', 3001,
        ('joint_names[0]', 'elbow', 'joint_1', 'joint_6'),
    ),
    'a joint twice': (
        trajectory('joint_names', 0, value='joint_2'), 'q', 3001, ('joint_names', 'twice'),
    ),
    'a joint missing': (
        submission(
            {
                'joint_names': list(ARM_JOINTS[:5]),
                'points': [{'positions_rad': HOME[:5], 'time_from_start_ms': 500}],
            },
            'follow_joint_trajectory',
        ),
        'q', 3001, ('params.joint_names', 'missing', 'joint_6'),
    ),
    'too few positions': (
        trajectory('points', 0, 'positions_rad', value=[0.0]), 'q', 3001,
        ('params.points[0].positions_rad', '1 numbers', '6 joints'),
    ),
    '50 rad': (
        trajectory('points', 0, 'positions_rad', 0, value=50.0), 'q', 3001,
        ('params.points[0].positions_rad', 'joint_1', '50', '2.9'),
    ),
    'at once': (
        trajectory('points', 0, 'positions_rad', 0, value=2.0).replace('500', '1'), 'q', 4002,
        ('params.points', 'max_velocity_mps', '0.5 m/s'),
    ),
    'times that do not increase': (
        trajectory('points', value=TRAJECTORY['points'] * 2), 'q', 3001,
        ('params.points[1].time_from_start_ms', '500', 'increase'),
    ),
    'moving at the end': (
        trajectory('points', 0, 'velocities_radps', value=[1.0] * 6), 'q', 3001,
        ('params.points[0].velocities_radps', 'at rest'),
    ),
    'unknown type': (submission(POSE, 'fly'), 'q', 4001, ('fly', 'move_to_pose')),
    'other body': (
        submission(POSE, embodiment_id='gripper_01'), 'q', 4001, ('gripper_01', 'arm_01'),
    ),
    'undeclared preemption': (
        submission(POSE, preempt='blend'), 'q', 3001, ('blend', 'replace, queue, reject'),
    ),
    'no time': (submission(POSE, deadline_ms=0), 'q', -32602, ('deadline_ms', '0', '1')),
    'half a millisecond': (submission(POSE, deadline_ms=1.5), 'q', -32602, ('deadline_ms', '1.5')),
    'future basis': (
        submission(POSE, basis_ts_mono_ns=2**53 - 1), 'q', 3007, ('basis_ts_mono_ns', 'future'),
    ),
    'old basis': (
        submission(POSE, basis_ts_mono_ns=1), 'q', 3007, ('basis_ts_mono_ns', 'max_basis_age_ms'),
    ),
    'past validity': (submission(POSE, valid_until_ns=1), 'q', 3007, ('valid_until_ns',)),
    'params an array in a submission': (submission([1]), 'q', -32602, ('params', '[1]', 'object')),
    'long action id': (
        request('action.submit', {'action_id': 'i' * 129, 'type': 'stop', 'params': {}}),
        'q', -32602, ('action_id', '128 characters'),
    ),
    'unknown action': (request('action.cancel', {'action_id': 'ghost'}), 'q', 3008, ('ghost',)),
    'unknown channel': (
        request('obs.subscribe', {'channels': [{'channel': 'lidar'}]}), 'q', 2007,
        ('lidar', 'proprio'),
    ),
    "another body's channel": (
        request('obs.subscribe', {'channels': [{'channel': 'gripper_state'}]}), 'q', 4001,
        ('gripper_state',),
    ),
    'a second session': (request('session.open', {'mode': 'streaming'}), 'q', 2004, ()),
    'a second initialize': (request('initialize', hello()), 'q', -32600, ('initialize',)),
}  # fmt: skip

HUGE: Mapping[str, Json | str] = {
    'points': {**TRAJECTORY, 'points': TRAJECTORY['points'] * 7000},
    'mixed names': {**TRAJECTORY, 'joint_names': [n for i in range(60_000) for n in (i, 'a')]},
    'positions': changed(TRAJECTORY, ('points', 0, 'positions_rad'), [0.5] * 150_000),
    'members': {f'field-{i}': i for i in range(40_000)},
    'subscribe': request('obs.subscribe', {'channels': [1] * 300_000}),
    'unsubscribe': request('obs.unsubscribe', {'channels': ['/'] * 150_000}),
    'subscribe nothing': request('obs.subscribe', {'channels': [{}] * 200_000}),
    'lists': request('ping', {'a': [[]] * 200_000}),
    'resume': request('session.resume', {'session_token': 't' * 900_000, 'last_status_seq': 0}),
}


def garbage(number: int) -> str:
    """Return one of many bad messages."""
    kinds: list[Callable[[], str]] = [
        lambda: '{"a":' * (number % 300),
        lambda: request(f'method-{number}', {'x': 'y' * number}),
        lambda: submission({f'field-{number}': [number] * 50}),
        lambda: pose('pose', 'frame', value=f'frame-{number}'),
        lambda: trajectory('joint_names', 0, value=f'joint-{number}'),
        lambda: request('session.resume', {'session_token': f'st_{number}', 'last_status_seq': 0}),
        lambda: request('obs.subscribe', {'channels': [{'channel': f'channel-{number}'}]}),
        lambda: request('action.cancel', {'action_id': f'action-{number}'}),
    ]
    return kinds[number % len(kinds)]()
