"""Every end of a goal on the ROS side meets every state of its action."""

from __future__ import annotations

from engine_agent import Agent
from engine_world import World
import pytest

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine.actions import Cause
from awp_ros_bridge.engine.inputs import (
    BehaviorFinished,
    GoalAccepted,
    GoalEnded,
    GoalOutcome,
    GoalProgressed,
    GoalStalled,
    Meaning,
    RestReached,
)
from awp_ros_bridge.engine.kernel import Kernel

O = GoalOutcome  # noqa: E741
Ended = tuple[str, str | None]

RAN = (O.SUCCEEDED, O.ABORTED, O.CANCELED)
NEVER_RAN = (O.REFUSED, O.NOT_SENT)
UNCERTAIN = (O.UNANSWERED, O.LOST)

SAFE_STATE: Ended = ('failed', 'connection_lost')
_CLOSED: Ended = ('cancelled', 'session_closed')
_LATE: Ended = ('failed', 'deadline_exceeded')
_STOPPED: Ended = ('failed', 'e_stop')
_COMPLETED: Ended = ('completed', None)
_REPLACED: Ended = ('preempted', None)
_ERROR: Ended = ('failed', 'world_error')
_CANCELLED: Ended = ('cancelled', 'cancelled_by_agent')

# State of the action to what each outcome makes of it.
ENDS: dict[str, dict[GoalOutcome, Ended]] = {
    'in_flight': {
        O.SUCCEEDED: ('completed', None),
        O.ABORTED: _ERROR,
        O.CANCELED: _ERROR,
        O.REFUSED: ('rejected', 'x-ros2.goal_refused'),
        O.NOT_SENT: ('rejected', 'x-ros2.server_unavailable'),
        O.UNANSWERED: _ERROR,
        O.LOST: _ERROR,
    },
    'executing': dict.fromkeys(O, _ERROR) | {O.SUCCEEDED: _COMPLETED},
    'cancelling': dict.fromkeys(O, _CANCELLED)
    | dict.fromkeys(UNCERTAIN, ('failed', 'abort_failed')),
    'cancelled in flight': dict.fromkeys(O, _CANCELLED)
    | dict.fromkeys(UNCERTAIN, ('failed', 'abort_failed')),
    'past its deadline': dict.fromkeys(O, _LATE),
    'being replaced': dict.fromkeys(O, _REPLACED)
    | {O.SUCCEEDED: _COMPLETED}
    | dict.fromkeys(UNCERTAIN, _ERROR),
    'being transferred': dict.fromkeys(O, ('preempted', 'transferred'))
    | dict.fromkeys(UNCERTAIN, _ERROR),
    'closing': dict.fromkeys(O, _CLOSED)
    | dict.fromkeys(UNCERTAIN, ('failed', 'abort_failed')),
    'stopped': dict.fromkeys(O, _STOPPED),
}


def bring(state: str, world: World) -> Agent:
    """Return an agent whose action ``a``, the first goal, is in a state."""
    agent = world.session(subscribe=[])
    world.hold()
    world.auto_accept = 'flight' not in state
    deadline = {'deadline_ms': 200} if state == 'past its deadline' else {}
    agent.submit('move', 'a', **deadline)
    match state:
        case 'cancelling' | 'cancelled in flight':
            agent.call('action.cancel', action_id='a')
        case 'past its deadline':
            world.pass_ms(200)
        case 'being replaced':
            agent.submit('move', 'b', preempt='replace')
        case 'being transferred':
            take(world, agent)
        case 'closing':
            agent.call_later('session.close')
        case 'stopped':
            world.safety(Meaning.E_STOP, True)
    return agent


def take(world: World, holder: Agent) -> tuple[Agent, int]:
    """Begin a takeover; return the receiver and the id of its request."""
    token = holder.call('session.transfer')['result']['transfer_token']
    taker = world.connect()
    request = taker.call_later(
        'session.open', mode='streaming', embodiment='arm', takeover=True, transfer_token=token
    )
    return taker, request


