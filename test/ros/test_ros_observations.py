"""Observation channels on real topics: quality of service, pace, time, bad data."""

from __future__ import annotations

import array
from collections.abc import Iterator
from contextlib import contextmanager
import threading
import time
from typing import Any

from geometry_msgs.msg import PoseStamped
from lateness import Lateness
from observation_world import (
    BEST_EFFORT,
    JOINTS,
    LATCHED,
    RELIABLE,
    topic_channel,
    wait_for,
    World,
    world,
)
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from awp_ros_bridge.config import FramesConfig
from awp_ros_bridge.ros import observations
from awp_ros_bridge.ros.observations import Pace

pytestmark = pytest.mark.usefixtures('ros_domain_id')


def joint_state(value: float = 0.5, stamp_ns: int | None = None) -> JointState:
    stamp_ns = time.time_ns() if stamp_ns is None else stamp_ns
    message = JointState(name=list(JOINTS), position=[value] * 2, velocity=[0.1] * 2)
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, 10**9)
    return message


def publish_until(publisher: Any, message: Any, condition: Any, what: str) -> Any:
    """Publish again and again until a condition holds."""

    def turn() -> Any:
        publisher.publish(message() if callable(message) else message)
        time.sleep(0.01)
        return condition()

    return wait_for(turn, what)


@contextmanager
def stream(made: World, hz: float, qos: Any = RELIABLE) -> Iterator[Any]:
    """Publish joint states at a rate in the background; yields a counter."""
    publisher = made.talker.create_publisher(JointState, 'joint_states', qos)
    count, ended = [0], threading.Event()

    def run() -> None:
        due_s = time.monotonic()
        while not ended.is_set():
            publisher.publish(joint_state(count[0]))
            count[0] += 1
            due_s = max(due_s + 1.0 / hz, time.monotonic() - 0.05)
            ended.wait(max(0.0, due_s - time.monotonic()))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield count
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize('qos', [BEST_EFFORT, RELIABLE, LATCHED], ids=['best', 'reliable', 'tl'])
def test_a_publisher_that_comes_later_is_heard_whatever_it_offers(qos: Any) -> None:
    with world() as made:
        made.observations.demand('proprio', 100.0, True)
        publisher = made.talker.create_publisher(JointState, 'joint_states', qos)
        publish_until(publisher, joint_state, made.samples, 'a sample')
        assert made.payloads()[0]['q_rad'] == [0.5, 0.5]


def test_a_best_effort_publisher_after_a_reliable_one_is_heard_too() -> None:
    with world() as made:
        made.observations.demand('proprio', 1000.0, True)
        first = made.talker.create_publisher(JointState, 'joint_states', RELIABLE)
        publish_until(first, lambda: joint_state(1.0), made.samples, 'the reliable one')
        second = made.talker.create_publisher(JointState, 'joint_states', BEST_EFFORT)
        publish_until(
            second,
            lambda: joint_state(2.0),
            lambda: [p for p in made.payloads() if p['q_rad'][0] == 2.0],
            'the one of best effort',
        )


def test_one_latched_sample_reaches_every_new_observer_with_its_time() -> None:
    with world() as made:
        publisher = made.talker.create_publisher(JointState, 'joint_states', LATCHED)
        publisher.publish(joint_state(0.25))
        wait_for(lambda: not made.note(), 'the sample is kept')
        assert not made.samples()
        made.observations.demand('proprio', 10.0, True)
        first = wait_for(made.samples, 'the first observer')[0]
        made.observations.demand('proprio', 10.0, True)
        wait_for(lambda: len(made.samples()) > 1, 'the second observer')
        assert made.samples()[-1] == first


