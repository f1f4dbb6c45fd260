"""Owns measured violations of the envelope: what they end, and who is told (AWP-ENV-003)."""

from __future__ import annotations

from typing import Any, TYPE_CHECKING

from awp_ros_bridge.engine.actions import Action, Cause
from awp_ros_bridge.engine.embodiments import Embodiment, Stop
from awp_ros_bridge.engine.inputs import EnvelopeViolated, Meaning
from awp_ros_bridge.wire.lifecycle import ActionState

if TYPE_CHECKING:
    from awp_ros_bridge.engine.kernel import Kernel

Json = dict[str, Any]


class Violations:
    """Answers a body that left its limits with the safe state."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def violated(self, fact: EnvelopeViolated) -> None:
        """
        Enter safe state; what executes fails with the envelope's reason.

        The limit forbids motion like an engaged safety input, until it is released like one. An
        abort that is under way goes on: its cause is the stronger one (AWP-LIF-008).
        """
        embodiment = self._kernel.embodiments.get(fact.embodiment)
        if embodiment is None:
            return
        embodiment.epoch = max(embodiment.epoch, fact.epoch)
        embodiment.stops[fact.input_name] = Stop(fact.input_name, Meaning.FAULT, fact.detail)
        running = _running(embodiment)
        if embodiment.e_stop_active:  # everything has been stopped and ended
            self._tell(embodiment, fact, None)
            self._kernel.report(embodiment)
            return
        self._kernel.safety.enter(
            [embodiment],
            Cause.ENVELOPE,
            f'envelope: {fact.limit}: {fact.detail}',
            tell=lambda: self._tell(embodiment, fact, running),
        )

    def _tell(
        self, embodiment: Embodiment, fact: EnvelopeViolated, running: Action | None
    ) -> None:
        """Report a violation, also one that nobody commanded; the numbers carry their unit."""
        session = embodiment.session
        if session is None:
            return
        detail: Json = {
            'embodiment': embodiment.id,
            'limit': fact.limit,
            'measured': fact.measured,
            'bound': fact.bound,
            'tolerance': fact.tolerance,
            'unit': fact.unit,
            'detail': fact.detail,
        }
        if running is not None:
            detail['action_id'] = running.id
        self._kernel.delivery.event(session, 'envelope_violation', detail)


def _running(embodiment: Embodiment) -> Action | None:
    """Return the action that moved the body, None where no action did."""
    moving = (ActionState.EXECUTING, ActionState.CANCELLING)
    live = embodiment.live_actions()
    return next((a for a in live if a.state in moving or a.is_in_flight), None)
