"""What an `answers.py` imports."""

from autograder.authoring.answers import cell, equivalent, right, wrong

__all__ = ["cell", "equivalent", "right", "wrong"]
