"""Owns the measured times that documents quote: they come from docs/conformance alone."""

from __future__ import annotations

import json
from pathlib import Path
import re
import sys
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
KEPT = REPOSITORY / 'docs' / 'conformance' / 'reaction_times.json'
sys.path.insert(0, str(REPOSITORY))

from evidence.measures import MEASURES  # noqa: E402

QUOTED = (
    'e_stop_to_cancel',
    'floor_to_cancel',
    'stop_to_rest',
    'watchdog_to_cancel',
    'stalled_to_cancel',
    'killed_to_cancel',
    'violation_to_failed',
    'close_to_rest',
    'takeover_to_rest',
)
_INLINE = re.compile(r'<!-- ms: (\w+) -->.*?<!-- /ms -->')


def _rows() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    conditions = json.loads(KEPT.read_text(encoding='utf-8'))['conditions']
    idle, loaded = (conditions.get(c, {}).get('measures', {}) for c in ('idle', 'loaded'))
    return [(n, idle.get(n, {}), loaded.get(n, {})) for n in QUOTED if n in idle or n in loaded]


def _ms(row: dict[str, Any], key: str) -> str:
    return f'{row[key]:.0f}' if key in row else 'not measured'


def reaction_table() -> str:
    """Return the table of the README."""
    rows = [
        '| reaction, ms | n | p50 idle / loaded | p99 idle / loaded | max idle / loaded | bound |',
        '| --- | ---: | ---: | ---: | ---: | --- |',
    ]
    for name, idle, loaded in _rows():
        bound = idle.get('bound') or loaded.get('bound')
        text = f'{bound["of"].removesuffix("_ms")}: {bound["why"]}' if bound else ''
        pairs = ' | '.join(
            f'{_ms(idle, key)} / {_ms(loaded, key)}' for key in ('p50_ms', 'p99_ms', 'max_ms')
        )
        rows.append(f'| {MEASURES[name].title} | {(idle or loaded)["n"]} | {pairs} | {text} |')
    return '\n'.join(rows)


def inlined(text: str) -> str:
    """Return a document with every quoted maximum renewed, idle / loaded in ms."""
    found = {name: (idle, loaded) for name, idle, loaded in _rows()}

    def quote(match: re.Match[str]) -> str:
        name = match[1]
        idle, loaded = found.get(name, ({}, {}))
        said = 'not measured'
        if idle or loaded:
            said = f'{_ms(idle, "max_ms")} / {_ms(loaded, "max_ms")}'
        return f'<!-- ms: {name} -->{said}<!-- /ms -->'

    return _INLINE.sub(quote, text)
