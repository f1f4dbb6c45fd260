"""Mutated params and manifests meet the same verdict here and under the canonical schemas."""

from copy import deepcopy
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
import pytest

from awp_ros_bridge.wire.errors import WireFault
from awp_ros_bridge.wire.manifest import WorldManifest
from awp_ros_bridge.wire.messages import parse_params

spec = pytest.importorskip('awp_conformance.spec')

Json = dict[str, Any]

STATS = {'count': 1, 'p50': 2, 'p95': 3, 'max': 4}
PARAMS: dict[str, Json] = {
    'initialize': {
        'protocol_versions': ['0.1', '0.2'],
        'agent': {'name': 'a', 'version': '1', 'vendor': 'v'},
        'consumes_modalities': ['proprio/json', 'x-a.b'],
        'time_models': ['lockstep', 'streaming'],
        'max_obs_rate_hz': 30,
        'extensions': {'x-acme.a': 1},
    },
    'ping': {'origin_ns': 1, 'last_status_seq': 2},
    'session.open': {
        'embodiments': ['a', 'b'],
        'mode': 'streaming',
        'subscribe': [{'channel': 'c', 'rate_hz': 5}, {'channel': 'd'}],
        'action_types': ['move', 'stop'],
        'admin': ['reset', 'tick'],
        'seed': 1,
        'takeover': True,
        'transfer_token': 't',
        'task': {'content': [{'type': 'text', 'text': 'x'}, {'type': 'image', 'url': 'u'}]},
        'extensions': {'x-acme.a': 1},
    },
    'session.resume': {'session_token': 't', 'last_status_seq': 0},
    'session.transfer': {'expires_in_ms': 1000},
    'obs.subscribe': {'channels': [{'channel': 'c', 'rate_hz': 5}, {'channel': 'd'}]},
    'obs.unsubscribe': {'channels': ['c', 'd']},
    'obs.report': {
        'window_ms': 5000,
        'sync': {'offset_ns': -1, 'rtt_ns': 1, 'samples': 3},
        'channels': {
            '1': {'frames': 1, 'gaps': 0, 'jitter_ns': 2, 'staleness_ns': STATS},
            '65535': {'frames': 1, 'gaps': 0},
        },
        'decision_latency_ns': STATS,
    },
    'action.submit': {
        'action_id': 'a-1',
        'type': 'move',
        'params': {'pose': {'frame': 'base'}},
        'embodiment_id': 'arm',
        'preempt': 'replace',
        'deadline_ms': 5000,
        'basis_ts_mono_ns': 1,
        'valid_until_ns': 2,
    },
    'action.cancel': {'action_id': 'a-1'},
    'world.reset': {'initial_state': 'home', 'seed': 3},
    'session.close': {'x': 1},
}
# Of these few fields a short search finds nearly all that a long one does.
SMALL_PARAMS = ('action.cancel', 'ping', 'session.close', 'session.resume', 'session.transfer')
MANIFEST: Json = {
    'protocol_version': '0.1',
    'world': {'name': 'w', 'version': '1', 'vendor': 'v'},
    'time_models': ['lockstep', 'streaming'],
    'tick_policy': 'on_tick',
    'tick_authority': 'barrier',
    'capabilities': {'seed': False, 'command_channels': True},
    'initial_states': ['home', 'parked'],
    'embodiments': [
        {
            'id': 'arm',
            'kind': 'manipulator',
            'shared_control': True,
            'arbitration': 'priority',
            'multi_bind_group': 'g',
            'action_types': ['move', 'servo'],
            'channels': ['c'],
        }
    ],
    'observation_channels': [
        {
            'id': 'c',
            'modality': 'proprio/json',
            'rate_hz': 100,
            'loss_class': 'latest-wins',
            'keyframe_interval': 5,
            'stale_after_ms': 20,
            'schema': {},
        }
    ],
    'command_channels': [
        {
            'id': 's',
            'modality': 'x-a.b',
            'rate_hz': None,
            'loss_class': 'reliable',
            'schema': {},
        }
    ],
    'action_schemas': [
        {
            'type': 'move',
            'params_schema': {'type': 'object', 'properties': {'a': {'minimum': 1}}},
            'duration': 'extended',
            'preemption': ['replace', 'queue'],
            'max_queue': 4,
            'max_abort_ms': 100,
            'max_duration_ms': 100,
        },
        {
            'type': 'servo',
            'params_schema': True,
            'duration': 'streaming',
            'preemption': 'replace',
            'command_channel': 's',
            'watchdog_ms': 100,
        },
    ],
    'safety_policy': {
        'envelopes': [
            {
                'embodiment': 'arm',
                'spatial': {'frame': 'base', 'aabb_m': [[0, 0, 0], [1, 1, 1.5]]},
                'max_velocity_mps': 0.5,
                'enforcement': 'both',
                'on_violation': 'reject',
            }
        ],
        'safe_state': {'behavior': 'hold', 'watchdog_ms': 100},
        'audit': {'redact_paths': ['/a']},
    },
}

