"""Owns what is kept of a run: the JSON file, and the page and plot that are drawn from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import hashlib
from importlib.metadata import PackageNotFoundError, version
import json
import os
from pathlib import Path
import platform
from typing import Any

from bench.processes import REPOSITORY
from evidence.load import AGENTS, IMAGE_BYTES, IMAGE_HZ
from evidence.measures import MEASURES
from evidence.plot import plot

KEPT = REPOSITORY / 'docs' / 'conformance' / 'reaction_times.json'
PAGE = REPOSITORY / 'docs' / 'safety' / 'reaction_times.md'
PLOT = REPOSITORY / 'docs' / 'safety' / 'reaction_times.svg'
PACKAGES = ('awp_ros_bridge', 'orjson', 'pydantic', 'websockets')

Json = dict[str, Any]


def machine() -> Json:
    """Return what the numbers depend on beside the code."""
    import rclpy

    versions: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return {
        'ros_distro': os.environ.get('ROS_DISTRO', ''),
        'rmw': rclpy.get_rmw_implementation_identifier(),
        'python': platform.python_version(),
        'kernel': platform.release(),
        'machine': platform.machine(),
        'cores': os.cpu_count(),
        'versions': versions,
    }


def configuration(config: Path, limits: Json) -> Json:
    """Return which configuration was measured."""
    return {
        'file': str(config.relative_to(REPOSITORY)),
        'sha256': hashlib.sha256(config.read_bytes()).hexdigest(),
        **limits,
    }


def merged(path: Path, new: Json) -> Json:
    """Return a run with the conditions that it left out, of a kept one of the same settings."""
    try:
        kept = json.loads(path.read_text(encoding='utf-8'))
    except FileNotFoundError:
        return new
    if any(kept.get(key) != new[key] for key in ('machine', 'configuration')):
        return new
    return {**new, 'conditions': {**kept['conditions'], **new['conditions']}}


def write(path: Path, text: str) -> None:
    """Replace a file as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + '.tmp')
    draft.write_text(text, encoding='utf-8')
    draft.replace(path)


def text_of(body: Json) -> str:
    """Return the JSON text, with every list of numbers on one line."""
    lists: list[str] = []

    def fold(value: Any) -> Any:
        if isinstance(value, list):
            lists.append(json.dumps(value))
            return f'@{len(lists) - 1}@'
        if isinstance(value, dict):
            return {key: fold(inner) for key, inner in value.items()}
        return value

    text = json.dumps(fold(body), indent=2)
    for number, inner in enumerate(lists):
        text = text.replace(f'"@{number}@"', inner)
    return text + '\n'


def table(measures: Mapping[str, Any]) -> Iterator[str]:
    """Return the table of one condition, in Markdown."""
    yield '| reaction | n | p50 | p95 | p99 | max | bound |'
    yield '| --- | ---: | ---: | ---: | ---: | ---: | --- |'
    for name, measure in MEASURES.items():
        row = measures.get(name)
        if row is None:
            continue
        bound = row.get('bound')
        said = ''
        if bound is not None:
            verdict = 'kept' if bound['kept'] else '**not kept**'
            number = bound['of'].removesuffix('_ms')
            said = f'{number} at most {bound["ms"]:.0f} ({bound["why"]}): {verdict}'
        numbers = ' | '.join(f'{row[key]:.1f}' for key in ('p50_ms', 'p95_ms', 'p99_ms', 'max_ms'))
        yield f'| {measure.title} | {row["n"]} | {numbers} | {said} |'


def page(body: Json) -> str:
    """Return the page."""
    machine_, config = body['machine'], body['configuration']
    load = (
        f'an image topic of {IMAGE_BYTES / 1e6:g} MB at {IMAGE_HZ:g} Hz in the same ROS 2 domain '
        f'(published by one process, heard by another), and {AGENTS} agents that each watch '
        f'`proprio`, the heaviest channel, at its full 100 Hz, and `arm_state`'
    )
    lines = [
        '# Reaction times',
        '',
        '<!-- Drawn by scripts/evidence from docs/conformance/reaction_times.json. -->',
        '',
        'How long the bridge takes to stop the embedded robot, measured by `./scripts/evidence` '
        f'with `{config["file"]}`: robot, bridge, safety hardware and agents as processes of one '
        'machine, all on its steady clock. Times are milliseconds.',
        '',
        f'Machine: {machine_["cores"]} cores ({machine_["machine"]}), kernel '
        f'{machine_["kernel"]}, Python {machine_["python"]}, '
        f'ROS 2 {machine_["ros_distro"]}, {machine_["rmw"]}. '
        f'Configuration: sha256 `{config["sha256"][:16]}`, watchdog_ms {config["watchdog_ms"]:g}, '
        f'max_abort_ms {config["max_abort_ms"]:g}.',
        '',
        '![quantiles of every reaction](reaction_times.svg)',
        '',
    ]
    titles = {'idle': 'Idle', 'loaded': 'Under load'}
    for condition, found in body['conditions'].items():
        lines += [f'## {titles[condition]}', '']
        if condition == 'loaded':
            reached = (
                f'{found["images_hz"]:g} images and {found["agent_messages_hz"]:g} messages to '
                'agents a second were heard'
            )
            lines += [f'The load is {load}; {reached}. Images are not bridged here.', '']
        waited = found.get('waited_for_cores')
        if waited is not None:
            share = f'{100.0 * waited:.0f} %'
            busy = f'In {share} of the time something on the machine waited for a core.'
            if found.get('nice'):
                busy += f' What is measured ran with a nice value of {found["nice"]} beside it.'
            lines += [busy, '']
        lines += [*table(found['measures']), '']
    lines += [
        '## What is measured',
        '',
        '| reaction | from | to | sensor |',
        '| --- | --- | --- | --- |',
    ]
    measured = {n for c in body['conditions'].values() for n in c['measures']}
    for name, measure in MEASURES.items():
        if name in measured:
            row = (measure.title, measure.begins, measure.ends, measure.sensor)
            lines.append(f'| {" | ".join(row)} |')
    absent = [m.title for n, m in MEASURES.items() if n not in measured]
    if absent:
        lines += ['', f'Not measured in this run: {", ".join(absent)}.']
    lines += [
        '',
        'The floor is what this machine and ROS 2 cost without a bridge: a plain node that hears '
        'the same message and sends one cancel request, measured in turns with the e-stop. The '
        'times to rest contain the braking of the simulated arm, which a real robot replaces by '
        'its own; they say nothing about a real one.',
        '',
    ]
    return '\n'.join(lines)


def draw(body: Json) -> None:
    """Write the page and its plot."""
    write(PAGE, page(body))
    write(PLOT, plot(body['conditions']))
