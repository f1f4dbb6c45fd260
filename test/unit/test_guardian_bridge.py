"""The bridge's side of the guardian in parts, without ROS: beats, the input, goals of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros import bridge_claims, guardian_beats, guardian_input
from awp_ros_bridge.ros.bridge_claims import BridgeClaims, LOOK_NS, SILENT_NS
from awp_ros_bridge.ros.goal_marks import BRIDGE, GoalMarks
from awp_ros_bridge.ros.guardian_beats import GOODBYE_NS, GuardianBeats, IDLE_TURN_NS, UNANSWERED_S
from awp_ros_bridge.ros.guardian_input import GuardianInput
from awp_ros_bridge.ros.guardian_words import (
    Alive,
    Beat,
    Guarded,
    GuardedGoal,
    Kind,
    LOST_NS,
)
from awp_ros_bridge.ros.live_goals import LiveGoal, LiveGoals
from awp_ros_bridge.ros.other_goals import CLAIM_NS, MEET_NS, OtherGoals, UNHEARD_NS
from awp_ros_bridge.ros.runtime import Deadline

MS = 1_000_000
LEASE_NS = 300 * MS
MINE = 'aaaaaaaa'


class Thread:
    """A thread that turns when it is told to, on the clock of the test."""

    def __init__(self, clock: Clock) -> None:
        self.last_turn_ns = 0
        self.is_current = False
        self.posted: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.deadlines: list[Deadline] = []
        self._clock = clock

    def post(self, function: Callable[..., None], *arguments: Any) -> None:
        self.posted.append((function, arguments))

    def turn(self) -> None:
        posted, self.posted = self.posted, []
        for function, arguments in posted:
            function(*arguments)
        self.last_turn_ns = self._clock.now_ns

    def call_at(self, at_ns: int, function: Callable[[], None]) -> Deadline:
        self.deadlines.append(Deadline(at_ns, function))
        return self.deadlines[-1]

    def call_later(self, delay_ns: int, function: Callable[[], None]) -> Deadline:
        return self.call_at(self._clock.now_ns + delay_ns, function)

    def guard(self, function: Callable[..., None]) -> Callable[..., None]:
        return function


class Clock:
    """Steady time as the test says it."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * MS
        self.threads: list[Thread] = []

    def monotonic_ns(self) -> int:
        return self.now_ns

    def sleep(self, span_s: float) -> None:
        self.now_ns += round(span_s * 1e9)

    def run(self, span_ms: int) -> None:
        """Go on, and let deadlines fire when they are due."""
        ends_ns = self.now_ns + span_ms * MS
        while self.now_ns < ends_ns:
            self.now_ns += MS
            for thread in self.threads:
                due = [d for d in thread.deadlines if d.at_ns <= self.now_ns]
                thread.deadlines = [d for d in thread.deadlines if d not in due]
                for deadline in due:
                    deadline.fire()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (bridge_claims, guardian_beats, guardian_input):
        monkeypatch.setattr(module, 'time', made)
    return made


@pytest.fixture
def thread(clock: Clock) -> Thread:
    made = Thread(clock)
    clock.threads.append(made)
    return made


# ---------------------------------------------------------------- beats


class Publisher:
    def __init__(self, beats: Beats) -> None:
        self._beats = beats

    def get_subscription_count(self) -> int:
        return self._beats.listeners

    def publish(self, data: bytes) -> None:
        self._beats.said.append(Beat.from_bytes(data))


class Beats:
    """The beats of a bridge whose threads the test turns."""

    def __init__(self, clock: Clock, thread: Thread) -> None:
        self.clock = clock
        self.safety, self.goals = thread, Thread(clock)
        self.said: list[Beat] = []
        self.lapses: list[tuple[int, int]] = []
        self.live: list[LiveGoal] = []
        self.listeners = 1
        self.beats = GuardianBeats(
            self.safety,  # type: ignore[arg-type]
            self.goals,  # type: ignore[arg-type]
            MINE,
            lambda: self.live,
            LEASE_NS,
            lambda silent_ns, seq: self.lapses.append((silent_ns, seq)),
        )
        self.beats._publisher = self.beats._notices = Publisher(self)
        self.beats._can_speak = lambda: True

    def beat(self, after_ms: int = 50) -> None:
        self.clock.now_ns += after_ms * MS
        self.beats.beat(self.clock.now_ns)

    def turn(self) -> None:
        self.safety.turn()
        self.goals.turn()


@pytest.fixture
def beats(clock: Clock, thread: Thread) -> Beats:
    made = Beats(clock, thread)
    made.turn()
    made.beat()
    return made


