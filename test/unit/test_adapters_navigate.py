"""The check of a drive to a pose: frame, orientation, box; options; no ROS."""

from __future__ import annotations

import math
from typing import Any

from adapter_context import pose_params, Robot
import pytest

from awp_ros_bridge.config import load_text
from awp_ros_bridge.engine.policy import RefusalKind
from awp_ros_bridge.kinematics import Pose
from awp_ros_bridge.ros.adapters import registry
from awp_ros_bridge.ros.adapters.base import Limits

FLOOR = Limits(frame='world', aabb_m=((-5.0, -5.0, -0.5), (5.0, 5.0, 0.5)))
YAW = (0.0, 0.0, math.sin(0.4), math.cos(0.4))


def base(limits: Limits = FLOOR, **options: Any) -> Any:
    # The frame base is turned by a quarter and stands at x = 4 in world.
    pose = Pose((4.0, 0.0, 0.0), (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5)))
    robot = Robot(chain=None, joints=None, poses={('base', 'world'): pose})
    return registry.build('navigate_to_pose', robot.context(limits, **options))


def refusal(adapter: Any, *pose: Any, **more: Any) -> tuple[RefusalKind, str]:
    found = adapter.check(pose_params(*pose, **more))
    assert found is not None
    return found.kind, found.detail


@pytest.mark.parametrize(
    ('p_m', 'frame'),
    [((1.0, 2.0, 0.0), 'world'), ((5.0, -5.0, 0.0), 'world'), ((1.0, -0.5, 0.0), 'base')],
)
def test_a_target_inside_the_box_may_be_driven_to(p_m: Any, frame: str) -> None:
    assert base().check(pose_params(p_m, YAW, frame)) is None


@pytest.mark.parametrize(
    ('p_m', 'frame', 'where'),
    [
        ((5.1, 0.0, 0.0), 'world', '(5.100, 0.000, 0.000)'),
        ((0.0, 0.0, 0.6), 'world', '(0.000, 0.000, 0.600)'),
        # 1.5 m to the right of base is 5.5 m along x of world.
        ((1.0, -1.5, 0.0), 'base', '(5.500, 1.000, 0.000)'),
    ],
)
def test_a_target_outside_the_box_is_refused_in_the_frame_of_the_box(
    p_m: Any, frame: str, where: str
) -> None:
    kind, detail = refusal(base(), p_m, YAW, frame)
    assert kind is RefusalKind.ENVELOPE
    assert f"{where} m in frame 'world' is outside the box from (-5, -5, -0.5)" in detail


def test_a_frame_that_tf_does_not_relate_to_the_box_waits() -> None:
    kind, detail = refusal(base(), (0.0, 0.0, 0.0), YAW, 'camera')
    assert kind is RefusalKind.UNREADY
    assert "frame 'camera' cannot be related to 'world'" in detail
    assert base(Limits()).check(pose_params((99.0, 0.0, 0.0), YAW, 'camera')) is None


@pytest.mark.parametrize(
    ('p_m', 'q', 'frame', 'text'),
    [
        ((0.0, math.nan, 0.0), YAW, 'world', 'params.pose.p_m[1]: not a finite number'),
        ((0.0, 0.0, 0.0), (0, 0, 0, 0), 'world', 'params.pose.q: a quaternion of length 0'),
        ((0.0, 0.0, 0.0), YAW, 'nope', "params.pose.frame: unknown frame 'nope'; known frames: w"),
        ((0.0, 0.0, 0.0), (1, 0, 0, 0), 'world', 'params.pose.q: it leans by 3.142 rad; a base t'),
        (
            (0.0, 0.0, 0.0),
            (math.sin(0.03), 0, 0, math.cos(0.03)),
            'world',
            'it leans by 0.060 rad; a base turns about z only, and may lean by 0.05 rad at most',
        ),
    ],
)
def test_a_pose_that_is_none_for_a_base_is_refused_by_path(
    p_m: Any, q: Any, frame: str, text: str
) -> None:
    kind, detail = refusal(base(), p_m, q, frame)
    assert kind is RefusalKind.PARAMS
    assert text in detail


def test_a_floor_that_is_not_quite_even_is_no_lean() -> None:
    lean = (math.sin(0.02), 0, 0, math.cos(0.02))
    assert base().check(pose_params((0.0, 0.0, 0.0), lean, 'world')) is None


def test_frames_may_be_narrowed() -> None:
    adapter = base(frames=['world'])
    assert adapter.check(pose_params((1.0, 0.0, 0.0), YAW, 'world')) is None
    kind, detail = refusal(adapter, (1.0, 0.0, 0.0), YAW, 'base')
    assert kind is RefusalKind.PARAMS
    assert "the base is not driven in 'base'; write one of world" in detail
    schema = adapter.params_schema({'frames': ['world']})
    assert schema['properties']['pose']['properties']['frame']['enum'] == ['world']
    with pytest.raises(ValueError, match=r"option frames: 'moon' is not a frame"):
        base(frames=['moon'])


@pytest.mark.parametrize(
    'options', [{'frames': 'map'}, {'frames': []}, {'frames': [1]}, {'behavior_tree': 3}]
)
def test_a_bad_option_is_named(options: Any) -> None:
    with pytest.raises(ValueError, match=f'option {next(iter(options))}'):
        registry.infos()['navigate_to_pose'].params_schema(options)


def test_the_way_is_the_planners_so_limits_must_be_measured() -> None:
    text = """\
world: {name: floor, vendor: maker}
guardian: 'off'
frames: {root: map}
embodiments:
  base_01:
    kind: mobile_base
    actions: [drive]
    at_rest: {odometry: odom, max_linear_mps: 0.02, max_angular_radps: 0.05}
    safety_inputs: [{kind: bool, topic: e_stop}]
    envelope:
      spatial: {frame: map, aabb_m: [[-5, -5, -1], [5, 5, 1]]}
      measured: {source: odometry}
      enforcement: WHERE
actions:
  drive: {adapter: navigate_to_pose, ros_action: navigate_to_pose, max_duration_ms: 1000}
"""
    both = load_text(text.replace('WHERE', 'both'), 'f', registry.infos())
    assert [problem.what for problem in both.errors] == [
        "spatial cannot be checked on 'drive' (adapter 'navigate_to_pose')"
    ]
    assert load_text(text.replace('WHERE', 'measured'), 'f', registry.infos()).problems == ()
