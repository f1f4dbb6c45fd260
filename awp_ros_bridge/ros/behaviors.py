"""
Owns the safe-state behaviour of an embodiment, run on the safety thread, each step bounded.

What only stops begins at once and together: cancels by id, zeros, stop services. When all of it is
over, the robot is measured at rest; then, where the configuration parks it and it may move, the
park goal, and rest again. Every step is reported, whatever became of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
import time

from awp_ros_bridge.engine.effects import BeginBehavior
from awp_ros_bridge.engine.inputs import BehaviorFinished, Input
from awp_ros_bridge.ros.cancels import Canceller
from awp_ros_bridge.ros.live_goals import Cancel, LiveGoal, LiveGoals, Stage
from awp_ros_bridge.ros.park import Parking
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.rest import RestMonitor
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stop_actuators import StepReport
from awp_ros_bridge.ros.stop_plan import StopPlan
from awp_ros_bridge.ros.stop_rounds import StopRounds


class BehaviorRunner:
    """
    Answers every :class:`BeginBehavior` once; runs of one embodiment may overlap.

    :param canceller: of the calling thread.
    """

    def __init__(
        self,
        thread: RosThread,
        post: Callable[[Input], None],
        canceller: Callable[[], Canceller],
        goals: LiveGoals,
        rest: RestMonitor,
        plans: Mapping[str, StopPlan],
        rounds: StopRounds,
        parking: Parking,
    ) -> None:
        self.thread = thread
        self.post = post
        self.canceller = canceller
        self.goals = goals
        self.rest = rest
        self.rounds = rounds
        self.parking = parking
        self._plans = plans
        self._runs: list[_Run] = []

    def begin(self, effect: BeginBehavior, started_ns: int, goals: Sequence[LiveGoal]) -> None:
        """
        Begin the steps now.

        :param started_ns: steady time of the decision, from which the bound counts.
        :param goals: the embodiment's goals at that time; younger ones are not meant.
        """
        run = _Run(self, effect, started_ns, self._plans[effect.embodiment], goals)
        self._runs.append(run)
        run.begin()

    def cancel_answered(self, goal: LiveGoal) -> None:
        """Look again at the behaviours that wait for this cancel."""
        for run in list(self._runs):
            run.look_at_cancel(goal)

    def is_running(self, embodiment: str) -> bool:
        """Tell whether steps of an embodiment are under way."""
        return any(run.embodiment == embodiment for run in self._runs)

    def finished(self, run: _Run) -> None:
        """Forget a run that answered."""
        self._runs.remove(run)


class _Run:
    """One behaviour: stopping, rest, parking, rest."""

    def __init__(
        self,
        owner: BehaviorRunner,
        effect: BeginBehavior,
        started_ns: int,
        plan: StopPlan,
        goals: Sequence[LiveGoal],
    ) -> None:
        self._owner = owner
        self._effect = effect
        self._plan = plan
        self._goals = goals
        self._stage = 'beginning'
        self._cancels: dict[str, LiveGoal] = {}
        self._steps: set[str] = set()
        self._reports: list[StepReport] = []
        self._parked: LiveGoal | None = None
        self._since_ns = started_ns
        self._forget: list[Callable[[], None]] = []
        thread = owner.thread
        self._deadlines = [thread.call_at(started_ns + effect.bound_ns, self._on_bound)]
        if plan.park is not None:  # what stops may not use up the time of the park goal
            bound_ns = max(0, effect.bound_ns - plan.park.bound_ms * MS)
            self._deadlines.append(thread.call_at(started_ns + bound_ns, self._on_stop_bound))

    @property
    def embodiment(self) -> str:
        return self._effect.embodiment

    # ------------------------------------------------------------ stopping

    def begin(self) -> None:
        """Begin everything that only stops."""
        for goal in self._goals:
            self._owner.canceller().cancel(goal)
        # over when each is confirmed by its server, or has ended
        self._cancels = {goal.goal_id: goal for goal in self._goals}
        # what has reported already does so again while this call lasts
        self._steps = set(self._owner.rounds.follow(self._effect.embodiment, self._on_step))
        for goal in self._goals:
            ended = partial(self._owner.thread.post, self._settle, goal)
            self._forget.append(self._owner.goals.watch([goal.goal_id], ended))
            self.look_at_cancel(goal)
        self._stage = 'stopping'
        self._look()

    def look_at_cancel(self, goal: LiveGoal) -> None:
        if goal.goal_id not in self._cancels:
            return
        if goal.cancel is Cancel.CONFIRMED:
            self._settle(goal)
        elif goal.cancel is Cancel.REFUSED and goal.stage is Stage.ACCEPTED:
            self._report('cancel_goals', False, goal.cancel_detail)
            self._settle(goal)

    def _settle(self, goal: LiveGoal) -> None:
        if self._cancels.pop(goal.goal_id, None) is not None:
            self._look()

    def _on_step(self, report: StepReport) -> None:
        if self._stage == 'over':
            return
        self._reports.append(report)
        self._steps.discard(report.step)
        self._look()

    def _look(self) -> None:
        if self._stage != 'stopping' or self._cancels or self._steps:
            return
        if self._goals:
            servers = ', '.join(sorted({goal.server for goal in self._goals}))
            said = f'{len(self._goals)} on {servers}'
            if not self._has_failed('cancel_goals'):
                self._report('cancel_goals', True, said)
        self._rest('resting', self._park if self._plan.park is not None else self._finish)

    # ------------------------------------------------------------ rest

    def _rest(self, stage: str, then: Callable[[], None]) -> None:
        self._stage = stage
        self._since_ns = time.monotonic_ns()
        if not self._plan.waits_for_rest and self._plan.park is None:
            then()
            return

        def rested(measured: bool) -> None:
            if self._stage == stage:
                waited_ms = (time.monotonic_ns() - self._since_ns) // MS
                said = f'at rest after {waited_ms} ms' if measured else 'rest not measured'
                self._report('wait_at_rest', True, said)
                then()

        embodiment = self._effect.embodiment
        self._forget.append(self._owner.rest.await_rest(embodiment, self._since_ns, rested))

    # ------------------------------------------------------------ parking

    def _park(self) -> None:
        step = self._plan.park
        assert step is not None
        self._stage = 'parking'
        if not self._effect.park_goal:
            self._report(step.label, False, 'not sent, the robot must not move')
        elif any(not report.ok for report in self._reports):
            self._report(step.label, False, 'not sent, it was not stopped as configured')
        else:
            self._since_ns = time.monotonic_ns()
            bound_ns = step.timeout_ms * MS
            self._deadlines.append(self._owner.thread.call_later(bound_ns, self._on_park_bound))
            begin = self._owner.parking.begin
            self._parked = begin(
                self._effect.embodiment, step, self._effect.park_goal, self._on_parked
            )
            return
        self._finish()

    def _on_parked(self, ok: bool, detail: str) -> None:
        if self._stage != 'parking':
            return
        assert self._plan.park is not None
        self._report(self._plan.park.label, ok, detail)
        self._rest('resting again', self._finish)

    def _on_park_bound(self) -> None:
        """Cancel a park goal that takes too long; its end is waited for until the bound."""
        if self._stage == 'parking':
            self._unpark()

    def _unpark(self) -> None:
        """Cancel the park goal, or keep it from being sent."""
        if self._parked is not None:
            self._owner.goals.want_cancel(self._parked.goal_id)
            self._owner.canceller().cancel(self._parked)

    # ------------------------------------------------------------ the end

    def _on_stop_bound(self) -> None:
        if self._stage in {'stopping', 'resting'}:
            self._on_bound()

    def _on_bound(self) -> None:
        park = self._plan.park
        step, why = '', ''
        if self._stage == 'stopping':
            servers = ', '.join(sorted({goal.server for goal in self._cancels.values()}))
            waits = [f'{servers} did not confirm'] if servers else []
            step, why = 'cancel_goals', ', '.join([*waits, *sorted(self._steps)])
        elif self._stage == 'parking' and park is not None:
            step, why = park.label, 'its goal has not ended'
            self._unpark()
        else:
            step, why = 'wait_at_rest', f'{self._effect.embodiment} was not measured at rest'
        passed_ms = self._effect.bound_ns // MS
        self._report(step, False, f'was not done within {passed_ms} ms: {why}')
        self._finish()

    def _report(self, step: str, ok: bool, detail: str) -> None:
        self._reports.append(StepReport(step, ok, detail))

    def _has_failed(self, step: str) -> bool:
        return any(report.step == step and not report.ok for report in self._reports)

    def _finish(self) -> None:
        self._stage = 'over'
        for deadline in self._deadlines:
            deadline.cancel()
        for forget in self._forget:
            forget()
        self._owner.finished(self)
        failed = [report for report in self._reports if not report.ok]
        done = [report for report in self._reports if report.ok]
        notes = [note for goal in self._goals for note in goal.notes]
        detail = '; '.join(map(str, [*failed, *notes, *done]))  # what matters first
        self._owner.post(BehaviorFinished(self._effect.ticket, not failed, detail))
