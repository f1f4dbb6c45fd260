"""Owns the rules between actions and the adapters that carry them out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from awp_ros_bridge.config.actions import Adapters
from awp_ros_bridge.config.model import BridgeConfig
from awp_ros_bridge.config.problems import Finding, nearest, Path, Severity

Findings = Iterator[Finding]

_KEYS = {'action': 'ros_action', 'service': 'ros_service', 'builtin': ''}


def adapters_exist(config: BridgeConfig, adapters: Adapters) -> Findings:
    """Refuse an adapter that is not installed."""
    for name, action in config.actions.items():
        if action.adapter not in adapters:
            yield Finding(
                ('actions', name, 'adapter'),
                f'there is no adapter {action.adapter!r}',
                nearest(action.adapter, adapters),
            )


def interfaces_suit(config: BridgeConfig, adapters: Adapters) -> Findings:
    """Require the name of the server that the adapter needs, and no other."""
    for name, action in config.actions.items():
        info = adapters.get(action.adapter)
        if info is None:
            continue
        for key in ('ros_action', 'ros_service'):
            wanted, given = key == _KEYS.get(info.kind), getattr(action, key) is not None
            if wanted and not given:
                served = f' of type {info.ros_type}' if info.ros_type else ''
                yield Finding(
                    ('actions', name),
                    f'adapter {action.adapter!r} needs {key}',
                    f'add {key}: the name of the server{served}',
                    refers=('actions', name, key),
                )
            if given and not wanted:
                yield Finding(
                    ('actions', name, key),
                    f'adapter {action.adapter!r} has no use for {key}',
                    'remove it',
                )


def durations_are_bounded(config: BridgeConfig, adapters: Adapters) -> Findings:
    """Require a longest time of what takes time (AWP-ROB-007)."""
    for name, action in config.actions.items():
        info = adapters.get(action.adapter)
        if info is not None and info.extended and action.max_duration_ms is None:
            yield Finding(
                ('actions', name),
                'the type takes time and has no longest time',
                'add max_duration_ms, such as 10000 (AWP-ROB-007)',
                refers=('actions', name, 'max_duration_ms'),
            )


def replacing_is_possible(config: BridgeConfig, adapters: Adapters) -> Findings:
    """Refuse native replacing where the server does not blend goals."""
    for name, action in config.actions.items():
        info = adapters.get(action.adapter)
        if info is not None and action.replace == 'native' and not info.native_replace:
            yield Finding(
                ('actions', name, 'replace'),
                f'adapter {action.adapter!r} cannot replace a running goal natively',
                'write stop_first',
            )


def options_suit(config: BridgeConfig, adapters: Adapters) -> Findings:
    """Ask each adapter which options it cannot use."""
    for name, action in config.actions.items():
        info = adapters.get(action.adapter)
        if info is None:
            continue
        findings = info.option_findings(action.options)
        for each in findings:
            yield replace(each, path=('actions', name, 'options', *each.path))
        if any(each.severity is Severity.ERROR for each in findings):
            continue
        try:
            info.params_schema(action.options)
            info.limits_checked(action.options)
        except (ValueError, TypeError, KeyError) as error:
            yield Finding(
                ('actions', name),
                f'adapter {action.adapter!r} cannot use its options: {error}',
                'correct options',
                refers=('actions', name, 'options'),
            )


def options_are_known(config: BridgeConfig, adapters: Adapters) -> Findings:
    """Refuse an option that the adapter does not have: a misspelt one would do nothing."""
    for name, action in config.actions.items():
        info = adapters.get(action.adapter)
        for option in action.options if info is not None else ():
            if info is not None and option not in info.options:
                yield Finding(
                    ('actions', name, 'options', option),
                    f'adapter {action.adapter!r} has no option {option!r}',
                    nearest(option, info.options),
                )


def limits_are_checkable(config: BridgeConfig, adapters: Adapters) -> Findings:
    """Refuse a limit that an action type cannot keep (AWP-ENV-001, AWP-ENV-005)."""
    for name, embodiment in config.embodiments.items():
        envelope = embodiment.envelope
        if envelope is None or not envelope.is_command_checked:
            continue
        declared = envelope.motion_limits
        for action in embodiment.actions:
            checked = _checked(config, adapters, action)
            if checked is None:
                continue
            for limit in declared:
                if limit not in checked:
                    path: Path = ('embodiments', name, 'envelope', limit)
                    yield Finding(
                        path,
                        f'{limit} cannot be checked on {action!r} '
                        f'(adapter {config.actions[action].adapter!r})',
                        f'remove {limit} from the envelope or {action!r} from the embodiment, '
                        'or write enforcement: measured (AWP-ENV-001, AWP-ENV-005)',
                        refers=('actions', action),
                    )


def _checked(config: BridgeConfig, adapters: Adapters, action: str) -> frozenset[str] | None:
    declared = config.actions.get(action)
    info = None if declared is None else adapters.get(declared.adapter)
    if declared is None or info is None:
        return None
    try:
        return info.limits_checked(declared.options)
    except (ValueError, TypeError, KeyError):
        return None  # options_suit says it


def builtins_have_a_group(config: BridgeConfig, adapters: Adapters) -> Findings:
    """Warn of a built-in that is alone in the concurrency group it acts on."""
    groups: dict[str, list[str]] = {}
    for name, action in config.actions.items():
        groups.setdefault(action.concurrency_group or name, []).append(name)
    for name, action in config.actions.items():
        info = adapters.get(action.adapter)
        alone = len(groups[action.concurrency_group or name]) < 2
        if info is not None and info.kind == 'builtin' and alone:
            yield Finding(
                ('actions', name),
                f'{name!r} is alone in its concurrency group and acts on nothing',
                'give it the concurrency_group of the types it is for',
                Severity.WARNING,
                refers=('actions', name, 'concurrency_group'),
            )


ADAPTER_RULES = (
    adapters_exist,
    interfaces_suit,
    durations_are_bounded,
    replacing_is_possible,
    options_suit,
    options_are_known,
    limits_are_checkable,
    builtins_have_a_group,
)
