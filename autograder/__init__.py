"""Grading for notebooks, as a plug for nbgrader."""
