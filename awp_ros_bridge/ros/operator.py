"""
Owns what a person at the robot may do: stop it at once, and clear what is latched; safety thread.

A stop holds until it is cleared. Clearing takes away what only an operator may: the operator's
own stop, and inputs that latch. It never does so while something else forbids motion or a goal
still runs, and it starts nothing (F91).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
import logging

from rclpy.node import Node

from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.late_answers import LateTrigger, Reply
from awp_ros_bridge.ros.live_goals import LiveGoals
from awp_ros_bridge.ros.names import topic_token
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import Deadline, RosThread
from awp_ros_bridge.ros.safety_inputs import SafetyInputs
from awp_ros_bridge.ros.stop import LocalStop, StopGate

_LOG = logging.getLogger(__name__)

NAME = 'operator'
WAIT_NS = 2_000 * MS  # a reset button answers before the topic tells that it worked (F90)


@dataclass(slots=True, eq=False)
class _Clear:
    """
    One call that waits until everything may be cleared.

    :param waiting: embodiments that are not clear yet.
    :param done: what was cleared, for the answer.
    """

    reply: Reply
    waiting: set[str]
    deadline: Deadline
    done: list[str] = field(default_factory=list)
    forget: list[Callable[[], None]] = field(default_factory=list)


class OperatorDesk:
    """Offers ``~/stop``, ``~/clear``, ``~/<embodiment>/stop`` and ``~/<embodiment>/clear``."""

    def __init__(
        self,
        thread: RosThread,
        stop: LocalStop,
        gate: StopGate,
        goals: LiveGoals,
        inputs: SafetyInputs,
        embodiments: Iterable[str],
    ) -> None:
        self._thread = thread
        self._stop = stop
        self._gate = gate
        self._goals = goals
        self._inputs = inputs
        self._embodiments = tuple(embodiments)
        self._clears: list[_Clear] = []
        self._services: list[LateTrigger] = []
        stop.listen(self._on_change)

    def start(self, node: Node, resolve: Callable[[str], str]) -> None:
        """
        Offer the services on the node of the safety thread.

        :param resolve: resolves private names as those of the main node.
        """
        places = {'~': self._embodiments}
        places.update({f'~/{topic_token(name)}': (name,) for name in self._embodiments})
        for place, names in places.items():
            for word, handle in (('stop', self._on_stop), ('clear', self._on_clear)):
                service = resolve(f'{place}/{word}')
                self._services.append(
                    LateTrigger(node, service, partial(handle, names), self._thread.guard)
                )

    # ------------------------------------------------------------ stop

    def _on_stop(self, names: tuple[str, ...], reply: Reply) -> None:
        for name in names:
            self._stop.engage(name, NAME, Meaning.OPERATOR_STOP, 'an operator stopped it')
        for clear in list(self._clears):
            if clear.waiting & set(names):
                self._answer(clear, 'the stop was asked for again meanwhile')
        said = ', '.join(names)
        _LOG.warning('%s: stopped by an operator', said)
        reply(True, f'{said}: motion is forbidden and goals are being cancelled, until clear')

    # ------------------------------------------------------------ clear

    def _on_clear(self, names: tuple[str, ...], reply: Reply) -> None:
        engaged = {name for name in names if self._is_engaged(name)}
        if not engaged:
            reply(False, f'nothing was cleared: {"; ".join(map(self._nothing, names))}')
            return
        deadline = self._thread.call_later(WAIT_NS, lambda: self._on_bound(clear))
        clear = _Clear(reply, engaged, deadline)
        self._clears.append(clear)
        for name in engaged:
            ids = [goal.goal_id for goal in self._goals.of(name)]
            ended = partial(self._thread.post, self._look, name)
            clear.forget.append(self._goals.watch(ids, ended))
        for name in sorted(engaged):
            self._look(name)

    def _is_engaged(self, name: str) -> bool:
        return bool(self._gate.causes(name)) or bool(self._inputs.only_latched(name))

    def _nothing(self, name: str) -> str:
        running = self._stop.servers(name)
        state = f'; goals run on {running} and go on' if running else ''
        return f'nothing is engaged on {name}{state}'

    def _on_change(self, name: str) -> None:
        if any(name in clear.waiting for clear in list(self._clears)):
            self._thread.post(self._look, name)

    def _look(self, name: str) -> None:
        """Clear an embodiment for whoever waits, if nothing stands against it."""
        waiting = [clear for clear in self._clears if name in clear.waiting]
        if not waiting or (self._obstacles(name) and self._is_engaged(name)):
            return
        cleared = self._inputs.clear(name)
        if NAME in self._gate.causes(name):
            self._stop.release(name, NAME, Meaning.OPERATOR_STOP, 'an operator cleared it')
            cleared.append('operator stop')
        said = f'{name}: {", ".join(cleared) or "the hardware"} cleared'
        _LOG.warning('%s; nothing resumes by itself', said)
        for clear in waiting:
            clear.waiting.discard(name)
            clear.done.append(said)
            if not clear.waiting:
                self._answer(clear, '')

    def _obstacles(self, name: str) -> dict[str, str]:
        """Return what an operator cannot clear."""
        found = self._gate.causes(name)
        for mine in (NAME, *self._inputs.only_latched(name)):
            found.pop(mine, None)
        running = self._stop.servers(name)
        if running:
            found['goals'] = f'goals on {running} have not ended'
        return found

    def _on_bound(self, clear: _Clear) -> None:
        for name in sorted(clear.waiting):
            self._look(name)
        if clear not in self._clears:
            return
        left = [
            f'{name}: {cause}: {detail}'
            for name in sorted(clear.waiting)
            for cause, detail in self._obstacles(name).items()
        ]
        limit_ms = WAIT_NS // MS
        self._answer(clear, f'still engaged after {limit_ms} ms: {"; ".join(left)}')

    def _answer(self, clear: _Clear, failure: str) -> None:
        if clear not in self._clears:
            return
        self._clears.remove(clear)
        clear.deadline.cancel()
        for forget in clear.forget:
            forget()
        if failure:
            _LOG.warning('clear failed: %s', failure)
            done = f' ({"; ".join(clear.done)})' if clear.done else ''
            clear.reply(False, f'clear failed: {failure}{done}')
        else:
            clear.reply(True, f'{"; ".join(clear.done)}; nothing resumes by itself')
