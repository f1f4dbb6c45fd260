"""What must be true of every run of the engine, whatever happens: checked effect by effect."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine import inputs as facts
from awp_ros_bridge.engine.embodiments import BLOCKS, STOPS
from awp_ros_bridge.engine.engine import Engine
from awp_ros_bridge.engine.policy import Policy
from awp_ros_bridge.wire.lifecycle import ActionState, allowed, TERMINAL

Json = dict[str, Any]
Key = tuple[str, str]

SEQUENCED = frozenset({'action.status', 'session.state', 'world.event'})
RUNNING = frozenset({ActionState.EXECUTING, ActionState.CANCELLING})


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
        self.moves: list[tuple[ActionState, ActionState, str | None]] = []

    # ------------------------------------------------------------ facts

    def told(self, fact: facts.Input) -> None:
        """Note a fact before the engine hears it."""
        match fact:
            case facts.SafetyChanged(embodiment, name, meaning, engaged, _detail, epoch):
                self._epochs[embodiment] = max(self._epochs[embodiment], epoch)
                if engaged:
                    self._engaged[embodiment][name] = meaning
                else:
                    self._engaged[embodiment].pop(name, None)
            case facts.ConnectionLost(conn) | facts.StreamLost(conn):
                self._gone.add(conn)

    # ------------------------------------------------------------ effects

    def done(self, effect: fx.Effect) -> None:
        """Check an effect, in the engine's order."""
        match effect:
            case fx.SendMessage(conn) | fx.SendFrame(conn):
                assert conn not in self._gone, f'sent on a closed connection: {effect}'
            case fx.CloseConnection(conn):
                self._gone.add(conn)
            case fx.BeginBehavior(_ticket, embodiment):
                self._entered[embodiment] = self._admissions
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
        goal = self._engine.kernel.goals.get(start.goal_id)
        if goal is not None:
            key = (goal.action.session.id, goal.action.id)
            newest = self._entered[name]
            assert self._admitted[key] > newest, f'{key} starts, but safe state came after it'

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

    # ------------------------------------------------------------ at the end

    def open_actions(self) -> dict[Key, ActionState]:
        """Return the actions that were admitted and have not ended."""
        return {k: s for k, s in self._states.items() if s not in TERMINAL}
