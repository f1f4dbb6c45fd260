"""Owns ``awp check``: every problem of a configuration, with file and line."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from importlib import import_module
import json
import sys
from typing import Any

from awp_ros_bridge.bridge.door import with_files_tried
from awp_ros_bridge.cli.check_ros import graph_problems, NoRos
from awp_ros_bridge.cli.ros_verb import add_bound
from awp_ros_bridge.config import Adapters, directory_of, Encoders, load, LoadResult

OK = 0
GRAPH = 1
PROBLEMS = 2

_EPILOG = f"""ROS arguments may follow --ros, such as --ros-args -r __ns:=/cell1.

exit codes:
  {OK}  the bridge would start with it (there may be warnings)
  {GRAPH}  it would, but --ros found something missing or of another type
  {PROBLEMS}  it has errors, or cannot be read, or ROS 2 is not sourced
"""
_REGISTRY = 'awp_ros_bridge.ros.adapters.registry'
_INPUTS = 'awp_ros_bridge.ros.input_check'
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
    parser.add_argument(
        '--ros',
        action='store_true',
        help='also look whether the topics, servers and services it names are running: '
        'there, of the same type, of a quality of service that can be heard',
    )
    add_bound(parser)
    parser.add_argument('--json', action='store_true', help='print one JSON object')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check one file and print what was found."""
    adapters, why_not = find_adapters()
    loaded = load(args.file, adapters, find_encoders())
    result = with_inputs_tried(with_files_tried(loaded, directory_of(args.file)))
    code = PROBLEMS if result.errors else OK
    looked = False
    if args.ros and code == OK:
        try:
            found = graph_problems(args, result, adapters or {})
        except NoRos as error:
            return _without_ros(args, str(error))
        result = replace(result, problems=(*result.problems, *found))
        looked = True
        code = GRAPH if result.errors else OK
    if args.json:
        print(json.dumps(_as_json(result, why_not, looked), indent=2))
    else:
        _print(args.file, result, why_not, looked)
    return code


def with_inputs_tried(result: LoadResult) -> LoadResult:
    """Return the same, with what message types tell of safety inputs, where ROS is there."""
    if result.config is None:
        return result
    try:
        findings = import_module(_INPUTS).input_findings(result.config)
    except ImportError:
        return result
    found = tuple(result.problem_at(f.path, f.what, f.todo, f.severity) for f in findings)
    return replace(result, problems=(*result.problems, *found)) if found else result


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


def _without_ros(args: argparse.Namespace, text: str) -> int:
    if args.json:
        print(json.dumps({'ok': False, 'error': text}))
    else:
        print(text, file=sys.stderr)
    return PROBLEMS


def _as_json(result: LoadResult, why_not: str, looked: bool) -> dict[str, Any]:
    return {
        'ok': not result.errors,
        'digest': result.digest,
        'adapters_checked': result.adapters_checked,
        'adapters_missing_because': why_not or None,
        'graph_checked': looked,
        'problems': [asdict(problem) for problem in result.problems],
    }


def _print(name: str, result: LoadResult, why_not: str, looked: bool) -> None:
    for problem in result.problems:
        print(problem)
    if not result.adapters_checked:
        print(
            f'{name}: adapters, their options and limits were not checked, nor message types: '
            f'{why_not}'
        )
    errors, warnings = len(result.errors), len(result.warnings)
    if looked and errors:
        verdict = 'usable, but not with what runs'
    else:
        verdict = 'not usable' if errors else 'usable'
    print(f'{name}: {verdict}, {_count(errors, "error")}, {_count(warnings, "warning")}')


def _count(number: int, word: str) -> str:
    return f'{number} {word}' if number == 1 else f'{number} {word}s'
