"""Owns the words that say the unit of a number in its name (AWP-UNI-001)."""

from __future__ import annotations

from awp_ros_bridge.config.units import NO_UNIT

# SI and what the protocol itself counts in; a ratio, a gain or a score has none.
SUFFIXES = (
    'm', 'm2', 'm3', 'mps', 'mps2', 'mps3', 'rad', 'radps', 'radps2', 'radps3',
    's', 'ms', 'us', 'ns', 'hz', 'kg', 'kgm2', 'kgpm3', 'n', 'nm', 'npm', 'nmprad',
    'pa', 'j', 'w', 'v', 'a', 'ohm', 'c', 'k', 't', 'cd', 'lx', 'bytes', 'px',
)  # fmt: skip


def suffix_of(name: str) -> str | None:
    """Return the unit that a name ends in, such as ``rad`` of ``positions_rad``, or None."""
    found = [each for each in SUFFIXES if name.endswith(f'_{each}')]
    return max(found, key=len, default=None)


def with_suffix(name: str, unit: str) -> str:
    """Return a name that says its unit, once."""
    if unit == NO_UNIT or name.endswith(f'_{unit}'):
        return name
    return f'{name}_{unit}'
