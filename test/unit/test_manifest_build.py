"""Tests the world manifest: complete, valid against the canonical schema, always the same."""

from collections.abc import Callable
import json
from pathlib import Path
from typing import Any

from config_sample import ADAPTERS, config, drop, FakeAdapter, put
from jsonschema import Draft202012Validator, ValidationError
import pytest

from awp_ros_bridge.config import BridgeConfig, ChannelFault, load, TopicChannel
from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.manifest import build, declare, manifest_hash
from awp_ros_bridge.manifest.channels import (
    EMBODIMENT_STATE_SCHEMA,
    joint_state_schema,
    payload_schema,
    TF_SCHEMA,
)
from awp_ros_bridge.wire.manifest import WorldManifest

Json = dict[str, Any]
SIM_ARM = Path(__file__).resolve().parents[2] / 'config' / 'sim_arm.yaml'
FORBIDDEN_FIELDS = {'tick', 'ts_sim_ns', 'ts_send_ns', 'ts_mono_ns'}  # AWP-DAT-007


def built(change: Callable[[Json], object] | None = None) -> Json:
    made = config(change)
    return build(made, declare(made, ADAPTERS))


def sim_arm() -> tuple[BridgeConfig, Json]:
    made = load(SIM_ARM).config
    assert made is not None
    adapters = {action.adapter: FakeAdapter(action.adapter) for action in made.actions.values()}
    adapters['stop'] = FakeAdapter('stop', 'builtin', extended=False, needs_motion=False)
    return made, build(made, declare(made, adapters))


def simulated(data: Json) -> None:
    data['simulation'] = {'initial_states': {'home': {'service': 'sim/reset'}}}


def limited(data: Json) -> None:
    arm = data['embodiments']['arm_01']
    arm['description'] = 'an arm'
    arm['multi_bind_group'] = 'cell'
    arm['envelope']['max_action_rate_hz'] = 20
    data['channels']['proprio']['stale_after_ms'] = 50
    data['channels']['proprio']['prismatic'] = ['rail']
    data['actions']['move']['description'] = 'moves'
    data['audit'] = {'redact_paths': ['/note']}


@pytest.mark.parametrize('change', [None, simulated, limited, drop('embodiments/arm_01/channels')])
def test_it_suits_the_canonical_schema_and_our_own_model(change: Any) -> None:
    spec = pytest.importorskip('awp_conformance.spec')
    manifest = built(change)
    assert spec.schema_errors('world-manifest', manifest, sender=True) == []
    WorldManifest.model_validate(json.loads(json.dumps(manifest)))


def test_the_shipped_configuration_suits_the_canonical_schema() -> None:
    spec = pytest.importorskip('awp_conformance.spec')
    _, manifest = sim_arm()
    assert spec.schema_errors('world-manifest', manifest, sender=True) == []
    assert manifest['initial_states'] == ['home']
    channels = [channel['id'] for channel in manifest['observation_channels']]
    assert channels == ['proprio', 'arm_state', 'gripper_state', 'awp.tf']
    for embodiment in manifest['embodiments']:  # AWP-MAN-001
        assert set(embodiment['channels']) <= set(channels)
    stop = manifest['action_schemas'][2]
    assert (stop['type'], stop['duration'], stop['preemption']) == ('stop', 'instant', ['replace'])


def test_the_status_query_is_offered_unless_it_is_switched_off() -> None:
    off = built(put('session', {'status_query': False}))
    assert off['capabilities'] == {}


