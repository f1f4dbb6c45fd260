"""Tests the rules between values: each finds what it is for, and nothing else."""

from collections.abc import Callable
import json
from typing import Any

from config_sample import ADAPTERS, drop, FakeAdapter, loaded, put, said, sample
import pytest

from awp_ros_bridge.config import (
    ChannelFault,
    load_text,
    LoadResult,
    Severity,
    TopicChannel,
)

Json = dict[str, Any]
INPUT = 'embodiments/arm_01/safety_inputs/0'


def both(*changes: Callable[[Json], object]) -> Callable[[Json], None]:
    def change(data: Json) -> None:
        for each in changes:
            each(data)

    return change


def second_body(data: Json) -> None:
    """Add a second embodiment that shares actions, group and state channel of the first."""
    data['embodiments']['arm_02'] = {**data['embodiments']['arm_01']}


SCALING = {
    'topic': 'speed', 'type': 'std_msgs/msg/Float64', 'field': 'data', 'full': 100.0,
}  # fmt: skip


ERRORS = [
    (
        both(
            put('embodiments/arm_01/at_rest', {'unmeasured': True, 'settle_ms': 500}),
            put('actions/move/stall_after_ms', 5000),
        ),
        'actions.move.stall_after_ms: nothing measures whether arm_01 moves; '
        'remove it, or measure at_rest of arm_01 by joint states, odometry or tf',
    ),
    (
        put('actions/move/stall_after_ms', 10_000),
        'actions.move.stall_after_ms: 10000 ms is not below max_duration_ms, 10000 ms; '
        'lower it, or remove it: the action would always end at max_duration_ms',
    ),
    (
        both(put('safety/watchdog_ms', 3000), put('session/reconnect_window_ms', 2999)),
        'safety.watchdog_ms: 3000 ms is longer than session.reconnect_window_ms, 2999 ms; '
        'lower it, or raise the window (AWP-SAF-003)',
    ),
    (
        put('embodiments/arm_01/channels/0', 'propio'),
        "embodiments.arm_01.channels[0]: channel 'propio' is not declared; "
        "declare it in channels; did you mean 'proprio'?",
    ),
    (
        put('embodiments/arm_01/envelope/spatial/frame', 'bace'),
        "embodiments.arm_01.envelope.spatial.frame: frame 'bace' is not declared; "
        "add it to frames.include; did you mean 'base'?",
    ),
    (
        put('channels/arm_state/embodiment', 'arm_1'),
        "channels.arm_state.embodiment: embodiment 'arm_1' is not declared; "
        "declare it in embodiments; did you mean 'arm_01'?",
    ),
    (
        put('embodiments/arm_01/actions', ['move', 'follow', 'stop', 'move']),
        "embodiments.arm_01.actions: 'move' stands 2 times; keep one of them",
    ),
    (
        put('actions/move/preemption', ['replace', 'queue', 'replace']),
        "actions.move.preemption: 'replace' stands 2 times; keep one of them",
    ),
    (
        put('actions/follow/concurrency_group', 'other'),
        "embodiments.arm_01.actions[1]: 'follow' (group 'other') could run while 'move' runs; "
        'give both one concurrency_group, or make what moves independently an embodiment of its '
        'own (AWP-PRE-006)',
    ),
    (
        drop('actions/follow/concurrency_group'),
        "embodiments.arm_01.actions[1]: 'follow' (group 'follow') could run while 'move' runs; "
        'give both one concurrency_group, or make what moves independently an embodiment of its '
        'own (AWP-PRE-006)',
    ),
    (
        drop('actions/move/max_queue'),
        'actions.move.preemption: queue is offered without a depth; '
        'add max_queue, such as 4 (AWP-PRE-002)',
    ),
    (
        put('actions/follow/max_queue', 3),
        'actions.follow.max_queue: there is no queue to limit; '
        'add queue to preemption, or remove max_queue',
    ),
    (
        put('actions/move/ros_service', 'arm/move'),
        'actions.move.ros_service: the type names an action server and a service; '
        'keep one, or make two types',
    ),
    (
        put('server', {'tokens_file': 'a', 'token_env': 'B'}),
        'server.token_env: there are two sources of tokens; keep tokens_file or token_env',
    ),
    (
        put('server', {'host': '192.168.1.10'}),
        "server.host: '192.168.1.10' is reachable from other machines, and there is no TLS; "
        'add server.tls with cert and key, or use 127.0.0.1 and a TLS proxy in front '
        '(server.public_url names it)',
    ),
    (
        put('server', {'host': '0.0.0.0', 'tls': {'cert': 'c', 'key': 'k'}}),
        "server.host: '0.0.0.0' stands for every address, so it is not known how agents call the "
        'bridge; list those names in server.host_names, or set server.public_url',
    ),
    (
        put('server', {'tls': {'cert': 'c'}}),
        "server.tls.key: 'key' is missing; add it",
    ),
    (
        put('server', {'origins': ['*']}),
        "server.origins[0]: '*' is not an origin as browsers send it; "
        'write https://host or https://host:port in small letters, no path and no *',
    ),
    (
        put('server', {'host_names': ['robot.example:8710']}),
        "server.host_names[0]: 'robot.example:8710' is not the name of a host; "
        'write the name or address alone, without scheme, port, brackets or *',
    ),
    (
        put('audit', {'max_file_mb': 100, 'quota_mb': 199}),
        'audit.quota_mb: 199 MB is less than 2 files of audit.max_file_mb, 100 MB; '
        'raise it, or lower max_file_mb',
    ),
    (
        put('channels/awp.mine', {'source': 'embodiment_state', 'embodiment': 'arm_01'}),
        'channels.awp.mine: names that begin with awp. belong to the protocol; choose another; '
        'awp.tf is declared by the bridge when frames are included',
    ),
    (
        second_body,
        'channels.arm_state: arm_01, arm_02 list it, so it is not clear of which it tells; '
        'add embodiment, or declare one channel each',
    ),
    (
        put('channels/proprio/frame', 'bas'),
        "channels.proprio.frame: frame 'bas' is not declared; add it to frames.include; "
        "did you mean 'base'?",
    ),
    (
        put('frames/include/hand', 'tool0'),
        "frames.include.hand: tf frame 'tool0' is already the AWP frame 'tool0'; "
        'keep one of the names',
    ),
    (
        put('frames/include/base', 'world'),
        "frames.include.base: tf frame 'world' is already the AWP frame 'world'; "
        'keep one of the names',
    ),
    (
        put('embodiments/arm_01/at_rest', {'unmeasured': True, 'settle_ms': 2000}),
        "embodiments.arm_01.at_rest.settle_ms: 2000 ms is not within max_abort_ms of 'move', "
        '1500 ms; lower it, or raise max_abort_ms: a cancel could never end well',
    ),
    (
        put('embodiments/arm_01/at_rest/for_ms', 1500),
        "embodiments.arm_01.at_rest.for_ms: 1500 ms is not within max_abort_ms of 'move', "
        '1500 ms; lower it, or raise max_abort_ms: a cancel could never end well',
    ),
    (
        put(f'{INPUT}/means', 'operator_stop'),
        'embodiments.arm_01.safety_inputs[0].means: operator_stop comes from the bridge itself, '
        'not from a topic; write e_stop, protective_stop or fault',
    ),
    (
        put(f'{INPUT}/unsafe_when', 'on'),
        'embodiments.arm_01.safety_inputs[0].unsafe_when: a Bool is only ever true or false; '
        'write true or false',
    ),
    (
        both(
            put(f'{INPUT}/type', 'std_msgs/msg/Float64'),
            put(f'{INPUT}/unsafe_when', {'below': 30, 'above': 20}),
        ),
        'embodiments.arm_01.safety_inputs[0].unsafe_when: every number is below 30.0 or above '
        '20.0; swap the two: values from below to above are safe',
    ),
    (
        put('embodiments/arm_01/stop_steps', ['wait_at_rest', 'cancel_goals']),
        'embodiments.arm_01.stop_steps: cancel_goals is not the first step; '
        'begin with cancel_goals',
    ),
]


