"""Which of a chapter's wrong answers a student's answer is, if what was seen of it tells."""

import warnings
from collections.abc import Callable
from functools import cache
from types import CodeType

from autograder.authoring.answers import Answer
from autograder.authoring.chapters import SAME_AS
from course import checks
from course.checks.words import where_to_read

FURTHER = 2  # observations on other numbers of each of the last calls
LEAST_OF_TRUTHS = 3  # verdicts that must have been wrong, where all are True or False: these say little


def misconception(exercise: checks.Exercise, answers: list[Answer], namespace: dict) -> Answer | None:
    """The wrong answer that gives what the student's gave, on every input that was tried, if that tells it from the others.

    A part of the tests ends at its first failure, so that few inputs may have been tried: the last calls are made again with
    other numbers, which must agree as well.

    Args:
        exercise: after its tests ran.
        answers: of this exercise or of the whole chapter.
        namespace: the names of the test's notebook; it is not changed.
    """
    probes = sorted(exercise.probes, key=lambda probe: not probe.failed)  # most other mistakes differ where this one failed
    names = list(dict.fromkeys(probe.name for probe in probes))
    if not names or exercise.missing:
        return None  # what is not there is no mistake
    truths = all(isinstance(p.seen, checks.Returned) and isinstance(p.seen.value, bool) for p in probes)
    if truths and sum(probe.failed for probe in probes) < LEAST_OF_TRUTHS:
        return None
    returned = any(isinstance(probe.seen, checks.Returned) for probe in probes)
    mistakes = [answer for answer in answers if not answer.right]
    wrong = [(answer, found) for answer in mistakes if (found := _defined(answer, tuple(names), exercise, namespace)) is not None]

    def differs(found: dict, probe: checks.Probe, exactly: bool = False) -> bool:
        try:
            with warnings.catch_warnings(action="ignore"):  # a student would be told of lines that are not theirs
                return not same(probe.seen, probe.observe(found[probe.name]), returned, exactly)
        except Exception:
            return True  # an answer that cannot be run or compared here explains nothing

    alike = [(answer, found) for answer, found in wrong if not any(differs(found, probe) for probe in probes)]
    if len(alike) > 1:  # mistakes that are small: only the same to all digits counts
        alike = [(answer, found) for answer, found in alike if not any(differs(found, probe, exactly=True) for probe in probes)]
    if len(alike) != 1:
        return None  # none, or mistakes that were not told apart
    ((answer, found),) = alike
    if all(probe.observe is checks.Returned for probe in probes):
        return answer  # what was written down is what it is
    again = [probe.again(seed) for probe in [p for p in exercise.probes if p.again is not None][-2:] for seed in range(FURTHER)]
    return None if any(differs(found, probe) for probe in again) else answer


def _defined(answer: Answer, names: tuple[str, ...], exercise: checks.Exercise, namespace: dict) -> dict | None:
    """The names that an answer of the exercise defines; None if it is of another one or does not run."""
    if answer.exercise != exercise.id:
        return None
    theirs = dict(namespace)
    try:
        exec(compiled(answer, names), theirs)
    except Exception:
        return None
    return theirs


@cache
def compiled(answer: Answer, names: tuple[str, ...]) -> CodeType:
    """The code of an answer cell."""
    return compile(answer.source(list(names)), answer.label, "exec")


def same(seen, other, messages_may_differ: bool, exactly: bool = False) -> bool:
    """Whether two observations are the same but for rounding, or to nearly all digits of float64."""
    if type(seen) is not type(other):
        return False
    if isinstance(seen, checks.Raised):
        return type(seen.error) is type(other.error) and (messages_may_differ or str(seen.error) == str(other.error))
    close = {"rtol": 1e-12, "atol": 1e-15} if exactly else {"rtol": 1e-4, "atol": 1e-6}
    return (
        checks.difference(other.value, seen.value, **close) is None
        and checks.difference(other.arguments, seen.arguments, **close) is None
        and other.changed == seen.changed
    )


def explainer(answers: list[Answer], namespace: dict) -> Callable[[checks.Exercise], str | None]:
    """What explains failures while a submission is graded; for `course.checks.grader`."""

    def explain(exercise: checks.Exercise) -> str | None:
        try:
            found = misconception(exercise, answers, namespace)
        except checks.Stopped:  # a call with other numbers took too long
            found = None
        if found is None:
            return None
        return f"{SAME_AS}{found.sentence}{where_to_read(found.see)}"

    return explain
