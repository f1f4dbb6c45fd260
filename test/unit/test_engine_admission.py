"""The ordered checks between a submission and an action (AWP-ACT, AWP-ENV, AWP-SAF-013)."""

from __future__ import annotations

import dataclasses
from typing import Any

from engine_agent import Agent
from engine_cell import embodiments, MS, policy
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import GoalOutcome
from awp_ros_bridge.engine.policy import GoalRefusal, Policy, RefusalKind


def limited(rate_hz: float = 20) -> Policy:
    """Return the cell with a limit on the rate of the arm's submissions."""
    arm = dataclasses.replace(embodiments()['arm'], max_action_rate_hz=rate_hz)
    return policy(embodiments={**embodiments(), 'arm': arm})


def session_ns(world: World, agent: Agent) -> int:
    """Return the session time of an agent."""
    session = world.engine.kernel.sessions[agent.ready['session_id']]
    return session.clock.session_ns(world.now_ns)


# ---------------------------------------------------------------- identity


def test_identical_resubmission_reports_the_current_state_and_starts_nothing() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a', params={'x_m': 0.5})
    again = agent.submit('move', 'a', params={'x_m': 0.5})['result']
    assert again['state'] == 'executing'
    world.finish()
    done = agent.submit('move', 'a', params={'x_m': 0.50})['result']
    assert (done['state'], done['status_seq']) == ('completed', agent.highest())
    assert len(world.started) == 1


def test_resubmission_carries_the_reason_and_the_first_receipt() -> None:
    world = World()
    agent = world.session()
    first = agent.submit('move', 'a')['result']
    world.finish(GoalOutcome.ABORTED)
    again = agent.submit('move', 'a')['result']
    assert again['reason'] == 'world_error'
    assert again['received_ts_mono_ns'] == first['received_ts_mono_ns']


@pytest.mark.parametrize(
    'fields', [{'params': {'x_m': 0.4}}, {'preempt': 'replace'}, {'deadline_ms': 1}]
)
def test_other_content_under_the_same_id_is_a_conflict(fields: dict[str, Any]) -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    assert agent.submit('move', 'a', **fields)['error']['code'] == 3004
    assert agent.states('a')[-1] == 'executing'


def test_refused_submission_leaves_no_trace_and_its_id_is_free() -> None:
    world = World()
    agent = world.session()
    seen = agent.highest()
    assert agent.submit('move', 'a', params={})['error']['code'] == 3001
    assert agent.refusal('action.status', action_id='a') == 3008
    assert agent.submit('move', 'a')['result']['status_seq'] == seen + 1


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ('params', 'named'),
    [
        ({}, 'params.x_m is missing'),
        ({'x_m': 'far'}, 'params.x_m is "far": must be '),
        ({'x_m': 2}, 'params.x_m is 2: must be '),
        ({'x_m': 0, 'y': 'long' * 100}, 'params.y is not known; there are '),
        ({'x_m': 'long' * 100}, '...'),
    ],
)
def test_invalid_params_are_refused_with_their_path(params: dict[str, Any], named: str) -> None:
    world = World()
    reply = world.session().submit('move', 'a', params=params)
    assert 'error' in reply
    assert reply['error']['code'] == 3001
    assert named in reply['error']['data']['detail']
    assert len(reply['error']['data']['detail']) < 250
    assert not world.started


@pytest.mark.parametrize(
    ('kind', 'fields', 'code'),
    [
        ('nothing', {}, 4001),
        ('grip', {}, 4001),
        ('move', {'embodiment_id': 'grip'}, 4001),
        ('move', {'preempt': 'blend'}, 3001),
        ('stop', {'preempt': 'queue'}, 3001),
        ('move', {'preempt': 'sometimes'}, -32602),
        ('move', {'deadline_ms': 0}, -32602),
    ],
)
def test_submission_is_refused(kind: str, fields: dict[str, Any], code: int) -> None:
    world = World()
    assert world.session().submit(kind, 'a', **fields)['error']['code'] == code
    assert not world.started


def test_type_that_was_not_asked_for_is_not_granted() -> None:
    agent = World().session(action_types=['chunk'])
    assert agent.submit('move')['error']['code'] == 4001
    assert 'result' in agent.submit('chunk')


@pytest.mark.parametrize(
    ('kind', 'code', 'retryable'),
    [
        (RefusalKind.PARAMS, 3001, False),
        (RefusalKind.ENVELOPE, 4002, False),
        (RefusalKind.UNREADY, 2001, True),
    ],
)
def test_checker_refuses_by_kind(kind: RefusalKind, code: int, retryable: bool) -> None:
    class Checker:
        def check(self, *_what: Any) -> GoalRefusal:
            return GoalRefusal(kind, 'z_m is 3, the limit is 0.8 m')

    world = World(checker=Checker())
    error = world.session().submit('move')['error']
    assert error['code'] == code
    assert error['data'] == {'retryable': retryable, 'detail': 'z_m is 3, the limit is 0.8 m'}


