"""Observations of a student's object that can be made again on another one."""

from collections.abc import Callable

from course.checks.arguments import other_numbers
from course.checks.exercise import Exercise
from course.checks.grading import grader
from course.checks.outcomes import Probe, Returned

__all__ = ["observed"]


def observed(name: str, observe: Callable, answer, given: tuple | None = None) -> Probe:
    """Observe the student's object, and keep that; `given` are the arguments of a call that can be made with other numbers."""
    exercise = Exercise._current
    if exercise is None:
        return Probe(name, observe, observe(answer))

    def held(answer, *given):  # to what the task allows; a reference is not
        with grader.refusing(exercise.without, exercise.file):
            return observe(answer, *given)

    def again(seed: int) -> Probe:
        other = other_numbers(given, seed)
        return Probe(name, lambda answer: held(answer, *other), held(answer, *other))

    seen = held(answer)
    exercise.probes.append(Probe(name, observe if observe is Returned else held, seen, again if given is not None else None))
    return exercise.probes[-1]
