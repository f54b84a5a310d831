"""What `nbgrader_config.py` names: a student's page."""

from autograder.pages.feedback import FeedbackPage

__all__ = ["FeedbackPage"]
