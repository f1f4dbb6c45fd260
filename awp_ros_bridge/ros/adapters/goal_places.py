"""Owns the template of a goal against its type: every field looked up, and the goal filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from awp_ros_bridge.config.problems import Finding, nearest
from awp_ros_bridge.manifest.field_types import (
    FieldType,
    ListType,
    locate,
    MessageType,
    NoSuchField,
    said,
    Step,
    written,
)
from awp_ros_bridge.manifest.params import param_shape, ParamSettings, suits, TIME
from awp_ros_bridge.manifest.shapes import ParamRefused
from awp_ros_bridge.ros.adapters.described_fields import advice
from awp_ros_bridge.ros.adapters.goal_template import (
    Constant,
    Entry,
    MOST_ITEMS,
    Named,
    Problems,
    Reference,
    Stamp,
)

Json = dict[str, Any]
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A field, resolved: its type, and the message that holds it."""

    entry: Entry
    kind: FieldType
    holder: MessageType


def resolve(entries: Sequence[Entry], goal: MessageType) -> tuple[list[Place], Problems]:
    """Look every field up in the goal's description, and compare constants with their fields."""
    places: list[Place] = []
    problems: Problems = []
    for entry in entries:
        try:
            kind, holder = locate(goal, entry.steps)
        except NoSuchField as error:
            problems.append(Finding(entry.at, f'{error.at}: {error.what}', advice(error)))
            continue
        problem = _unsuited(entry, kind, holder)
        if problem is not None:
            problems.append(problem)
        else:
            places.append(Place(entry, kind, holder))
    problems += _short_arrays(entries, goal)
    return places, problems


def _unsuited(entry: Entry, kind: FieldType, holder: MessageType) -> Finding | None:
    match entry.source:
        case Constant(value):
            what = _constant_problem(value, kind, entry.path)
            if what is not None:
                return Finding(entry.at, what, 'correct the constant')
        case Named(name):
            if name not in holder.constants:
                return Finding(
                    (*entry.at, 'constant'),
                    f'{holder.name} has no constant {name!r}',
                    nearest(name, holder.constants),
                )
            if not suits(holder.constants[name], kind):
                return Finding(
                    (*entry.at, 'constant'),
                    f'{name} is no value of {entry.path}, which is {said(kind)}',
                    'name a constant of the kind of the field',
                )
        case Stamp():
            if not (isinstance(kind, MessageType) and kind.name == TIME):
                return Finding(
                    entry.at,
                    f'{entry.path} is {said(kind)}, no {TIME}',
                    'write a constant or a param',
                )
        case Reference():
            pass  # looked at with the other places of its param
    return None


def _constant_problem(value: Any, kind: FieldType, path: str) -> str | None:
    """Say why a constant is no value of a field."""
    is_list = isinstance(kind, ListType)
    bare = kind.item if isinstance(kind, ListType) else kind
    if isinstance(bare, MessageType):
        if is_list and value == []:
            return None
        return f'{path}: {value!r} is no value of {said(kind)}; write its fields'
    # Texts, ranges and lengths are compared as those of params; the unit is the author's business.
    settings = ParamSettings(unitless=bare.kind == 'float', max_items=MOST_ITEMS)
    try:
        param_shape(path, kind, _NOBODY, settings, is_scaled=False).to_ros(value, path, str)
    except ParamRefused as error:
        return str(error)
    return None


_NOBODY = MessageType('')


def _short_arrays(entries: Sequence[Entry], goal: MessageType) -> Iterator[Finding]:
    """Refuse an array of fixed length whose items are not all filled."""
    sizes: dict[tuple[Step, ...], tuple[int, Entry]] = {}
    for entry in entries:
        for at, step in enumerate(entry.steps):
            if isinstance(step, int):
                head = entry.steps[:at]
                most = max(step, sizes.get(head, (-1, entry))[0])
                sizes[head] = (most, entry)
    for head, (last, entry) in sizes.items():
        try:
            kind, _ = locate(goal, head)
        except NoSuchField:
            continue  # said already
        if isinstance(kind, ListType) and kind.size is not None and last + 1 < kind.size:
            yield Finding(
                entry.at,
                f'{written(head)} has {kind.size} items, {last + 1} are filled',
                'fill every item',
            )


def render(places: Sequence[Place], values: Values, stamp: Callable[[], Any]) -> Json:
    """
    Return the fields of a goal as nested plain data.

    :param values: what each param comes down to in the message.
    :param stamp: the time as a ROS message.
    :raises ValueError: a number leaves the range of its field on its way
    """
    tree: Json = {}
    for place in places:
        _put(tree, place.entry.steps, _value(place, values, stamp))
    return _lists(tree)


def _value(place: Place, values: Values, stamp: Callable[[], Any]) -> Any:
    match place.entry.source:
        case Constant(value):
            return value
        case Named(name):
            return place.holder.constants[name]
        case Stamp():
            now = stamp()
            return {'sec': now.sec, 'nanosec': now.nanosec}
        case Reference() as reference:
            return _referred(reference, values[reference.param])


def _referred(reference: Reference, value: Any) -> Any:
    if reference.index is not None:
        value = value[reference.index]
    if reference.factor is not None:
        return value * reference.factor
    return value if not reference.part else part_of(value, reference.part)


def part_of(stamped: Json, part: str) -> Any:
    """Return a part of a pose, as its message takes it."""
    match part:
        case 'frame':
            return stamped['header']['frame_id']
        case 'p_m':
            return stamped['pose']['position']
        case 'q':
            return stamped['pose']['orientation']
    return stamped['pose']


def _put(tree: dict[Any, Any], steps: Sequence[Step], value: Any) -> None:
    *way, last = steps
    for step in way:
        tree = tree.setdefault(step, {})
    tree[last] = value


def _lists(tree: Any) -> Any:
    """Turn what is kept by index into lists."""
    if not isinstance(tree, dict):
        return tree
    inner = {key: _lists(value) for key, value in tree.items()}
    if inner and all(isinstance(key, int) for key in inner):
        return [inner[index] for index in sorted(inner)]
    return inner
