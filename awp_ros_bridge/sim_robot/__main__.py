"""Owns ``python -m awp_ros_bridge.sim_robot``."""

import sys

from awp_ros_bridge.sim_robot.main import main

if __name__ == '__main__':
    sys.exit(main())
