"""Owns what an adapter is: the mapping between AWP action params and one kind of ROS interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from awp_ros_bridge.config.problems import Finding
from awp_ros_bridge.engine.policy import GoalRefusal

Json = dict[str, Any]


def _nothing() -> None:
    return None


def _no_pose(frame: str, reference: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Limits of the embodiment that an adapter checks before a goal is sent (AWP-ENV-001).

    :param frame: AWP frame of the box.
    :param aabb_m: lower and upper corner, metres, in ``frame``.
    """

    frame: str | None = None
    aabb_m: tuple[tuple[float, float, float], tuple[float, float, float]] | None = None
    max_velocity_mps: float | None = None


@dataclass(slots=True)
class AdapterContext:
    """
    What the bridge offers to an adapter; all callables are quick and safe to call on any thread.

    :param joints: newest joint positions by name, rad or m, or None while nothing was heard.
    :param chain: the kinematic chain of the embodiment (``kinematics.Chain``), or None.
    :param ros_frame: tf frame of an AWP frame name, None for an unknown frame.
    :param options: the action's own options from the configuration.
    :param joint_velocities: newest joint velocities by name, rad/s or m/s, or None; they make the
        first segment of a trajectory that takes over from a moving robot exact.
    :param pose_in: ``pose_in(frame, reference)``, the pose of an AWP frame in another one by tf,
        as ``kinematics.Pose``, or None while tf does not tell.
    """

    embodiment: str
    action_type: str
    limits: Limits
    joints: Callable[[], dict[str, float] | None]
    chain: Callable[[], Any | None]
    ros_frame: Callable[[str], str | None]
    frames: Callable[[], Sequence[str]]
    now_stamp: Callable[[], Any]
    options: Json = field(default_factory=dict)
    joint_velocities: Callable[[], dict[str, float] | None] = _nothing
    pose_in: Callable[[str, str], Any | None] = _no_pose


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    What a server's result means.

    :param ok: False turns a SUCCEEDED status with an error code inside into a failure.
    :param detail: code and text of the server, for people.
    """

    ok: bool
    detail: str = ''


class Adapter(ABC):
    """
    Maps one action type onto one action server, service or built-in.

    One instance per configured action type and embodiment. ``params_schema`` and the class
    attributes are used without ROS; everything else may import messages lazily.
    """

    name: ClassVar[str]  #: the word in the configuration
    kind: ClassVar[str]  #: 'action', 'service' or 'builtin'
    extended: ClassVar[bool]
    native_replace: ClassVar[bool] = False
    needs_motion: ClassVar[bool] = True
    checkable_limits: ClassVar[frozenset[str]] = frozenset()  #: of 'spatial', 'max_velocity_mps'
    options: ClassVar[Mapping[str, str]] = {}  #: what each key of the action's options does
    ros_type: ClassVar[str]  #: 'control_msgs/action/FollowJointTrajectory', '' for a builtin

    def __init__(self, context: AdapterContext) -> None:
        self.context = context

    @classmethod
    def limits_checked(cls, options: Json) -> frozenset[str]:
        """Return the limits that :meth:`check` proves with these options."""
        return cls.checkable_limits

    @classmethod
    def option_findings(cls, options: Json) -> Sequence[Finding]:
        """
        Say what is wrong with the options, each with its path inside them.

        Adapters with few options raise ValueError in :meth:`params_schema` instead.
        """
        return ()

    @classmethod
    @abstractmethod
    def params_schema(cls, options: Json) -> Json:
        """Return the JSON Schema (2020-12) of the params: SI suffixes, strict, closed."""

    @abstractmethod
    def check(self, params: Json) -> GoalRefusal | None:
        """Return why this goal must not run (joints, frames, quaternion norm, limits), or None."""

    @abstractmethod
    def goal(self, params: Json) -> Any:
        """Return the goal or request message; raises ValueError naming the field it cannot map."""

    def progress(self, params: Json, feedback: Any) -> float | None:
        """Return the fraction done, 0 to 1, that this feedback message tells, or None."""
        return None

    def measured_progress(self, params: Json, start: Json) -> float | None:
        """Return the fraction done by measurement, for servers whose feedback says nothing."""
        return None

    def begin(self, params: Json) -> Json:
        """Return what :meth:`measured_progress` needs to know of the moment of acceptance."""
        return {}

    @abstractmethod
    def outcome(self, result: Any) -> Outcome:
        """Return what the result message says."""