def test_nobody_listens_and_nothing_is_dispatched(lateness: Lateness) -> None:
    with world() as made, stream(made, 200.0):
        wait_for(lambda: not made.note(), 'the topic is heard')
        feed = made.observations._feeds['proprio']
        time.sleep(0.1)
        assert feed.pace is Pace.REST
        assert not feed.reader.is_dispatched
        assert not made.samples()
        asked_ns = time.monotonic_ns()
        made.observations.demand('proprio', 100.0, True)
        sample = wait_for(made.samples, 'the newest at once')[0]
        age_ns = time.monotonic_ns() - sample.captured_ns
        assert age_ns < 1_000_000_000 + lateness.since(asked_ns)


def test_a_fast_topic_is_thinned_out_to_the_wanted_rate(lateness: Lateness) -> None:
    with world() as made, stream(made, 500.0):
        made.observations.demand('proprio', 20.0, True)
        feed = made.observations._feeds['proprio']
        wait_for(lambda: feed.pace is Pace.POLL, 'polling')
        before, start_ns = len(made.samples()), time.monotonic_ns()
        wait_for(lambda: len(made.samples()) >= before + 20, 'twenty samples')
        took_s = (time.monotonic_ns() - start_ns) * 1e-9
        assert 20 / 24.0 < took_s < 20 / 10.0 + lateness.since(start_ns) * 1e-9
        made.observations.demand('proprio', 1000.0, False)
        wait_for(lambda: feed.pace is Pace.FOLLOW, 'following again')
        values = [p['q_rad'][0] for p in made.payloads()]
        assert values == sorted(values)


def test_every_sample_arrives_at_the_rate_of_the_topic(lateness: Lateness) -> None:
    with world() as made:
        made.observations.demand('proprio', 200.0, True)
        with stream(made, 200.0):
            # The reader begins with what hears everybody, then asks for what is offered.
            wait_for(lambda: len(made.samples()) >= 50, 'the subscription has settled')
            made.posted.clear()
            began_ns = time.monotonic_ns()
            wait_for(lambda: len(made.samples()) >= 300, 'three hundred samples')
        values = [p['q_rad'][0] for p in made.payloads()]
        # a reader that does not get to run in time loses what its queue does not hold
        lost = 200.0 * lateness.since(began_ns) * 1e-9
        assert len(values) >= 0.98 * (values[-1] - values[0] + 1) - lost


def test_the_time_of_capture_comes_from_the_stamp_when_it_is_believable() -> None:
    old_ns = 300_000_000
    with world() as made:
        made.observations.demand('proprio', 1000.0, True)
        publisher = made.talker.create_publisher(JointState, 'joint_states', RELIABLE)
        publish_until(
            publisher, lambda: joint_state(1.0, time.time_ns() - old_ns), made.samples, 'a sample'
        )
        assert time.monotonic_ns() - made.samples()[0].captured_ns >= old_ns
        publish_until(publisher, joint_state, lambda: len(made.samples()) > 3, 'younger ones')
        captured = [s.captured_ns for s in made.samples()]
        assert captured == sorted(captured)
        assert captured[-1] <= time.monotonic_ns()


def test_f53_stamps_of_another_clock_are_told_and_arrival_counts() -> None:
    with world() as made:
        made.observations.demand('proprio', 1000.0, True)
        publisher = made.talker.create_publisher(JointState, 'joint_states', RELIABLE)
        publish_until(
            publisher,
            lambda: joint_state(1.0, 5_000_000_000),
            lambda: 'clock mismatch' in made.note(),
            'the mismatch',
        )
        assert time.monotonic_ns() - made.samples()[-1].captured_ns < 2_000_000_000


def test_with_simulated_time_a_sample_has_both_times() -> None:
    with world(ros_ns=lambda: 7_000_000_000, uses_sim_time=True) as made:
        made.observations.demand('proprio', 1000.0, True)
        publisher = made.talker.create_publisher(JointState, 'joint_states', RELIABLE)
        publish_until(publisher, lambda: joint_state(1.0, 6_500_000_000), made.samples, 'a sample')
        sample = made.samples()[0]
        assert sample.sim_ns == 6_500_000_000
        assert time.monotonic_ns() - sample.captured_ns < 2_000_000_000


