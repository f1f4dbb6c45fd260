"""Owns the rig of the gateway's tests: a configuration, a gateway, and what it told the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
import itertools
import threading
import time
from typing import Any, TypeVar

from fakes import context, eventually, FibonacciAdapter, MeasuredAdapter
from patience import WAIT_S
from safety_input_words import e_stop

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.engine.effects import AwaitRest, BeginBehavior, CancelGoal, StartGoal
from awp_ros_bridge.engine.inputs import (
    Activated,
    AvailabilityChanged,
    BehaviorFinished,
    GoalEnded,
    GoalOutcome,
    Input,
    RestReached,
    SafetyChanged,
)
from awp_ros_bridge.ros.adapters.base import Adapter
from awp_ros_bridge.ros.adapters.stop import StopAdapter
from awp_ros_bridge.ros.adapters.trigger_service import TriggerServiceAdapter
from awp_ros_bridge.ros.gateway import RosGateway
from awp_ros_bridge.ros.live_goals import LiveGoal

T = TypeVar('T')

# How long what is heard may be silent. A busy machine keeps this process waiting for longer than a
# robot's input should be silent, so only the tests of silence take the short times.
PATIENT_MS = 3000
SILENT_MS = 400

E_STOP = e_stop(PATIENT_MS)
MEASURED = {
    'topic': 'joint_states',
    'max_velocity_radps': 0.01,
    'for_ms': 50,
    'stale_after_ms': PATIENT_MS,
}
BLOCKED_S = 30.0  # longer than any test waits for what must happen meanwhile
IMPATIENT = {'stale_after_ms': SILENT_MS}
UNMEASURED = {'unmeasured': True, 'settle_ms': 50}


def config(
    at_rest: Mapping[str, Any] = UNMEASURED,
    safety_inputs: tuple[Mapping[str, Any], ...] = (),
    move: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
    stop_steps: Sequence[Any] = ('cancel_goals', 'wait_at_rest'),
    envelope: Mapping[str, Any] | None = None,
) -> BridgeConfig:
    """Return a configuration of one arm with a fake server."""
    group = {'concurrency_group': 'arm'}
    return BridgeConfig.model_validate(
        {
            'world': {'name': 'test', 'vendor': 'test'},
            'guardian': 'off',
            'safety': {'foreign_goals': 'allow'},  # tests send goals of others too
            'embodiments': {
                'arm': {
                    'kind': 'manipulator',
                    'actions': ['move', 'measured', 'trigger', 'stop'],
                    'at_rest': at_rest,
                    'safety_inputs': safety_inputs,
                    'stop_steps': list(stop_steps),
                    'envelope': envelope,
                }
            },
            'actions': {
                'move': {
                    'adapter': 'fibonacci',
                    'ros_action': 'arm/move',
                    'ack_timeout_ms': PATIENT_MS,
                    **group,
                    **(move or {}),
                },
                'measured': {
                    'adapter': 'measured',
                    'ros_action': 'arm/move',
                    'ack_timeout_ms': 500,
                    **group,
                },
                'trigger': {
                    'adapter': 'trigger_service',
                    'ros_service': 'arm/trigger',
                    'ack_timeout_ms': 1000,
                },
                'stop': {'adapter': 'stop', 'max_abort_ms': 1500, **group},
            },
            **(more or {}),
        }
    )


def adapters() -> dict[tuple[str, str], Adapter]:
    """Return the adapters of :func:`config`."""
    return {
        ('arm', 'move'): FibonacciAdapter(context('arm', 'move')),
        ('arm', 'measured'): MeasuredAdapter(context('arm', 'measured')),
        ('arm', 'trigger'): TriggerServiceAdapter(context('arm', 'trigger')),
        ('arm', 'stop'): StopAdapter(context('arm', 'stop')),
    }


class Rig:
    """A running gateway; what it posts is kept with its arrival."""

    def __init__(self, bridge_config: BridgeConfig, arguments: tuple[str, ...] = ()) -> None:
        self.heard: list[tuple[Input, int]] = []
        self.fatal: list[str] = []
        self._news = threading.Condition()
        self._tickets = itertools.count(1)
        self._releases: list[threading.Event] = []
        self.gateway = RosGateway(
            bridge_config, adapters(), self.post, arguments, self.fatal.append
        )

    def post(self, input_: Input) -> None:
        """Stand in for the bridge; any thread."""
        with self._news:
            self.heard.append((input_, time.monotonic_ns()))
            self._news.notify_all()

    # ------------------------------------------------------------ asking

    def all(self, kind: type[T], **fields: Any) -> list[T]:
        """Return everything heard of a kind with these field values."""
        with self._news:
            heard: list[Any] = [each for each, _ in self.heard]
        return [each for each in heard if _matches(each, kind, fields)]

    def wait(self, kind: type[T], timeout_s: float = WAIT_S, **fields: Any) -> T:
        """Wait for the first input of a kind with these field values."""
        return self.wait_timed(kind, timeout_s, **fields)[0]

    def wait_timed(self, kind: type[T], timeout_s: float = WAIT_S, **fields: Any) -> tuple[T, int]:
        """Wait likewise and return the steady time of arrival too."""

        def found() -> tuple[T, int] | None:
            for each, at_ns in self.heard:
                if _matches(each, kind, fields):
                    return each, at_ns  # type: ignore[return-value]
            return None

        with self._news:
            if not self._news.wait_for(found, timeout_s):
                said = '\n  '.join(str(each) for each, _ in self.heard[-30:])
                raise AssertionError(f'no {kind.__name__} {fields} in {timeout_s} s:\n  {said}')
            result = found()
        assert result is not None
        return result

    def of_goal(self, goal_id: str) -> list[Input]:
        """Return what was heard of a goal, in order."""
        with self._news:
            return [each for each, _ in self.heard if getattr(each, 'goal_id', '') == goal_id]

    def clear(self) -> None:
        """Forget what was heard."""
        with self._news:
            self.heard.clear()

    # ------------------------------------------------------------ acting

    @property
    def epoch(self) -> int:
        """The epoch that the engine would know of."""
        epochs = [each.epoch for each in self.all(SafetyChanged)]
        return max(epochs, default=0)

    def ready(self, action_type: str = 'move') -> None:
        """Wait until the server is there and the gate is open."""
        self.wait(Activated)
        self.wait(AvailabilityChanged, action_type=action_type, available=True)
        eventually(lambda: self.gateway.gate.is_open('arm'), 'the gate is open')

    def start_goal(
        self, action_type: str = 'move', epoch: int | None = None, **params: Any
    ) -> str:
        """Start a goal and return its id."""
        goal_id = self.gateway.guard.marks.new_goal_id()
        if action_type in {'move', 'measured'}:
            params.setdefault('order', 3)
        wanted = self.gateway.gate.epoch if epoch is None else epoch
        self.gateway.apply(StartGoal(goal_id, 'arm', action_type, params, wanted))
        return goal_id

    def live(self, goal_id: str) -> LiveGoal:
        """Return a goal that is under way."""
        goal = self.gateway.goals.get(goal_id)
        assert goal is not None, f'goal {goal_id} is not under way'
        return goal

    def block_goals(self, release: threading.Event) -> None:
        """Keep the goals thread busy until an event is set, and return when it is."""
        is_busy = threading.Event()

        def wait() -> None:
            is_busy.set()
            release.wait(BLOCKED_S)

        self._releases.append(release)
        self.gateway.goals_thread.post(wait)
        assert is_busy.wait(5.0), 'the goals thread did not come to it'

    def release_goals(self) -> None:
        """Let the goals thread go on, whatever keeps it."""
        for release in self._releases:
            release.set()

    def cancel_goal(self, goal_id: str) -> None:
        """Cancel a goal."""
        self.gateway.apply(CancelGoal(goal_id, 'arm', 'move'))

    def ended(self, goal_id: str, timeout_s: float = WAIT_S) -> GoalEnded:
        """Wait for a goal's end."""
        return self.wait(GoalEnded, timeout_s, goal_id=goal_id)

    def behave(self, bound_ms: int = 1000, park_goal: str = '') -> int:
        """Begin the safe-state behaviour and return its ticket."""
        ticket = next(self._tickets)
        bound_ns = bound_ms * 1_000_000
        effect = BeginBehavior(ticket, 'arm', 'safe_stop', 'test', bound_ns, park_goal)
        self.gateway.apply(effect)
        return ticket

    def behaved(self, ticket: int) -> BehaviorFinished:
        """Wait for the end of a behaviour."""
        return self.wait(BehaviorFinished, ticket=ticket)

    def await_rest(self) -> int:
        """Ask for rest and return the ticket."""
        ticket = next(self._tickets)
        self.gateway.apply(AwaitRest(ticket, 'arm', 'arm'))
        return ticket

    def rested(self, ticket: int, timeout_s: float = WAIT_S) -> RestReached:
        """Wait for rest."""
        return self.wait(RestReached, timeout_s, ticket=ticket)


def _matches(each: object, kind: type, fields: Mapping[str, Any]) -> bool:
    return isinstance(each, kind) and all(getattr(each, k) == v for k, v in fields.items())


@contextmanager
def running(bridge_config: BridgeConfig, arguments: tuple[str, ...] = ()) -> Iterator[Rig]:
    """Run a gateway; at the end nothing may have failed and no goal may be held."""
    rig = Rig(bridge_config, arguments)
    rig.gateway.start()
    try:
        yield rig
    finally:
        rig.release_goals()
        rig.gateway.stop(2.0)
    assert not rig.fatal, rig.fatal


def outcome(rig: Rig, goal_id: str) -> GoalOutcome:
    """Return how a goal ended, and insist that it did so once."""
    ended = rig.ended(goal_id)
    assert len([e for e in rig.of_goal(goal_id) if isinstance(e, GoalEnded)]) == 1
    return ended.outcome
