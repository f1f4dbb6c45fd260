"""A world on a virtual clock: the engine, a scripted ROS side, and agents without sockets."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine import inputs as facts
from awp_ros_bridge.engine.engine import Engine
from awp_ros_bridge.engine.policy import (
    ActionPolicy,
    ChannelPolicy,
    EmbodimentPolicy,
    GoalChecker,
    Policy,
    Replace,
)
from awp_ros_bridge.wire import codec

Json = dict[str, Any]
MS = 1_000_000

MOVE_SCHEMA: Json = {
    'type': 'object',
    'properties': {'x_m': {'type': 'number', 'minimum': -1, 'maximum': 1}},
    'required': ['x_m'],
    'additionalProperties': False,
}


def policy(**changes: Any) -> Policy:
    """Return the settings of a small cell: an arm, a gripper, and what they show."""
    move = ActionPolicy(
        'move',
        MOVE_SCHEMA,
        extended=True,
        preemption=('replace', 'queue', 'reject'),
        group='arm',
        server='move_server',
        max_queue=2,
        max_duration_ns=10_000 * MS,
        max_abort_ns=1500 * MS,
    )
    chunk = dataclasses.replace(
        move, type='chunk', server='chunk_server', replace=Replace.NATIVE
    )
    stop = dataclasses.replace(
        move,
        type='stop',
        server='stop',
        params_schema={'type': 'object', 'additionalProperties': False},
        preemption=('replace',),
        extended=False,
        needs_motion=False,
    )
    grip = dataclasses.replace(move, type='grip', server='grip_server', group='gripper')
    base = Policy(
        manifest={'protocol_version': '0.1', 'world': {'name': 'test'}},
        actions={a.type: a for a in (move, chunk, stop, grip)},
        channels={
            'proprio': ChannelPolicy('proprio', 'proprio/json', 100.0, False, 20 * MS),
            'arm_state': ChannelPolicy(
                'arm_state', 'text/event+json', 10.0, True, 200 * MS, embodiment_state='arm'
            ),
            'log': ChannelPolicy('log', 'text/event+json', 10.0, True, 200 * MS),
            'grip_state': ChannelPolicy(
                'grip_state', 'text/event+json', 10.0, True, 200 * MS, embodiment_state='grip'
            ),
        },
        embodiments={
            'arm': EmbodimentPolicy(
                'arm',
                frozenset({'move', 'chunk', 'stop'}),
                ('proprio', 'arm_state', 'log'),
                envelope={'embodiment': 'arm', 'max_action_rate_hz': 20, 'on_violation': 'reject'},
                multi_bind_group='cell',
            ),
            'grip': EmbodimentPolicy(
                'grip', frozenset({'grip'}), ('grip_state',), multi_bind_group='cell'
            ),
            'base': EmbodimentPolicy('base', frozenset(), ()),
        },
        reset_states=('home',),
        stream_url=lambda: 'ws://127.0.0.1:1/stream',
    )
    return dataclasses.replace(base, **changes)


class CountingIds:
    """Predictable names."""

    def __init__(self) -> None:
        self._n = 0

    def _next(self) -> int:
        self._n += 1
        return self._n

    def session_id(self) -> str:
        return f'sess_{self._next():04d}'

    def token(self, prefix: str) -> str:
        return f'{prefix}_{self._next():020d}'

    def goal_id(self) -> str:
        return f'{self._next():032x}'


class World:
    """
    The engine under test with everything around it scripted.

    By default the ROS side answers at once: goals are accepted, cancels take ``cancel_ns`` and
    rest follows, behaviours succeed. Switches make it misbehave.
    """

    def __init__(self, settings: Policy | None = None, checker: GoalChecker | None = None) -> None:
        self.engine = Engine(settings or policy(), checker, CountingIds())
        self.now_ns = 5_000 * MS
        self.log: list[fx.Effect] = []
        self.agents: dict[int, Agent] = {}
        self.auto_accept = True
        self.auto_cancel = True
        self.auto_rest = True
        self.auto_behavior = True
        self.started: list[fx.StartGoal] = []
        self.live: dict[str, fx.StartGoal] = {}
        self._conns = 0

    # ------------------------------------------------------------ driving

    def tell(self, *what: facts.Input) -> None:
        """Post facts and let the scripted sides answer."""
        pending = list(what)
        while pending:
            pending = self._carry_out(self.engine.handle(pending.pop(0), self.now_ns)) + pending

    def pass_ms(self, ms: float) -> None:
        """Let time pass, stopping at every deadline on the way."""
        end = self.now_ns + int(ms * MS)
        while True:
            due = self.engine.next_deadline_ns()
            if due is None or due > end:
                break
            self.now_ns = max(self.now_ns, due)
            self.tell(*self._carry_out(self.engine.advance(self.now_ns)))
        self.now_ns = end
        self.tell(*self._carry_out(self.engine.advance(self.now_ns)))

    def _carry_out(self, effects: list[fx.Effect]) -> list[facts.Input]:
        answers: list[facts.Input] = []
        for effect in effects:
            self.log.append(effect)
            answers += self._answer(effect)
        return answers

    def _answer(self, effect: fx.Effect) -> list[facts.Input]:
        match effect:
            case fx.StartGoal(goal_id):
                self.started.append(effect)
                self.live[goal_id] = effect
                return [facts.GoalAccepted(goal_id)] if self.auto_accept else []
            case fx.CancelGoal(goal_id):
                if self.auto_cancel and self.live.pop(goal_id, None):
                    return [facts.GoalEnded(goal_id, facts.GoalOutcome.CANCELED)]
            case fx.AwaitRest(ticket):
                return [facts.RestReached(ticket)] if self.auto_rest else []
            case fx.BeginBehavior(ticket, embodiment):
                return self._behave(ticket, embodiment)
            case fx.ResetWorld():
                return [facts.ResetFinished(ok=True)]
            case fx.SendMessage(conn, message):
                if conn in self.agents:
                    self.agents[conn].inbox.append(json.loads(codec.encode(message)))
            case fx.SendFrame(conn):
                self.engine.frame_sent(effect, self.now_ns)
                for agent in self.agents.values():
                    if conn in (agent.conn, agent.stream):
                        agent.frames.append(effect)
            case fx.CloseConnection(conn, code, reason):
                for agent in self.agents.values():
                    if conn == agent.conn:
                        agent.closed = (code, reason)
                        return [facts.ConnectionLost(conn, reason)]
        return []

    def _behave(self, ticket: int, embodiment: str) -> list[facts.Input]:
        out: list[facts.Input] = []
        if self.auto_cancel:
            for goal_id in [g for g, s in self.live.items() if s.embodiment == embodiment]:
                del self.live[goal_id]
                out.append(facts.GoalEnded(goal_id, facts.GoalOutcome.CANCELED))
        if self.auto_behavior:
            out.append(facts.BehaviorFinished(ticket, ok=True))
        return out

    # ------------------------------------------------------------ the ROS side

    def finish(
        self,
        outcome: facts.GoalOutcome = facts.GoalOutcome.SUCCEEDED,
        goal: int = -1,
        detail: str = '',
    ) -> None:
        """End a started goal."""
        goal_id = self.started[goal].goal_id
        self.live.pop(goal_id, None)
        self.tell(facts.GoalEnded(goal_id, outcome, detail))

    def safety(self, meaning: facts.Meaning, engaged: bool, name: str = 'in', epoch: int = 1) -> None:
        """Change the verdict of a safety input of the arm."""
        self.tell(facts.SafetyChanged('arm', name, meaning, engaged, 'test', epoch))

    def effects(self, kind: type) -> list[Any]:
        """Return the effects of a kind so far."""
        return [e for e in self.log if isinstance(e, kind)]

    # ------------------------------------------------------------ agents

    def connect(self) -> Agent:
        """Return an initialized agent without a session."""
        self._conns += 1
        agent = Agent(self, self._conns)
        self.agents[agent.conn] = agent
        self.tell(facts.ConnectionOpened(agent.conn, 'test'))
        agent.call(
            'initialize',
            protocol_versions=['0.1'],
            agent={'name': 'a', 'version': '1', 'vendor': 'v'},
            consumes_modalities=['proprio/json', 'text/event+json'],
        )
        return agent

    def session(self, embodiment: str | None = 'arm', **params: Any) -> Agent:
        """Return an agent with an open session."""
        agent = self.connect()
        if embodiment is not None:
            params['embodiment'] = embodiment
        reply = agent.call('session.open', mode='streaming', **params)
        assert 'result' in reply, reply
        agent.ready = reply['result']
        return agent


class Agent:
    """One agent on one connection; replies are found by id."""

    def __init__(self, world: World, conn: int) -> None:
        self.world = world
        self.conn = conn
        self.stream: int | None = None
        self.inbox: list[Json] = []
        self.frames: list[fx.SendFrame] = []
        self.closed: tuple[int, str] | None = None
        self.ready: Json = {}
        self._ids = 0
        self._actions = 0

    def call_later(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        self._ids += 1
        message = {'jsonrpc': '2.0', 'id': self._ids, 'method': method, 'params': params}
        self.text(json.dumps(message))
        return self._ids

    def text(self, text: str | bytes) -> None:
        """Send one text message as it is."""
        self.world.tell(facts.TextReceived(self.conn, text, self.world.now_ns))

    def reply(self, request_id: int) -> Json:
        """Return the reply to a request, {} while there is none."""
        return next((m for m in self.inbox if m.get('id') == request_id and 'method' not in m), {})

    def call(self, method: str, **params: Any) -> Json:
        """Send a request and return its reply."""
        return self.reply(self.call_later(method, **params))

    def submit(self, kind: str = 'move', action_id: str | None = None, **fields: Any) -> Json:
        """Submit an action; the admission rate of the arm is kept by waiting."""
        self._actions += 1
        action_id = action_id or f'c{self.conn}-a{self._actions}'
        fields.setdefault('params', {'x_m': 0.5} if kind != 'stop' else {})
        reply = self.call('action.submit', action_id=action_id, type=kind, **fields)
        reply.setdefault('action_id', action_id)
        self.world.pass_ms(50)
        return reply

    def drop(self) -> None:
        """Lose the connection."""
        self.world.agents.pop(self.conn, None)
        self.world.tell(facts.ConnectionLost(self.conn, 'test'))

    # ------------------------------------------------------------ what arrived

    def notes(self, method: str) -> list[Json]:
        """Return the params of the notifications of a method, in order."""
        return [m['params'] for m in self.inbox if m.get('method') == method and 'id' not in m]

    def states(self, action_id: str) -> list[str]:
        """Return the states an action went through, by notifications and results, in order."""
        rows: dict[int, str] = {}
        for message in self.inbox:
            body = message.get('params') or message.get('result') or {}
            if body.get('action_id') == action_id and 'status_seq' in body:
                rows[body['status_seq']] = body['state']
        out: list[str] = []
        for _, state in sorted(rows.items()):
            if not out or out[-1] != state:
                out.append(state)
        return out

    def last(self, action_id: str) -> Json:
        """Return the newest status of an action that was notified."""
        return [p for p in self.notes('action.status') if p['action_id'] == action_id][-1]

    def events(self) -> list[str]:
        """Return the names of the world events, in order."""
        return [p['event'] for p in self.notes('world.event')]

    def session_states(self) -> list[str]:
        """Return the session states, in order."""
        return [p['state'] for p in self.notes('session.state')]
