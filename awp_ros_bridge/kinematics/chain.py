"""
Owns the kinematic chain: a robot description reduced to named joints, and its forward kinematics.

The mathematics is pinocchio's. A chain keeps every joint that it does not name at its neutral
position (a gripper's fingers, say), so a configuration is exactly the named joints, in the order
in which they were named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


class ChainError(ValueError):
    """A description, frame or joint that no chain can be made of, or a wrong configuration."""


@dataclass(frozen=True, slots=True)
class Pose:
    """
    A position and an orientation in a frame that the caller knows.

    :ivar position_m: x, y, z in metres
    :ivar quaternion_xyzw: unit quaternion, scalar last
    """

    position_m: tuple[float, float, float]
    quaternion_xyzw: tuple[float, float, float, float]

    def distance_m(self, other: 'Pose') -> float:
        """Measure the straight distance between the two positions."""
        return math.dist(self.position_m, other.position_m)

    def angle_rad(self, other: 'Pose') -> float:
        """Measure the angle of the rotation between the two orientations, 0 to pi."""
        pairs = zip(self.quaternion_xyzw, other.quaternion_xyzw, strict=True)
        dot = abs(sum(a * b for a, b in pairs))
        return 2.0 * math.acos(min(1.0, dot))


class Chain:
    """
    The chain from a base frame to a tip frame through named joints.

    An instance owns scratch memory: use it from one thread.

    :ivar joint_names: the joints of a configuration, in its order
    :ivar lower_rad: lower position limits (metres for prismatic joints), -inf where there is none
    :ivar upper_rad: upper position limits, inf where there is none
    :ivar max_velocity_radps: velocity limits, inf where the description names none
    :ivar revolute: True for joints that turn, False for joints that slide
    """

    def __init__(
        self, model: Any, base_frame: str, tip_frame: str, joint_names: tuple[str, ...]
    ) -> None:
        """Build on a reduced pinocchio model; :meth:`from_urdf` is the usual way."""
        self.joint_names = joint_names
        self.base_frame = base_frame
        self.tip_frame = tip_frame
        self._model = model
        self._data = model.createData()
        self._base_id = self.frame_index(base_frame)
        self._tip_id = self.frame_index(tip_frame)
        ids = [model.getJointId(name) for name in joint_names]
        self._columns = [int(model.idx_vs[i]) for i in ids]
        # A continuous joint is a point on the unit circle in pinocchio: two numbers, not one.
        self._places = [(int(model.idx_qs[i]), int(model.nqs[i]) == 2) for i in ids]
        self._has_circles = any(is_circle for _, is_circle in self._places)
        self._order = [place for place, _ in self._places]
        self.lower_rad, self.upper_rad = self._position_limits()
        velocity = np.array([model.velocityLimit[c] for c in self._columns], dtype=np.float64)
        velocity[~(velocity > 0.0) | ~np.isfinite(velocity)] = math.inf
        self.max_velocity_radps: Vector = velocity
        kinds = [str(model.joints[i].shortname()) for i in ids]
        self.revolute = np.array([kind.startswith('JointModelR') for kind in kinds])

    @classmethod
    def from_urdf(
        cls, urdf: str, base_frame: str, tip_frame: str, joint_names: Sequence[str]
    ) -> 'Chain':
        """
        Load a chain from the text of a URDF.

        :param joint_names: movable joints in the order that configurations use
        :raises ChainError: unreadable description, unknown frame or joint, joint named twice, or
            a joint with more than one degree of freedom
        """
        try:
            full = pin.buildModelFromXML(urdf)
        except (ValueError, RuntimeError) as error:
            raise ChainError(f'the robot description is not a readable URDF: {error}') from error
        names = tuple(joint_names)
        known = list(full.names)[1:]
        _check_joints(names, known, full)
        locked = [full.getJointId(name) for name in known if name not in names]
        model = pin.buildReducedModel(full, locked, pin.neutral(full))
        return cls(model, base_frame, tip_frame, names)

    @property
    def dof(self) -> int:
        """Count the joints of a configuration."""
        return len(self.joint_names)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """List the links of the description."""
        bodies = (f.name for f in self._model.frames if f.type == pin.FrameType.BODY)
        return tuple(sorted(set(bodies)))

    def frame_index(self, frame: str) -> int:
        """
        Find a link of the description.

        :raises ChainError: the description has no such link
        """
        if not self._model.existBodyName(frame):
            names = ', '.join(self.frame_names)
            raise ChainError(f'no link {frame!r} in the robot description; it has {names}')
        return int(self._model.getFrameId(frame, pin.FrameType.BODY))

    def forward(self, q_rad: Sequence[float] | Vector, frame: str | None = None) -> Pose:
        """
        Compute the pose of the tip.

        :param frame: the link in which the pose is expressed; the chain's base where omitted
        """
        base_id = self._base_id if frame is None else self.frame_index(frame)
        return pose_of(self._relative(q_rad, base_id))

    def tip_position(self, q_rad: Sequence[float] | Vector) -> Vector:
        """Compute the position of the tip in the base frame, shape (3,), metres."""
        position: Vector = np.array(self._relative(q_rad, self._base_id).translation)
        return position

    def tip_placement(self, q_rad: Sequence[float] | Vector) -> Any:
        """Compute the tip in the base frame as pinocchio's SE3."""
        return self._relative(q_rad, self._base_id)

    def to_base(self, pose: Pose, frame: str, q_rad: Sequence[float] | Vector) -> Pose:
        """
        Express a pose that is given in another link of the description in the base frame.

        :param frame: the link the pose is given in
        :param q_rad: the configuration, for links that move
        """
        if frame == self.base_frame:
            return pose
        frame_id = self.frame_index(frame)
        self._place(q_rad)
        base, other = self._data.oMf[self._base_id], self._data.oMf[frame_id]
        return pose_of(base.actInv(other) * placement_of(pose))

    def tip_jacobian(self, q_rad: Sequence[float] | Vector, local: bool = False) -> Matrix:
        """
        Compute the Jacobian of the tip, shape (6, dof): linear rows (m/rad), then angular ones.

        :param local: in the tip's own frame instead of the base frame
        """
        q = self._full(q_rad)
        pin.computeJointJacobians(self._model, self._data, q)
        pin.updateFramePlacements(self._model, self._data)
        frame = pin.ReferenceFrame.LOCAL if local else pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        full = pin.getFrameJacobian(self._model, self._data, self._tip_id, frame)
        jacobian: Matrix = np.array(full[:, self._columns])
        if not local:
            rotation = self._data.oMf[self._base_id].rotation.T
            jacobian = np.vstack((rotation @ jacobian[:3], rotation @ jacobian[3:]))
        return jacobian

    def tip_speed_mps(
        self, q_rad: Sequence[float] | Vector, dq_radps: Sequence[float] | Vector
    ) -> float:
        """Compute the linear speed of the tip relative to the base frame."""
        linear = self.tip_jacobian(q_rad, local=True)[:3]
        return float(np.linalg.norm(linear @ np.asarray(dq_radps, dtype=np.float64)))

    def limit_violations(self, q_rad: Sequence[float] | Vector, slack_rad: float = 0.0) -> str:
        """
        Say which joints lie outside their position limits.

        :return: one text that names joint, value and limits, empty where all are inside
        """
        found = []
        rows = zip(self.joint_names, q_rad, self.lower_rad, self.upper_rad, strict=True)
        for name, value, low, high in rows:
            if not low - slack_rad <= value <= high + slack_rad:
                found.append(f'{name} at {value:.4f} is outside [{low:.4f}, {high:.4f}]')
        return '; '.join(found)

    def _place(self, q_rad: Sequence[float] | Vector) -> None:
        pin.framesForwardKinematics(self._model, self._data, self._full(q_rad))

    def _relative(self, q_rad: Sequence[float] | Vector, base_id: int) -> Any:
        self._place(q_rad)
        return self._data.oMf[base_id].actInv(self._data.oMf[self._tip_id])

    def _full(self, q_rad: Sequence[float] | Vector) -> Vector:
        """Arrange a configuration as pinocchio wants it."""
        values = np.asarray(q_rad, dtype=np.float64)
        if values.shape != (self.dof,):
            raise ChainError(
                f'a configuration has {self.dof} joints ({", ".join(self.joint_names)}), '
                f'not shape {values.shape}'
            )
        full = np.empty(self._model.nq)
        if not self._has_circles:
            full[self._order] = values
            return full
        for (place, is_circle), value in zip(self._places, values, strict=True):
            if is_circle:
                full[place] = math.cos(value)
                full[place + 1] = math.sin(value)
            else:
                full[place] = value
        return full

    def _position_limits(self) -> tuple[Vector, Vector]:
        lower = np.full(self.dof, -math.inf)
        upper = np.full(self.dof, math.inf)
        for row, (place, is_circle) in enumerate(self._places):
            if not is_circle:
                lower[row] = self._model.lowerPositionLimit[place]
                upper[row] = self._model.upperPositionLimit[place]
        return lower, upper