@pytest.mark.parametrize(('change', 'problem'), ERRORS)
def test_a_rule_finds_what_it_is_for(change: Any, problem: str) -> None:
    result = loaded(change)
    assert result.config is None
    assert problem in said(result)
    assert all(each.line > 0 for each in result.problems)


WARNINGS = [
    (
        put('embodiments/arm_01/speed_scaling', SCALING),
        'embodiments.arm_01.speed_scaling: no action of arm_01 has stall_after_ms, the only thing '
        'that it stretches; add stall_after_ms to an action, such as 5000, or remove it',
    ),
    (
        both(
            put('embodiments/arm_01/speed_scaling', {**SCALING, 'topic': '/speed'}),
            put('actions/move/stall_after_ms', 5000),
        ),
        "embodiments.arm_01.speed_scaling.topic: '/speed' is absolute, a namespace does not move "
        "it; write 'speed', unless the name is meant for the whole domain",
    ),
    (
        put('channels/spare', {'source': 'embodiment_state', 'embodiment': 'arm_01'}),
        "channels.spare: no embodiment lists 'spare'; "
        'add it to the channels of an embodiment, or remove it',
    ),
    (
        put('actions/spare', {'adapter': 'stopper', 'concurrency_group': 'arm_motion'}),
        "actions.spare: no embodiment lists 'spare'; "
        'add it to the actions of an embodiment, or remove it',
    ),
    (
        put('channels/proprio/topic', '/joint_states'),
        "channels.proprio.topic: '/joint_states' is absolute, a namespace does not move it; "
        "write 'joint_states', unless the name is meant for the whole domain",
    ),
    (
        put('actions/move/ros_action', '/arm/move'),
        "actions.move.ros_action: '/arm/move' is absolute, a namespace does not move it; "
        "write 'arm/move', unless the name is meant for the whole domain",
    ),
    (
        put(f'{INPUT}/topic', '/e_stop'),
        "embodiments.arm_01.safety_inputs[0].topic: '/e_stop' is absolute, a namespace does not "
        "move it; write 'e_stop', unless the name is meant for the whole domain",
    ),
    (
        drop('embodiments/arm_01/safety_inputs'),  # F95
        'embodiments.arm_01: it has no safety_inputs: no e-stop or mode of the hardware forbids '
        'its motion, only joint states that fall silent; list the topics that say when it must '
        'not move, here or in safety.inputs',
    ),
    (
        both(
            drop('embodiments/arm_01/safety_inputs'),
            put('embodiments/arm_01/at_rest', {'unmeasured': True, 'settle_ms': 1000}),
        ),
        'embodiments.arm_01: it has no safety_inputs: nothing of the hardware can forbid its '
        'motion; list the topics that say when it must not move, here or in safety.inputs',
    ),
]


