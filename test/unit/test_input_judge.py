"""What an input's messages say: values, readers, parts, silence."""

from __future__ import annotations

import math
from types import SimpleNamespace as Msg
from typing import Any

from config_sample import config, put
import pytest

from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.input_judge import InputJudge

MS = 1_000_000
INPUT = 'embodiments/arm_01/safety_inputs/0'


def judge(**form: Any) -> InputJudge:
    form = form or {'kind': 'bool', 'topic': 't'}
    (each,) = config(put(INPUT, form)).embodiments['arm_01'].safety_inputs
    return InputJudge(each.spec)


def general(**more: Any) -> dict[str, Any]:
    return {
        'topic': 't', 'type': 'std_msgs/msg/Int32', 'field': 'data', 'unsafe_when': {'in': [7]},
        'means': 'fault', 'freshness': {'by': 'message'}, 'stale_after_ms': 100, **more,
    }  # fmt: skip


def test_never_heard_is_unknown() -> None:
    each = judge()
    assert each.tripped() is None
    assert each.stale(0) == 't was not heard yet'
    assert not each.permits_motion(0)
    assert each.due_ns() is None


def test_permission_ages_into_unknown_and_a_trip_does_not_age() -> None:
    each = judge()
    each.take(0, Msg(data=False), 0)
    assert each.permits_motion(499 * MS)
    assert each.due_ns() == 500 * MS
    assert each.stale(500 * MS) == 't silent for 500 ms (limit 500 ms)'
    each.take(0, Msg(data=True), 501 * MS)
    trip = each.tripped()
    assert trip is not None
    assert (trip.means, trip.text) == (Meaning.E_STOP, 't.data is True')
    assert each.tripped() == trip
    assert not each.permits_motion(10**12)


def test_any_unsafe_sample_wins_until_its_own_reader_hears_better() -> None:
    each = judge()
    each.take(0, Msg(data=True), 0)
    each.take(1, Msg(data=False), 1)
    assert each.tripped() is not None
    each.take(0, Msg(data=False), 2)
    assert each.tripped() is None


@pytest.mark.parametrize('message', [None, Msg(), Msg(data='x'), Msg(data=[True])])
def test_what_cannot_be_read_forbids_motion(message: Any) -> None:
    each = judge()
    each.take(0, Msg(data=False), 0)
    each.take(0, message, 1)
    assert each.tripped() is not None
    each.take(0, Msg(data=False), 2)
    assert each.tripped() is None


def test_companion_vouches_for_what_was_heard_once() -> None:
    each = judge(kind='ur_program_running')
    topic = 'io_and_status_controller/robot_program_running'
    each.take_companion(0)
    assert each.stale(1) == f'{topic} was not heard yet'
    each.take(0, Msg(data=True), 1)
    assert each.permits_motion(499 * MS)
    assert each.stale(500 * MS) == (
        f'joint_states, companion of {topic}, silent for 500 ms (limit 500 ms)'
    )
    each.take_companion(600 * MS)
    assert each.permits_motion(601 * MS)


def test_companion_that_was_never_heard_vouches_for_nothing() -> None:
    each = judge(kind='ur_program_running')
    each.take(0, Msg(data=True), 1)
    assert 'was not heard yet' in str(each.stale(2))


def test_of_several_trips_the_hardest_counts() -> None:
    each = judge(kind='ur_safety_mode', type='std_msgs/msg/Int8', field='data', topic='mode')
    each.take(0, Msg(data=9), 0)
    each.take(1, Msg(data=6), 0)
    trip = each.tripped()
    assert trip is not None
    assert (trip.means, trip.text) == (Meaning.E_STOP, 'mode.data is 6')
    each.take(1, Msg(data=1), 1)
    trip = each.tripped()
    assert trip is not None
    assert trip.means is Meaning.FAULT


# ---------------------------------------------------------------- items


def status(**levels: int) -> Msg:
    return Msg(status=[Msg(name=name, level=bytes([level])) for name, level in levels.items()])


def test_each_diagnostic_item_must_be_there_and_young() -> None:
    each = judge(kind='diagnostics', items=['arm', 'hand'], stale_after_ms=1000)
    each.take(0, status(arm=0, other=2), 0)
    assert each.tripped() is None, 'items of others are none of ours'
    assert each.stale(1) == '/diagnostics[hand] was not heard yet'
    each.take(0, status(hand=1), 400 * MS)
    assert each.permits_motion(999 * MS)
    assert each.due_ns() == 1000 * MS, 'the oldest item decides'
    assert each.stale(1000 * MS) == '/diagnostics[arm] silent for 1000 ms (limit 1000 ms)'


@pytest.mark.parametrize('level', [2, 3, 4, 200])
def test_an_item_in_error_trips_until_it_is_told_to_be_well(level: int) -> None:
    each = judge(kind='diagnostics', items=['arm', 'hand'])
    each.take(0, status(arm=0, hand=level), 0)
    trip = each.tripped()
    assert trip is not None
    assert trip.text == f'/diagnostics.status[name=hand].level is {level}'
    each.take(0, status(arm=0), 1)
    assert each.tripped() is not None, 'a message without the item says nothing about it'
    each.take(0, status(hand=0), 2)
    assert each.tripped() is None


