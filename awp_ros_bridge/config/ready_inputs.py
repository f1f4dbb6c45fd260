"""Owns the ready-made safety inputs: what an integrator writes as ``{kind: ..., topic: ...}``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, model_validator, Tag

from awp_ros_bridge.config.base import ItemPath, Items, MessageType, refuse, RosName, Text
from awp_ros_bridge.config.input_spec import (
    BY_JOINT_STATES,
    BY_MESSAGE,
    Condition,
    Freshness,
    InputSpec,
    JointField,
    JointParts,
    Means,
    Part,
    Rule,
    spec_of,
    StaleMs,
    unless,
    Watched,
)
from awp_ros_bridge.engine.inputs import Meaning


class BoolInput(Watched):
    """A std_msgs/Bool."""

    kind: Literal['bool']
    """bool: a std_msgs/msg/Bool says it directly."""
    topic: RosName
    """Topic to listen to."""
    unsafe_when: bool = True
    """The value that forbids motion."""
    means: Means = Meaning.E_STOP
    """What an engaged input is."""
    freshness: Freshness = BY_MESSAGE
    """What keeps the input valid; its own messages by default."""
    stale_after_ms: StaleMs = 500
    """Silence after which the input counts as unknown and forbids motion."""

    @property
    def spec(self) -> InputSpec:
        """What the form comes down to."""
        rule = Rule(unless(not self.unsafe_when), self.means)
        return spec_of(self, 'std_msgs/msg/Bool', (Part('', 'data', (rule,)),), self.means)


class DiagnosticsInput(Watched):
    """Items of a diagnostic_msgs/DiagnosticArray; each must be there, young and well."""

    kind: Literal['diagnostics']
    """diagnostics: items of a DiagnosticArray by name."""
    topic: RosName = '/diagnostics'
    """Topic to listen to. Messages without an item say nothing about it."""
    items: Annotated[Items[Text], Field(min_length=1)]
    """Names of the items, as their publishers write them."""
    unsafe_from: Literal['warn', 'error'] = 'error'
    """The lowest level that forbids motion. Stale and unknown levels always do."""
    means: Means = Meaning.FAULT
    """What an engaged input is."""
    stale_after_ms: StaleMs = 2500
    """How long an item may be missing; from then on the input is unknown and forbids motion."""

    @property
    def spec(self) -> InputSpec:
        """What the form comes down to."""
        safe = (0,) if self.unsafe_from == 'warn' else (0, 1)
        rules = (Rule(unless(*safe), self.means),)
        parts = [
            Part(item, f'status[name={item}].level', rules, may_lack=True) for item in self.items
        ]
        return spec_of(self, 'diagnostic_msgs/msg/DiagnosticArray', tuple(parts), self.means)

    @model_validator(mode='after')
    def _can_be_addressed(self) -> DiagnosticsInput:
        for item in self.items:
            if set('[]') & set(item):
                raise refuse(
                    f'the item {item!r} has brackets in its name, which a field path cannot hold',
                    'let its publisher use another name',
                )
        return self


class UrSafetyModeInput(Watched):
    """The safety mode of a Universal Robots driver, with the meaning that each mode has."""

    kind: Literal['ur_safety_mode']
    """ur_safety_mode: normal and reduced are safe; the stops, faults and unknown modes are not."""
    topic: RosName = 'io_and_status_controller/safety_mode'
    """Topic to listen to; it is latched and speaks on change."""
    type: MessageType = 'ur_dashboard_msgs/msg/SafetyMode'
    """Its message type."""
    field: ItemPath = 'mode'
    """Path of the number that is the mode."""
    freshness: Freshness = BY_JOINT_STATES
    """What keeps the input valid; by default the driver's joint_states vouch for it."""
    stale_after_ms: StaleMs = 500
    """Silence of the companion after which the input counts as unknown and forbids motion."""

    @property
    def spec(self) -> InputSpec:
        """What the form comes down to."""
        rules = (
            Rule(Condition.model_validate({'not_in': _UR_KNOWN}), Meaning.FAULT),
            Rule(Condition.model_validate({'in': _UR_E_STOPS}), Meaning.E_STOP),
            Rule(Condition.model_validate({'in': _UR_STOPS}), Meaning.PROTECTIVE_STOP),
            Rule(unless(1, 2), Meaning.FAULT),
        )
        return spec_of(self, self.type, (Part('', self.field, rules),), Meaning.FAULT)


_UR_E_STOPS = (6, 7)  # of the system, of the robot
_UR_STOPS = (3, 5, 12, 13)  # protective, safeguard, automatic safeguard, three-position switch
_UR_KNOWN = (1, 2, *_UR_STOPS, *_UR_E_STOPS, 4, 8, 9, 10, 11)


class UrRobotModeInput(Watched):
    """The robot mode of a Universal Robots driver: it moves in one mode only."""

    kind: Literal['ur_robot_mode']
    """ur_robot_mode: every mode but running forbids motion."""
    topic: RosName = 'io_and_status_controller/robot_mode'
    """Topic to listen to; it is latched and speaks on change."""
    type: MessageType = 'ur_dashboard_msgs/msg/RobotMode'
    """Its message type."""
    field: ItemPath = 'mode'
    """Path of the number that is the mode."""
    means: Means = Meaning.NOT_READY
    """What an engaged input is."""
    freshness: Freshness = BY_JOINT_STATES
    """What keeps the input valid; by default the driver's joint_states vouch for it."""
    stale_after_ms: StaleMs = 500
    """Silence of the companion after which the input counts as unknown and forbids motion."""

    @property
    def spec(self) -> InputSpec:
        """What the form comes down to."""
        part = Part('', self.field, (Rule(unless(7), self.means),))
        return spec_of(self, self.type, (part,), self.means)


