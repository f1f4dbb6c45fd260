"""Owns the plot of the page: one line of quantiles for each measure and condition, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import math
from typing import Any

from evidence.measures import MEASURES

WIDTH, LEFT, RIGHT, TOP, ROW, BAR = 860, 210, 30, 58, 40, 11
FIRST_MS, LAST_MS = 1.0, 4000.0
TICKS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4000)
COLOURS = {'idle': '#2b6cb0', 'loaded': '#c05621'}
INK, GREY, RED = '#333333', '#dddddd', '#c53030'


def _x(value_ms: float) -> float:
    """Return the place of a time on the logarithmic axis."""
    value = min(max(value_ms, FIRST_MS), LAST_MS)
    share = math.log(value / FIRST_MS) / math.log(LAST_MS / FIRST_MS)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _text(x: float, y: float, text: str, anchor: str = 'start', colour: str = INK) -> str:
    clean = text.replace('&', '&amp;').replace('<', '&lt;').replace('`', '')
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{clean}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1.0) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-width="{width:g}"/>'
    )


def _bar(row: Mapping[str, Any], y: float, colour: str) -> Iterator[str]:
    """Draw minimum to maximum as a line, 5 to 95 % as a bar, the median as a gap, the bound."""
    quantiles = row['quantiles_ms']
    last = len(quantiles) - 1
    low, high = quantiles[round(last * 0.05)], row['p95_ms']
    yield _line(_x(quantiles[0]), y, _x(quantiles[-1]), y, colour, 1.5)
    width = max(1.5, _x(high) - _x(low))
    yield (
        f'<rect x="{_x(low):.1f}" y="{y - BAR / 2:.1f}" width="{width:.1f}" height="{BAR}" '
        f'fill="{colour}" fill-opacity="0.55"/>'
    )
    yield _line(_x(row['p50_ms']), y - BAR / 2, _x(row['p50_ms']), y + BAR / 2, INK, 2.0)
    yield _line(_x(row['max_ms']), y - 4, _x(row['max_ms']), y + 4, colour, 2.0)
    if 'bound' in row:
        at = _x(row['bound']['ms'])
        yield _line(at, y - BAR / 2 - 2, at, y + BAR / 2 + 2, RED, 2.0)


def plot(conditions: Mapping[str, Any]) -> str:
    """Return the SVG of all conditions that were measured."""
    names = [n for n in MEASURES if any(n in c['measures'] for c in conditions.values())]
    height = TOP + ROW * len(names) + 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        _text(LEFT, 20, 'reaction times, ms: line: all samples, bar: 5 to 95 %, mark: median'),
    ]
    for place, (condition, colour) in enumerate(COLOURS.items()):
        if condition in conditions:
            lines.append(_text(LEFT + 90 * place, 38, condition, colour=colour))
    lines.append(_text(LEFT + 200, 38, '| bound', colour=RED))
    for tick in TICKS_MS:
        lines.append(_line(_x(tick), TOP - 8, _x(tick), height - 32, GREY))
        lines.append(_text(_x(tick), height - 14, f'{tick}', 'middle'))
    for number, name in enumerate(names):
        y = TOP + ROW * number + ROW / 2
        lines.append(_text(LEFT - 12, y + 4, MEASURES[name].title, 'end'))
        for place, (condition, colour) in enumerate(COLOURS.items()):
            row = conditions.get(condition, {'measures': {}})['measures'].get(name)
            if row is not None:
                lines += _bar(row, y - 7 + 14 * place, colour)
    return '\n'.join([*lines, '</svg>', ''])
