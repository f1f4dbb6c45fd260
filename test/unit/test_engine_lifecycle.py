"""The life of an action through the engine, on a virtual clock."""

from __future__ import annotations

from engine_world import World

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.inputs import GoalAccepted, GoalOutcome, GoalProgressed, Meaning


def test_action_runs_to_completion() -> None:
    world = World()
    agent = world.session(subscribe=[{'channel': 'arm_state'}])
    reply = agent.submit(action_id='a')
    assert reply['result']['state'] == 'accepted'
    world.tell(GoalProgressed(world.started[0].goal_id, 0.5))
    world.finish()
    assert agent.states('a') == ['accepted', 'executing', 'completed']
    assert agent.last('a')['progress'] == 1.0
    assert agent.session_states() == ['ready', 'active']


def test_status_seq_has_no_gap_and_results_count() -> None:
    world = World()
    agent = world.session()
    agent.submit(action_id='a')
    agent.submit(action_id='b', preempt='replace')
    agent.submit(action_id='c', preempt='queue')
    agent.call('action.cancel', action_id='c')
    seqs = [
        (m.get('params') or m.get('result') or {}).get('status_seq')
        for m in agent.inbox
        if 'status_seq' in (m.get('params') or m.get('result') or {})
    ]
    assert seqs == list(range(1, len(seqs) + 1))


def test_cancel_waits_for_goal_and_rest() -> None:
    world = World()
    world.auto_cancel = world.auto_rest = False
    agent = world.session()
    agent.submit(action_id='a')
    reply = agent.call('action.cancel', action_id='a')
    assert reply['result']['state'] == 'cancelling'
    world.finish(GoalOutcome.CANCELED)
    assert agent.states('a')[-1] == 'cancelling'
    from awp_ros_bridge.engine.inputs import RestReached

    world.tell(RestReached(world.effects(fx.AwaitRest)[-1].ticket))
    assert agent.last('a')['state'] == 'cancelled'
    assert agent.last('a')['reason'] == 'cancelled_by_agent'
    assert 'aborted_at_progress' in agent.last('a')


def test_abort_bound_fails_and_enters_safe_state() -> None:
    world = World()
    world.auto_cancel = False
    agent = world.session()
    agent.submit(action_id='a')
    agent.call('action.cancel', action_id='a')
    for _ in range(4):
        agent.call('ping', origin_ns=1)
        world.pass_ms(400)
    assert (agent.last('a')['state'], agent.last('a')['reason']) == ('failed', 'abort_failed')
    assert agent.events() == ['safe_state_entered']


def test_native_replace_neither_stops_nor_waits() -> None:
    world = World()
    agent = world.session()
    agent.submit('chunk', action_id='a')
    agent.submit('chunk', action_id='b')
    assert agent.states('a') == ['accepted', 'executing', 'preempted']
    assert agent.states('b') == ['accepted', 'executing']
    assert not world.effects(fx.CancelGoal)


def test_replace_stops_first() -> None:
    world = World()
    agent = world.session()
    agent.submit(action_id='a')
    agent.submit(action_id='b')
    assert len(world.effects(fx.CancelGoal)) == 1
    assert agent.states('a')[-1] == 'preempted'
    assert agent.states('b') == ['accepted', 'executing']


def test_watchdog_enters_safe_state_in_order() -> None:
    world = World()
    agent = world.session()
    agent.submit(action_id='a')
    agent.submit(action_id='b', preempt='queue')
    world.log.clear()
    world.pass_ms(2100)
    assert agent.last('a')['reason'] == 'connection_lost'
    assert agent.last('b')['reason'] == 'safe_state'
    assert agent.events() == ['safe_state_entered']
    agent.submit(action_id='c')
    assert agent.events() == ['safe_state_entered', 'safe_state_exited']


