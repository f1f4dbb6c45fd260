"""Owns the loading of a class that another package offers through an entry point."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TypeVar

T = TypeVar('T')


def load_offer(offer: EntryPoint, base: type[T]) -> type[T] | str:
    """
    Return the class that is offered, or why it cannot be used.

    :param base: what it has to be derived from, with nothing left abstract.
    """
    try:
        found = offer.load()
    except Exception as error:  # noqa: BLE001 another package's code may fail in any way
        return f'{offer.value} does not load: {type(error).__name__}: {error}'
    if not (isinstance(found, type) and issubclass(found, base)):
        return f'{offer.value} is not a class derived from {base.__module__}.{base.__name__}'
    abstract = ', '.join(sorted(getattr(found, '__abstractmethods__', ())))
    return f'{offer.value} lacks {abstract}' if abstract else found
