"""Owns what verbs that talk with a running bridge have in common: arguments, answers, codes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
import json
import sys
from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:
    from awp_ros_bridge.ros.visitor import Visitor

OK = 0
NO = 1
UNUSABLE = 2
UNANSWERED = 3

Json = dict[str, Any]
Work = Callable[['Visitor'], tuple[int, Json]]

_VISITOR = 'awp_ros_bridge.ros.visitor'
_TIMEOUT_S = 5.0


def add_verb(verbs: Any, name: str, text: str, description: str, no: str = '') -> Any:
    """
    Add a verb with the arguments that all of them take.

    :param no: what exit code 1 means; empty where the verb never ends with it.
    """
    parser = verbs.add_parser(
        name,
        help=text,
        description=description,
        epilog=exit_codes(no),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--bridge',
        metavar='NAME',
        help='full name of its node, such as /cell1/awp_ros_bridge; needed where several run',
    )
    add_bound(parser)
    parser.add_argument('--json', action='store_true', help='print one JSON object')
    return parser


def add_bound(parser: argparse.ArgumentParser) -> None:
    """Add the argument that bounds every wait."""
    parser.add_argument(
        '--timeout-s',
        type=_seconds,
        default=_TIMEOUT_S,
        metavar='S',
        help=f'longest wait for any one answer; default: {_TIMEOUT_S:g}',
    )


def exit_codes(no: str) -> str:
    """Return the epilog of a verb's help."""
    lines = ['ROS arguments may follow, such as --ros-args -r __ns:=/cell1.', '', 'exit codes:']
    lines.append(f'  {OK}  done')
    if no:
        lines.append(f'  {NO}  {no}')
    lines.append(f'  {UNUSABLE}  arguments, or ROS 2 is not sourced')
    lines.append(
        f'  {UNANSWERED}  no bridge answered in time, or several were found and none was named'
    )
    return '\n'.join(lines) + '\n'


def carry_out(args: argparse.Namespace, work: Work) -> int:
    """Do the work of a verb with a visitor; print its result as JSON if asked, or what failed."""
    try:
        ros: Any = import_module(_VISITOR)
    except ImportError as error:
        text = f'ROS 2 is not at hand ({error}); source its setup file first'
        return _failed(args, UNUSABLE, text)
    try:
        with ros.Visitor(args.ros_args, args.timeout_s) as visitor:
            code, result = work(visitor)
    except ros.Unanswered as error:
        return _failed(args, UNANSWERED, str(error))
    except (RuntimeError, ValueError) as error:
        return _failed(args, UNUSABLE, f'{error}; look at --ros-args and --bridge')
    if args.json:
        print(json.dumps({'ok': code == OK, **result}, indent=2))
    return code


def _failed(args: argparse.Namespace, code: int, text: str) -> int:
    if args.json:
        print(json.dumps({'ok': False, 'error': text}))
    else:
        print(text, file=sys.stderr)
    return code


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 600.0:
        raise argparse.ArgumentTypeError(f'{text!r} is not allowed; write 0.1 to 600 seconds')
    return seconds
