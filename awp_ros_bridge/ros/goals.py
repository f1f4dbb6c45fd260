"""
Owns the goals on action servers, from the request to exactly one end.

Lives on the goals thread. From the moment a request is handed to ROS the server may move, so
whatever a wait ends with, the goal id is cancelled where the robot could still obey it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import logging
import math
import time
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.serialization import serialize_message

from awp_ros_bridge.engine.effects import StartGoal
from awp_ros_bridge.engine.inputs import (
    GoalAccepted,
    GoalEnded,
    GoalOutcome,
    GoalProgressed,
    GoalStalled,
    Input,
)
from awp_ros_bridge.ros.action_link import ActionLink, ENDED
from awp_ros_bridge.ros.cancels import Canceller
from awp_ros_bridge.ros.doubts import Doubts
from awp_ros_bridge.ros.goal_run import GoalRun
from awp_ros_bridge.ros.live_goals import Cancel, LiveGoal, LiveGoals
from awp_ros_bridge.ros.plan import ActionPlan, MS
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stop import StopGate

_LOG = logging.getLogger(__name__)

PROGRESS_NS = 100 * MS  # feedback comes as fast as servers like; progress is told at 10 Hz
RESULT_NS = 1_000 * MS  # from a terminal status, or a cancel of an unknown goal, to the result
NEWS_NS = 50 * MS  # how much later than a result the safety topic may arrive that explains it
GHOST_NS = 60_000 * MS  # how long a late acceptance is waited for, to cancel it

_OUTCOMES = {
    GoalStatus.STATUS_SUCCEEDED: GoalOutcome.SUCCEEDED,
    GoalStatus.STATUS_ABORTED: GoalOutcome.ABORTED,
    GoalStatus.STATUS_CANCELED: GoalOutcome.CANCELED,
}


class GoalRunner:
    """
    Sends goals and reports accepted, progress and one end for each, in this order.

    :param post: takes inputs for the engine.
    :param links: the conversation with each server, by its name.
    :param canceller: sends cancels from the goals thread.
    :param doubts: told of servers that did not answer.
    :param announce: told before a goal is handed to ROS, when it counts among those under way.
    """

    def __init__(
        self,
        thread: RosThread,
        post: Callable[[Input], None],
        gate: StopGate,
        goals: LiveGoals,
        links: Mapping[str, ActionLink],
        canceller: Canceller,
        doubts: Doubts,
        announce: Callable[[], None],
    ) -> None:
        self._thread = thread
        self._post = post
        self._gate = gate
        self._goals = goals
        self._links = links
        self._canceller = canceller
        self._doubts = doubts
        self._announce = announce
        self._runs: dict[str, GoalRun] = {}
        self._ghosts: dict[str, GoalRun] = {}
        self.on_running: Callable[[], None] = lambda: None

    @property
    def runs(self) -> Mapping[str, GoalRun]:
        """Goals that were sent and have not ended."""
        return self._runs

    @property
    def held(self) -> int:
        """Number of things kept on account of goals; 0 when none is under way."""
        links = sum(link.outstanding for link in self._links.values())
        return len(self._runs) + len(self._ghosts) + links

    def ghosts(self) -> list[LiveGoal]:
        """Return goals that were given up while their request is unanswered; any thread."""
        return [run.live for run in list(self._ghosts.values())]

    # ------------------------------------------------------------ sending

    def start(self, effect: StartGoal, plan: ActionPlan, live: LiveGoal) -> None:
        """Send a goal, or say why nothing was sent."""
        run = GoalRun(effect, plan, live)
        link = self._links.get(plan.server)
        if link is None or not link.is_ready():
            self._not_sent(run, f'action server {plan.server} is not available')
            return
        try:
            message = plan.adapter.goal(effect.params)
            # a field of a wrong kind would else be found after the request has left
            serialize_message(message)
        except Exception as error:  # noqa: BLE001 an adapter may come from another package
            self._not_sent(run, f'the goal for {plan.server} cannot be made: {error}')
            return
        refusal = self._refusal(run)
        if refusal is not None or not self._goals.begin_sending(live):
            self._not_sent(run, refusal or 'cancelled before it was sent')
            return
        self._send(run, link, message)

    def _send(self, run: GoalRun, link: ActionLink, message: Any) -> None:
        run.link = link
        self._runs[run.goal_id] = run
        link.listen(run.uuid, lambda data: self._on_feedback(run, data))
        self._announce()
        try:
            run.answer = link.send(run.uuid, message, lambda ok: self._on_answer(run, ok))
        except Exception as error:  # noqa: BLE001 the request may have left all the same
            self._abandon(run, GoalOutcome.UNANSWERED, f'sending to {run.server} failed: {error}')
            return
        _LOG.debug('> goal=%s server=%s', run.goal_id, run.server)
        run.wait(self._thread.call_later(run.plan.ack_ns, lambda: self._on_no_answer(run)))

    def _refusal(self, run: GoalRun) -> str | None:
        if not run.plan.adapter.needs_motion:
            return None
        return self._gate.refusal(run.plan.embodiment, run.effect.epoch)

    def _not_sent(self, run: GoalRun, detail: str) -> None:
        self._end(run, GoalOutcome.NOT_SENT, detail)

    # ------------------------------------------------------------ the answer

    def _on_answer(self, run: GoalRun, accepted: bool) -> None:
        if run.goal_id in self._ghosts:
            self._on_late_answer(run, accepted)
        elif run.goal_id in self._runs and not run.is_accepted:
            if accepted:
                self._accept(run)
            else:
                self._end(run, GoalOutcome.REFUSED, f'{run.server} refused the goal')

    def _accept(self, run: GoalRun) -> None:
        run.is_accepted = True
        run.heard_ns = time.monotonic_ns()
        run.wait(None)
        self._post(GoalAccepted(run.goal_id))
        must_cancel = self._goals.accepted(run.live)
        if must_cancel or self._refusal(run) is not None:
            self._canceller.cancel(run.live)
        assert run.link is not None
        run.result = run.link.request_result(
            run.uuid, lambda status, result: self._on_result(run, status, result)
        )
        run.begin()
        if run.early is not None:
            self._on_feedback(run, run.early)
            run.early = None
        self.on_running()

    def _on_no_answer(self, run: GoalRun) -> None:
        if run.goal_id not in self._runs or run.is_accepted:
            return
        assert run.link is not None
        if run.link.status_of(run.uuid) is not None:
            self._accept(run)  # the answer got lost, the status list knows the goal
            return
        detail = f'{run.server} did not answer the goal request within {run.plan.ack_ns // MS} ms'
        self._abandon(run, GoalOutcome.UNANSWERED, detail)

    def _abandon(self, run: GoalRun, outcome: GoalOutcome, detail: str) -> None:
        """End a goal that the server may still pursue: cancel it now and on late acceptance."""
        run.wait(None)
        self._canceller.cancel(run.live)
        self._doubts.begin(run.server, detail)
        answer, run.answer = run.answer, None
        self._end(run, outcome, detail)
        if not run.is_accepted and answer is not None:
            run.answer = answer
            self._ghosts[run.goal_id] = run
            run.wait(self._thread.call_later(GHOST_NS, lambda: self._bury(run)))

    def _on_late_answer(self, run: GoalRun, accepted: bool) -> None:
        _LOG.warning('goal=%s server=%s answered late: %s', run.goal_id, run.server, accepted)
        if accepted and self._goals.accepted(run.live):
            self._canceller.cancel(run.live)
        self._bury(run)

    def _bury(self, run: GoalRun) -> None:
        self._ghosts.pop(run.goal_id, None)
        run.release()

    # ------------------------------------------------------------ progress

    def _on_feedback(self, run: GoalRun, data: bytes) -> None:
        if not run.is_accepted:
            run.early = data
            return
        now_ns = time.monotonic_ns()
        run.hear(now_ns)
        if now_ns - run.told_ns < PROGRESS_NS or run.goal_id not in self._runs:
            return
        assert run.link is not None
        try:
            value = run.plan.adapter.progress(run.effect.params, run.link.feedback(data))
        except Exception as error:  # noqa: BLE001 foreign data must not end the goal
            _LOG.warning('goal=%s feedback cannot be read: %s', run.goal_id, error)
            return
        self.tell_progress(run, value, now_ns)

    def tell_progress(self, run: GoalRun, value: float | None, now_ns: int) -> None:
        """Report progress, clamped to its range; None and non-finite values say nothing."""
        if value is not None and math.isfinite(value):
            run.told_ns = now_ns
            run.progress = min(1.0, max(0.0, value))
            self._post(GoalProgressed(run.goal_id, run.progress))

    def tell_stalled(self, run: GoalRun, detail: str) -> None:
        """Report that nothing comes of a goal; whether it is cancelled, the engine decides."""
        _LOG.warning('goal=%s server=%s stalled: %s', run.goal_id, run.server, detail)
        self._post(GoalStalled(run.goal_id, f'{run.server}: {detail}'))

    # ------------------------------------------------------------ the end

    def _on_result(self, run: GoalRun, status: int, result: Any) -> None:
        outcome = _OUTCOMES.get(status)
        if outcome is None:
            self._end(run, GoalOutcome.LOST, f'{run.server} has forgotten the goal')
            return
        try:
            said = run.plan.adapter.outcome(result)
        except Exception as error:  # noqa: BLE001 an adapter may come from another package
            self._end(run, GoalOutcome.ABORTED, f'the result of {run.server} is unusable: {error}')
            return
        if outcome is GoalOutcome.SUCCEEDED and not said.ok:
            outcome = GoalOutcome.ABORTED
        detail = f'{run.server}: {said.detail}' if said.detail else run.server
        if outcome is not GoalOutcome.CANCELED and run.live.cancel is Cancel.REFUSED:
            detail = f'{detail}; {run.live.cancel_detail}'
        if outcome is not GoalOutcome.SUCCEEDED and self._may_be_a_stop(run):
            self._thread.call_later(NEWS_NS, lambda: self._end(run, outcome, detail))
            return
        self._end(run, outcome, detail)

    def _may_be_a_stop(self, run: GoalRun) -> bool:
        """
        Tell whether a stop of the robot may have ended a goal that nobody asked to end.

        The result can overtake the safety topic on its way here; the stop is what to tell.
        """
        others = (other for other in self._runs.values() if other is not run)
        is_taken_over = any(other.server == run.server for other in others)
        return run.live.cancel is Cancel.NONE and not is_taken_over

    def lose(self, run: GoalRun, why: str) -> None:
        """End a goal whose server is gone; it is cancelled too, in case the server is not."""
        detail = f'action server {run.server} is lost: {why}'
        if run.is_accepted:
            self._abandon(run, GoalOutcome.LOST, detail)
        else:
            self._abandon(run, GoalOutcome.UNANSWERED, detail)

    def _end(self, run: GoalRun, outcome: GoalOutcome, detail: str) -> None:
        if run.is_over:
            return
        run.is_over = True
        self._runs.pop(run.goal_id, None)
        run.release()
        self._post(GoalEnded(run.goal_id, outcome, detail))
        self._goals.discard(run.goal_id)
        _LOG.debug('< goal=%s %s %s', run.goal_id, outcome.value, detail)

    # ------------------------------------------------------------ cancelling

    def cancel(self, goal_id: str) -> None:
        """Cancel a goal: now when it is accepted, on acceptance when the answer is outstanding."""
        run = self._runs.get(goal_id)
        if run is not None and run.is_accepted:
            self._canceller.cancel(run.live)

    def expect_result(self, run: GoalRun) -> None:
        """Bound the wait for the result once the status says that the goal has ended."""
        if run.link is not None and not run.waits and run.link.status_of(run.uuid) in ENDED:
            run.wait(self._thread.call_later(RESULT_NS, lambda: self._reconcile(run, False)))

    def cancel_answered(self, live: LiveGoal, answer: Cancel, detail: str) -> None:
        """Reconcile a cancel that the server did not confirm, by its status and the result."""
        run = self._runs.get(live.goal_id)
        if answer is Cancel.CONFIRMED or run is None or not run.is_accepted:
            return
        _LOG.warning('goal=%s %s', live.goal_id, detail)
        is_unknown = answer is Cancel.UNCONFIRMED
        run.wait(self._thread.call_later(RESULT_NS, lambda: self._reconcile(run, is_unknown)))

    def _reconcile(self, run: GoalRun, is_unknown: bool) -> None:
        if run.is_over or run.link is None:
            return
        status = run.link.status_of(run.uuid)
        if status in ENDED:
            self._end(
                run, _OUTCOMES[status],
                f'{run.server}: ended, no result within {RESULT_NS // MS} ms',
            )  # fmt: skip
        elif status is None and is_unknown:
            self._end(run, GoalOutcome.LOST, f'{run.server} does not know the goal any more')
