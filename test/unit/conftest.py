"""Judges every world of the engine's tests when its test is over; spares the collector work."""

from __future__ import annotations

from collections.abc import Iterator
import gc
from pathlib import Path
import sys

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_finish() -> None:
    """Keep the collector from looking again and again at what was imported, which stays."""
    gc.collect()
    gc.freeze()


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
