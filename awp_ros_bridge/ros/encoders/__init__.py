"""Turns ROS messages into the payloads of observation channels, one message type a file."""
