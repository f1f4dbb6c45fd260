"""Owns how the robot's parameters are declared: with a type, a range and what they do."""

from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node


def declare_number(
    node: Node,
    name: str,
    default: float,
    low: float,
    high: float,
    description: str,
    *,
    read_only: bool = True,
) -> float:
    """
    Declare a number and give its value.

    :param read_only: it can be set at the start alone
    :raises rclpy.exceptions.InvalidParameterValueException: the value given at the start is
        outside the range
    """
    descriptor = ParameterDescriptor(
        description=description,
        read_only=read_only,
        floating_point_range=[FloatingPointRange(from_value=low, to_value=high)],
    )
    parameter: Any = node.declare_parameter(name, default, descriptor)
    return float(parameter.value)


def declare_switch(node: Node, name: str, default: bool, description: str) -> bool:
    """Declare a switch that can be set at the start alone, and give its value."""
    descriptor = ParameterDescriptor(description=description, read_only=True)
    parameter: Any = node.declare_parameter(name, default, descriptor)
    return bool(parameter.value)
