"""Owns everything that touches ROS 2."""
