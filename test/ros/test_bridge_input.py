"""Bad input over the socket: one clear error each, the next message works, no goal leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
import json
import time
from typing import Any

from agent import Agent, hello, run, strict_json, to_pose
from bridge_cell import Cell, HOME_M, RobotTap, running_cell
import pytest
from ros_peer import RosPeer
from sim_robot_goals import HOME, reset

from awp_ros_bridge.sim_robot.description import ARM_JOINTS

Json = dict[str, Any]
Record = Any

PING = {'origin_ns': 1}
POSE = to_pose(*HOME_M)
TRAJECTORY: Json = {
    'joint_names': list(ARM_JOINTS),
    'points': [{'positions_rad': list(HOME), 'time_from_start_ms': 500}],
}
GONE = object()


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    with running_cell(tmp_path_factory.mktemp('input'), log_level='debug') as started:
        run(started.warm_up())
        yield started


@pytest.fixture(scope='module')
def tap(peer: RosPeer, cell: Cell) -> Iterator[RobotTap]:
    reset(peer)
    with RobotTap() as opened:
        peer.wait_until(lambda: opened.samples, 5.0, 'joint states')
        yield opened


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


async def only_answer(agent: Agent, text: str) -> Json:
    """Send text, and return the one answer that it gets before the next message works."""
    strays, told = len(agent.strays), agent.status_seq
    asked = await agent.ask_raw('q', text)
    await agent.settle()
    answers = agent.strays[strays:] + ([asked.result()] if asked.done() else [])
    agent.forget('q')
    assert len(answers) == 1, answers
    assert agent.status_seq == told, (text[:200], agent.notifications[-1].body, answers)
    return answers[0]


@pytest.mark.parametrize('cases', [NO_MESSAGE, REFUSED], ids=['no_message', 'refused'])
def test_each_bad_message_gets_one_error_that_says_what_is_wrong(
    cell: Cell, tap: RobotTap, cases: Mapping[str, Case]
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            await agent.session_state('active')
            taken = tap.taken()
            for name, (text, number, code, words) in cases.items():
                answer = await only_answer(agent, text)
                assert answer['id'] == number, (name, answer)
                assert answer['error']['code'] == code, (name, answer)
                detail = answer['error']['data']['detail']
                missing = [word for word in words if word not in detail]
                assert not missing, (name, detail)
                assert len(detail) < 500, name
            await agent.submit('good', 'move_to_pose', POSE)
            assert (await agent.status('good'))['state'] == 'completed'
            assert tap.taken() == taken + 1

    run(play())
    sent = [line for line in cell.bridge.output.splitlines() if '> goal=' in line]
    assert len(sent) == tap.taken()


def test_notifications_that_are_wrong_are_not_answered(cell: Cell, tap: RobotTap) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            for params in ({}, {'window_ms': 'x'}, {'a': [1]}):
                for method in ('obs.report', 'no.such', 'action.submit', 'session.close'):
                    await agent.send(jsonrpc='2.0', method=method, params=params)
            await agent.send(jsonrpc='2.0', id='w999', result={})
            await agent.send(jsonrpc='2.0', id='w999', error={'code': 1, 'message': 'x'})
            await agent.settle()
            assert not agent.strays
            await agent.settle()

    run(play())


def test_requests_that_come_too_early_are_refused_and_the_right_order_works(cell: Cell) -> None:
    async def play() -> None:
        async with await Agent.dial(cell.bridge.url, cell.bridge.token) as agent:
            for method in ('world.manifest', 'session.open', 'action.submit', 'session.close'):
                refused = await agent.refusal(method, mode='streaming')
                assert refused.code == -32600
                assert f'{method} before initialize' in refused.detail
            assert (await agent.call('ping', origin_ns=5))['origin_ns'] == 5
            old = {**hello(), 'protocol_versions': ['0.9']}
            refused = await agent.refusal('initialize', **old)
            assert (refused.code, refused.data['supported']) == (1001, ['0.1'])
            await agent.call('initialize', **hello())
            refused = await agent.refusal('action.submit', action_id='a', type='b', params={})
            assert refused.code == 2005
            await agent.open(None)
            await agent.close()

    run(play())


def test_two_requests_of_one_id_are_both_answered(cell: Cell) -> None:
    async def play() -> None:
        async with await cell.agent() as agent:
            first = await agent.ask_raw('same', request('ping', {'origin_ns': 1}, 'same'))
            await agent.answer(first)
            second = await agent.ask_raw('same', request('ping', {'origin_ns': 2}, 'same'))
            assert (await agent.answer(second))['origin_ns'] == 2
            huge = 'i' * 100_000
            third = await agent.ask_raw(huge, request('ping', {'origin_ns': 3}, huge))
            assert (await agent.answer(third))['origin_ns'] == 3

    run(play())


def test_an_action_id_is_submitted_once(cell: Cell, tap: RobotTap) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            taken = tap.taken()
            first = await agent.submit('once', 'move_to_pose', POSE)
            again = await agent.submit('once', 'move_to_pose', POSE)
            assert first == {**again, 'state': first['state']}
            await agent.status('once')
            other = await agent.refusal(
                'action.submit', action_id='once', type='move_to_pose', params=to_pose(0.1, 0, 0.4)
            )
            assert other.code == 3004
            assert tap.taken() == taken + 1

    run(play())


def test_binary_on_the_control_connection_is_refused_and_the_next_text_works(cell: Cell) -> None:
    async def play() -> None:
        async with await cell.agent() as agent:
            await agent.raw(b'\x00AWP\xff' * 100)
            await agent.settle()
            (stray,) = agent.strays
            assert stray['error']['code'] == 1002
            assert '500 bytes' in stray['error']['data']['detail']

    run(play())


@pytest.mark.parametrize(
    ('text', 'code'),
    [
        (request('ping', {'origin_ns': 2**53}), 1002),
        (request('ping', {'origin_ns': -(2**53)}), 1002),
        (request('ping', {'origin_ns': 7}).replace('7', '9' * 5000), 1002),
        (submission({'pose': {'depth': [2**60]}}), 1002),
        ('{"jsonrpc": "2.0", "method": "x", "params": {"a": 9007199254740992}}', 1002),
        (request('ping', {'a': 'x' * 1_048_576}), 1009),
        ('[' * 2_000_000, 1009),
    ],
    ids=['2^53', '-2^53', '5,000 digits', 'deep inside', 'in a notification', '1 MB', 'brackets'],
)
def test_what_breaks_the_protocol_closes_with_the_code_that_it_names(
    cell: Cell, tap: RobotTap, text: str, code: int
) -> None:
    async def play() -> None:
        async with cell.holding() as agent:
            taken = tap.taken()
            asked = await agent.ask_raw('q', text)
            closed, reason = await agent.ended()
            assert closed == code
            if code == 1002:
                assert reason == 'AWP_INTEGER_RANGE'
                assert agent.notifications[-1].params['reason'] == 'protocol_error'
                answers = agent.strays + ([asked.result()] if asked.done() else [])
                assert [a['error']['code'] for a in answers] == [2006] * ('"id"' in text)
            assert tap.taken() == taken
        if code == 1009:  # its session is only suspended: take it up again, to close it
            async with await cell.agent() as late:
                await late.resume(agent)
                await late.close()

    run(play())


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


async def send_garbage(agent: Agent, first: int, count: int) -> None:
    """Send bad messages, no more at once than the rate limit's burst, and hear every answer."""
    strays = len(agent.strays)
    for block in range(first, first + count, 100):
        asked = []
        for number in range(block, block + 100):
            text = garbage(number)
            if number % 8:
                name = f'g{number}'
                asked.append(await agent.ask_raw(name, text.replace('"q"', f'"{name}"')))
            else:
                await agent.raw(text)
        await agent.settle()
        assert all('error' in question.result() for question in asked)
    assert len(agent.strays) - strays == -(-count // 8)


def test_memory_stays_flat_over_thousands_of_bad_messages(
    cell: Cell, tap: RobotTap, record_testsuite_property: Record
) -> None:
    async def play() -> tuple[int, int]:
        async with cell.holding() as agent:
            taken = tap.taken()
            await send_garbage(agent, 0, 1000)
            before_kb = cell.bridge.resident_kb()
            await send_garbage(agent, 1000, 2000)
            after_kb = cell.bridge.resident_kb()
            assert tap.taken() == taken
            return before_kb, after_kb

    before_kb, after_kb = run(play())
    record_testsuite_property('bridge_rss_before_kb', before_kb)
    record_testsuite_property('bridge_rss_after_2000_bad_messages_kb', after_kb)
    assert after_kb - before_kb < 4000


def test_what_agents_choose_stands_in_one_line_of_the_log(cell: Cell) -> None:
    name = 'evil\n2026-01-01 00:00:00,000 INFO awp_ros_bridge: all is well\x1b[2J'

    async def play() -> str:
        async with await cell.agent(name) as agent:
            ready = await agent.open(None)
            await agent.close()
            return str(ready['session_id'])

    session_id = run(play())
    log = cell.bridge.output
    (line,) = [row for row in log.splitlines() if f'session={session_id} opened' in row]
    assert 'evil\\n2026' in line
    assert '\x1b' not in log
    assert not [row for row in log.splitlines() if row.startswith('2026-01-01')]


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


def test_a_megabyte_of_bad_input_neither_stops_the_arm_nor_delays_another_client(
    cell: Cell, tap: RobotTap, record_testsuite_property: Record
) -> None:
    async def play() -> float:
        async with cell.holding() as agent, cell.holding('gripper_01') as other:
            await agent.submit('go', 'move_to_pose', to_pose(0.3, 0.2, 0.5, max_velocity_mps=0.1))
            longest_s = 0.0
            for name, content in HUGE.items():
                text = content
                if isinstance(content, dict):
                    text = submission(content, 'follow_joint_trajectory')
                asked = await other.ask_raw('q', str(text))
                while not asked.done() and not other.strays:
                    began_s = time.monotonic()
                    await agent.settle()
                    longest_s = max(longest_s, time.monotonic() - began_s)
                other.strays.clear()
                other.forget('q')
                assert agent.states('go') == ['executing'], name
            assert (await agent.status('go'))['state'] == 'completed'
            return longest_s

    longest_s = run(play())
    record_testsuite_property('bridge_ping_beside_a_bad_megabyte_ms', round(longest_s * 1e3, 1))
    assert 'bridge loop was silent' not in cell.bridge.output


def test_strict_json_of_the_tests_is_strict() -> None:
    for text in ('{"a": NaN}', '{"a": Infinity}', '{"a": 1, "a": 2}', '{"a": '):
        with pytest.raises(ValueError, match=r'.'):
            strict_json(text)