def test_two_items_of_one_name_must_both_be_well() -> None:
    each = judge(kind='diagnostics', items=['arm'])
    both = Msg(status=[Msg(name='arm', level=b'\x00'), Msg(name='arm', level=b'\x02')])
    each.take(0, both, 0)
    assert each.tripped() is not None


def test_a_missing_item_is_unsafe_where_the_list_should_be_whole() -> None:
    each = judge(
        kind='controller_state', controllers=['arm'], type='diagnostic_msgs/msg/DiagnosticArray',
        list='status', field='message', topic='activity',
    )  # fmt: skip
    each.take_companion(0)
    each.take(0, Msg(status=[Msg(name='arm', message='active')]), 0)
    assert each.permits_motion(1)
    each.take(0, Msg(status=[Msg(name='other', message='active')]), 1)
    trip = each.tripped()
    assert trip is not None
    assert 'status[name=arm].message cannot be read' in trip.text
    assert "there is no item with name 'arm'" in trip.text
    each.take(0, Msg(status=[Msg(name='arm', message='inactive')]), 2)
    trip = each.tripped()
    assert trip is not None
    assert trip.text == "activity.status[name=arm].message is 'inactive'"


def test_a_general_field_may_ignore_messages_without_its_item() -> None:
    form = general(field='values[key=mode].value', unsafe_when={'not_in': ['auto']})
    each = judge(**form, item_missing='ignore')
    each.take(0, Msg(values=[]), 0)
    assert each.stale(1) == 't was not heard yet'
    each.take(0, Msg(values=[Msg(key='mode', value='auto')]), 2)
    assert each.permits_motion(3)
    strict = judge(**form)
    strict.take(0, Msg(values=[]), 0)
    assert strict.tripped() is not None


# ---------------------------------------------------------------- joint states


def joints(names: str, **arrays: list[float]) -> Msg:
    fields: dict[str, Any] = {'position': [], 'velocity': [], 'effort': []}
    return Msg(name=list(names), **(fields | arrays))


def test_f45_joint_states_with_a_number_that_is_none_are_unsafe() -> None:
    each = judge(kind='joint_states', topic='js')
    each.take(1, joints('ab', position=[0.0, 1.0], velocity=[0.0, 0.0]), 0)
    assert each.permits_motion(1)
    for bad in (math.nan, math.inf, -math.inf):
        each.take(1, joints('ab', position=[0.0, 1.0], velocity=[0.0, bad]), 1)
        trip = each.tripped()
        assert trip is not None
        assert trip.text == f'js.velocity[b] is {bad!r}'
    each.take(1, joints('ab', position=[0.0, 1.0]), 2)
    assert each.tripped() is None, 'a robot may tell no velocity at all'


def test_f45_an_effort_that_is_not_measured_forbids_nothing_unless_it_is_asked_for() -> None:
    sample = joints('a', position=[0.0], effort=[math.nan])
    each = judge(kind='joint_states')
    each.take(1, sample, 0)
    assert each.tripped() is None
    each = judge(kind='joint_states', fields=['position', 'effort'])
    each.take(1, sample, 0)
    assert each.tripped() is not None


@pytest.mark.parametrize(
    'sample',
    [
        joints('ab', position=[0.0]),
        joints('ab', position=[]),
        joints('a', position=[0.0], velocity=[0.0, 0.0]),
    ],
)
def test_arrays_that_do_not_match_are_unsafe(sample: Msg) -> None:
    each = judge(kind='joint_states')
    each.take(1, sample, 0)
    assert each.tripped() is not None


def test_each_joint_ages_by_itself() -> None:
    each = judge(kind='joint_states', topic='js', joints=['a', 'b'])
    each.take(1, joints('ac', position=[0.0, math.nan]), 0)
    assert each.tripped() is None, 'c is not ours'
    assert each.stale(1) == 'js[b] was not heard yet'
    each.take(1, joints('b', position=[0.0]), 300 * MS)
    assert each.permits_motion(301 * MS)
    assert each.stale(500 * MS) == 'js[a] silent for 500 ms (limit 500 ms)'


def test_all_joints_are_those_that_were_ever_heard() -> None:
    each = judge(kind='joint_states', topic='js')
    assert each.stale(0) == 'js: nothing was heard yet'
    each.take(1, joints('a', position=[0.0]), 0)
    each.take(1, joints('b', position=[0.0]), 400 * MS)
    assert each.stale(500 * MS) == 'js[a] silent for 500 ms (limit 500 ms)'


def test_a_topic_that_cannot_be_heard_says_why() -> None:
    each = judge()
    each.fail('no such type')
    assert each.stale(0) == 'no such type'
