"""Owns ``awp check``: every problem of a configuration, with file and line."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from importlib import import_module
import json
from typing import Any

from awp_ros_bridge.bridge.door import with_tls_tried
from awp_ros_bridge.config import Adapters, directory_of, Encoders, load, LoadResult

OK = 0
PROBLEMS = 2

_EPILOG = f"""exit codes:
  {OK}  the bridge would start with it (there may be warnings)
  {PROBLEMS}  it has errors, or cannot be read
"""
_REGISTRY = 'awp_ros_bridge.ros.adapters.registry'
_ENCODERS = 'awp_ros_bridge.ros.encoders.registry'


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        'check',
        help='find every problem of a configuration file',
        description='Find every problem of a configuration file, with file and line.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('file', metavar='FILE', help='configuration, such as config/sim_arm.yaml')
    parser.add_argument('--json', action='store_true', help='print one JSON object')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check one file and print what was found."""
    adapters, why_not = find_adapters()
    found = load(args.file, adapters, find_encoders())
    result = with_tls_tried(found, directory_of(args.file))
    if args.json:
        print(json.dumps(_as_json(result, why_not), indent=2))
    else:
        _print(args.file, result, why_not)
    return PROBLEMS if result.errors else OK


def find_adapters() -> tuple[Adapters | None, str]:
    """Return what is known of adapters; where that is nothing, also why."""
    try:
        registry = import_module(_REGISTRY)
        found: Adapters = registry.infos()
    except ImportError as error:
        return None, str(error)
    return found, ''


def find_encoders() -> Encoders | None:
    """Return what is known of message types, None where ROS is missing."""
    try:
        found: Encoders = import_module(_ENCODERS).registry()
    except ImportError:
        return None
    return found


def _as_json(result: LoadResult, why_not: str) -> dict[str, Any]:
    return {
        'ok': not result.errors,
        'digest': result.digest,
        'adapters_checked': result.adapters_checked,
        'adapters_missing_because': why_not or None,
        'problems': [asdict(problem) for problem in result.problems],
    }


def _print(name: str, result: LoadResult, why_not: str) -> None:
    for problem in result.problems:
        print(problem)
    if not result.adapters_checked:
        print(
            f'{name}: adapters, their options and limits were not checked, nor message types: '
            f'{why_not}'
        )
    errors, warnings = len(result.errors), len(result.warnings)
    verdict = 'not usable' if errors else 'usable'
    print(f'{name}: {verdict}, {_count(errors, "error")}, {_count(warnings, "warning")}')


def _count(number: int, word: str) -> str:
    return f'{number} {word}' if number == 1 else f'{number} {word}s'
