"""Owns the records of actions and goals: what was submitted, where it stands, what ends it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TYPE_CHECKING

from awp_ros_bridge.engine.inputs import GoalOutcome
from awp_ros_bridge.engine.policy import ActionPolicy
from awp_ros_bridge.wire.lifecycle import ActionState, PRE_EXECUTION, TERMINAL

if TYPE_CHECKING:
    from awp_ros_bridge.engine.sessions import Session

Json = dict[str, Any]


class Cause(IntEnum):
    """
    What can end an action, strongest first: of causes that coincide the lowest number wins.

    The order is AWP-LIF-008; safety inputs rank with safe-state entry, a measured envelope
    violation directly below the agent's own cancel, where the deadline stands, and what the bridge
    concludes from a lack of motion directly below that.
    """

    E_STOP = 0
    SAFETY_INPUT = 1
    SAFE_STATE = 2
    RESET = 3
    CLOSE = 4
    TRANSFER = 5
    CANCEL = 6
    ENVELOPE = 7
    DEADLINE = 8
    STALLED = 9
    STALE_INTENT = 10
    PREEMPT = 11

    @property
    def rank(self) -> int:
        """Return the precedence class; causes of one class do not displace one another."""
        return _RANK.get(self, self.value)


_RANK = {Cause.SAFE_STATE: Cause.SAFETY_INPUT.value, Cause.TRANSFER: Cause.CLOSE.value}


@dataclass(eq=False, slots=True)
class Goal:
    """
    One goal that was handed to ROS.

    :param ended: how it ended, None while the server may still be moving.
    """

    id: str
    action: Action
    accepted: bool = False
    ended: GoalOutcome | None = None
    cancel_sent: bool = False


@dataclass(eq=False, slots=True)
class Action:
    """
    One submitted action, from admission until its retention ends (AWP-ACT-006).

    :param content: the submitted fields, for the comparison of AWP-ACT-009.
    :param received_ns: steady time of receipt, origin of every deadline (AWP-ACT-004).
    :param ending: cause that is ending the action while its goal or the robot is not done yet.
    :param changed_ns: session time of the newest transition.
    :param report: params of the newest status, for the status pull.
    :param outrun: how its goal ended while the answer to a goal that takes over is outstanding.
    """

    session: Session
    id: str
    policy: ActionPolicy
    embodiment: str
    content: Json
    received_ns: int
    preempt: str
    state: ActionState = ActionState.SUBMITTED
    status_seq: int = 0
    changed_ns: int = 0
    report: Json = field(default_factory=dict)
    reason: str | None = None
    progress: float = 0.0
    reported_ns: int = 0
    goal: Goal | None = None
    ending: Cause | None = None
    ending_detail: str = ''
    ended_at_ns: int | None = None
    rest_ticket: int | None = None
    outrun: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def params(self) -> Json:
        """Return the action's own params."""
        params: Json = self.content['params']
        return params

    @property
    def is_terminal(self) -> bool:
        """Return whether the action has reached its one terminal state."""
        return self.state in TERMINAL

    @property
    def is_pre_execution(self) -> bool:
        """Return whether nothing of the action can have moved the robot by the wire's account."""
        return self.state in PRE_EXECUTION

    @property
    def is_in_flight(self) -> bool:
        """Return whether a goal was handed to ROS and its answer is outstanding."""
        return self.goal is not None and not self.goal.accepted and self.goal.ended is None

    @property
    def valid_until_ns(self) -> int | None:
        """Return the session time after which execution must not begin (AWP-ACT-007)."""
        return self.content.get('valid_until_ns')

    @property
    def basis_ns(self) -> int | None:
        """Return the session time of the observation that the intent relies on (AWP-ACT-007)."""
        return self.content.get('basis_ts_mono_ns')
