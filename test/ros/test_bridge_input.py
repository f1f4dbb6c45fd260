"""Bad input over the socket: one clear error each, the next message works, no goal leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import time
from typing import Any

from agent import Agent
from agent_words import hello, strict_json, to_pose
from bad_messages import (
    Case,
    garbage,
    HUGE,
    NO_MESSAGE,
    POSE,
    REFUSED,
    request,
    submission,
)
from bridge_cell import Cell, RobotTap, tapped
from lateness import Lateness
from patience import run, until
import pytest
from ros_peer import RosPeer
from sim_robot_goals import reset

Json = dict[str, Any]
Record = Any

@pytest.fixture(scope='module')
def tap(cell: Cell, peer: RosPeer) -> Iterator[RobotTap]:
    with tapped(peer) as opened:
        yield opened


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
def test_f84_each_bad_message_gets_one_error_that_says_what_is_wrong(
    cell: Cell, tap: RobotTap, cases: Mapping[str, Case]
) -> None:
    sent_before = cell.bridge.output.count('> goal=')

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
            await until(lambda: tap.taken() > taken, what='the goal')
            assert tap.taken() == taken + 1

    run(play())
    run(until(lambda: cell.bridge.output.count('> goal=') > sent_before, what='the goal'))
    assert cell.bridge.output.count('> goal=') == sent_before + 1


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
            await until(lambda: tap.taken() > taken, what='the goal')
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
            await tap.caught_up()
            assert tap.taken() == taken
        if code == 1009:  # its session is only suspended: take it up again, to close it
            async with await cell.agent() as late:
                await late.resume(agent)
                await late.close()

    run(play())


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
            await tap.caught_up()
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

    opened = f'session={run(play())} opened'
    run(until(lambda: opened in cell.bridge.output, what='its line in the log'))
    log = cell.bridge.output
    (line,) = [row for row in log.splitlines() if opened in row]
    assert 'evil\\n2026' in line
    assert '\x1b' not in log
    assert not [row for row in log.splitlines() if row.startswith('2026-01-01')]


def test_a_megabyte_of_bad_input_neither_stops_the_arm_nor_delays_another_client(
    cell: Cell, peer: RosPeer, lateness: Lateness, record_testsuite_property: Record
) -> None:
    reset(peer)
    before, begun_ns = len(cell.bridge.output), time.monotonic_ns()

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
                goes_on = agent.states('go')[-1] in {'executing', 'completed'}
                assert goes_on or lateness.stood_since(begun_ns), name
            said = await agent.status('go')
            stopped = 'bridge:loop' in said.get('detail', '') and lateness.stood_since(begun_ns)
            assert stopped or said['state'] == 'completed', said
            return longest_s

    longest_s = run(play())
    record_testsuite_property('bridge_ping_beside_a_bad_megabyte_ms', round(longest_s * 1e3, 1))
    # Where the machine let this process run.
    was_silent = 'bridge loop was silent' in cell.bridge.output[before:]
    assert not was_silent or lateness.stood_since(begun_ns)


def test_strict_json_of_the_tests_is_strict() -> None:
    for text in ('{"a": NaN}', '{"a": Infinity}', '{"a": 1, "a": 2}', '{"a": '):
        with pytest.raises(ValueError, match=r'.'):
            strict_json(text)
