"""The forms of a safety input: what each comes down to, and what the loader refuses."""

from __future__ import annotations

from typing import Any

from config_sample import config, loaded, put, said
import pytest

from awp_ros_bridge.config import InputSpec, JointParts, Part
from awp_ros_bridge.config.field_path import field_steps, Item
from awp_ros_bridge.engine.inputs import Meaning

INPUT = 'embodiments/arm_01/safety_inputs/0'


def spec(form: dict[str, Any]) -> InputSpec:
    (each,) = config(put(INPUT, form)).embodiments['arm_01'].safety_inputs
    return each.spec


def means(part: Part, value: object) -> Meaning | None:
    """Return what a value means to a part, None where it permits motion."""
    return next((rule.means for rule in part.rules if rule.unsafe.holds(value)), None)


def only(found: InputSpec) -> Part:
    assert not isinstance(found.parts, JointParts)
    (part,) = found.parts
    return part


# ---------------------------------------------------------------- ready-made forms


def test_a_bool_is_an_e_stop_that_renews_itself() -> None:
    found = spec({'kind': 'bool', 'topic': 'safety/e_stop'})
    assert (found.label, found.type, found.companion) == (
        'safety/e_stop', 'std_msgs/msg/Bool', None,
    )  # fmt: skip
    assert found.latch == 'until_clear'
    part = only(found)
    assert part.path == 'data'
    assert means(part, True) is Meaning.E_STOP
    assert means(part, False) is None
    assert means(part, 0) is Meaning.E_STOP, 'what is no bool is not understood'


def test_a_bool_may_be_the_other_way_round() -> None:
    part = only(
        spec({'kind': 'bool', 'topic': 't', 'unsafe_when': False, 'means': 'not_ready'})
    )
    assert means(part, False) is Meaning.NOT_READY
    assert means(part, True) is None


@pytest.mark.parametrize(
    ('unsafe_from', 'level', 'is_unsafe'),
    [
        ('error', 0, False), ('error', 1, False), ('error', 2, True), ('error', 3, True),
        ('error', 4, True), ('error', 255, True), ('warn', 1, True), ('warn', 0, False),
    ],
)  # fmt: skip
def test_a_diagnostic_is_safe_up_to_a_level_and_unknown_levels_are_not(
    unsafe_from: str, level: int, is_unsafe: bool
) -> None:
    form = {'kind': 'diagnostics', 'items': ['arm: drive'], 'unsafe_from': unsafe_from}
    found = spec(form)
    assert found.topic == '/diagnostics'
    part = only(found)
    assert part.path == 'status[name=arm: drive].level'
    assert part.may_lack
    assert means(part, level) is (Meaning.FAULT if is_unsafe else None)


UR_SAFETY = {
    1: None, 2: None,
    3: Meaning.PROTECTIVE_STOP, 5: Meaning.PROTECTIVE_STOP,
    12: Meaning.PROTECTIVE_STOP, 13: Meaning.PROTECTIVE_STOP,
    6: Meaning.E_STOP, 7: Meaning.E_STOP,
    4: Meaning.FAULT, 8: Meaning.FAULT, 9: Meaning.FAULT, 10: Meaning.FAULT, 11: Meaning.FAULT,
    0: Meaning.FAULT, 14: Meaning.FAULT, 99: Meaning.FAULT,
}  # fmt: skip


@pytest.mark.parametrize(('mode', 'meaning'), UR_SAFETY.items())
def test_each_ur_safety_mode_has_its_meaning(mode: int, meaning: Meaning | None) -> None:
    found = spec({'kind': 'ur_safety_mode'})
    assert found.type == 'ur_dashboard_msgs/msg/SafetyMode'
    assert found.companion == 'joint_states'
    assert means(only(found), mode) is meaning


@pytest.mark.parametrize('mode', range(-1, 10))
def test_a_ur_moves_in_mode_running_only(mode: int) -> None:
    part = only(spec({'kind': 'ur_robot_mode'}))
    assert means(part, mode) is (None if mode == 7 else Meaning.NOT_READY)


def test_a_ur_needs_its_program() -> None:
    part = only(spec({'kind': 'ur_program_running'}))
    assert means(part, True) is None
    assert means(part, False) is Meaning.NOT_READY


def test_every_controller_must_be_there_and_active() -> None:
    found = spec({'kind': 'controller_state', 'controllers': ['arm', 'broadcaster']})
    assert not isinstance(found.parts, JointParts)
    assert [part.path for part in found.parts] == [
        'controllers[name=arm].state.label',
        'controllers[name=broadcaster].state.label',
    ]
    for part in found.parts:
        assert not part.may_lack
        assert means(part, 'active') is None
        assert means(part, 'inactive') is Meaning.NOT_READY
        assert means(part, '') is Meaning.NOT_READY


@pytest.mark.parametrize(
    ('charge', 'is_unsafe'),
    [(0.5, False), (0.2, False), (0.19, True), (1.0, False), (55.0, True), (float('nan'), True)],
)
def test_a_battery_is_unsafe_below_its_least_charge_and_where_it_is_not_measured(
    charge: float, is_unsafe: bool
) -> None:
    part = only(spec({'kind': 'battery', 'min_percentage': 0.2}))
    assert means(part, charge) is (Meaning.NOT_READY if is_unsafe else None)


def test_joint_states_name_their_joints() -> None:
    found = spec({'kind': 'joint_states', 'joints': ['j1'], 'fields': ['position']})
    assert found.parts == JointParts(('j1',), ('position',))
    assert spec({'kind': 'joint_states'}).parts == JointParts(None, ('position', 'velocity'))


