"""Owns the rules between values: one function each, each yielding what it finds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
import re

from awp_ros_bridge.config.actions import Adapters
from awp_ros_bridge.config.adapter_checks import ADAPTER_RULES
from awp_ros_bridge.config.channel_checks import CHANNEL_RULES, ENCODER_RULES
from awp_ros_bridge.config.channels import (
    EmbodimentStateChannel,
    Encoders,
    TF_CHANNEL,
    TopicChannel,
)
from awp_ros_bridge.config.embodiments import Embodiment
from awp_ros_bridge.config.envelope import Envelope, MeasuredByJoints, MeasuredByOdometry
from awp_ros_bridge.config.envelope_checks import ENVELOPE_RULES
from awp_ros_bridge.config.model import BridgeConfig
from awp_ros_bridge.config.problems import Finding, nearest, Path, Severity
from awp_ros_bridge.config.rest import MeasuredRest, OdometryRest, UnmeasuredRest
from awp_ros_bridge.config.safety_checks import SAFETY_RULES
from awp_ros_bridge.config.safety_inputs import AnyInput
from awp_ros_bridge.config.stall_checks import STALL_ADAPTER_RULES, STALL_RULES
from awp_ros_bridge.config.stop_checks import STOP_ADAPTER_RULES, STOP_RULES
from awp_ros_bridge.config.stop_steps import CallService, PublishZeros

Findings = Iterator[Finding]

_ROS_TOKEN = re.compile(r'^[A-Za-z](?:_?[A-Za-z0-9])*_?$')
_MOST_SHARE = 2


def check(
    config: BridgeConfig, adapters: Adapters | None, encoders: Encoders | None = None
) -> Findings:
    """Yield what every rule finds; those about adapters and encoders only when they are known."""
    for rule in EVERY_RULE:
        yield from rule(config)
    if adapters is not None:
        for adapter_rule in EVERY_ADAPTER_RULE:
            yield from adapter_rule(config, adapters)
    if encoders is not None:
        for encoder_rule in ENCODER_RULES:
            yield from encoder_rule(config, encoders)


def references_exist(config: BridgeConfig) -> Findings:
    """Refuse names of actions, channels, embodiments and frames nobody declares (AWP-MAN-001)."""
    for name, embodiment in config.embodiments.items():
        here: Path = ('embodiments', name)
        for index, action in enumerate(embodiment.actions):
            if action not in config.actions:
                yield _undeclared((*here, 'actions', index), 'action', action, config.actions)
        for index, channel in enumerate(embodiment.channels):
            if channel not in config.channels and channel != TF_CHANNEL:
                yield _undeclared((*here, 'channels', index), 'channel', channel, config.channels)
        if embodiment.envelope is not None and embodiment.envelope.spatial is not None:
            frame = embodiment.envelope.spatial.frame
            if frame not in config.frames.tf_frames:
                path = (*here, 'envelope', 'spatial', 'frame')
                yield Finding(
                    path,
                    f'frame {frame!r} is not declared',
                    f'add it to frames.include; {nearest(frame, config.frames.tf_frames)}',
                    refers=('frames', 'include', frame),
                )
    for name, channel_config in config.channels.items():
        owner = getattr(channel_config, 'embodiment', None)
        if owner is not None and owner not in config.embodiments:
            path = ('channels', name, 'embodiment')
            yield _undeclared(path, 'embodiment', owner, config.embodiments)


def _undeclared(path: Path, kind: str, name: str, known: Iterable[str]) -> Finding:
    return Finding(
        path,
        f'{kind} {name!r} is not declared',
        f'declare it in {kind}s; {nearest(name, known)}',
        refers=(f'{kind}s', name),
    )


def declarations_are_used(config: BridgeConfig) -> Findings:
    """Warn of what no embodiment lists: it can never be used."""
    actions = {name for each in config.embodiments.values() for name in each.actions}
    channels = {name for each in config.embodiments.values() for name in each.channels}
    for kind, declared, used in (
        ('actions', config.actions, actions),
        ('channels', config.channels, channels),
    ):
        for name in declared:
            if name not in used and not name.startswith('awp.'):
                yield Finding(
                    (kind, name),
                    f'no embodiment lists {name!r}',
                    f'add it to the {kind} of an embodiment, or remove it',
                    Severity.WARNING,
                    refers=('embodiments',),
                )


def lists_have_no_doubles(config: BridgeConfig) -> Findings:
    """Refuse a name that stands twice in a list."""
    for name, embodiment in config.embodiments.items():
        for key in ('actions', 'channels'):
            yield from _doubles(('embodiments', name, key), getattr(embodiment, key))
    for name, action in config.actions.items():
        yield from _doubles(('actions', name, 'preemption'), action.preemption or ())
        yield from _doubles(('actions', name, 'downstream'), action.downstream)


def _doubles(path: Path, names: Iterable[str]) -> Findings:
    for name, count in Counter(names).items():
        if count > 1:
            yield Finding(path, f'{name!r} stands {count} times', 'keep one of them')


def embodiment_names_suit_ros(config: BridgeConfig) -> Findings:
    """Refuse embodiment names that cannot be part of ~/arm_01/at_rest."""
    for name in config.embodiments:
        if not _ROS_TOKEN.match(name):
            yield Finding(
                ('embodiments', name),
                f'{name!r} cannot be part of a topic name',
                'begin with a letter, then letters, digits and single _',
            )


def one_group_per_body(config: BridgeConfig) -> Findings:
    """Require one group for all goals of one body: they never run together (AWP-PRE-006)."""
    for name, embodiment in config.embodiments.items():
        groups = defaultdict(list)
        for index, action in enumerate(embodiment.actions):
            declared = config.actions.get(action)
            if declared is not None and declared.ros_action is not None:
                groups[declared.concurrency_group or action].append((index, action))
        if not groups:
            continue
        (_, first), *others = groups.items()
        for group, members in others:
            index, action = members[0]
            yield Finding(
                ('embodiments', name, 'actions', index),
                f'{action!r} (group {group!r}) could run while {first[0][1]!r} runs',
                'give both one concurrency_group, or make what moves independently an embodiment '
                'of its own (AWP-PRE-006)',
                refers=('actions', action, 'concurrency_group'),
            )


def queue_has_a_depth(config: BridgeConfig) -> Findings:
    """Require queue and max_queue together (AWP-PRE-002)."""
    for name, action in config.actions.items():
        offers = 'queue' in (action.preemption or ())
        if offers and action.max_queue is None:
            yield Finding(
                ('actions', name, 'preemption'),
                'queue is offered without a depth',
                'add max_queue, such as 4 (AWP-PRE-002)',
            )
        if action.max_queue is not None and not offers:
            yield Finding(
                ('actions', name, 'max_queue'),
                'there is no queue to limit',
                'add queue to preemption, or remove max_queue',
            )


def one_interface_per_action(config: BridgeConfig) -> Findings:
    """Refuse a type that stands for an action server and a service."""
    for name, action in config.actions.items():
        if action.ros_action is not None and action.ros_service is not None:
            yield Finding(
                ('actions', name, 'ros_service'),
                'the type names an action server and a service',
                'keep one, or make two types',
            )


def names_are_relative(config: BridgeConfig) -> Findings:
    """Warn of absolute names: they escape from the namespace that a launch file sets."""
    for path, name in _ros_names(config):
        if name.startswith('/'):
            yield Finding(
                path,
                f'{name!r} is absolute, a namespace does not move it',
                f'write {name[1:]!r}, unless the name is meant for the whole domain',
                Severity.WARNING,
            )


def _ros_names(config: BridgeConfig) -> Iterator[tuple[Path, str]]:
    for name, action in config.actions.items():
        for key in ('ros_action', 'ros_service'):
            value = getattr(action, key)
            if value is not None:
                yield ('actions', name, key), value
        for index, server in enumerate(action.downstream):
            yield ('actions', name, 'downstream', index), server
    for name, channel in config.channels.items():
        if isinstance(channel, TopicChannel):
            yield ('channels', name, 'topic'), channel.topic
    for name, embodiment in config.embodiments.items():
        yield from _names_of(('embodiments', name), embodiment)
    yield from _input_names(('safety', 'inputs'), config.safety.inputs)


def _names_of(here: Path, embodiment: Embodiment) -> Iterator[tuple[Path, str]]:
    if isinstance(embodiment.at_rest, MeasuredRest):
        yield (*here, 'at_rest', 'topic'), embodiment.at_rest.topic
    if isinstance(embodiment.at_rest, OdometryRest):
        yield (*here, 'at_rest', 'odometry'), embodiment.at_rest.odometry
    if embodiment.speed_scaling is not None:
        yield (*here, 'speed_scaling', 'topic'), embodiment.speed_scaling.topic
    yield from _input_names((*here, 'safety_inputs'), embodiment.safety_inputs)
    for index, step in enumerate(embodiment.stop_steps):
        if isinstance(step, PublishZeros):
            yield (*here, 'stop_steps', index, 'topic'), step.topic
        elif isinstance(step, CallService):
            yield (*here, 'stop_steps', index, 'service'), step.service
    yield from _limit_topics((*here, 'envelope'), embodiment.envelope)


def _limit_topics(here: Path, envelope: Envelope | None) -> Iterator[tuple[Path, str]]:
    source = None if envelope is None else envelope.measured
    if isinstance(source, MeasuredByJoints | MeasuredByOdometry):
        yield (*here, 'measured', 'topic'), source.topic
    if envelope is not None and envelope.force is not None:
        yield (*here, 'force', 'topic'), envelope.force.topic


def _input_names(here: Path, inputs: Iterable[AnyInput]) -> Iterator[tuple[Path, str]]:
    for index, each in enumerate(inputs):
        if 'topic' in each.model_fields_set:  # what a form writes itself is meant
            yield (*here, index, 'topic'), each.topic


def serving_is_guarded(config: BridgeConfig) -> Findings:
    """Refuse to send tokens across a network in the open."""
    server = config.server
    host = server.host
    if not _is_loopback(host) and server.tls is None:  # AWP-SEC-001
        yield Finding(
            ('server', 'host'),
            f'{host!r} is reachable from other machines, and there is no TLS',
            'add server.tls with cert and key, or use 127.0.0.1 and a TLS proxy in front'
            ' (server.public_url names it)',
            refers=('server', 'tls'),
        )
    if _is_unspecified(host) and not server.host_names and server.public_url is None:
        yield Finding(
            ('server', 'host'),
            f'{host!r} stands for every address, so it is not known how agents call the bridge',
            'list those names in server.host_names, or set server.public_url',
            refers=('server', 'host_names'),
        )
    if {'tokens_file', 'token_env'} <= config.server.model_fields_set:
        yield Finding(
            ('server', 'token_env'),
            'there are two sources of tokens',
            'keep tokens_file or token_env',
        )


def _is_unspecified(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'


def quota_holds_a_session(config: BridgeConfig) -> Findings:
    """Require room for a closed log beside the open one."""
    audit = config.audit
    if audit.quota_mb < _MOST_SHARE * audit.max_file_mb:
        yield Finding(
            ('audit', 'quota_mb'),
            f'{audit.quota_mb} MB is less than {_MOST_SHARE} files of audit.max_file_mb, '
            f'{audit.max_file_mb} MB',
            'raise it, or lower max_file_mb',
        )


def channels_are_owned(config: BridgeConfig) -> Findings:
    """Require one embodiment per state channel, and keep awp names for the protocol."""
    for name, channel in config.channels.items():
        if name.startswith('awp.'):
            yield Finding(
                ('channels', name),
                'names that begin with awp. belong to the protocol',
                f'choose another; {TF_CHANNEL} is declared by the bridge when frames are included',
            )
        if isinstance(channel, EmbodimentStateChannel) and channel.embodiment is None:
            listing = [id_ for id_, each in config.embodiments.items() if name in each.channels]
            if len(listing) > 1:
                yield Finding(
                    ('channels', name),
                    f'{", ".join(listing)} list it, so it is not clear of which it tells',
                    'add embodiment, or declare one channel each',
                )
    if not config.frames.include:
        yield from _tf_without_frames(config)


def _tf_without_frames(config: BridgeConfig) -> Findings:
    for name, embodiment in config.embodiments.items():
        if TF_CHANNEL in embodiment.channels:
            yield Finding(
                ('embodiments', name, 'channels'),
                f'{TF_CHANNEL} is listed, but frames.include is empty',
                'add frames, or remove the channel from the list',
                refers=('frames', 'include'),
            )


def frames_differ(config: BridgeConfig) -> Findings:
    """Refuse two AWP frames with one tf frame."""
    seen: dict[str, str] = {}
    for name, frame in config.frames.tf_frames.items():
        other = seen.setdefault(frame, name)
        if other != name:
            yield Finding(
                ('frames', 'include', name),
                f'tf frame {frame!r} is already the AWP frame {other!r}',
                'keep one of the names',
            )


def rest_fits_the_abort(config: BridgeConfig) -> Findings:
    """Refuse a wait for rest that no cancel may last (AWP-LIF-010)."""
    for name, embodiment in config.embodiments.items():
        rest = embodiment.at_rest
        if isinstance(rest, UnmeasuredRest):
            key, needed = 'settle_ms', rest.settle_ms
        else:
            key, needed = 'for_ms', rest.for_ms
        for action in embodiment.actions:
            declared = config.actions.get(action)
            if declared is not None and not needed < declared.max_abort_ms:
                yield Finding(
                    ('embodiments', name, 'at_rest', key),
                    f'{needed} ms is not within max_abort_ms of {action!r}, '
                    f'{declared.max_abort_ms} ms',
                    'lower it, or raise max_abort_ms: a cancel could never end well',
                    refers=('actions', action, 'max_abort_ms'),
                )


RULES = (
    references_exist,
    declarations_are_used,
    lists_have_no_doubles,
    embodiment_names_suit_ros,
    one_group_per_body,
    queue_has_a_depth,
    one_interface_per_action,
    names_are_relative,
    serving_is_guarded,
    quota_holds_a_session,
    channels_are_owned,
    frames_differ,
    rest_fits_the_abort,
)
EVERY_RULE = (
    *RULES, *CHANNEL_RULES, *SAFETY_RULES, *STALL_RULES, *STOP_RULES, *ENVELOPE_RULES,
)  # fmt: skip
EVERY_ADAPTER_RULE = (*ADAPTER_RULES, *STALL_ADAPTER_RULES, *STOP_ADAPTER_RULES)
