"""Owns the way from the configuration to the settings of the engine: nanoseconds and SI units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from awp_ros_bridge.config import BridgeConfig, Embodiment
from awp_ros_bridge.config.stop_steps import extra_ms, parks
from awp_ros_bridge.engine.policy import (
    ActionPolicy,
    ChannelPolicy,
    EmbodimentPolicy,
    Policy,
    Replace,
)
from awp_ros_bridge.manifest.build import Declaration, group_of, preemption_of
from awp_ros_bridge.manifest.channels import channels_of, declared_channels, state_owner

Json = dict[str, Any]

_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000


def policy(
    config: BridgeConfig,
    manifest: Json,
    declarations: Mapping[str, Declaration],
    *,
    stream_url: Callable[[], str | None],
    anchor: Callable[[int], str],
) -> Policy:
    """
    Resolve every setting of the engine.

    :param manifest: what :func:`awp_ros_bridge.manifest.build.build` made of the same arguments.
    :param stream_url: where stream connections go, asked anew for each session.
    :param anchor: wall-clock time of a moment that is so many nanoseconds old (AWP-CLK-002).
    """
    ttl_s = config.session.grant_ttl_s
    simulation = config.simulation
    return Policy(
        manifest=manifest,
        actions=_actions(config, declarations),
        channels={
            name: _channel(config, entry) for name, entry in declared_channels(config).items()
        },
        embodiments=_embodiments(config, manifest),
        behavior=config.safety.behavior,
        watchdog_ns=config.safety.watchdog_ms * _NS_PER_MS,
        max_basis_age_ns=config.safety.max_basis_age_ms * _NS_PER_MS,
        require_basis=config.safety.require_basis,
        heartbeat_ns=config.session.heartbeat_interval_ms * _NS_PER_MS,
        reconnect_window_ns=config.session.reconnect_window_ms * _NS_PER_MS,
        grant_ttl_ns=None if ttl_s is None else round(ttl_s * _NS_PER_S),
        reset_states=() if simulation is None else tuple(simulation.initial_states),
        audit_required=config.audit.required != 'off',
        audit_stop=config.audit.required == 'stop',
        stream_url=stream_url,
        max_frame_bytes=config.server.max_frame_bytes,
        wall_clock_anchor=anchor,
        max_sessions=config.session.max_sessions,
        status_query=config.session.status_query,
    )


def _actions(
    config: BridgeConfig, declarations: Mapping[str, Declaration]
) -> dict[str, ActionPolicy]:
    policies = {}
    for name, action in config.actions.items():
        declaration = declarations[name]
        duration_ms = action.max_duration_ms
        policies[name] = ActionPolicy(
            type=name,
            params_schema=declaration.params_schema,
            extended=declaration.extended,
            preemption=preemption_of(action, declaration),
            group=group_of(name, action),
            server=action.server,
            replace=_replace(action.replace, declaration),
            max_queue=action.max_queue or 1,
            max_duration_ns=None if duration_ms is None else duration_ms * _NS_PER_MS,
            max_abort_ns=action.max_abort_ms * _NS_PER_MS,
            needs_motion=declaration.needs_motion,
        )
    return policies


def _replace(configured: str | None, declaration: Declaration) -> Replace:
    if configured is not None:
        return Replace(configured)
    return Replace.NATIVE if declaration.native_replace else Replace.STOP_FIRST


def _channel(config: BridgeConfig, entry: Json) -> ChannelPolicy:
    rate_hz = float(entry['rate_hz'])
    stale_ms = entry.get('stale_after_ms')
    twice_the_period_ns = round(2 * _NS_PER_S / rate_hz)  # AWP-SAF-009
    return ChannelPolicy(
        id=entry['id'],
        modality=entry['modality'],
        rate_hz=rate_hz,
        reliable=entry['loss_class'] == 'reliable',
        stale_after_ns=twice_the_period_ns if stale_ms is None else stale_ms * _NS_PER_MS,
        embodiment_state=state_owner(config, entry['id']),
    )


def _embodiments(config: BridgeConfig, manifest: Json) -> dict[str, EmbodimentPolicy]:
    envelopes = {entry['embodiment']: entry for entry in manifest['safety_policy']['envelopes']}
    return {
        name: _embodiment(config, name, embodiment, envelopes.get(name))
        for name, embodiment in config.embodiments.items()
    }


def _embodiment(
    config: BridgeConfig, name: str, embodiment: Embodiment, envelope: Json | None
) -> EmbodimentPolicy:
    bound_ms = max(config.actions[action].max_abort_ms for action in embodiment.actions)
    steps = embodiment.stop_steps
    return EmbodimentPolicy(
        id=name,
        actions=frozenset(embodiment.actions),
        channels=tuple(channels_of(config, name)),
        envelope=envelope,
        max_action_rate_hz=None if envelope is None else envelope.get('max_action_rate_hz'),
        multi_bind_group=embodiment.multi_bind_group,
        behavior_bound_ns=(bound_ms + extra_ms(steps)) * _NS_PER_MS,
        parks=bool(parks(steps)),
    )
