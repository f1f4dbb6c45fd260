"""Owns the measured numbers that documents quote: they come from docs/conformance alone."""

from __future__ import annotations

import json
from pathlib import Path
import re
import sys
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
KEPT = REPOSITORY / 'docs' / 'conformance' / 'reaction_times.json'
SOAKED = REPOSITORY / 'docs' / 'conformance' / 'soak.json'
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


def soak_table() -> str:
    """Return the table of the soak, a column for each retention."""
    body = json.loads(SOAKED.read_text(encoding='utf-8'))
    bounds, runs = body['configuration'], body['conditions']

    def row(title: str, *keys: str, bound: str = '') -> str:
        told = (' to '.join(f'{run[key]:,}' for key in keys) for run in runs.values())
        return f'| {title} | {" | ".join(told)} | {bound} |'

    def grown(title: str, name: str, bounded: tuple[str, ...] = ()) -> list[str]:
        found = []
        for which, times in (('median', 'median_times'), ('p95', 'p95_times')):
            keys = [f'{name}_{which}_{when}_ms' for when in ('first', 'last')]
            bound = f'{bounds[times]} times' if which in bounded else ''
            found.append(row(f'{title}, {which}, ms', *keys, bound=bound))
        return found

    held = [f'{run["held"]["held"] + run["held"]["engine_goals"]}' for run in runs.values()]
    return '\n'.join(
        [
            f'| goals 501 to 1,000, to the last 500 | {" | ".join(runs)} | bound |',
            f'| --- |{" ---: |" * len(runs)} --- |',
            *grown('the bridge\'s own share', 'own', ('median', 'p95')),
            *grown('the server\'s share', 'server'),
            *grown('submission to `completed`', 'latency'),
            *grown('floor', 'floor'),
            row('memory after goal 1,000, kB more', 'growth_kb', bound=f'{bounds["growth_kb"]:,}'),
            f'| held at the end | {" | ".join(held)} | 0 |',
            row('goals that succeeded', 'goals'),
            row('goals that were refused or cancelled', 'refused_or_cancelled'),
            row('ended otherwise, on a busy machine', 'disturbed', bound='1 %'),
        ]
    )


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
