"""What `nbgrader_config.py` names: a filter of nbconvert's templates."""

from autograder.grading.outputs import safe_markdown

__all__ = ["safe_markdown"]
