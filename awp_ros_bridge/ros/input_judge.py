"""Owns what a safety input's messages say, without ROS: what forbids motion, and since when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
import math
from typing import Any

from awp_ros_bridge.config import InputSpec, JointParts, Part
from awp_ros_bridge.engine.inputs import Meaning
from awp_ros_bridge.ros.field_path import FieldPath, ItemMissing
from awp_ros_bridge.ros.plan import MS

READERS = 2

_RANK = {meaning: rank for rank, meaning in enumerate(Meaning)}  # what stops hardest comes first


@dataclass(frozen=True, slots=True)
class Verdict:
    """Something that forbids motion: what it is, and the topic, field and value that say so."""

    means: Meaning
    text: str


def hardest(first: Verdict, second: Verdict | None) -> Verdict:
    """Return the one that stops harder; of equals the first."""
    if second is None or _RANK[first.means] <= _RANK[second.means]:
        return first
    return second


Findings = Iterator[tuple[str, Verdict | None]]


@dataclass(slots=True)
class _PartState:
    heard_ns: int | None = None
    unsafe: list[Verdict | None] = field(default_factory=lambda: [None] * READERS)


class InputJudge:
    """
    What one input says.

    :param spec: what is looked at, what of it is unsafe, the limit of silence.
    """

    def __init__(self, spec: InputSpec) -> None:
        self._spec = spec
        self._probe = _probe(spec)
        self._stale_ns = spec.stale_after_ms * MS
        self._parts = {name: _PartState() for name in self._probe.names}
        self._unreadable: list[Verdict | None] = [None] * READERS
        self._companion_ns: int | None = None
        self._fault: str | None = None

    def take(self, reader: int, message: Any | None, at_ns: int) -> None:
        """Note the newest message of a reader; None for one that cannot be read."""
        try:
            if message is None:
                raise ValueError('a message cannot be read')
            found = dict(self._probe.read(message))
        except Exception as error:  # noqa: BLE001 what cannot be judged forbids motion
            self._unreadable[reader] = self._not_read(error)
            return
        self._unreadable[reader] = None
        for name, verdict in found.items():
            state = self._parts.setdefault(name, _PartState())
            state.heard_ns = at_ns
            state.unsafe[reader] = verdict

    def take_companion(self, at_ns: int) -> None:
        """Note that the periodic topic of the same driver is alive."""
        self._companion_ns = at_ns

    def fail(self, fault: str) -> None:
        """Note that the topic cannot be heard at all."""
        self._fault = fault

    def tripped(self) -> Verdict | None:
        """
        Return what was heard that forbids motion; it holds until that reader hears better.

        Of several the one that stops hardest counts, and the text tells all of that meaning.
        """
        found = [said for said in self._unreadable if said is not None]
        for state in list(self._parts.values()):
            found += [said for said in state.unsafe if said is not None]
        if not found:
            return None
        means = min((said.means for said in found), key=_RANK.__getitem__)
        texts = dict.fromkeys(said.text for said in found if said.means is means)
        return Verdict(means, '; '.join(texts))

    def stale(self, now_ns: int) -> str | None:
        """Return why the input counts as unknown, or None."""
        if self._fault is not None:
            return self._fault
        topic, companion = self._spec.topic, self._spec.companion
        if not self._parts:
            return f'{topic}: nothing was heard yet'
        for name, state in list(self._parts.items()):
            source = f'{topic}[{name}]' if name else topic
            if state.heard_ns is None:
                return f'{source} was not heard yet'
            if companion is None and now_ns - state.heard_ns >= self._stale_ns:
                return self._silent(source, now_ns - state.heard_ns)
        if companion is None:
            return None
        source = f'{companion}, companion of {topic},'
        if self._companion_ns is None:
            return f'{source} was not heard yet'
        silent_ns = now_ns - self._companion_ns
        return self._silent(source, silent_ns) if silent_ns >= self._stale_ns else None

    @property
    def heard_ns(self) -> int | None:
        """Steady time at which the most silent part was heard, None where one never was."""
        heard = [state.heard_ns for state in list(self._parts.values())]
        known = [at for at in heard if at is not None]
        return min(known) if known and len(known) == len(heard) else None

    def permits_motion(self, now_ns: int) -> bool:
        """Tell whether a message allowed motion, is young enough, and there was one at all."""
        return self.tripped() is None and self.stale(now_ns) is None

    def due_ns(self) -> int | None:
        """Return when a permission ages into unknown."""
        if self._spec.companion is not None:
            renewed_ns = self._companion_ns
        else:
            heard = [state.heard_ns for state in self._parts.values()]
            renewed_ns = min((at for at in heard if at is not None), default=None)
        return None if renewed_ns is None else renewed_ns + self._stale_ns

    def _not_read(self, error: Exception) -> Verdict | None:
        return Verdict(self._spec.means, f'{self._spec.topic}: {error}')

    def _silent(self, source: str, silent_ns: int) -> str:
        return f'{source} silent for {silent_ns // MS} ms (limit {self._stale_ns // MS} ms)'


# ---------------------------------------------------------------- what is looked at


class _FieldProbe:
    """Reads values by their paths."""

    def __init__(self, topic: str, parts: tuple[Part, ...]) -> None:
        self._topic = topic
        self._parts = [(part, FieldPath(part.path)) for part in parts]
        self.names = tuple(part.name for part in parts)

    def read(self, message: Any) -> Findings:
        for part, path in self._parts:
            try:
                values = list(path.read_all(message))
            except ItemMissing as error:
                if part.may_lack:
                    continue
                raise ValueError(f'{path.text} cannot be read: {error}') from None
            except Exception as error:
                raise ValueError(f'{path.text} cannot be read: {error}') from error
            found = [said for value in values if (said := self._judge(part, value)) is not None]
            yield part.name, min(found, key=lambda said: _RANK[said.means]) if found else None

    def _judge(self, part: Part, value: Any) -> Verdict | None:
        for rule in part.rules:
            if rule.unsafe.holds(value):
                return Verdict(rule.means, f'{self._topic}.{part.path} is {value!r}')
        return None


class _JointProbe:
    """Looks whether the numbers of a JointState are finite."""

    def __init__(self, spec: InputSpec, parts: JointParts) -> None:
        self._spec = spec
        self._fields = parts.fields
        self._is_every = parts.joints is None
        self.names = parts.joints or ()

    def read(self, message: Any) -> Findings:
        names = list(message.name)
        arrays: dict[str, list[float]] = {
            name: list(getattr(message, name)) for name in self._fields
        }
        for field_name, array in arrays.items():
            is_left_out = not array and field_name != 'position'
            if len(array) != len(names) and not is_left_out:
                raise ValueError(f'{len(names)} names, {len(array)} numbers in {field_name}')
        for index, name in enumerate(names):
            if self._is_every or name in self.names:
                yield name, self._judge(name, index, arrays)

    def _judge(self, name: str, index: int, arrays: dict[str, list[float]]) -> Verdict | None:
        for field_name, array in arrays.items():
            if array and not math.isfinite(array[index]):
                text = f'{self._spec.topic}.{field_name}[{name}] is {array[index]!r}'
                return Verdict(self._spec.means, text)
        return None


def _probe(spec: InputSpec) -> _FieldProbe | _JointProbe:
    if isinstance(spec.parts, JointParts):
        return _JointProbe(spec, spec.parts)
    return _FieldProbe(spec.topic, spec.parts)
