"""Owns the table of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from bench.aims import added_ms, Aim, status_core_us
from bench.cases import BINDINGS, LONG_POINTS, RATES_HZ
from bench.figures import Figures

_LABEL = 44
_COLUMN = 10


def table(figures: Figures, aims: Sequence[Aim], facts: dict[str, Any]) -> str:
    """Return the table, medians of the block figures throughout."""
    lines = [
        f'{facts["blocks"]} blocks, ROS 2 {facts["ros_distro"]}, Python {facts["python"]}, '
        f'{facts["cores"]} cores'
    ]
    waited = facts['waited_for_cores']
    if waited is not None:
        lines[0] += f'; {100.0 * waited:.0f} % of the time something waited for a core'
    for part in (_actions, _topics, _others, _ratios):
        rows = list(part(figures))
        if len(rows) > 1:
            lines += ['', *rows]
    if aims:
        lines += ['', _row('aims', ['value', 'bound', 'A/A'], 'verdict')]
        for aim in aims:
            cells = [f'{aim.value:.2f} {aim.unit}', aim.bound, _percent(aim.spread)]
            lines.append(_row(aim.what, cells, aim.verdict))
    return '\n'.join(lines)


def _row(label: str, cells: Sequence[str], last: str = '') -> str:
    text = f'{label:{_LABEL}}' + ''.join(f'{cell:>{_COLUMN}}' for cell in cells)
    return f'{text}  {last}'.rstrip()


def _percent(value: float | None) -> str:
    return '' if value is None else f'{100.0 * value:.1f} %'


def _actions(figures: Figures) -> Iterator[str]:
    yield _row('actions, ms', ['p50', 'p95', 'p99', 'A/A'])
    for label, name in (
        ('floor: goal accepted, rclpy client', 'floor.action.accept_ms'),
        ('floor: goal at server, rclpy client', 'floor.action.at_server_ms'),
        ('floor: goal to result, rclpy client', 'floor.action.result_ms'),
        ('floor: WebSocket echo', 'floor.echo_ms'),
        ('floor: feedback to rclpy client', 'floor.feedback_ms'),
        ('bridge: submit to accepted', 'bridge.action.accept_ms'),
        ('bridge: submit to goal at server', 'bridge.action.at_server_ms'),
        ('bridge: submit to completed', 'bridge.action.result_ms'),
        (f'bridge: submit of {LONG_POINTS} points to accepted', 'bridge.long_action.accept_ms'),
        ('bridge: server feedback to agent', 'bridge.feedback_ms'),
        ('reference world: submit to accepted', 'reference.action.accept_ms'),
        ('bridge: question about a session', 'bridge.question_quiet_ms'),
        ('the same among 200 connections', 'bridge.question_crowd_ms'),
        ('bridge: ping of a moving agent', 'bridge.ping_alone_ms'),
        ('the same beside questions from ten', 'bridge.ping_storm_ms'),
        ('floor: answer to one of ten, bare server', 'floor.status_ms'),
        ('bridge: answer to one of ten', 'bridge.status_ms'),
    ):
        if f'{name}.p50' in figures:
            yield _row(label, [*_shares(figures, name), _percent(figures.spread(f'{name}.p50'))])


def _shares(figures: Figures, name: str) -> list[str]:
    return [f'{figures.median(f"{name}.{share}"):.2f}' for share in ('p50', 'p95', 'p99')]


def _topics(figures: Figures) -> Iterator[str]:
    yield _row(
        'joint states of 7 joints, ms',
        ['p50', 'p95', 'p99', 'added p50', 'published', 'delivered', 'core', 'A/A'],
    )
    for rate in RATES_HZ:
        name = f'floor.topic_{rate}'
        if f'{name}.cpu' in figures:
            label = f'floor: {rate} Hz, rclpy subscription'
            yield _topic(figures, label, name, 'latency_ms', '')
        for binding in BINDINGS:
            name = f'bridge.topic_{rate}_{binding}'
            if f'{name}.cpu' in figures:
                added = added_ms(figures, rate, binding)
                text = f'{median(added):.2f}' if added else ''
                label = f'bridge: {rate} Hz, {binding}'
                yield _topic(figures, label, name, 'latency_ms', text)
    for binding in BINDINGS:
        for label, name in (
            (f'bridge: 100 Hz, {binding}, age of frames', f'bridge.topic_100_{binding}'),
            (f'reference world: {binding}, age of frames', f'reference.topic_{binding}'),
        ):
            if f'{name}.cpu' in figures:
                yield _topic(figures, label, name, 'age_ms', '')


def _topic(figures: Figures, label: str, name: str, quantity: str, added: str) -> str:
    cells = [
        *_shares(figures, f'{name}.{quantity}'),
        added,
        f'{figures.median(f"{name}.published_hz"):.0f} Hz',
        f'{100.0 * figures.median(f"{name}.delivered"):.2f} %',
        f'{100.0 * figures.median(f"{name}.cpu"):.1f} %',
        _percent(figures.spread(f'{name}.{quantity}.p50')),
    ]
    return _row(label, cells)


def _others(figures: Figures) -> Iterator[str]:
    yield _row('others', ['median', 'least', 'most', 'A/A'])
    for label, name, scale, form in (
        ('bridge: core, neither robot nor client', 'bridge.idle_alone.cpu', 100.0, '.2f'),
        ('bridge: core, 500 Hz states, no client', 'bridge.idle_500.cpu', 100.0, '.2f'),
        ('bridge: core, while actions are submitted', 'bridge.action.cpu', 100.0, '.2f'),
        ('bridge: core, one asks', 'bridge.question_quiet.cpu', 100.0, '.2f'),
        ('the same among 200 connections', 'bridge.question_crowd.cpu', 100.0, '.2f'),
        ('bridge: core, a moving agent pings', 'bridge.ping_alone.cpu', 100.0, '.2f'),
        ('the same beside questions from ten', 'bridge.ping_storm.cpu', 100.0, '.2f'),
        ('floor: core, questions from ten', 'floor.status.cpu', 100.0, '.2f'),
        ('questions asked per s', 'bridge.status.asked_hz', 1.0, '.0f'),
        ('questions answered per s', 'bridge.status.answered_hz', 1.0, '.0f'),
        ('floor: questions answered per s', 'floor.status.answered_hz', 1.0, '.0f'),
        ('the machine stalled the bridge: stops', 'bridge.status.stopped', 1.0, '.0f'),
        ('pings beside them', 'bridge.ping_storm.pings', 1.0, '.0f'),
        ('frames per s to 50 observers', 'bridge.crowd.frames_hz', 1.0, '.0f'),
        ('engine alone: submissions per s', 'engine.submissions_per_s', 1.0, '.0f'),
        ('engine alone: frames per s', 'engine.frames_per_s', 1.0, '.0f'),
    ):
        if name in figures:
            unit = ' %' if scale > 1.0 else ''
            values = (figures.median(name), *figures.range(name))
            cells = [f'{scale * value:{form}}{unit}' for value in values]
            yield _row(label, [*cells, _percent(figures.spread(name))])


def _ratios(figures: Figures) -> Iterator[str]:
    yield _row('bridge over', ['ratio'])
    for label, above, below in (
        (
            'reference world: submit to accepted',
            'bridge.action.accept_ms.p50',
            'reference.action.accept_ms.p50',
        ),
        (
            'reference world: age of frames, inline',
            'bridge.topic_100_inline.age_ms.p50',
            'reference.topic_inline.age_ms.p50',
        ),
        (
            'reference world: core at 100 Hz, inline',
            'bridge.topic_100_inline.cpu',
            'reference.topic_inline.cpu',
        ),
        ('floor: feedback', 'bridge.feedback_ms.p50', 'floor.feedback_ms.p50'),
        ('floor: goal to result', 'bridge.action.result_ms.p50', 'floor.action.result_ms.p50'),
        ('floor: core at 1000 Hz, inline', 'bridge.topic_1000_inline.cpu', 'floor.topic_1000.cpu'),
        ('floor: core at 1000 Hz, ws', 'bridge.topic_1000_ws.cpu', 'floor.topic_1000.cpu'),
    ):
        if above in figures and below in figures:
            rows = zip(figures.blocks(above), figures.blocks(below), strict=False)
            yield _row(label, [f'{median(a / b for a, b in rows if b):.2f} x'])
    cores = status_core_us(figures)
    if cores is not None:
        floor, bridge = cores
        told = f'{bridge:.0f} us over {floor:.0f} us'
        yield _row('floor: core for one question of ten', [f'{bridge / floor:.2f} x'], told)
