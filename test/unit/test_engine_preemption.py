"""What a new action does to those before it: replace in both forms, queue, reject (AWP-PRE)."""

from __future__ import annotations

import dataclasses
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
    GoalProgressed,
    Meaning,
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


# ---------------------------------------------------------------- replace, native


def test_native_replacement_leaves_at_once_and_ends_the_old_on_acceptance() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    assert len(world.started) == 2
    assert agent.states('a')[-1] == 'executing'
    world.accept()
    assert agent.end('a') == ('preempted', None)
    assert agent.states('b') == ['accepted', 'executing']
    assert not world.effects(fx.CancelGoal)
    assert not world.effects(fx.AwaitRest)


def test_chain_at_fifty_hertz_keeps_one_answer_outstanding() -> None:
    settings = policy()
    arm = dataclasses.replace(settings.embodiments['arm'], envelope=None, max_action_rate_hz=None)
    world = World(policy(embodiments={**settings.embodiments, 'arm': arm}))
    agent = running(world, 'chunk')
    world.auto_accept = False
    for number in range(50):  # the server answers every third
        agent.submit_now('chunk', f'n{number}')
        world.pass_ms(20)
        unanswered = [g for g in world.live if g not in world.accepted]
        assert len(unanswered) <= 1
        if number % 3 == 2:
            world.accept()
    world.auto_accept = True
    world.pay()
    assert agent.states('n49')[-1] == 'executing'
    assert not world.effects(fx.CancelGoal)
    ends = [agent.end(f'n{n}') for n in range(49)]
    assert set(ends) == {('preempted', None), ('cancelled', 'superseded')}


def test_old_goals_of_a_chain_end_without_a_word() -> None:
    world = World()
    agent = running(world, 'chunk')
    agent.submit('chunk', 'b')
    count = len(agent.inbox)
    world.finish(GoalOutcome.ABORTED, goal=0)
    world.tell(GoalProgressed(world.started[0].goal_id, 0.9))
    assert len(agent.inbox) == count
    assert not world.engine.kernel.embodiments['arm'].group('arm').draining


@pytest.mark.parametrize('outcome', [GoalOutcome.REFUSED, GoalOutcome.NOT_SENT])
def test_refused_incoming_leaves_the_running_one_alone(outcome: GoalOutcome) -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    agent.submit('chunk', 'c')
    world.finish(outcome)
    assert agent.end('b')[0] == 'rejected'
    assert agent.states('a')[-1] == 'executing'
    assert len(world.started) == 3, 'the next one tries'
    world.accept()
    assert agent.end('a') == ('preempted', None)
    assert agent.states('c')[-1] == 'executing'


@pytest.mark.parametrize('outcome', [GoalOutcome.ABORTED, GoalOutcome.CANCELED])
def test_old_goal_that_ends_just_before_the_acceptance_was_taken_over(
    outcome: GoalOutcome,
) -> None:
    """A server may report the old goal's end before its answer to the new one arrives."""
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    world.finish(outcome, goal=0)
    assert agent.states('a')[-1] == 'executing'
    world.accept()
    assert agent.end('a') == ('preempted', None)
    assert agent.states('b')[-1] == 'executing'


def test_old_goal_that_ended_by_itself_fails_where_the_new_one_is_refused() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.ABORTED, goal=0, detail='path tolerance violated')
    world.finish(GoalOutcome.REFUSED, goal=1)
    assert agent.end('a') == ('failed', 'world_error')
    assert agent.last('a')['detail'] == 'path tolerance violated'
    assert agent.end('b') == ('rejected', 'x-ros2.goal_refused')


def test_old_goal_that_succeeds_while_the_new_one_is_in_flight_completed() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.SUCCEEDED, goal=0)
    assert agent.end('a') == ('completed', None)
    world.accept()
    assert agent.states('b') == ['accepted', 'executing']


def test_unanswered_incoming_stops_both_goals() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.UNANSWERED)
    assert agent.end('a') == ('preempted', None)
    assert agent.end('b') == ('failed', 'world_error')
    agent.submit('chunk', 'c')
    world.behaved()
    assert len(world.started) == 2, 'nobody said that the server dropped the first goal'
    world.pay()
    assert agent.states('c')[-1] == 'executing'


def test_incoming_that_ends_at_once_took_over_all_the_same() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.ABORTED)
    assert agent.end('a') == ('preempted', None)
    assert agent.states('b') == ['accepted', 'executing', 'failed']


@pytest.mark.parametrize('accepted', [True, False], ids=['accepted', 'refused'])
def test_cancel_of_the_running_one_while_its_successor_is_in_flight(accepted: bool) -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    agent.submit('chunk', 'b')
    agent.call('action.cancel', action_id='a')
    if accepted:
        world.accept()
        assert agent.states('b')[-1] == 'executing'
    else:
        world.finish(GoalOutcome.REFUSED)
        world.pay()
        assert agent.end('b')[0] == 'rejected'
    assert agent.end('a') == ('cancelled', 'cancelled_by_agent')