def test_it_says_all_that_the_configuration_says() -> None:
    manifest = built(limited)
    assert manifest['protocol_version'] == '0.1'
    assert manifest['time_models'] == ['streaming']
    assert manifest['capabilities'] == {'x-acp.session': {'status': {}}}
    assert 'initial_states' not in manifest
    assert manifest['embodiments'] == [
        {
            'id': 'arm_01',
            'kind': 'manipulator',
            'description': 'an arm',
            'multi_bind_group': 'cell',
            'action_types': ['move', 'follow', 'stop'],
            'channels': ['proprio', 'arm_state', 'awp.tf'],
        }
    ]
    move, follow, stop = manifest['action_schemas']
    assert move | {'params_schema': None} == {
        'type': 'move',
        'description': 'moves',
        'params_schema': None,
        'duration': 'extended',
        'preemption': ['replace', 'queue'],
        'concurrency_group': 'arm_motion',
        'max_queue': 4,
        'max_abort_ms': 1500,
        'max_duration_ms': 10000,
    }
    assert follow['preemption'] == ['reject']
    assert (stop['duration'], stop['preemption']) == ('instant', ['replace'])
    assert 'max_abort_ms' not in stop
    assert manifest['safety_policy'] == {
        'envelopes': [
            {
                'embodiment': 'arm_01',
                'spatial': {'frame': 'base', 'aabb_m': [[-0.5, -0.5, 0.0], [0.5, 0.5, 0.8]]},
                'max_velocity_mps': 0.5,
                'max_action_rate_hz': 20.0,
                'enforcement': 'command_check',
                'on_violation': 'reject',
            }
        ],
        'safe_state': {'behavior': 'safe_stop', 'watchdog_ms': 2000},
        'max_basis_age_ms': 500,
        'audit': {'redact_paths': ['/note']},
    }


def test_a_type_without_a_longest_time_or_group_says_so() -> None:
    def change(data: Json) -> None:
        data['embodiments']['arm_01']['actions'] = ['move']
        del data['actions']['move']['concurrency_group']
        del data['actions']['move']['max_duration_ms']

    move = built(change)['action_schemas'][0]
    assert move['concurrency_group'] == 'move'
    assert 'max_duration_ms' not in move


def test_without_frames_there_is_no_tf_channel() -> None:
    def change(data: Json) -> None:
        del data['frames'], data['embodiments']['arm_01']['envelope']

    manifest = built(change)
    assert [c['id'] for c in manifest['observation_channels']] == ['proprio', 'arm_state']
    assert manifest['embodiments'][0]['channels'] == ['proprio', 'arm_state']
    assert manifest['safety_policy']['envelopes'] == []


def test_listing_the_tf_channel_does_not_double_it() -> None:
    manifest = built(put('embodiments/arm_01/channels', ['awp.tf', 'proprio']))
    assert manifest['embodiments'][0]['channels'] == ['awp.tf', 'proprio']


def test_it_is_the_same_every_time() -> None:  # AWP-MAN-003
    assert json.dumps(built(limited)) == json.dumps(built(limited))


def test_the_hash_depends_on_content_and_not_on_order() -> None:
    manifest = built()
    turned = dict(reversed(manifest.items()))
    assert manifest_hash(turned) == manifest_hash(manifest)
    assert manifest_hash({**manifest, 'protocol_version': '0.2'}) != manifest_hash(manifest)
    assert len(manifest_hash(manifest)) == 64


def test_it_shares_nothing_with_others() -> None:
    made = config()
    declarations = declare(made, ADAPTERS)
    first = build(made, declarations)
    declarations['move'].params_schema['properties'].clear()
    first['observation_channels'][0]['schema'].clear()
    assert build(made, declare(made, ADAPTERS))['observation_channels'][0]['schema'] != {}
    assert first['action_schemas'][0]['params_schema']['properties'] != {}


def test_a_params_schema_that_is_none_is_refused() -> None:  # AWP-MAN-002
    class Broken(FakeAdapter):
        def params_schema(self, options: Json) -> Json:
            return {'type': 'objekt'}

    with pytest.raises(Exception, match='objekt'):
        declare(config(), {**ADAPTERS, 'mover': Broken('mover')})


# ---------------------------------------------------------------- payloads


def property_names(schema: Any) -> set[str]:
    names: set[str] = set()
    if isinstance(schema, dict):
        names |= set(schema.get('properties', {}))
        for inner in schema.values():
            names |= property_names(inner)
    elif isinstance(schema, list):
        for inner in schema:
            names |= property_names(inner)
    return names