def test_an_input_may_latch_until_an_operator_clears_it() -> None:
    assert spec({'kind': 'bool', 'topic': 't', 'latch': 'until_operator'}).latch == (
        'until_operator'
    )


# ---------------------------------------------------------------- the world


def test_inputs_of_the_world_stand_beside_those_of_the_embodiments() -> None:
    form = {'kind': 'bool', 'topic': 'safety/cell'}
    (each,) = config(put('safety', {'inputs': [form]})).safety.inputs
    assert each.spec.label == 'safety/cell'


def test_a_world_input_alone_guards_every_embodiment() -> None:
    def change(data: Any) -> None:
        del data['embodiments']['arm_01']['safety_inputs']
        data['safety'] = {'inputs': [{'kind': 'bool', 'topic': 'safety/cell'}]}

    assert said(loaded(change)) == []


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        (
            put('safety', {'inputs': [{'kind': 'bool', 'topic': 'safety/e_stop'}]}),
            "embodiments.arm_01.safety_inputs[0]: it is called 'safety/e_stop', as "
            'safety.inputs[0] is; give it a name of its own',
        ),
        (
            put('safety', {'inputs': [{'kind': 'bool', 'topic': 't'}] * 2}),
            "safety.inputs[1]: it is called 't', as safety.inputs[0] is; "
            'give it a name of its own',
        ),
        (
            put('safety', {'inputs': [{'kind': 'bool', 'topic': 't', 'means': 'operator_stop'}]}),
            'safety.inputs[0].means: operator_stop comes from the bridge itself, not from a '
            'topic; write e_stop, protective_stop or fault',
        ),
        (
            put('safety', {'inputs': [{'kind': 'bool', 'topic': '/t'}]}),
            "safety.inputs[0].topic: '/t' is absolute, a namespace does not move it; write 't', "
            'unless the name is meant for the whole domain',
        ),
        (
            put(INPUT, {'kind': 'bol', 'topic': 't'}),
            'embodiments.arm_01.safety_inputs[0]: expected one of no kind at all, bool, '
            'diagnostics, ur_safety_mode, ur_robot_mode, ur_program_running, controller_state, '
            "battery, joint_states, found the text 'bol'; did you mean 'bool'?",
        ),
        (
            put(INPUT, {'kind': 'bool', 'topic': 't', 'field': 'data'}),
            "embodiments.arm_01.safety_inputs[0].field: unknown key 'field'; known here: "
            'freshness, kind, latch, means, name, stale_after_ms, topic, unsafe_when',
        ),
        (
            put(INPUT, {'kind': 'diagnostics', 'items': ['arm[0]']}),
            "embodiments.arm_01.safety_inputs[0]: the item 'arm[0]' has brackets in its name, "
            'which a field path cannot hold; let its publisher use another name',
        ),
        (
            put(INPUT, {'kind': 'controller_state', 'controllers': ['a]']}),
            "embodiments.arm_01.safety_inputs[0]: 'a]' is no name of a controller; "
            'write it without brackets',
        ),
        (
            put(INPUT, {'kind': 'controller_state', 'controllers': ['a'], 'list': 'c[0]'}),
            "embodiments.arm_01.safety_inputs[0]: 'c[0]' names an item, not a list; "
            'leave the brackets out',
        ),
        (
            put(INPUT, {'kind': 'battery', 'min_percentage': 20.0}),
            'embodiments.arm_01.safety_inputs[0].min_percentage: 20 is out of range, it must be '
            'less than 1; lower it',
        ),
        (
            put('embodiments/arm_01/at_rest/groups', {'arm': ['j1']}),
            "embodiments.arm_01.at_rest.groups.arm: no action of arm_01 has the group 'arm'; "
            'known here: arm_motion',
        ),
        (
            put(
                'embodiments/arm_01/at_rest',
                {'topic': 'j', 'max_velocity_radps': 0.1, 'joints': ['a'], 'groups': {'g': ['b']}},
            ),
            "embodiments.arm_01.at_rest: group 'g' moves b, which joints does not list; "
            'add them to joints',
        ),
        (
            put(
                'embodiments/arm_01/at_rest',
                {'odometry': '/odom', 'max_linear_mps': 0.01, 'max_angular_radps': 0.01},
            ),
            "embodiments.arm_01.at_rest.odometry: '/odom' is absolute, a namespace does not move "
            "it; write 'odom', unless the name is meant for the whole domain",
        ),
        (
            put('embodiments/arm_01/at_rest', {'odometry': 'odom', 'max_linear_mps': 0.01}),
            "embodiments.arm_01.at_rest.max_angular_radps: 'max_angular_radps' is missing; add it",
        ),
        (
            put(
                'embodiments/arm_01/at_rest',
                {'tf': {'frame': 'b'}, 'max_linear_mps': 0.01, 'max_angular_radps': 0.01},
            ),
            "embodiments.arm_01.at_rest.tf.reference: 'reference' is missing; add it",
        ),
    ],
)
def test_what_is_wrong_is_said(change: Any, problem: str) -> None:
    assert problem in said(loaded(change))


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ('text', 'steps'),
    [
        ('data', ('data',)),
        ('status[0].level', ('status', 0, 'level')),
        ('status[name=arm: drive.1].level', ('status', Item('name', 'arm: drive.1'), 'level')),
        ('values[key=a=b].value', ('values', Item('key', 'a=b'), 'value')),
    ],
)
def test_a_path_has_steps(text: str, steps: tuple[object, ...]) -> None:
    assert field_steps(text) == steps


@pytest.mark.parametrize(
    'text',
    ['', '.', 'a.', '.a', 'a..b', 'a[', 'a[]', 'a[x]', 'a[b=]', 'a[b=c', 'A', 'a b', 'a[0]b'],
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match='is not a field path'):
        field_steps(text)
