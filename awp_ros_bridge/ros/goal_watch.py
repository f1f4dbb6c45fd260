"""
Owns the watch over running goals: measured progress, stalls, and servers that are lost.

It turns only while a goal runs. The ROS graph shows a killed process after tens of seconds, so a
loss is concluded from silence: of the embodiment's own topic, or of feedback that came regularly.
A silent server is asked a question first that a live one answers at once and that changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
import logging
import time

from awp_ros_bridge.ros.adapters.base import Adapter
from awp_ros_bridge.ros.goal_run import GoalRun
from awp_ros_bridge.ros.goals import GoalRunner
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import RosThread

_LOG = logging.getLogger(__name__)

TURN_NS = 50 * MS
MEASURE_NS = 100 * MS
ANSWER_NS = 100 * MS  # what a live server gets for the answer
GRAPH_NS = 500 * MS
REGULAR = 3  # feedback messages in a row after which silence means something
RARE = 20  # of so many, one may come late: a hiccup of the machine makes no server irregular


class GoalWatch:
    """
    Looks after the running goals of a runner.

    :param silent_ns: how long the embodiment's topic has been silent, None where it has none.
    :param stalled: why a goal counts as stalled, once; None while it does not.
    """

    def __init__(
        self,
        thread: RosThread,
        runner: GoalRunner,
        silent_ns: Callable[[str, int], int | None],
        stalled: Callable[[GoalRun, int], str | None],
    ) -> None:
        self._thread = thread
        self._runner = runner
        self._silent_ns = silent_ns
        self._stalled = stalled
        self._turning = False
        self._graph_ns = 0
        runner.on_running = self._wake

    def _wake(self) -> None:
        if not self._turning:
            self._turning = True
            self._thread.call_later(TURN_NS, self._turn)

    def _turn(self) -> None:
        now_ns = time.monotonic_ns()
        look_at_graph = now_ns - self._graph_ns >= GRAPH_NS
        if look_at_graph:
            self._graph_ns = now_ns
        for run in list(self._runner.runs.values()):
            if run.is_accepted:
                self._measure(run, now_ns)
                self._look(run, now_ns, look_at_graph)
                why = None if run.is_over else self._stalled(run, now_ns)
                if why is not None:
                    self._runner.tell_stalled(run, why)
        self._turning = bool(self._runner.runs)
        if self._turning:
            self._thread.call_later(TURN_NS, self._turn)

    def _measure(self, run: GoalRun, now_ns: int) -> None:
        adapter = run.plan.adapter
        if type(adapter).measured_progress is Adapter.measured_progress:
            return
        if now_ns - run.measured_ns < MEASURE_NS or now_ns - run.told_ns < MEASURE_NS:
            return
        run.measured_ns = now_ns
        try:
            value = adapter.measured_progress(run.effect.params, run.start)
        except Exception as error:  # noqa: BLE001 an adapter may come from another package
            _LOG.warning('goal=%s progress cannot be measured: %s', run.goal_id, error)
            return
        self._runner.tell_progress(run, value, now_ns)

    def _look(self, run: GoalRun, now_ns: int, look_at_graph: bool) -> None:
        assert run.link is not None
        if look_at_graph:
            if not run.link.is_ready():
                self._runner.lose(run, 'it left the ROS graph')
                return
            self._runner.expect_result(run)
        stale_ns = run.plan.stale_ns
        silent_ns, what = self._silence(run, now_ns)
        if silent_ns < max(stale_ns - 2 * ANSWER_NS, stale_ns // 2):
            self._drop_probe(run)
        elif run.probe is None:
            self._ask(run, now_ns)
        elif silent_ns >= stale_ns and now_ns - run.probe_ns >= ANSWER_NS:
            self._runner.lose(
                run,
                f'{what} silent for {silent_ns // MS} ms (limit {stale_ns // MS} ms) and it '
                f'answers no request',
            )

    def _silence(self, run: GoalRun, now_ns: int) -> tuple[int, str]:
        proven_ns = now_ns - run.alive_ns  # since it answered a question
        companion_ns = min(self._silent_ns(run.plan.embodiment, now_ns) or 0, proven_ns)
        feedback_ns = 0
        if run.regular >= REGULAR and run.pauses * RARE <= run.feedbacks:
            feedback_ns = min(now_ns - run.heard_ns, proven_ns)
        if companion_ns >= feedback_ns:
            return companion_ns, f'the rest topic of {run.plan.embodiment} is'
        return feedback_ns, 'its feedback is'

    def _ask(self, run: GoalRun, now_ns: int) -> None:
        assert run.link is not None

        def alive() -> None:
            if run.probe is not None:
                run.alive_ns = time.monotonic_ns()
                run.probe = None

        run.probe_ns = now_ns
        run.probe = run.link.probe(alive)

    def _drop_probe(self, run: GoalRun) -> None:
        probe, run.probe = run.probe, None
        if probe is not None:
            probe.drop()
