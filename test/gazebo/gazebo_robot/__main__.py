"""Owns the process of the robot in Gazebo; its arguments and signals are those of sim_robot."""

from pathlib import Path
import sys
import tempfile

from awp_ros_bridge.sim_robot.main import main
from gazebo_robot.robot import GazeboRobot

with tempfile.TemporaryDirectory(prefix='awp-gazebo-') as folder:
    status = main(make_robot=lambda: GazeboRobot(Path(folder)))
sys.exit(status)
