"""Owns the adapters: one file for each kind of ROS 2 interface that an action can stand on."""
