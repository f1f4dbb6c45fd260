"""Owns the rules between values that decide when a motion counts as stalled."""

from __future__ import annotations

from collections.abc import Iterator

from awp_ros_bridge.config.actions import Adapters
from awp_ros_bridge.config.model import BridgeConfig
from awp_ros_bridge.config.problems import Finding, Severity
from awp_ros_bridge.config.rest import UnmeasuredRest

Findings = Iterator[Finding]


def stalls_are_measured(config: BridgeConfig) -> Findings:
    """Refuse to call a motion stalled where nothing measures whether the body moves."""
    for name, embodiment in config.embodiments.items():
        if not isinstance(embodiment.at_rest, UnmeasuredRest):
            continue
        for action in embodiment.actions:
            declared = config.actions.get(action)
            if declared is not None and declared.stall_after_ms is not None:
                yield Finding(
                    ('actions', action, 'stall_after_ms'),
                    f'nothing measures whether {name} moves',
                    f'remove it, or measure at_rest of {name} by joint states, odometry or tf',
                    refers=('embodiments', name, 'at_rest'),
                )


def stalls_come_first(config: BridgeConfig) -> Findings:
    """Refuse a stall that could never be told: the longest time would always pass first."""
    for name, action in config.actions.items():
        after, longest = action.stall_after_ms, action.max_duration_ms
        if after is not None and longest is not None and not after < longest:
            yield Finding(
                ('actions', name, 'stall_after_ms'),
                f'{after} ms is not below max_duration_ms, {longest} ms',
                'lower it, or remove it: the action would always end at max_duration_ms',
                refers=('actions', name, 'max_duration_ms'),
            )


def scalings_are_used(config: BridgeConfig) -> Findings:
    """Warn of a speed scaling that nothing goes by."""
    for name, embodiment in config.embodiments.items():
        declared = (config.actions.get(action) for action in embodiment.actions)
        is_used = any(each is not None and each.stall_after_ms is not None for each in declared)
        if embodiment.speed_scaling is not None and not is_used:
            yield Finding(
                ('embodiments', name, 'speed_scaling'),
                f'no action of {name} has stall_after_ms, the only thing that it stretches',
                'add stall_after_ms to an action, such as 5000, or remove it',
                Severity.WARNING,
            )


def stalls_are_of_goals(config: BridgeConfig, adapters: Adapters) -> Findings:
    """Refuse stall_after_ms on what is no goal of an action server: it ends at once."""
    for name, action in config.actions.items():
        info = adapters.get(action.adapter)
        if info is not None and info.kind != 'action' and action.stall_after_ms is not None:
            yield Finding(
                ('actions', name, 'stall_after_ms'),
                f'adapter {action.adapter!r} runs no goal that could stall',
                'remove it',
            )


STALL_RULES = (stalls_are_measured, stalls_come_first, scalings_are_used)
STALL_ADAPTER_RULES = (stalls_are_of_goals,)
