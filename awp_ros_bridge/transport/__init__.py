"""Owns the connections of agents: what they carry, in what order, and who may open one."""
