"""Measures how fast the bridge stops the robot, and whether it stays as quick for long."""
