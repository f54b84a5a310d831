"""What `nbgrader_config.py` names: steps of nbgrader's commands."""

from autograder.authoring.preprocessors import ClearSolutions, RunPastErrors
from autograder.grading.preprocessors import FailClosed, Inert

__all__ = ["ClearSolutions", "FailClosed", "Inert", "RunPastErrors"]
