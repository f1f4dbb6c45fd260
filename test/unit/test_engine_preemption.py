"""What a new action does to those before it: replace in both forms, queue, reject (AWP-PRE)."""

from __future__ import annotations

from typing import Any

from engine_agent import Agent
from engine_cell import MS, policy
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import (
    AvailabilityChanged,
    GoalEnded,
    GoalOutcome,
)
from awp_ros_bridge.engine.policy import GoalRefusal, RefusalKind


def running(world: World, kind: str = 'move', **fields: Any) -> Agent:
    """Return an agent whose action ``a`` executes."""
    agent = world.session(subscribe=[])
    agent.submit(kind, 'a', **fields)
    assert agent.states('a')[-1] == 'executing'
    return agent


# ---------------------------------------------------------------- which policy


def test_first_declared_policy_is_the_default() -> None:
    world = World()
    agent = running(world)
    agent.submit('move', 'b')
    assert agent.end('a')[0] == 'preempted'


def test_reject_is_refused_while_the_group_is_busy_and_leaves_no_trace() -> None:
    world = World()
    agent = running(world)
    reply = agent.submit('move', 'b', preempt='reject')
    assert reply['error']['code'] == 3002
    assert reply['error']['data']['retryable'] is True
    world.finish()
    assert agent.submit('move', 'b', preempt='reject')['result']['state'] == 'accepted'


def test_groups_run_side_by_side() -> None:
    world = World()
    agent = world.connect()
    agent.call('session.open', mode='streaming', embodiments=['arm', 'grip'])
    agent.submit('move', 'a', embodiment_id='arm')
    agent.submit('grip', 'g', embodiment_id='grip')
    assert agent.states('a')[-1] == agent.states('g')[-1] == 'executing'


# ---------------------------------------------------------------- queue


def test_queue_starts_in_order_and_is_bounded() -> None:
    world = World()
    agent = running(world)
    assert agent.submit('move', 'b', preempt='queue')['result']['state'] == 'queued'
    agent.submit('move', 'c', preempt='queue')
    assert agent.submit('move', 'd', preempt='queue')['error']['code'] == 3003
    world.finish()
    assert agent.states('b') == ['queued', 'accepted', 'executing']
    assert agent.states('c') == ['queued']
    world.finish()
    assert agent.states('c') == ['queued', 'accepted', 'executing']


def test_replace_supersedes_the_queue_and_what_waits() -> None:
    world = World()
    agent = running(world)
    agent.submit('move', 'q', preempt='queue')
    world.auto_cancel = False
    agent.submit('move', 'b')
    agent.submit('move', 'c')
    assert agent.end('q') == agent.end('b') == ('cancelled', 'superseded')
    assert agent.states('c') == ['accepted']
    world.pay()
    assert agent.end('a') == ('preempted', None)
    assert agent.states('c') == ['accepted', 'executing']
    assert len(world.effects(fx.CancelGoal)) == 1


def test_queue_behind_a_replacement_runs_after_it() -> None:
    world = World()
    agent = running(world)
    world.auto_cancel = False
    agent.submit('move', 'b')
    agent.submit('move', 'q', preempt='queue')
    world.pay()
    assert (agent.states('b')[-1], agent.states('q')[-1]) == ('executing', 'queued')
    world.finish()
    assert agent.states('q')[-1] == 'executing'


class Refusing:
    """A goal checker whose verdict the test sets."""

    def __init__(self) -> None:
        self.verdict: GoalRefusal | None = None

    def check(self, embodiment: str, action_type: str, params: Any) -> GoalRefusal | None:
        return self.verdict


@pytest.mark.parametrize(
    ('kind', 'reason'),
    [
        (RefusalKind.ENVELOPE, 'envelope'),
        (RefusalKind.PARAMS, 'x-ros2.params_invalid'),
        (RefusalKind.UNREADY, 'x-ros2.not_ready'),
    ],
)
def test_queued_action_is_checked_again_in_its_turn(kind: RefusalKind, reason: str) -> None:
    checker = Refusing()
    world = World(checker=checker)
    agent = running(world)
    agent.submit('move', 'b', preempt='queue')
    agent.submit('move', 'c', preempt='queue')
    checker.verdict = GoalRefusal(kind, 'no longer')
    world.finish()
    assert agent.end('b') == agent.end('c') == ('rejected', reason)
    assert agent.last('b')['detail'] == 'no longer'
    assert len(world.started) == 1


