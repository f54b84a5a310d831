"""What the tests of an exercise are written with.

The same few words serve in a visible test, a hidden test, plain nbgrader and the autograder::

    exercise = Exercise("ch04.attention", points=4)
    with exercise.part("the worked example"):
        check(attention).on(Q, K, V).returns([[1.360, 0.640, 0.360], [1.5, 0.5, 0.5]], atol=5e-4, see="worked-example")
    ### BEGIN HIDDEN TESTS
    with exercise.part("any shape", points=3):
        for case in draw(8):
            T, S, d_k = case.integer(1, 9), case.integer(1, 9), case.integer(1, 64)
            check(attention).on(case.normal(T, d_k), case.normal(S, d_k), case.normal(S, 5)).agrees_with(reference)
    with exercise.part("arguments", points=1):
        ...
    ### END HIDDEN TESTS
    exercise.score()

A part is passed or failed as a whole. `score` returns the points earned as a Python float, which
nbgrader reads as partial credit, and raises when nothing was earned. Nothing is compared by
broadcasting, and a tolerance is asked for or derived, never a habit.
"""

import sys
from collections.abc import Callable

from course.checks.autograd import AUTOGRAD, changed_in_autograd, in_autograd
from course.checks.comparing import difference
from course.checks.drawing import Draw, draw
from course.checks.exercise import SEED_VARIABLE, Exercise
from course.checks.functions import Subject
from course.checks.grading import Grader, grader, not_allowed
from course.checks.outcomes import CheckFailed, Probe, Raised, Returned, Stopped
from course.checks.values import Value
from course.checks.words import kind_of

__all__ = [
    "AUTOGRAD",
    "SEED_VARIABLE",
    "CheckFailed",
    "Draw",
    "Exercise",
    "Grader",
    "Probe",
    "Raised",
    "Returned",
    "Stopped",
    "changed_in_autograd",
    "check",
    "difference",
    "draw",
    "grader",
    "in_autograd",
    "not_allowed",
]


def check(answer=None, /, **named):
    """Start a check of a function or class, ``check(f)``, or of a named value, ``check(scores=scores)``.

    Raises:
        TypeError: if it is given both, or several values.
        CheckFailed: if what should be a function is none.
    """
    if named:
        if answer is not None or len(named) != 1:
            raise TypeError("check takes one function or class, or one named value: check(f) or check(name=value)")
        ((name, value),) = named.items()
        return Value(name, value)
    if not callable(answer):
        if Exercise._current is not None:
            Exercise._current.missing = True
        raise CheckFailed(f"a function was expected, {kind_of(answer)} came.")
    return Subject(answer, _asked_as(answer, sys._getframe(1).f_globals))


def _asked_as(answer: Callable, names: dict) -> str:
    """The name under which the test found it; a lambda or an alias calls itself something else."""
    own = getattr(answer, "__name__", "the function")
    found = [name for name, value in names.items() if value is answer and not name.startswith("_")]
    return own if own in found or not found else found[-1]
