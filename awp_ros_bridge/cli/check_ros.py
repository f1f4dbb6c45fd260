"""Owns ``awp check --ros``: what a configuration needs that the running graph does not have."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from awp_ros_bridge.config import Adapters, LoadResult, Problem

_VISITOR = 'awp_ros_bridge.ros.visitor'


class NoRos(Exception):
    """ROS is not at hand, or does not start; the text says why and what to do."""


def graph_problems(
    args: argparse.Namespace, loaded: LoadResult, adapters: Adapters
) -> tuple[Problem, ...]:
    """
    Look until everything is there, or as long as the arguments allow; return what is not.

    :param loaded: a configuration without errors.
    :raises NoRos: it cannot be looked
    """
    assert loaded.config is not None
    try:
        needs_of = import_module('awp_ros_bridge.ros.needs').needs_of
        compare = import_module('awp_ros_bridge.ros.graph_check').compare
        names: Any = import_module('awp_ros_bridge.ros.told_names')
        visitor_type: Any = import_module(_VISITOR).Visitor
    except ImportError as error:
        raise NoRos(f'ROS 2 is not at hand ({error}); source its setup file first') from None
    needs = list(needs_of(loaded.config, adapters))
    findings: list[Any] = []
    try:
        with visitor_type(args.ros_args, args.timeout_s) as visitor:
            told = names.ToldNames(visitor.node, names.names_of(loaded.config))

            def is_complete() -> bool:
                findings[:] = [*compare(visitor.node, needs), *told.missing()]
                return not findings

            visitor.wait(is_complete)
    except RuntimeError as error:
        raise NoRos(f'{error}; look at --ros-args') from None
    return tuple(loaded.problem_at(f.path, f.what, f.todo, f.severity) for f in findings)
