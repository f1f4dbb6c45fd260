"""
Owns the face of ROS towards the bridge: effects in, inputs out, and the threads between them.

Three nodes on three threads, since a node belongs to one executor: safety, goals, observations.
Work crosses by posting; nobody waits for anybody. Stopping happens on the safety thread, without
the engine: :mod:`awp_ros_bridge.ros.stop`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
import logging
import time
from typing import Any, assert_never

import rclpy
from rclpy.context import Context
from rclpy.signals import SignalHandlerOptions

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.engine.effects import (
    AwaitRest,
    BeginBehavior,
    CancelGoal,
    ReportEmbodiment,
    ResetWorld,
    RobotEffect,
    SetChannelDemand,
    StartGoal,
)
from awp_ros_bridge.engine.inputs import (
    Activated,
    Deactivated,
    GoalEnded,
    GoalOutcome,
    Input,
    Meaning,
    RestReached,
)
from awp_ros_bridge.ros.beat import DeadMan
from awp_ros_bridge.ros.diagnostics import Ask, asks_nobody
from awp_ros_bridge.ros.face import RosFace, Threads
from awp_ros_bridge.ros.goal_desk import GoalDesk
from awp_ros_bridge.ros.goal_marks import GoalMarks, new_instance
from awp_ros_bridge.ros.guard import Guard
from awp_ros_bridge.ros.limit_watch import LimitWatch
from awp_ros_bridge.ros.live_goals import Cancel, LiveGoal, LiveGoals
from awp_ros_bridge.ros.node import BridgeNode, helper_node
from awp_ros_bridge.ros.plan import action_plans, ActionPlan, Adapters
from awp_ros_bridge.ros.reset import WorldReset
from awp_ros_bridge.ros.rest import RestMonitor
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.safety_inputs import SafetyInputs
from awp_ros_bridge.ros.sight import Sight
from awp_ros_bridge.ros.stop import StopGate
from awp_ros_bridge.ros.stopping import Stopping

_LOG = logging.getLogger(__name__)

LIFECYCLE = 'bridge:lifecycle'
THREADS = 'bridge:threads'
ENDING = 'bridge:ending'


class RosGateway:
    """
    Carries out what the engine wants of the robot, and tells it what the robot does.

    :param adapters: one per embodiment and action type.
    :param post: takes inputs for the engine; called on any thread.
    :param ros_args: command line for rclpy, as of ``sys.argv``.
    :param on_fatal: told, on any thread, that a thread failed; the robot has been stopped, the
        gate stays shut, the process should end.
    :param marks: what the ids of this bridge's goals begin with.
    :param ask: has the bridge's loop report on itself, for diagnostics.
    :param shown: values of read-only parameters.
    :ivar sight: what is seen of the robot beside its safety.
    """

    def __init__(
        self,
        config: BridgeConfig,
        adapters: Adapters,
        post: Callable[[Input], None],
        ros_args: Sequence[str],
        on_fatal: Callable[[str], None] = lambda detail: None,
        marks: GoalMarks | None = None,
        ask: Ask = asks_nobody,
        shown: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._shown = {'guardian': config.guardian, **(shown or {})}
        self._post = post
        self._args = list(ros_args)
        self._told_fatal = on_fatal
        self._plans = action_plans(config, adapters)
        self._context = Context()
        self._main: BridgeNode | None = None
        self._nodes: list[Any] = []
        self._is_active = False
        self._fatal: str | None = None
        self.safety_thread = RosThread('safety', self._on_fatal)
        self.goals_thread = RosThread('goals', self._on_fatal)
        self.observations_thread = RosThread('observations', self._on_fatal)
        self.sight = Sight(config, self.observations_thread, post)
        self.gate = StopGate(config.embodiments)
        self.goals = LiveGoals()
        self._stopping = Stopping(
            config,
            self._plans,
            post,
            self.safety_thread,
            self.goals_thread,
            self.gate,
            self.goals,
            self._send_goal,
        )
        self.local_stop = self._stopping.local_stop
        self.rest = RestMonitor(
            self.safety_thread, post, self.local_stop, config, self._stopping.is_commanded
        )
        self.inputs = SafetyInputs(self.safety_thread, self.local_stop, config)
        self.limits = LimitWatch(
            self.safety_thread,
            self.local_stop,
            self.rest,
            self.goals,
            config,
            self.sight.places(),
        )
        self.dead_man = DeadMan(self.safety_thread, self.local_stop, config.embodiments)
        bodies: dict[str, set[str]] = {}
        for plan in self._plans.values():
            if plan.kind == 'action':
                bodies.setdefault(plan.server, set()).add(plan.embodiment)
        self.guard = Guard(
            config,
            marks or GoalMarks(new_instance()),
            self.safety_thread,
            self.goals_thread,
            self.gate,
            self.goals,
            self.local_stop,
            bodies,
        )
        self._reset = WorldReset(self.goals_thread, post)
        self._face = RosFace(
            config,
            Threads(self.safety_thread, self.goals_thread, self.observations_thread),
            self.local_stop,
            self.gate,
            self.guard,
            self.goals,
            self.inputs,
            self.rest,
            post,
            ask,
        )
        self._desk: GoalDesk | None = None

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """
        Make the nodes and begin to spin. Returns when everything was created, robot or not.

        :raises RCLError: a ROS argument is wrong, or the middleware cannot start
        """
        rclpy.init(
            args=self._args,
            context=self._context,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        main = self._main = BridgeNode(self._context, self._on_active, self._shown)
        safety = helper_node(main, 'safety', self._args)
        observing = helper_node(main, 'observations', self._args)
        self._nodes = [main, safety, observing]
        for embodiment in self._config.embodiments:
            self.local_stop.engage(embodiment, LIFECYCLE, Meaning.NOT_READY, 'not activated yet')
        self._stopping.start(safety, main, self.rest, self._on_cancel_answer)
        self._desk = GoalDesk(
            main,
            self.goals_thread,
            self._stopping.parking.post,
            self.gate,
            self.goals,
            self._plans,
            self._stopping.canceller_of(self.goals_thread),
            self._stopping.canceller_of(self.safety_thread),
            self.rest,
            self.guard,
        )
        self._reset.start(main, self._config)
        self.rest.start(safety, main.resolve_topic_name)
        self.inputs.start(safety, main.resolve_topic_name)
        self.guard.start(main, safety)
        self.limits.start(safety, main.resolve_topic_name)
        self.dead_man.start()
        observations, clock_watch = self.sight.start(observing, self.limits.tf_period_ns)
        self._face.start(main, safety, self._desk, self.limits, observations, clock_watch)
        self.safety_thread.start(safety)
        self.goals_thread.start(main)
        self.observations_thread.start(observing)
        if main.autostart:
            self.goals_thread.post(self._autostart)

    def stop(self, timeout_s: float) -> bool:
        """
        Shut the gate, cancel what runs, wait for the ends within the limit, close everything.

        Blocks; not for the asyncio thread. Tell whether every goal ended in time.
        """
        ends_s = time.monotonic() + timeout_s
        for embodiment in self._config.embodiments:
            self.gate.shut(embodiment, ENDING, 'the bridge is ending')
            self._stopping.end(embodiment)
        while len(self.goals) and time.monotonic() < ends_s and self._main is not None:
            time.sleep(0.01)
        ended = not len(self.goals)
        self.guard.end(ended)  # what has not ended is the guardian's to end
        self.sight.close()
        threads = (self.observations_thread, self.goals_thread, self.safety_thread)
        stopped = [thread.stop(max(0.5, ends_s - time.monotonic())) for thread in threads]
        if all(stopped):  # what a stuck thread still uses is left to the end of the process
            for thread in threads:
                thread.close()
            for node in self._nodes:
                node.destroy_node()
        self._nodes = []
        self._context.try_shutdown()
        return ended

    def beat(self, now_ns: int) -> None:
        """Say that the bridge loop turns; without it the robot is stopped, here and outside."""
        self.dead_man.beat(now_ns)
        self.guard.beat(now_ns)

    # ------------------------------------------------------------ effects

    def apply(self, effect: RobotEffect) -> None:
        """Carry out one effect; never blocks. Called on one thread, in the engine's order."""
        match effect:
            case StartGoal():
                self._start_goal(effect)
            case CancelGoal():
                self.goals.want_cancel(effect.goal_id)
                self.goals_thread.post(self._require_desk().cancel, effect.goal_id)
            case BeginBehavior():
                self._stopping.begin(effect)
            case AwaitRest():
                self._await_rest(effect)
            case ResetWorld():
                self.goals_thread.post(self._reset.begin, effect)
            case SetChannelDemand():
                self.sight.demand(effect)
            case ReportEmbodiment():
                self.goals_thread.post(self._face.update, effect)
            case _:
                assert_never(effect)

    def _start_goal(self, effect: StartGoal) -> None:
        plan = self._plans.get((effect.embodiment, effect.action_type))
        if plan is None:
            detail = f'{effect.embodiment} has no action {effect.action_type!r}'
            self._post(GoalEnded(effect.goal_id, GoalOutcome.NOT_SENT, detail))
            return
        live = LiveGoal(
            effect.goal_id,
            effect.embodiment,
            effect.action_type,
            plan.group,
            plan.server,
            is_cancellable=plan.kind == 'action',
        )
        self.goals.add(live)
        self._send_goal(effect, plan, live)

    def _send_goal(self, effect: StartGoal, plan: ActionPlan, live: LiveGoal) -> None:
        if self.limits.watches(effect.embodiment):
            self.safety_thread.post(self.limits.hurry, effect.embodiment)
        self.goals_thread.post(self._require_desk().start, effect, plan, live)

    def _await_rest(self, effect: AwaitRest) -> None:
        def rested(measured: bool) -> None:
            self._post(RestReached(effect.ticket, measured))

        self.rest.await_rest(effect.embodiment, time.monotonic_ns(), rested, effect.group)

    # ------------------------------------------------------------ questions

    def joints(self, embodiment: str) -> dict[str, float] | None:
        """Return the newest joint positions by name, rad or m; any thread."""
        return self.rest.joints(embodiment)

    def joint_velocities(self, embodiment: str) -> dict[str, float] | None:
        """Return the newest finite joint velocities by name, rad/s or m/s; any thread."""
        return self.rest.joint_velocities(embodiment)

    def now_stamp(self) -> Any:
        """Return the ROS time as a stamp message; any thread."""
        return self._require_main().get_clock().now().to_msg()

    def take_chain(self, embodiment: str, chain: Any) -> None:
        """Measure limits with a chain that nobody else uses; any thread."""
        self.safety_thread.post(self.limits.take_chain, embodiment, chain)

    @property
    def node(self) -> BridgeNode:
        """The main node, after :meth:`start`."""
        return self._require_main()

    def health(self) -> dict[str, Any]:
        """Return what diagnostics show; any thread."""
        now_ns = time.monotonic_ns()
        threads = (self.safety_thread, self.goals_thread, self.observations_thread)
        names = list(self._config.embodiments)
        return {
            'active': self._is_active,
            'fatal': self._fatal,
            'epoch': self.gate.epoch,
            'goals': len(self.goals),
            'held': 0 if self._desk is None else self._desk.held,
            'missing': [] if self._desk is None else self._desk.missing(),
            'threads': {
                thread.name: {
                    'alive': thread.is_alive,
                    'failure': thread.failure,
                    'last_turn_ms': (now_ns - thread.last_turn_ns) // 1_000_000,
                }
                for thread in threads
            },
            'motion': {name: self.gate.causes(name) for name in names},
            'at_rest': {name: self.rest.at_rest(name) for name in names},
            'limits': {name: self.limits.report(name) for name in names},
            **self.sight.health(),
        }

    # ------------------------------------------------------------ inside

    def _on_cancel_answer(self, goal: LiveGoal, answer: Cancel, detail: str) -> None:
        self.goals_thread.post(self._require_desk().cancel_answered, goal, answer, detail)

    def _autostart(self) -> None:
        main = self._require_main()
        main.trigger_configure()
        main.trigger_activate()

    def _on_active(self, is_active: bool) -> None:
        """Follow the lifecycle, on the goals thread, inside the transition."""
        if is_active is self._is_active:
            return
        self._is_active = is_active
        for embodiment in self._config.embodiments:
            if is_active:
                self.local_stop.release(embodiment, LIFECYCLE, Meaning.NOT_READY, 'activated')
            else:
                self.local_stop.engage(embodiment, LIFECYCLE, Meaning.NOT_READY, 'deactivated')
        self._post(Activated() if is_active else Deactivated())

    def _on_fatal(self, detail: str) -> None:
        """Stop from whichever thread failed: the gate at once, the cancels from a living one."""
        self._fatal = self._fatal or detail
        for embodiment in self._config.embodiments:
            failed = self.safety_thread.failure is not None
            helper = self.goals_thread if failed else self.safety_thread
            engage = partial(self.local_stop.engage, embodiment, THREADS, Meaning.FAULT, detail)
            self.gate.shut(embodiment, THREADS, detail)
            helper.post(engage)
        self._told_fatal(detail)

    def _require_desk(self) -> GoalDesk:
        if self._desk is None:
            raise RuntimeError('effects need start() first')
        return self._desk

    def _require_main(self) -> BridgeNode:
        if self._main is None:
            raise RuntimeError('the node exists after start()')
        return self._main
