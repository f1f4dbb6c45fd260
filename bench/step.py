"""Owns what a step of a block is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Step = Callable[[], dict[str, float]]


@dataclass(frozen=True)
class Named:
    """
    One step of a block.

    :param variant: 0, or 1 for the second of two equal ones.
    """

    name: str
    run: Step
    variant: int = 0
