"""Owns what agents and the engine are told of the world, made from the configuration."""

from awp_ros_bridge.manifest.build import build, Declaration, declare, manifest_hash
from awp_ros_bridge.manifest.policy import policy

__all__ = ['Declaration', 'build', 'declare', 'manifest_hash', 'policy']
