"""The example of docs/generic.md with the embedded robot, and a type that is not installed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import json
import re
from typing import Any

from agent import Agent
from bridge_cell import (
    as_soon_as_possible,
    Cell,
    may_move,
    open_when_free,
    patient_config,
    running_cell,
)
from fakes import FakeRobot
from patience import run
from processes import REPOSITORY
import pytest
import yaml

from awp_ros_bridge.config import load_text
from awp_ros_bridge.manifest.units import SUFFIXES
from awp_ros_bridge.ros.adapters import registry
from awp_ros_bridge.ros.adapters.base import AdapterContext, Limits

Json = dict[str, Any]

DOCUMENT = (REPOSITORY / 'docs' / 'generic.md').read_text(encoding='utf-8')


def example(name: str) -> str:
    """Return the block that the document shows under a name."""
    found = re.search(rf'<!-- example: {re.escape(name)} -->\n```\w+\n(.*?)```', DOCUMENT, re.S)
    assert found is not None, name
    return found[1]


CONFIG = example('generic.yaml')
PARAMS: Json = json.loads(example('params.json'))
MISSING = {
    'adapter': 'generic',
    'ros_action': 'move_action',
    'concurrency_group': 'arm_motion',
    'max_duration_ms': 1000,
    'options': {
        'type': 'moveit_msgs/action/MoveGroup',
        'goal': {'request.group_name': {'param': 'group'}},
    },
}

COUNTED = {
    'adapter': 'generic',
    'ros_action': 'arm/count',
    'concurrency_group': 'arm_motion',
    'max_duration_ms': 20_000,
    'options': {
        'type': 'test_msgs/action/Fibonacci',
        'goal': {'order': {'param': 'order'}},
        'progress': {'measure': 'count', 'field': 'sequence', 'of': {'param': 'order'}},
        'result': {'field': 'sequence[0]', 'at_least': 0},
    },
}


@pytest.fixture(scope='module')
def cell(ros: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    folder = tmp_path_factory.mktemp('generic')
    body = yaml.safe_load(CONFIG)
    body['actions']['plan'] = MISSING
    body['actions']['count'] = COUNTED
    body['embodiments']['arm_01']['actions'] += ['plan', 'count']
    path = folder / 'generic.yaml'
    path.write_text(yaml.safe_dump(body), encoding='utf-8')
    with running_cell(folder, patient_config(folder, source=path)) as started:
        yield started


def test_the_example_has_no_problem() -> None:
    assert load_text(CONFIG, 'generic.yaml', registry.infos()).problems == ()


def test_the_goal_of_the_example_is_what_the_document_shows() -> None:
    options = yaml.safe_load(CONFIG)['actions']['touch']['options']
    context = AdapterContext(
        embodiment='arm_01',
        action_type='touch',
        limits=Limits(),
        joints=lambda: None,
        chain=lambda: None,
        ros_frame={'base': 'base'}.get,
        frames=lambda: ('base',),
        now_stamp=lambda: None,
        options=options,
    )
    goal = registry.build('generic', context).goal(PARAMS)
    shown = yaml.safe_load(example('goal.yaml'))
    assert narrowed(goal, shown) == shown


def narrowed(value: Any, to: Any) -> Any:
    """Return of a message what the document shows, as plain data."""
    if isinstance(to, dict):
        return {key: narrowed(getattr(value, key), inner) for key, inner in to.items()}
    if isinstance(to, list):
        assert len(value) == len(to)
        return [narrowed(each, inner) for each, inner in zip(value, to, strict=True)]
    return value


def test_the_problems_in_the_document_are_those_that_are_told() -> None:
    text = CONFIG.replace('blend_radius', 'blend_radus').replace('speed_mps', 'speed')
    told = [str(each) for each in load_text(text, 'robot.yaml', registry.infos()).problems]
    found = re.search(r'```text\n(.*?)```', DOCUMENT, re.S)
    assert found is not None
    assert sorted(told) == sorted(found[1].splitlines())


def test_the_units_in_the_document_are_those_that_are_known() -> None:
    found = re.search(r'<!-- units -->\n`([^`]+)`', DOCUMENT)
    assert found is not None
    assert found[1].split() == list(SUFFIXES)


def test_the_example_moves_the_arm_and_refuses_what_the_document_says(cell: Cell) -> None:
    target = PARAMS['target']
    wrong: list[tuple[Json, str]] = [
        ({'target': {**target, 'frame': 'table'}}, "params.target.frame: unknown frame 'table'"),
        (
            {'target': {**target, 'q': [0, 0, 0, 2]}},
            'params.target.q: a quaternion of length 2 is no orientation',
        ),
        ({'target': target, 'motion': 'lin'}, 'motion'),
        ({'target': target, 'speed_mps': 0.3}, '0.25'),
        ({'target': target, 'spede_mps': 0.1}, 'spede_mps'),
        ({}, 'target'),
    ]

    async def play() -> None:
        async with await cell.agent() as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat(0.2)
            await may_move(agent)
            await touch(agent)
            for params, text in wrong:
                refused = await agent.refusal(
                    'action.submit', action_id='no', type='touch', params=params
                )
                assert refused.code == 3001, refused
                assert text in refused.detail, refused
            await agent.close()

    async def touch(agent: Agent) -> None:
        await as_soon_as_possible(lambda: agent.submit('go', 'touch', PARAMS))
        said = await agent.status('go')
        assert said['state'] == 'completed', said

    run(play())


def test_a_type_that_is_not_installed_is_unavailable_and_harms_nothing(cell: Cell) -> None:
    async def play() -> None:
        async with await cell.agent() as agent:
            schemas = {each['type']: each for each in agent.manifest['action_schemas']}
            assert schemas['plan']['params_schema']['properties'] == {'group': {}}
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat(0.2)
            await may_move(agent)
            refused = await agent.refusal(
                'action.submit', action_id='no', type='plan', params={'group': 'arm'}
            )
            assert (refused.code, refused.is_retryable) == (2001, True), refused
            assert "package 'moveit_msgs' is neither installed nor sourced" in refused.detail
            assert 'install ros-' in refused.detail
            await agent.close()

    run(play())
    assert 'options.type: warning: moveit_msgs/action/MoveGroup is not available' in (
        cell.bridge.output
    )


def test_progress_and_outcome_come_from_the_server_by_the_configured_rules(
    cell: Cell, ros_domain_id: int
) -> None:
    async def begin(agent: Agent, robot: FakeRobot, action_id: str) -> str:
        await as_soon_as_possible(lambda: agent.submit(action_id, 'count', {'order': 8}))
        await agent.status(action_id, 'executing')
        goal = robot.seen.requests[-1][0]
        assert robot.handles[goal].request.order == 8
        return goal.hex()

    async def play(robot: FakeRobot) -> None:
        async with await cell.agent() as agent:
            await open_when_free(agent, 'arm_01', subscribe=[{'channel': 'arm_state'}])
            agent.beat(0.2)
            await may_move(agent)
            goal = await begin(agent, robot, 'well')
            await asyncio.to_thread(robot.feedback, goal, 6)
            assert (await agent.progress('well', 0.1))['progress'] == 0.75
            await asyncio.to_thread(robot.end, goal, 'succeed', (0, 1))
            assert (await agent.status('well'))['state'] == 'completed'
            goal = await begin(agent, robot, 'badly')
            await asyncio.to_thread(robot.end, goal, 'succeed', (-3, 1))
            said = await agent.status('badly')
            assert (said['state'], said['reason']) == ('failed', 'world_error'), said
            assert 'sequence[0] is -3' in said['detail'], said
            arrived = len(robot.seen.arrivals)
            for order in (2**31, 1.5, True, '8', None):
                refused = await agent.refusal(
                    'action.submit', action_id='no', type='count', params={'order': order}
                )
                assert refused.code == 3001, refused
                assert 'order' in refused.detail
            await agent.settle()
            assert len(robot.seen.arrivals) == arrived, 'nothing of it reached ROS'
            await agent.close()

    with FakeRobot(ros_domain_id, action='arm/count') as robot:
        run(play(robot))
