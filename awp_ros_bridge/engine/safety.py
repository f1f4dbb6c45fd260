"""Owns safe state and e-stop: entry, exit, release, and who is told (AWP-SAF, AWP-EVT-002)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TYPE_CHECKING

from awp_ros_bridge.engine.account import account
from awp_ros_bridge.engine.actions import Action, Cause
from awp_ros_bridge.engine.effects import AwaitRest, BeginBehavior
from awp_ros_bridge.engine.embodiments import Embodiment, Stop, STOPS
from awp_ros_bridge.engine.inputs import Meaning, SafetyChanged
from awp_ros_bridge.engine.transitions import move
from awp_ros_bridge.wire.lifecycle import ActionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from awp_ros_bridge.engine.kernel import Kernel
    from awp_ros_bridge.engine.sessions import Session

Json = dict[str, Any]

BEHAVIOR_GRACE_NS = 500_000_000


class Safety:
    """Runs the safe-state behaviour and keeps the account of stops per embodiment."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._behaviors: dict[int, tuple[Embodiment, Callable[[], None] | None]] = {}

    # ------------------------------------------------------------ the behaviour

    def begin_behavior(
        self,
        embodiment: Embodiment,
        cause: str,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Begin the declared behaviour now; ``then`` follows within its bound."""
        kernel = self._kernel
        ticket = kernel.ticket()
        self._behaviors[ticket] = (embodiment, then)
        embodiment.behavior_ticket = ticket
        bound = embodiment.policy.behavior_bound_ns
        may_move = embodiment.policy.parks and embodiment.permits_motion
        may_move = may_move and not embodiment.e_stop_active and not kernel.shutting_down
        park_goal = kernel.ids.goal_id() if may_move else ''
        kernel.emit(
            BeginBehavior(ticket, embodiment.id, kernel.policy.behavior, cause, bound, park_goal)
        )
        kernel.deadlines.set(
            ('behavior', ticket),
            kernel.now_ns + bound + BEHAVIOR_GRACE_NS,
            lambda: self.behavior_finished(ticket, ok=False, detail='no answer within its bound'),
        )

    def behavior_finished(self, ticket: int, *, ok: bool, detail: str) -> None:
        """
        Go on after the steps; rest is owed where they ran into their bound.

        A behaviour that a later one overtook proves nothing any more.
        """
        kernel = self._kernel
        found = self._behaviors.pop(ticket, None)
        if found is None:
            return
        kernel.deadlines.clear(('behavior', ticket))
        embodiment, then = found
        if embodiment.behavior_ticket == ticket:
            embodiment.behavior_ticket = None
            if not ok:
                self._owe_rest(embodiment, detail or 'the safe-state behaviour did not finish')
        if then is not None:
            then()
        for group in embodiment.groups.values():
            kernel.later(lambda g=group: kernel.execution.advance(g))  # type: ignore[misc]
        kernel.later(lambda: self.try_release(embodiment))
        kernel.later(kernel.closer.try_reset)

    def _owe_rest(self, embodiment: Embodiment, why: str) -> None:
        """Require measured rest before the embodiment is available again."""
        embodiment.rest_owed = why
        for action in embodiment.live_actions():
            self._kernel.endings.end(action, Cause.SAFE_STATE, why)
        embodiment.rest_ticket = self._kernel.ticket()
        self._kernel.emit(AwaitRest(embodiment.rest_ticket, embodiment.id, ''))
        self._kernel.report(embodiment)

    def rest_reached(self, ticket: int) -> None:
        """Make the embodiment available again: it was measured at rest after all."""
        for embodiment in self._kernel.embodiments.values():
            if embodiment.rest_ticket == ticket:
                embodiment.rest_owed = embodiment.rest_ticket = None
                self._kernel.report(embodiment)

    # ------------------------------------------------------------ safe state

    def enter(
        self,
        embodiments: Iterable[Embodiment],
        cause: Cause,
        why: str,
        *,
        first: tuple[Action, str] | None = None,
        tell: Callable[[], None] | None = None,
    ) -> None:
        """
        Enter safe state: begin the behaviour, end every action, report it (AWP-SAF-004).

        :param first: an action that fails for a reason of its own, before the others.
        :param tell: reports what called for it, after the actions and before the entry.
        """
        kernel = self._kernel
        entered = list(embodiments)
        for embodiment in entered:
            self.begin_behavior(embodiment, why)
        if first is not None:
            action, reason = first
            move(kernel, action, ActionState.FAILED, reason, detail=why)
        ended = {first[0].embodiment} if first is not None else set()
        for embodiment in entered:
            for action in embodiment.live_actions():
                ended.add(embodiment.id)
                kernel.endings.end(action, cause, why)
        if tell is not None:
            tell()
        for embodiment in entered:
            embodiment.in_safe_state = True
            if embodiment.id in ended or not self._was_told(embodiment):
                self._tell_entry(embodiment, why)
            kernel.report(embodiment)

    @staticmethod
    def _was_told(embodiment: Embodiment) -> bool:
        """Return whether the holder knows already that the embodiment is in safe state."""
        session = embodiment.session
        return session is not None and embodiment.id in session.told_safe

    def _tell_entry(self, embodiment: Embodiment, why: str) -> None:
        session = embodiment.session
        if session is None:
            return
        session.told_safe.add(embodiment.id)
        self._kernel.delivery.event(
            session,
            'safe_state_entered',
            {
                'embodiment': embodiment.id,
                'behavior': self._kernel.policy.behavior,
                'cause': why,
                **account(self._kernel, embodiment),
            },
        )

    def leave(self, action: Action) -> None:
        """
        End safe state: an action begins to execute (AWP-SAF-008).

        The event goes before the action's status: whoever reads of the execution knows that safe
        state is over. An action that only stops leaves a robot in safe state that must not move.
        """
        embodiment = self._kernel.embodiments[action.embodiment]
        if embodiment.in_safe_state and embodiment.permits_motion:
            embodiment.in_safe_state = False
            session = action.session
            if embodiment.id in session.told_safe:
                session.told_safe.discard(embodiment.id)
                detail = {'embodiment': embodiment.id, 'action_id': action.id}
                self._kernel.delivery.event(session, 'safe_state_exited', detail)

    # ------------------------------------------------------------ safety inputs

    def changed(self, change: SafetyChanged) -> None:
        """Take a changed verdict of a safety input; the local stop has acted before us."""
        embodiment = self._kernel.embodiments.get(change.embodiment)
        if embodiment is None:
            return
        embodiment.epoch = max(embodiment.epoch, change.epoch)
        if not change.engaged:
            embodiment.stops.pop(change.input_name, None)
            self.try_release(embodiment)
            self._kernel.report(embodiment)
            return
        was_blocked = embodiment.blocked_by() is not None
        stop = Stop(change.input_name, change.meaning, change.detail)
        embodiment.stops[change.input_name] = stop
        if embodiment.e_stop_active:
            self.try_release(embodiment)  # an input may have changed from stop to fault
        elif change.meaning in STOPS:
            self._engage(embodiment, stop)
        elif change.meaning is not Meaning.DEGRADED and not was_blocked:
            why = f'{stop.meaning}: {stop.input_name}: {stop.detail}'
            self.enter([embodiment], Cause.SAFETY_INPUT, why)

    def _engage(self, embodiment: Embodiment, stop: Stop) -> None:
        """Engage an e-stop: stop, end everything, then report (AWP-EVT-002)."""
        kernel = self._kernel
        embodiment.e_stop_active = True
        why = f'{stop.meaning}: {stop.input_name}'
        self.begin_behavior(embodiment, why)
        for action in embodiment.live_actions():
            kernel.endings.end(action, Cause.E_STOP, why)
        if embodiment.session is not None:
            self._tell_e_stop(embodiment, embodiment.session, stop)
        kernel.report(embodiment)

    def _tell_e_stop(self, embodiment: Embodiment, session: Session, stop: Stop) -> None:
        """Report an engaged e-stop to a session."""
        detail = {
            'embodiment': embodiment.id,
            'cause': stop.meaning.value,
            'input': stop.input_name,
            'detail': stop.detail,
            **account(self._kernel, embodiment),
        }
        self._kernel.delivery.event(session, 'e_stop_engaged', detail)

    def try_release(self, embodiment: Embodiment) -> None:
        """Release the e-stop when every input is clear and no goal is active (AWP-EVT-002)."""
        if not embodiment.e_stop_active or embodiment.stopped_by() is not None:
            return
        if embodiment.behavior_ticket is not None or self._kernel.has_active_goals(embodiment):
            return
        embodiment.e_stop_active = False
        session = embodiment.session
        if session is not None:
            detail = {'embodiment': embodiment.id}
            self._kernel.delivery.event(session, 'e_stop_released', detail)
        self._say_blocked(embodiment)
        self._kernel.report(embodiment)

    def greet(self, session: Session) -> None:
        """Tell a new holder, right after ``session.ready``, of a stopped embodiment."""
        for name in session.embodiments:
            embodiment = self._kernel.embodiments[name]
            stop = embodiment.stopped_by()
            if embodiment.e_stop_active:
                waiting = Stop('', Meaning.E_STOP, 'cleared, goals are still active')
                self._tell_e_stop(embodiment, session, stop or waiting)
            else:
                self._say_blocked(embodiment)

    def _say_blocked(self, embodiment: Embodiment) -> None:
        """Count an embodiment that must not move as in safe state, and say so once."""
        blocked = embodiment.blocked_by()
        if blocked is not None:
            embodiment.in_safe_state = True
            if not self._was_told(embodiment):
                self._tell_entry(embodiment, f'{blocked.meaning}: {blocked.input_name}')
