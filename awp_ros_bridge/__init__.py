"""The ROS 2 node between an Agent World Protocol client and a robot."""

__version__ = '0.1.0'
