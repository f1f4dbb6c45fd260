"""Owns the record of every session on disk (AWP-AUD-001..007)."""

from awp_ros_bridge.audit.verify import Report, verify
from awp_ros_bridge.audit.writer import AuditLog

__all__ = ['AuditLog', 'Report', 'verify']
