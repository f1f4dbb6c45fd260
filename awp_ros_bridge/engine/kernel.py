"""Owns the state that the parts of the engine share, and the order in which they act."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, TYPE_CHECKING

from awp_ros_bridge.engine.account import reasons
from awp_ros_bridge.engine.actions import Action, Goal
from awp_ros_bridge.engine.deadlines import Deadlines
from awp_ros_bridge.engine.effects import (
    BeginBehavior,
    CancelGoal,
    CloseConnection,
    Effect,
    ReportEmbodiment,
    StartGoal,
)
from awp_ros_bridge.engine.embodiments import Embodiment
from awp_ros_bridge.engine.inputs import GoalOutcome
from awp_ros_bridge.engine.policy import GoalChecker, Policy
from awp_ros_bridge.engine.sessions import Connection, Ids, Session, Tokens

if TYPE_CHECKING:
    from awp_ros_bridge.engine.access import Access
    from awp_ros_bridge.engine.channels import Channels
    from awp_ros_bridge.engine.closing import Closer
    from awp_ros_bridge.engine.delivery import Delivery
    from awp_ros_bridge.engine.endings import Endings
    from awp_ros_bridge.engine.execution import Execution
    from awp_ros_bridge.engine.liveness import Liveness
    from awp_ros_bridge.engine.safety import Safety
    from awp_ros_bridge.engine.violations import Violations

Json = dict[str, Any]


class Kernel:
    """
    Shared state: policy, sessions, embodiments, deadlines, and the effects of the current call.

    The parts (delivery, execution, safety, ...) are attached by :class:`Engine`; each changes its
    own records only, and asks the others through their methods.
    """

    access: Access
    delivery: Delivery
    execution: Execution
    endings: Endings
    safety: Safety
    violations: Violations
    channels: Channels
    closer: Closer
    liveness: Liveness

    def __init__(self, policy: Policy, checker: GoalChecker, ids: Ids) -> None:
        self.policy = policy
        self.checker = checker
        self.ids = ids
        self.now_ns = 0
        self.deadlines = Deadlines()
        self.connections: dict[int, Connection] = {}
        self.streams: dict[int, Session] = {}
        self.sessions: dict[str, Session] = {}
        self.tokens = Tokens()
        self.goals: dict[str, Goal] = {}
        self.embodiments = {i: Embodiment(p) for i, p in policy.embodiments.items()}
        self.frame_tree: tuple[Json, ...] = ({'id': 'world', 'parent': None},)
        self.active = True
        self.shutting_down = False
        self.finished = False
        self.audit_problem: str | None = None
        self._tickets = count(1)
        self._effects: list[Effect] = []
        self._leaving: dict[str, StartGoal] = {}
        self._later: deque[Callable[[], None]] = deque()
        self._barriers: list[tuple[set[Action], Callable[[], None]]] = []

    # ------------------------------------------------------------ effects

    def emit(self, effect: Effect) -> None:
        """
        Add an effect to the current call.

        Effects that stop the robot are carried out before all others of the call, so a goal that
        the same call started is withdrawn instead of being cancelled before it was sent.
        """
        match effect:
            case StartGoal(goal_id):
                self._leaving[goal_id] = effect
            case CancelGoal(goal_id) if goal_id in self._leaving:
                self._withdraw(goal_id)
                return
            case BeginBehavior(_ticket, embodiment):
                for goal_id, start in list(self._leaving.items()):
                    if start.embodiment == embodiment:
                        self._withdraw(goal_id)
        self._effects.append(effect)

    def _withdraw(self, goal_id: str) -> None:
        self._effects.remove(self._leaving.pop(goal_id))
        detail = 'stopped before it was sent'
        self.later(lambda: self.execution.goal_ended(goal_id, GoalOutcome.NOT_SENT, detail))

    def later(self, call: Callable[[], None]) -> None:
        """Call at the end of the current step, when no part is in the middle of a change."""
        self._later.append(call)

    def settle_step(self) -> None:
        """Run what was put off until the end of the step."""
        while self._later:
            self._later.popleft()()

    def take(self) -> list[Effect]:
        """Return and forget the effects of the call."""
        effects, self._effects = self._effects, []
        self._leaving.clear()
        return effects

    def ticket(self) -> int:
        """Return a number for a question to ROS; never used twice."""
        return next(self._tickets)

    def close_connection(self, conn: Connection, code: int, reason: str) -> None:
        """Close a control connection; nothing is sent on it or taken from it any more."""
        if not conn.is_closing:
            conn.is_closing = True
            self.emit(CloseConnection(conn.id, code, reason))

    # ------------------------------------------------------------ endings

    def settle(self, action: Action) -> None:
        """Let an ended action go: free its place, wake what waits for it."""
        embodiment = self.embodiments[action.embodiment]
        group = embodiment.group(action.policy.group)
        group.forget(action)
        if action.goal is not None and action.goal.ended is None:
            group.draining.add(action.goal)
        self.endings.forget(action)
        action.session.ended.append(action)
        action.session.live.pop(action.id, None)
        for waiting, call in [b for b in self._barriers if action in b[0]]:
            waiting.discard(action)
            if not waiting:
                self.later(call)
        self._barriers = [b for b in self._barriers if b[0]]
        self.later(lambda: self.execution.advance(group))
        self.later(lambda: self.report(embodiment))

    def when_ended(self, actions: Iterable[Action], call: Callable[[], None]) -> None:
        """Call once every one of these actions is terminal; at the end of the step if all are."""
        waiting = {a for a in actions if not a.is_terminal}
        if waiting:
            self._barriers.append((waiting, call))
        else:
            self.later(call)

    def has_active_goals(self, embodiment: Embodiment) -> bool:
        """Return whether a goal that was handed to ROS for an embodiment has not ended."""
        return any(g.action.embodiment == embodiment.id for g in self.goals.values())

    # ------------------------------------------------------------ state

    @property
    def is_open(self) -> bool:
        """Return whether the world takes new sessions."""
        return self.active and not self.shutting_down


    def report(self, embodiment: Embodiment) -> None:
        """Tell ROS who drives an embodiment and whether it is in safe state."""
        running = next((g.running for g in embodiment.groups.values() if g.running), None)
        self.emit(
            ReportEmbodiment(
                embodiment.id,
                embodiment.in_safe_state,
                embodiment.session.id if embodiment.session else None,
                running.id if running else None,
                reasons(self, embodiment),
            )
        )

    def live_sessions(self) -> list[Session]:
        """Return the sessions that are not closed."""
        return list(self.sessions.values())