# ---------------------------------------------------------------- rate


def test_rate_counts_admissions_and_says_when_to_come_back() -> None:
    world = World(limited())
    agent = world.session()
    assert 'error' in agent.submit_now('move', 'bad', params={})
    assert 'result' in agent.submit_now('move', 'a')
    error = agent.submit_now('move', 'b')['error']
    assert (error['code'], error['data']['retryable']) == (4002, True)
    assert error['data']['retry_after_ms'] == 50
    world.pass_ms(error['data']['retry_after_ms'])
    assert 'result' in agent.submit_now('move', 'b')


def test_rate_follows_the_embodiment_not_the_session() -> None:
    world = World(limited(rate_hz=1))
    agent = world.session()
    agent.submit_now('move', 'a')
    agent.call('session.close')
    other = world.session()
    assert other.submit_now('move', 'b')['error']['code'] == 4002


# ---------------------------------------------------------------- intent


def test_basis_must_be_fresh_and_not_from_the_future() -> None:
    world = World()
    agent = world.session()
    now = session_ns(world, agent)
    assert agent.submit('move', 'a', basis_ts_mono_ns=now - 501 * MS)['error']['code'] == 3007
    assert agent.submit('move', 'b', basis_ts_mono_ns=now + 60_000 * MS)['error']['code'] == 3007
    now = session_ns(world, agent)
    error = agent.submit('move', 'c', valid_until_ns=now - 1)['error']
    assert (error['code'], error['data']['retryable']) == (3007, True)
    now = session_ns(world, agent)
    assert 'result' in agent.submit(
        'move', 'd', basis_ts_mono_ns=now - 499 * MS, valid_until_ns=now
    )


def test_basis_may_be_required_or_unlimited() -> None:
    agent = World(policy(require_basis=True)).session()
    assert agent.submit('move')['error']['code'] == 3007
    world = World(policy(max_basis_age_ns=None))
    assert 'result' in world.session().submit('move', basis_ts_mono_ns=0)


def test_validity_does_not_matter_once_the_goal_left() -> None:
    world = World()
    agent = world.session()
    world.auto_accept = False
    agent.submit('move', 'a', valid_until_ns=session_ns(world, agent) + 10 * MS)
    world.pass_ms(500)
    world.accept()
    assert agent.states('a')[-1] == 'executing'


# ---------------------------------------------------------------- deadlines


@pytest.mark.parametrize(
    ('deadline_ms', 'limit_ms'), [(None, 10_000), (300, 300), (2**50, 10_000)]
)
def test_effective_deadline_is_the_shorter_one(deadline_ms: int | None, limit_ms: int) -> None:
    world = World()
    agent = world.session()
    fields = {} if deadline_ms is None else {'deadline_ms': deadline_ms}
    began = world.now_ns
    agent.submit('move', 'a', **fields)
    while agent.states('a')[-1] == 'executing':
        agent.ping()
        world.pass_ms(50)
    assert agent.end('a') == ('failed', 'deadline_exceeded')
    assert limit_ms * MS <= world.now_ns - began <= (limit_ms + 100) * MS


def test_deadline_counts_from_receipt_not_from_handling() -> None:
    from awp_ros_bridge.engine.inputs import TextReceived

    world = World()
    agent = world.session()
    text = (
        '{"jsonrpc":"2.0","id":"q","method":"action.submit","params":{"action_id":"a",'
        '"type":"move","params":{"x_m":0},"deadline_ms":100}}'
    )
    received = world.now_ns
    world.pass_ms(60)
    world.judge.sent(agent.conn, text)
    world.tell(TextReceived(agent.conn, text, received))
    world.pass_ms(45)
    assert agent.end('a') == ('failed', 'deadline_exceeded')


def test_type_without_duration_and_submission_without_deadline_run_on() -> None:
    move = dataclasses.replace(policy().actions['move'], max_duration_ns=None)
    world = World(policy(actions={**policy().actions, 'move': move}))
    agent = world.session()
    agent.submit('move', 'a')
    for _ in range(60):
        world.pass_ms(1_000)
        agent.ping()
    assert agent.states('a')[-1] == 'executing'


def test_deadline_passes_in_the_queue() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    agent.submit('move', 'b', preempt='queue', deadline_ms=200)
    agent.submit('move', 'c', preempt='queue')
    world.pass_ms(200)
    assert agent.end('b') == ('rejected', 'deadline_exceeded')
    world.finish()
    assert agent.states('c')[-1] == 'executing'
    assert not world.effects(fx.CancelGoal)