def test_cancel_of_the_successor_in_flight_stops_both() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    agent.submit('chunk', 'b')
    reply = agent.call('action.cancel', action_id='b')
    assert reply['result']['state'] == 'cancelling'
    assert agent.end('a') == ('preempted', None)
    assert len(world.effects(fx.CancelGoal)) == 2
    world.accept()
    world.pay()
    assert agent.end('b') == ('cancelled', 'cancelled_by_agent')


@pytest.mark.parametrize('accepted', [True, False], ids=['accepted', 'refused'])
def test_deadline_of_the_running_one_while_its_successor_is_in_flight(accepted: bool) -> None:
    world = World()
    agent = running(world, 'chunk', deadline_ms=100)
    world.hold()
    agent.submit('chunk', 'b')
    world.pass_ms(50)
    if accepted:
        world.accept()
    else:
        world.finish(GoalOutcome.REFUSED)
        world.pay()
    assert agent.end('a') == ('failed', 'deadline_exceeded')
    assert agent.states('b')[-1] == ('executing' if accepted else 'rejected')


def test_close_ends_a_chain_as_one() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    agent.submit('chunk', 'b')
    agent.submit('chunk', 'c')
    request = agent.call_later('session.close')
    assert agent.end('c') == ('cancelled', 'session_closed')
    assert agent.end('a') == ('cancelled', 'session_closed')
    assert agent.states('b') == ['accepted', 'executing', 'cancelling']
    world.accept(1)
    world.pay()
    assert agent.end('b') == ('cancelled', 'session_closed')
    assert agent.reply(request)['result'] == {}


def test_e_stop_ends_a_chain_as_one() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.auto_accept = False
    agent.submit('chunk', 'b')
    agent.submit('chunk', 'c')
    world.safety(Meaning.E_STOP, True)
    assert agent.end('a') == agent.end('b') == ('failed', 'e_stop')
    assert agent.end('c') == ('cancelled', 'e_stop')


def test_native_replacement_waits_for_an_abort_under_way() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    world.auto_accept = True
    agent.call('action.cancel', action_id='a')
    agent.submit('chunk', 'b')
    assert len(world.started) == 1
    world.pay()
    assert agent.end('a') == ('cancelled', 'cancelled_by_agent')
    assert agent.states('b')[-1] == 'executing'


def test_native_replacement_waits_for_the_answer_to_the_first() -> None:
    world = World()
    agent = world.session(subscribe=[])
    world.auto_accept = False
    agent.submit('chunk', 'a')
    agent.submit('chunk', 'b')
    assert len(world.started) == 1
    world.accept()
    assert len(world.started) == 2
    world.accept()
    assert agent.end('a') == ('preempted', None)
    assert agent.states('b')[-1] == 'executing'


def test_native_replacement_whose_validity_passed_meanwhile_is_rejected() -> None:
    world = World()
    agent = world.session(subscribe=[])
    world.auto_accept = False
    agent.submit('chunk', 'a')
    now = world.now_ns - next(iter(world.engine.kernel.sessions.values())).clock.zero_ns
    agent.submit('chunk', 'b', valid_until_ns=now + 60 * MS)
    world.pass_ms(100)
    world.accept()
    assert agent.end('b') == ('rejected', 'stale_intent')
    assert agent.states('a')[-1] == 'executing'


def test_cancel_of_an_outrun_goal_waits_for_rest_only() -> None:
    world = World()
    agent = running(world, 'chunk')
    world.hold()
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.ABORTED, goal=0)
    agent.call('action.cancel', action_id='a')
    assert not world.effects(fx.CancelGoal)
    world.rest()
    assert agent.end('a') == ('cancelled', 'cancelled_by_agent')
    world.accept()
    assert agent.states('b')[-1] == 'executing'


def test_native_replacement_of_a_refused_goal_starts_alone() -> None:
    world = World()
    agent = world.session(subscribe=[])
    world.auto_accept = False
    agent.submit('chunk', 'a')
    agent.submit('chunk', 'b')
    world.finish(GoalOutcome.REFUSED)
    world.accept()
    assert agent.states('a') == ['accepted', 'rejected']
    assert agent.states('b') == ['accepted', 'executing']


def test_superseded_actions_are_told_before_the_result_of_the_replacement() -> None:
    world = World()
    agent = world.session()
    agent.submit(action_id='a')
    agent.submit(action_id='b', preempt='queue')
    agent.submit(action_id='c', preempt='replace')
    order = [
        (body.get('action_id'), body.get('state'))
        for body in (m.get('params') or m.get('result') or {} for m in agent.inbox)
        if body.get('state') in ('cancelled', 'accepted')
    ]
    assert order.index(('b', 'cancelled')) < order.index(('c', 'accepted'))
