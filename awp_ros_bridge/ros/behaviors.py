"""Owns the safe-state steps of an embodiment, run on the safety thread, each within the bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
import time

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.engine.effects import BeginBehavior
from awp_ros_bridge.engine.inputs import BehaviorFinished, Input
from awp_ros_bridge.ros.cancels import Canceller
from awp_ros_bridge.ros.live_goals import Cancel, LiveGoal, LiveGoals, Stage
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.rest import RestMonitor
from awp_ros_bridge.ros.runtime import RosThread


class BehaviorRunner:
    """Answers every :class:`BeginBehavior` once; runs of one embodiment may overlap."""

    def __init__(
        self,
        thread: RosThread,
        post: Callable[[Input], None],
        canceller: Callable[[], Canceller],
        goals: LiveGoals,
        rest: RestMonitor,
        config: BridgeConfig,
    ) -> None:
        self.thread = thread
        self.post = post
        self.canceller = canceller
        self.goals = goals
        self.rest = rest
        self._steps = {name: each.stop_steps for name, each in config.embodiments.items()}
        self._runs: list[_Run] = []

    def begin(self, effect: BeginBehavior, started_ns: int, goals: Sequence[LiveGoal]) -> None:
        """
        Begin the steps now.

        :param started_ns: steady time of the decision, from which the bound counts.
        :param goals: the embodiment's goals at that time; younger ones are not meant.
        """
        run = _Run(self, effect, started_ns, self._steps[effect.embodiment], goals)
        self._runs.append(run)
        run.next_step()

    def cancel_answered(self, goal: LiveGoal) -> None:
        """Look again at the steps that wait for this cancel."""
        for run in list(self._runs):
            run.look_at_cancel(goal)

    def finished(self, run: _Run) -> None:
        """Forget a run that answered."""
        self._runs.remove(run)


class _Run:
    def __init__(
        self,
        owner: BehaviorRunner,
        effect: BeginBehavior,
        started_ns: int,
        steps: Sequence[str],
        goals: Sequence[LiveGoal],
    ) -> None:
        self._owner = owner
        self._effect = effect
        self._steps = list(steps)
        self._goals = goals
        self._step = ''
        self._waiting: dict[str, LiveGoal] = {}
        self._problems: list[str] = []
        self._notes: list[str] = []
        self._forget: list[Callable[[], None]] = []
        self._deadline = owner.thread.call_at(started_ns + effect.bound_ns, self._on_bound)

    def next_step(self) -> None:
        if not self._steps:
            self._finish()
            return
        self._step = self._steps.pop(0)
        if self._step == 'cancel_goals':
            self._cancel_goals()
        elif self._step == 'wait_at_rest':
            self._wait_at_rest()
        else:
            self._problems.append(f'step {self._step!r} is not known')
            self.next_step()

    def _cancel_goals(self) -> None:
        for goal in self._goals:
            self._owner.canceller().cancel(goal)
        # over when each is confirmed by its server, or has ended
        self._waiting = {goal.goal_id: goal for goal in self._goals}
        for goal in self._goals:
            ended = partial(self._owner.thread.post, self._settle, goal.goal_id)
            self._forget.append(self._owner.goals.watch([goal.goal_id], ended))
            self.look_at_cancel(goal)
        if not self._goals:
            self.next_step()

    def look_at_cancel(self, goal: LiveGoal) -> None:
        if goal.goal_id not in self._waiting:
            return
        if goal.cancel is Cancel.CONFIRMED:
            self._settle(goal.goal_id)
        elif goal.cancel is Cancel.REFUSED and goal.stage is Stage.ACCEPTED:
            self._problems.append(f'cancel_goals: {goal.cancel_detail}')
            self._settle(goal.goal_id)

    def _settle(self, goal_id: str) -> None:
        if self._step != 'cancel_goals' or self._waiting.pop(goal_id, None) is None:
            return
        if not self._waiting:
            self.next_step()

    def _wait_at_rest(self) -> None:
        since_ns = time.monotonic_ns()
        embodiment = self._effect.embodiment
        self._forget.append(self._owner.rest.await_rest(embodiment, since_ns, self._on_rest))

    def _on_rest(self, measured: bool) -> None:
        if not measured:
            self._notes.append('rest not measured')
        self.next_step()

    def _on_bound(self) -> None:
        passed_ms = self._effect.bound_ns // MS
        waited = f'{self._step} was not done within {passed_ms} ms'
        if self._step == 'cancel_goals':
            servers = sorted({goal.server for goal in self._waiting.values()})
            waited = f'{waited}: {", ".join(servers)} did not confirm'
        elif self._step == 'wait_at_rest':
            waited = f'{waited}: {self._effect.embodiment} was not measured at rest'
        self._problems.append(waited)
        self._finish()

    def _finish(self) -> None:
        self._deadline.cancel()
        self._step = ''
        for forget in self._forget:
            forget()
        self._owner.finished(self)
        detail = '; '.join(self._problems + self._notes)
        self._owner.post(BehaviorFinished(self._effect.ticket, not self._problems, detail))
