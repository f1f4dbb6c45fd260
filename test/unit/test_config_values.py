"""Tests what the models themselves answer: conditions, rest bounds, frames, names."""

from typing import Any

from config_sample import config, put
import pytest

from awp_ros_bridge.config import Condition, FramesConfig, MeasuredRest, TopicChannel

NAN = float('nan')


@pytest.mark.parametrize(
    ('condition', 'unsafe', 'safe'),
    [
        ({'equals': True}, [True], [False]),
        ({'equals': 7}, [7, 7.0, NAN], [6, 0, 1.5]),
        ({'equals': 'FAULT'}, ['FAULT'], ['OK', '']),
        ({'in': [3, 4]}, [3, 4, NAN], [0, 5]),
        ({'in': ['a', 'b']}, ['a', 'b'], ['c']),
        ({'above': 60.0}, [60.1, NAN, float('inf')], [60, 0.0, -5]),
        ({'below': 11.5}, [11.4, 0, NAN, float('-inf')], [11.5, 12]),
        ({'below': 10.0, 'above': 30.0}, [9, 31, NAN], [10, 20, 30.0]),
        ({'bit': 0}, [1, 3, 2**63 + 1], [0, 2]),
        ({'bit': 3}, [8, 15], [7, 0]),
    ],
)
def test_a_condition_knows_what_forbids_motion(
    condition: Any, unsafe: list[Any], safe: list[Any]
) -> None:
    made = Condition(**condition)
    assert [value for value in unsafe if not made.holds(value)] == []
    assert [value for value in safe if made.holds(value)] == []


@pytest.mark.parametrize(
    ('condition', 'value'),
    [
        ({'equals': True}, 1),
        ({'equals': True}, 'true'),
        ({'equals': 1}, True),
        ({'equals': 'OK'}, 0),
        ({'equals': False}, None),
        ({'in': [1, 2]}, '1'),
        ({'in': ['a']}, None),
        ({'above': 1.0}, 'cold'),
        ({'above': 1.0}, False),
        ({'above': 1.0}, None),
        ({'bit': 1}, 1.0),
        ({'bit': 1}, [1]),
    ],
)
def test_what_cannot_be_compared_forbids_motion(condition: Any, value: Any) -> None:
    assert Condition(**condition).holds(value)


def test_a_scalar_is_short_for_equals() -> None:
    path = 'embodiments/arm_01/safety_inputs/0/unsafe_when'
    (each,) = config(put(path, False)).embodiments['arm_01'].safety_inputs
    assert each.unsafe_when == Condition(equals=False)


def test_an_input_is_called_by_its_name_or_topic() -> None:
    path = 'embodiments/arm_01/safety_inputs/0/name'
    (unnamed,) = config().embodiments['arm_01'].safety_inputs
    (named,) = config(put(path, 'red button')).embodiments['arm_01'].safety_inputs
    assert (unnamed.spec.label, named.spec.label) == ('safety/e_stop', 'red button')


def test_each_joint_has_the_bound_of_its_kind() -> None:
    turning = MeasuredRest(topic='j', max_velocity_radps=0.1)
    sliding = MeasuredRest(topic='j', max_velocity_mps=0.2)
    mixed = MeasuredRest(
        topic='j', max_velocity_radps=0.1, max_velocity_mps=0.2, prismatic=('rail',)
    )
    assert turning.bound_of('rail') == 0.1
    assert sliding.bound_of('elbow') == 0.2
    assert (mixed.bound_of('rail'), mixed.bound_of('elbow')) == (0.2, 0.1)


def test_the_root_has_its_own_tf_name_unless_one_is_given() -> None:
    assert FramesConfig(include={'base': 'r/base'}).tf_frames == {
        'world': 'world',
        'base': 'r/base',
    }
    named = FramesConfig(root='cell', include={'cell': 'map', 'base': 'r/base'})
    assert named.tf_frames == {'cell': 'map', 'base': 'r/base'}


def test_an_action_names_its_server() -> None:
    actions = config().actions
    assert actions['move'].server == 'arm/move'
    assert actions['stop'].server == ''


def test_models_made_in_python_are_recognised_in_unions() -> None:
    parts = config()
    again = type(parts).model_validate(
        {
            'world': parts.world,
            'embodiments': parts.embodiments,
            'channels': parts.channels,
            'actions': parts.actions,
        }
    )
    assert again.embodiments == parts.embodiments
    assert isinstance(again.channels['proprio'], TopicChannel)


def test_types_of_messages_need_not_be_installed() -> None:  # F118
    change = put('channels/proprio/type', 'no_such_msgs/msg/Foo')
    channel = config(change).channels['proprio']
    assert isinstance(channel, TopicChannel)
    assert channel.type == 'no_such_msgs/msg/Foo'
