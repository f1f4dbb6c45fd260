"""A small valid configuration, ways to change it, and adapters that need no ROS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import copy
from dataclasses import dataclass, field
import json
from typing import Any

import yaml

from awp_ros_bridge.config import BridgeConfig, load_text, LoadResult
from awp_ros_bridge.config.problems import Finding

Json = dict[str, Any]

SAMPLE = """\
world: {name: cell, vendor: maker}
guardian: 'off'
frames: {root: world, include: {base: robot/base, tool0: tool0}}
embodiments:
  arm_01:
    kind: manipulator
    actions: [move, follow, stop]
    channels: [proprio, arm_state]
    at_rest: {topic: joint_states, max_velocity_radps: 0.01}
    safety_inputs:
      - topic: safety/e_stop
        type: std_msgs/msg/Bool
        field: data
        unsafe_when: true
        means: e_stop
        freshness: {by: message}
        stale_after_ms: 500
    envelope:
      spatial: {frame: base, aabb_m: [[-0.5, -0.5, 0.0], [0.5, 0.5, 0.8]]}
      max_velocity_mps: 0.5
channels:
  proprio:
    topic: joint_states
    type: sensor_msgs/msg/JointState
    modality: proprio/json
    rate_hz: 100
    loss_class: latest-wins
  arm_state: {source: embodiment_state}
actions:
  move:
    adapter: mover
    ros_action: arm/move
    concurrency_group: arm_motion
    preemption: [replace, queue]
    max_queue: 4
    max_duration_ms: 10000
    max_abort_ms: 1500
  follow:
    adapter: follower
    ros_action: arm/follow
    concurrency_group: arm_motion
    max_duration_ms: 60000
  stop: {adapter: stopper, concurrency_group: arm_motion}
"""


_PLAIN: Json = yaml.safe_load(SAMPLE)


def sample() -> Json:
    """Return the sample as plain values that a test may change."""
    return copy.deepcopy(_PLAIN)


def loaded(change: Callable[[Json], object] | None = None, adapters: Any = None) -> LoadResult:
    """Load the sample after a change."""
    data = sample()
    if change is not None:
        change(data)
    text = json.dumps(data, indent=1).replace('Infinity', '.inf')  # JSON is YAML
    return load_text(text, 'robot.yaml', adapters)


def config(change: Callable[[Json], object] | None = None) -> BridgeConfig:
    """Return the sample's configuration, which must have no error."""
    result = loaded(change)
    assert result.config is not None, '\n'.join(map(str, result.problems))
    return result.config


def _parts(path: str) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in path.split('/')]


def put(path: str, value: Any) -> Callable[[Json], None]:
    """Return a change that puts a value at a dotted path."""

    def change(data: Any) -> None:
        *way, last = _parts(path)
        for part in way:
            data = data[part] if isinstance(data, list) else data.setdefault(part, {})
        data[last] = value

    return change


def drop(path: str) -> Callable[[Json], None]:
    """Return a change that removes what stands at a dotted path."""

    def change(data: Any) -> None:
        *way, last = _parts(path)
        for part in way:
            data = data[part]
        del data[last]

    return change


def said(result: LoadResult) -> list[str]:
    """Return the problems without file and line."""
    return [f'{each.path}: {each.what}; {each.todo}' for each in result.problems]


@dataclass(frozen=True)
class FakeAdapter:
    """An adapter as the loader and the manifest see it."""

    name: str
    kind: str = 'action'
    extended: bool = True
    native_replace: bool = False
    needs_motion: bool = True
    ros_type: str = 'test_msgs/action/Fibonacci'
    limits: frozenset[str] = frozenset({'spatial', 'max_velocity_mps'})
    options: Mapping[str, str] = field(default_factory=lambda: {'speed': 'how fast it moves'})

    def params_schema(self, options: Json) -> Json:
        if 'speed' in options and not isinstance(options['speed'], float):
            raise ValueError('speed must be a number')
        return {
            'type': 'object',
            'properties': {'goal_rad': {'type': 'number'}},
            'additionalProperties': False,
        }

    def limits_checked(self, options: Json) -> frozenset[str]:
        if 'speed' in options and not isinstance(options['speed'], float):
            raise ValueError('speed must be a number')
        return self.limits

    def option_findings(self, options: Json) -> Sequence[Finding]:
        return ()


ADAPTERS = {
    'mover': FakeAdapter('mover'),
    'follower': FakeAdapter('follower', native_replace=True),
    'caller': FakeAdapter('caller', kind='service', extended=False),
    'stopper': FakeAdapter('stopper', 'builtin', extended=False, needs_motion=False, ros_type=''),
}