@pytest.mark.parametrize('outcome', list(GoalOutcome))
@pytest.mark.parametrize('state', list(ENDS))
def test_outcome_ends_the_action_as_decided(state: str, outcome: GoalOutcome) -> None:
    world = World()
    agent = bring(state, world)
    world.finish(outcome, goal=0, detail='from the server')
    world.pay()
    assert agent.end('a') == ENDS[state][outcome]
    went_to_safe_state = 'safe_state_entered' in agent.events()
    assert went_to_safe_state == (outcome in UNCERTAIN and state != 'stopped')
    if outcome in NEVER_RAN and state == 'in_flight':
        assert agent.states('a') == ['accepted', 'rejected'], 'nothing of it ran'


@pytest.mark.parametrize('outcome', list(GoalOutcome))
def test_second_end_of_a_goal_means_nothing(outcome: GoalOutcome) -> None:
    world = World()
    agent = bring('executing', world)
    world.finish(GoalOutcome.SUCCEEDED)
    count = len(agent.inbox)
    world.finish(outcome)
    world.accept()
    world.tell(GoalProgressed(world.started[0].goal_id, 0.5))
    assert len(agent.inbox) == count


def test_success_while_cancelling_is_reported_with_full_progress() -> None:
    world = World()
    agent = bring('cancelling', world)
    world.finish(GoalOutcome.SUCCEEDED)
    world.pay()
    last = agent.last('a')
    assert last['aborted_at_progress'] == 1.0
    assert 'succeeded before it could be cancelled' in last['detail']


def test_end_that_comes_before_the_acceptance_counts_as_accepted() -> None:
    world = World()
    agent = bring('in_flight', world)
    world.finish(GoalOutcome.SUCCEEDED)
    assert agent.states('a') == ['accepted', 'executing', 'completed']


@pytest.mark.parametrize('outcome', UNCERTAIN)
def test_uncertain_goal_stops_the_robot_and_names_the_server(outcome: GoalOutcome) -> None:
    world = World()
    agent = bring('executing', world)
    agent.submit('move', 'q', preempt='queue')
    world.finish(outcome, goal=0, detail='arm_controller is gone')
    assert agent.end('a')[0] == 'failed'
    assert agent.last('a')['detail'] == 'arm_controller is gone'
    assert agent.end('q') == ('cancelled', 'safe_state')
    (event,) = agent.notes('world.event')
    assert event['detail']['cause'] == 'arm_controller is gone'
    assert world.effects(fx.BeginBehavior)


@pytest.mark.parametrize('outcome', list(GoalOutcome))
def test_nothing_starts_in_a_group_before_the_old_goal_is_over(outcome: GoalOutcome) -> None:
    world = World()
    agent = bring('stopped', world)
    world.safety(Meaning.E_STOP, False)
    world.pay(BehaviorFinished)
    assert agent.events() == ['e_stop_engaged'], 'no release while a goal is active'
    assert agent.submit('move', 'b')['error']['code'] == 3005
    world.owed.clear()
    world.finish(outcome, goal=0)
    assert agent.events()[-1] == 'e_stop_released'
    agent.submit('move', 'b')
    assert len(world.started) == 2


def test_goal_accepted_after_its_action_ended_does_not_execute() -> None:
    world = World()
    agent = bring('in_flight', world)
    world.safety(Meaning.E_STOP, True)
    assert agent.states('a') == ['accepted', 'executing', 'failed']
    world.accept()
    assert agent.states('a') == ['accepted', 'executing', 'failed']
    assert [type(a) for a in world.owed].count(GoalEnded) == 1, 'it is cancelled on acceptance'


# ---------------------------------------------------------------- progress


def test_progress_is_reported_at_most_ten_times_a_second_and_repeated_every_second() -> None:
    world = World()
    agent = bring('executing', world)
    goal = world.started[0].goal_id
    for step in range(40):
        world.tell(GoalProgressed(goal, step / 100))
        world.pass_ms(25)
    told = [p['progress'] for p in agent.notes('action.status') if p['state'] == 'executing']
    assert 8 <= len(told) - 1 <= 10
    agent.ping()
    world.pass_ms(1000)
    assert agent.last('a')['progress'] == 0.39, 'the newest value, though it came too soon'


