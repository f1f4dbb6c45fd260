"""The small cell that the engine's tests run: an arm, a gripper, a base, and their manifest."""

from __future__ import annotations

import dataclasses
from typing import Any

from awp_ros_bridge.engine.policy import (
    ActionPolicy,
    ChannelPolicy,
    EmbodimentPolicy,
    Policy,
    Replace,
)

Json = dict[str, Any]
MS = 1_000_000

MOVE_SCHEMA: Json = {
    'type': 'object',
    'properties': {'x_m': {'type': 'number', 'minimum': -1, 'maximum': 1}},
    'required': ['x_m'],
    'additionalProperties': False,
}
NO_PARAMS: Json = {'type': 'object', 'additionalProperties': False}


def actions() -> dict[str, ActionPolicy]:
    """Return the action types: one that stops first, one that blends, a stop, a gripper."""
    move = ActionPolicy(
        'move',
        MOVE_SCHEMA,
        extended=True,
        preemption=('replace', 'queue', 'reject'),
        group='arm',
        server='move_server',
        max_queue=2,
        max_duration_ns=10_000 * MS,
        max_abort_ns=1500 * MS,
    )
    chunk = dataclasses.replace(move, type='chunk', server='chunk_server', replace=Replace.NATIVE)
    stop = dataclasses.replace(
        move,
        type='stop',
        server='stop',
        params_schema=NO_PARAMS,
        preemption=('replace',),
        extended=False,
        needs_motion=False,
    )
    grip = dataclasses.replace(move, type='grip', server='grip_server', group='gripper')
    return {a.type: a for a in (move, chunk, stop, grip)}


def channels() -> dict[str, ChannelPolicy]:
    """Return the channels: a fast one, a slow reliable one, and two of the engine's own."""
    state = ChannelPolicy('arm_state', 'text/event+json', 10.0, True, 200 * MS, 'arm')
    return {
        'proprio': ChannelPolicy('proprio', 'proprio/json', 100.0, False, 20 * MS),
        'arm_state': state,
        'log': dataclasses.replace(state, id='log', embodiment_state=None),
        'grip_state': dataclasses.replace(state, id='grip_state', embodiment_state='grip'),
    }


def embodiments() -> dict[str, EmbodimentPolicy]:
    """Return the embodiments; arm and grip may be bound together."""
    limits = {'embodiment': 'arm', 'max_action_rate_hz': 20, 'on_violation': 'reject'}
    arm = EmbodimentPolicy(
        'arm',
        frozenset({'move', 'chunk', 'stop'}),
        ('proprio', 'arm_state', 'log'),
        envelope=limits,
        multi_bind_group='cell',
    )
    grip = EmbodimentPolicy('grip', frozenset({'grip'}), ('grip_state',), multi_bind_group='cell')
    return {e.id: e for e in (arm, grip, EmbodimentPolicy('base', frozenset(), ()))}


def policy(**changes: Any) -> Policy:
    """Return the settings of the cell; ``manifest`` follows from the others."""
    base = Policy(
        manifest={},
        actions=actions(),
        channels=channels(),
        embodiments=embodiments(),
        reset_states=('home',),
        stream_url=lambda: 'ws://127.0.0.1:1/stream',
    )
    made = dataclasses.replace(base, **changes)
    return dataclasses.replace(made, manifest=manifest(made))


def manifest(settings: Policy) -> Json:
    """Return a valid world manifest for the settings."""
    safe_state = {'behavior': settings.behavior, 'watchdog_ms': settings.watchdog_ns // MS}
    envelopes = [e.envelope for e in settings.embodiments.values() if e.envelope is not None]
    safety: Json = {'envelopes': envelopes, 'safe_state': safe_state}
    if settings.max_basis_age_ns is not None:
        safety['max_basis_age_ms'] = settings.max_basis_age_ns // MS
    return {
        'protocol_version': '0.1',
        'world': {'name': 'cell', 'version': '1', 'vendor': 'test'},
        'time_models': ['streaming'],
        'capabilities': {},
        'initial_states': list(settings.reset_states) or ['as_found'],
        'embodiments': [_embodiment(e) for e in settings.embodiments.values()],
        'observation_channels': [_channel(c) for c in settings.channels.values()],
        'action_schemas': [_action(a) for a in settings.actions.values()],
        'safety_policy': safety,
    }


def _embodiment(entry: EmbodimentPolicy) -> Json:
    out: Json = {
        'id': entry.id,
        'kind': 'test',
        'action_types': sorted(entry.actions),
        'channels': list(entry.channels),
    }
    if entry.multi_bind_group is not None:
        out['multi_bind_group'] = entry.multi_bind_group
    return out


def _channel(entry: ChannelPolicy) -> Json:
    return {
        'id': entry.id,
        'modality': entry.modality,
        'rate_hz': entry.rate_hz,
        'loss_class': 'reliable' if entry.reliable else 'latest-wins',
        'stale_after_ms': entry.stale_after_ns // MS,
        'schema': {},
    }


def _action(entry: ActionPolicy) -> Json:
    return {
        'type': entry.type,
        'params_schema': entry.params_schema,
        'duration': 'extended' if entry.extended else 'instant',
        'preemption': list(entry.preemption),
        'concurrency_group': entry.group,
        'max_queue': entry.max_queue,
        'max_abort_ms': entry.max_abort_ns // MS,
    }
