"""Every cause of an end meets every state of an action: the table "Terminal rules" of the spec."""

from __future__ import annotations

from collections.abc import Callable

from engine_agent import Agent
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.actions import Action, Cause
from awp_ros_bridge.engine.inputs import GoalAccepted, GoalOutcome, Meaning

Ended = tuple[str, str | None]

STATES = ('queued', 'accepted', 'in_flight', 'executing', 'cancelling')
PRE = ('queued', 'accepted')


def bring(state: str, world: World) -> Agent:
    """Return an agent whose action ``a`` is in a state; the ROS side owes every answer."""
    agent = world.session(admin=['reset'], subscribe=[])
    agent.submit('move', 'z') if state in PRE else None
    world.hold()
    world.auto_accept = state != 'in_flight'
    preempt = {'queued': 'queue'}.get(state, 'replace')
    agent.submit('move', 'a', preempt=preempt)
    if state == 'cancelling':
        agent.call('action.cancel', action_id='a')
    expected = 'accepted' if state == 'in_flight' else state
    assert agent.states('a')[-1] == expected
    return agent


def _of(world: World, action_id: str) -> Action:
    (session,) = world.engine.kernel.sessions.values()
    return session.actions[action_id]


def _cancel(world: World, agent: Agent) -> None:
    agent.call('action.cancel', action_id='a')


def _deadline(world: World, agent: Agent) -> None:
    action = _of(world, 'a')
    world.meddle(lambda k: k.closer.deadline(action, 1))


def _e_stop(world: World, agent: Agent) -> None:
    world.safety(Meaning.E_STOP, True)


def _fault(world: World, agent: Agent) -> None:
    world.safety(Meaning.FAULT, True)


def _watchdog(world: World, agent: Agent) -> None:
    session = _of(world, 'a').session
    embodiment = world.engine.kernel.embodiments['arm']
    world.meddle(lambda k: k.safety.enter([embodiment], Cause.SAFE_STATE, session.id))


def _close(world: World, agent: Agent) -> None:
    agent.call_later('session.close')


def _reset(world: World, agent: Agent) -> None:
    agent.call_later('world.reset', initial_state='home')


def _transfer(world: World, agent: Agent) -> None:
    token = agent.call('session.transfer')['result']['transfer_token']
    taker = world.connect()
    taker.call_later(
        'session.open', mode='streaming', embodiment='arm', takeover=True, transfer_token=token
    )


def _replace(world: World, agent: Agent) -> None:
    agent.submit('move', 'n', preempt='replace')


def _envelope(world: World, agent: Agent) -> None:
    world.violate()


def _stalled(world: World, agent: Agent) -> None:
    action = _of(world, 'a')
    world.meddle(lambda k: k.endings.end(action, Cause.STALLED, 'nothing moves'))


def _stale(world: World, agent: Agent) -> None:
    action = _of(world, 'a')
    world.meddle(lambda k: k.endings.end(action, Cause.STALE_INTENT, 'too late'))


APPLY: dict[Cause, Callable[[World, Agent], None]] = {
    Cause.E_STOP: _e_stop,
    Cause.SAFETY_INPUT: _fault,
    Cause.SAFE_STATE: _watchdog,
    Cause.RESET: _reset,
    Cause.CLOSE: _close,
    Cause.TRANSFER: _transfer,
    Cause.CANCEL: _cancel,
    Cause.ENVELOPE: _envelope,
    Cause.DEADLINE: _deadline,
    Cause.STALLED: _stalled,
    Cause.STALE_INTENT: _stale,
    Cause.PREEMPT: _replace,
}