@pytest.mark.parametrize('value', [-0.1, 1.1, float('nan'), float('inf')])
def test_progress_out_of_range_is_ignored(value: float) -> None:
    world = World()
    agent = bring('executing', world)
    world.pass_ms(300)
    count = len(agent.notes('action.status'))
    world.tell(GoalProgressed(world.started[0].goal_id, value))
    assert len(agent.notes('action.status')) == count


def test_progress_of_a_goal_whose_action_is_over_is_not_told() -> None:
    world = World()
    agent = bring('stopped', world)
    count = len(agent.inbox)
    world.tell(GoalProgressed(world.started[0].goal_id, 0.4))
    assert len(agent.inbox) == count


def test_progress_is_kept_while_cancelling_and_reported_in_the_end() -> None:
    world = World()
    agent = bring('cancelling', world)
    world.tell(GoalProgressed(world.started[0].goal_id, 0.4))
    world.pay()
    assert agent.last('a')['aborted_at_progress'] == 0.4


# ---------------------------------------------------------------- stops in one step


@pytest.mark.parametrize('how', ['cancel', 'safe state'])
def test_goal_that_one_step_starts_and_stops_never_leaves(how: str) -> None:
    """Stops are carried out before other effects, so such a goal would escape them."""
    world = World()
    agent = world.session(subscribe=[])
    world.hold()
    world.auto_accept = True
    agent.submit('move', 'a')
    agent.submit('move', 'b', preempt='replace')
    world.finish(GoalOutcome.CANCELED, goal=0)
    ticket = world.effects(fx.AwaitRest)[-1].ticket

    def rest_and_stop(kernel: Kernel) -> None:
        kernel.endings.rest_reached(ticket, measured=True)
        kernel.settle_step()
        (goal,) = kernel.goals.values()
        if how == 'cancel':
            kernel.endings.end(goal.action, Cause.CANCEL)
        else:
            kernel.safety.enter([kernel.embodiments['arm']], Cause.SAFE_STATE, 'test')

    world.meddle(rest_and_stop)
    assert len(world.started) == 1
    assert not world.engine.kernel.goals
    world.pay()
    ends = {'cancel': ('cancelled', 'cancelled_by_agent'), 'safe state': SAFE_STATE}
    assert agent.end('b') == ends[how]
    assert ('never ran' in agent.last('b')['detail']) == (how == 'cancel')


def test_unknown_answers_of_the_ros_side_are_ignored() -> None:
    world = World()
    world.tell(
        GoalAccepted('ff' * 16),
        GoalProgressed('ff' * 16, 0.5),
        GoalEnded('ff' * 16, GoalOutcome.LOST),
        RestReached(999),
    )
    assert world.log == []


def test_a_stalled_goal_is_cancelled_and_its_action_fails_at_rest_saying_why() -> None:
    world = World()
    agent = world.session(subscribe=[])
    world.hold()
    world.auto_accept = True
    agent.submit('move', 'a')
    (started,) = world.effects(fx.StartGoal)
    world.tell(GoalStalled(started.goal_id, 'arm rests for 5000 ms'))
    assert [c.goal_id for c in world.effects(fx.CancelGoal)] == [started.goal_id]
    assert agent.states('a')[-1] == 'executing'
    world.finish(O.CANCELED, goal=0)
    assert agent.states('a')[-1] == 'executing'
    world.rest()
    status = agent.last('a')
    assert (status['state'], status['reason']) == ('failed', 'x-ros2.stalled')
    assert status['detail'] == 'arm rests for 5000 ms'
    assert not agent.notes('world.event'), 'a stall is no reason for safe state'


@pytest.mark.parametrize('state', ['in_flight', 'cancelling', 'past its deadline', 'closing'])
def test_a_stall_changes_nothing_for_a_goal_that_is_not_running_or_ends_already(
    state: str,
) -> None:
    world = World()
    agent = bring(state, world)
    before = agent.states('a'), len(world.effects(fx.CancelGoal))
    (started,) = world.effects(fx.StartGoal)
    world.tell(GoalStalled(started.goal_id, 'too late'), GoalStalled('f' * 32, 'of nobody'))
    assert (agent.states('a'), len(world.effects(fx.CancelGoal))) == before
    world.pay()
    assert agent.end('a')[1] != 'x-ros2.stalled'
