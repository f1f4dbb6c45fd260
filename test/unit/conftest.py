"""Judges every world of the engine's tests when its test is over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
import sys

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def judged_worlds() -> Iterator[None]:
    """Ask the public suite's passive checks about every world that the test made."""
    yield
    module = sys.modules.get('engine_world')
    worlds = [] if module is None else module.WORLDS
    made = worlds[:]
    worlds.clear()
    for world in made:
        world.check()
