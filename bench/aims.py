"""Owns the aims: which figures they compare, and how a run stands to each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from bench.cases import BINDINGS
from bench.figures import Figures

#: Above this spread of equal variants a run says nothing.
MOST_SPREAD = 0.2

MOST_SUBMIT_RATIO = 1.5
LEAST_DELIVERED = 0.999
MOST_ADDED_MS = 0.5
MOST_CORE = 0.25
MOST_IDLE_CORE = 0.01
MOST_LOAD_RATIO = 1.2
LOAD_SLACK_MS = 0.5
LEAST_ANSWERED_HZ = 4950.0


@dataclass(frozen=True)
class Aim:
    """
    One aim of a run.

    :param bound: what the value is compared with, in words.
    :param spread: of the equal variants that the value stands on.
    :param verdict: met, missed or inconclusive.
    """

    what: str
    value: float
    unit: str
    bound: str
    spread: float
    verdict: str

    def dump(self) -> dict[str, Any]:
        """Return it for the JSON file."""
        return asdict(self)


def _verdict(is_met: bool, spread: float) -> str:
    if spread > MOST_SPREAD:
        return 'inconclusive'
    return 'met' if is_met else 'missed'


def aims(figures: Figures) -> Iterator[Aim]:
    """Compare what was measured with the aims; what was left out has none."""
    yield from _submit(figures)
    for binding in BINDINGS:
        yield from _topic(figures, binding)
    yield from _idle(figures)
    yield from _status(figures)


def submit_ratios(figures: Figures) -> list[float]:
    """Return by block: submit to goal at the server, over floor accept plus floor echo."""
    names = ('bridge.action.at_server_ms.p50', 'floor.action.accept_ms.p50', 'floor.echo_ms.p50')
    if any(name not in figures for name in names):
        return []
    rows = zip(*(figures.blocks(name) for name in names), strict=False)
    return [at_server / (accept + echo) for at_server, accept, echo in rows]


def added_ms(figures: Figures, rate_hz: int, binding: str) -> list[float]:
    """Return by block what the bridge adds to the median latency of the floor."""
    names = (
        f'bridge.topic_{rate_hz}_{binding}.latency_ms.p50',
        f'floor.topic_{rate_hz}.latency_ms.p50',
    )
    if any(name not in figures for name in names):
        return []
    rows = zip(*(figures.blocks(name) for name in names), strict=False)
    return [bridge - floor for bridge, floor in rows]


def _submit(figures: Figures) -> Iterator[Aim]:
    ratios = submit_ratios(figures)
    if not ratios:
        return
    accepts = figures.variants('floor.action.accept_ms.p50')
    echoes = figures.variants('floor.echo_ms.p50')
    sums = [a + e for a, e in zip(accepts, echoes, strict=False)]
    spread = (max(sums) - min(sums)) * len(sums) / sum(sums)
    value = median(ratios)
    yield Aim(
        'submit to goal at server, over accept + echo',
        value,
        'x',
        f'<= {MOST_SUBMIT_RATIO:g}',
        spread,
        _verdict(value <= MOST_SUBMIT_RATIO, spread),
    )


def _topic(figures: Figures, binding: str) -> Iterator[Aim]:
    name, floor = f'bridge.topic_1000_{binding}', 'floor.topic_1000'
    if f'{name}.delivered' not in figures:
        return
    delivered = figures.median(f'{name}.delivered')
    spread = figures.spread(f'{floor}.delivered') or 0.0
    verdict = _verdict(delivered >= LEAST_DELIVERED, spread)
    floors = figures.variants(f'{floor}.delivered')
    if verdict == 'missed' and floors and min(floors) < LEAST_DELIVERED:
        verdict = 'inconclusive'  # it was lost before any bridge could lose it
    yield Aim(
        f'1000 Hz {binding}: delivered',
        100.0 * delivered,
        '%',
        f'>= {100.0 * LEAST_DELIVERED:g}',
        spread,
        verdict,
    )
    added = added_ms(figures, 1000, binding)
    if added:
        value = median(added)
        spread = figures.spread(f'{floor}.latency_ms.p50') or 0.0
        yield Aim(
            f'1000 Hz {binding}: added to the floor',
            value,
            'ms',
            f'<= {MOST_ADDED_MS:g}',
            spread,
            _verdict(value <= MOST_ADDED_MS, spread),
        )
    core = figures.median(f'{name}.cpu')
    spread = figures.spread(f'{floor}.cpu') or 0.0
    yield Aim(
        f'1000 Hz {binding}: share of a core',
        100.0 * core,
        '%',
        f'<= {100.0 * MOST_CORE:g}',
        spread,
        _verdict(core <= MOST_CORE, spread),
    )


def _idle(figures: Figures) -> Iterator[Aim]:
    variants = figures.variants('bridge.idle_alone.cpu')
    if not variants:
        return
    core = figures.median('bridge.idle_alone.cpu')
    # Of so little a fifth is nothing: only variants on both sides of the bound are a doubt.
    is_doubtful = min(variants) < MOST_IDLE_CORE <= max(variants)
    met = 'met' if core < MOST_IDLE_CORE else 'missed'
    yield Aim(
        'neither robot nor client: share of a core',
        100.0 * core,
        '%',
        f'< {100.0 * MOST_IDLE_CORE:g}',
        figures.spread('bridge.idle_alone.cpu') or 0.0,
        'inconclusive' if is_doubtful else met,
    )


def _status(figures: Figures) -> Iterator[Aim]:
    """Questions are answered at their rate, and nobody feels much of who else is there."""
    answered = 'bridge.status.answered_hz'
    if answered in figures:
        value = figures.median(answered)
        spread = figures.spread(answered) or 0.0
        yield Aim(
            'questions from ten connections: answered',
            value,
            'Hz',
            f'>= {LEAST_ANSWERED_HZ:g}',
            spread,
            _verdict(value >= LEAST_ANSWERED_HZ, spread),
        )
    for what, without, load in (
        ('question p95 among 200 connections', 'question_quiet_ms', 'question_crowd_ms'),
        ('ping p95 beside questions from ten', 'ping_alone_ms', 'ping_storm_ms'),
    ):
        names = (f'bridge.{without}.p95', f'bridge.{load}.p95')
        if all(name in figures for name in names):
            yield _under_load(figures, what, *names)


def _under_load(figures: Figures, what: str, without: str, load: str) -> Aim:
    bound = MOST_LOAD_RATIO * figures.median(without) + LOAD_SLACK_MS
    spread = max(figures.spread(without) or 0.0, figures.spread(load) or 0.0)
    value = figures.median(load)
    return Aim(what, value, 'ms', f'<= {bound:.3g}', spread, _verdict(value <= bound, spread))


def core_us(figures: Figures, load: str, without: str, rate: str) -> float | None:
    """
    Return the time of a core that one answer takes, None where it was not measured.

    :param load: share of a core while answers are given.
    :param without: share of a core that the same process takes anyway; empty for none.
    :param rate: answers per second.
    """
    if any(name not in figures for name in (load, rate, without or load)):
        return None
    anyway = figures.median(without) if without else 0.0
    return (figures.median(load) - anyway) / figures.median(rate) * 1e6


def status_core_us(figures: Figures) -> tuple[float, float] | None:
    """Return what one answer to a question takes of a core: the floor's, the bridge's."""
    floor = core_us(figures, 'floor.status.cpu', '', 'floor.status.answered_hz')
    bridge = core_us(
        figures, 'bridge.ping_storm.cpu', 'bridge.ping_alone.cpu', 'bridge.status.answered_hz'
    )
    return None if floor is None or bridge is None else (floor, bridge)
