"""Owns the gate that lets goals out, its stop epoch, and the stop that waits for nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
import logging
import threading

from awp_ros_bridge.engine.embodiments import STOPS
from awp_ros_bridge.engine.inputs import EnvelopeViolated, Input, Meaning, SafetyChanged
from awp_ros_bridge.ros.cancels import Canceller
from awp_ros_bridge.ros.live_goals import LiveGoals

_LOG = logging.getLogger(__name__)


class StopGate:
    """
    Tells whether goals may leave, per embodiment; every method is callable on any thread.

    The epoch counts shuttings over all embodiments. A goal carries the epoch its decision rests
    on; after a newer shutting of its embodiment it does not leave any more.

    :ivar lapse: returns why this process may have been taken for dead, None while it was not.
    """

    def __init__(self, embodiments: Iterable[str]) -> None:
        self.lapse: Callable[[], str | None] = lambda: None
        self._lock = threading.Lock()
        self._epoch = 0
        self._causes: dict[str, dict[str, str]] = {name: {} for name in embodiments}
        self._shut_epochs = dict.fromkeys(self._causes, 0)
        self._periods = dict.fromkeys(self._causes, 0)

    @property
    def epoch(self) -> int:
        """Number of shuttings so far."""
        return self._epoch

    def is_open(self, embodiment: str) -> bool:
        """Tell whether nothing holds the gate of an embodiment shut."""
        with self._lock:
            return not self._causes[embodiment]

    def causes(self, embodiment: str) -> dict[str, str]:
        """Return what holds the gate shut: cause to detail."""
        with self._lock:
            return dict(self._causes[embodiment])

    def shut(self, embodiment: str, cause: str, detail: str = '') -> int:
        """Shut the gate for a cause; return the epoch, moved when the cause is a new one."""
        with self._lock:
            causes = self._causes[embodiment]
            if cause not in causes:
                self._epoch += 1
                self._shut_epochs[embodiment] = self._epoch
            causes[cause] = detail
            return self._epoch

    def open(self, embodiment: str, cause: str) -> int:
        """Take one cause away; the gate opens with the last. Return the epoch."""
        with self._lock:
            causes = self._causes[embodiment]
            if causes.pop(cause, None) is not None and not causes:
                self._periods[embodiment] += 1
            return self._epoch

    def period(self, embodiment: str) -> int:
        """Return how often the gate of an embodiment has opened; 0: nothing has ever left."""
        with self._lock:
            return self._periods[embodiment]

    def refusal(self, embodiment: str, epoch: int) -> str | None:
        """Return why a goal decided at an epoch may not leave, or None."""
        lapse = self.lapse()
        if lapse is not None:
            return lapse
        with self._lock:
            causes = self._causes[embodiment]
            if causes:
                said = '; '.join(f'{name}: {text}' for name, text in causes.items())
                return f'motion of {embodiment} is not permitted ({said})'
            newest = self._shut_epochs[embodiment]
            if epoch < newest:
                return f'{embodiment} was stopped since the decision (epoch {epoch}, now {newest})'
            return None


class LocalStop:
    """
    Stops an embodiment on the calling thread: gate, news, cancels, then the immediate steps.

    :param post: takes inputs for the engine, on any thread.
    :param act: begins the immediate steps of an embodiment, on any thread; takes whether the
        cause is an e-stop.
    """

    def __init__(
        self,
        gate: StopGate,
        goals: LiveGoals,
        post: Callable[[Input], None],
        canceller: Callable[[], Canceller],
        act: Callable[[str, bool], None] = lambda embodiment, is_e_stop: None,
    ) -> None:
        self._gate = gate
        self._goals = goals
        self._post = post
        self._canceller = canceller
        self._act = act
        self._listeners: list[Callable[[str], None]] = []

    def listen(self, on_change: Callable[[str], None]) -> None:
        """Tell somebody, on the thread that changes it, of every embodiment whose stops change."""
        self._listeners.append(on_change)

    def engage(self, embodiment: str, name: str, meaning: Meaning, detail: str) -> None:
        """Follow an input that forbids motion: nothing more leaves, what runs is cancelled."""
        if meaning is Meaning.DEGRADED:  # motion goes on, the news is for diagnostics
            self._tell(embodiment, name, meaning, True, detail, self._gate.epoch)
            self.changed(embodiment)
            return
        was_open = self._gate.is_open(embodiment)
        epoch = self._gate.shut(embodiment, name, detail)
        self._tell(embodiment, name, meaning, True, detail, epoch)
        self.cancel_all(embodiment)
        # before the gate was ever open nothing has left: what moves then is not ours to stop
        if self._gate.period(embodiment) and (was_open or meaning in STOPS):
            self._act(embodiment, meaning in STOPS)
        self.changed(embodiment)

    def tell_again(self, embodiment: str, name: str, meaning: Meaning, detail: str) -> None:
        """Say something else of an input that is engaged; it has stopped the robot already."""
        epoch = self._gate.epoch
        if meaning is not Meaning.DEGRADED:
            epoch = self._gate.shut(embodiment, name, detail)
        self._tell(embodiment, name, meaning, True, detail, epoch)
        self.changed(embodiment)

    def release(self, embodiment: str, name: str, meaning: Meaning, detail: str) -> None:
        """Follow an input that permits motion again; the gate opens when it was the last."""
        epoch = self._gate.open(embodiment, name)
        self._tell(embodiment, name, meaning, False, detail, epoch)
        self.changed(embodiment)

    def changed(self, embodiment: str) -> None:
        """Tell who listens that something about the stops of an embodiment is different."""
        for on_change in self._listeners:
            on_change(embodiment)

    def violated(self, fact: EnvelopeViolated) -> None:
        """Follow a measured violation of the envelope; the epoch of the fact is set here."""
        was_open = self._gate.is_open(fact.embodiment)
        epoch = self._gate.shut(fact.embodiment, fact.input_name, fact.detail)
        self._post(replace(fact, epoch=epoch))
        self.cancel_all(fact.embodiment)
        if was_open:
            self._act(fact.embodiment, False)
        self.changed(fact.embodiment)
        _LOG.warning(
            'embodiment=%s envelope violated: %s epoch=%d %s',
            fact.embodiment, fact.limit, epoch, fact.detail,
        )  # fmt: skip

    def cancel_all(self, embodiment: str) -> None:
        """Cancel every goal of an embodiment by its id, answered or not; queued ones stay here."""
        for goal in self._goals.withdraw(embodiment):
            self._canceller().cancel(goal)

    def servers(self, embodiment: str) -> str:
        """Return the servers of the embodiment's live goals, for details."""
        running = self._goals.of(embodiment)
        return ', '.join(sorted({goal.server for goal in running if goal.is_cancellable}))

    def _tell(
        self, embodiment: str, name: str, meaning: Meaning, engaged: bool, detail: str, epoch: int
    ) -> None:
        self._post(SafetyChanged(embodiment, name, meaning, engaged, detail, epoch))
        _LOG.info(
            'embodiment=%s input=%s meaning=%s engaged=%s epoch=%d %s',
            embodiment, name, meaning.value, engaged, epoch, detail,
        )  # fmt: skip
