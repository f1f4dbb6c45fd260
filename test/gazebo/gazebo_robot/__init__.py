"""Simulated hardware for the tests: the arm of sim_robot, moved by Gazebo 11 instead of itself."""
