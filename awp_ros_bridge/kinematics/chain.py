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

    An instance owns scratch memory: use it from one thread. No joint of the chain moves its base.

    :ivar urdf: the description that the chain was made of
    :ivar joint_names: the joints of a configuration, in its order
    :ivar lower_rad: lower position limits (metres for prismatic joints), -inf where there is none
    :ivar upper_rad: upper position limits, inf where there is none
    :ivar max_velocity_radps: velocity limits, inf where the description names none
    :ivar revolute: True for joints that turn, False for joints that slide
    """

    def __init__(
        self,
        model: Any,
        base_frame: str,
        tip_frame: str,
        joint_names: tuple[str, ...],
        urdf: str,
    ) -> None:
        """
        Build on a reduced pinocchio model; :meth:`from_urdf` is the usual way.

        :raises ChainError: unknown frame, or a base frame that one of the joints moves
        """
        self.urdf = urdf
        self.joint_names = joint_names
        self.base_frame = base_frame
        self.tip_frame = tip_frame
        self._model = model
        self._data = model.createData()
        self._tip_id = self.frame_index(tip_frame)
        self._base = self._standing(base_frame)
        self._tip_place, self._tip_twist, self._tip_arm = self._watch_tip()
        ids = [model.getJointId(name) for name in joint_names]
        self._columns = [int(model.idx_vs[i]) for i in ids]
        # A continuous joint is a point on the unit circle in pinocchio: two numbers, not one.
        places = [(int(model.idx_qs[i]), int(model.nqs[i]) == 2) for i in ids]
        self._order = [place for place, _ in places]
        self._circles = [(row, place) for row, (place, is_pair) in enumerate(places) if is_pair]
        self._is_in_order = self._order == list(range(model.nq)) == self._columns
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
        :raises ChainError: unreadable description, unknown frame or joint, joint named twice, a
            joint with more than one degree of freedom, or one that moves the base
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
        return cls(model, base_frame, tip_frame, names, urdf)

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
        if frame is None:
            return pose_of(self.tip_placement(q_rad))
        frame_id = self.frame_index(frame)
        self._place(q_rad)
        return pose_of(self._data.oMf[frame_id].actInv(self._data.oMf[self._tip_id]))

    def tip_position(self, q_rad: Sequence[float] | Vector) -> Vector:
        """Compute the position of the tip in the base frame, shape (3,), metres."""
        position: Vector = np.array(self.tip_placement(q_rad).translation)
        return position

    def tip_placement(self, q_rad: Sequence[float] | Vector) -> Any:
        """Compute the tip in the base frame as pinocchio's SE3."""
        pin.forwardKinematics(self._model, self._data, self._full(q_rad))
        return self._base.actInv(pin.updateFramePlacement(self._model, self._data, self._tip_id))

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
        return pose_of(self._base.actInv(self._data.oMf[frame_id]) * placement_of(pose))

    def tip_jacobian(self, q_rad: Sequence[float] | Vector, local: bool = False) -> Matrix:
        """
        Compute the Jacobian of the tip, shape (6, dof): linear rows (m/rad), then angular ones.

        :param local: in the tip's own frame instead of the base frame
        """
        q = self._full(q_rad)
        frame = pin.ReferenceFrame.LOCAL if local else pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        full = pin.computeFrameJacobian(self._model, self._data, q, self._tip_id, frame)
        jacobian: Matrix = full if self._is_in_order else full[:, self._columns]
        if not local:
            rotation = self._base.rotation.T
            jacobian = np.vstack((rotation @ jacobian[:3], rotation @ jacobian[3:]))
        return jacobian

    def tip_motion(self, q_rad: Matrix, dq_radps: Matrix) -> tuple[Matrix, Vector]:
        """
        Compute where the tip is and how fast it moves in many states, one a row.

        :param q_rad: shape (states, dof)
        :param dq_radps: shape (states, dof)
        :return: positions in the base frame, shape (states, 3), metres; linear speeds relative to
            it, shape (states,), m/s
        """
        model, data, tip = self._model, self._data, self._tip_id
        places, twists = np.empty((len(q_rad), 3)), np.empty((len(q_rad), 6))
        full = zip(self._full(q_rad, 2), self._full_velocity(dq_radps), strict=True)
        for (q, dq), place, twist in zip(full, places, twists, strict=True):
            pin.forwardKinematics(model, data, q, dq)
            pin.updateFramePlacement(model, data, tip)
            place[:] = self._tip_place
            twist[:] = self._tip_twist
        positions = (places - self._base.translation) @ self._base.rotation
        # The base stands still: the speed relative to it is the one in any frame.
        linear = twists[:, :3] + np.cross(twists[:, 3:], self._tip_arm)
        return positions, np.linalg.norm(linear, axis=1)

    def tip_state(self, q_rad: Matrix, dq_radps: Matrix) -> tuple[Vector, float]:
        """
        Compute where the tip is and how fast it moves in one state; quicker than for many.

        :param q_rad: shape (1, dof)
        :param dq_radps: shape (1, dof)
        :return: position in the base frame, metres; linear speed relative to it, m/s
        """
        model, data, tip = self._model, self._data, self._tip_id
        pin.forwardKinematics(
            model, data, self._full(q_rad, 2)[0], self._full_velocity(dq_radps)[0]
        )
        pin.updateFramePlacement(model, data, tip)
        position: Vector = self._base.rotation.T @ (self._tip_place - self._base.translation)
        linear = pin.getFrameVelocity(model, data, tip, pin.ReferenceFrame.LOCAL).linear
        return position, math.hypot(*linear)

    def tip_speed_mps(
        self, q_rad: Sequence[float] | Vector, dq_radps: Sequence[float] | Vector
    ) -> float:
        """Compute the linear speed of the tip relative to the base frame."""
        _, speeds = self.tip_motion(np.array([q_rad]), np.array([dq_radps]))
        return float(speeds[0])

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

    def _full(self, q_rad: Sequence[float] | Matrix, axes: int = 1) -> Matrix:
        """Arrange a configuration, or many in rows (two axes), as pinocchio wants it."""
        values = self._checked(q_rad, axes)
        if self._is_in_order:
            return values
        full = np.empty((*values.shape[:-1], self._model.nq))
        full[..., self._order] = values
        for row, place in self._circles:
            full[..., place] = np.cos(values[..., row])
            full[..., place + 1] = np.sin(values[..., row])
        return full

    def _full_velocity(self, dq_radps: Matrix) -> Matrix:
        values = self._checked(dq_radps, 2)
        if self._is_in_order:
            return values
        full = np.zeros((len(values), self._model.nv))
        full[:, self._columns] = values
        return full

    def _checked(self, values: Sequence[float] | Matrix, axes: int) -> Matrix:
        array: Matrix = np.ascontiguousarray(values, dtype=np.float64)
        if array.ndim != axes or array.shape[-1] != self.dof:
            raise ChainError(
                f'a configuration has {self.dof} joints ({", ".join(self.joint_names)}), '
                f'not shape {array.shape}'
            )
        return array

    def _standing(self, base_frame: str) -> Any:
        """Return where the base stands in the world (SE3)."""
        frame = self._model.frames[self.frame_index(base_frame)]
        if frame.parentJoint != 0:
            mover = self._model.names[frame.parentJoint]
            raise ChainError(
                f'link {base_frame!r} cannot be the base: joint {mover!r} of the chain moves it'
            )
        return pin.SE3(frame.placement)

    def _watch_tip(self) -> tuple[Vector, Vector, Vector]:
        """
        Return the tip's place in the world, the twist of its joint, and the tip seen from there.

        The first two are views of the scratch memory, which pinocchio fills: asking for them anew
        costs more than the kinematics.
        """
        frame = self._model.frames[self._tip_id]
        place: Vector = self._data.oMf[self._tip_id].translation
        twist: Vector = self._data.v[frame.parentJoint].vector
        if place.flags.owndata or twist.flags.owndata:
            raise ChainError('pinocchio hands out copies: eigenpy.sharedMemory must be on')
        return place, twist, np.array(frame.placement.translation)

    def _position_limits(self) -> tuple[Vector, Vector]:
        lower = np.full(self.dof, -math.inf)
        upper = np.full(self.dof, math.inf)
        circles = {row for row, _ in self._circles}
        for row, place in enumerate(self._order):
            if row not in circles:
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