# Ends by cause: from a pre-execution state, from executing, from cancelling (AWP-LIF-008).
# None: the action goes on, to the end that it would have had.
_ABORTED: Ended = ('cancelled', 'cancelled_by_agent')
ENDS: dict[Cause, tuple[Ended | None, Ended | None, Ended]] = {
    Cause.E_STOP: (('cancelled', 'e_stop'), ('failed', 'e_stop'), ('failed', 'e_stop')),
    Cause.SAFETY_INPUT: (
        ('cancelled', 'safe_state'),
        ('failed', 'x-ros2.safety_input'),
        ('failed', 'x-ros2.safety_input'),
    ),
    Cause.SAFE_STATE: (
        ('cancelled', 'safe_state'),
        ('failed', 'connection_lost'),
        ('failed', 'connection_lost'),
    ),
    Cause.RESET: (('cancelled', 'world_reset'),) * 3,
    Cause.CLOSE: (('cancelled', 'session_closed'),) * 3,
    Cause.TRANSFER: (('cancelled', 'transferred'), ('preempted', 'transferred'), _ABORTED),
    Cause.CANCEL: (('cancelled', 'cancelled_by_agent'),) * 3,
    Cause.ENVELOPE: (('cancelled', 'safe_state'), ('failed', 'envelope'), _ABORTED),
    Cause.DEADLINE: (
        ('rejected', 'deadline_exceeded'),
        ('failed', 'deadline_exceeded'),
        _ABORTED,
    ),
    Cause.STALLED: (None, ('failed', 'x-ros2.stalled'), _ABORTED),
    Cause.STALE_INTENT: (('rejected', 'stale_intent'), None, _ABORTED),
    Cause.PREEMPT: (('cancelled', 'superseded'), ('preempted', None), _ABORTED),
}
THROUGH_CANCELLING = (Cause.CANCEL, Cause.CLOSE, Cause.RESET)
AT_ONCE = (Cause.E_STOP, Cause.SAFETY_INPUT, Cause.SAFE_STATE, Cause.ENVELOPE)


def test_the_table_names_every_cause() -> None:
    assert set(ENDS) == set(APPLY) == set(Cause)


@pytest.mark.parametrize('cause', list(Cause), ids=lambda c: c.name.lower())
@pytest.mark.parametrize('state', STATES)
def test_end_is_the_one_of_the_terminal_rules(cause: Cause, state: str) -> None:
    world = World()
    agent = bring(state, world)
    APPLY[cause](world, agent)
    pre, executing, cancelling = ENDS[cause]
    expected = pre if state in PRE else cancelling if state == 'cancelling' else executing
    if expected is None:
        assert agent.states('a')[-1] in ('queued', 'accepted', 'executing')
        return
    goes_on = state == 'cancelling' and cancelling is _ABORTED
    if state in PRE or (cause in AT_ONCE and not goes_on):
        assert agent.end('a') == expected, 'it ends at once'
    world.pay()
    assert agent.end('a') == expected
    visited = agent.states('a')
    assert ('cancelling' in visited) == (
        state == 'cancelling' or (state not in PRE and cause in THROUGH_CANCELLING)
    )
    assert ('executing' in visited) == (state not in PRE), 'a goal in flight counts as execution'


@pytest.mark.parametrize('cause', [c for c in Cause if ENDS[c][1] and c not in AT_ONCE])
def test_end_waits_for_the_goal_and_then_for_rest(cause: Cause) -> None:
    world = World()
    agent = bring('executing', world)
    APPLY[cause](world, agent)
    assert len(world.effects(fx.CancelGoal)) == 1
    assert not world.effects(fx.AwaitRest)
    assert agent.states('a')[-1] in ('executing', 'cancelling')
    world.finish(GoalOutcome.CANCELED, goal=0)
    assert agent.states('a')[-1] in ('executing', 'cancelling')
    world.rest()
    assert agent.end('a') == ENDS[cause][1]


@pytest.mark.parametrize('cause', AT_ONCE)
def test_behaviour_begins_before_the_action_ends_and_the_event_follows(cause: Cause) -> None:
    world = World()
    agent = bring('executing', world)
    world.log.clear()
    APPLY[cause](world, agent)
    order = [
        e
        for e in world.log
        if isinstance(e, fx.BeginBehavior)
        or (isinstance(e, fx.SendMessage) and 'method' in e.message)
    ]
    assert isinstance(order[0], fx.BeginBehavior)
    methods = [e.message['method'] for e in order[1:] if isinstance(e, fx.SendMessage)]
    events = 2 if cause is Cause.ENVELOPE else 1
    assert methods == ['action.status', *['world.event'] * events]


PAIRS = [
    (first, second)
    for first in Cause
    for second in Cause
    if first not in AT_ONCE and ENDS[first][1] is not None and second is not first
]


