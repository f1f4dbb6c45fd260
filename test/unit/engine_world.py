"""A world on a virtual clock: the engine, a scripted ROS side, and agents without sockets."""

from __future__ import annotations

from collections.abc import Callable
import json
from typing import Any

from engine_agent import Agent
from engine_cell import MS, policy
from engine_invariants import Invariants
from engine_judge import Judge

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine import inputs as facts
from awp_ros_bridge.engine.engine import Engine
from awp_ros_bridge.engine.kernel import Kernel
from awp_ros_bridge.engine.permissions import ALL_SCOPES, Permissions
from awp_ros_bridge.engine.policy import GoalChecker, Policy
from awp_ros_bridge.wire import codec

Json = dict[str, Any]
STALL = 10_000
EVERYTHING = Permissions('everything', ALL_SCOPES)

WORLDS: list[World] = []


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

    By default the ROS side answers at once: goals are accepted, cancels end them, rest follows,
    behaviours succeed. Where a switch is off the answer is owed until :meth:`pay`. Everything is
    judged, see :meth:`check`.

    :param log: effects in the engine's order.
    :param started: goals that left, in order.
    :param live: goals that have not ended, by id.
    :param judged: False leaves the suite's checks out, where a test does a great deal.
    """

    def __init__(
        self,
        settings: Policy | None = None,
        checker: GoalChecker | None = None,
        *,
        judged: bool = True,
        schemas: bool = True,
    ) -> None:
        self.policy = settings or policy()
        self.engine = Engine(self.policy, checker, CountingIds())
        self.now_ns = 5_000 * MS
        self.log: list[fx.Effect] = []
        self.agents: dict[int, Agent] = {}
        self.auto_accept = True
        self.auto_cancel = True
        self.auto_rest = True
        self.auto_behavior = True
        self.auto_reset = True
        self.keeps_log = True
        self.started: list[fx.StartGoal] = []
        self.live: dict[str, fx.StartGoal] = {}
        self.accepted: set[str] = set()
        self.unwanted: set[str] = set()
        self.owed: list[facts.Input] = []
        self.newest: dict[str, facts.ObservationCaptured] = {}
        self.invariants = Invariants(self.engine, self.policy)
        self.judge = Judge(self.policy.manifest, schemas=schemas)
        self.judge.is_active &= judged
        self._numbers = 0
        WORLDS.append(self)

    def check(self) -> None:
        """Raise if the suite's passive checks found anything wrong so far."""
        problems = self.judge.problems()
        assert not problems, '\n'.join(problems)

    # ------------------------------------------------------------ driving

    def tell(self, *what: facts.Input) -> None:
        """Post facts and let the scripted sides answer."""
        pending = list(what)
        while pending:
            fact = pending.pop(0)
            self.invariants.told(fact)
            answers = self._carry_out(self.engine.handle(fact, self.now_ns))
            pending = answers + self._noted(fact) + pending

    def pass_ms(self, ms: float) -> None:
        """Let time pass, stopping at every deadline on the way."""
        end = self.now_ns + int(ms * MS)
        for turns in range(STALL * 100):
            due = self.engine.next_deadline_ns()
            if due is None or due > end:
                break
            assert turns < STALL or due > self.now_ns, 'the engine wants to be woken for nothing'
            self.now_ns = max(self.now_ns, due)
            self.tell(*self._carry_out(self.engine.advance(self.now_ns)))
        self.now_ns = end
        self.tell(*self._carry_out(self.engine.advance(self.now_ns)))

    def advance(self) -> None:
        """Let happen what is due now."""
        self.pass_ms(0)

    def oversleep_ms(self, ms: float) -> None:
        """Let time pass without waking the engine, which is then late with everything."""
        self.now_ns += int(ms * MS)
        self.tell(*self._carry_out(self.engine.advance(self.now_ns)))

    def _carry_out(self, effects: list[fx.Effect]) -> list[facts.Input]:
        """Carry effects out as the bridge does: what stops the robot before all others."""
        self.invariants.now_ns = self.now_ns
        for effect in effects:
            self.invariants.done(effect)
        self.invariants.left(effects)
        if self.keeps_log:
            self.log += effects
        answers: list[facts.Input] = []
        stops = (fx.BeginBehavior, fx.CancelGoal)
        for effect in sorted(effects, key=lambda e: not isinstance(e, stops)):
            answers += self._robot(effect)
            answers += self._transport(effect)
        return answers

    def _robot(self, effect: fx.Effect) -> list[facts.Input]:
        match effect:
            case fx.StartGoal(goal_id):
                self.started.append(effect)
                self.live[goal_id] = effect
                return self._say(self.auto_accept, facts.GoalAccepted(goal_id))
            case fx.CancelGoal(goal_id):
                return self._cancel(goal_id)
            case fx.AwaitRest(ticket):
                return self._say(self.auto_rest, facts.RestReached(ticket))
            case fx.BeginBehavior(ticket, embodiment):
                return self._behave(ticket, embodiment)
            case fx.ResetWorld():
                return self._say(self.auto_reset, facts.ResetFinished(ok=True))
            case fx.SetChannelDemand(channel, _rate, True) if channel in self.newest:
                return [self.newest[channel]]
        return []

    def _say(self, at_once: bool, answer: facts.Input) -> list[facts.Input]:
        """Give an answer now, or owe it."""
        if at_once:
            return [answer]
        self.owed.append(answer)
        return []

    def _cancel(self, goal_id: str) -> list[facts.Input]:
        """Cancel a goal: now when it is accepted, on acceptance otherwise."""
        if goal_id not in self.live:
            return []
        if goal_id not in self.accepted:
            self.unwanted.add(goal_id)
            return []
        answer = facts.GoalEnded(goal_id, facts.GoalOutcome.CANCELED)
        return self._say(self.auto_cancel, answer)

    def _behave(self, ticket: int, embodiment: str) -> list[facts.Input]:
        out: list[facts.Input] = []
        for goal_id in [g for g, s in self.live.items() if s.embodiment == embodiment]:
            out += self._cancel(goal_id)
        return out + self._say(self.auto_behavior, facts.BehaviorFinished(ticket, ok=True))

    def _noted(self, fact: facts.Input) -> list[facts.Input]:
        """Keep account of the goals; return what a server does on its own."""
        match fact:
            case facts.GoalAccepted(goal_id) if goal_id in self.live:
                self.accepted.add(goal_id)
                if goal_id in self.unwanted:
                    return self._cancel(goal_id)
            case facts.GoalEnded(goal_id):
                self.live.pop(goal_id, None)
                self.unwanted.discard(goal_id)
                self.accepted.discard(goal_id)
        return []

    def pay(self, kind: type | None = None) -> None:
        """Give the answers that are owed, or those of a kind, and those that they lead to."""
        while True:
            due = [a for a in self.owed if kind is None or isinstance(a, kind)]
            if not due:
                return
            self.owed = [a for a in self.owed if a not in due]
            self.tell(*due)

    def _transport(self, effect: fx.Effect) -> list[facts.Input]:
        match effect:
            case fx.SendMessage(conn, message):
                agent = self.agents.get(conn)
                if agent is not None:
                    received = json.loads(codec.encode(message))
                    agent.inbox.append(received)
                    self.judge.received(conn, received, self.now_ns)
            case fx.SendFrame(conn):
                self._frame(effect)
            case fx.CloseConnection(conn, code, reason):
                return self._close(conn, code, reason)
        return []

    def _frame(self, frame: fx.SendFrame) -> None:
        for agent in list(self.agents.values()):
            if frame.conn in (agent.conn, agent.stream) and agent.is_stalled:
                agent.missed[frame.conn, frame.channel_id] += frame.reliable
            elif frame.conn in (agent.conn, agent.stream):
                self.judge.frame(agent.conn, frame, self.now_ns)
                agent.frames.append(frame)
                self.engine.frame_sent(frame, self.now_ns)

    def _close(self, conn: int, code: int, reason: str) -> list[facts.Input]:
        agent = self.agents.get(conn)
        if agent is not None:
            agent.closed = (code, reason)
            self.judge.left(conn)
            del self.agents[conn]
            return [facts.ConnectionLost(conn, reason)]
        for each in self.agents.values():
            if conn == each.stream:
                each.stream = None
                each.stream_closed = (code, reason)
        return [facts.StreamLost(conn)]

    # ------------------------------------------------------------ the ROS side

    def accept(self, goal: int = -1) -> None:
        """Let the server take a started goal."""
        self.tell(facts.GoalAccepted(self.started[goal].goal_id))

    def finish(
        self,
        outcome: facts.GoalOutcome = facts.GoalOutcome.SUCCEEDED,
        goal: int = -1,
        detail: str = '',
    ) -> None:
        """End a started goal."""
        self.tell(facts.GoalEnded(self.started[goal].goal_id, outcome, detail))

    def meddle(self, call: Callable[[Kernel], None]) -> None:
        """Do to the engine what no fact does yet."""
        call(self.engine.kernel)
        self.engine.kernel.settle_step()
        self.tell(*self._carry_out(self.engine.kernel.take()))

    def hold(self) -> None:
        """Owe every answer of the ROS side from now on."""
        self.auto_accept = self.auto_cancel = self.auto_rest = self.auto_behavior = False

    def rest(self, *, measured: bool = True) -> None:
        """Answer the newest question for rest."""
        ticket = self.effects(fx.AwaitRest)[-1].ticket
        self.tell(facts.RestReached(ticket, measured))

    def behaved(self, *, ok: bool = True, detail: str = '') -> None:
        """Answer the newest behaviour."""
        ticket = self.effects(fx.BeginBehavior)[-1].ticket
        self.tell(facts.BehaviorFinished(ticket, ok, detail))

    def safety(
        self,
        meaning: facts.Meaning,
        engaged: bool,
        name: str = 'in',
        epoch: int = 1,
        embodiment: str = 'arm',
    ) -> None:
        """Change the verdict of a safety input."""
        self.tell(facts.SafetyChanged(embodiment, name, meaning, engaged, 'test', epoch))

    def violate(
        self, limit: str = 'spatial', epoch: int = 1, embodiment: str = 'arm'
    ) -> facts.EnvelopeViolated:
        """Measure motion beyond a limit, after the local stop."""
        fact = facts.EnvelopeViolated(embodiment, limit, 0.03, 0.0, 0.01, 'm', 'test', epoch)
        self.tell(fact)
        return fact

    def capture(self, channel: str, payload: bytes = b'{}', age_ms: float = 0) -> None:
        """Capture a sample; it stays the newest one of its channel."""
        at_ns = self.now_ns - int(age_ms * MS)
        self.newest[channel] = facts.ObservationCaptured(channel, payload, at_ns)
        self.tell(self.newest[channel])

    def effects(self, kind: type) -> list[Any]:
        """Return the effects of a kind so far."""
        return [e for e in self.log if isinstance(e, kind)]

    # ------------------------------------------------------------ agents

    def number(self) -> int:
        """Return the number of a new connection."""
        self._numbers += 1
        return self._numbers

    def line(self, permissions: Permissions = EVERYTHING) -> Agent:
        """Return an agent that has said nothing yet."""
        agent = Agent(self, self.number())
        self.agents[agent.conn] = agent
        self.tell(facts.ConnectionOpened(agent.conn, 'test', permissions))
        return agent

    def connect(self, permissions: Permissions = EVERYTHING, **fields: Any) -> Agent:
        """Return an initialized agent without a session."""
        agent = self.line(permissions)
        reply = agent.call(
            'initialize',
            protocol_versions=['0.1'],
            agent={'name': 'a', 'version': '1', 'vendor': 'v'},
            **{'consumes_modalities': ['proprio/json', 'text/event+json'], **fields},
        )
        assert 'result' in reply, reply
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

    def resume(self, agent: Agent, last_status_seq: int | None = None) -> Agent:
        """Return the agent's successor on a new connection, with its session."""
        back = self.connect()
        seen = agent.highest() if last_status_seq is None else last_status_seq
        token = agent.ready['session_token']
        reply = back.call('session.resume', session_token=token, last_status_seq=seen)
        assert 'result' in reply, reply
        back.ready = reply['result']
        return back
