"""Immediate steps and what follows an unobeyed cancel, in parts and without ROS."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros import stop_rounds
from awp_ros_bridge.ros.escalation import Escalation
from awp_ros_bridge.ros.live_goals import Cancel, LiveGoal, LiveGoals, Stage
from awp_ros_bridge.ros.stop import LocalStop, StopGate
from awp_ros_bridge.ros.stop_actuators import StepReport
from awp_ros_bridge.ros.stop_plan import Downstream, StopPlan
from awp_ros_bridge.ros.stop_rounds import StopRounds

MS = 1_000_000
YES = SimpleNamespace(return_code=0, goals_canceling=[object()])
NOTHING = SimpleNamespace(return_code=0, goals_canceling=[])


class Thread:
    """A safety thread on a clock that a test moves."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._due: list[tuple[int, Callable[[], None]]] = []

    def post(self, function: Callable[..., None], *arguments: Any) -> None:
        """Run at once."""
        function(*arguments)

    def call_later(self, delay_ns: int, function: Callable[[], None]) -> None:
        """Run when the clock gets there."""
        self._due.append((self.now_ns + delay_ns, function))

    def pass_ms(self, ms: int) -> None:
        """Move the clock."""
        self.now_ns += ms * MS
        due = [each for each in self._due if each[0] <= self.now_ns]
        self._due = [each for each in self._due if each[0] > self.now_ns]
        for _, function in due:
            function()


class Cancels:
    """Servers that answer as a test says; silent where it says nothing."""

    answer_ms = 1000

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, Any] = {}

    def cancel_all(
        self, server: str, on_answer: Callable[[Any], None], on_late: Callable[[], None]
    ) -> bool:
        """Answer at once, or be late at once."""
        self.asked.append(server)
        if server in self.answers:
            on_answer(self.answers[server])
        else:
            on_late()
        return True


class Cell:
    """A gate, a local stop and rounds over actuators that note what they are told."""

    def __init__(self, plan: StopPlan, monkeypatch: pytest.MonkeyPatch) -> None:
        self.thread = Thread()
        clock = SimpleNamespace(monotonic_ns=lambda: self.thread.now_ns)
        monkeypatch.setattr(stop_rounds, 'time', clock)
        self.cancels = Cancels()
        self.begun: list[Callable[[StepReport], None]] = []
        self.at_once: list[StepReport] = []
        self.gate = StopGate(['arm'])
        self.rounds = StopRounds(self.gate, {'arm': plan}, lambda: self)  # type: ignore[arg-type, return-value]
        self.stop = LocalStop(
            self.gate,
            LiveGoals(),
            lambda fact: None,
            lambda: self,  # type: ignore[arg-type, return-value]
            self.rounds.begin,
        )
        self.reports: list[StepReport] = []

    def begin(self, embodiment: str, on_report: Callable[[StepReport], None]) -> list[str]:
        """Stand in for the actuators."""
        self.begun.append(on_report)
        for report in self.at_once:
            on_report(report)
        return ['publish_zeros cmd_vel', 'call_service stop']

    def engage(self, meaning: Meaning = Meaning.FAULT, name: str = 'input') -> None:
        """Forbid motion."""
        self.stop.engage('arm', name, meaning, 'by the test')

    def release(self, name: str = 'input') -> None:
        """Permit it again."""
        self.stop.release('arm', name, Meaning.FAULT, 'by the test')

    def open_once(self) -> None:
        """Let the gate open as it does when the bridge becomes ready."""
        self.engage(name='start')
        self.release('start')

    def follow(self) -> list[str]:
        """Join as a behaviour does."""
        return self.rounds.follow('arm', self.reports.append)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    plan = StopPlan(
        servers=('mine', 'shared'),
        unshared=('mine',),
        downstream={'mine': Downstream(('below',), 300 * MS)},
    )
    made = Cell(plan, monkeypatch)
    made.cancels.answers = {'mine': YES, 'below': NOTHING}
    return made


# ---------------------------------------------------------------- rounds


def test_a_stop_begins_the_steps_and_its_behaviour_joins_them(cell: Cell) -> None:
    cell.open_once()
    cell.engage()
    assert len(cell.begun) == 1, 'the local stop begins the steps'
    cell.begun[0](StepReport('call_service stop', True, 'done'))
    assert cell.follow() == ['publish_zeros cmd_vel']
    cell.begun[0](StepReport('publish_zeros cmd_vel', True, '25 in 500 ms'))
    assert [report.step for report in cell.reports] == [
        'call_service stop',
        'publish_zeros cmd_vel',
    ]
    assert len(cell.begun) == 1


def test_before_motion_was_ever_permitted_nothing_is_touched(cell: Cell) -> None:
    cell.engage()
    cell.engage(Meaning.E_STOP, 'button')
    assert not cell.begun
    assert not cell.cancels.asked


def test_a_second_reason_repeats_nothing_and_an_e_stop_adds_its_cancels(cell: Cell) -> None:
    cell.open_once()
    cell.engage()
    cell.engage(name='other')
    cell.engage(Meaning.E_STOP, 'button')
    cell.engage(Meaning.PROTECTIVE_STOP, 'guard')
    assert len(cell.begun) == 1
    assert cell.cancels.asked == ['mine', 'below']
    assert cell.follow() == ['call_service stop', 'publish_zeros cmd_vel']
    assert [str(report) for report in cell.reports] == [
        'cancel_goals mine: all its goals, 1 of them running',
        'cancel_goals below: all its goals, 0 of them running',
    ]


