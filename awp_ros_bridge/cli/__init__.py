"""Owns the command line ``awp``: one verb a file."""