def test_a_stall_with_its_scaling_is_no_problem() -> None:
    change = both(
        put('embodiments/arm_01/speed_scaling', SCALING), put('actions/move/stall_after_ms', 5000)
    )
    assert said(loaded(change)) == []


@pytest.mark.parametrize(
    ('path', 'value', 'problem'),
    [
        (
            'actions/move/stall_after_ms',
            499,
            'actions.move.stall_after_ms: 499 ms is out of range, the least is 500 ms; raise it',
        ),
        (
            'embodiments/arm_01/speed_scaling',
            {**SCALING, 'full': 0.0},
            'embodiments.arm_01.speed_scaling.full: 0 is out of range, it must be more than 0; '
            'raise it',
        ),
        (
            'embodiments/arm_01/speed_scaling',
            {key: value for key, value in SCALING.items() if key != 'full'},
            'embodiments.arm_01.speed_scaling.full: ',
        ),
        (
            'embodiments/arm_01/speed_scaling',
            {**SCALING, 'field': 'data[name=x]'},
            "embodiments.arm_01.speed_scaling.field: 'data[name=x]' is not a field path; ",
        ),
    ],
)
def test_what_stalls_are_told_by_is_strict(path: str, value: Any, problem: str) -> None:
    (found,) = said(loaded(put(path, value)))
    assert found.startswith(problem)


