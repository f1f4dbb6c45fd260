"""Lets the property tests use the worlds of the unit tests, and sets how far they search."""

from __future__ import annotations

import os
from pathlib import Path
import sys

from hypothesis import settings

# The suite stays quick and repeatable; HYPOTHESIS_PROFILE=long searches wide.
settings.register_profile('quick', max_examples=40, deadline=None, derandomize=True)
settings.register_profile('long', max_examples=2000, deadline=None)
settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'quick'))

sys.path.insert(0, str(Path(__file__).parents[1] / 'unit'))
