"""What bridge and guardian say to each other, as bytes on a topic."""

from __future__ import annotations

from action_msgs.msg import GoalStatus, GoalStatusArray
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import String

from awp_ros_bridge.guardian.main import parse
from awp_ros_bridge.ros.goal_marks import BRIDGE, GoalMarks, new_instance
from awp_ros_bridge.ros.guardian_words import (
    Alive,
    Beat,
    digest_of,
    Guarded,
    GuardedGoal,
    Kind,
    WordsUnreadable,
)
from awp_ros_bridge.ros.status_list import active_goals
from awp_ros_bridge.ros.stop_report import StoppedGoal, StopReport

GOAL = GuardedGoal('61777062' + 'ab' * 12, '/arm/move', False)
BEAT = Beat('0123abcd', 7, Kind.BEAT, 'digest', 12, (GOAL,), ('/cmd',))
STOPPED = (
    StopReport(
        1,
        '0123abcd',
        '2026-03-04T05:06:07.089Z',
        12,
        312,
        (StoppedGoal(GOAL.goal_id, '/arm/move', True, 'had ended'), StoppedGoal('b', '/c')),
        1,
        ('call_service drop: no answer',),
    ),
)
ALIVE = Alive(
    'feedf00d', {'0123abcd': Guarded(7, 1, 'why')}, True, frozenset({'/arm/move'}), STOPPED
)


@pytest.mark.parametrize('word', [BEAT, ALIVE, Beat('x', 1, Kind.GOODBYE, '')])
def test_words_are_ordinary_messages_and_come_back_as_they_went(word: Beat | Alive) -> None:
    data = word.to_bytes()
    text = deserialize_message(data, String)
    assert text.data.startswith('{')
    assert type(word).from_bytes(serialize_message(text)) == word


@pytest.mark.parametrize(
    'text',
    [
        '', '{', '[]', '7', 'null', '{}', '{"instance": 1}',
        '{"guardian": "x", "bridges": [], "ending": false}',
        '{"guardian": "x", "bridges": {"a": [1]}, "ending": false}',
        '{"guardian":"x","bridges":{},"ending":false,"unreached":[],"stopped":[[1]]}',
        '{"guardian":"x","bridges":{},"ending":false,"unreached":[],'
        '"stopped":[[1,"a","t",0,1,[["g","s",1,""]],0,[]]]}',
        '{"guardian":"x","bridges":{},"ending":false,"unreached":[],'
        '"stopped":[[1,"a","t",0,1,[],0,[7]]]}',
        '{"instance":"a","seq":1,"kind":"x","digest":"","age_ms":0,"goals":[],"streams":[]}',
        '{"instance":"a","seq":1,"kind":"beat","digest":"","age_ms":0,"goals":[["z","s",true]],'
        '"streams":[]}',
        '{"instance":"a","seq":1,"kind":"beat","digest":"","age_ms":0,"goals":[],"streams":[1]}',
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_no_word(text: str) -> None:
    data = serialize_message(String(data=text))
    for kind in (Beat, Alive):
        with pytest.raises(WordsUnreadable):
            kind.from_bytes(data)


def test_bytes_that_are_no_message_are_no_word() -> None:
    for data in (b'', b'\x00', BEAT.to_bytes()[:40], b'\x00\x00\x00\x00\xff\xff\xff\xff{}'):
        with pytest.raises(WordsUnreadable):
            Beat.from_bytes(data)


def test_the_digest_knows_servers_and_lease_and_no_order() -> None:
    assert digest_of(['/a', '/b'], 300) == digest_of(['/b', '/a', '/a'], 300)
    assert digest_of(['/a', '/b'], 300) != digest_of(['/a', '/b'], 301)
    assert digest_of(['/x/a'], 300) != digest_of(['/a'], 300)


def test_marks_tell_runs_and_bridges_apart() -> None:
    mine, other = GoalMarks(new_instance()), GoalMarks(new_instance())
    goal = bytes.fromhex(mine.new_goal_id())
    assert len(goal) == 16
    assert mine.is_mine(goal)
    assert not other.is_mine(goal)
    assert other.is_of_a_bridge(goal)
    assert not other.is_of_a_bridge(b'\x07' * 16)
    assert goal.hex().startswith(BRIDGE)
    assert mine.new_goal_id() != mine.new_goal_id()


@pytest.mark.parametrize('count', [0, 1, 2, 300])
def test_active_goals_are_read_from_the_bytes_of_a_status_list(count: int) -> None:
    states = (1, 2, 3, 4, 5, 6, 0)
    message = GoalStatusArray()
    active = []
    for number in range(count):
        status = GoalStatus(status=states[number % len(states)])
        status.goal_info.goal_id.uuid = list(number.to_bytes(16, 'big'))
        status.goal_info.stamp.sec = number
        message.status_list.append(status)
        if status.status in {1, 2, 3}:
            active.append(number.to_bytes(16, 'big'))
    assert active_goals(serialize_message(message)) == active


def test_the_command_line_of_the_guardian() -> None:
    options = parse(['--bridge', 'other', '--ros-args', '-p', 'config:=a', '--log-level', 'warn'])
    assert (options.bridge, str(options.config), options.log_level) == ('other', 'a', 'warning')
    assert parse([]).bridge == 'awp_ros_bridge'
