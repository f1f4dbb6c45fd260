"""Owns the bridge's side of the guardian: beats, the input, goals of others. See the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rclpy.node import Node

from awp_ros_bridge.config import BridgeConfig
from awp_ros_bridge.ros.action_link import ActionLink
from awp_ros_bridge.ros.bridge_claims import BridgeClaims
from awp_ros_bridge.ros.diagnosis import Diagnosis, Level
from awp_ros_bridge.ros.goal_marks import GoalMarks
from awp_ros_bridge.ros.guardian_beats import GuardianBeats
from awp_ros_bridge.ros.guardian_input import GuardianInput
from awp_ros_bridge.ros.guardian_words import ALIVE_TOPIC, BEAT_TOPIC, digest_of, NOTICE_TOPIC
from awp_ros_bridge.ros.live_goals import LiveGoal, LiveGoals
from awp_ros_bridge.ros.other_goals import OtherGoals
from awp_ros_bridge.ros.plan import MS
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.stop import LocalStop, StopGate


class Guard:
    """
    What the gateway knows of the guardian.

    :param bodies: embodiments by action server.
    :ivar marks: what the ids of this bridge's goals begin with.
    """

    def __init__(
        self,
        config: BridgeConfig,
        marks: GoalMarks,
        safety_thread: RosThread,
        goals_thread: RosThread,
        gate: StopGate,
        goals: LiveGoals,
        stop: LocalStop,
        bodies: Mapping[str, Iterable[str]],
    ) -> None:
        self._config = config
        self.marks = marks
        self._goals_thread = goals_thread
        self._gate = gate
        self._goals = goals
        self._stop = stop
        self._bodies = bodies
        self._names: dict[str, str] = {}
        self._ghosts: Callable[[], list[LiveGoal]] = list
        self._input: GuardianInput | None = None
        if config.guardian == 'required':
            self._input = GuardianInput(safety_thread, stop, config.embodiments, marks.instance)
        self._beats = GuardianBeats(
            safety_thread,
            goals_thread,
            marks.instance,
            self._under_way,
            config.safety.lease_ms * MS,
            self._input.lapsed if self._input is not None else _nothing,
        )

    def start(self, main: Node, safety: Node) -> None:
        """Create the topics; before the threads start."""
        names = {name: main.resolve_topic_name(name) for name in self._bodies}
        digest = digest_of(names.values(), self._config.safety.lease_ms)
        below = (s for action in self._config.actions.values() for s in action.downstream)
        self._names = names | {name: main.resolve_topic_name(name) for name in below}
        beat, notice, alive = (
            main.resolve_topic_name(f'~/{topic}')
            for topic in (BEAT_TOPIC, NOTICE_TOPIC, ALIVE_TOPIC)
        )
        self._beats.start(safety, (beat, notice), names, digest)
        if self._input is not None:
            self._gate.lapse = self._beats.late
            self._input.start(safety, alive, _hint(main))

    def watch(
        self,
        node: Node,
        links: Mapping[str, ActionLink],
        cancel: Callable[[LiveGoal], object],
        ghosts: Callable[[], list[LiveGoal]],
    ) -> None:
        """
        Look after the goals of others on these servers; before the goals thread starts.

        :param ghosts: returns goals that were given up while their request is unanswered.
        """
        self._ghosts = ghosts
        others = OtherGoals(
            self._goals_thread,
            self._stop,
            self._goals,
            self.marks,
            self._bodies,
            cancel,
            blocks=self._config.safety.foreign_goals == 'block',
        )
        claims = BridgeClaims(node, self._goals_thread, self.marks.instance, others.claim)
        others.on_earlier, others.unheard = claims.listen, claims.unheard
        self._goals_thread.post(claims.listen)  # living bridges are met before goals are judged
        others.start(links)

    def beat(self, now_ns: int) -> None:
        """Say that the bridge lives; the loop's thread."""
        self._beats.beat(now_ns)

    def unreached(self, server: str) -> str | None:
        """Return why the guardian could not stop an action server, or None; any thread."""
        guardian = self._input
        if guardian is None or guardian.reaches(self._names.get(server, server)):
            return None
        return f'the guardian has not reached action server {server} yet'

    def diagnosis(self) -> Diagnosis:
        """Say how a guardian is that forbids nothing, and what it has stopped; any thread."""
        if self._input is None:
            text = 'guardian: off: nothing stops the robot if the bridge is killed'
            return Diagnosis(Level.WARN, text)
        return self._input.told.diagnosis('a guardian guards the bridge')

    def announce(self) -> None:
        """Say which goals are under way, before a new one is handed to ROS."""
        self._beats.announce()

    def end(self, all_ended: bool) -> None:
        """Fall silent, with a goodbye where nothing is left to guard; blocks shortly."""
        if self._input is not None:
            self._input.close()
        if all_ended:
            self._beats.goodbye(None if self._input is None else self._input.is_released)
        self._beats.close()

    def _under_way(self) -> list[LiveGoal]:
        return [*self._goals.sent(), *self._ghosts()]


def _hint(main: Node) -> str:
    words = 'ros2 run awp_ros_bridge guardian --config <the file of the bridge>'
    if main.get_name() != 'awp_ros_bridge':
        words += f' --bridge {main.get_name()}'
    if main.get_namespace() != '/':
        words += f' --ros-args -r __ns:={main.get_namespace()}'
    return f'start one with "{words}", or use bridge.launch.py'


def _nothing(silent_ns: int, seq: int) -> None:
    """Say nothing: no guardian is required."""
