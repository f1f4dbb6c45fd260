"""Owns the assembly of what stops robots in the bridge: cancels, immediate steps, behaviours."""

from __future__ import annotations

from collections.abc import Callable
import time

from rclpy.node import Node

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.engine.effects import BeginBehavior
from awp_ros_bridge.engine.inputs import GoalNoted, Input
from awp_ros_bridge.ros.behaviors import BehaviorRunner
from awp_ros_bridge.ros.cancel_clients import CancelClients
from awp_ros_bridge.ros.cancels import Answered, Canceller
from awp_ros_bridge.ros.escalation import Escalation
from awp_ros_bridge.ros.live_goals import Cancel, LiveGoal, LiveGoals
from awp_ros_bridge.ros.names import action_part
from awp_ros_bridge.ros.park import Parking, Send
from awp_ros_bridge.ros.plan import ActionPlan, Key
from awp_ros_bridge.ros.rest import RestMonitor
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stop import LocalStop, StopGate
from awp_ros_bridge.ros.stop_actuators import StopActuators
from awp_ros_bridge.ros.stop_plan import stop_plans
from awp_ros_bridge.ros.stop_rounds import StopRounds
from awp_ros_bridge.ros.stop_watch import StopWatch


class Stopping:
    """
    Everything that stops robots, on the safety thread; cancels also leave from the goals thread.

    :param send: hands a park goal to the goals thread.
    :ivar local_stop: what safety inputs call, without the engine.
    :ivar parking: takes the news of goals, and keeps back those of park goals.
    """

    def __init__(
        self,
        config: BridgeConfig,
        plans: dict[Key, ActionPlan],
        post: Callable[[Input], None],
        safety: RosThread,
        goals_thread: RosThread,
        gate: StopGate,
        goals: LiveGoals,
        send: Send,
    ) -> None:
        self._safety = safety
        self._goals_thread = goals_thread
        self._goals = goals
        self._post = post
        self._action_plans = plans
        self._plans = stop_plans(config)
        self._actuators: StopActuators | None = None
        self._cancellers: dict[RosThread, Canceller] = {}
        self._told_cancel: Answered = lambda goal, answer, detail: None
        self._rounds = StopRounds(gate, self._plans, self._made)
        self.local_stop = LocalStop(gate, goals, post, self.canceller, self.act)
        self.parking = Parking(safety, post, gate, goals, plans, send)
        self._escalation = Escalation(
            safety, lambda: self._made().cancels, goals, self._plans, self._on_note
        )
        acting = [name for name, plan in self._plans.items() if plan.zeros or plan.calls]
        self._watch = StopWatch(safety, self.local_stop, self._made, acting)
        self._behaviors: BehaviorRunner | None = None

    def start(self, safety: Node, main: Node, rest: RestMonitor, on_cancel: Answered) -> None:
        """
        Make every publisher and client; before the threads start.

        :param on_cancel: told what became of cancels, on any of the two threads.
        """
        self._told_cancel = on_cancel
        self._actuators = StopActuators(safety, self._safety, self._plans, names=main)
        servers = {p.server for p in self._action_plans.values() if p.kind == 'action'}
        services = {server: action_part(main, server, 'cancel_goal') for server in servers}
        clients = {
            self._safety: self._actuators.cancels,
            self._goals_thread: CancelClients(main, self._goals_thread, services),
        }
        for thread, cancels in clients.items():
            self._cancellers[thread] = Canceller(
                thread, cancels, self._goals, self._on_answer, self._escalation.cancel_sent
            )
        self._behaviors = BehaviorRunner(
            self._safety,
            self._post,
            self.canceller,
            self._goals,
            rest,
            self._plans,
            self._rounds,
            self.parking,
        )
        self._watch.start()

    def canceller_of(self, thread: RosThread) -> Canceller:
        """Return the canceller of a thread, after :meth:`start`."""
        return self._cancellers[thread]

    def canceller(self) -> Canceller:
        """Return the canceller of the calling thread, the safety or the goals thread."""
        return self._cancellers[self._safety if self._safety.is_current else self._goals_thread]

    def is_commanded(self, embodiment: str) -> bool:
        """Tell whether an action or a safe-state step may move an embodiment; safety thread."""
        behaviors = self._behaviors
        is_stopping = behaviors is not None and behaviors.is_running(embodiment)
        return is_stopping or bool(self._goals.of(embodiment))

    def begin(self, effect: BeginBehavior) -> None:
        """Begin a behaviour for the goals that are under way now; any thread."""
        withdrawn = self._goals.withdraw(effect.embodiment)
        behaviors = self._behaviors
        assert behaviors is not None, 'behaviours need start() first'
        self._safety.post(behaviors.begin, effect, time.monotonic_ns(), withdrawn)

    def act(self, embodiment: str, is_e_stop: bool) -> None:
        """Begin the immediate steps of a stop: here and now, or as soon as the thread can."""
        if self._safety.is_current:
            self._rounds.begin(embodiment, is_e_stop)
        else:
            self._safety.post(self._rounds.begin, embodiment, is_e_stop)

    def end(self, embodiment: str) -> None:
        """Stop what still runs on an embodiment, because the process ends; any thread."""
        if self._goals.of(embodiment):
            self._safety.post(self.local_stop.cancel_all, embodiment)
            self.act(embodiment, False)

    def _on_answer(self, goal: LiveGoal, answer: Cancel, detail: str) -> None:
        self._told_cancel(goal, answer, detail)
        if self._behaviors is not None:
            self._safety.post(self._behaviors.cancel_answered, goal)
        if answer is Cancel.SENT:  # not answered in time
            self._safety.post(self._escalation.unanswered, goal)

    def _on_note(self, goal: LiveGoal, text: str) -> None:
        self._goals.note(goal, text)
        self._post(GoalNoted(goal.goal_id, text))

    def _made(self) -> StopActuators:
        if self._actuators is None:
            raise RuntimeError('actuators exist after start()')
        return self._actuators
