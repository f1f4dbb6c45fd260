"""What agents, robot and time may do to a world, drawn at random: the moves of the machine."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from random import Random
from typing import Any

from engine_agent import Agent
from engine_cell import embodiments, MS, policy
from engine_picture import picture
from engine_world import World
from hypothesis import note

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine import inputs as facts
from awp_ros_bridge.engine.inputs import GoalOutcome, Meaning
from awp_ros_bridge.engine.policy import GoalRefusal, RefusalKind
from awp_ros_bridge.engine.sessions import Session

KINDS = ['move', 'move', 'chunk', 'chunk', 'chunk', 'stop', 'grip']
GARBAGE = [
    'garbage',
    '[]',
    '{"jsonrpc":"2.0","id":"g","method":"ping","params":{"origin_ns":9007199254740992}}',
    '{"jsonrpc":"2.0","id":"g","method":"action.cancel","params":{}}',
    '{"jsonrpc":"2.0","id":"w1","result":{}}',
    '{"jsonrpc":"2.0","method":"obs.report","params":{"channels":1}}',
    '{"jsonrpc":"2.0","id":"g","method":"session.open","params":{"mode":"streaming"}}',
]
OUTCOMES = [GoalOutcome.SUCCEEDED, GoalOutcome.CANCELED, *GoalOutcome]


class Moody:
    """A goal checker that changes its mind."""

    def __init__(self) -> None:
        self.kind: RefusalKind | None = None

    def check(self, _embodiment: str, _type: str, _params: Any) -> GoalRefusal | None:
        return None if self.kind is None else GoalRefusal(self.kind, 'not now')


class Crowd:
    """Agents and a robot around one world; most moves concern who holds the arm."""

    def __init__(self, random: Random) -> None:
        self.random = random
        arm = dataclasses.replace(embodiments()['arm'], max_action_rate_hz=None)
        cell = policy(
            embodiments={**embodiments(), 'arm': arm},
            grant_ttl_ns=self.random.choice([None, None, None, 6_000 * MS]),
            reconnect_window_ns=self.random.choice([4_000, 30_000]) * MS,
        )
        self.checker = Moody()
        self.world = World(cell, self.checker, schemas=False)
        self.agents: list[Agent] = []
        self.gone: list[Agent] = []
        self.tokens: list[str] = []
        self.ids: list[str] = []
        self.told: list[facts.Input] = []
        self.epoch = 0
        self.down = False
        self.enter(self.random.choice(['arm', 'both']))

    # ------------------------------------------------------------ choosing

    def often(self) -> bool:
        return self.random.random() < 0.8

    def agent(self) -> Agent | None:
        """Return who holds the arm, or now and then anybody with a connection."""
        self.agents = [a for a in self.agents if a.conn in self.world.agents]
        holder = self.world.engine.kernel.embodiments['arm'].session
        if holder is not None and holder.conn is not None and self.often():
            return self.world.agents[holder.conn.id]
        return self.random.choice(self.agents) if self.agents else None

    def tell(self, fact: facts.Input) -> None:
        self.told.append(fact)
        self.world.tell(fact)

    def something(self) -> None:
        """Make one move."""
        self._one_of((5, self.agents_act), (4, self.the_robot_acts), (2, self.time_passes))

    def _one_of(self, *choices: tuple[int, Callable[[], None]]) -> None:
        weights = [weight for weight, _ in choices]
        (chosen,) = self.random.choices([call for _, call in choices], weights)
        note(f'-> {chosen.__name__}')
        chosen()

    # ------------------------------------------------------------ agents

    def agents_act(self) -> None:
        self._one_of(
            (12, self.submit),
            (4, self.chain),
            (4, self.cancel),
            (2, self.ask),
            (2, self.lose_and_resume),
            (1, self.resume),
            (1, self.close),
            (1, self.reset),
            (1, self.drop),
            (2, self.hand_over),
            (1, self.open),
            (1, self.subscribe),
            (2, self.stream),
            (1, self.babble),
            (2, self.probe),
            (1, self.an_operator_closes),
        )

    def open(self) -> None:
        self.enter(self.random.choice(['arm', 'arm', 'both', 'grip', None]))

    def enter(self, who: str | None) -> None:
        """Let a new agent open a session."""
        if self.down or len(self.agents) > 5:
            return
        params: dict[str, Any] = {'mode': 'streaming', 'admin': ['reset']}
        if who == 'both':
            params['embodiments'] = ['arm', 'grip']
        elif who is not None:
            params['embodiment'] = who
        if self.random.random() < 0.5:
            names = ['proprio', 'arm_state', 'log', 'grip_state']
            params['subscribe'] = [{'channel': name} for name in names]
        agent = self.world.connect()
        agent.ready = agent.call('session.open', **params).get('result') or {}
        self.agents.append(agent)

    def submit(self) -> None:
        if self.world.engine.kernel.embodiments['arm'].session is None:
            self.enter(self.random.choice(['arm', 'both']))
        for _ in range(self.random.randint(1, 4)):
            agent = self.agent()
            if agent is not None:
                self._wish(agent)
                self.world.pass_ms(self.random.choice([0, 0, 5, 20, 300]))

    def chain(self) -> None:
        """Leave a native replacement in flight."""
        agent = self.agent()
        for is_answered in (True, False, False):
            if agent is not None and self.often():
                self.world.auto_accept = is_answered
                reply = agent.submit_now('chunk', embodiment_id='arm', preempt='replace')
                self.ids.append(str(reply['action_id']))

    def _wish(self, agent: Agent) -> None:
        choice = self.random.choice
        kind = choice(KINDS)
        fields: dict[str, Any] = {'embodiment_id': 'grip' if kind == 'grip' else 'arm'}
        preempt = choice([None, None, 'replace', 'queue', 'queue', 'reject'])
        if preempt is not None and kind != 'stop':
            fields['preempt'] = preempt
        if not self.often():
            fields['deadline_ms'] = choice([30, 400])
        session = self.world.engine.kernel.sessions.get(agent.ready.get('session_id', ''))
        if session is not None and not self.often():
            now = session.clock.session_ns(self.world.now_ns)
            fields['valid_until_ns'] = now + choice([0, 20, 200]) * MS
        is_open = session is not None and session.closing is None
        action_id = self.ids[-1] if is_open and self.ids and not self.often() else None
        self.ids.append(str(agent.submit_now(kind, action_id, **fields)['action_id']))

    def cancel(self) -> None:
        self._name('action.cancel')

    def ask(self) -> None:
        self._name(self.random.choice(['action.status', 'ping']))

    def _name(self, method: str) -> None:
        agent = self.agent()
        if agent is not None and method == 'ping':
            agent.ping()
        elif agent is not None and self.ids:
            live = [action_id for _session, action_id in self.world.invariants.open_actions()]
            choice = live if live and self.often() else self.ids[-4:]
            agent.call(method, action_id=self.random.choice(choice))

    def lose_and_resume(self) -> None:
        agent = self.agent()
        if agent is None:
            return
        if self.often():  # else the old connection is still open
            agent.drop()
            self.world.pass_ms(self.random.choice([1, 300, 2_500, 4_500]))
        self.gone.append(agent)
        self.resume()

    def resume(self) -> None:
        agent = self.random.choice(self.gone[-2:]) if self.gone else None
        if agent is None or self.down or 'session_token' not in agent.ready:
            return
        back = self.world.connect()
        token = agent.ready['session_token']
        session = self.world.engine.kernel.tokens.find(token)
        seen = 0 if session is None else session.acknowledged
        last = self.random.choice([seen, max(seen, agent.highest())])
        reply = back.call('session.resume', session_token=token, last_status_seq=last)
        back.ready = reply.get('result') or {}
        self.agents.append(back)

    def close(self) -> None:
        agent = self.agent()
        if agent is not None:
            agent.call_later('session.close')

    def reset(self) -> None:
        agent = self.agent()
        if agent is not None:
            agent.call_later('world.reset', initial_state='home')

    def drop(self) -> None:
        agent = self.agent()
        if agent is not None:
            agent.drop()
            self.gone.append(agent)

    def hand_over(self) -> None:
        agent = self.agent()
        if agent is not None and (self.often() or not self.tokens):
            result = agent.call('session.transfer', expires_in_ms=5_000).get('result')
            self.tokens += [] if result is None else [result['transfer_token']]
        if self.down or not self.tokens:
            return
        self.world.auto_cancel &= self.often()
        taker = self.world.connect()
        name = self.random.choice(['arm', 'arm', 'grip'])
        wanted = {'mode': 'streaming', 'embodiment': name, 'takeover': True}
        request = taker.call_later('session.open', transfer_token=self.tokens[-1], **wanted)
        taker.ready = taker.reply(request).get('result') or {}
        self.agents.append(taker)

    def subscribe(self) -> None:
        agent = self.agent()
        if agent is not None and self.often():
            rate_hz = self.random.choice([1, 5, 50])
            agent.call('obs.subscribe', channels=[{'channel': 'log', 'rate_hz': rate_hz}])
        elif agent is not None:
            agent.call('obs.unsubscribe', channels=['log', 'arm_state'])

    def stream(self) -> None:
        agent = self.agent()
        what = self.random.choice(['open', 'open', 'lose', 'spoil', 'stall', 'go on'])
        if agent is None or 'session_token' not in agent.ready:
            return
        if what == 'open' and self.world.engine.stream_allowed(agent.ready['session_token']):
            agent.open_stream()
        elif what == 'lose' and agent.stream is not None:
            agent.lose_stream()
        elif what == 'spoil' and agent.stream is not None:
            self.world.tell(facts.StreamReceived(agent.stream, b'no frame'))
        elif what == 'stall':
            agent.is_stalled = True
        elif what == 'go on':
            agent.catch_up()

    def babble(self) -> None:
        agent = self.agent()
        if agent is not None:
            agent.text(self.random.choice(GARBAGE))

    def an_operator_closes(self) -> None:
        """Close some session from outside, or one that is none."""
        known = [*sorted(self.world.engine.kernel.sessions), 'nobody']
        self.tell(facts.SessionCloseRequested(self.random.choice(known), 'an operator'))

    def probe(self) -> None:
        """Ask where sessions stand: nothing is changed, but for the asker's own session."""
        kernel = self.world.engine.kernel
        agent = self.agent() if self.often() else None
        if agent is None and not self.down:
            agent = self.world.connect()
        if agent is None:
            return
        asker = kernel.connections[agent.conn]
        own = () if asker.session is None else (asker.session,)
        known = sorted(kernel.sessions) + [str(a.ready.get('session_id')) for a in self.gone[-2:]]
        self.world.advance()
        before = picture(self.world.engine, *own)
        for wanted in self.random.sample([*known, 'nobody'], min(3, len(known) + 1)):
            first = len(self.world.log)
            reply = agent.call('session/status', sessionId=wanted)
            self._judge_answer(reply, kernel.sessions.get(wanted))
            for effect in self.world.log[first:]:
                if isinstance(effect, fx.RecordAudit):
                    assert own, f'{effect} for a session that was only asked about'
                    assert effect.session_id == own[0].id
                elif isinstance(effect, fx.ReportEmbodiment):  # the watchdog's latch is off again
                    assert own, f'{effect} by a stranger'
                    assert effect.embodiment in own[0].embodiments
                else:
                    assert isinstance(effect, fx.SendMessage), f'{effect} by a question'
                    assert effect.conn == agent.conn
        assert picture(self.world.engine, *own) == before, 'a question changed something'

    @staticmethod
    def _judge_answer(reply: dict[str, Any], session: Session | None) -> None:
        if session is None or (session.conn is None and session.closing is not None):
            assert reply['error']['code'] == -32002
        elif session.conn is None:
            assert reply['result'] == {'status': 'inactive'}
        else:
            is_busy = session.closing is not None or any(
                not action.is_terminal for action in session.actions.values()
            )
            told = reply['result']['state']['state']
            assert told == ('running' if is_busy else 'idle')

    # ------------------------------------------------------------ the robot

    def the_robot_acts(self) -> None:
        self._one_of(
            (2, self.trip),
            (1, self.leave_the_envelope),
            (3, self.clear),
            (5, self.end_a_goal),
            (4, self.go_on_with_a_goal),
            (1, self.stall_a_goal),
            (3, self.change_mood),
            (8, self.answer),
            (1, self.say_again),
            (1, self.change_readiness),
        )

    def trip(self) -> None:
        self.epoch += 1
        name, meaning = self.random.choice(['one', 'two']), self.random.choice(list(Meaning))
        where = self.random.choice(['arm', 'arm', 'grip'])
        self.tell(facts.SafetyChanged(where, name, meaning, True, 'drawn', self.epoch))

    def leave_the_envelope(self) -> None:
        self.epoch += 1
        where = self.random.choice(['arm', 'arm', 'grip'])
        fact = facts.EnvelopeViolated(where, 'spatial', 0.1, 0.0, 0.0, 'm', 'drawn', self.epoch)
        self.tell(fact)

    def clear(self) -> None:
        names = ('one', 'two', 'envelope:spatial')
        for embodiment, name in ((e, n) for e in ('arm', 'grip') for n in names):
            change = facts.SafetyChanged(embodiment, name, Meaning.FAULT, False, '', self.epoch)
            self.tell(change)

    def _goal(self) -> str:
        return self.random.choice(sorted(self.world.live) or ['ff' * 16])

    def end_a_goal(self) -> None:
        self.tell(facts.GoalEnded(self._goal(), self.random.choice(OUTCOMES), 'drawn'))

    def go_on_with_a_goal(self) -> None:
        goal_id, progress = self._goal(), self.random.choice([0.1, 0.9, 2.0])
        fact = facts.GoalProgressed(goal_id, progress)
        self.tell(facts.GoalAccepted(goal_id) if self.random.random() < 0.5 else fact)

    def stall_a_goal(self) -> None:
        self.tell(facts.GoalStalled(self._goal(), 'drawn'))

    def change_mood(self) -> None:
        world, at_random = self.world, self.random.random
        world.auto_accept, world.auto_cancel = at_random() < 0.6, at_random() < 0.6
        world.auto_rest, world.auto_behavior = at_random() < 0.6, at_random() < 0.6
        world.auto_reset = at_random() < 0.6

    def answer(self) -> None:
        owed = self.world.owed
        if not owed:
            return
        fact = owed.pop(self.random.randrange(len(owed)))
        if isinstance(fact, (facts.BehaviorFinished, facts.ResetFinished)):
            fact = dataclasses.replace(fact, ok=self.often())
        self.tell(fact)
        if not self.often():
            self.world.pay()

    def say_again(self) -> None:
        fact = self.random.choice(self.told[-9:]) if self.told else None
        stops = (facts.SafetyChanged, facts.EnvelopeViolated)
        if fact is not None and not isinstance(fact, stops):
            self.world.tell(fact)

    def change_readiness(self) -> None:
        self.checker.kind = self.random.choice(list(RefusalKind))
        is_there, is_writable = self.often(), self.often()
        self.tell(facts.AvailabilityChanged('arm', 'move', is_there, 'drawn'))
        self.tell(facts.AuditChanged(is_writable, 'drawn'))
        self.world.pass_ms(60)
        self.checker.kind = None

    # ------------------------------------------------------------ time and the process

    def time_passes(self) -> None:
        self._one_of((8, self.wait), (1, self.oversleep), (1, self.nap))

    def wait(self) -> None:
        self.world.pass_ms(self.random.choice([1, 20, 60, 450, 450, 1_600, 2_100, 5_000]))
        self.world.capture(self.random.choice(['proprio', 'log']))

    def oversleep(self) -> None:
        self.world.oversleep_ms(self.random.choice([100, 1_800, 16_000]))

    def nap(self) -> None:
        self.gone += [a for a in self.agents if a.conn in self.world.agents]
        self.down = not self.often()
        self.world.tell(facts.Deactivated())
        if not self.down:
            self.world.tell(facts.Activated())
