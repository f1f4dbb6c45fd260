"""
Owns the goals on our servers that this run of the bridge did not send; goals thread.

Those of an earlier bridge, told by their ids, are cancelled unless a living bridge claims them.
Those of others are reported, and while they are active they block readiness where the
configuration says so. A goal that begins while the embodiment pursues one of ours is left alone
until ours has ended: it may be its offspring, as the trajectory of a planner is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
import logging

from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.action_link import ActionLink, Pending
from awp_ros_bridge.ros.goal_marks import GoalMarks
from awp_ros_bridge.ros.guardian_words import MS
from awp_ros_bridge.ros.live_goals import LiveGoal, LiveGoals, Stage
from awp_ros_bridge.ros.runtime import Deadline, RosThread
from awp_ros_bridge.ros.status_list import active_goals
from awp_ros_bridge.ros.stop import LocalStop

_LOG = logging.getLogger(__name__)

FOREIGN = 'foreign_goal'
EARLIER = 'earlier_goal'

CLAIM_NS = 2_000 * MS  # how long a living bridge has to claim a goal of a bridge
UNHEARD_NS = 25_000 * MS  # the same while the graph shows one unheard: a killed one for 20 s
MEET_NS = 25_000 * MS  # from a status to the services of its server, else it is gone
LOOK_NS = 200 * MS
OFFSPRING_NS = 300 * MS  # how much later than our goal its offspring may end
ASK_NS = 2_000 * MS  # how often the server is asked again whether the goal has ended


@dataclass(slots=True, eq=False)
class _Other:
    """
    One goal that is not ours.

    :param is_earlier: True for a goal of a bridge that nobody has claimed.
    :param is_met: the services of its server were found.
    :param looks: how often they were not.
    :param is_doubted: a bridge that is not heard may claim it yet; that was said.
    :param ended: the question that the server answers when the goal has ended.
    """

    uuid: bytes
    server: str
    is_earlier: bool
    is_shown: bool = False
    is_doubted: bool = False
    is_met: bool = False
    looks: int = 0
    ended: Pending | None = None
    waits: list[Deadline] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f'goal {self.uuid.hex()} on {self.server}'

    @property
    def why(self) -> str:
        if self.is_earlier:
            return 'is active and was left by an earlier run of a bridge'
        return 'is active and is not of this bridge'

    def release(self) -> None:
        for deadline in self.waits:
            deadline.cancel()
        if self.ended is not None:
            self.ended.drop()
            self.ended = None


class OtherGoals:
    """
    Watches the status lists of every server.

    :param bodies: embodiments by server.
    :param blocks: False reports foreign goals only.
    :param cancel: sends one cancel.
    :ivar on_earlier: told to listen to other bridges, for a while.
    :ivar unheard: counts the bridges in the graph whose beats are not heard.
    """

    def __init__(
        self,
        thread: RosThread,
        stop: LocalStop,
        goals: LiveGoals,
        marks: GoalMarks,
        bodies: Mapping[str, Iterable[str]],
        cancel: Callable[[LiveGoal], object],
        *,
        blocks: bool,
    ) -> None:
        self._thread = thread
        self._stop = stop
        self._goals = goals
        self._marks = marks
        self._bodies = {server: tuple(names) for server, names in bodies.items()}
        self._cancel = cancel
        self._blocks = blocks
        self._links: Mapping[str, ActionLink] = {}
        self._others: dict[bytes, _Other] = {}
        self._engaged: dict[tuple[str, str], str] = {}
        self.on_earlier: Callable[[], None] = lambda: None
        self.unheard: Callable[[], int] = lambda: 0

    def start(self, links: Mapping[str, ActionLink]) -> None:
        """Begin to look at what the servers say of their goals."""
        self._links = links
        for server, link in links.items():
            link.on_status = partial(self._on_status, server)

    def claim(self, goal_ids: Iterable[str]) -> None:
        """Note that a living bridge pursues these goals."""
        for goal_id in goal_ids:
            other = self._others.get(bytes.fromhex(goal_id))
            if other is not None and other.is_earlier:
                other.is_earlier = False
                _LOG.warning('%s belongs to another bridge that lives', other.name)
                self._judge(other)

    # ------------------------------------------------------------ what servers say

    def _on_status(self, server: str, data: bytes) -> None:
        active = {uuid for uuid in active_goals(data) if not self._is_ours(uuid)}
        for other in [o for o in self._others.values() if o.server == server]:
            if other.uuid not in active:
                self._forget(other)
        for uuid in active:
            if uuid not in self._others:
                self._find(uuid, server)

    def _is_ours(self, uuid: bytes) -> bool:
        return self._marks.is_mine(uuid) or self._goals.get(uuid.hex()) is not None

    def _find(self, uuid: bytes, server: str) -> None:
        other = _Other(uuid, server, self._marks.is_of_a_bridge(uuid))
        self._others[uuid] = other
        self._ask(other)
        if other.is_earlier:
            _LOG.warning('%s is of a bridge, and not of this one', other.name)
            self._look_later(other, CLAIM_NS, UNHEARD_NS - CLAIM_NS)
            self.on_earlier()
        self._judge(other)

    def _ask(self, other: _Other) -> None:
        """Ask for the result: it comes when the goal ends, at once when it is not known."""
        if other.ended is not None:
            other.ended.drop()
        link = self._links[other.server]
        after_ns = ASK_NS
        if link.is_ready():
            other.is_met = True
            other.ended = link.request_result(other.uuid, lambda *said: self._forget(other))
        elif other.is_met or other.looks > MEET_NS // LOOK_NS:
            self._forget(other)  # the server is gone, and what it did with it
            return
        else:  # its status was heard before its services were found
            other.looks += 1
            after_ns = LOOK_NS
        other.waits = [w for w in other.waits if not w.is_cancelled]
        other.waits.append(self._thread.call_later(after_ns, partial(self._ask_again, other)))

    def _ask_again(self, other: _Other) -> None:
        if self._others.get(other.uuid) is other:
            self._ask(other)

    def _forget(self, other: _Other) -> None:
        if self._others.pop(other.uuid, None) is None:
            return
        other.release()
        _LOG.info('%s has ended', other.name)
        self._update()

    # ------------------------------------------------------------ what follows

    def _judge(self, other: _Other) -> None:
        if self._others.get(other.uuid) is not other:
            return
        ours = [g.goal_id for name in self._bodies[other.server] for g in self._live(name)]
        if ours and not other.is_earlier:
            self._goals.watch(ours, lambda: self._thread.post(self._judge_later, other))
            return
        if not other.is_shown:
            other.is_shown = True
            if not other.is_earlier:
                _LOG.warning('%s is not of this bridge', other.name)
        self._update()

    def _judge_later(self, other: _Other) -> None:
        self._thread.call_later(OFFSPRING_NS, partial(self._judge, other))

    def _live(self, embodiment: str) -> list[LiveGoal]:
        return [goal for goal in self._goals.of(embodiment) if goal.is_cancellable]

    def _look_later(self, other: _Other, after_ns: int, left_ns: int) -> None:
        wait = self._thread.call_later(after_ns, partial(self._claim_is_over, other, left_ns))
        other.waits.append(wait)

    def _claim_is_over(self, other: _Other, left_ns: int) -> None:
        """Cancel a goal that nobody claims, once every bridge in the graph was heard."""
        if self._others.get(other.uuid) is not other or not other.is_earlier:
            return
        unheard = self.unheard()
        if not unheard or left_ns <= 0:
            self._end(other)
            return
        if not other.is_doubted:
            other.is_doubted = True
            _LOG.warning('%s may be of %d bridges that are not heard yet', other.name, unheard)
        self.on_earlier()
        self._look_later(other, LOOK_NS, left_ns - LOOK_NS)

    def _end(self, other: _Other) -> None:
        _LOG.warning('%s was left by an earlier bridge: cancelling it', other.name)
        embodiment = self._bodies[other.server][0]
        goal_id = other.uuid.hex()
        self._cancel(LiveGoal(goal_id, embodiment, '', '', other.server, stage=Stage.ACCEPTED))

    def _update(self) -> None:
        wanted: dict[tuple[str, str], str] = {}
        for other in self._others.values():
            if other.is_shown and (other.is_earlier or self._blocks):
                name = EARLIER if other.is_earlier else FOREIGN
                for embodiment in self._bodies[other.server]:
                    wanted.setdefault((embodiment, name), f'{other.name} {other.why}')
        for key, detail in wanted.items():
            if key not in self._engaged:
                self._engaged[key] = detail
                self._stop.engage(*key, Meaning.NOT_READY, detail)
        for key in self._engaged.keys() - wanted.keys():
            del self._engaged[key]
            self._stop.release(*key, Meaning.NOT_READY, 'the goal has ended')
