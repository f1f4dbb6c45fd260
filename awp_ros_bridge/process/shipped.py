"""Owns where the configuration lies that comes with the package."""

from __future__ import annotations

from pathlib import Path

from ament_index_python.packages import get_package_share_directory, PackageNotFoundError

PACKAGE = 'awp_ros_bridge'
NAME = 'sim_arm.yaml'


def shipped_config() -> Path | None:
    """Return the shipped configuration of the simulated arm, installed or in a checkout."""
    checkout = Path(__file__).resolve().parents[2] / 'config' / NAME
    if checkout.exists():
        return checkout
    try:
        return Path(get_package_share_directory(PACKAGE)) / 'config' / NAME
    except PackageNotFoundError:
        return None
