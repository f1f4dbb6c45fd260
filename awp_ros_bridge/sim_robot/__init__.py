"""Owns the embedded simulated robot: an arm and a gripper as ordinary ROS 2 nodes."""
