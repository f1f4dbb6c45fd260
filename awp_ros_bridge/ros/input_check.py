"""Owns what only message types tell of safety inputs and speed scaling, before they run."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from awp_ros_bridge.config import AnyInput, BridgeConfig, SpeedScaling
from awp_ros_bridge.config.field_path import field_steps, Item
from awp_ros_bridge.config.input_spec import JointParts
from awp_ros_bridge.config.problems import Finding, Path, Severity
from awp_ros_bridge.manifest.field_types import (
    FieldType,
    ListType,
    MessageType,
    NoSuchField,
    said,
    ScalarType,
)
from awp_ros_bridge.ros.adapters.described_fields import located
from awp_ros_bridge.ros.interfaces import InterfaceMissing, load_interface, message_type

_CLOSED = 'until then it forbids motion'
_ALL_COUNTS = 'until then all time counts for stall_after_ms'


def input_findings(config: BridgeConfig) -> Iterator[Finding]:
    """
    Find safety inputs and speed scalings whose type or field is not there.

    The first forbid motion for good while the bridge runs, the others would never be heard. A type
    that is not installed is a warning, since another machine may have it.
    """
    for index, each in enumerate(config.safety.inputs):
        yield from _of_input(('safety', 'inputs', index), each)
    for name, embodiment in config.embodiments.items():
        for index, each in enumerate(embodiment.safety_inputs):
            yield from _of_input(('embodiments', name, 'safety_inputs', index), each)
        scaling = embodiment.speed_scaling
        if scaling is not None:
            yield from _of_scaling(('embodiments', name, 'speed_scaling'), scaling)


def _of_input(here: Path, entry: AnyInput) -> Iterator[Finding]:
    spec = entry.spec
    try:
        described = message_type(load_interface(spec.type))
    except InterfaceMissing as error:
        yield Finding((*here, 'type'), str(error), _CLOSED, Severity.WARNING)
        return
    if isinstance(spec.parts, JointParts):
        return
    for wrong in dict.fromkeys(_misfit(described, part.path) for part in spec.parts):
        if wrong is not None:
            yield Finding((*here, 'field'), *wrong)


def _of_scaling(here: Path, scaling: SpeedScaling) -> Iterator[Finding]:
    try:
        described = message_type(load_interface(scaling.type))
    except InterfaceMissing as error:
        yield Finding((*here, 'type'), str(error), _ALL_COUNTS, Severity.WARNING)
        return
    wrong = _misfit(described, scaling.field) or _no_number(described, scaling.field)
    if wrong is not None:
        yield Finding((*here, 'field'), *wrong)


def _no_number(described: MessageType, text: str) -> tuple[str, str] | None:
    todo = 'name the field that tells how fast motions run'
    try:
        kind, _ = located(text, described)
    except NoSuchField as error:  # a list that is not so long
        return str(error), todo
    if isinstance(kind, ScalarType) and kind.kind in ('integer', 'float'):
        return None
    return f'{text!r} is {said(kind)}, no number', todo


def _misfit(described: MessageType, text: str) -> tuple[str, str] | None:
    """Return what a path asks for that the type does not have, with what to do."""
    place: FieldType = described
    for step in field_steps(text):
        if isinstance(step, int | Item):
            if not isinstance(place, ListType):
                return f'{text!r}: no list stands before [', 'leave the brackets out'
            place = place.item
            if not isinstance(step, Item):
                continue
            wrong = _without(place, step.key, text)
        else:
            wrong = _without(place, step, text)
        if wrong is not None:
            return wrong
        if isinstance(step, str) and isinstance(place, MessageType):
            place = place.fields[step]
    if isinstance(place, MessageType | ListType):
        return f'{text!r} is no single value', 'name the field of it that decides'
    return None


def _without(place: FieldType, name: str, text: str) -> tuple[str, str] | None:
    if isinstance(place, ListType):
        return f'{text!r}: {name!r} stands behind a list', 'choose an item by [0] or [name=...]'
    if not isinstance(place, MessageType):
        return f'{text!r}: {name!r} stands behind a single value', 'leave it out'
    if name in place.fields:
        return None
    near = get_close_matches(name, place.fields, n=1)
    todo = f'did you mean {near[0]!r}?' if near else f'it has {", ".join(place.fields)}'
    return f'{text!r}: {place.name} has no field {name!r}', todo
