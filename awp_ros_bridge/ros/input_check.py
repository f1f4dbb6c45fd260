"""Owns what is wrong with safety inputs that only the message types can tell, before they run."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from awp_ros_bridge.config import AnyInput, BridgeConfig
from awp_ros_bridge.config.field_path import field_steps, Item
from awp_ros_bridge.config.input_spec import JointParts
from awp_ros_bridge.config.problems import Finding, Path, Severity
from awp_ros_bridge.manifest.field_types import FieldType, ListType, MessageType
from awp_ros_bridge.ros.interfaces import InterfaceMissing, load_interface, message_type

_CLOSED = 'until then it forbids motion'


def input_findings(config: BridgeConfig) -> Iterator[Finding]:
    """
    Find safety inputs whose type is not installed or whose field it does not have.

    Either forbids motion for good while the bridge runs. A missing type is a warning, since
    another machine may have it.
    """
    for index, each in enumerate(config.safety.inputs):
        yield from _of_input(('safety', 'inputs', index), each)
    for name, embodiment in config.embodiments.items():
        for index, each in enumerate(embodiment.safety_inputs):
            yield from _of_input(('embodiments', name, 'safety_inputs', index), each)


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
