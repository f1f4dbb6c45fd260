"""Owns the rules between the limits of an embodiment and what they are measured with."""

from __future__ import annotations

from collections.abc import Iterator

from awp_ros_bridge.config.envelope import Envelope, MeasuredByJoints, MeasuredByTf
from awp_ros_bridge.config.model import BridgeConfig
from awp_ros_bridge.config.problems import Finding, nearest, Path

Findings = Iterator[Finding]

_SOURCES = '{source: joint_states}, {source: odometry, topic: odom} or {source: tf, tip: tool0}'


def _envelopes(config: BridgeConfig) -> Iterator[tuple[str, Path, Envelope]]:
    for name, embodiment in config.embodiments.items():
        if embodiment.envelope is not None:
            yield name, ('embodiments', name, 'envelope'), embodiment.envelope


def nothing_is_clamped(config: BridgeConfig) -> Findings:
    """Refuse clamping, which this version does not do (AWP-ENV-002)."""
    for _, here, envelope in _envelopes(config):
        if envelope.on_violation == 'clamp':
            yield Finding(
                (*here, 'on_violation'),
                'clamp would send another motion than the agent asked for; this version does not',
                'write reject (AWP-ENV-002)',
            )


def measured_limits_have_a_source(config: BridgeConfig) -> Findings:
    """Refuse a limit that nothing measures where measuring is declared (AWP-ENV-001, ENV-005)."""
    for _, here, envelope in _envelopes(config):
        limits = envelope.motion_limits
        if envelope.is_measured and limits and envelope.measured is None:
            yield Finding(
                (*here, 'enforcement'),
                f'{envelope.enforcement} needs something to measure {" and ".join(limits)} with',
                f'add measured: {_SOURCES}, or write command_check (AWP-ENV-005)',
                refers=(*here, 'measured'),
            )
        if envelope.is_measured and not limits and envelope.max_force_n is None:
            yield Finding(
                (*here, 'enforcement'),
                f'{envelope.enforcement} has no limit to measure',
                'add spatial, max_velocity_mps or max_force_n, or write command_check',
            )


def sources_are_used(config: BridgeConfig) -> Findings:
    """Refuse a source that no limit is measured with: it would look like a promise."""
    for _, here, envelope in _envelopes(config):
        used = envelope.is_measured and envelope.motion_limits
        if envelope.measured is not None and not used:
            why = 'no limit of motion' if envelope.is_measured else 'enforcement is command_check'
            yield Finding(
                (*here, 'measured'),
                f'it measures nothing: {why}',
                'write enforcement: both and a limit, or remove it (AWP-ENV-005)',
                refers=(*here, 'enforcement'),
            )
        if envelope.force is not None and envelope.max_force_n is None:
            yield Finding(
                (*here, 'force'),
                'it measures nothing: there is no max_force_n',
                'add max_force_n, or remove it',
            )


def force_is_measured(config: BridgeConfig) -> Findings:
    """Refuse a limit of force that no sensor keeps: commands do not tell it (AWP-ROB-002)."""
    for _, here, envelope in _envelopes(config):
        if envelope.max_force_n is None:
            continue
        if not envelope.is_measured:
            yield Finding(
                (*here, 'max_force_n'),
                'max_force_n cannot be checked on commands, and enforcement is command_check',
                'write enforcement: both, or remove max_force_n (AWP-ENV-005)',
                refers=(*here, 'enforcement'),
            )
        if envelope.force is None:
            yield Finding(
                (*here, 'max_force_n'),
                'nothing measures max_force_n',
                'add force: {topic: ...} (a WrenchStamped), or remove max_force_n (AWP-ENV-001)',
                refers=(*here, 'force'),
            )


def sources_can_measure(config: BridgeConfig) -> Findings:
    """Require the chain or the frame that a source needs."""
    for name, here, envelope in _envelopes(config):
        source = envelope.measured
        path = (*here, 'measured')
        if isinstance(source, MeasuredByJoints) and config.embodiments[name].kinematics is None:
            yield Finding(
                path,
                'joint states say where the tip is only through kinematics, which is missing',
                'add kinematics: {urdf: ..., base_frame: ..., tip_frame: ...}',
                refers=('embodiments', name, 'kinematics'),
            )
        if isinstance(source, MeasuredByTf) and source.tip not in config.frames.tf_frames:
            yield Finding(
                (*path, 'tip'),
                f'frame {source.tip!r} is not declared',
                f'add it to frames.include; {nearest(source.tip, config.frames.tf_frames)}',
                refers=('frames', 'include', source.tip),
            )


ENVELOPE_RULES = (
    nothing_is_clamped,
    measured_limits_have_a_source,
    sources_are_used,
    force_is_measured,
    sources_can_measure,
)
