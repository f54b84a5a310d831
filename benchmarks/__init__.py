"""Measurements that are recorded: of speed, and of agreement with nbgrader."""