def test_what_is_not_finite_or_missing_is_null_and_the_rest_is_delivered() -> None:
    with world() as made:
        made.observations.demand('proprio', 1000.0, True)
        publisher = made.talker.create_publisher(JointState, 'joint_states', RELIABLE)
        message = joint_state()
        message.position = array.array('d', [float('nan'), 1.5])
        message.velocity = array.array('d', [float('inf')])
        publish_until(publisher, message, made.samples, 'a sample')
        assert made.payloads()[0] == {
            'name': ['j1', 'j2'],
            'q_rad': [None, 1.5],
            'dq_radps': [None, None],
            'tau_nm': [None, None],
        }


def test_a_type_that_is_not_installed_harms_only_its_own_channel() -> None:
    channels = {
        'proprio': topic_channel(),
        'odd': topic_channel(topic='odd', type='no_such_msgs/msg/Foo'),
        'unknown': topic_channel(topic='text', type='std_msgs/msg/Float32'),
    }
    with world(channels) as made:
        assert 'no_such_msgs' in made.note('odd')
        assert 'source' in made.note('odd')
        assert 'no encoder' in made.note('unknown')
        made.observations.demand('proprio', 100.0, True)
        made.observations.demand('odd', 100.0, True)
        made.observations.demand('nothing', 100.0, True)
        publisher = made.talker.create_publisher(JointState, 'joint_states', RELIABLE)
        publish_until(publisher, joint_state, made.samples, 'the good channel')


def test_a_topic_of_another_type_and_a_missing_publisher_are_told() -> None:
    with world() as made:
        wait_for(lambda: 'nobody publishes /joint_states' in made.note(), 'no publisher')
        made.talker.create_publisher(String, 'joint_states', RELIABLE)
        wait_for(lambda: 'carries std_msgs/msg/String' in made.note(), 'the other type')


def test_an_encoder_that_raises_harms_only_its_own_channel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channels = {'proprio': topic_channel(), 'broken': topic_channel()}
    with world(channels) as made:

        def fail(raw: bytes) -> tuple[bytes, int | None]:
            raise RuntimeError('bad data')

        monkeypatch.setattr(made.observations._feeds['broken'].feed, '_encode', fail)
        made.observations.demand('proprio', 100.0, True)
        made.observations.demand('broken', 100.0, True)
        publisher = made.talker.create_publisher(JointState, 'joint_states', RELIABLE)
        publish_until(publisher, joint_state, made.samples, 'the good channel')
        publish_until(publisher, joint_state, lambda: 'bad data' in made.note('broken'), 'note')
        assert not made.samples('broken')


def test_what_is_not_sent_is_told_until_something_better_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observations, '_ERROR_NS', 1)
    channels = {'place': topic_channel(topic='place', type='geometry_msgs/msg/PoseStamped')}
    with world(channels, FramesConfig(include={'base': 'base_link'})) as made:
        publisher = made.talker.create_publisher(PoseStamped, 'place', LATCHED)
        pose = PoseStamped()
        pose.header.frame_id = 'nowhere'
        publisher.publish(pose)
        made.observations.demand('place', 10.0, True)
        told = "/place: not sent: header.frame_id is 'nowhere', no frame of the tree"
        wait_for(lambda: told in made.note('place'), 'the reason')
        reader = made.observations._feeds['place'].reader
        time.sleep(0.05)
        assert told in made.note('place')  # nothing came since, so nothing was delivered
        assert not reader.note
        pose.header.frame_id = 'base_link'
        publish_until(publisher, pose, lambda: made.samples('place'), 'a pose')
        wait_for(lambda: not made.note('place'), 'it delivers')
        assert made.payloads('place')[0]['frame'] == 'base'


def test_silence_is_told_and_ends() -> None:
    with world() as made:
        with stream(made, 100.0):
            wait_for(lambda: not made.note(), 'the topic is heard')
        wait_for(lambda: made.note(), 'silence is told')
        publisher = made.talker.create_publisher(JointState, 'joint_states', RELIABLE)
        publish_until(publisher, joint_state, lambda: not made.note(), 'it speaks again')
