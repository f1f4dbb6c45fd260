"""The guardian: a small program that stops the robot when the bridge dies (see its main)."""