def test_an_e_stop_that_comes_long_after_another_reason_stops_again(cell: Cell) -> None:
    cell.open_once()
    cell.engage()
    cell.thread.pass_ms(1500)
    cell.engage(name='other')
    assert len(cell.begun) == 1
    cell.engage(Meaning.E_STOP, 'button')
    assert len(cell.begun) == 2


def test_a_stop_after_motion_was_permitted_again_is_another_one(cell: Cell) -> None:
    cell.open_once()
    cell.engage()
    cell.release()
    cell.engage()
    assert len(cell.begun) == 2
    cell.release()
    cell.follow()  # a behaviour for a reason of the engine's own
    assert len(cell.begun) == 3


def test_a_stop_soon_after_the_end_of_a_session_is_another_one(cell: Cell) -> None:
    """The gate was open all the while: a goal of the next session may have left in between."""
    cell.open_once()
    cell.follow()
    assert len(cell.begun) == 1
    cell.thread.pass_ms(400)
    cell.engage()
    assert len(cell.begun) == 2
    assert cell.follow() == ['call_service stop', 'publish_zeros cmd_vel']
    assert len(cell.begun) == 2


def test_a_server_that_does_not_answer_is_a_failed_step(cell: Cell) -> None:
    del cell.cancels.answers['mine']
    cell.open_once()
    cell.engage(Meaning.E_STOP)
    cell.follow()
    assert StepReport('cancel_goals mine', False, 'no answer within 1000 ms') in cell.reports


def test_a_step_that_reports_while_it_begins_is_not_waited_for(cell: Cell) -> None:
    cell.at_once = [StepReport('call_service stop', False, 'no such type')]
    cell.open_once()
    assert cell.follow() == ['publish_zeros cmd_vel']
    assert [report.step for report in cell.reports] == ['call_service stop']


# ---------------------------------------------------------------- escalation


class Planner:
    """One goal on a planner, and what is said of it."""

    def __init__(self) -> None:
        self.thread = Thread()
        self.cancels = Cancels()
        self.cancels.answers = {'plan': YES, 'follow': YES}
        self.goals = LiveGoals()
        self.goal = LiveGoal('1' * 32, 'arm', 'move', 'arm', 'plan', stage=Stage.ACCEPTED)
        self.goals.add(self.goal)
        self.notes: list[str] = []
        plan = StopPlan(downstream={'plan': Downstream(('follow',), 300 * MS)})
        self.escalation = Escalation(
            self.thread,  # type: ignore[arg-type]
            lambda: self.cancels,  # type: ignore[arg-type, return-value]
            self.goals,
            {'arm': plan, 'base': StopPlan()},
            lambda goal, text: self.notes.append(text),
        )


@pytest.mark.parametrize(
    ('state', 'said'),
    [
        (Cancel.SENT, 'has not answered the cancel'),
        (Cancel.CONFIRMED, 'has not ended its goal'),
        (Cancel.REFUSED, 'refused to cancel its goal'),
        (Cancel.UNCONFIRMED, 'does not know its goal'),
    ],
)
def test_what_a_planner_drives_is_cancelled_when_its_time_is_over(
    state: Cancel, said: str
) -> None:
    planner = Planner()
    planner.goal.cancel = state
    planner.escalation.cancel_sent(planner.goal)
    planner.escalation.cancel_sent(planner.goal)
    planner.thread.pass_ms(299)
    assert not planner.cancels.asked
    planner.thread.pass_ms(1)
    assert planner.cancels.asked == ['follow']
    assert planner.notes == [
        f'plan {said} within 300 ms; follow was asked to cancel all and stopped 1 of its goals'
    ]


def test_a_planner_whose_goal_has_ended_is_left_alone() -> None:
    planner = Planner()
    planner.escalation.cancel_sent(planner.goal)
    planner.goals.discard(planner.goal.goal_id)
    planner.thread.pass_ms(300)
    planner.escalation.unanswered(planner.goal)
    assert not planner.cancels.asked


def test_what_is_driven_may_have_no_goal_or_no_answer() -> None:
    planner = Planner()
    planner.cancels.answers = {'follow': NOTHING}
    planner.escalation.cancel_sent(planner.goal)
    planner.thread.pass_ms(300)
    assert len(planner.notes) == 1
    assert planner.notes[-1].endswith('follow was asked to cancel all and had no goal to stop')
    del planner.cancels.answers['follow']
    planner.escalation.cancel_sent(planner.goal)
    planner.thread.pass_ms(300)
    assert planner.notes[-1].endswith(
        'follow was asked to cancel all and did not answer within 1000 ms'
    )


def test_a_server_that_does_not_answer_is_asked_to_cancel_all() -> None:
    planner = Planner()
    planner.escalation.unanswered(planner.goal)
    assert planner.cancels.asked == ['plan']
    assert planner.notes == [
        'plan did not answer a cancel within 1000 ms; plan was asked to cancel all and stopped 1 '
        'of its goals'
    ]


def test_servers_that_drive_the_robot_themselves_are_not_watched() -> None:
    planner = Planner()
    other = LiveGoal('2' * 32, 'base', 'go', 'base', 'navigate')
    planner.goals.add(other)
    planner.escalation.cancel_sent(other)
    planner.thread.pass_ms(10_000)
    assert not planner.cancels.asked
