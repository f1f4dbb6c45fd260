"""Owns the settings of action types: which ROS interface, which group, which bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from awp_ros_bridge.config.base import Identifier, Items, RosName, StrictModel, Text
from awp_ros_bridge.config.problems import Finding

Json = dict[str, Any]
Preemption = Literal['queue', 'replace', 'reject']


class AdapterInfo(Protocol):
    """
    What the loader and the manifest must know of an adapter; adapter classes are such themselves.

    ``kind`` is ``action``, ``service`` or ``builtin``.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def extended(self) -> bool: ...
    @property
    def native_replace(self) -> bool: ...
    @property
    def needs_motion(self) -> bool: ...
    @property
    def ros_type(self) -> str: ...
    @property
    def options(self) -> Mapping[str, str]: ...

    @property
    def params_schema(self) -> Callable[[Json], Json]:
        """The JSON Schema of the params for these options; ValueError names a bad option."""

    @property
    def limits_checked(self) -> Callable[[Json], frozenset[str]]:
        """The limits it proves on a goal with these options: spatial, max_velocity_mps."""

    @property
    def option_findings(self) -> Callable[[Json], Sequence[Finding]]:
        """What is wrong with the options, each with its path inside them."""


Adapters = Mapping[str, AdapterInfo]


class ActionConfig(StrictModel):
    """One action type that agents may submit, and the ROS interface that carries it out."""

    adapter: Text
    """Adapter that maps params onto the ROS interface, such as follow_joint_trajectory."""
    ros_action: RosName | None = None
    """Name of the action server, such as arm_controller/follow_joint_trajectory."""
    ros_service: RosName | None = None
    """Name of the service, for adapters that call one."""
    description: Text | None = None
    """One sentence for agents, shown in the manifest."""
    concurrency_group: Identifier | None = None
    """Types of one group never run together (AWP-PRE-006). Absent: a group of its own."""
    preemption: Annotated[Items[Preemption], Field(min_length=1)] | None = None
    """What a submission may ask for while the group is busy, the default first (AWP-PRE-001).
    Absent: replace for a built-in that stops, else reject."""
    max_queue: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Longest queue of the type; needed when preemption offers queue (AWP-PRE-002)."""
    replace: Literal['native', 'stop_first'] | None = None
    """native: the server blends over to a new goal; stop_first: cancel, rest, then start.
    Absent: native where the adapter knows how, else stop_first."""
    max_duration_ms: Annotated[int, Field(ge=1, le=86_400_000)] | None = None
    """Longest execution; then the action fails (AWP-ACT-008). Needed for types that take time."""
    stall_after_ms: Annotated[int, Field(ge=500, le=3_600_000)] | None = None
    """How long a goal may neither move its embodiment nor tell progress; then it is cancelled and
    the action fails (x-ros2.stalled). Longer than any pause in a goal; the speed_scaling of the
    embodiment stretches it. Absent: nothing is concluded from a lack of motion."""
    max_abort_ms: Annotated[int, Field(ge=10, le=60_000)] = 3000
    """Longest time from a cancel to measured rest; beyond it the action fails (AWP-LIF-010)."""
    ack_timeout_ms: Annotated[int, Field(ge=10, le=60_000)] = 2000
    """Longest wait for the server's answer to a goal request; then safe state."""
    shared_server: bool = True
    """False: nobody but this bridge sends goals to the server, so an e-stop cancels all of them.
    True: only the bridge's own goals, by their ids, unless the server does not answer."""
    downstream: Items[RosName] = ()
    """Action servers that a planner behind ros_action drives the robot with. All their goals are
    cancelled when the planner's goal has not ended downstream_after_ms after its cancel. While one
    of them cannot be reached the action type is not available."""
    downstream_after_ms: Annotated[int, Field(ge=50, le=10_000)] = 500
    """How long a planner gets to obey a cancel before what it drives is cancelled."""
    options: Json = Field(default_factory=dict)
    """Settings of the adapter itself, described with the adapter (docs/adapters.md)."""

    @property
    def server(self) -> str:
        """Name of the ROS interface behind the type, empty for a built-in."""
        return self.ros_action or self.ros_service or ''