PAYLOADS = [
    joint_state_schema(False),
    joint_state_schema(True),
    EMBODIMENT_STATE_SCHEMA,
    TF_SCHEMA,
]


@pytest.mark.parametrize('schema', PAYLOADS)
def test_payload_schemas_are_schemas_and_hold_no_frame_metadata(schema: Json) -> None:
    Draft202012Validator.check_schema(schema)
    assert not property_names(schema) & FORBIDDEN_FIELDS


def check(schema: Json, payload: Json) -> None:
    Draft202012Validator(schema).validate(payload)


def test_a_joint_state_has_nulls_for_what_is_not_known() -> None:
    payload: Json = {
        'name': ['a', 'rail'],
        'q_rad': [0.1, None],
        'dq_radps': [None, None],
        'tau_nm': [None, None],
    }
    check(joint_state_schema(False), payload)
    with pytest.raises(ValidationError):
        check(joint_state_schema(True), payload)
    slides = {'q_m': [None, 0.2], 'dq_mps': [None, 0.0], 'f_n': [None, None]}
    check(joint_state_schema(True), payload | slides)
    with pytest.raises(ValidationError):
        check(joint_state_schema(False), payload | slides)


def test_an_embodiment_state_names_what_stops_it() -> None:
    payload: Json = {
        'embodiment': 'arm_01',
        'motion_permitted': False,
        'in_safe_state': True,
        'at_rest': None,
        'action_id': None,
        'action_state': None,
        'progress': None,
        'stops': [
            {'input': 'e_stop', 'meaning': meaning.value, 'detail': ''} for meaning in Meaning
        ],
    }
    check(EMBODIMENT_STATE_SCHEMA, payload)
    running = {'action_id': 'a', 'action_state': 'executing', 'progress': 0.5, 'at_rest': False}
    check(EMBODIMENT_STATE_SCHEMA, payload | running | {'stops': []})
    with pytest.raises(ValidationError):
        check(EMBODIMENT_STATE_SCHEMA, payload | {'action_state': 'completed'})


def test_a_transform_has_position_and_unit_quaternion() -> None:
    transform = {'frame': 'tool0', 'parent': 'base', 'p_m': [0, 0, 1.5], 'q': [0, 0, 0, 1]}
    check(TF_SCHEMA, {'transforms': [transform]})
    with pytest.raises(ValidationError):
        check(TF_SCHEMA, {'transforms': [{**transform, 'q': [0, 0, 1]}]})


class FakeEncoders:
    """Encoders that need no ROS."""

    def faults(self, channel: TopicChannel) -> list[ChannelFault]:
        """Find nothing."""
        return []

    def schema(self, channel: TopicChannel) -> Json:
        """Tell the type."""
        return {'told': channel.type}

    def largest_bytes(self, channel: TopicChannel) -> int | None:
        """Leave it open."""
        return None


def test_the_schemas_of_other_types_are_those_of_their_encoders() -> None:
    def change(data: Json) -> None:
        data['channels']['power'] = {
            'topic': 'power',
            'type': 'sensor_msgs/msg/BatteryState',
            'modality': 'text/event+json',
            'rate_hz': 1,
            'loss_class': 'latest-wins',
            'fields': {'voltage': 'v'},
        }
        data['channels']['camera'] = {
            'topic': 'image',
            'type': 'sensor_msgs/msg/CompressedImage',
            'modality': 'image/jpeg',
            'rate_hz': 20,
            'loss_class': 'latest-wins',
        }

    channels = config(change).channels
    assert payload_schema(channels['power']) == {'x-ros2.type': 'sensor_msgs/msg/BatteryState'}
    found = payload_schema(channels['camera'], FakeEncoders())
    assert found == {'told': 'sensor_msgs/msg/CompressedImage'}
    assert payload_schema(channels['arm_state'], FakeEncoders()) == EMBODIMENT_STATE_SCHEMA