@pytest.mark.parametrize(('change', 'problem'), WARNINGS)
def test_a_doubt_is_a_warning(change: Any, problem: str) -> None:
    result = loaded(change)
    assert result.config is not None
    assert said(result) == [problem]
    assert result.problems[0].severity is Severity.WARNING


@pytest.mark.parametrize('name', ['arm.01', 'arm:1', 'arm-1', '_arm', 'arm__1'])
def test_embodiments_can_be_part_of_topic_names(name: str) -> None:
    def change(data: Json) -> None:
        data['embodiments'][name] = data['embodiments'].pop('arm_01')

    assert said(loaded(change)) == [
        f"embodiments.{name}: '{name}' cannot be part of a topic name; "
        'begin with a letter, then letters, digits and single _'
    ]


@pytest.mark.parametrize('host', ['127.0.0.1', '127.8.8.8', '::1', 'localhost'])
def test_loopback_may_be_served(host: str) -> None:
    assert loaded(put('server/host', host)).problems == ()


@pytest.mark.parametrize('host', ['0.0.0.0', '::', '192.168.1.7', 'robot.local'])
def test_other_machines_may_not_be_served_without_tls(host: str) -> None:
    assert said(loaded(put('server', {'host': host, 'host_names': ['robot.example']}))) == [
        f"server.host: '{host}' is reachable from other machines, and there is no TLS; "
        'add server.tls with cert and key, or use 127.0.0.1 and a TLS proxy in front '
        '(server.public_url names it)'
    ]


def test_the_tf_channel_needs_frames() -> None:
    def change(data: Json) -> None:
        data['embodiments']['arm_01']['channels'].append('awp.tf')

    assert loaded(change).problems == ()
    without = loaded(both(change, drop('frames'), drop('embodiments/arm_01/envelope')))
    assert said(without) == [
        'embodiments.arm_01.channels: awp.tf is listed, but frames.include is empty; '
        'add frames, or remove the channel from the list'
    ]
    assert loaded(both(drop('frames'), drop('embodiments/arm_01/envelope'))).problems == ()


def test_two_embodiments_may_share_types_and_groups() -> None:
    result = loaded(both(second_body, put('channels/arm_state/embodiment', 'arm_01')))
    assert result.problems == ()


def test_two_inputs_of_one_embodiment_have_different_names() -> None:
    def change(data: Json) -> None:
        inputs = data['embodiments']['arm_01']['safety_inputs']
        inputs.append({**inputs[0]})

    assert said(loaded(change)) == [
        "embodiments.arm_01.safety_inputs[1]: it is called 'safety/e_stop', as safety_inputs[0] "
        'is; give it a name of its own'
    ]


def test_an_embodiment_of_services_and_built_ins_has_no_group_to_share() -> None:
    change = both(
        put('actions/call', {'adapter': 'caller', 'ros_service': 'arm/call'}),
        put('embodiments/arm_01/actions', ['call', 'stop']),
        drop('embodiments/arm_01/envelope'),
    )
    assert loaded(change).config is not None


def test_a_service_beside_goals_needs_no_group() -> None:
    change = both(
        put('actions/call', {'adapter': 'caller', 'ros_service': 'arm/call'}),
        put('embodiments/arm_01/actions', ['move', 'follow', 'call', 'stop']),
    )
    assert loaded(change, ADAPTERS).problems == ()


# ---------------------------------------------------------------- with adapters


def with_adapters(change: Callable[[Json], object] | None = None, **more: Any) -> LoadResult:
    return loaded(change, {**ADAPTERS, **more})


def test_the_sample_suits_its_adapters() -> None:
    result = with_adapters()
    assert result.problems == ()
    assert result.adapters_checked


