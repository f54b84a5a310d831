"""How answers are called, held to what their task allows and explained: plainly here, and otherwise by a grader."""

import os
import re
import sys
import sysconfig
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from torch.overrides import TorchFunctionMode

from course.checks.autograd import changed_in_autograd, in_autograd

__all__ = ["COURSE", "FORBIDDEN", "STDLIB", "Grader", "Refusing", "grader", "invoke", "no_sentence", "not_allowed", "refusing"]

STDLIB, COURSE = sysconfig.get_paths()["stdlib"], os.path.dirname(os.path.dirname(__file__)) + os.sep
FORBIDDEN = {"autograd": "grad|backward|make_dual"}
"""The functions that a word of `Exercise`'s `without` stands for."""


def not_allowed(what: str, function: str | None = None) -> str:
    """The sentence to an answer that used what its task forbids."""
    here = f", here `{function}`," if function and what in FORBIDDEN else ""
    return f"{what if what in FORBIDDEN else f'`{what}`'}{here} is not allowed in this exercise: write out yourself what it does"


class Refusing(TorchFunctionMode):
    """While it is entered, torch's functions that a task forbids raise `PermissionError`.

    It holds in the thread that enters it, for code that does not leave torch's modes: what a process that tests and answers
    share can have. Where answers run in a process of their own, `autograder.confined.ban` refuses the same in all of it.

    Args:
        names: as `Exercise` takes them.
        file: of the tests, whose own functions are free to call what they like.
    """

    def __init__(self, names: tuple[str, ...], file: str | None = None):
        super().__init__()
        self.file = file
        self.modules = tuple(name for name in names if "." in name)
        self.functions = {name: FORBIDDEN.get(name, name) for name in names if "." not in name}

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        found = next(
            (what for what, pattern in self.functions.items() if re.fullmatch(rf"(\w*_)?({pattern})(\..*)?", name)), None
        )
        if found is not None or self.modules:
            modules, caller = self._way()
            found = found or next((what for what in self.modules for m in modules if f"{m}.".startswith(f"{what}.")), None)
            if found is not None and caller != self.file:
                raise PermissionError(not_allowed(found, name))
        return function(*args, **(kwargs or {}))

    def _way(self) -> tuple[list[str], str | None]:
        """The modules of the libraries' functions that led here, and the file of the code that called the first of them."""
        modules, frame = [], sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if not ("site-packages" in file or file.startswith((STDLIB, COURSE)) or file in grader.quiet):
                return modules, file
            modules.append(frame.f_globals.get("__name__", ""))
            frame = frame.f_back
        return modules, None


def invoke(answer: Callable, args: tuple, kwargs: dict) -> tuple:
    """Call an answer that is here.

    Returns:
        Its result, the arguments as it left them, and what it changed of their part in autograd.
    """
    before = in_autograd((args, kwargs))
    return answer(*args, **kwargs), (args, kwargs), changed_in_autograd(before, in_autograd((args, kwargs)))


def refusing(names: tuple[str, ...], file: str | None):
    """A context in which an answer that runs here may not use what a task forbids."""
    return Refusing(names, file) if names else nullcontext()


def no_sentence(exercise) -> None:
    """No grader, no sentence: only a grader knows the wrong answers."""


@dataclass
class Grader:
    """What a grader does in its own way; the defaults are those of a notebook that nobody grades.

    Args:
        explain: turns an `Exercise` that failed into the sentence on the misconception that its probes show, or None.
        invoke: calls an answer, as the function `invoke` does; for answers that run elsewhere.
        refusing: gives a context in which an answer may not use some names, as the function `refusing` does.
        quiet: the grader's own files, whose lines say nothing about an error in an answer.
    """

    explain: Callable[..., str | None] = no_sentence
    invoke: Callable[..., tuple] = invoke
    refusing: Callable[..., AbstractContextManager] = refusing
    quiet: tuple[str, ...] = ()

    def set(self, **own) -> None:
        """Take a grader's own; what is not named is plain again, so that `set()` is as if nobody graded.

        Raises:
            TypeError: if a grader has nothing of such a name.
        """
        self.__init__(**own)


grader = Grader()
"""The one that all checks of this process ask."""
