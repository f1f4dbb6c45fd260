"""
The engine as a state machine: agents, robot and time do anything, in any order.

What must hold is checked effect by effect (``engine_invariants``), by the public suite's passive
checks, and at the end: everything that began ends once ROS answers and time passes.

Each step draws one number, from which its details follow, together with the numbers of the start
and of the step: drawn one by one they would come out too much alike to lead anywhere.
"""

from __future__ import annotations

import os
from random import Random

from engine_crowd import Crowd
from engine_world import WORLDS
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, RuleBasedStateMachine

from awp_ros_bridge.engine import effects as fx
from awp_ros_bridge.engine import inputs as facts
from awp_ros_bridge.engine.inputs import GoalOutcome

NUMBER = st.integers(0, 2**32 - 1)


class EngineMachine(RuleBasedStateMachine):
    """Drives one world with a crowd around it."""

    @initialize(numbers=st.tuples(NUMBER, NUMBER, NUMBER))
    def begin(self, numbers: tuple[int, int, int]) -> None:
        self.seed = repr(numbers)
        self.steps = 0
        self.crowd = Crowd(Random(self.seed))
        WORLDS.clear()  # this world is judged here

    @rule(number=NUMBER)
    def something_happens(self, number: int) -> None:
        self.steps += 1
        self.crowd.random = Random(f'{self.seed} {self.steps} {number}')
        self.crowd.something()

    # ------------------------------------------------------------ what must be true

    @invariant()
    def nothing_is_wrong(self) -> None:
        if not hasattr(self, 'crowd'):
            return
        self.crowd.world.check()
        kernel = self.crowd.world.engine.kernel
        for embodiment in kernel.embodiments.values():
            session = embodiment.session
            assert session is None or embodiment.id in session.embodiments
            for group in embodiment.groups.values():
                places = [group.running, group.incoming, group.waiting, *group.queue]
                taken = [a for a in places if a is not None]
                assert len(taken) == len(set(taken)), 'an action has two places'
                assert group.live() == taken, 'an ended action keeps a place'
        everything = [a for e in kernel.embodiments.values() for a in e.live_actions()]
        live = {(a.session.id, a.id) for a in everything}
        told = set(self.crowd.world.invariants.open_actions())
        assert live == told, 'nothing is live and nowhere'
        for session in kernel.sessions.values():
            retained = [a for a in session.actions.values() if not a.is_terminal]
            assert session.live_actions() == retained
            for name in session.embodiments:
                assert kernel.embodiments[name].session is session
            if session.conn is not None:
                assert session.conn.session is session
                assert kernel.connections[session.conn.id] is session.conn

    def teardown(self) -> None:
        """Let ROS answer and time pass: everything ends, and the process may."""
        if not hasattr(self, 'crowd'):
            return
        world = self.crowd.world
        world.auto_accept = world.auto_cancel = world.auto_rest = world.auto_behavior = True
        world.auto_reset = True
        self.crowd.clear()
        world.pay()
        for _ in range(3):
            for goal_id in list(world.live):
                world.tell(facts.GoalEnded(goal_id, GoalOutcome.CANCELED))
            world.pass_ms(5_000)
        assert not world.invariants.open_actions(), 'every action ends'
        kernel = world.engine.kernel
        assert not kernel.goals
        for embodiment in kernel.embodiments.values():
            assert not embodiment.e_stop_active
            assert embodiment.behavior_ticket is None
            assert embodiment.rest_owed is None
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