@pytest.mark.parametrize(
    ('first', 'second'), PAIRS, ids=lambda c: c.name.lower() if isinstance(c, Cause) else None
)
def test_coinciding_causes_end_as_the_stronger_one_says(first: Cause, second: Cause) -> None:
    """AWP-LIF-008, from executing."""
    world = World()
    agent = bring('executing', world)
    APPLY[first](world, agent)
    if agent.states('a')[-1] == 'cancelling' and second is Cause.TRANSFER and first is Cause.CLOSE:
        return  # a closing session answers session.transfer with AWP_SESSION_EXPIRED
    if first is Cause.CLOSE and second in (Cause.RESET, Cause.PREEMPT, Cause.CANCEL):
        return  # refused as well
    APPLY[second](world, agent)
    world.pay()
    assert agent.end('a') == _winner(first, second)


def _winner(first: Cause, second: Cause) -> Ended | None:
    if second is Cause.STALE_INTENT or second.rank >= first.rank:
        return ENDS[first][1]
    if first in THROUGH_CANCELLING and second is Cause.TRANSFER:
        return ENDS[first][1]  # "an abort already under way ends as it would have"
    return ENDS[second][1]


def test_cancel_is_answered_at_once_while_a_stronger_transfer_is_under_way() -> None:
    world = World()
    agent = bring('executing', world)
    _transfer(world, agent)
    result = agent.call('action.cancel', action_id='a')['result']
    assert result['state'] == 'executing'
    world.pay()
    assert agent.end('a') == ('preempted', 'transferred')


def test_deadline_outranks_a_replacement_that_waits_for_rest() -> None:
    world = World()
    agent = world.session(subscribe=[])
    world.hold()
    world.auto_accept = True
    agent.submit('move', 'a', deadline_ms=500)
    agent.submit('move', 'b', preempt='replace')
    for _ in range(2):
        world.pass_ms(300)
        agent.ping()
    world.pay()
    assert agent.end('a') == ('failed', 'deadline_exceeded')
    assert agent.states('b') == ['accepted', 'executing']


@pytest.mark.parametrize(
    ('cause', 'reason'),
    [
        (Cause.CANCEL, 'abort_failed'),
        (Cause.CLOSE, 'abort_failed'),
        (Cause.RESET, 'abort_failed'),
        (Cause.DEADLINE, 'deadline_exceeded'),
        (Cause.STALLED, 'x-ros2.stalled'),
        (Cause.TRANSFER, 'world_error'),
        (Cause.PREEMPT, 'world_error'),
    ],
)
@pytest.mark.parametrize('obstacle', ['goal', 'rest'])
def test_abort_past_its_bound_fails_and_enters_safe_state(
    cause: Cause, reason: str, obstacle: str
) -> None:
    """AWP-LIF-010; the detail says what did not happen."""
    world = World()
    agent = bring('executing', world)
    APPLY[cause](world, agent)
    if obstacle == 'rest':
        world.finish(GoalOutcome.CANCELED, goal=0)
    began = world.now_ns
    while not any(m['event'] == 'safe_state_entered' for m in agent.notes('world.event')):
        agent.call('ping', origin_ns=1)
        world.pass_ms(50)
        assert world.now_ns - began < 2e9
    assert world.now_ns - began <= 1.55e9
    status = agent.last('a')
    assert (status['state'], status['reason']) == ('failed', reason)
    assert status['detail'].startswith(
        'its goal on move_server did not end' if obstacle == 'goal' else 'the robot is not at rest'
    )
    assert world.effects(fx.BeginBehavior)[0].cause == status['detail']


def test_end_says_when_rest_was_not_measured() -> None:
    world = World()
    agent = bring('executing', world)
    _cancel(world, agent)
    world.finish(GoalOutcome.CANCELED, goal=0)
    world.rest(measured=False)
    assert 'rest not measured' in agent.last('a')['detail']


def test_late_rest_and_late_answers_of_an_ended_action_mean_nothing() -> None:
    world = World()
    agent = bring('cancelling', world)
    world.finish(GoalOutcome.CANCELED, goal=0)
    _e_stop(world, agent)
    count = len(agent.inbox)
    world.rest()
    world.tell(GoalAccepted(world.started[0].goal_id))
    world.finish(GoalOutcome.SUCCEEDED, goal=0)
    assert len(agent.inbox) == count


def test_cancel_of_an_ended_or_ending_action_repeats_its_state() -> None:
    world = World()
    agent = bring('cancelling', world)
    again = agent.call('action.cancel', action_id='a')['result']
    assert again['state'] == 'cancelling'
    world.pay()
    done = agent.call('action.cancel', action_id='a')['result']
    assert (done['state'], done['reason']) == ('cancelled', 'cancelled_by_agent')
    assert len(world.effects(fx.CancelGoal)) == 1
