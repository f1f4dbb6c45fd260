"""
The engine as a state machine: agents, robot and time do anything, in any order.

What must hold is checked effect by effect (``engine_invariants``), by the public suite's passive
checks, and at the end: everything that began ends once ROS answers and time passes.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from engine_agent import Agent
from engine_cell import embodiments, MS, policy
from engine_world import World
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, RuleBasedStateMachine

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine import inputs as facts
from awp_ros_bridge.engine.inputs import GoalOutcome, Meaning
from awp_ros_bridge.engine.policy import GoalRefusal, RefusalKind

INDEX = st.integers(0, 5)
GARBAGE = st.sampled_from(
    [
        'garbage',
        '[]',
        '{"jsonrpc":"2.0","id":"g","method":"ping","params":{"origin_ns":9007199254740992}}',
        '{"jsonrpc":"2.0","id":"g","method":"action.cancel","params":{}}',
        '{"jsonrpc":"2.0","id":"w1","result":{}}',
        '{"jsonrpc":"2.0","method":"obs.report","params":{"channels":1}}',
        '{"jsonrpc":"2.0","id":"g","method":"session.open","params":{"mode":"streaming"}}',
    ]
)
PAUSES = st.sampled_from([0, 0, 20, 300])
WISHES = st.lists(
    st.fixed_dictionaries(
        {
            'kind': st.sampled_from(['move', 'move', 'chunk', 'chunk', 'chunk', 'stop', 'grip']),
            'preempt': st.sampled_from([None, None, 'replace', 'queue', 'queue', 'reject']),
            'deadline_ms': st.sampled_from([None, None, 30, 400]),
            'valid_ms': st.sampled_from([None, None, None, 20]),
            'again': st.sampled_from([False, False, False, False, True]),
        }
    ),
    min_size=1,
    max_size=4,
)
OFTEN = st.sampled_from([True, True, False])
RARELY = st.sampled_from([False, False, False, True])
GAPS = st.sampled_from([1, 300, 2_500, 4_500])


class Moody:
    """A goal checker that changes its mind."""

    def __init__(self) -> None:
        self.kind: RefusalKind | None = None

    def check(self, _embodiment: str, _type: str, _params: Any) -> GoalRefusal | None:
        return None if self.kind is None else GoalRefusal(self.kind, 'not now')


class EngineMachine(RuleBasedStateMachine):
    """Drives one world with a handful of agents; most steps concern who holds the arm."""

    @initialize(
        ttl_ms=st.sampled_from([None, None, None, 3_000]),
        window_ms=st.sampled_from([4_000, 30_000]),
        both=st.booleans(),
    )
    def begin(self, ttl_ms: int | None, window_ms: int, both: bool) -> None:
        arm = dataclasses.replace(embodiments()['arm'], max_action_rate_hz=None)
        cell = policy(
            embodiments={**embodiments(), 'arm': arm},
            grant_ttl_ns=None if ttl_ms is None else ttl_ms * MS,
            reconnect_window_ns=window_ms * MS,
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
        self.enter('both' if both else 'arm', listen=True)

    # ------------------------------------------------------------ choosing

    def agent(self, index: int) -> Agent | None:
        """Return who holds the arm, or for the last index anybody with a connection."""
        self.agents = [a for a in self.agents if a.conn in self.world.agents]
        holder = self.world.engine.kernel.embodiments['arm'].session
        if holder is not None and holder.conn is not None and index < 5:
            return self.world.agents[holder.conn.id]
        lines = self.world.engine.kernel.connections
        able = [a for a in self.agents if lines[a.conn].session is not None]
        choice = able if able and index < 4 else self.agents
        return choice[index % len(choice)] if choice else None

    def goal(self, index: int) -> str | None:
        """Return one of the goals that have not ended."""
        live = sorted(self.world.live)
        return live[index % len(live)] if live else None

    def tell(self, fact: facts.Input) -> None:
        self.told.append(fact)
        self.world.tell(fact)

    def enter(self, who: str | None, *, listen: bool) -> None:
        """Let a new agent open a session."""
        params: dict[str, Any] = {'mode': 'streaming', 'admin': ['reset']}
        if who == 'both':
            params['embodiments'] = ['arm', 'grip']
        elif who is not None:
            params['embodiment'] = who
        if listen:
            names = ['proprio', 'arm_state', 'log', 'grip_state']
            params['subscribe'] = [{'channel': name} for name in names]
        agent = self.world.connect()
        agent.ready = agent.call('session.open', **params).get('result') or {}
        self.agents.append(agent)

    # ------------------------------------------------------------ agents

    @precondition(lambda self: len(self.agents) < 5 and not self.down)
    @rule(who=st.sampled_from(['arm', 'arm', 'grip', 'both', None]), listen=st.booleans())
    def open(self, who: str | None, listen: bool) -> None:
        self.enter(who, listen=listen)

    def _submit(self, index: int, wishes: list[dict[str, Any]], pause_ms: int) -> None:
        if self.world.engine.kernel.embodiments['arm'].session is None and not self.down:
            self.enter('arm', listen=index == 0)
        for wish in wishes:
            agent = self.agent(index)
            if agent is not None:
                self.ids.append(self.wish(agent, **wish))
                self.world.pass_ms(pause_ms)

    submit = rule(index=INDEX, wishes=WISHES, pause_ms=PAUSES)(_submit)
    submit_more = rule(index=INDEX, wishes=WISHES, pause_ms=PAUSES)(_submit)

    def wish(self, agent: Agent, kind: str, valid_ms: int | None, again: bool, **rest: Any) -> str:
        """Let an agent submit; return the action's id."""
        fields = {name: value for name, value in rest.items() if value is not None}
        fields['embodiment_id'] = 'grip' if kind == 'grip' else 'arm'
        if kind == 'stop':
            fields.pop('preempt', None)
        session = self.world.engine.kernel.sessions.get(agent.ready.get('session_id', ''))
        if valid_ms is not None and session is not None:
            now = session.clock.session_ns(self.world.now_ns)
            fields['valid_until_ns'] = now + valid_ms * MS
        is_closing = session is None or session.closing is not None
        action_id = self.ids[-1] if again and self.ids and not is_closing else None
        return str(agent.submit_now(kind, action_id, **fields)['action_id'])

    @rule(index=INDEX, which=INDEX, what=st.sampled_from(['cancel', 'cancel', 'status', 'ping']))
    def ask(self, index: int, which: int, what: str) -> None:
        agent = self.agent(index)
        if agent is None:
            return
        if what == 'ping':
            agent.ping()
        elif self.ids:
            agent.call(f'action.{what}', action_id=self.ids[-1 - which % len(self.ids)])

    @rule(index=INDEX, from_zero=st.booleans(), half_open=st.booleans(), gap_ms=GAPS)
    def lose_and_resume(self, index: int, from_zero: bool, half_open: bool, gap_ms: int) -> None:
        agent = self.agent(index)
        if agent is None:
            return
        if not half_open:
            agent.drop()
            self.world.pass_ms(gap_ms)
        self.gone.append(agent)
        if gap_ms != 1:
            self.resume(-1, from_zero)

    @precondition(lambda self: self.gone and not self.down)
    @rule(index=INDEX, from_zero=st.booleans())
    def resume(self, index: int, from_zero: bool) -> None:
        agent = self.gone[index % len(self.gone)]
        if 'session_token' not in agent.ready or self.down:
            return
        back = self.world.connect()
        token = agent.ready['session_token']
        session = self.world.engine.kernel.tokens.find(token)
        seen = 0 if session is None else session.acknowledged
        last = seen if from_zero else max(seen, agent.highest())
        reply = back.call('session.resume', session_token=token, last_status_seq=last)
        back.ready = reply.get('result') or {}
        self.agents.append(back)

    @rule(index=INDEX, how=st.sampled_from(['close', 'close', 'reset', 'reset', 'drop']))
    def end(self, index: int, how: str) -> None:
        agent = self.agent(index)
        if agent is None:
            return
        if how == 'close':
            agent.call_later('session.close')
        elif how == 'reset':
            agent.call_later('world.reset', initial_state='home')
        else:
            agent.drop()
            self.gone.append(agent)

    @rule(index=INDEX, embodiment=st.sampled_from(['arm', 'arm', 'grip']), fresh=st.booleans())
    def hand_over(self, index: int, embodiment: str, fresh: bool) -> None:
        agent = self.agent(index)
        if agent is not None and (fresh or not self.tokens):
            result = agent.call('session.transfer', expires_in_ms=5_000).get('result')
            self.tokens += [] if result is None else [result['transfer_token']]
        if self.down or not self.tokens:
            return
        taker = self.world.connect()
        wanted = {'mode': 'streaming', 'embodiment': embodiment, 'takeover': True}
        request = taker.call_later('session.open', transfer_token=self.tokens[-1], **wanted)
        taker.ready = taker.reply(request).get('result') or {}
        self.agents.append(taker)

    @rule(index=INDEX, text=GARBAGE, what=st.sampled_from(['babble', 'subscribe', 'unsubscribe']))
    def chore(self, index: int, text: str, what: str) -> None:
        agent = self.agent(index)
        if agent is None:
            return
        if what == 'babble':
            agent.text(text)
        elif what == 'subscribe':
            agent.call('obs.subscribe', channels=[{'channel': 'log', 'rate_hz': index + 1}])
        else:
            agent.call('obs.unsubscribe', channels=['log', 'arm_state'])

    @rule(index=INDEX, what=st.sampled_from(['open', 'open', 'lose', 'spoil', 'stall', 'go on']))
    def stream(self, index: int, what: str) -> None:
        agent = self.agent(index)
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

    # ------------------------------------------------------------ the robot

    @rule(
        meaning=st.sampled_from(list(Meaning)),
        name=st.sampled_from(['one', 'two']),
        embodiment=st.sampled_from(['arm', 'arm', 'grip']),
        stays=RARELY,
    )
    def trip(self, meaning: Meaning, name: str, embodiment: str, stays: bool) -> None:
        self.epoch += 1
        self.tell(facts.SafetyChanged(embodiment, name, meaning, True, 'drawn', self.epoch))
        if not stays:
            self.clear(meaning)

    @rule(meaning=st.sampled_from(list(Meaning)))
    def clear(self, meaning: Meaning) -> None:
        for embodiment, name in ((e, n) for e in ('arm', 'grip') for n in ('one', 'two')):
            self.tell(facts.SafetyChanged(embodiment, name, meaning, False, '', self.epoch))

    @rule(index=INDEX, outcome=st.sampled_from(list(GoalOutcome)))
    def goal_ends(self, index: int, outcome: GoalOutcome) -> None:
        goal_id = self.goal(index)
        if goal_id is not None:
            self.tell(facts.GoalEnded(goal_id, outcome, 'drawn'))

    @rule(index=INDEX, progress=st.sampled_from([0.1, 0.9, 2.0]), accepts=st.booleans())
    def goal_goes_on(self, index: int, progress: float, accepts: bool) -> None:
        goal_id = self.goal(index)
        if goal_id is not None:
            fact = facts.GoalProgressed(goal_id, progress)
            self.tell(facts.GoalAccepted(goal_id) if accepts else fact)

    @rule(accept=OFTEN, cancel=OFTEN, rest=OFTEN, behave=OFTEN)
    def mood(self, accept: bool, cancel: bool, rest: bool, behave: bool) -> None:
        world = self.world
        world.auto_accept, world.auto_cancel = accept, cancel
        world.auto_rest, world.auto_behavior = rest, behave
        world.auto_reset = accept

    @precondition(lambda self: self.world.owed)
    @rule(index=INDEX, ok=st.sampled_from([True, True, True, False]), everything=st.booleans())
    def answer(self, index: int, ok: bool, everything: bool) -> None:
        owed = self.world.owed
        fact = owed.pop(index % len(owed))
        if isinstance(fact, (facts.BehaviorFinished, facts.ResetFinished)):
            fact = dataclasses.replace(fact, ok=ok)
        self.tell(fact)
        if everything:
            self.world.pay()

    @precondition(lambda self: self.told)
    @rule(index=INDEX)
    def say_again(self, index: int) -> None:
        fact = self.told[-1 - index % len(self.told)]
        if not isinstance(fact, facts.SafetyChanged):
            self.world.tell(fact)

    @rule(kind=st.sampled_from([None, *RefusalKind]), missing=RARELY)
    def readiness(self, kind: RefusalKind | None, missing: bool) -> None:
        self.checker.kind = kind
        self.tell(facts.AvailabilityChanged('arm', 'move', not missing, 'drawn'))
        self.tell(facts.AuditChanged(not missing or kind is None, 'drawn'))
        if not missing:
            self.wait(60, False)
            self.checker.kind = None

    # ------------------------------------------------------------ time and the process

    @rule(ms=st.sampled_from([1, 20, 60, 450, 1_600, 2_100, 5_000]), sample=st.booleans())
    def wait(self, ms: int, sample: bool) -> None:
        self.world.pass_ms(ms)
        if sample:
            self.world.capture('proprio')
            self.world.capture('log')

    @rule(ms=st.sampled_from([100, 1_800, 16_000]))
    def oversleep(self, ms: int) -> None:
        self.world.oversleep_ms(ms)

    @rule(stays=RARELY)
    def nap(self, stays: bool) -> None:
        self.gone += [a for a in self.agents if a.conn in self.world.agents]
        self.down = stays
        self.world.tell(facts.Deactivated())
        if not stays:
            self.world.tell(facts.Activated())

    # ------------------------------------------------------------ what must be true

    @invariant()
    def nothing_is_wrong(self) -> None:
        if not hasattr(self, 'world'):
            return
        self.world.check()
        kernel = self.world.engine.kernel
        for embodiment in kernel.embodiments.values():
            session = embodiment.session
            assert session is None or embodiment.id in session.embodiments
            for group in embodiment.groups.values():
                places = [group.running, group.incoming, group.waiting, *group.queue]
                assert len([a for a in places if a]) == len(set(filter(None, places)))
                assert group.live() == [a for a in places if a], 'an ended action keeps a place'
                assert group.incoming is None or not group.incoming.goal.accepted  # type: ignore[union-attr]
        everything = [a for e in kernel.embodiments.values() for a in e.live_actions()]
        live = {(a.session.id, a.id) for a in everything}
        assert live == set(self.world.invariants.open_actions()), 'nothing is live and nowhere'
        for session in kernel.sessions.values():
            for name in session.embodiments:
                assert kernel.embodiments[name].session is session
            if session.conn is not None:
                assert session.conn.session is session
                assert kernel.connections[session.conn.id] is session.conn

    def teardown(self) -> None:
        """Let ROS answer and time pass: everything ends, and the process may."""
        if not hasattr(self, 'world'):
            return
        world = self.world
        self.mood(True, True, True, True)
        self.clear(Meaning.FAULT)
        world.pay()
        for _ in range(3):
            for goal_id in list(world.live):
                world.tell(facts.GoalEnded(goal_id, GoalOutcome.CANCELED))
            world.pass_ms(5_000)
        assert not world.invariants.open_actions(), 'every action ends'
        kernel = world.engine.kernel
        assert not kernel.goals
        for embodiment_ in kernel.embodiments.values():
            assert not embodiment_.e_stop_active
            assert embodiment_.behavior_ticket is None
            assert embodiment_.rest_owed is None
        world.tell(facts.ShutdownRequested())
        world.pass_ms(4_000)
        assert len(world.effects(fx.Finish)) == 1
        assert not kernel.sessions
        world.check()


EngineMachine.TestCase.settings = settings(
    max_examples=int(os.environ.get('ENGINE_EXAMPLES', '60')),
    stateful_step_count=50,
    deadline=None,
    derandomize='ENGINE_EXAMPLES' not in os.environ,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
TestEngine = EngineMachine.TestCase
