"""Owns the rules about how a robot is stopped: steps, the behaviour they realise, servers."""

from __future__ import annotations

from collections.abc import Iterator

from jsonschema import Draft202012Validator

from awp_ros_bridge.config.actions import Adapters
from awp_ros_bridge.config.model import BridgeConfig
from awp_ros_bridge.config.problems import Finding, nearest, Path
from awp_ros_bridge.config.stop_steps import Park, realises
from awp_ros_bridge.engine.params_faults import describe

Findings = Iterator[Finding]


def stop_steps_are_ordered(config: BridgeConfig) -> Findings:
    """Require that goals end first and rest is waited for last."""
    for name, embodiment in config.embodiments.items():
        path: Path = ('embodiments', name, 'stop_steps')
        if embodiment.stop_steps[0] != 'cancel_goals':
            yield Finding(path, 'cancel_goals is not the first step', 'begin with cancel_goals')
        if 'wait_at_rest' in embodiment.stop_steps[:-1]:
            yield Finding(path, 'wait_at_rest is not the last step', 'end with wait_at_rest')


def stop_steps_differ(config: BridgeConfig) -> Findings:
    """Refuse a step that stands twice, and a second place to park at."""
    for name, embodiment in config.embodiments.items():
        seen: list[object] = []
        for index, step in enumerate(embodiment.stop_steps):
            path: Path = ('embodiments', name, 'stop_steps', index)
            if step in seen:
                yield Finding(path, 'the step stands there already', 'remove one of them')
            elif isinstance(step, Park) and any(isinstance(other, Park) for other in seen):
                yield Finding(path, 'a body parks at one place', 'keep one of the steps')
            seen.append(step)


def behavior_is_realised(config: BridgeConfig) -> Findings:
    """Require of every body steps that are the behaviour of the world (AWP-SAF-003)."""
    behavior = config.safety.behavior
    needed = 'a step park' if behavior == 'park' else 'a step publish_zeros, call_service or park'
    for name, embodiment in config.embodiments.items():
        if not realises(behavior, embodiment.stop_steps):
            yield Finding(
                ('embodiments', name, 'stop_steps'),
                f'no step of it realises safety.behavior {behavior!r}',
                f'add {needed}, or stay_in_place where the body has nothing to do for it; or '
                'declare hold or safe_stop',
                refers=('safety', 'behavior'),
            )


def only_parking_moves(config: BridgeConfig) -> Findings:
    """Refuse motion as a part of holding or stopping."""
    behavior = config.safety.behavior
    for path, _, _ in _parks(config):
        if behavior in ('hold', 'safe_stop'):
            yield Finding(
                path,
                f'safety.behavior {behavior!r} moves nothing, this step does',
                'declare park or x-<vendor>.<name>, or remove the step',
                refers=('safety', 'behavior'),
            )


def parks_are_offered(config: BridgeConfig) -> Findings:
    """Require that the body has the action type that parks it."""
    for path, name, park in _parks(config):
        offered = config.embodiments[name].actions
        if park.action not in offered:
            yield Finding(
                (*path, 'action'),
                f'{name} does not list the action {park.action!r}',
                f'add it to its actions; {nearest(park.action, offered)}',
                refers=('embodiments', name, 'actions'),
            )


def cancels_have_a_server(config: BridgeConfig) -> Findings:
    """Refuse settings of cancels on types that have no action server."""
    for name, action in config.actions.items():
        if action.ros_action is not None:
            if action.ros_action in action.downstream:
                yield Finding(
                    ('actions', name, 'downstream'),
                    f'{action.ros_action!r} is the server of the type itself',
                    'name what that server sends goals to, or remove it',
                )
            continue
        for key, given in (('shared_server', not action.shared_server),
                           ('downstream', bool(action.downstream))):  # fmt: skip
            if given:
                yield Finding(
                    ('actions', name, key),
                    'the type has no action server whose goals could be cancelled',
                    'remove it',
                    refers=('actions', name, 'ros_action'),
                )


def parks_can_be_sent(config: BridgeConfig, adapters: Adapters) -> Findings:
    """Refuse a park goal that its action type would refuse."""
    for path, _, park in _parks(config):
        action = config.actions.get(park.action)
        info = None if action is None else adapters.get(action.adapter)
        if action is None or info is None:
            continue
        if info.kind != 'action':
            yield Finding(
                (*path, 'action'),
                f'{park.action!r} sends no goal (adapter {action.adapter!r})',
                'name a type with an action server',
                refers=('actions', park.action),
            )
            continue
        try:
            schema = info.params_schema(action.options)
        except (ValueError, TypeError, KeyError):
            continue  # options_suit says it
        for error in Draft202012Validator(schema).iter_errors(park.params):
            yield Finding((*path, 'params'), describe(error), 'correct it')


def _parks(config: BridgeConfig) -> Iterator[tuple[Path, str, Park]]:
    for name, embodiment in config.embodiments.items():
        for index, step in enumerate(embodiment.stop_steps):
            if isinstance(step, Park):
                yield ('embodiments', name, 'stop_steps', index), name, step


STOP_RULES = (
    stop_steps_are_ordered,
    stop_steps_differ,
    behavior_is_realised,
    only_parking_moves,
    parks_are_offered,
    cancels_have_a_server,
)
STOP_ADAPTER_RULES = (parks_can_be_sent,)
