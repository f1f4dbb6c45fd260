"""Owns which joints and tf frames the running robot tells, against those of a configuration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from awp_ros_bridge.config import AnyInput, BridgeConfig, MeasuredRest, TfRest
from awp_ros_bridge.config.input_spec import JointParts
from awp_ros_bridge.config.problems import Finding, nearest
from awp_ros_bridge.ros.interfaces import InterfaceMissing, load_interface
from awp_ros_bridge.ros.needs import JOINT_STATE, Path, TF
from awp_ros_bridge.ros.runtime import NO_EVENTS

TF_TOPIC, STATIC_TOPIC = '/tf', '/tf_static'

_ANY = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
_LATCHED = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@dataclass(frozen=True, slots=True)
class NeededName:
    """
    A joint or a frame that a configuration counts on.

    :param topic: joint states that must carry it, ``/tf`` for a frame.
    :param use: what it is for, in words.
    """

    path: Path
    topic: str
    name: str
    use: str


def names_of(config: BridgeConfig) -> Iterator[NeededName]:
    """Yield every joint and tf frame that a configuration names."""
    if config.frames.include:
        for frame, name in config.frames.tf_frames.items():
            is_included = frame in config.frames.include
            path: Path = ('frames', 'include', frame) if is_included else ('frames', 'root')
            yield NeededName(path, TF_TOPIC, name, f'frame {frame} of agents')
    for number, entry in enumerate(config.safety.inputs):
        yield from _of_input(('safety', 'inputs', number), entry, 'the world')
    for body, embodiment in config.embodiments.items():
        here: Path = ('embodiments', body)
        yield from _of_rest((*here, 'at_rest'), embodiment.at_rest, f'the rest of {body}')
        for number, entry in enumerate(embodiment.safety_inputs):
            yield from _of_input((*here, 'safety_inputs', number), entry, body)


def _of_rest(path: Path, rest: object, use: str) -> Iterator[NeededName]:
    if isinstance(rest, MeasuredRest):
        listed = () if rest.joints == 'all' else rest.joints
        for name in listed:
            yield NeededName((*path, 'joints'), rest.topic, name, use)
        for group, joints in rest.groups.items():
            for name in joints:
                if name not in listed:
                    yield NeededName((*path, 'groups', group), rest.topic, name, use)
    elif isinstance(rest, TfRest):
        for key in ('frame', 'reference'):
            yield NeededName((*path, 'tf', key), TF_TOPIC, getattr(rest.tf, key), use)


def _of_input(path: Path, entry: AnyInput, whose: str) -> Iterator[NeededName]:
    spec = entry.spec
    if isinstance(spec.parts, JointParts):
        for name in spec.parts.joints or ():
            use = f'safety input {spec.label} of {whose}'
            yield NeededName((*path, 'joints'), spec.topic, name, use)


class ToldNames:
    """
    Hears what is told of joints and frames; the node's thread.

    :param node: resolves names, with the namespace and the remappings of the bridge.
    """

    def __init__(self, node: Node, needed: Iterable[NeededName]) -> None:
        self._node = node
        self._needed = tuple(needed)
        self._told: dict[str, set[str]] = defaultdict(set)
        for topic in dict.fromkeys(each.topic for each in self._needed):
            take = partial(self._take, topic)
            if topic == TF_TOPIC:
                self._listen(TF, topic, _ANY, take)
                self._listen(TF, STATIC_TOPIC, _LATCHED, take)
            else:
                self._listen(JOINT_STATE, topic, _ANY, take)

    def missing(self) -> Iterator[Finding]:
        """Yield what has not been told so far, where somebody is there to tell it."""
        for each in self._needed:
            told = self._told[each.topic]
            if each.name in told or not self._is_published(each.topic):
                continue  # that nobody publishes is told of the topic itself
            noun = 'frame' if each.topic == TF_TOPIC else 'joint'
            topic = self._node.resolve_topic_name(each.topic)
            if told:
                what, todo = f'tells of no {noun} {each.name!r}', nearest(each.name, told)
            else:
                what = f'is silent, so no {noun} {each.name!r} is known'
                todo = 'look at what publishes it'
            yield Finding(each.path, f'{each.use}: {topic} {what}', todo)

    def _is_published(self, topic: str) -> bool:
        sources = (TF_TOPIC, STATIC_TOPIC) if topic == TF_TOPIC else (topic,)
        return any(self._node.count_publishers(each) for each in sources)

    def _listen(
        self, type_name: str, topic: str, qos: QoSProfile, take: Callable[[Any], None]
    ) -> None:
        try:
            message_type = load_interface(type_name)
        except InterfaceMissing:
            return  # who needs the topic is told of that
        self._node.create_subscription(message_type, topic, take, qos, event_callbacks=NO_EVENTS)

    def _take(self, topic: str, message: Any) -> None:
        names = _frames(message) if topic == TF_TOPIC else map(str, message.name)
        self._told[topic].update(names)


def _frames(message: Any) -> Iterator[str]:
    for each in message.transforms:
        yield each.header.frame_id.lstrip('/')
        yield each.child_frame_id.lstrip('/')
