"""Owns what waits for the writer: bounded, and never a reason for anybody to wait."""

from __future__ import annotations

from dataclasses import dataclass
import threading
from typing import Any

Json = dict[str, Any]

MOST_ITEMS = 100_000
MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Opened:
    """A session began; ``opened_at_s`` is wall-clock time."""

    session_id: str
    ts_mono_ns: int
    header: Json
    opened_at_s: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """Something was said or done."""

    session_id: str
    ts_mono_ns: int
    direction: str
    kind: str
    body: Json


@dataclass(frozen=True, slots=True)
class Framed:
    """A frame passed; its payload is hashed by the writer."""

    session_id: str
    ts_mono_ns: int
    direction: str
    header: Json
    payload: bytes


@dataclass(frozen=True, slots=True)
class Closed:
    """A session is over."""

    session_id: str


Item = Opened | Recorded | Framed | Closed


@dataclass(frozen=True, slots=True)
class Taken:
    """
    Everything that waited.

    :param overflowed: records that found no place, by session; they came after the items.
    """

    items: list[Item]
    overflowed: dict[str, int]


class Intake:
    """A queue that anybody fills without waiting and one thread empties."""

    def __init__(self, most_items: int = MOST_ITEMS, most_bytes: int = MOST_BYTES) -> None:
        self._most_items = most_items
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._items: list[Item] = []
        self._bytes = 0
        self._payloads: set[int] = set()
        self._overflowed: dict[str, int] = {}
        self._wake = threading.Event()
        self._urgent = threading.Event()

    def put(self, item: Item, size: int = 0) -> bool:
        """
        Add an item; the beginning and end of a session always find place.

        :param size: bytes that the item holds beside its fields; a payload that several items
            hold, one for each session that saw it, counts once.
        :returns: False when there was no place and the item is only counted.
        """
        with self._lock:
            if isinstance(item, Framed):
                key = id(item.payload)  # of a live object: the item with it waits
                size = 0 if key in self._payloads else size
            is_full = len(self._items) >= self._most_items or self._bytes + size > self._most_bytes
            if is_full and isinstance(item, Recorded | Framed):
                self._overflowed[item.session_id] = self._overflowed.get(item.session_id, 0) + 1
            else:
                is_full = False
                self._items.append(item)
                self._bytes += size
                if isinstance(item, Framed):
                    self._payloads.add(id(item.payload))
        if not self._wake.is_set():
            self._wake.set()
        return not is_full

    @property
    def has_overflowed(self) -> bool:
        """Whether records found no place since the last :meth:`take`."""
        return bool(self._overflowed)

    def hurry(self) -> None:
        """Let the writer come at once."""
        self._urgent.set()
        self._wake.set()

    def wait(self, most_s: float | None, batch_s: float) -> None:
        """
        Return when there is something to do, a little later unless somebody hurries.

        :param most_s: longest wait for an item, None for no limit: there is nothing else to do.
        :param batch_s: how long to wait for more once there is one.
        """
        self._wake.wait(most_s)
        self._urgent.wait(batch_s)
        self._urgent.clear()
        self._wake.clear()

    def take(self) -> Taken:
        """Take everything out; what is put from now on wakes the writer again."""
        with self._lock:
            taken = Taken(self._items, self._overflowed)
            self._items, self._overflowed, self._bytes = [], {}, 0
            self._payloads = set()
        return taken
