"""Owns ``awp audit``: the verbs about audit logs."""

from __future__ import annotations

from typing import Any

from awp_ros_bridge.cli import audit_verify


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        'audit', help='audit logs', description='What can be done with audit logs.'
    )
    inner = parser.add_subparsers(title='verbs', metavar='VERB', required=True)
    audit_verify.add_parser(inner)
