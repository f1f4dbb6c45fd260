"""Owns the steps that realise the safe-state behaviour on one embodiment (AWP-SAF-003)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, model_validator, Tag

from awp_ros_bridge.config.base import Identifier, Items, refuse, RosName, StrictModel, Text

Json = dict[str, Any]

ARRAY = 'std_msgs/msg/Float64MultiArray'
JOG = 'control_msgs/msg/JointJog'
TWIST = 'geometry_msgs/msg/Twist'
TWIST_STAMPED = 'geometry_msgs/msg/TwistStamped'
STAMPED = (TWIST_STAMPED, JOG)

TRIGGER = 'std_srvs/srv/Trigger'
SET_BOOL = 'std_srvs/srv/SetBool'

PlainStep = Literal['cancel_goals', 'stay_in_place', 'wait_at_rest']


class PublishZeros(StrictModel):
    """Publish zeros on a setpoint topic of velocities, so that what follows it stands still."""

    step: Literal['publish_zeros']
    """publish_zeros."""
    topic: RosName
    """Topic of the setpoints, such as cmd_vel."""
    type: Literal[
        'geometry_msgs/msg/Twist',
        'geometry_msgs/msg/TwistStamped',
        'std_msgs/msg/Float64MultiArray',
        'control_msgs/msg/JointJog',
    ]
    """Its message type. Topics of positions have no zero: cancel the goals of their controller."""
    size: Annotated[int, Field(ge=1, le=100)] | None = None
    """Numbers in the array; for Float64MultiArray only."""
    joints: Items[Text] = ()
    """Names of the joints; for JointJog only."""
    frame_id: Text | None = None
    """Frame in the header; for TwistStamped and JointJog only. The stamp is when it is sent."""
    for_ms: Annotated[int, Field(ge=20, le=10_000)] = 500
    """How long zeros are sent."""
    rate_hz: Annotated[float, Field(ge=1, le=1000)] = 50.0
    """How often they are sent; the first leaves at once."""

    @property
    def bound_ms(self) -> int:
        """Longest time that the step takes."""
        return self.for_ms

    @property
    def label(self) -> str:
        """What reports call the step."""
        return f'publish_zeros {self.topic}'

    @model_validator(mode='after')
    def _suits_its_type(self) -> PublishZeros:
        if (self.size is not None) != (self.type == ARRAY):
            raise refuse(
                f'size and {self.type} do not fit', f'write size exactly where type is {ARRAY}'
            )
        if bool(self.joints) != (self.type == JOG):
            raise refuse(
                f'joints and {self.type} do not fit', f'write joints exactly where type is {JOG}'
            )
        if self.frame_id is not None and self.type not in STAMPED:
            raise refuse(f'{self.type} has no header', 'remove frame_id')
        return self


class CallService(StrictModel):
    """Call a service of the robot that stops it."""

    step: Literal['call_service']
    """call_service."""
    service: RosName
    """Name of the service, such as driver/stop."""
    type: Literal['std_srvs/srv/Trigger', 'std_srvs/srv/SetBool'] = 'std_srvs/srv/Trigger'
    """Its type."""
    data: bool | None = None
    """What SetBool is called with; for SetBool only."""
    timeout_ms: Annotated[int, Field(ge=10, le=10_000)] = 1000
    """Longest wait for the answer; without it the step has failed and the rest goes on."""

    @property
    def bound_ms(self) -> int:
        """Longest time that the step takes."""
        return self.timeout_ms

    @property
    def label(self) -> str:
        """What reports call the step."""
        return f'call_service {self.service}'

    @model_validator(mode='after')
    def _suits_its_type(self) -> CallService:
        if (self.data is not None) != (self.type == SET_BOOL):
            raise refuse(
                f'data and {self.type} do not fit', f'write data exactly where type is {SET_BOOL}'
            )
        return self


class Park(StrictModel):
    """Move to a place of rest by a goal; only while motion is permitted."""

    step: Literal['park']
    """park."""
    action: Identifier
    """Action type of the embodiment that carries the goal out, a key of actions."""
    params: Json = Field(default_factory=dict)
    """Its params, as an agent would submit them; limits hold for them too."""
    timeout_ms: Annotated[int, Field(ge=100, le=120_000)] = 10_000
    """Longest time from sending the goal to its end; then it is cancelled."""

    @property
    def bound_ms(self) -> int:
        """Longest time that the step takes."""
        return self.timeout_ms

    @property
    def label(self) -> str:
        """What reports call the step."""
        return f'park {self.action}'


_TAGS = {
    'publish_zeros': 'publish zeros',
    'call_service': 'call service',
    'park': 'park goal',
}


def _step_tag(value: Any) -> str | None:
    if isinstance(value, str):
        return 'plain step'
    word = value.get('step') if isinstance(value, dict) else getattr(value, 'step', None)
    return _TAGS.get(word) if isinstance(word, str) else None


StopStep = Annotated[
    Annotated[PlainStep, Tag('plain step')]
    | Annotated[PublishZeros, Tag('publish zeros')]
    | Annotated[CallService, Tag('call service')]
    | Annotated[Park, Tag('park goal')],
    Discriminator(
        _step_tag,
        custom_error_type='awp_refused',
        custom_error_message='{what}; {todo}',
        custom_error_context={
            'what': 'there is no such step',
            'todo': 'write cancel_goals, stay_in_place or wait_at_rest as a word, or a mapping '
            'with step: publish_zeros, call_service or park',
        },
    ),
]


def parks(steps: Iterable[object]) -> list[Park]:
    """Return the steps that move the robot."""
    return [step for step in steps if isinstance(step, Park)]


def realises(behavior: str, steps: Iterable[object]) -> bool:
    """
    Tell whether these steps are the behaviour that the world declares.

    To cancel, to stop by zeros or a service and to wait is to hold and to stop safely. To park
    takes a park goal, and a vendor's behaviour something beyond cancelling; a body that has
    nothing to do for them says so with ``stay_in_place``.
    """
    told = list(steps)
    if behavior in ('hold', 'safe_stop') or 'stay_in_place' in told:
        return True
    if behavior == 'park':
        return bool(parks(told))
    return any(not isinstance(step, str) for step in told)


def extra_ms(steps: Iterable[object]) -> int:
    """Return the time that steps may take beyond cancelling and coming to rest."""
    told = list(steps)
    together = [s.bound_ms for s in told if isinstance(s, PublishZeros | CallService)]
    return max(together, default=0) + sum(park.bound_ms for park in parks(told))