ADAPTER_ERRORS = [
    (
        put('actions/stop/stall_after_ms', 5000),
        "actions.stop.stall_after_ms: adapter 'stopper' runs no goal that could stall; remove it",
    ),
    (
        put('actions/move/adapter', 'moverr'),
        "actions.move.adapter: there is no adapter 'moverr'; did you mean 'mover'?",
    ),
    (
        put('actions/move/adapter', 'xyz'),
        "actions.move.adapter: there is no adapter 'xyz'; "
        'known here: caller, follower, mover, stopper',
    ),
    (
        drop('actions/move/ros_action'),
        "actions.move: adapter 'mover' needs ros_action; add ros_action: the name of the server "
        'of type test_msgs/action/Fibonacci',
    ),
    (
        put('actions/stop/ros_service', 'stop'),
        "actions.stop.ros_service: adapter 'stopper' has no use for ros_service; remove it",
    ),
    (
        drop('actions/move/max_duration_ms'),
        'actions.move: the type takes time and has no longest time; '
        'add max_duration_ms, such as 10000 (AWP-ROB-007)',
    ),
    (
        put('actions/move/replace', 'native'),
        "actions.move.replace: adapter 'mover' cannot replace a running goal natively; "
        'write stop_first',
    ),
    (
        put('actions/move/options', {'speed': 'fast'}),
        "actions.move: adapter 'mover' cannot use its options: speed must be a number; "
        'correct options',
    ),
    (
        put('actions/move/options', {'sped': 0.1}),
        "actions.move.options.sped: adapter 'mover' has no option 'sped'; did you mean 'speed'?",
    ),
]


@pytest.mark.parametrize(('change', 'problem'), ADAPTER_ERRORS)
def test_an_action_suits_its_adapter(change: Any, problem: str) -> None:
    result = with_adapters(change)
    assert result.config is None
    assert said(result) == [problem]
    assert loaded(change).config is not None  # without adapters nobody can know


def test_a_limit_that_a_type_cannot_keep_is_refused_naming_both() -> None:
    result = with_adapters(mover=FakeAdapter('mover', limits=frozenset({'spatial'})))
    assert said(result) == [
        'embodiments.arm_01.envelope.max_velocity_mps: max_velocity_mps cannot be checked on '
        "'move' (adapter 'mover'); remove max_velocity_mps from the envelope or 'move' from the "
        'embodiment, or write enforcement: measured (AWP-ENV-001, AWP-ENV-005)'
    ]


def test_a_type_without_limits_needs_no_check_of_them() -> None:
    change = drop('embodiments/arm_01/envelope')
    assert with_adapters(change, mover=FakeAdapter('mover', limits=frozenset())).problems == ()


def test_native_replacing_suits_a_server_that_blends() -> None:
    assert with_adapters(put('actions/follow/replace', 'native')).problems == ()


def test_a_built_in_alone_in_its_group_is_doubtful() -> None:
    result = with_adapters(drop('actions/stop/concurrency_group'))
    assert said(result) == [
        "actions.stop: 'stop' is alone in its concurrency group and acts on nothing; "
        'give it the concurrency_group of the types it is for'
    ]
    assert result.config is not None


class FakeEncoders:
    """Encoders that need no ROS: one fault, a warning, and a size."""

    def faults(self, channel: TopicChannel) -> list[ChannelFault]:
        """Find something in the modality, and something that is missing."""
        return [
            ChannelFault(('modality',), 'it is wrong', 'mend it'),
            ChannelFault((), 'it lacks units', 'add fields', ('fields',), is_warning=True),
        ]

    def schema(self, channel: TopicChannel) -> Json:
        """Tell nothing."""
        return {}

    def largest_bytes(self, channel: TopicChannel) -> int | None:
        """Tell the largest payload that would not pass."""
        return 16_777_216 - 49


def test_what_encoders_find_stands_at_its_line_beside_other_problems() -> None:
    data = sample()
    put('frames/include/hand', 'tool0')(data)
    text = json.dumps(data, indent=1)
    found = load_text(text, 'robot.yaml', encoders=FakeEncoders())
    assert found.config is None
    assert {p.path for p in found.problems} == {
        'channels.proprio',
        'channels.proprio.modality',
        'channels.proprio.image',
        'frames.include.hand',
    }
    by_path = {p.path: p for p in found.problems}
    assert by_path['channels.proprio'].severity is Severity.WARNING
    assert by_path['channels.proprio.modality'].what == 'it is wrong'
    assert by_path['channels.proprio.image'].what == (
        'an image has 16777167 bytes, the most that server.max_frame_bytes lets pass is 16777166'
    )
    assert all(p.line > 1 for p in found.problems)
