"""Runs the bridge: ``python -m awp_ros_bridge.bridge``."""

import sys

from awp_ros_bridge.bridge.main import main

sys.exit(main())
