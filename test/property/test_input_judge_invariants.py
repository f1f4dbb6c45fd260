"""Whatever messages come in whatever order, an input permits motion only for a reason."""

from __future__ import annotations

from types import SimpleNamespace as Msg
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from awp_ros_bridge.config import SafetyInput
from awp_ros_bridge.config.field_path import field_steps
from awp_ros_bridge.config.ready_inputs import DiagnosticsInput
from awp_ros_bridge.ros.input_judge import InputJudge

MS = 1_000_000
STALE_MS = 100
VALUES = st.one_of(
    st.integers(-2, 9), st.floats(), st.booleans(), st.text(max_size=2), st.none(), st.just([])
)
NEWS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.one_of(st.none(), st.builds(lambda v: Msg(data=v), VALUES), st.just(Msg())),
        st.integers(0, 150),
    ),
    max_size=30,
)
CONDITIONS = st.sampled_from(
    [{'equals': 3}, {'in': [3, 4]}, {'not_in': [1, 2]}, {'above': 2.0}, {'below': 2.0}, {'bit': 1}]
)


def general(condition: dict[str, Any]) -> SafetyInput:
    return SafetyInput.model_validate(
        {
            'topic': 't', 'type': 'std_msgs/msg/Int32', 'field': 'data', 'means': 'fault',
            'unsafe_when': condition, 'freshness': {'by': 'message'}, 'stale_after_ms': STALE_MS,
        }
    )  # fmt: skip


@given(CONDITIONS, NEWS, st.integers(0, 300))
@settings(max_examples=300)
def test_motion_is_permitted_only_by_young_safe_messages_of_every_reader_heard(
    condition: dict[str, Any], news: list[tuple[int, Any, int]], wait_ms: int
) -> None:
    form = general(condition)
    judge = InputJudge(form.spec)
    now_ms = 1
    newest: dict[int, Any] = {}
    heard_ms: int | None = None
    for reader, message, passed_ms in news:
        now_ms += passed_ms
        judge.take(reader, message, now_ms * MS)
        newest[reader] = message
        if message is not None and hasattr(message, 'data'):
            heard_ms = now_ms
    now_ms += wait_ms
    unsafe = any(
        message is None or not hasattr(message, 'data') or form.unsafe_when.holds(message.data)
        for message in newest.values()
    )
    is_young = heard_ms is not None and now_ms - heard_ms < STALE_MS
    assert judge.permits_motion(now_ms * MS) is (not unsafe and is_young)
    assert (judge.tripped() is not None) is unsafe
    assert not judge.permits_motion((now_ms + STALE_MS) * MS)


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from('abc'), st.integers(0, 5), max_size=3),
            st.integers(0, 60),
        ),
        max_size=20,
    )
)
def test_every_item_must_be_young_and_well(news: list[tuple[dict[str, int], int]]) -> None:
    form = DiagnosticsInput.model_validate(
        {'kind': 'diagnostics', 'items': ['a', 'b'], 'stale_after_ms': STALE_MS}
    )
    judge = InputJudge(form.spec)
    now_ms = 1
    known: dict[str, tuple[int, int]] = {}
    for levels, passed_ms in news:
        now_ms += passed_ms
        status = [Msg(name=name, level=level) for name, level in levels.items()]
        judge.take(0, Msg(status=status), now_ms * MS)
        known |= {name: (level, now_ms) for name, level in levels.items()}
    expected = all(
        item in known and known[item][0] <= 1 and now_ms - known[item][1] < STALE_MS
        for item in 'ab'
    )
    assert judge.permits_motion(now_ms * MS) is expected


@given(st.text(alphabet='ab0[]=.: ', max_size=12))
def test_a_path_is_read_or_refused(text: str) -> None:
    try:
        steps = field_steps(text)
    except ValueError:
        return
    assert steps
    assert isinstance(steps[0], str)
