"""Owns the parameters of the main node: what each is, what may change while the bridge runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import logging
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from awp_ros_bridge.process.arguments import LEVELS

_LOG = logging.getLogger(__name__)

LOG_LEVEL = 'log_level'
SIM_TIME = 'use_sim_time'

AUTOSTART = ParameterDescriptor(
    description='Whether the node configured and activated itself at start. While it is not '
    'active nothing moves, and new connections are answered 503.',
    additional_constraints='set at start: -p autostart:=false',
    read_only=True,
)
SHOWN = {
    'config': 'Configuration file that the bridge runs with.',
    'config_sha256': 'SHA-256 of that file, as in the log.',
    'guardian': 'Whether a guardian process is required before anything moves, or off.',
}


def declare(node: Node, shown: Mapping[str, str]) -> None:
    """
    Declare the parameters.

    :param shown: values of :data:`SHOWN`, which are read only.
    :raises ParameterException: a value of the command line is wrong
    """
    node.declare_parameter('autostart', True, AUTOSTART)
    for name, description in SHOWN.items():
        descriptor = ParameterDescriptor(description=description, read_only=True)
        # the command line says what is wanted, this says what is so
        node.declare_parameter(name, shown.get(name, ''), descriptor, ignore_override=True)
    node.add_on_set_parameters_callback(lambda wanted: _judge(node, wanted))
    node.declare_parameter(
        LOG_LEVEL,
        level_in_force(),
        ParameterDescriptor(
            description='Least severe message that the bridge logs; may change while it runs.',
            additional_constraints=f'one of {", ".join(LEVELS)}',
        ),
    )


def level_in_force() -> str:
    """Return the least severe level that is logged now."""
    name = logging.getLevelName(logging.getLogger().level).lower()
    return name if name in LEVELS else LEVELS[1]


def _judge(node: Node, wanted: Iterable[Parameter[Any]]) -> SetParametersResult:
    """Refuse what cannot change or is no value, and follow what may."""
    level = None
    for parameter in wanted:
        value = parameter.value
        if parameter.name == LOG_LEVEL:
            if value not in LEVELS:
                return _refused(f'{value!r} is no log level; write one of {", ".join(LEVELS)}')
            level = value
        elif parameter.name == SIM_TIME and value != node.get_parameter(SIM_TIME).value:
            return _refused(
                f'{SIM_TIME} cannot change while the bridge runs; start it with '
                f'-p {SIM_TIME}:={str(value).lower()}'
            )
    if level is not None and level != level_in_force():
        _LOG.warning('log level %s from now on', level)
        logging.getLogger().setLevel(level.upper())
    return SetParametersResult(successful=True)


def _refused(reason: str) -> SetParametersResult:
    return SetParametersResult(successful=False, reason=reason)
