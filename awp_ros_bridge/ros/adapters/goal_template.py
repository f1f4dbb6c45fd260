"""Owns the template of a goal as it is written: which field gets what, by nested paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
import re
from typing import Any

from awp_ros_bridge.config.field_path import field_steps, Item
from awp_ros_bridge.config.problems import Finding, Path
from awp_ros_bridge.manifest.field_types import Step, written

PARTS = ('frame', 'p_m', 'q', 'pose')
_WORDS = ('param', 'constant', 'stamp')
_REFERENCE = re.compile(r'^([a-z][a-z0-9_]*)(?:\[(\d+)\])?(?:\.([a-z_]+))?$')
MOST_ITEMS = 1000


@dataclass(frozen=True, slots=True)
class Constant:
    """What is the same in every goal."""

    value: Any


@dataclass(frozen=True, slots=True)
class Named:
    """A constant of the message that holds the field, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """The time at which the goal is made."""


@dataclass(frozen=True, slots=True)
class Reference:
    """
    What an agent gives.

    :param index: item of the param that the field gets, None for the whole.
    :param part: part of a pose, one of :data:`PARTS`, or empty.
    :param factor: what the number is multiplied with on its way.
    """

    param: str
    index: int | None = None
    part: str = ''
    factor: float | None = None


Source = Constant | Named | Stamp | Reference


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One field of the goal.

    :param at: where it stands in the options.
    """

    steps: tuple[Step, ...]
    source: Source
    at: Path

    @property
    def path(self) -> str:
        """The field as people write it."""
        return written(self.steps)


Problems = list[Finding]


def read_template(goal: Mapping[str, Any]) -> tuple[list[Entry], Problems]:
    """Read a template as it was written: which field gets what, and what is wrong with it."""
    problems: Problems = []
    entries = list(_walk(goal, (), ('goal',), problems))
    problems += _collisions(entries)
    problems += _gaps(entries)
    return entries, problems


def _walk(value: Any, steps: tuple[Step, ...], at: Path, problems: Problems) -> Iterator[Entry]:
    if isinstance(value, Mapping) and not (steps and set(value) & set(_WORDS)):
        for key, inner in value.items():
            found = _steps(key, (*at, key), problems)
            if found is not None:
                yield from _walk(inner, (*steps, *found), (*at, key), problems)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from _walk(item, (*steps, index), (*at, index), problems)
    else:
        source = _source(value, at, problems)
        if source is not None:
            yield Entry(steps, source, at)


def _steps(key: Any, at: Path, problems: Problems) -> tuple[Step, ...] | None:
    try:
        steps = field_steps(str(key))
    except ValueError:
        problems.append(
            Finding(
                at, f'{key!r} is not a field path', 'write names divided by dots, such as a[0].b'
            )
        )
        return None
    plain = [step for step in steps if not isinstance(step, Item)]
    if len(plain) < len(steps):
        problems.append(
            Finding(at, f'{key!r} searches for an item', 'write its index, such as items[0]')
        )
        return None
    if any(isinstance(step, int) and step >= MOST_ITEMS for step in plain):
        problems.append(Finding(at, f'{key!r} has too great an index', 'count from 0'))
        return None
    return tuple(plain)


def _source(value: Any, at: Path, problems: Problems) -> Source | None:
    if not isinstance(value, Mapping):
        if value is None:
            problems.append(Finding(at, 'nothing is no value of ROS', 'write a value'))
            return None
        return Constant(value)
    words = [word for word in _WORDS if word in value]
    extra = [k for k in value if k not in words and not (k == 'factor' and words == ['param'])]
    if len(words) > 1 or extra:
        problems.append(
            Finding(
                at,
                f'{", ".join(map(str, value))} do not go together',
                'write {param: name}, {param: name, factor: 0.001}, {constant: NAME} or '
                '{stamp: now}; a field of such a name is written with its path, such as a.param',
            )
        )
        return None
    match words[0]:
        case 'param':
            return _reference(value, at, problems)
        case 'constant':
            return Named(str(value['constant']))
    if value['stamp'] != 'now':
        problems.append(Finding((*at, 'stamp'), 'only one stamp is known', 'write now'))
        return None
    return Stamp()


def _reference(value: Mapping[str, Any], at: Path, problems: Problems) -> Reference | None:
    match = _REFERENCE.match(str(value['param']))
    if match is None or (match[3] is not None and match[3] not in PARTS):
        problems.append(
            Finding(
                (*at, 'param'),
                f'{value["param"]!r} names no param',
                f'write a name in small letters, an item as name[0], a part of a pose as '
                f'name.{" or name.".join(PARTS)}',
            )
        )
        return None
    factor = value.get('factor')
    if factor is not None and (
        isinstance(factor, bool) or not isinstance(factor, int | float) or not _is_factor(factor)
    ):
        problems.append(
            Finding((*at, 'factor'), f'{factor!r} is no factor', 'write a number other than 0')
        )
        return None
    index = None if match[2] is None else int(match[2])
    if index is not None and index >= MOST_ITEMS:
        problems.append(Finding((*at, 'param'), 'too great an index', 'count from 0'))
        return None
    return Reference(match[1], index, match[3] or '', None if factor is None else float(factor))


def _is_factor(value: float) -> bool:
    return 0.0 < abs(value) < 1e300


def _collisions(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Refuse two sources of one field, or of a field and of something inside it."""
    seen: dict[tuple[Step, ...], Entry] = {}
    for entry in entries:
        heads = [entry.steps[:size] for size in range(1, len(entry.steps) + 1)]
        inside = next((each for each in seen if each[: len(entry.steps)] == entry.steps), None)
        above = next((head for head in heads if head in seen), None)
        other = above or inside
        if other is not None:
            yield Finding(
                entry.at,
                f'{entry.path} and {written(other)} fill the same field',
                'keep one of them',
            )
        seen[entry.steps] = entry


def _gaps(entries: Sequence[Entry]) -> Iterator[Finding]:
    """Refuse a list some of whose items nothing fills."""
    lists: dict[tuple[Step, ...], dict[int, Entry]] = {}
    for entry in entries:
        for at, step in enumerate(entry.steps):
            if isinstance(step, int):
                lists.setdefault(entry.steps[:at], {}).setdefault(step, entry)
    for head, items in lists.items():
        lacking = next((i for i in range(max(items)) if i not in items), None)
        if lacking is not None:
            entry = items[max(items)]
            yield Finding(
                entry.at,
                f'{written(head)} has an item {max(items)} and no item {lacking}',
                'fill the items from 0 on, without a gap',
            )
