"""Owns the general safety input, any field of any topic, and the union of all forms."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Tag

from awp_ros_bridge.config.base import ItemPath, MessageType, RosName
from awp_ros_bridge.config.input_spec import (
    as_condition,
    Condition,
    Freshness,
    InputSpec,
    Means,
    Part,
    Rule,
    spec_of,
    StaleMs,
    Watched,
)
from awp_ros_bridge.config.ready_inputs import ReadyMade


class SafetyInput(Watched):
    """One topic of the hardware that can forbid motion; silence forbids it too."""

    topic: RosName
    """Topic to listen to."""
    type: MessageType
    """Its message type, such as std_msgs/msg/Bool."""
    field: ItemPath
    """Path of the field that decides, such as data, status[0].level or
    controller[name=arm_controller].state; of several items with that key, any may forbid."""
    unsafe_when: Annotated[Condition, BeforeValidator(as_condition)]
    """Value that forbids motion, or one of {equals, in, not_in, above, below, bit: ...}."""
    means: Means
    """What an engaged input is: e_stop, protective_stop, fault, not_ready, manual_mode or
    degraded."""
    item_missing: Literal['unsafe', 'ignore'] = 'unsafe'
    """A message without the list item that the path names: unsafe, or ignore for topics that many
    publish to, where only a message with the item renews the input."""
    freshness: Freshness
    """What keeps the input valid: {by: message}, or {by: companion, topic: ...}."""
    stale_after_ms: StaleMs
    """Silence after which the input counts as unknown and forbids motion. There is no off."""

    @property
    def spec(self) -> InputSpec:
        """What the form comes down to."""
        rule = Rule(self.unsafe_when, self.means)
        part = Part('', self.field, (rule,), self.item_missing == 'ignore')
        return spec_of(self, self.type, (part,), self.means)


_FIELD_FORM = 'no kind at all'  # as it stands in a message beside the kinds there are


def _form(value: Any) -> str:
    """Return which form a value has; one without a kind is the general one."""
    kind = value.get('kind') if isinstance(value, dict) else getattr(value, 'kind', None)
    return _FIELD_FORM if kind is None else str(kind)


AnyInput = Annotated[Annotated[SafetyInput, Tag(_FIELD_FORM)] | ReadyMade, Discriminator(_form)]
