"""Owns the encoding of any type by its field description: the units come from the channel."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from awp_ros_bridge.config import ChannelFault, TopicChannel
from awp_ros_bridge.ros.encoders.base import EncoderContext, has_header, JsonEncoder, NoEncoder
from awp_ros_bridge.ros.encoders.field_plan import Plan, planned
from awp_ros_bridge.ros.interfaces import InterfaceMissing, load_interface

Json = dict[str, Any]

_MOST_NAMED = 12
_FEW = 8  # grids and the like have megabytes


class FieldsEncoder(JsonEncoder):
    """Every field of the message by its name, numbers with the suffix of their unit."""

    keys = frozenset({'frame', 'fields'})
    summary = (
        'Every number needs its unit in `fields`, `none` where it has none; what is known of '
        'geometry_msgs needs none.'
    )

    def __init__(self, channel: TopicChannel, context: EncoderContext) -> None:
        super().__init__(channel, context)
        plan = planned(self._type, channel.fields or {})
        if plan.missing or plan.unused or plan.doubles:
            raise NoEncoder(f'no encoder for {channel.type}: its fields lack units')
        self.most_kept = _FEW if plan.may_be_large else self.most_kept
        self._read = plan.read
        self._is_placed = plan.has_geometry
        self._own_frame = {'frame': channel.frame} if _needs_frame(channel, plan) else {}

    @classmethod
    def schema(cls, channel: TopicChannel) -> Json:
        """Return the schema of its payloads."""
        about: Json = {'x-ros2.type': channel.type}
        try:
            message_type = load_interface(channel.type)
        except InterfaceMissing:
            return {**about, 'type': 'object'}
        plan = planned(message_type, channel.fields or {})
        found = plan.schema
        if not _has_own_header(message_type) and plan.has_geometry:
            frame = {'frame': {'const': channel.frame}}
            properties = {**frame, **found['properties']}
            found = {**found, 'properties': properties, 'required': list(properties)}
        return {**about, **found}

    @classmethod
    def faults(cls, channel: TopicChannel) -> Iterator[ChannelFault]:
        """Require a unit for every number, and the frame of geometry without a header."""
        try:
            plan = planned(load_interface(channel.type), channel.fields or {})
        except InterfaceMissing as error:
            what, _, todo = str(error).partition('; ')
            todo = todo or 'install or source its package'
            yield ChannelFault(('type',), what, todo, is_warning=True)
            return
        if plan.missing:
            named = ', '.join(f'{path}: <unit>' for path in plan.missing[:_MOST_NAMED])
            more = len(plan.missing) - _MOST_NAMED
            rest = f' and {more} more' if more > 0 else ''
            yield ChannelFault(
                (),
                f'{channel.type} has numbers without a unit: {named}{rest} (AWP-UNI-001)',
                'add each to fields with its unit, none where it has none; a path stands for all '
                'below it',
                ('fields',),
            )
        for path in plan.unused:
            near = get_close_matches(path, plan.numbers, n=1)
            hint = f'did you mean {near[0]}?' if near else f'numbers: {_some(plan.numbers)}'
            yield ChannelFault(('fields', path), f'no number of {channel.type} is there', hint)
        for name in plan.doubles:
            yield ChannelFault(
                ('fields',) if channel.fields else (),
                f'two fields of {channel.type} would be called {name!r}',
                'give one of them another unit',
            )
        if _needs_frame(channel, plan) and channel.frame is None:
            yield ChannelFault(
                (),
                f'{channel.type} holds geometry and has no header that names its frame '
                '(AWP-UNI-003)',
                'add frame: its AWP frame',
                ('frame',),
            )

    def body(self, message: Any) -> Json:
        """Return what the payload holds."""
        found = self._read(message, '', self.frame_of)
        return {**self._own_frame, **found} if self._own_frame else found


def _has_own_header(message_type: Any) -> bool:
    return has_header(message_type)


def _needs_frame(channel: TopicChannel, plan: Plan) -> bool:
    return plan.has_geometry and not _has_own_header(load_interface(channel.type))


def _some(names: list[str]) -> str:
    shown = ', '.join(names[:_MOST_NAMED])
    return f'{shown}, ...' if len(names) > _MOST_NAMED else shown or 'none'
