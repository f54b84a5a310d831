"""The exercise: parts that are passed or failed as a whole, and the points that they give."""

import math
import os
import secrets
import sys
import traceback
from contextlib import contextmanager

from course.checks.arguments import seed_all
from course.checks.grading import STDLIB, grader
from course.checks.outcomes import CheckFailed, Probe, Stopped
from course.checks.words import short, where_to_read

__all__ = ["CAP", "SEED_VARIABLE", "Exercise", "told_of"]

SEED_VARIABLE = "COURSE_CHECK_SEED"
CAP = 0.5  # of the points, for an answer that fails a part that its author could see
_CHECKS = os.path.dirname(__file__) + os.sep


class Exercise:
    """The tests of one exercise and the points they give.

    Args:
        id: the exercise's name everywhere, such as ``"ch04.attention"``.
        points: what the exercise is worth, a positive number.
        without: what of torch an answer may not use: functions by their last name, such as ``"layer_norm"``,
            modules by their full name, such as ``"torch.optim"``, or ``"autograd"``.

    Raises:
        ValueError: if `points` is not positive.
        TypeError: if `without` is a text, not a tuple of texts.
    """

    _current: "Exercise | None" = None

    def __init__(self, id: str, points: float, without: tuple[str, ...] = ()):
        if not points > 0:
            raise ValueError(f"{id}: points must be positive, got {points!r}")
        if isinstance(without, str):
            raise TypeError(f"{id}: without is a tuple of names, got {without!r}: write ({without!r},)")
        self.id, self.points, self.without = id, float(points), tuple(without)
        self.seed = int(os.environ.get(SEED_VARIABLE) or secrets.randbits(31))
        self.parts: list[tuple[str, float, str | None]] = []  # name, points, failure
        self.probes: list[Probe] = []
        self.draws = 0
        self.missing = False  # a name that was asked for is not there at all
        self.stopped = False  # an answer did not come to its end
        self.file = sys._getframe(1).f_code.co_filename  # of the tests, whose lines are not shown
        Exercise._current = self
        seed_all()  # what a test draws does not depend on what ran before

    @contextmanager
    def part(self, name: str, points: float = 0):
        """Tests that are passed or failed together. A visible part is usually worth 0 points.

        Raises:
            CheckFailed: if a time limit or a person stops it.
        """
        Exercise._current = self
        try:
            yield
        except CheckFailed as failure:
            stop = "." if failure.see and not str(failure).endswith(".") else ""
            self.parts.append((name, points, f"{failure}{stop}{where_to_read(failure.see)}"))
        except KeyboardInterrupt:  # a time limit, or a person: no points, and no traceback that shows the tests
            raise CheckFailed(f"{self.id}: stopped in the part “{name}” before it ended.") from None
        except Stopped as error:
            self.stopped = True
            self.parts.append((name, points, str(error)))
        except NameError as error:
            self.missing = True
            self.parts.append((name, points, f"`{error.name}` does not exist yet: write it in the cell above and run that cell."))
        except Exception as error:
            self.parts.append((name, points, told_of(error)))
        else:
            self.parts.append((name, points, None))

    def score(self) -> float | None:
        """The points earned, as a Python float in [0, points]; None where the hidden parts are not there.

        A visible part that fails is worth 0 points and caps the rest at `CAP` of them.
        Prints what failed.

        Raises:
            CheckFailed: if nothing was earned, so that plain nbgrader gives zero, or no part ran.
            ValueError: if the parts are not worth the exercise's points together.
        """
        failures = [(name, text) for name, _, text in self.parts if text is not None]
        worth = sum(points for _, points, _ in self.parts)
        earned = sum(points for _, points, text in self.parts if text is None)
        points = f"{self.points:g} point{'' if self.points == 1 else 's'}"
        if worth == 0:  # the hidden parts are not in the student's notebook
            earned = 0.0 if failures or not self.parts else self.points
            verdict = f"the tests you can see pass; hidden tests decide the {points}"
            verdict = verdict if earned else "the tests you can see do not pass yet"
        else:
            if not math.isclose(worth, self.points):
                raise ValueError(f"{self.id}: its parts are worth {worth:g} points, the exercise {self.points:g}")
            verdict = f"{earned:g} of {points}"
            if earned > (most := CAP * self.points) and any(not p and text is not None for _, p, text in self.parts):
                earned, verdict = most, f"{most:g} of {points}, since a test that you can see failed"
        lines = [f"{self.id}: {verdict}."] + [f"- {name}: {text}" for name, text in failures]
        if not self.parts:
            lines.append("- No test ran.")
        if failures and not self.stopped:
            try:
                sentence = grader.explain(self)
            except Exception:  # a sentence is a courtesy: without one the score stands
                sentence = None
            if sentence:
                lines.append(sentence)
        message = "\n".join(lines)
        if earned == 0:
            raise CheckFailed(message)
        print(message)
        if worth == 0:  # a number would be taken for the points
            return None
        return self.points if len(failures) == 0 else min(max(float(earned), 0.0), self.points)


def told_of(error: Exception) -> str:
    """An error of the student's code (or of a test) in one line, with the student's own line."""
    if isinstance(error, NotImplementedError):
        return "not written yet (NotImplementedError)."
    tests = Exercise._current.file if Exercise._current is not None else None
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if f.filename not in (tests, *grader.quiet)
        and "site-packages" not in f.filename
        and not f.filename.startswith((STDLIB, _CHECKS))
    ]
    where = ""
    if frames and frames[-1].name != "<module>":
        where = f", in {frames[-1].name}: `{(frames[-1].line or '').strip()}`"
    elif not frames and isinstance(error, AttributeError | TypeError) and "'NoneType'" in str(error):
        return "None came where a value was expected: is an answer not filled in yet, or a return missing?"
    return f"{type(error).__name__}: {short(str(error), 200)}{where}"
