"""Owns the graph of tf frames and what agents see of it: the frame tree (AWP-UNI-003, UNI-004)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from awp_ros_bridge.kinematics import ChainError, Pose
from awp_ros_bridge.kinematics.chain import placement_of, pose_of
from awp_ros_bridge.ros.cdr import read_transform

Json = dict[str, Any]

# Longer ways through tf do not occur; a loop would.
_LONGEST_WAY = 200


@dataclass(frozen=True, slots=True)
class Edge:
    """
    The newest transform from a tf frame to its parent.

    :param raw: the message that holds the numbers, at ``at``; they are decoded when asked for
    :param arrival_ns: steady time of arrival
    """

    parent: str
    is_static: bool
    raw: bytes
    at: int
    stamp_ns: int
    arrival_ns: int

    def pose(self) -> Pose:
        """Return where the frame stands in its parent."""
        x, y, z, qx, qy, qz, qw = read_transform(self.raw, self.at)
        return Pose((x, y, z), (qx, qy, qz, qw))


class FrameGraph:
    """
    The tf frames heard of, and the configured ones among them.

    Written on one thread; :meth:`pose_in` may be called on any.

    :param frames: AWP frame name to tf frame
    :param root: AWP name of the root
    """

    def __init__(self, frames: Mapping[str, str], root: str) -> None:
        self.frames = dict(frames)
        self.root = root
        self._awp = {tf: name for name, tf in self.frames.items()}
        self._edges: dict[str, Edge] = {}

    def update(self, child: str, edge: Edge) -> bool:
        """Take a transform; tell whether the tree may look different now."""
        before = self._edges.get(child)
        if before is not None and edge.is_static and not before.is_static:
            return False  # told on both topics: what moves is not static
        self._edges[child] = edge
        if before is None or before.parent != edge.parent or before.is_static != edge.is_static:
            return True
        return edge.is_static and before.pose() != edge.pose()

    def missing(self) -> list[str]:
        """List the configured frames (AWP name) that nothing relates to the root yet."""
        return [
            name
            for name in self.frames
            if name != self.root and self._way(self.frames[name], self._root_frame) is None
        ]

    def entries(self) -> tuple[Json, ...]:
        """Return the frame tree, root first; what is not known yet is declared dynamic."""
        found: list[Json] = [{'id': self.root, 'parent': None}]
        for name, tf_frame in self.frames.items():
            if name == self.root:
                continue
            parent = self._parent(tf_frame)
            way = self._way(tf_frame, self.frames[parent])
            entry: Json = {'id': name, 'parent': parent}
            pose = _pose(way) if way is not None and _is_static(way) else None
            if pose is None:
                entry['dynamic'] = True
            else:
                entry['transform'] = _transform(pose)
            found.append(entry)
        return tuple(found)

    def transforms(self) -> Iterator[Json]:
        """Yield the transforms of the dynamic frames, as far as they are known."""
        for name, tf_frame in self.frames.items():
            if name == self.root:
                continue
            parent = self._parent(tf_frame)
            way = self._way(tf_frame, self.frames[parent])
            if way is None or _is_static(way):
                continue
            pose = _pose(way)
            if pose is not None:
                yield {'frame': name, 'parent': parent, **_transform(pose)}

    def pose_in(self, frame: str, reference: str, not_before_ns: int = 0) -> Pose | None:
        """
        Compute the pose of an AWP frame in another one, None where tf does not tell it.

        :param not_before_ns: steady time; transforms that move and arrived earlier are too old
        """
        if frame not in self.frames or reference not in self.frames:
            return None
        way = self._way(self.frames[frame], self.frames[reference])
        if way is None:
            return None
        if any(not edge.is_static and edge.arrival_ns < not_before_ns for edge, _ in way):
            return None
        return _pose(way)

    def moving(self, frame: str, reference: str) -> list[tuple[str, int]] | None:
        """
        List the moving transforms between two AWP frames: which of the way it is, stamp in ns.

        None where tf does not relate the frames.
        """
        way = self._way(self.frames[frame], self.frames[reference])
        if way is None:
            return None
        return [
            (f'{edge.parent}{"<" if up else ">"}', edge.stamp_ns)
            for edge, up in way
            if not edge.is_static
        ]

    def placed_in(
        self, frame: str, reference: str
    ) -> tuple[Pose, int | None, int | None] | None:
        """
        Compute the pose of an AWP frame in another one and how new it is.

        :return: the pose, the newest stamp and the oldest arrival (steady) of the transforms on
            the way that move, both None where none does; None where tf does not tell
        """
        if frame not in self.frames or reference not in self.frames:
            return None
        way = self._way(self.frames[frame], self.frames[reference])
        pose = None if way is None else _pose(way)
        if way is None or pose is None:
            return None
        moving = [edge for edge, _ in way if not edge.is_static]
        if not moving:
            return pose, None, None
        return pose, max(e.stamp_ns for e in moving), min(e.arrival_ns for e in moving)

    @property
    def _root_frame(self) -> str:
        return self.frames[self.root]

    def _parent(self, tf_frame: str) -> str:
        """Find the nearest configured ancestor (AWP name); the root where there is none."""
        for ancestor, _ in self._ancestors(tf_frame):
            if ancestor != tf_frame and ancestor in self._awp:
                return self._awp[ancestor]
        return self.root

    def _ancestors(self, tf_frame: str) -> Iterator[tuple[str, Edge | None]]:
        """Yield a frame and its ancestors, each with the edge that leads on to its parent."""
        edges = self._edges
        for _ in range(_LONGEST_WAY):
            edge = edges.get(tf_frame)
            yield tf_frame, edge
            if edge is None:
                return
            tf_frame = edge.parent

    def _way(self, tf_frame: str, reference: str) -> list[tuple[Edge, bool]] | None:
        """Return the edges from one frame to another, each with True where it leads up."""
        up = dict(self._ancestors(tf_frame))
        down: list[tuple[Edge, bool]] = []
        for common, edge in self._ancestors(reference):
            if common in up:
                break
            if edge is None:
                return None
            down.append((edge, False))
        else:
            return None
        way: list[tuple[Edge, bool]] = []
        for ancestor, edge in up.items():
            if ancestor == common:
                return [*way, *reversed(down)]
            if edge is None:
                return None
            way.append((edge, True))
        return None


def _is_static(way: list[tuple[Edge, bool]]) -> bool:
    return all(edge.is_static for edge, _ in way)


def _pose(way: list[tuple[Edge, bool]]) -> Pose | None:
    """Compose the transforms along a way, None where one of them is no transform."""
    if len(way) == 1 and way[0][1]:
        pose = way[0][0].pose()  # as it was said, without rounding
        return pose if _is_pose(pose) else None
    try:
        steps = [
            placement_of(edge.pose()) if up else placement_of(edge.pose()).inverse()
            for edge, up in way
        ]
    except ChainError:
        return None
    if not steps:
        return Pose((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    return pose_of(reduce(lambda below, above: above * below, steps))


def _is_pose(pose: Pose) -> bool:
    try:
        placement_of(pose)
    except ChainError:
        return False
    return abs(sum(v * v for v in pose.quaternion_xyzw) - 1.0) <= 1e-3


def _transform(pose: Pose) -> Json:
    return {'p_m': list(pose.position_m), 'q': list(pose.quaternion_xyzw)}
