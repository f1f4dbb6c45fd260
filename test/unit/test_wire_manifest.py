"""The world manifest: accepted exactly as by the canonical schema."""

from copy import deepcopy
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError
import pytest

from awp_ros_bridge.wire import fields
from awp_ros_bridge.wire.manifest import WorldManifest

Json = dict[str, Any]


def manifest() -> Json:
    """Return a manifest that uses every part of the schema."""
    return {
        'protocol_version': '0.1',
        'world': {'name': 'w', 'version': '1', 'vendor': 'v', 'url': 'u'},
        'time_models': ['streaming'],
        'capabilities': {'replay': False, 'command_channels': True, 'x-acp.session': {}},
        'initial_states': ['home'],
        'embodiments': [
            {
                'id': 'arm',
                'kind': 'manipulator',
                'action_types': ['move', 'servo', 'stop'],
                'channels': ['state'],
                'shared_control': True,
                'arbitration': 'priority',
                'multi_bind_group': 'cell',
                'description': 'd',
            }
        ],
        'observation_channels': [
            {
                'id': 'state',
                'modality': 'text/event+json',
                'rate_hz': 10,
                'loss_class': 'reliable',
                'keyframe_interval': 1,
                'stale_after_ms': 200,
                'schema': {},
            }
        ],
        'command_channels': [
            {
                'id': 'servo_in',
                'modality': 'x-acme.servo',
                'rate_hz': None,
                'loss_class': 'latest-wins',
                'schema': {'a': 1},
            }
        ],
        'action_schemas': [
            {
                'type': 'move',
                'params_schema': {'type': 'object', '$ref': '#/$defs/pose'},
                'duration': 'extended',
                'preemption': ['replace', 'queue'],
                'concurrency_group': 'arm_motion',
                'max_queue': 4,
                'requires_approval': False,
                'max_abort_ms': 1500,
                'max_duration_ms': 10_000,
                'description': 'd',
            },
            {
                'type': 'servo',
                'params_schema': True,
                'duration': 'streaming',
                'preemption': 'reject',
                'command_channel': 'servo_in',
                'watchdog_ms': 100,
            },
            {'type': 'stop', 'params_schema': {}, 'duration': 'instant', 'preemption': 'replace'},
        ],
        'safety_policy': {
            'envelopes': [
                {
                    'embodiment': 'arm',
                    'spatial': {'frame': 'base', 'aabb_m': [[-1, -1, 0], [1, 1, 1.5]]},
                    'max_velocity_mps': 0.5,
                    'max_force_n': 10,
                    'max_action_rate_hz': 20,
                    'enforcement': 'both',
                    'on_violation': 'reject',
                }
            ],
            'safe_state': {'behavior': 'hold', 'watchdog_ms': 2000},
            'max_basis_age_ms': 500,
            'approval_timeout_ms': 1,
            'standing_approvals': True,
            'approval_channel': '',
            'audit': {'redact_paths': ['/a']},
        },
        '$defs': {'pose': {'type': 'object'}},
        'extensions': {'x-acme.a': 1},
        'x-acme.other': [1],
    }


def changed(path: str, value: Any) -> Json:
    """Return the manifest with one value replaced, or removed where value is ``...``."""
    result = manifest()
    *parents, last = [int(part) if part.isdigit() else part for part in path.split('/')]
    node: Any = result
    for part in parents:
        node = node[part]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return result


def accepts(candidate: Json) -> bool:
    try:
        WorldManifest.model_validate(candidate)
    except ValidationError:
        return False
    return True


def canonical(candidate: Json) -> bool:
    spec = pytest.importorskip('awp_conformance.spec')
    return not spec.schema_errors('world-manifest', candidate)


SCHEMA = 'action_schemas/0/params_schema'
ENVELOPE = 'safety_policy/envelopes/0'
BOX_CORNERS = f'{ENVELOPE}/spatial/aabb_m'

