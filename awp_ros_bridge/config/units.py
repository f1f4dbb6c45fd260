"""Owns the units that fields of messages come in: what each is called, and what becomes of it."""

from __future__ import annotations

import math
from typing import NamedTuple


class Conversion(NamedTuple):
    """
    How a unit that is not SI becomes one that is: times ``factor``, plus ``offset``.

    :param suffix: of the unit it becomes.
    """

    suffix: str
    factor: float
    offset: float = 0.0


NO_UNIT = 'none'

#: Units that are not SI; AWP has SI only (AWP-UNI-001).
CONVERSIONS = {
    'deg': Conversion('rad', math.pi / 180),
    'degps': Conversion('radps', math.pi / 180),
    'rpm': Conversion('radps', math.pi / 30),
    'mm': Conversion('m', 1e-3),
    'degc': Conversion('k', 1.0, 273.15),
    'bar': Conversion('pa', 1e5),
    'mv': Conversion('v', 1e-3),
    'ma': Conversion('a', 1e-3),
    'percent': Conversion(NO_UNIT, 1e-2),
}