NUMBERS = [0, 1, -1, 0.5, -0.0, 1.0, 999, 1000.0, 1e300, 2**53 - 1, 2**53, 1 - 2**53, -(2**53)]
WORDS = [
    '',
    ' ',
    'a',
    'a' * 128,
    'a' * 129,
    '\u20ac' * 128,
    'a.b:c-d',
    'a/b',
    '/a',
    '1',
    '0.1',
    '0.1.1',
    'x-acme.foo',
    'x-.foo',
    'X-acme.foo',
    'text',
    'streaming',
    'extended',
    'queue',
    'reset',
    'image/raw',
    'hold',
]
SMALL: st.SearchStrategy[Any] = st.sampled_from([None, True, False, *NUMBERS, *WORDS, [], {}])
VALUES = (
    SMALL
    | st.text(max_size=5)
    | st.integers(-10, 10)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.lists(SMALL, max_size=3)
    | st.dictionaries(
        st.sampled_from(['channel', 'type', 'x-acme.a', '1', 'b']), SMALL, max_size=2
    )
)


def containers(node: Any) -> list[Any]:
    """Return every object and array of a document that is not empty."""
    below = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    found = [inner for value in below for inner in containers(value)]
    return [node, *found] if below else found


def mutate(document: Json, data: st.DataObject) -> Json:
    document = deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        places = containers(document)
        if not places:
            break
        node = data.draw(st.sampled_from(places))
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        match data.draw(st.sampled_from(['set', 'remove', 'copy', 'add'])):
            case 'set':
                node[key] = data.draw(VALUES)
            case 'remove':
                del node[key]
            case 'copy' if isinstance(node, list):
                node.append(deepcopy(node[key]))
            case _ if isinstance(node, dict):
                node[data.draw(st.sampled_from(WORDS))] = data.draw(VALUES)
            case _:
                node.append(data.draw(VALUES))
    return document


def ends_in_newline(node: Any) -> bool:
    """Return whether the judge's own regular expressions would take a name too many."""
    if isinstance(node, dict):
        return any(map(ends_in_newline, [*node, *node.values()]))
    if isinstance(node, list):
        return any(map(ends_in_newline, node))
    return isinstance(node, str) and node.endswith('\n')


def refusal(method: str, params: Json) -> str | None:
    try:
        parse_params(method, params)
    except WireFault as fault:
        return f'{fault.code.message}: {fault.detail}'
    return None


def manifest_refusal(manifest: Json) -> str | None:
    try:
        WorldManifest.model_validate(manifest)
    except ValidationError as error:
        return str(error)
    return None


@pytest.mark.parametrize('method', sorted(set(PARAMS) - set(SMALL_PARAMS)))
@settings(max_examples=100)
@given(data=st.data())
def test_params(method: str, data: st.DataObject) -> None:
    is_judged_alike(method, data)


@pytest.mark.parametrize('method', SMALL_PARAMS)
@given(data=st.data())
def test_small_params(method: str, data: st.DataObject) -> None:
    is_judged_alike(method, data)


def is_judged_alike(method: str, data: st.DataObject) -> None:
    """Mutate params and require that both sides take them, or neither."""
    params = mutate(PARAMS[method], data)
    assume(not ends_in_newline(params))
    sides = spec.METHODS[method]
    errors = spec.schema_errors(sides.get('params') or sides['notification'], params)
    ours = refusal(method, params)
    assert (ours is not None) == bool(errors), ours or errors
    assert ours is None or ours.startswith('Invalid params: ')


@settings(max_examples=100)
@given(data=st.data())
def test_manifest(data: st.DataObject) -> None:
    manifest = mutate(MANIFEST, data)
    assume(not ends_in_newline(manifest))
    errors = spec.schema_errors('world-manifest', manifest)
    ours = manifest_refusal(manifest)
    assert (ours is not None) == bool(errors), ours or errors
