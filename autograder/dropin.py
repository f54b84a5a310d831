"""What `nbgrader_config.py` names: the engine inside nbgrader."""

from autograder.doors.dropin import Execute, Merge, Submissions

__all__ = ["Execute", "Merge", "Submissions"]
