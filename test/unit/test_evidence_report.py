"""What scripts/evidence makes of its samples: bounds, verdicts, and a page that is current."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip('rclpy', reason='the load of the evidence publishes')

from evidence import measures, report
from evidence.measures import judged, Limits, missed
from evidence.plot import plot

LIMITS = Limits(watchdog_ms=2000.0, max_abort_ms=1500.0, lease_ms=300.0)


def samples(**changes: list[float]) -> dict[str, list[float]]:
    found = {name: [5.0, 6.0, 7.0] for name in measures.MEASURES}
    return found | {'watchdog_to_cancel': [2001.0, 2040.0]} | changes


def verdicts(found: dict[str, dict[str, Any]]) -> dict[str, bool]:
    return {name: row['bound']['kept'] for name, row in found.items() if 'bound' in row}


def test_numbers_of_a_measure() -> None:
    row = measures.distribution([float(v) for v in range(1, 101)])
    assert (row['n'], row['p50_ms'], row['p95_ms'], row['p99_ms']) == (100, 51.0, 96.0, 100.0)
    assert row['max_ms'] == 100.0
    quantiles: Any = row['quantiles_ms']
    assert len(quantiles) == 21
    assert quantiles == sorted(quantiles)
    assert (quantiles[0], quantiles[-1]) == (1.0, 100.0)


def test_what_keeps_its_bounds_is_not_missed() -> None:
    found = judged(samples(), 'idle', LIMITS)
    assert set(verdicts(found)) == {
        'e_stop_to_cancel', 'watchdog_to_cancel', 'stalled_to_cancel', 'killed_to_cancel',
        'close_to_rest', 'takeover_to_rest',
    }  # fmt: skip
    assert all(verdicts(found).values())
    assert missed({'idle': {'measures': found}}) == []


@pytest.mark.parametrize(
    ('name', 'value_ms', 'said'),
    [
        ('watchdog_to_cancel', 2100.5, 'watchdog_ms + 100 ms'),
        ('stalled_to_cancel', 351.0, 'dead-man time + 100 ms'),
        ('killed_to_cancel', 401.0, 'lease_ms + 100 ms'),
        ('close_to_rest', 1501.0, 'max_abort_ms'),
        ('takeover_to_rest', 1501.0, 'max_abort_ms'),
        ('e_stop_to_cancel', 29.0, '4 times the p99 of the floor'),
    ],
)
def test_one_sample_beyond_its_bound_is_told(name: str, value_ms: float, said: str) -> None:
    found = judged(samples(**{name: [1.0, value_ms]}), 'idle', LIMITS)
    (problem,) = missed({'idle': {'measures': found}})
    assert said in problem
    assert measures.MEASURES[name].title in problem


def test_the_e_stop_has_a_fixed_bound_or_that_of_a_noisy_machine() -> None:
    quiet, noisy = [0.5] * 300, [8.0] * 300
    for floor, condition, value_ms, kept in (
        (quiet, 'idle', 19.0, True),
        (quiet, 'idle', 21.0, False),
        (quiet, 'loaded', 49.0, True),
        (quiet, 'loaded', 51.0, False),
        (noisy, 'idle', 31.0, True),
        (noisy, 'idle', 33.0, False),
    ):
        given = samples(floor_to_cancel=floor, e_stop_to_cancel=[value_ms] * 300)
        assert verdicts(judged(given, condition, LIMITS))['e_stop_to_cancel'] is kept


def test_what_was_not_measured_is_left_out_and_named_on_the_page() -> None:
    given = samples()
    del given['killed_to_cancel']
    found = judged(given, 'idle', LIMITS)
    assert 'killed_to_cancel' not in found
    body = json.loads(report.KEPT.read_text('utf-8'))
    body['conditions'] = {'idle': {'measures': found}}
    assert 'Not measured in this run: killed bridge to cancel.' in report.page(body)


def test_the_plot_is_an_image_with_every_measure() -> None:
    conditions = {
        name: {'measures': judged(samples(), name, LIMITS)} for name in ('idle', 'loaded')
    }
    root = ElementTree.fromstring(plot(conditions))
    texts = [element.text or '' for element in root.iter() if element.tag.endswith('text')]
    for measure in measures.MEASURES.values():
        assert measure.title.replace('`', '') in texts


def test_a_run_of_one_condition_keeps_the_other_of_the_same_settings() -> None:
    kept = json.loads(report.KEPT.read_text('utf-8'))
    new = {**kept, 'conditions': {'idle': {'measures': {}}}}
    merged = report.merged(report.KEPT, new)
    assert merged['conditions']['idle'] == {'measures': {}}
    assert merged['conditions'].get('loaded') == kept['conditions'].get('loaded')
    other = {**new, 'configuration': {**kept['configuration'], 'sha256': 'another'}}
    assert report.merged(report.KEPT, other) == other


def test_the_page_and_the_plot_are_drawn_from_what_is_kept() -> None:
    text = report.KEPT.read_text('utf-8')
    body = json.loads(text)
    assert text == report.text_of(body)
    assert report.PAGE.read_text('utf-8') == report.page(body)
    assert report.PLOT.read_text('utf-8') == plot(body['conditions'])


def test_the_e_stop_was_measured_often_enough_beside_its_floor() -> None:
    body = json.loads(report.KEPT.read_text('utf-8'))
    for name in ('idle', 'loaded'):
        found = body['conditions'][name]['measures']
        assert found['e_stop_to_cancel']['n'] >= 300
        assert found['floor_to_cancel']['n'] >= 300
    assert missed(body['conditions']) == []
