"""Owns the account of an embodiment's motion: whether it is permitted, and all that is against."""

from __future__ import annotations

from awp_ros_bridge.ros.live_goals import LiveGoals
from awp_ros_bridge.ros.rest import RestMonitor
from awp_ros_bridge.ros.safety_inputs import SafetyInputs
from awp_ros_bridge.ros.stop import StopGate


class MotionAccount:
    """Gathers what the parts know; every method is callable on any thread."""

    def __init__(
        self, gate: StopGate, inputs: SafetyInputs, rest: RestMonitor, goals: LiveGoals
    ) -> None:
        self._gate = gate
        self._inputs = inputs
        self._rest = rest
        self._goals = goals

    def motion_permitted(self, embodiment: str) -> bool:
        """Tell whether nothing holds the gate shut."""
        return self._gate.is_open(embodiment)

    def at_rest(self, embodiment: str) -> bool | None:
        """Return the measured rest, None while it is not known."""
        return self._rest.at_rest(embodiment)

    def reasons(self, embodiment: str) -> dict[str, str]:
        """Return what forbids or hampers motion, by input or cause, and which goals run."""
        found = self._gate.causes(embodiment)
        found.update(self._inputs.reasons(embodiment))
        unexpected = self._rest.unexpected(embodiment)
        if unexpected is not None:
            found['unexpected_motion'] = unexpected
        running = [goal for goal in self._goals.of(embodiment) if goal.is_cancellable]
        if running:
            said = ', '.join(sorted(f'{goal.action_type} on {goal.server}' for goal in running))
            found['goals'] = f'{len(running)} active: {said}'
        return found
