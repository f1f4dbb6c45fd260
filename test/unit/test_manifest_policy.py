"""Tests the settings of the engine: everything in nanoseconds and SI units."""

from collections.abc import Callable
from typing import Any

from config_sample import ADAPTERS, config, FakeAdapter, put
import pytest

from awp_ros_bridge.engine.policy import ChannelPolicy, Policy, Replace
from awp_ros_bridge.manifest import build, declare, policy
from awp_ros_bridge.manifest.channels import state_owner

Json = dict[str, Any]


def anchor(age_ns: int) -> str:
    return f'{age_ns} ago'


def made(
    change: Callable[[Json], object] | None = None, adapters: Any = ADAPTERS
) -> tuple[Policy, Json]:
    settings = config(change)
    declarations = declare(settings, adapters)
    manifest = build(settings, declarations)
    resolved = policy(
        settings, manifest, declarations, stream_url=lambda: 'ws://here/stream', anchor=anchor
    )
    return resolved, manifest


def test_times_are_nanoseconds() -> None:
    def change(data: Json) -> None:
        data['session'] = {
            'heartbeat_interval_ms': 700,
            'reconnect_window_ms': 9000,
            'grant_ttl_s': 1.5,
            'max_sessions': 3,
            'status_query': False,
        }
        data['safety'] = {
            'behavior': 'hold',
            'watchdog_ms': 800,
            'max_basis_age_ms': 250,
            'require_basis': True,
        }
        data['server'] = {'max_frame_bytes': 4096}

    resolved, manifest = made(change)
    assert resolved.manifest is manifest
    assert resolved.behavior == 'hold'
    assert resolved.heartbeat_ns == 700_000_000
    assert resolved.reconnect_window_ns == 9_000_000_000
    assert resolved.grant_ttl_ns == 1_500_000_000
    assert resolved.watchdog_ns == 800_000_000
    assert resolved.max_basis_age_ns == 250_000_000
    assert resolved.require_basis
    assert resolved.max_sessions == 3
    assert not resolved.status_query
    assert resolved.max_frame_bytes == 4096
    assert resolved.stream_url() == 'ws://here/stream'
    assert resolved.wall_clock_anchor(5) == '5 ago'


def test_actions_are_resolved() -> None:
    resolved, manifest = made()
    move, follow, stop = (resolved.actions[name] for name in ('move', 'follow', 'stop'))
    assert move.params_schema == manifest['action_schemas'][0]['params_schema']
    assert (move.group, move.server, move.extended) == ('arm_motion', 'arm/move', True)
    assert (move.preemption, move.max_queue) == (('replace', 'queue'), 4)
    assert (move.max_duration_ns, move.max_abort_ns) == (10_000_000_000, 1_500_000_000)
    assert (move.replace, follow.replace) == (Replace.STOP_FIRST, Replace.NATIVE)
    assert (stop.server, stop.needs_motion, stop.max_duration_ns) == ('', False, None)
    assert move.needs_motion


def test_configuration_narrows_how_goals_are_replaced() -> None:
    resolved, _ = made(put('actions/follow/replace', 'stop_first'))
    assert resolved.actions['follow'].replace is Replace.STOP_FIRST


def test_channels_are_resolved() -> None:
    resolved, _ = made(put('channels/proprio/stale_after_ms', 33))
    assert dict(resolved.channels) == {
        'proprio': ChannelPolicy('proprio', 'proprio/json', 100.0, False, 33_000_000),
        'arm_state': ChannelPolicy(
            'arm_state', 'text/event+json', 10.0, True, 200_000_000, 'arm_01'
        ),
        'awp.tf': ChannelPolicy('awp.tf', 'proprio/json', 10.0, False, 200_000_000),
    }


def test_a_state_channel_may_name_its_embodiment() -> None:
    settings = config(put('channels/arm_state/embodiment', 'arm_01'))
    assert state_owner(settings, 'arm_state') == 'arm_01'
    assert state_owner(settings, 'proprio') is None
    assert state_owner(settings, 'awp.tf') is None


def test_embodiments_are_resolved() -> None:
    def change(data: Json) -> None:
        data['embodiments']['arm_01']['envelope']['max_action_rate_hz'] = 20
        data['embodiments']['arm_01']['multi_bind_group'] = 'cell'

    resolved, manifest = made(change)
    arm = resolved.embodiments['arm_01']
    assert arm.actions == frozenset({'move', 'follow', 'stop'})
    assert arm.channels == ('proprio', 'arm_state', 'awp.tf')
    assert arm.envelope == manifest['safety_policy']['envelopes'][0]
    assert (arm.max_action_rate_hz, arm.multi_bind_group) == (20.0, 'cell')
    assert arm.behavior_bound_ns == 3_000_000_000  # the longest of its types


def test_an_embodiment_without_envelope_has_no_limits() -> None:
    def change(data: Json) -> None:
        del data['embodiments']['arm_01']['envelope']

    arm = made(change)[0].embodiments['arm_01']
    assert arm.envelope is None
    assert arm.max_action_rate_hz is None


def test_only_simulated_worlds_are_reset() -> None:
    assert made()[0].reset_states == ()
    states = {'home': {'service': 'sim/reset'}, 'away': {'service': 'sim/away'}}
    assert made(put('simulation', {'initial_states': states}))[0].reset_states == ('home', 'away')


@pytest.mark.parametrize(
    ('required', 'expected'), [('refuse', True), ('stop', True), ('off', False)]
)
def test_the_audit_log_is_required_unless_switched_off(required: str, expected: bool) -> None:
    assert made(put('audit', {'required': required}))[0].audit_required is expected


def test_an_unknown_adapter_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        made(adapters={'mover': FakeAdapter('mover')})
