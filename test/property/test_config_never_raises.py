"""Whatever a file holds, loading answers with a configuration or with problems that have lines."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
import yaml

from awp_ros_bridge.config import load_text
from awp_ros_bridge.config.document import read

Json = dict[str, Any]

BASE = """\
world: {name: cell, vendor: maker}
guardian: 'off'
frames: {include: {base: base}}
embodiments:
  arm_01:
    kind: manipulator
    actions: [move, stop]
    channels: [proprio, arm_state]
    at_rest: {topic: joint_states, max_velocity_radps: 0.01}
    safety_inputs:
      - {topic: e_stop, type: std_msgs/msg/Bool, field: data, unsafe_when: true, means: e_stop,
         freshness: {by: message}, stale_after_ms: 500}
    envelope: {spatial: {frame: base, aabb_m: [[0, 0, 0], [1, 1, 1]]}, max_velocity_mps: 0.5}
channels:
  proprio: {topic: joint_states, type: sensor_msgs/msg/JointState, modality: proprio/json,
            rate_hz: 100, loss_class: latest-wins}
  arm_state: {source: embodiment_state}
actions:
  move: {adapter: mover, ros_action: arm/move, concurrency_group: g, max_duration_ms: 1000}
  stop: {adapter: stopper, concurrency_group: g}
"""

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(['off', 'arm_01', 'move', 'base', 'message', '/x', 'awp.tf', '0.0.0.0'])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of everything inside."""
    found = [path] if path else []
    items: Any = ()
    if isinstance(data, dict):
        items = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    for key, value in items:
        found += places(value, (*path, key))
    return found


PLAIN = yaml.safe_load(BASE)
PLACES = places(PLAIN)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3))
def test_any_change_is_answered_with_problems_that_have_lines(changes: Any) -> None:
    data: Any = copy.deepcopy(PLAIN)
    for path, value in changes:
        inner = data
        try:
            for part in path[:-1]:
                inner = inner[part]
            inner[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    result = load_text(yaml.safe_dump(data, allow_unicode=True), 'robot.yaml')
    assert (result.config is None) == bool(result.errors)
    for problem in result.problems:
        assert problem.line >= 1
        assert problem.what
        assert problem.todo
        assert '\n' not in str(problem)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.sampled_from('abc:-,[]{}&*!<?#|>\'"%@`~ \n\t0.1é\x00'), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    document = read(text)
    assert all(line >= 1 for line, _ in document.findings)
    load_text(text)


@settings(max_examples=50, deadline=None)
@given(VALUES)
def test_plain_values_are_read_as_they_were_written(value: Any) -> None:
    document = read(yaml.safe_dump({'key': value}, allow_unicode=True))
    if document.findings:
        return
    read_back = document.value['key']
    expected = yaml.safe_load(yaml.safe_dump(value))
    if repr(expected) != repr(read_back):  # YAML 1.1 and 1.2 differ on a few texts only
        assert type(expected) is type(value)
