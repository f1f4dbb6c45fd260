"""Owns the world manifest: from the configuration to what agents read (AWP-MAN-001..007)."""

from __future__ import annotations

from collections.abc import Mapping
import copy
from dataclasses import dataclass
import hashlib
import json
from typing import Any

from jsonschema import Draft202012Validator

from awp_ros_bridge.config import ActionConfig, Adapters, BridgeConfig, Encoders, Envelope
from awp_ros_bridge.manifest.channels import channels_of, declared_channels

Json = dict[str, Any]

PROTOCOL_VERSION = '0.1'
TOLERANCES = 'x-ros2.measured_tolerances'


@dataclass(frozen=True, slots=True)
class Declaration:
    """
    What an adapter says of one configured action type.

    :param params_schema: JSON Schema (2020-12) of its params.
    :param extended: True for a type that takes time, False for an instant one.
    :param needs_motion: False for a type that only stops.
    """

    params_schema: Json
    extended: bool
    kind: str = 'action'
    native_replace: bool = False
    needs_motion: bool = True


def declare(config: BridgeConfig, adapters: Adapters) -> dict[str, Declaration]:
    """
    Ask the adapters about every action type.

    :raises KeyError: an adapter is not known; the loader would have said so.
    :raises ValueError: an adapter cannot use its options, or its schema is none (AWP-MAN-002).
    """
    return {name: _declaration(action, adapters) for name, action in config.actions.items()}


def _declaration(action: ActionConfig, adapters: Adapters) -> Declaration:
    info = adapters[action.adapter]
    schema = info.params_schema(action.options)
    Draft202012Validator.check_schema(schema)
    return Declaration(
        params_schema=schema,
        extended=info.extended,
        kind=info.kind,
        native_replace=info.native_replace,
        needs_motion=info.needs_motion,
    )


def build(
    config: BridgeConfig,
    declarations: Mapping[str, Declaration],
    encoders: Encoders | None = None,
) -> Json:
    """
    Build the world manifest, complete and in a fixed order.

    :param declarations: one for each action type, from :func:`declare`.
    :param encoders: what is known of the message types of channels.
    """
    declared = declared_channels(config, encoders)
    manifest: Json = {
        'protocol_version': PROTOCOL_VERSION,
        'world': {
            'name': config.world.name,
            'version': config.world.version,
            'vendor': config.world.vendor,
        },
        'time_models': ['streaming'],
        'capabilities': _capabilities(config),
    }
    if config.simulation is not None:
        manifest['initial_states'] = list(config.simulation.initial_states)  # AWP-SIM-001
    manifest |= {
        'embodiments': [_embodiment(config, name) for name in config.embodiments],
        'observation_channels': list(declared.values()),
        'action_schemas': [
            _action(name, action, declarations[name]) for name, action in config.actions.items()
        ],
        'safety_policy': _safety_policy(config),
    }
    return copy.deepcopy(manifest)  # shares nothing with schemas that others hold (AWP-MAN-003)


def _capabilities(config: BridgeConfig) -> Json:
    """Return what is offered beyond the core (AWP-MAN-004)."""
    return {'x-acp.session': {'status': {}}} if config.session.status_query else {}


def manifest_hash(manifest: Json) -> str:
    """Return the SHA-256 of the manifest in canonical form, as hex."""
    text = json.dumps(manifest, sort_keys=True, separators=(',', ':'), allow_nan=False)
    return hashlib.sha256(text.encode('ascii')).hexdigest()


def preemption_of(action: ActionConfig, declaration: Declaration) -> tuple[str, ...]:
    """Return the policies a submission may choose from, the default first (AWP-PRE-001)."""
    if action.preemption is not None:
        return action.preemption
    return ('replace',) if declaration.kind == 'builtin' else ('reject',)


def group_of(name: str, action: ActionConfig) -> str:
    """Return the concurrency group of a type; without one it is alone in its own (AWP-PRE-006)."""
    return action.concurrency_group or name


def _embodiment(config: BridgeConfig, name: str) -> Json:
    embodiment = config.embodiments[name]
    entry: Json = {'id': name, 'kind': embodiment.kind}
    if embodiment.description is not None:
        entry['description'] = embodiment.description
    if embodiment.multi_bind_group is not None:
        entry['multi_bind_group'] = embodiment.multi_bind_group
    entry['action_types'] = list(embodiment.actions)
    entry['channels'] = channels_of(config, name)
    return entry


def _action(name: str, action: ActionConfig, declaration: Declaration) -> Json:
    entry: Json = {'type': name}
    if action.description is not None:
        entry['description'] = action.description
    entry |= {
        'params_schema': declaration.params_schema,
        'duration': 'extended' if declaration.extended else 'instant',
        'preemption': list(preemption_of(action, declaration)),
        'concurrency_group': group_of(name, action),
    }
    if action.max_queue is not None:
        entry['max_queue'] = action.max_queue
    if declaration.extended:
        entry['max_abort_ms'] = action.max_abort_ms
        if action.max_duration_ms is not None:
            entry['max_duration_ms'] = action.max_duration_ms
    return entry


def _safety_policy(config: BridgeConfig) -> Json:
    return {
        'envelopes': [
            envelope_entry(name, embodiment.envelope)
            for name, embodiment in config.embodiments.items()
            if embodiment.envelope is not None
        ],
        'safe_state': {
            'behavior': config.safety.behavior,
            'watchdog_ms': config.safety.watchdog_ms,
        },
        'max_basis_age_ms': config.safety.max_basis_age_ms,
        'audit': {'redact_paths': list(config.audit.redact_paths)},
    }


def envelope_entry(name: str, envelope: Envelope) -> Json:
    """Return an embodiment's entry of ``safety_policy.envelopes``."""
    entry: Json = {'embodiment': name}
    if envelope.spatial is not None:
        low, high = envelope.spatial.aabb_m
        entry['spatial'] = {'frame': envelope.spatial.frame, 'aabb_m': [list(low), list(high)]}
    for key in ('max_velocity_mps', 'max_force_n', 'max_action_rate_hz'):
        value = getattr(envelope, key)
        if value is not None:
            entry[key] = value
    entry |= {'enforcement': envelope.enforcement, 'on_violation': envelope.on_violation}
    tolerances = _tolerances(envelope)
    return entry | ({TOLERANCES: tolerances} if tolerances else {})


def _tolerances(envelope: Envelope) -> Json:
    """Return by how much a measured value may exceed its limit before the action fails."""
    found: Json = {}
    if envelope.measured is not None and envelope.spatial is not None:
        found['spatial_m'] = envelope.measured.spatial_margin_m
    if envelope.measured is not None and envelope.max_velocity_mps is not None:
        limit = envelope.max_velocity_mps
        found['velocity_mps'] = round(envelope.measured.velocity_margin * limit, 9)
    if envelope.force is not None and envelope.max_force_n is not None:
        found['force_n'] = round(envelope.force.force_margin * envelope.max_force_n, 9)
    return found