def goal(number: int = 1) -> LiveGoal:
    return LiveGoal(f'{number:032x}', 'arm', 'move', 'arm', 'server')


def test_a_beat_carries_the_age_of_the_older_thread_and_wakes_it(beats: Beats) -> None:
    beats.live.append(goal())
    beats.turn()
    beats.beat()
    beats.safety.turn()
    beats.beat()
    assert beats.said[-1].age_ms == 100
    assert beats.goals.posted
    assert not beats.safety.posted
    beats.goals.turn()
    beats.beat(10)
    assert beats.said[-1].age_ms == 60  # of the safety thread


def test_a_thread_that_hangs_ends_the_beats(beats: Beats) -> None:
    beats.live.append(goal())
    for _ in range(20):
        beats.safety.turn()
        beats.beat()
    ages = [beat.age_ms for beat in beats.said if beat.goals]
    assert ages[-1] < LEASE_NS // MS
    assert len(ages) < 6


def test_an_idle_bridge_wakes_no_thread(beats: Beats) -> None:
    for _ in range(IDLE_TURN_NS // (50 * MS) - 2):
        beats.beat()
    assert {beat.age_ms for beat in beats.said} == {0}
    assert not beats.goals.posted
    assert not beats.safety.posted


def test_after_a_silence_nothing_is_sent_before_the_safety_thread_has_followed(
    beats: Beats,
) -> None:
    assert beats.beats.late() is None
    number = beats.said[-1].seq
    beats.clock.now_ns += LEASE_NS + 500 * MS
    refusal = beats.beats.late()
    assert refusal is not None
    assert 'silent for 800 ms (limit 300 ms)' in refusal
    beats.beat(1)
    assert beats.said[-1].seq == number
    assert beats.beats.late() is not None
    beats.turn()
    assert beats.lapses == [(801 * MS, number + 1)]
    assert beats.beats.late() is None
    beats.beat()
    assert beats.said[-1].seq == number + 1


def test_a_goal_is_announced_with_all_others_and_by_a_newer_number(beats: Beats) -> None:
    beats.live += [goal(1), goal(2)]
    number = beats.said[-1].seq
    beats.beats.announce()
    notice = beats.said[-1]
    assert (notice.kind, notice.seq) == (Kind.GOALS, number + 1)
    assert [g.goal_id for g in notice.goals] == [goal(1).goal_id, goal(2).goal_id]


def test_the_goodbye_waits_for_the_answer_and_the_beats_are_over(
    beats: Beats, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []

    def answer(timeout_s: float) -> bool:
        waits.append(timeout_s)
        beats.clock.run(2 * LEASE_NS // MS)
        beats.beats.beat(beats.clock.now_ns)  # the loop turns on: that is no lapse
        return len(waits) == 1

    beats.beats.beat(beats.clock.now_ns)
    beats.beats.goodbye(answer)
    assert waits == [GOODBYE_NS * 1e-9]
    assert beats.said[-1].kind is Kind.GOODBYE
    beats.safety.turn()
    assert not beats.lapses
    assert not caplog.records
    beats.beats.goodbye(answer)
    assert 'did not answer the goodbye within 300 ms' in caplog.text


def test_a_goodbye_that_nobody_answers_waits_a_moment(beats: Beats) -> None:
    began_ns = beats.clock.now_ns
    beats.beats.goodbye()
    assert beats.clock.now_ns - began_ns == round(UNANSWERED_S * 1e9)


def test_nothing_follows_the_goodbye(beats: Beats) -> None:
    beats.beats.goodbye()
    assert beats.said[-1].kind is Kind.GOODBYE
    count = len(beats.said)
    beats.beat()
    beats.beats.announce()
    assert len(beats.said) == count


def test_without_listeners_nothing_is_said_and_nothing_is_late(beats: Beats) -> None:
    beats.listeners = 0
    count = len(beats.said)
    for _ in range(20):
        beats.beat()
    assert len(beats.said) == count
    assert beats.beats.late() is None


# ---------------------------------------------------------------- the input


class Stop:
    """What is engaged, with details."""

    def __init__(self) -> None:
        self.engaged: dict[tuple[str, str], str] = {}

    def engage(self, embodiment: str, name: str, meaning: Meaning, detail: str) -> None:
        assert meaning is Meaning.NOT_READY
        self.engaged[embodiment, name] = detail

    def release(self, embodiment: str, name: str, meaning: Meaning, detail: str) -> None:
        del self.engaged[embodiment, name]


class Listening:
    """The input of a bridge with two embodiments."""

    def __init__(self, clock: Clock, thread: Thread) -> None:
        self.clock = clock
        self.stop = Stop()
        self.input = GuardianInput(thread, self.stop, ['arm', 'base'], MINE)  # type: ignore[arg-type]
        self.input.start(self, 'alive', 'start one')  # type: ignore[arg-type]

    def create_subscription(self, *_: object, **__: object) -> None:
        """Stand in for the node."""

    def hear(
        self,
        seq: int = 1,
        stops: int = 0,
        problem: str = '',
        of: str = 'g',
        ends: bool = False,
        unreached: tuple[str, ...] = (),
    ) -> None:
        alive = Alive(of, {MINE: Guarded(seq, stops, problem)}, ends, frozenset(unreached))
        self.input._on_message(alive.to_bytes())

    def why(self) -> str | None:
        """Return what is engaged at both embodiments alike."""
        arm, base = (self.stop.engaged.get((name, 'guardian')) for name in ('arm', 'base'))
        assert arm == base
        return arm


@pytest.fixture
def listening(clock: Clock, thread: Thread) -> Listening:
    return Listening(clock, thread)


def test_no_guardian_forbids_motion_from_the_start(listening: Listening) -> None:
    assert 'no guardian is heard; start one' in (listening.why() or '')
    listening.hear()
    assert listening.why() is None


def test_a_guardian_that_falls_silent_is_lost_in_time(listening: Listening) -> None:
    listening.hear()
    listening.clock.run(LOST_NS // MS - 1)
    assert listening.why() is None
    listening.clock.run(2)
    assert 'the guardian was silent for 1000 ms (limit 1000 ms); start one' in (
        listening.why() or ''
    )
    listening.hear()
    assert listening.why() is None


def test_answers_keep_the_guardian(listening: Listening) -> None:
    for _ in range(20):
        listening.hear()
        listening.clock.run(200)
        assert listening.why() is None


def test_a_guardian_that_does_not_guard_this_bridge_is_none(listening: Listening) -> None:
    listening.input._on_message(Alive('g', {'other': Guarded(1, 0)}).to_bytes())
    assert 'does not hear this bridge' in (listening.why() or '')
    listening.hear(problem='other servers')
    assert 'other servers; start one' in (listening.why() or '')
    listening.input._on_message(b'rubbish')
    assert listening.why() is not None


def test_a_second_guardian_with_a_problem_is_no_news(listening: Listening) -> None:
    listening.hear()
    listening.hear(problem='other servers', of='second')
    listening.hear(ends=True, of='second')
    assert listening.why() is None
    listening.hear(ends=True)
    assert 'the guardian has ended; start one' in (listening.why() or '')


def test_a_server_is_reached_when_the_guardian_that_guards_says_so(listening: Listening) -> None:
    reaches = listening.input.reaches
    assert not reaches('/arm/move')  # nobody guards yet
    listening.hear(unreached=('/arm/move', '/arm/grip'))
    assert not reaches('/arm/move')
    listening.hear(problem='other servers', of='second')  # it guards another bridge
    assert not reaches('/arm/move')
    listening.hear(unreached=('/arm/grip',))
    assert reaches('/arm/move')
    assert not reaches('/arm/grip')
    listening.hear(unreached=('/arm/move',))  # the server went, and another one came
    assert not reaches('/arm/move')


def test_after_the_goodbye_the_end_of_the_guardian_is_no_news(listening: Listening) -> None:
    listening.hear()
    listening.input.close()
    listening.hear(ends=True)
    listening.clock.run(2 * LOST_NS // MS)
    assert listening.why() is None


def test_the_answer_to_the_goodbye_is_the_word_that_names_the_bridge_no_more(
    listening: Listening,
) -> None:
    assert listening.input.is_released(0.0)  # nobody guards it yet
    listening.hear()
    listening.input.close()
    assert not listening.input.is_released(0.0)
    listening.hear()  # said before the goodbye was heard
    listening.input._on_message(Alive('second').to_bytes())  # it never guarded this bridge
    assert not listening.input.is_released(0.0)
    listening.input._on_message(Alive('g').to_bytes())
    assert listening.input.is_released(0.0)


def test_a_stop_by_the_guardian_is_told_and_over_with_its_next_answer(
    listening: Listening,
) -> None:
    listening.hear(stops=3)
    assert listening.why() is None  # of before this bridge listened
    listening.hear(stops=4)
    assert 'stopped the robot' in (listening.why() or '')
    listening.hear(stops=4)
    assert listening.why() is None


def test_after_a_lapse_an_older_answer_permits_nothing(listening: Listening) -> None:
    listening.hear(seq=7)
    listening.input.lapsed(812 * MS, 9)
    assert 'silent for 812 ms' in (listening.why() or '')
    listening.hear(seq=8)
    assert listening.why() is not None
    listening.hear(seq=9)
    assert listening.why() is None


# ---------------------------------------------------------------- goals of others


class Question:
    def drop(self) -> None:
        """Forget it."""


class Link:
    """The conversation with a server that says which goals are active."""

    def __init__(self) -> None:
        self.on_status: Callable[[bytes], None] = lambda data: None
        self.ready = True
        self.answers: dict[bytes, Callable[[int, Any], None]] = {}

    def is_ready(self) -> bool:
        return self.ready

    def request_result(self, uuid: bytes, on_result: Callable[[int, Any], None]) -> Question:
        self.answers[uuid] = on_result
        return Question()

    def tell(self, *uuids: bytes) -> None:
        """Publish these goals as active: a list like the server's."""
        data = bytearray(b'\x00\x01\x00\x00' + len(uuids).to_bytes(4, 'little'))
        for uuid in uuids:
            data += uuid
            data += bytes(-(len(data) - 4) % 4 + 8) + b'\x02'
        self.on_status(bytes(data))


class Others:
    def __init__(self, clock: Clock, thread: Thread, *, blocks: bool = True) -> None:
        self.clock = clock
        self.thread = thread
        self.stop = Stop()
        self.goals = LiveGoals()
        self.link = Link()
        self.cancelled: list[str] = []
        self.asked = 0
        self.others = OtherGoals(
            thread,  # type: ignore[arg-type]
            self.stop,  # type: ignore[arg-type]
            self.goals,
            GoalMarks(MINE),
            {'server': ['arm']},
            lambda goal: self.cancelled.append(goal.goal_id),
            blocks=blocks,
        )
        self.others.on_earlier = self._ask
        self.unheard = 0
        self.others.unheard = lambda: self.unheard
        self.others.start({'server': self.link})  # type: ignore[dict-item]

    def _ask(self) -> None:
        self.asked += 1

    @property
    def names(self) -> set[str]:
        return {name for _, name in self.stop.engaged}


@pytest.fixture
def others(clock: Clock, thread: Thread) -> Others:
    return Others(clock, thread)


OWN = bytes.fromhex(BRIDGE + MINE) + b'\x01' * 8
EARLIER = bytes.fromhex(BRIDGE) + b'\x02' * 12
FOREIGN = b'\x03' * 16


def test_a_goal_of_a_bridge_that_nobody_claims_is_cancelled_after_a_while(others: Others) -> None:
    others.link.tell(EARLIER, OWN)
    assert others.names == {'earlier_goal'}
    assert others.asked == 1
    others.clock.run(CLAIM_NS // MS - 1)
    assert others.cancelled == []
    others.clock.run(2)
    assert others.cancelled == [EARLIER.hex()]
    assert others.names == {'earlier_goal'}
    others.link.tell(OWN)
    assert others.names == set()


def test_a_goal_that_a_living_bridge_claims_is_foreign(others: Others) -> None:
    others.link.tell(EARLIER)
    others.others.claim([EARLIER.hex(), OWN.hex()])
    assert others.names == {'foreign_goal'}
    others.clock.run(2 * CLAIM_NS // MS)
    assert others.cancelled == []


def test_a_goal_is_left_alone_while_a_bridge_in_the_graph_is_not_heard(others: Others) -> None:
    others.unheard = 1
    others.link.tell(EARLIER)
    others.clock.run(3 * CLAIM_NS // MS)
    assert others.cancelled == []
    assert others.names == {'earlier_goal'}  # nothing moves meanwhile
    assert others.asked > 1  # it is listened for all the time
    others.unheard = 0
    others.others.claim([EARLIER.hex()])
    others.clock.run(2 * CLAIM_NS // MS)
    assert others.cancelled == []
    assert others.names == {'foreign_goal'}


def test_a_goal_that_the_last_bridge_to_be_heard_does_not_claim_is_cancelled(
    others: Others,
) -> None:
    others.unheard = 1
    others.link.tell(EARLIER)
    others.clock.run(2 * CLAIM_NS // MS)
    others.unheard = 0
    others.clock.run(300)
    assert others.cancelled == [EARLIER.hex()]


def test_a_bridge_that_is_never_heard_is_waited_for_as_long_as_the_graph_keeps_the_dead(
    others: Others,
) -> None:
    others.unheard = 1
    others.link.tell(EARLIER)
    others.clock.run(UNHEARD_NS // MS - 300)
    assert others.cancelled == []
    others.clock.run(600)
    assert others.cancelled == [EARLIER.hex()]


class Reader:
    """A reader that the test hands messages to."""

    def __init__(self, node: Graph, thread: Thread, topic: str, *rest: Any, depth: int) -> None:
        self.take: Callable[[bytes], None] = rest[1]
        node.readers[topic] = self

    def start(self) -> None:
        """Begin."""

    def close(self) -> None:
        """End."""


class Graph:
    """A node that sees topics of beats, each with a number of publishers."""

    def __init__(self) -> None:
        self.publishers = {'/own/guardian/beat': 1}
        self.readers: dict[str, Reader] = {}

    def resolve_topic_name(self, name: str) -> str:
        return name.replace('~', '/own')

    def get_topic_names_and_types(self) -> list[tuple[str, list[str]]]:
        return [(topic, ['std_msgs/msg/String']) for topic in self.publishers]

    def count_publishers(self, topic: str) -> int:
        return self.publishers[topic]


def test_a_bridge_is_unheard_from_when_the_graph_shows_it_until_it_beats_and_when_it_hangs(
    clock: Clock, thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_claims, 'TopicReader', Reader)
    graph, claimed = Graph(), []

    def beat(instance: str, topic: str = '/other/guardian/beat') -> None:
        goals = (GuardedGoal(f'{instance}{24 * "0"}', 'server', True),)
        graph.readers[topic].take(Beat(instance, 1, Kind.BEAT, '', 0, goals).to_bytes())

    claims = BridgeClaims(graph, thread, MINE, claimed.extend)  # type: ignore[arg-type]
    claims.listen()
    assert claims.unheard() == 0  # there is only this one, which claims nothing here
    graph.publishers['/other/guardian/beat'] = 2
    clock.run(LOOK_NS // MS + 1)
    assert claims.unheard() == 2
    beat(MINE, '/own/guardian/beat')
    assert claimed == []
    beat('bbbbbbbb')
    assert claims.unheard() == 1
    beat('cccccccc')
    assert claims.unheard() == 0
    assert [goal_id[:8] for goal_id in claimed] == ['bbbbbbbb', 'cccccccc']
    clock.run(SILENT_NS // MS - 100)
    beat('cccccccc')
    clock.run(200)
    assert claims.unheard() == 1
    graph.publishers['/own/guardian/beat'] = 2  # one more of our own name
    assert claims.unheard() == 2


def test_a_foreign_goal_blocks_until_the_server_says_that_it_has_ended(others: Others) -> None:
    others.link.tell(FOREIGN)
    assert others.names == {'foreign_goal'}
    assert FOREIGN.hex() in others.stop.engaged['arm', 'foreign_goal']
    others.clock.run(3 * CLAIM_NS // MS)
    assert others.cancelled == []
    others.link.answers[FOREIGN](4, None)
    assert others.names == set()


def test_a_server_that_is_gone_blocks_nothing(others: Others) -> None:
    others.link.tell(FOREIGN)
    others.link.ready = False
    others.clock.run(2_100)
    assert others.names == set()


def test_a_goal_whose_server_is_not_found_yet_blocks_until_it_is_and_says_so(
    others: Others,
) -> None:
    others.link.ready = False
    others.link.tell(FOREIGN)  # the status came first, and comes only once
    others.clock.run(5_000)
    assert others.names == {'foreign_goal'}
    others.link.ready = True
    others.clock.run(300)
    assert others.names == {'foreign_goal'}
    others.link.answers[FOREIGN](4, None)
    assert others.names == set()


def test_a_server_that_is_never_found_blocks_as_long_as_the_graph_keeps_the_dead(
    others: Others,
) -> None:
    others.link.ready = False
    others.link.tell(FOREIGN)
    others.clock.run(MEET_NS // MS - 500)
    assert others.names == {'foreign_goal'}
    others.clock.run(1_000)
    assert others.names == set()


def test_foreign_goals_are_allowed_where_configured(clock: Clock, thread: Thread) -> None:
    others = Others(clock, thread, blocks=False)
    others.link.tell(FOREIGN)
    assert others.names == set()
    others.link.tell(FOREIGN, EARLIER)
    assert others.names == {'earlier_goal'}


def test_what_begins_during_one_of_our_goals_is_judged_when_ours_has_ended(
    others: Others,
) -> None:
    others.goals.add(goal(5))
    others.link.tell(FOREIGN)
    assert others.names == set()
    others.goals.discard(goal(5).goal_id)
    others.thread.turn()
    others.clock.run(200)
    assert others.names == set()
    others.clock.run(200)
    assert others.names == {'foreign_goal'}
