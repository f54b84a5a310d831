"""What can come of an answer that is tried, and the errors by which a test ends."""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CheckFailed", "Probe", "Raised", "Returned", "Stopped"]


class CheckFailed(AssertionError):
    """A test of an exercise failed; the text is written for the student."""

    def __init__(self, message: str, see: str | None = None):
        super().__init__(message)
        self.see = see

    def _render_traceback_(self):
        # The frames of a test would show its hidden lines.
        return str(self).splitlines()


class Stopped(BaseException):
    """An answer was stopped by a grader's limit or ended its process. Not an Exception: it is no way to answer."""

    def _render_traceback_(self):
        return str(self).splitlines()


@dataclass
class Raised:
    """What a call did when it did not return."""

    error: Exception

    @property
    def name(self) -> str:
        """The error's class."""
        return type(self.error).__name__


@dataclass
class Returned:
    """What a call returned, its arguments afterwards, and which of `AUTOGRAD` of a tensor in them it changed."""

    value: object
    arguments: object = None
    changed: str | None = None


@dataclass
class Probe:
    """One observation of the student's object that can be repeated on another one.

    `name` is what the student was asked to define; `observe(answer)` returns `Raised` or
    `Returned`; `seen` is what the student's object gave. `again(seed)` is the same observation on other numbers,
    for a call whose arguments have some. `failed` says that the test asked for something else.
    """

    name: str
    observe: Callable
    seen: Raised | Returned
    again: Callable[[int], "Probe"] | None = None
    failed: bool = False