CASES: list[tuple[str, list[Any]]] = [
    ('protocol_version', [..., None, '1', '0.1.2', 0.1]),
    ('world', [..., None, {}, []]),
    ('world/name', [..., '', 1]),
    ('time_models', [..., [], ['lockstep'], ['streaming', 'streaming'], ['warp'], 'streaming']),
    ('tick_policy', ['on_tick', 'free', None]),
    ('tick_authority', ['barrier', 'any_session', 'me', None]),
    ('capabilities', [..., None, {}, [], {'command_channels': False}]),
    ('capabilities/replay', [..., True, 1, None]),
    ('capabilities/command_channels', [..., False, 1]),
    ('initial_states', [..., [], ['home', 'home'], ['1'], None]),
    ('embodiments', [..., [], None, {}]),
    ('embodiments/0/id', [..., None, '', 'a/b', 'a' * 129]),
    ('embodiments/0/kind', [..., '', 1]),
    ('embodiments/0/action_types', [..., [], ['a', 'a'], [1], 'a']),
    ('embodiments/0/channels', [..., [], ['a', 'a']]),
    ('embodiments/0/shared_control', [..., False, 1, None]),
    ('embodiments/0/arbitration', [..., '', None, 1]),
    ('embodiments/0/multi_bind_group', [..., None, '']),
    ('embodiments/0/description', [..., None, 1]),
    ('observation_channels', [..., [], None]),
    ('observation_channels/0/modality', [..., 'image/png', 'x-acme.m', 'x-acme', None]),
    ('observation_channels/0/rate_hz', [..., None, 0, -1, 0.1, True, '5']),
    ('observation_channels/0/loss_class', [..., 'latest_wins', None]),
    ('observation_channels/0/keyframe_interval', [..., 0, 1.0, 1.5, None]),
    ('observation_channels/0/stale_after_ms', [..., 0, None]),
    ('observation_channels/0/schema', [..., None, [], {'a': 1}]),
    ('command_channels', [..., [], None]),
    ('action_schemas', [..., [], None]),
    (SCHEMA, [..., None, False, [], 1, {'type': 'objekt'}, {'minimum': 'a'}, {'x': 1}]),
    ('action_schemas/0/duration', [..., 'streaming', 'instant', 'forever']),
    ('action_schemas/0/preemption', [..., 'queue', [], ['queue', 'queue'], ['a'], None, 'a']),
    ('action_schemas/0/concurrency_group', [..., None, '']),
    ('action_schemas/0/max_queue', [..., 0, None, 1.0]),
    ('action_schemas/0/requires_approval', [..., True, None, 0]),
    ('action_schemas/0/command_channel', ['servo_in']),
    ('action_schemas/0/watchdog_ms', [100]),
    ('action_schemas/0/max_abort_ms', [..., 0, None]),
    ('action_schemas/0/max_duration_ms', [..., 0, None]),
    ('action_schemas/1/command_channel', [..., None, '']),
    ('action_schemas/1/watchdog_ms', [..., None, 0]),
    ('action_schemas/1/duration', ['extended', 'instant']),
    ('safety_policy', [..., None, {}, {'envelopes': []}]),
    ('safety_policy/safe_state', [..., None, {}, {'behavior': 'hold'}]),
    ('safety_policy/safe_state/behavior', ['park', 'x-acme.sit', 'sit', None]),
    ('safety_policy/safe_state/watchdog_ms', [0, 0.5, '1', None]),
    ('safety_policy/max_basis_age_ms', [..., 0, None]),
    ('safety_policy/approval_timeout_ms', [..., 0, None]),
    ('safety_policy/standing_approvals', [..., 1, None]),
    ('safety_policy/approval_channel', [..., 1, None]),
    ('safety_policy/audit', [..., {}, None]),
    ('safety_policy/audit/redact_paths', [..., [], ['a'], '/a', None]),
    (ENVELOPE, [None, {}, {'embodiment': 'arm'}]),
    (f'{ENVELOPE}/on_violation', [..., 'clamp', 'ignore']),
    (f'{ENVELOPE}/enforcement', [..., 'measured', None]),
    (f'{ENVELOPE}/max_velocity_mps', [..., 0, None, True]),
    (f'{ENVELOPE}/spatial', [..., None, {}, {'frame': 'base'}]),
    (BOX_CORNERS, [[], [[0, 0, 0]], [[0, 0], [1, 1, 1]], [[0, 0, 0], [1, 1, '1']], None]),
    (BOX_CORNERS, [[[0, 0, 0], [1, 1, 1], [2, 2, 2]], [[0.5, 0, 0], [1, 1, 1]]]),
    ('$defs', [..., None, [], {}]),
    ('extensions', [..., None, {'a': 1}]),
]


def test_the_whole_manifest_is_accepted() -> None:
    assert canonical(manifest())
    parsed = WorldManifest.model_validate(manifest())
    assert parsed.embodiments[0].action_types == ('move', 'servo', 'stop')
    assert parsed.observation_channels[0].schema_ == {}
    assert parsed.defs == {'pose': {'type': 'object'}}
    assert parsed.capabilities is not None
    assert parsed.capabilities.model_extra == {'x-acp.session': {}}


@pytest.mark.parametrize(
    ('path', 'value'), [(path, value) for path, values in CASES for value in values]
)
def test_agrees_with_the_canonical_schema(path: str, value: Any) -> None:
    candidate = changed(path, value)
    before = deepcopy(candidate)
    assert accepts(candidate) == canonical(candidate)
    assert candidate == before


@pytest.mark.parametrize(
    ('change', 'verdict'),
    [
        ({'time_models': ['lockstep']}, False),
        ({'time_models': ['lockstep'], 'tick_policy': 'on_tick'}, False),
        (
            {'time_models': ['lockstep'], 'tick_policy': 'on_tick', 'tick_authority': 'barrier'},
            True,
        ),
        ({'time_models': ['lockstep', 'streaming'], 'tick_authority': 'barrier'}, False),
    ],
)
def test_lockstep_needs_its_policy(change: Json, verdict: bool) -> None:
    candidate = {**manifest(), **change}
    assert accepts(candidate) == canonical(candidate) == verdict


def test_params_schemas_with_broken_patterns_are_refused() -> None:
    # The canonical schema lets them pass; no params could ever be checked with them.
    with pytest.raises(ValidationError, match='not JSON Schema 2020-12'):
        WorldManifest.model_validate(changed(SCHEMA, {'pattern': '('}))


def test_numbers_are_finite() -> None:
    assert not accepts(changed(f'{ENVELOPE}/max_velocity_mps', float('inf')))


def test_a_field_that_may_be_left_out_must_include_none() -> None:
    with pytest.raises(TypeError, match='cannot be left out'):
        TypeAdapter(Annotated[int, fields._NeverNull()])
