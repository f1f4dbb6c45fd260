"""Owns what each measure means: from which moment to which, how it is sensed, its bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.figures import percentile

QUANTILES = 20
CANCEL = 'cancel callback of the action server, per event'
REST = 'joint velocities at the publication of joint_states, 100 Hz'
ANSWER = 'receipt at the agent, per event'


@dataclass(frozen=True, slots=True)
class Measure:
    """
    One reaction.

    :param sensor: what notices the end, and how often it looks.
    """

    title: str
    begins: str
    ends: str
    sensor: str


MEASURES = {
    'floor_to_cancel': Measure(
        'floor: message to cancel',
        'publication of the message',
        'cancel at the server, sent by a plain node that hears the message',
        CANCEL,
    ),
    'e_stop_to_cancel': Measure(
        'e-stop to cancel',
        'publication of the e-stop',
        'cancel at the server, sent by the bridge',
        CANCEL,
    ),
    'e_stop_to_agent': Measure(
        'e-stop to agent', 'publication of the e-stop', '`e_stop_engaged` at the agent', ANSWER
    ),
    'stop_to_rest': Measure(
        'stop to measured rest',
        'cancel at the server (e-stop and stalled loop, arm above 0.1 rad/s)',
        'first of the samples below 0.01 rad/s that no faster one follows',
        REST,
    ),
    'watchdog_to_cancel': Measure(
        'silent agent to cancel', 'last message of the agent', 'cancel at the server', CANCEL
    ),
    'stalled_to_cancel': Measure(
        'stalled loop to cancel', 'last beat of the loop', 'cancel at the server', CANCEL
    ),
    'killed_to_cancel': Measure(
        'killed bridge to cancel', 'SIGKILL', 'cancel at the server, sent by the guardian', CANCEL
    ),
    'violation_to_failed': Measure(
        'violation to `failed`',
        'first joint state with the tip outside the box and its tolerance',
        '`failed` (`envelope`) at the agent',
        ANSWER,
    ),
    'close_to_rest': Measure(
        'close to rest', '`session.close` leaves the agent', 'the arm at rest', REST
    ),
    'close_to_answer': Measure(
        'close to answer', '`session.close` leaves the agent', 'its result at the agent', ANSWER
    ),
    'takeover_to_rest': Measure(
        'takeover to rest',
        '`session.open` (takeover) leaves the receiver',
        'the arm at rest',
        REST,
    ),
    'takeover_to_answer': Measure(
        'takeover to answer',
        '`session.open` (takeover) leaves the receiver',
        'its result at the receiver',
        ANSWER,
    ),
}

FLOOR_TIMES = 4.0
E_STOP_P99_MS = {'idle': 20.0, 'loaded': 50.0}
MARGIN_MS = 100.0
STALLED_MS = 350.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What the configuration promises, in ms."""

    watchdog_ms: float
    max_abort_ms: float
    lease_ms: float


def distribution(samples: Sequence[float]) -> dict[str, object]:
    """Return the numbers that are kept of a measure, in ms."""
    ordered = sorted(samples)
    shares = {'p50_ms': 0.5, 'p95_ms': 0.95, 'p99_ms': 0.99}
    last = len(ordered) - 1
    quantiles = [ordered[round(last * i / QUANTILES)] for i in range(QUANTILES + 1)]
    return {
        'n': len(ordered),
        **{key: round(percentile(ordered, share), 2) for key, share in shares.items()},
        'max_ms': round(ordered[-1], 2),
        'quantiles_ms': [round(value, 2) for value in quantiles],
    }


def bounds(
    measures: Mapping[str, Mapping[str, object]], condition: str, limits: Limits
) -> dict[str, tuple[str, float, str]]:
    """Return for each measure that has one: which number is bounded, by how many ms, and why."""
    found = {
        'watchdog_to_cancel': (
            'max_ms', limits.watchdog_ms + MARGIN_MS, f'watchdog_ms + {MARGIN_MS:.0f} ms',
        ),
        'stalled_to_cancel': ('max_ms', STALLED_MS, 'dead-man time + 100 ms'),
        'killed_to_cancel': (
            'max_ms', limits.lease_ms + MARGIN_MS, f'lease_ms + {MARGIN_MS:.0f} ms',
        ),
        'close_to_rest': ('max_ms', limits.max_abort_ms, 'max_abort_ms'),
        'takeover_to_rest': ('max_ms', limits.max_abort_ms, 'max_abort_ms'),
    }  # fmt: skip
    floor, stop = measures.get('floor_to_cancel'), measures.get('e_stop_to_cancel')
    if floor is not None and stop is not None:
        fixed, by_floor = E_STOP_P99_MS[condition], FLOOR_TIMES * float(str(floor['p99_ms']))
        is_noisy = float(str(stop['p99_ms'])) > fixed < by_floor
        why = f'{FLOOR_TIMES:.0f} times the p99 of the floor' if is_noisy else f'{fixed:.0f} ms'
        found['e_stop_to_cancel'] = ('p99_ms', by_floor if is_noisy else fixed, why)
    return {name: row for name, row in found.items() if name in measures}


def judged(
    samples: Mapping[str, Sequence[float]], condition: str, limits: Limits
) -> dict[str, dict[str, object]]:
    """Return every measure with its numbers and, where it has one, its bound and the verdict."""
    found = {name: distribution(samples[name]) for name in MEASURES if samples.get(name)}
    judge(found, condition, limits)
    return found


def judge(found: dict[str, dict[str, object]], condition: str, limits: Limits) -> None:
    """Write bound and verdict to every measure that has one."""
    for name, (key, bound_ms, why) in bounds(found, condition, limits).items():
        found[name]['bound'] = {
            'of': key,
            'ms': round(bound_ms, 2),
            'why': why,
            'kept': float(str(found[name][key])) <= bound_ms,
        }


def missed(conditions: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Say which bounds are not kept."""
    out = []
    for condition, body in conditions.items():
        measures: Mapping[str, Mapping[str, object]] = body['measures']  # type: ignore[assignment]
        for name, row in measures.items():
            bound = row.get('bound')
            if isinstance(bound, dict) and not bound['kept']:
                out.append(
                    f'{condition}: {MEASURES[name].title}: {bound["of"]} {row[bound["of"]]} ms, '
                    f'bound {bound["ms"]} ms ({bound["why"]})'
                )
    return out
