"""`python -m autograder` is the command `autograder`."""

from autograder.doors.cli import app

app()