def test_e_stop_outranks_a_cancel_under_way() -> None:
    world = World()
    world.auto_cancel = False
    agent = world.session()
    agent.submit(action_id='a')
    agent.submit(action_id='b', preempt='queue')
    agent.call('action.cancel', action_id='a')
    world.safety(Meaning.E_STOP, True)
    assert (agent.last('a')['state'], agent.last('a')['reason']) == ('failed', 'e_stop')
    assert agent.last('b')['reason'] == 'e_stop'
    assert agent.submit(action_id='c')['error']['code'] == 3005
    world.safety(Meaning.E_STOP, False)
    assert agent.events() == ['e_stop_engaged']  # the goal is still active
    world.finish(GoalOutcome.CANCELED, goal=0)
    assert agent.events() == ['e_stop_engaged', 'e_stop_released']
    assert 'result' in agent.submit(action_id='d')


def test_close_during_motion() -> None:
    world = World()
    world.auto_cancel = False
    agent = world.session()
    agent.submit(action_id='a')
    agent.submit(action_id='b', preempt='queue')
    first = agent.call_later('session.close')
    second = agent.call_later('session.close')
    assert agent.submit(action_id='c')['error']['code'] == 2003
    assert agent.reply(first) == {}
    world.finish(GoalOutcome.CANCELED, goal=0)
    assert agent.reply(first)['result'] == agent.reply(second)['result'] == {}
    assert agent.last('a')['reason'] == agent.last('b')['reason'] == 'session_closed'
    assert agent.session_states()[-1] == 'closed'
    assert world.session().ready['session_id']


def test_transfer_preempts_and_hands_over() -> None:
    world = World()
    holder = world.session()
    token = holder.call('session.transfer')['result']['transfer_token']
    holder.submit(action_id='a')
    taker = world.connect()
    reply = taker.call(
        'session.open', mode='streaming', embodiment='arm', takeover=True, transfer_token=token
    )
    assert 'result' in reply
    assert (holder.last('a')['state'], holder.last('a')['reason']) == ('preempted', 'transferred')
    assert holder.events() == ['embodiment_transferred']
    assert holder.submit()['error']['code'] == 4001
    thief = world.connect()
    again = thief.call(
        'session.open', mode='streaming', embodiment='arm', takeover=True, transfer_token=token
    )
    assert again['error']['code'] == 2001


def test_resume_replays_in_order() -> None:
    world = World()
    agent = world.session(subscribe=[{'channel': 'arm_state'}])
    agent.submit(action_id='a')
    agent.drop()
    world.pass_ms(2600)
    back = world.connect()
    reply = back.call(
        'session.resume', session_token=agent.ready['session_token'], last_status_seq=2
    )
    assert reply['result']['safe_state'] is True
    seqs = [
        m['params']['status_seq'] for m in back.inbox if 'status_seq' in (m.get('params') or {})
    ]
    assert seqs[0] == 3
    assert seqs == list(range(3, 3 + len(seqs)))
    assert 'channel_degraded' in back.events()
    assert back.frames[0].flags == 9


def test_reset_ends_actions_of_everyone() -> None:
    world = World()
    agent = world.session(admin=['reset'])
    other = world.session(None, admin=['reset'])
    assert other.ready['granted']['admin'] == []
    agent.submit(action_id='a')
    assert agent.call('world.reset', initial_state='home')['result'] == {}
    assert agent.states('a')[-2:] == ['cancelling', 'cancelled']
    assert agent.last('a')['reason'] == 'world_reset'
    assert other.events() == ['world_resetting']
    assert other.call('world.reset')['error']['code'] == 4001


def test_in_flight_goal_counts_as_execution() -> None:
    world = World()
    world.auto_accept = world.auto_cancel = False
    agent = world.session()
    agent.submit(action_id='a')
    reply = agent.call('action.cancel', action_id='a')
    assert reply['result']['state'] == 'cancelling'
    assert agent.states('a') == ['accepted', 'executing', 'cancelling']
    world.tell(GoalAccepted(world.started[0].goal_id))
    world.finish(GoalOutcome.CANCELED)
    assert agent.states('a')[-1] == 'cancelled'


def test_integer_range_ends_the_session() -> None:
    world = World()
    agent = world.session(None)
    agent.text('{"jsonrpc":"2.0","id":7,"method":"ping","params":{"origin_ns":1152921504606846976}}')
    assert agent.reply(7)['error']['code'] == 2006
    assert agent.notes('session.state')[-1]['reason'] == 'protocol_error'
    assert agent.closed == (1002, 'AWP_INTEGER_RANGE')