def pose_of(placement: Any) -> Pose:
    """Turn pinocchio's SE3 into a pose."""
    x, y, z = (float(v) for v in placement.translation)
    qx, qy, qz, qw = (float(v) for v in pin.Quaternion(placement.rotation).coeffs())
    return Pose((x, y, z), (qx, qy, qz, qw))


def placement_of(pose: Pose) -> Any:
    """
    Turn a pose into pinocchio's SE3.

    :raises ChainError: a number is not finite or the quaternion has no length
    """
    numbers = (*pose.position_m, *pose.quaternion_xyzw)
    if not all(math.isfinite(v) for v in numbers):
        raise ChainError(f'a pose needs finite numbers, not {pose}')
    length = math.hypot(*pose.quaternion_xyzw)
    if not length > 1e-6:
        raise ChainError('a quaternion of length zero is no orientation')
    x, y, z, w = (v / length for v in pose.quaternion_xyzw)
    return pin.SE3(pin.Quaternion(w, x, y, z).toRotationMatrix(), np.array(pose.position_m))


def _check_joints(names: tuple[str, ...], known: list[str], model: Any) -> None:
    if not names:
        raise ChainError('a chain needs at least one joint')
    if len(set(names)) != len(names):
        raise ChainError(f'a joint is named twice: {", ".join(names)}')
    for name in names:
        if name not in known:
            raise ChainError(
                f'no movable joint {name!r} in the robot description; it has {", ".join(known)}'
            )
        if model.nvs[model.getJointId(name)] != 1:
            raise ChainError(f'joint {name!r} has more than one degree of freedom')
