"""Owns the robot descriptions: from a latched topic or a file to kinematic chains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import logging
from pathlib import Path
import threading
from typing import Any
from xml.etree import ElementTree

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from awp_ros_bridge.config import BridgeConfig, DescriptionUnread, Kinematics, UrdfFile
from awp_ros_bridge.kinematics.chain import Chain, ChainError

log = logging.getLogger(__name__)


def joints_between(urdf: str, base: str, tip: str) -> list[str]:
    """
    Return the movable joints on the way from the base link to the tip link.

    :raises ChainError: the text is no URDF, or the base is no ancestor of the tip
    """
    try:
        root = ElementTree.fromstring(urdf)
    except ElementTree.ParseError as error:
        raise ChainError(f'the robot description is not XML: {error}') from None
    above: dict[str, tuple[str, str, str]] = {}
    for joint in root.iter('joint'):
        parent, child = joint.find('parent'), joint.find('child')
        if parent is not None and child is not None:
            row = (joint.get('name', ''), joint.get('type', ''), parent.get('link', ''))
            above[child.get('link', '')] = row
    found: list[str] = []
    link = tip
    while link != base:
        if link not in above:
            raise ChainError(f'link {base!r} is no ancestor of {tip!r} in the robot description')
        name, kind, link = above[link]
        if kind != 'fixed':
            found.append(name)
    return found[::-1]


class Descriptions:
    """
    The kinematic chains of the embodiments, as soon as their descriptions are known.

    :meth:`chain` may be called on any thread and gives each thread a chain of its own, since a
    chain owns scratch memory.

    :param folder: where relative file names of the configuration begin
    :param on_chain: given a chain of its own for each new description, on the hearing thread
    """

    def __init__(
        self,
        config: BridgeConfig,
        folder: Path,
        on_chain: Callable[[str, Chain], None] = lambda name, chain: None,
    ) -> None:
        self._wanted: Mapping[str, Kinematics] = {
            name: e.kinematics for name, e in config.embodiments.items() if e.kinematics
        }
        self._folder = folder
        self._urdf: dict[str, tuple[int, str]] = {}
        self._mine = threading.local()
        self._on_chain = on_chain
        self.problems: dict[str, str] = {}

    @property
    def topics(self) -> set[str]:
        """Return the topics that carry descriptions."""
        return {k.urdf.topic for k in self._wanted.values() if not isinstance(k.urdf, UrdfFile)}

    def read_files(self) -> None:
        """Read the descriptions that lie in files; what cannot be read becomes a problem."""
        for name, kinematics in self._wanted.items():
            if isinstance(kinematics.urdf, UrdfFile):
                try:
                    self._take(name, kinematics.urdf.read(self._folder))
                except DescriptionUnread as error:
                    self.problems[name] = str(error)
                    log.error('embodiment=%s no robot description: %s', name, error)

    def heard(self, topic: str, urdf: str) -> None:
        """Take a description from a topic."""
        for name, kinematics in self._wanted.items():
            if not isinstance(kinematics.urdf, UrdfFile) and kinematics.urdf.topic == topic:
                self._take(name, urdf)

    def subscribe(self, node: Node, guard: Callable[[Callable[..., None]], Any]) -> None:
        """
        Subscribe to the description topics; on the node's own thread.

        :param guard: makes a callback report an exception instead of raising it
        """
        latched = QoSProfile(
            depth=1,
            reliability=ReliabilityPolicy.RELIABLE,
            durability=DurabilityPolicy.TRANSIENT_LOCAL,
        )
        for topic in self.topics:
            node.create_subscription(
                String,
                topic,
                guard(lambda message, t=topic: self.heard(t, message.data)),
                latched,
                event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
            )

    def _take(self, name: str, urdf: str) -> None:
        if self._urdf.get(name, (0, ''))[1] == urdf:
            return  # said again
        try:
            chain = self._build(name, urdf)
        except ChainError as error:
            self.problems[name] = str(error)
            log.error('embodiment=%s no kinematic chain: %s', name, error)
            return
        self.problems.pop(name, None)
        generation = self._urdf.get(name, (0, ''))[0] + 1
        self._urdf[name] = (generation, urdf)
        log.info('embodiment=%s robot description known', name)
        self._on_chain(name, chain)

    def _build(self, name: str, urdf: str) -> Chain:
        wanted = self._wanted[name]
        joints = joints_between(urdf, wanted.base_frame, wanted.tip_frame)
        return Chain.from_urdf(urdf, wanted.base_frame, wanted.tip_frame, joints)

    def chain(self, name: str) -> Chain | None:
        """Return the chain of an embodiment for the calling thread, None while it is unknown."""
        known = self._urdf.get(name)
        if known is None:
            return None
        mine: dict[str, tuple[int, Chain]] = self._mine.__dict__.setdefault('chains', {})
        cached = mine.get(name)
        if cached is None or cached[0] != known[0]:
            cached = mine[name] = (known[0], self._build(name, known[1]))
        return cached[1]