def test_queued_action_whose_basis_grew_old_is_rejected() -> None:
    world = World()
    agent = running(world)
    now = world.now_ns - next(iter(world.engine.kernel.sessions.values())).clock.zero_ns
    agent.submit('move', 'b', preempt='queue', basis_ts_mono_ns=now)
    world.pass_ms(600)
    world.finish()
    assert agent.end('b') == ('rejected', 'stale_intent')


@pytest.mark.parametrize('preempt', ['queue', 'replace'])
def test_waiting_action_whose_validity_passed_is_rejected(preempt: str) -> None:
    world = World()
    agent = running(world)
    world.auto_cancel = False
    now = world.now_ns - next(iter(world.engine.kernel.sessions.values())).clock.zero_ns
    agent.submit('move', 'b', preempt=preempt, valid_until_ns=now + 300 * MS)
    agent.submit('move', 'c', preempt='queue')
    world.pass_ms(300)
    world.finish(GoalOutcome.CANCELED)
    assert agent.end('b') == ('rejected', 'stale_intent')
    assert agent.states('c')[-1] == 'executing', 'the next one has its turn'


def test_queued_action_of_expired_grants_is_rejected() -> None:
    world = World(policy(grant_ttl_ns=400 * MS))
    agent = running(world)
    agent.submit('move', 'b', preempt='queue')
    world.pass_ms(400)
    world.finish()
    assert agent.end('a') == ('completed', None)
    assert agent.end('b') == ('rejected', 'forbidden')


def test_server_that_vanished_meanwhile_rejects_the_queued_action_only() -> None:
    world = World()
    agent = running(world)
    agent.submit('move', 'b', preempt='queue')
    world.tell(AvailabilityChanged('arm', 'move', False, 'move_server is gone'))
    world.auto_accept = False
    world.finish()
    world.finish(GoalOutcome.NOT_SENT)
    assert agent.end('b') == ('rejected', 'x-ros2.server_unavailable')


def test_queue_waits_through_a_behaviour_and_is_cancelled_where_it_fails() -> None:
    world = World()
    agent = running(world)
    world.hold()
    world.pass_ms(2000)
    agent.submit('move', 'b')
    agent.submit('move', 'c', preempt='queue')
    world.pay(GoalEnded)
    assert len(world.started) == 1
    world.behaved(ok=False, detail='still moving')
    assert agent.end('b') == agent.end('c') == ('cancelled', 'safe_state')
    assert agent.submit('move', 'd')['error']['code'] == 2001
    world.pay()
    assert 'result' in agent.submit('move', 'd')


# ---------------------------------------------------------------- replace, stop first


def test_stop_first_waits_for_goal_and_rest_before_the_new_goal() -> None:
    world = World()
    agent = running(world)
    world.hold()
    agent.submit('move', 'b')
    assert len(world.started) == 1
    world.finish(GoalOutcome.CANCELED)
    assert len(world.started) == 1
    world.rest()
    assert len(world.started) == 2
    assert agent.end('a') == ('preempted', None)


def test_stop_first_replaces_a_goal_in_flight() -> None:
    world = World()
    agent = world.session(subscribe=[])
    world.hold()
    agent.submit('move', 'a')
    agent.submit('move', 'b')
    assert agent.states('a') == ['accepted', 'executing']
    world.accept()
    world.pay()
    assert agent.states('a') == ['accepted', 'executing', 'preempted']
    assert agent.states('b') == ['accepted', 'executing']


def test_stop_first_after_a_native_chain_ends_both_goals() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    agent.submit('chunk', 'b')
    agent.submit('move', 'm')
    assert agent.end('a') == ('preempted', None)
    assert agent.states('b') == ['accepted', 'executing']
    assert {c.goal_id for c in world.effects(fx.CancelGoal)} == {
        s.goal_id for s in world.started
    }
    world.accept(1)
    world.pay()
    assert agent.end('b') == ('preempted', None)
    assert agent.states('m')[-1] == 'executing'
