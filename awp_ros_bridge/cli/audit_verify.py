"""Owns ``awp audit verify``: whether logs are whole."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from awp_ros_bridge.audit import Report, verify
from awp_ros_bridge.audit.verify import LogReport

OK = 0
FAULTY = 1
UNREADABLE = 2

_EPILOG = f"""exit codes:
  {OK}  every log is whole as far as it goes (a log without its end record is noted)
  {FAULTY}  a line was changed, added or removed, or a part is missing
  {UNREADABLE}  there is no log to read
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        'verify',
        help='check that logs are whole',
        description='Check chain, parts and record shape of one log, or of all in a folder.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('path', metavar='PATH', help='any part of a log, or a folder of logs')
    parser.add_argument('--json', action='store_true', help='print one JSON object')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Verify and print what was found."""
    try:
        report = verify(args.path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        message = f'{args.path}: {reason}' if reason else str(error)
        if args.json:
            print(json.dumps({'ok': False, 'error': message}))
        else:
            print(message, file=sys.stderr)
        return UNREADABLE
    if args.json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        _print(report)
    return OK if report.ok else FAULTY


def _print(report: Report) -> None:
    for log in report.logs:
        for fault in log.faults:
            print(f'{fault.file}:{fault.line}: {fault.what}')
        for note in log.notes:
            print(f'{log.log}: note: {note}')
        print(f'{log.log}: {_summary(log)}')


def _summary(log: LogReport) -> str:
    verdict = 'FAULTY' if log.faults else 'whole'
    parts = f'{log.records} records in {log.parts} part{"" if log.parts == 1 else "s"}'
    lost = f', {log.lost} records lost while the disk took nothing' if log.lost else ''
    return f'{verdict}, {parts}, session {log.session_id}, last hash {log.head}{lost}'
