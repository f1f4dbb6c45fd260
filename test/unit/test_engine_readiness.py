"""The watchdog, rest, servers, the audit log: what makes an embodiment ready (AWP-SAF-004)."""

from __future__ import annotations

import json

from engine_cell import policy
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import (
    AuditChanged,
    AvailabilityChanged,
    BehaviorFinished,
    Meaning,
    RestChanged,
)

# ---------------------------------------------------------------- the watchdog


def test_watchdog_reports_once_per_bound_embodiment() -> None:
    world = World()
    agent = world.connect()
    agent.ready = agent.call('session.open', mode='streaming', embodiments=['arm', 'grip'])[
        'result'
    ]
    agent.submit('move', 'a', embodiment_id='arm')
    world.pass_ms(10_000)
    named = [e['detail']['embodiment'] for e in agent.notes('world.event')]
    assert sorted(named) == ['arm', 'grip']
    agent.submit('move', 'b', embodiment_id='arm')
    exits = [e for e in agent.notes('world.event') if e['event'] == 'safe_state_exited']
    assert [e['detail']['embodiment'] for e in exits] == ['arm']


def test_watchdog_of_an_observer_has_nothing_to_stop() -> None:
    world = World()
    agent = world.session(None)
    world.pass_ms(5_000)
    assert agent.events() == []


def test_watchdog_trips_again_after_the_agent_came_back() -> None:
    world = World()
    agent = world.session()
    world.pass_ms(2_000)
    agent.submit('move', 'a')
    world.pass_ms(2_000)
    assert agent.events() == ['safe_state_entered', 'safe_state_exited', 'safe_state_entered']


# ---------------------------------------------------------------- rest, servers, the audit log


def test_behaviour_that_fails_leaves_the_embodiment_unavailable_until_it_rests() -> None:
    world = World()
    agent = world.session()
    world.auto_behavior = world.auto_rest = False
    world.safety(Meaning.FAULT, True)
    world.safety(Meaning.FAULT, False)
    world.behaved(ok=False, detail='the gripper did not stop')
    reply = agent.submit('move')
    assert reply.get('error', {}).get('code') == 2001
    assert 'the gripper did not stop' in reply['error']['data']['detail']
    world.rest()
    assert 'result' in agent.submit('move')


def test_only_the_newest_question_for_rest_counts() -> None:
    world = World()
    agent = world.session()
    world.auto_behavior = world.auto_rest = False
    for epoch in (1, 2):
        world.safety(Meaning.FAULT, True, epoch=epoch)
        world.safety(Meaning.FAULT, False, epoch=epoch)
        world.behaved(ok=False)
    first, second = world.owed[-2:]
    world.tell(first)
    assert agent.submit('move')['error']['code'] == 2001
    world.tell(second)
    assert 'result' in agent.submit('move')


def test_behaviour_that_never_answers_is_over_after_its_bound() -> None:
    world = World()
    agent = world.session()
    world.auto_behavior = False
    world.safety(Meaning.E_STOP, True)
    world.safety(Meaning.E_STOP, False)
    for _ in range(4):
        agent.ping()
        world.pass_ms(1_000)
    assert agent.events() == ['e_stop_engaged', 'e_stop_released']
    count = len(world.log)
    world.tell(BehaviorFinished(world.effects(fx.BeginBehavior)[0].ticket, ok=False))
    assert len(world.log) == count


def test_missing_server_refuses_until_it_returns() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    world.tell(AvailabilityChanged('arm', 'move', False, 'move_server is not there'))
    reply = agent.submit('move', 'b', preempt='queue')
    assert reply['error']['code'] == 2001
    assert 'move_server' in reply['error']['data']['detail']
    assert agent.states('a')[-1] == 'executing'
    assert 'result' in agent.submit('chunk', 'c')
    world.tell(AvailabilityChanged('arm', 'move', True, ''))
    assert 'result' in agent.submit('move', 'b')


@pytest.mark.parametrize('required', [True, False])
def test_unwritable_audit_log_refuses_actions_where_it_is_required(required: bool) -> None:
    world = World(policy(audit_required=required))
    agent = world.session()
    agent.submit('move', 'a')
    world.tell(AuditChanged(writable=False, detail='disk full'))
    reply = agent.submit('move', 'b', preempt='queue')
    assert ('error' in reply) == required
    if required:
        assert (reply['error']['code'], agent.states('a')[-1]) == (2001, 'executing')
        assert 'disk full' in reply['error']['data']['detail']
    world.tell(AuditChanged(writable=True))
    assert 'result' in agent.submit('move', 'c', preempt='queue')


# ---------------------------------------------------------------- what ROS and agents see


def test_embodiment_state_shows_stops_rest_and_the_running_action() -> None:
    world = World()
    agent = world.session(subscribe=[{'channel': 'arm_state'}])
    agent.submit('move', 'a')
    world.pass_ms(100)
    body = json.loads(agent.frames[-1].payload)
    assert (body['action_id'], body['action_state']) == ('a', 'executing')
    three = ('motion_permitted', 'in_safe_state', 'at_rest')
    assert [body[name] for name in three] == [True, False, None]
    world.tell(RestChanged('arm', True))
    world.safety(Meaning.FAULT, True)
    world.pass_ms(100)
    body = json.loads(agent.frames[-1].payload)
    assert [body[name] for name in three] == [False, True, True]
    assert body['stops'] == [{'input': 'in', 'meaning': 'fault', 'detail': 'test'}]
    assert body['action_id'] is None


def test_reports_to_ros_name_the_holder_and_its_action() -> None:
    world = World()
    agent = world.session()
    agent.submit('move', 'a')
    newest = world.effects(fx.ReportEmbodiment)[-1]
    assert (newest.session_id, newest.active_action) == (agent.ready['session_id'], 'a')
    world.finish()
    assert world.effects(fx.ReportEmbodiment)[-1].active_action is None
    agent.call('session.close')
    newest = world.effects(fx.ReportEmbodiment)[-1]
    assert (newest.session_id, newest.in_safe_state) == (None, True)


def test_unwritable_audit_log_stops_the_robot_where_configured() -> None:
    world = World(policy(audit_stop=True))
    agent = world.session()
    agent.submit(action_id='a')
    world.tell(AuditChanged(writable=False, detail='disk full'))
    assert (agent.last('a')['state'], agent.last('a')['reason']) == (
        'failed',
        'x-ros2.safety_input',
    )
    assert agent.events() == ['safe_state_entered']
    assert agent.submit(action_id='b')['error']['code'] == 2001


def test_unwritable_audit_log_only_refuses_by_default() -> None:
    world = World()
    agent = world.session()
    agent.submit(action_id='a')
    world.tell(AuditChanged(writable=False, detail='disk full'))
    assert agent.states('a')[-1] == 'executing'
    assert agent.submit(action_id='b')['error']['code'] == 2001
    world.finish()