class UrProgramRunningInput(Watched):
    """Whether the program that lets a Universal Robots driver move the robot is running."""

    kind: Literal['ur_program_running']
    """ur_program_running: without the program on the controller nothing moves."""
    topic: RosName = 'io_and_status_controller/robot_program_running'
    """Topic to listen to, std_msgs/msg/Bool; it is latched and speaks on change."""
    means: Means = Meaning.NOT_READY
    """What an engaged input is."""
    freshness: Freshness = BY_JOINT_STATES
    """What keeps the input valid; by default the driver's joint_states vouch for it."""
    stale_after_ms: StaleMs = 500
    """Silence of the companion after which the input counts as unknown and forbids motion."""

    @property
    def spec(self) -> InputSpec:
        """What the form comes down to."""
        rule = Rule(unless(True), self.means)
        return spec_of(self, 'std_msgs/msg/Bool', (Part('', 'data', (rule,)),), self.means)


class ControllerStateInput(Watched):
    """The controllers of ros2_control that must be active."""

    kind: Literal['controller_state']
    """controller_state: every state but active forbids motion, and so does a missing one."""
    topic: RosName = 'controller_manager/activity'
    """Topic to listen to; it is latched and speaks on change."""
    type: MessageType = 'controller_manager_msgs/msg/ControllerManagerActivity'
    """Its message type."""
    controllers: Annotated[Items[Text], Field(min_length=1)]
    """Names of the controllers."""
    list: ItemPath = 'controllers'
    """Path of the list; its items have a field name."""
    field: ItemPath = 'state.label'
    """Path of the state's name inside of an item."""
    means: Means = Meaning.NOT_READY
    """What an engaged input is."""
    freshness: Freshness = BY_JOINT_STATES
    """What keeps the input valid; by default joint_states, which the manager's process sends."""
    stale_after_ms: StaleMs = 500
    """Silence of the companion after which the input counts as unknown and forbids motion."""

    @property
    def spec(self) -> InputSpec:
        """What the form comes down to."""
        rules = (Rule(unless('active'), self.means),)
        parts = [
            Part(name, f'{self.list}[name={name}].{self.field}', rules)
            for name in self.controllers
        ]
        return spec_of(self, self.type, tuple(parts), self.means)

    @model_validator(mode='after')
    def _can_be_addressed(self) -> ControllerStateInput:
        for name in self.controllers:
            if set('[]') & set(name):
                raise refuse(f'{name!r} is no name of a controller', 'write it without brackets')
        if self.list.endswith(']'):
            raise refuse(f'{self.list!r} names an item, not a list', 'leave the brackets out')
        return self


class BatteryInput(Watched):
    """The charge of a sensor_msgs/BatteryState."""

    kind: Literal['battery']
    """battery: a charge below the least, or one that is not measured, forbids motion."""
    topic: RosName = 'battery_state'
    """Topic to listen to."""
    min_percentage: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Least charge, 0 to 1 as the message defines it; above 1 the message is not understood."""
    means: Means = Meaning.NOT_READY
    """What an engaged input is."""
    stale_after_ms: StaleMs = 5000
    """Silence after which the input counts as unknown and forbids motion."""

    @property
    def spec(self) -> InputSpec:
        """What the form comes down to."""
        unsafe = Condition(below=self.min_percentage, above=1.0)
        part = Part('', 'percentage', (Rule(unsafe, self.means),))
        return spec_of(self, 'sensor_msgs/msg/BatteryState', (part,), self.means)


def _joints_tag(value: Any) -> str:
    return 'every joint' if isinstance(value, str) else 'listed joints'


Joints = Annotated[
    Annotated[Literal['all'], Tag('every joint')]
    | Annotated[Items[Text], Field(min_length=1), Tag('listed joints')],
    Discriminator(_joints_tag),
]


class JointStatesInput(Watched):
    """The joint states themselves: no news, or numbers that are not finite, forbid motion."""

    kind: Literal['joint_states']
    """joint_states: a sensor_msgs/msg/JointState whose numbers must be finite."""
    topic: RosName = 'joint_states'
    """Topic to listen to."""
    joints: Joints = 'all'
    """Joints that must be heard: all that the topic ever carried, or a list of their names."""
    fields: Annotated[Items[JointField], Field(min_length=1)] = ('position', 'velocity')
    """Arrays that must be finite where they are filled; position must be there. Effort is left
    out because many robots do not measure it and say NaN."""
    means: Means = Meaning.NOT_READY
    """What an engaged input is."""
    stale_after_ms: StaleMs = 500
    """Silence of any of the joints after which the input is unknown and forbids motion."""

    @property
    def spec(self) -> InputSpec:
        """What the form comes down to."""
        joints = None if self.joints == 'all' else tuple(self.joints)
        parts = JointParts(joints, self.fields)
        return spec_of(self, 'sensor_msgs/msg/JointState', parts, self.means)


ReadyMade = (
    Annotated[BoolInput, Tag('bool')]
    | Annotated[DiagnosticsInput, Tag('diagnostics')]
    | Annotated[UrSafetyModeInput, Tag('ur_safety_mode')]
    | Annotated[UrRobotModeInput, Tag('ur_robot_mode')]
    | Annotated[UrProgramRunningInput, Tag('ur_program_running')]
    | Annotated[ControllerStateInput, Tag('controller_state')]
    | Annotated[BatteryInput, Tag('battery')]
    | Annotated[JointStatesInput, Tag('joint_states')]
)
