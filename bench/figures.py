"""Owns the numbers: percentiles of a block, medians over blocks, spread of equal variants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

Block = Mapping[str, float]


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of the ordered samples lies."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def distribution(name: str, samples: Sequence[float]) -> dict[str, float]:
    """
    Return p50, p95 and p99 of samples as figures of a block.

    :raises ValueError: there is no sample
    """
    if not samples:
        raise ValueError(f'{name}: nothing was measured')
    ordered = sorted(samples)
    shares = {'p50': 0.5, 'p95': 0.95, 'p99': 0.99}
    return {f'{name}.{key}': percentile(ordered, share) for key, share in shares.items()}


@dataclass
class Figures:
    """
    The figures of a run: for each name one value per block, of each of its variants.

    :ivar values: block figures by name; equal variants, where a figure is measured twice in a
        block, stand in lists of their own.
    """

    values: dict[str, list[list[float]]] = field(default_factory=dict)

    def add(self, block: Block, variant: int = 0) -> None:
        """Take the figures of a block in."""
        for name, value in block.items():
            variants = self.values.setdefault(name, [])
            while len(variants) <= variant:
                variants.append([])
            variants[variant].append(value)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def blocks(self, name: str) -> list[float]:
        """Return one value per block: the mean of its equal variants."""
        rows = zip(*self.values[name], strict=False)
        return [sum(row) / len(row) for row in rows]

    def median(self, name: str) -> float:
        """Return the median of the block figures."""
        return median(value for variant in self.values[name] for value in variant)

    def range(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest block figure."""
        every = [value for variant in self.values[name] for value in variant]
        return min(every), max(every)

    def spread(self, name: str) -> float | None:
        """Return how far the medians of two equal variants lie apart, relative; None for one."""
        medians = self.variants(name)
        if len(medians) < 2:
            return None
        middle = sum(medians) / len(medians)
        return (max(medians) - min(medians)) / middle if middle else 0.0

    def variants(self, name: str) -> list[float]:
        """Return the median of each variant."""
        return [median(variant) for variant in self.values.get(name, []) if variant]

    def dump(self) -> dict[str, Any]:
        """Return everything for the JSON file."""
        return {
            name: {
                'median': self.median(name),
                'min': self.range(name)[0],
                'max': self.range(name)[1],
                'aa_spread': self.spread(name),
                'variants': variants,
            }
            for name, variants in sorted(self.values.items())
        }
