"""
Owns the question whether a living bridge pursues a goal: its beats say so; goals thread.

Bridges share a robot under different names, so every topic of beats in the graph is heard, for as
long as the question stands. A bridge that the graph shows and that is not heard may claim it yet:
on a slow machine seconds pass until its beats find their way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
import logging
import time
from typing import Any

from rclpy.node import Node
from std_msgs.msg import String

from awp_ros_bridge.ros.guardian_words import Beat, BEAT_TOPIC, Kind, MS, WordsUnreadable
from awp_ros_bridge.ros.runtime import RosThread
from awp_ros_bridge.ros.topic_reader import TopicReader

_LOG = logging.getLogger(__name__)

LOOK_NS = 200 * MS
LOOKS = 25  # longer than a claim is waited for
SILENT_NS = 1_000 * MS  # a bridge that beats no more is not heard
_TYPE = 'std_msgs/msg/String'


class BridgeClaims:
    """
    Listens to the beats of all bridges when asked to.

    :param on_claim: told the ids of the goals that another living bridge pursues.
    """

    def __init__(
        self,
        node: Node,
        thread: RosThread,
        instance: str,
        on_claim: Callable[[Iterable[str]], None],
    ) -> None:
        self._node = node
        self._thread = thread
        self._instance = instance
        self._on_claim = on_claim
        self._own_topic = node.resolve_topic_name(f'~/{BEAT_TOPIC}')
        self._readers: dict[str, TopicReader] = {}
        self._heard_ns: dict[str, dict[str, int]] = {}  # by topic and instance
        self._looks = 0

    def listen(self) -> None:
        """Listen from now on, for a while."""
        is_listening = self._looks > 0
        self._looks = LOOKS
        if not is_listening:
            self._look()

    def unheard(self) -> int:
        """Count the other bridges in the graph whose beats are not heard."""
        oldest_ns = time.monotonic_ns() - SILENT_NS
        count = 0
        for topic, heard in self._heard_ns.items():
            others = self._node.count_publishers(topic) - (topic == self._own_topic)
            count += max(0, others - sum(at_ns >= oldest_ns for at_ns in heard.values()))
        return count

    def _look(self) -> None:
        self._looks -= 1
        if self._looks <= 0:
            self._close()
            return
        topics: Any = self._node.get_topic_names_and_types()
        for topic, types in topics:
            if topic.endswith(f'/{BEAT_TOPIC}') and _TYPE in types and topic not in self._readers:
                self._heard_ns[topic] = {}
                take = partial(self._on_beat, topic)
                reader = TopicReader(self._node, self._thread, topic, String, take, depth=10)
                self._readers[topic] = reader
                reader.start()
        self._thread.call_later(LOOK_NS, self._look)

    def _close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        self._heard_ns.clear()

    def _on_beat(self, topic: str, data: bytes) -> None:
        try:
            beat = Beat.from_bytes(data)
        except WordsUnreadable as error:
            _LOG.debug('a beat cannot be understood: %s', error)
            return
        if beat.instance != self._instance and beat.kind is Kind.BEAT:
            if topic in self._heard_ns:
                self._heard_ns[topic][beat.instance] = time.monotonic_ns()
            self._on_claim(goal.goal_id for goal in beat.goals)
