"""The graph of frames: nearest configured ancestors, static and moving ways, poses."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from awp_ros_bridge.ros.frame_graph import Edge, FrameGraph

IDENTITY = (0.0, 0.0, 0.0, 1.0)
TURNED = (0.0, 0.0, math.sin(math.pi / 4), math.cos(math.pi / 4))


def edge(
    parent: str,
    p_m: tuple[float, float, float] = (0.0, 0.0, 0.0),
    q: tuple[float, float, float, float] = IDENTITY,
    is_static: bool = True,
    arrival_ns: int = 0,
) -> Edge:
    return Edge(parent, is_static, struct.pack('<7d', *p_m, *q), 0, 0, arrival_ns)


def entries(graph: FrameGraph) -> dict[str, dict[str, Any]]:
    return {entry['id']: entry for entry in graph.entries()}


@pytest.fixture
def graph() -> FrameGraph:
    made = FrameGraph({'world': 'map', 'base': 'base', 'tool': 'tool0', 'cam': 'cam'}, 'world')
    made.update('odom', edge('map', (1.0, 0.0, 0.0)))
    made.update('base', edge('odom', (0.0, 2.0, 0.0), TURNED, is_static=False, arrival_ns=50))
    made.update('link', edge('base', (0.0, 0.0, 0.5)))
    made.update('tool0', edge('link', (1.0, 0.0, 0.0)))
    return made


def test_each_frame_hangs_on_its_nearest_configured_ancestor(graph: FrameGraph) -> None:
    found = entries(graph)
    assert list(found) == ['world', 'base', 'tool', 'cam']
    assert found['world'] == {'id': 'world', 'parent': None}
    assert found['base'] == {'id': 'base', 'parent': 'world', 'dynamic': True}
    assert found['tool']['parent'] == 'base'
    assert found['tool']['transform']['p_m'] == pytest.approx([1.0, 0.0, 0.5])
    assert found['cam'] == {'id': 'cam', 'parent': 'world', 'dynamic': True}
    assert graph.missing() == ['cam']


def test_moving_frames_are_sampled_as_far_as_they_are_known(graph: FrameGraph) -> None:
    (found,) = graph.transforms()
    assert (found['frame'], found['parent']) == ('base', 'world')
    assert found['p_m'] == pytest.approx([1.0, 2.0, 0.0])
    assert found['q'] == pytest.approx(TURNED)


def test_what_changes_the_tree_is_told_and_nothing_else(graph: FrameGraph) -> None:
    assert not graph.update('base', edge('odom', (9.0, 0.0, 0.0), is_static=False))
    assert not graph.update('tool0', edge('link', (1.0, 0.0, 0.0)))
    assert graph.update('tool0', edge('link', (2.0, 0.0, 0.0)))
    assert graph.update('tool0', edge('base', (2.0, 0.0, 0.0)))
    assert graph.update('tool0', edge('base', (2.0, 0.0, 0.0), is_static=False))
    # Told on both topics: what moves stays what moves.
    assert not graph.update('tool0', edge('base', (2.0, 0.0, 0.0)))
    assert entries(graph)['tool']['dynamic']
    assert graph.update('cam', edge('map'))


def test_poses_between_any_two_frames(graph: FrameGraph) -> None:
    pose = graph.pose_in('tool', 'world')
    assert pose is not None
    assert pose.position_m == pytest.approx((1.0, 3.0, 0.5))
    back = graph.pose_in('world', 'tool')
    assert back is not None
    assert back.position_m == pytest.approx((-3.0, 1.0, -0.5))
    same = graph.pose_in('tool', 'tool')
    assert same is not None
    assert same.position_m == (0.0, 0.0, 0.0)
    graph.update('cam', edge('odom', (0.0, 0.0, 5.0)))
    side = graph.pose_in('cam', 'base')
    assert side is not None
    assert side.position_m == pytest.approx((-2.0, 0.0, 5.0))


def test_what_is_unknown_too_old_or_no_transform_has_no_pose(graph: FrameGraph) -> None:
    assert graph.pose_in('cam', 'world') is None
    assert graph.pose_in('world', 'cam') is None
    assert graph.pose_in('nope', 'world') is None
    assert graph.pose_in('tool', 'nope') is None
    assert graph.pose_in('base', 'world', not_before_ns=50) is not None
    assert graph.pose_in('base', 'world', not_before_ns=51) is None
    assert graph.pose_in('tool', 'base', not_before_ns=51) is not None
    for broken in (edge('map', q=(0, 0, 0, 0)), edge('map', (math.nan, 0, 0))):
        graph.update('cam', broken)
        assert graph.pose_in('cam', 'world') is None
        assert graph.pose_in('cam', 'tool') is None
        assert entries(graph)['cam']['dynamic']


def test_a_frame_above_the_root_is_seen_from_the_root() -> None:
    graph = FrameGraph({'base': 'base', 'map': 'map'}, 'base')
    graph.update('base', edge('map', (1.0, 0.0, 0.0)))
    found = entries(graph)['map']
    assert found['parent'] == 'base'
    assert found['transform']['p_m'] == pytest.approx([-1.0, 0.0, 0.0])


def test_a_loop_in_tf_ends_nowhere() -> None:
    graph = FrameGraph({'world': 'map', 'a': 'a', 'b': 'b'}, 'world')
    graph.update('a', edge('x'))
    graph.update('x', edge('a'))
    assert graph.pose_in('a', 'world') is None
    assert entries(graph)['a']['dynamic']
    assert graph.pose_in('b', 'a') is None
