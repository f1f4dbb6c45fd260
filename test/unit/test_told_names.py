"""Which joints and tf frames a configuration counts on, and what is said of those nobody tells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace as Msg
from typing import Any

import pytest
import yaml

from awp_ros_bridge.config import BridgeConfig, load_text
from awp_ros_bridge.ros.adapters.registry import infos
from awp_ros_bridge.ros.told_names import names_of, ToldNames

SIM_ARM = Path(__file__).resolve().parents[2] / 'config' / 'sim_arm.yaml'
JOINTS = [f'joint_{number}' for number in range(1, 7)]


def loaded(**rest: Any) -> Any:
    body = yaml.safe_load(SIM_ARM.read_text(encoding='utf-8'))
    if rest:
        body['embodiments']['arm_01']['at_rest'] = rest
    result = load_text(yaml.safe_dump(body), 'robot.yaml', infos())
    assert result.config is not None, result.errors
    return result


def config(**rest: Any) -> BridgeConfig:
    found: BridgeConfig = loaded(**rest).config
    return found


class Node:
    """The graph as the test makes it, below a namespace."""

    def __init__(self) -> None:
        self.published = {'joint_states', '/tf'}
        self.callbacks: dict[str, Callable[[Any], None]] = {}

    def create_subscription(
        self, message_type: Any, topic: str, callback: Callable[[Any], None], *_: Any, **__: Any
    ) -> None:
        self.callbacks[topic] = callback

    def count_publishers(self, topic: str) -> int:
        return int(topic in self.published)

    def resolve_topic_name(self, topic: str) -> str:
        return topic if topic.startswith('/') else f'/cell/{topic}'

    def say_joints(self, *names: str) -> None:
        self.callbacks['joint_states'](Msg(name=list(names)))

    def say_frames(self, parent: str, child: str, topic: str = '/tf') -> None:
        header = Msg(frame_id=parent)
        self.callbacks[topic](Msg(transforms=[Msg(header=header, child_frame_id=child)]))


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def told(node: Node) -> ToldNames:
    return ToldNames(node, names_of(config()))  # type: ignore[arg-type]


def said(told: ToldNames) -> list[str]:
    return [f'{each.what}; {each.todo}' for each in told.missing()]


def test_everything_that_is_named_leads_to_a_line() -> None:
    result = loaded()
    found = list(names_of(result.config))
    assert {each.name for each in found} >= {'world', 'base', 'tool0', *JOINTS, 'gripper_joint'}
    for each in found:
        assert result.problem_at(each.path, each.use, '').line > 0, each


@pytest.mark.parametrize(
    ('rest', 'names'),
    [
        (
            {
                'topic': 'joint_states', 'max_velocity_radps': 0.01, 'for_ms': 100,
                'stale_after_ms': 500, 'groups': {'arm_motion': ['joint_1', 'joint_9']},
            },
            {'joint_1', 'joint_9'},
        ),
        (
            {
                'tf': {'frame': 'base_link', 'reference': 'odom'}, 'max_linear_mps': 0.01,
                'max_angular_radps': 0.01, 'for_ms': 100, 'stale_after_ms': 500,
            },
            {'base_link', 'odom'},
        ),
    ],
)  # fmt: skip
def test_each_form_of_rest_names_its_own(rest: dict[str, Any], names: set[str]) -> None:
    found = names_of(config(**rest))
    assert {each.name for each in found if each.use == 'the rest of arm_01'} == names


def test_the_joints_of_a_safety_input_are_named() -> None:
    body = yaml.safe_load(SIM_ARM.read_text(encoding='utf-8'))
    listed = {
        'kind': 'joint_states', 'topic': 'joint_states', 'joints': ['a'], 'stale_after_ms': 500,
    }  # fmt: skip
    body['safety'] = {**body['safety'], 'inputs': [listed]}
    result = load_text(yaml.safe_dump(body), 'robot.yaml', infos())
    assert result.config is not None, result.errors
    assert [each.name for each in names_of(result.config) if 'the world' in each.use] == ['a']


def test_nothing_is_missing_once_all_was_told(node: Node, told: ToldNames) -> None:
    node.say_joints(*JOINTS[:3])
    node.say_joints(*JOINTS[3:], 'gripper_joint')
    node.say_frames('world', '/base', '/tf_static')
    assert said(told) == [
        "frame tool0 of agents: /tf tells of no frame 'tool0'; known here: base, world"
    ]
    node.say_frames('base', 'tool0')
    assert said(told) == []


def test_a_joint_of_another_name_is_missed_and_the_nearest_is_named(
    node: Node, told: ToldNames
) -> None:
    node.say_frames('world', 'base')
    node.say_frames('base', 'tool0')
    node.say_joints(*JOINTS[:5], 'joint6', 'gripper_joint')
    assert said(told) == [
        "the rest of arm_01: /cell/joint_states tells of no joint 'joint_6'; "
        "did you mean 'joint6'?"
    ]


def test_a_silent_topic_is_missed_and_one_that_nobody_publishes_is_left_to_others(
    node: Node, told: ToldNames
) -> None:
    node.published = {'joint_states'}
    silent = said(told)
    assert len(silent) == len(JOINTS) + 1
    assert silent[0] == (
        "the rest of arm_01: /cell/joint_states is silent, so no joint 'joint_1' is known; "
        'look at what publishes it'
    )
    node.published = {'/tf_static'}
    assert [text.split(':')[0] for text in said(told)] == [
        'frame world of agents', 'frame base of agents', 'frame tool0 of agents',
    ]  # fmt: skip
