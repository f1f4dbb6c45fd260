"""Measures the bridge beside the floors it stands on; see docs/performance.md."""
