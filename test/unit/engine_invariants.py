"""What must be true of every run of the engine, whatever happens: checked effect by effect."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine import inputs as facts
from awp_ros_bridge.engine.embodiments import BLOCKS, STOPS
from awp_ros_bridge.engine.engine import Engine
from awp_ros_bridge.engine.policy import Policy, Replace
from awp_ros_bridge.wire.lifecycle import ActionState, allowed, TERMINAL

Json = dict[str, Any]
Key = tuple[str, str]

SEQUENCED = frozenset({'action.status', 'session.state', 'world.event'})
RAN = frozenset(
    {facts.GoalOutcome.SUCCEEDED, facts.GoalOutcome.ABORTED, facts.GoalOutcome.CANCELED}
)
RUNNING = frozenset({ActionState.EXECUTING, ActionState.CANCELLING})


@dataclass
class OpenGoal:
    """A goal that was handed to ROS and may still move the robot."""

    start: fx.StartGoal
    group: str
    server: str
    is_native: bool
    is_stopping: bool = False


class Invariants:
    """Follows facts and effects of one engine and raises at the first one that breaks a rule."""

    def __init__(self, engine: Engine, policy: Policy) -> None:
        self._engine = engine
        self._policy = policy
        self._seqs: Counter[str] = Counter()
        self._states: dict[Key, ActionState] = {}
        self._places: dict[Key, tuple[str, str]] = {}
        self._running: dict[tuple[str, str], Key] = {}
        self._admitted: dict[Key, int] = {}
        self._admissions = 0
        self._entered: dict[str, int] = defaultdict(int)
        self._epochs: dict[str, int] = defaultdict(int)
        self._engaged: dict[str, dict[str, facts.Meaning]] = defaultdict(dict)
        self._gone: set[int] = set()
        self._goals: set[str] = set()
        self._open: dict[str, OpenGoal] = {}
        self._behaving: dict[str, tuple[int, int]] = {}
        self.now_ns = 0
        self.moves: list[tuple[ActionState, ActionState, str | None]] = []

    # ------------------------------------------------------------ facts

    def told(self, fact: facts.Input) -> None:
        """Note a fact before the engine hears it."""
        match fact:
            case facts.SafetyChanged() | facts.EnvelopeViolated():
                self._permission(fact)
            case facts.ConnectionLost(conn) | facts.StreamLost(conn):
                self._gone.add(conn)
            case facts.GoalAccepted(goal_id):
                self._accepted(goal_id)
            case facts.GoalEnded(goal_id, outcome):
                if outcome in RAN:  # the end may come before the acceptance
                    self._accepted(goal_id)
                self._open.pop(goal_id, None)
            case facts.BehaviorFinished(ticket):
                for name, (newest, _until) in list(self._behaving.items()):
                    if newest == ticket:
                        del self._behaving[name]

    def _permission(self, fact: facts.SafetyChanged | facts.EnvelopeViolated) -> None:
        self._epochs[fact.embodiment] = max(self._epochs[fact.embodiment], fact.epoch)
        engaged = self._engaged[fact.embodiment]
        if isinstance(fact, facts.EnvelopeViolated):
            engaged[fact.input_name] = facts.Meaning.FAULT
        elif fact.engaged:
            engaged[fact.input_name] = fact.meaning
        else:
            engaged.pop(fact.input_name, None)

    def _accepted(self, goal_id: str) -> None:
        """Count what a native server was pursuing as over: it takes the newer goal instead."""
        taker = self._open.get(goal_id)
        if taker is None or not taker.is_native:
            return
        for other in list(self._open.values()):
            if other is taker:
                return
            if other.server == taker.server:
                del self._open[other.start.goal_id]

    # ------------------------------------------------------------ effects

    def done(self, effect: fx.Effect) -> None:
        """Check an effect, in the engine's order."""
        match effect:
            case fx.CancelGoal(goal_id) if goal_id in self._open:
                self._open[goal_id].is_stopping = True
            case fx.SendMessage(conn) | fx.SendFrame(conn):
                assert conn not in self._gone, f'sent on a closed connection: {effect}'
            case fx.CloseConnection(conn):
                self._gone.add(conn)
            case fx.BeginBehavior(ticket, embodiment):
                self._entered[embodiment] = self._admissions
                self._behaving[embodiment] = (ticket, self.now_ns + effect.bound_ns)
                for goal in self._open.values():
                    goal.is_stopping |= goal.start.embodiment == embodiment
            case fx.StartGoal():
                self._started(effect)
            case fx.RecordAudit(session_id, _ts, 'world', kind, body):
                if kind in ('message', 'kept') and body.get('method') in SEQUENCED:
                    self._sequenced(session_id, body['method'], body['params'])

    def _started(self, start: fx.StartGoal) -> None:
        assert start.goal_id not in self._goals, 'a goal id was used twice'
        self._goals.add(start.goal_id)
        name = start.embodiment
        assert start.epoch >= self._epochs[name], f'{start} rests on an older epoch'
        meanings = set(self._engaged[name].values())
        assert not meanings & STOPS, f'{start} while stopped by {meanings}'
        if self._policy.actions[start.action_type].needs_motion:
            assert not meanings & BLOCKS, f'{start} while {meanings} forbid motion'
        until = self._behaving.get(name, (0, 0))[1]
        assert self.now_ns >= until, f'{start} while a behaviour is under way'
        self._starts_alone(start)
        goal = self._engine.kernel.goals.get(start.goal_id)
        if goal is not None:
            key = (goal.action.session.id, goal.action.id)
            newest = self._entered[name]
            assert self._admitted[key] > newest, f'{key} starts, but safe state came after it'
            holder = self._engine.kernel.embodiments[name].session
            assert goal.action.session is holder, f'{start} for another than the holder'

    def _starts_alone(self, start: fx.StartGoal) -> None:
        action = self._policy.actions[start.action_type]
        mine = OpenGoal(start, action.group, action.server, action.replace is Replace.NATIVE)
        for other in self._open.values():
            if (other.start.embodiment, other.group) == (start.embodiment, mine.group):
                blends = mine.is_native and other.server == mine.server
                assert blends, f'{start} beside {other}'
                assert not other.is_stopping, f'{start} beside {other}'
        self._open[start.goal_id] = mine

    def _sequenced(self, session_id: str, method: str, params: Json) -> None:
        if params['status_seq'] <= self._seqs[session_id]:
            return  # a replay
        self._seqs[session_id] += 1
        assert params['status_seq'] == self._seqs[session_id], f'a gap before {params}'
        if method == 'action.status':
            key = (session_id, params['action_id'])
            self._moved(key, ActionState(params['state']), params.get('reason'))

    def _moved(self, key: Key, target: ActionState, reason: str | None) -> None:
        source = self._states.get(key, ActionState.SUBMITTED)
        assert source not in TERMINAL, f'{key} moved to {target} after {source}'
        assert allowed(source, target, reason), f'{key}: {source} to {target} ({reason})'
        self.moves.append((source, target, reason))
        if source is ActionState.SUBMITTED:
            self._admit(key)
        self._states[key] = target
        place = self._places[key]
        if target in RUNNING:
            rival = self._running.setdefault(place, key)
            assert rival == key, f'{key} and {rival} both run in {place}'
        elif target in TERMINAL:
            if self._running.get(place) == key:
                del self._running[place]
            del self._places[key]

    def _admit(self, key: Key) -> None:
        session_id, action_id = key
        action = self._engine.kernel.sessions[session_id].actions[action_id]
        self._places[key] = (action.embodiment, action.policy.group)
        self._admissions += 1
        self._admitted[key] = self._admissions

    @staticmethod
    def left(effects: list[fx.Effect]) -> None:
        """Check the effects of one call: stops are carried out first, no goal may precede one."""
        started: set[str] = set()
        for effect in effects:
            if isinstance(effect, fx.StartGoal):
                started |= {effect.goal_id, effect.embodiment}
            elif isinstance(effect, fx.CancelGoal):
                assert effect.goal_id not in started, f'{effect} in the call that started it'
            elif isinstance(effect, fx.BeginBehavior):
                assert effect.embodiment not in started, f'{effect} after a start'

    # ------------------------------------------------------------ at the end

    def open_actions(self) -> dict[Key, ActionState]:
        """Return the actions that were admitted and have not ended."""
        return {k: s for k, s in self._states.items() if s not in TERMINAL}
