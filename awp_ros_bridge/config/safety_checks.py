"""Owns the rules between values that decide whether a robot stops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from awp_ros_bridge.config.embodiments import Embodiment
from awp_ros_bridge.config.model import BridgeConfig
from awp_ros_bridge.config.problems import Finding, nearest, Path, Severity
from awp_ros_bridge.config.rest import MeasuredRest, OdometryRest, TfRest, UnmeasuredRest
from awp_ros_bridge.config.safety_inputs import AnyInput, SafetyInput
from awp_ros_bridge.engine.inputs import Meaning

Findings = Iterator[Finding]


def watchdog_within_window(config: BridgeConfig) -> Findings:
    """Require that the watchdog acts before the session is forgotten (AWP-SAF-003)."""
    watchdog, window = config.safety.watchdog_ms, config.session.reconnect_window_ms
    if not watchdog <= window:
        yield Finding(
            ('safety', 'watchdog_ms'),
            f'{watchdog} ms is longer than session.reconnect_window_ms, {window} ms',
            'lower it, or raise the window (AWP-SAF-003)',
            refers=('session', 'reconnect_window_ms'),
        )


def inputs_are_there(config: BridgeConfig) -> Findings:
    """Warn of a body that moves whatever the hardware says."""
    for name, embodiment in config.embodiments.items():
        if not embodiment.safety_inputs and not config.safety.inputs:
            yield Finding(
                ('embodiments', name),
                f'it has no safety_inputs: {_what_still_forbids(embodiment)}',
                'list the topics that say when it must not move, here or in safety.inputs',
                Severity.WARNING,
                refers=('embodiments', name, 'safety_inputs'),
            )


def _what_still_forbids(embodiment: Embodiment) -> str:
    source = embodiment.at_rest
    if isinstance(source, UnmeasuredRest):
        return 'nothing of the hardware can forbid its motion'
    silent = 'joint states'
    if isinstance(source, OdometryRest):
        silent = 'odometry'
    elif isinstance(source, TfRest):
        silent = 'tf'
    return f'no e-stop or mode of the hardware forbids its motion, only {silent} that fall silent'


def inputs_have_names(config: BridgeConfig) -> Findings:
    """Refuse two inputs of one name: events and diagnostics tell them apart by it."""
    world: dict[str, str] = {}
    yield from _doubles(('safety', 'inputs'), config.safety.inputs, world)
    for name, embodiment in config.embodiments.items():
        here: Path = ('embodiments', name, 'safety_inputs')
        yield from _doubles(here, embodiment.safety_inputs, dict(world))


def _doubles(here: Path, inputs: Iterable[AnyInput], seen: dict[str, str]) -> Findings:
    for index, each in enumerate(inputs):
        label = each.spec.label
        own = f'{".".join(map(str, here[-2:] if here[0] == "safety" else here[-1:]))}[{index}]'
        first = seen.setdefault(label, own)
        if first != own:
            yield Finding(
                (*here, index),
                f'it is called {label!r}, as {first} is',
                'give it a name of its own',
            )


def inputs_can_be_safe(config: BridgeConfig) -> Findings:
    """Refuse a condition that forbids motion for ever."""
    for name, embodiment in config.embodiments.items():
        for index, each in enumerate(embodiment.safety_inputs):
            yield from _input(('embodiments', name, 'safety_inputs', index), each)
    for index, each in enumerate(config.safety.inputs):
        yield from _input(('safety', 'inputs', index), each)


def groups_are_moved(config: BridgeConfig) -> Findings:
    """Refuse joints of a concurrency group that no action of the body has."""
    for name, embodiment in config.embodiments.items():
        rest = embodiment.at_rest
        if not isinstance(rest, MeasuredRest):
            continue
        known = {
            config.actions[a].concurrency_group or a
            for a in embodiment.actions
            if a in config.actions
        }
        for group in rest.groups:
            if group not in known:
                yield Finding(
                    ('embodiments', name, 'at_rest', 'groups', group),
                    f'no action of {name} has the group {group!r}',
                    nearest(group, known),
                    refers=('actions',),
                )


def _input(path: Path, each: AnyInput) -> Findings:
    if getattr(each, 'means', None) is Meaning.OPERATOR_STOP:
        yield Finding(
            (*path, 'means'),
            'operator_stop comes from the bridge itself, not from a topic',
            'write e_stop, protective_stop or fault',
        )
    if not isinstance(each, SafetyInput):
        return
    condition = each.unsafe_when
    if each.type == 'std_msgs/msg/Bool' and not isinstance(condition.equals, bool):
        yield Finding(
            (*path, 'unsafe_when'),
            'a Bool is only ever true or false',
            'write true or false',
        )
    low, high = condition.below, condition.above
    if low is not None and high is not None and not low <= high:
        yield Finding(
            (*path, 'unsafe_when'),
            f'every number is below {low} or above {high}',
            'swap the two: values from below to above are safe',
        )


SAFETY_RULES = (
    watchdog_within_window,
    inputs_are_there,
    inputs_have_names,
    inputs_can_be_safe,
    groups_are_moved,
)
