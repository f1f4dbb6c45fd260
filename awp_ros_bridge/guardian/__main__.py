"""Runs the guardian: ``python -m awp_ros_bridge.guardian``."""

import sys

from awp_ros_bridge.guardian.main import main

sys.exit(main())
