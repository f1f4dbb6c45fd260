"""Owns what a configuration needs of the running graph: topics, listeners, servers, services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from awp_ros_bridge.config import (
    AdapterInfo,
    BridgeConfig,
    CallService,
    Embodiment,
    MeasuredByJoints,
    MeasuredByOdometry,
    MeasuredByTf,
    MeasuredRest,
    OdometryRest,
    PublishZeros,
    TfRest,
    TopicChannel,
    UrdfTopic,
)

Path = tuple[str | int, ...]

JOINT_STATE = 'sensor_msgs/msg/JointState'
ODOMETRY = 'nav_msgs/msg/Odometry'
STRING = 'std_msgs/msg/String'
TF = 'tf2_msgs/msg/TFMessage'
WRENCH = 'geometry_msgs/msg/WrenchStamped'


class Kind(StrEnum):
    """What stands on the other side."""

    PUBLISHER = 'publisher'
    LATCHED = 'latched publisher'  # one that keeps its last sample for late readers
    LISTENER = 'listener'
    ACTION = 'action server'
    SERVICE = 'service'


@dataclass(frozen=True, slots=True)
class Need:
    """
    One thing that must be in the graph.

    :param path: where the configuration asks for it.
    :param type: full name of the type, None where any will do.
    :param use: what it is for, in words.
    """

    path: Path
    kind: Kind
    name: str
    type: str | None
    use: str


def needs_of(config: BridgeConfig, adapters: Mapping[str, AdapterInfo]) -> Iterator[Need]:
    """Yield everything that a configuration needs, in the order of its sections."""
    for number, entry in enumerate(config.safety.inputs):
        yield from _input(('safety', 'inputs', number), entry.spec, 'the world')
    if config.frames.include:
        yield Need(('frames', 'include'), Kind.PUBLISHER, '/tf', TF, 'the frames of agents')
    for name, state in (config.simulation.initial_states if config.simulation else {}).items():
        place: Path = ('simulation', 'initial_states', name, 'service')
        yield Need(place, Kind.SERVICE, state.service, state.type, 'world.reset')
    for name, embodiment in config.embodiments.items():
        yield from _embodiment(('embodiments', name), name, embodiment)
    for name, channel in config.channels.items():
        if isinstance(channel, TopicChannel):
            place = ('channels', name, 'topic')
            yield Need(place, Kind.PUBLISHER, channel.topic, channel.type, f'channel {name}')
    used = {action for body in config.embodiments.values() for action in body.actions}
    for name, action in config.actions.items():
        info = adapters.get(action.adapter)
        if name in used and info is not None and info.kind in ('action', 'service'):
            kind = Kind.ACTION if info.kind == 'action' else Kind.SERVICE
            place = ('actions', name, f'ros_{info.kind}')
            named = info.ros_type or action.options.get('type')  # an adapter of any type names it
            yield Need(place, kind, action.server, named, f'action type {name}')


def _embodiment(path: Path, name: str, embodiment: Embodiment) -> Iterator[Need]:
    for number, step in enumerate(embodiment.stop_steps):
        place, use = (*path, 'stop_steps', number), f'the stop of {name}'
        if isinstance(step, PublishZeros):
            yield Need((*place, 'topic'), Kind.LISTENER, step.topic, step.type, use)
        elif isinstance(step, CallService):
            yield Need((*place, 'service'), Kind.SERVICE, step.service, step.type, use)
    yield from _rest((*path, 'at_rest'), name, embodiment.at_rest)
    scaling = embodiment.speed_scaling
    if scaling is not None:
        kind = Kind.LATCHED if scaling.latched else Kind.PUBLISHER
        place, use = (*path, 'speed_scaling', 'topic'), f'the speed scaling of {name}'
        yield Need(place, kind, scaling.topic, scaling.type, use)
    if embodiment.kinematics is not None and isinstance(embodiment.kinematics.urdf, UrdfTopic):
        place = (*path, 'kinematics', 'urdf', 'topic')
        topic = embodiment.kinematics.urdf.topic
        yield Need(place, Kind.LATCHED, topic, STRING, f'the kinematics of {name}')
    for number, entry in enumerate(embodiment.safety_inputs):
        yield from _input((*path, 'safety_inputs', number), entry.spec, name)
    if embodiment.envelope is not None:
        yield from _limits((*path, 'envelope'), name, embodiment.envelope)


def _input(path: Path, spec: Any, whose: str) -> Iterator[Need]:
    use = f'safety input {spec.label} of {whose}'
    if spec.companion is None:
        yield Need(path, Kind.PUBLISHER, spec.topic, spec.type, use)
        return
    # said on change only: a bridge that starts later hears it where it is latched
    yield Need(path, Kind.LATCHED, spec.topic, spec.type, use)
    yield Need(path, Kind.PUBLISHER, spec.companion, None, f'{use}, its companion')


def _rest(path: Path, name: str, rest: Any) -> Iterator[Need]:
    use = f'the rest of {name}'
    if isinstance(rest, MeasuredRest):
        yield Need((*path, 'topic'), Kind.PUBLISHER, rest.topic, JOINT_STATE, use)
    elif isinstance(rest, OdometryRest):
        yield Need((*path, 'odometry'), Kind.PUBLISHER, rest.odometry, ODOMETRY, use)
    elif isinstance(rest, TfRest):
        yield Need((*path, 'tf'), Kind.PUBLISHER, '/tf', TF, use)


def _limits(path: Path, name: str, envelope: Any) -> Iterator[Need]:
    use = f'measured limits of {name}'
    place = (*path, 'measured')
    if isinstance(envelope.measured, MeasuredByJoints):
        yield Need(place, Kind.PUBLISHER, envelope.measured.topic, JOINT_STATE, use)
    elif isinstance(envelope.measured, MeasuredByOdometry):
        yield Need(place, Kind.PUBLISHER, envelope.measured.topic, ODOMETRY, use)
    elif isinstance(envelope.measured, MeasuredByTf):
        yield Need(place, Kind.PUBLISHER, '/tf', TF, use)
    if envelope.force is not None:
        yield Need((*path, 'force'), Kind.PUBLISHER, envelope.force.topic, WRENCH, use)
