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

import copy
import math
import os
import random
import re
import secrets
import sys
import sysconfig
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

__all__ = ["CheckFailed", "Draw", "Exercise", "Probe", "check", "difference", "draw"]

SEED_VARIABLE = "COURSE_CHECK_SEED"
_STDLIB, _COURSE = sysconfig.get_paths()["stdlib"], os.path.dirname(__file__)
FORBIDDEN = {"autograd": "grad|backward|make_dual"}
"""The functions that a word of `Exercise`'s `without` stands for."""
LONGEST = 1000  # digits before or after the point of a decimal
CAP = 0.5  # of the points, for an answer that fails a part that its author could see
SAFETY = 8  # times the error that rounding the inputs alone can cause

explain: Callable[["Exercise"], str | None] | None = None
"""Set by a grader: turns the probes of a failed exercise into the misconception that explains them."""


def invoke(answer: Callable, args: tuple, kwargs: dict) -> tuple:
    """Call an answer. A grader whose answers run elsewhere puts its own here.

    Returns:
        Its result, the arguments as it left them, and what it changed of their part in autograd.
    """
    before = in_autograd((args, kwargs))
    return answer(*args, **kwargs), (args, kwargs), changed_in_autograd(before, in_autograd((args, kwargs)))


def refusing(names: tuple[str, ...], file: str | None):
    """A context in which an answer may not use what a task forbids. A grader whose answers run elsewhere puts its own here."""
    return Refusing(names, file) if names else nullcontext()


quiet: tuple[str, ...] = ()
"""Set by a grader: files of its own, whose lines say nothing about an error in an answer."""


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
    for a call whose arguments have some.
    """

    name: str
    observe: Callable
    seen: Raised | Returned
    again: Callable[[int], "Probe"] | None = None


# ---------------------------------------------------------------- the exercise


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
        _seed()  # what a test draws does not depend on what ran before

    @contextmanager
    def part(self, name: str, points: float = 0):
        """Tests that are passed or failed together. A visible part is usually worth 0 points."""
        Exercise._current = self
        try:
            yield
        except CheckFailed as failure:
            stop = "." if failure.see and not str(failure).endswith(".") else ""
            self.parts.append((name, points, f"{failure}{stop}{_read(failure.see)}"))
        except KeyboardInterrupt:  # a time limit, or a person: no points, and no traceback that shows the tests
            raise CheckFailed(f"{self.id}: stopped in the part “{name}” before it ended.") from None
        except Stopped as error:
            self.stopped = True
            self.parts.append((name, points, str(error)))
        except NameError as error:
            self.missing = True
            self.parts.append((name, points, f"`{error.name}` does not exist yet: write it in the cell above and run that cell."))
        except Exception as error:
            self.parts.append((name, points, _told(error)))
        else:
            self.parts.append((name, points, None))

    def score(self) -> float | None:
        """The points earned, as a Python float in [0, points]; None where the hidden parts are not there.

        A visible part that fails is worth 0 points and caps the rest at `CAP` of them.
        Prints what failed. Raises `CheckFailed` when nothing was earned, so that plain nbgrader
        gives zero, and when no part ran at all.
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
        if failures and explain is not None and not self.stopped:
            try:
                sentence = explain(self)
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


def _read(see: str | None) -> str:
    return f" Read: {see.replace('-', ' ').capitalize()} (#{see})." if see else ""


def _told(error: Exception) -> str:
    """An error of the student's code (or of a test) in one line, with the student's own line."""
    if isinstance(error, NotImplementedError):
        return "not written yet (NotImplementedError)."
    tests = Exercise._current.file if Exercise._current is not None else None
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if f.filename not in (__file__, tests, *quiet)
        and "site-packages" not in f.filename
        and not f.filename.startswith(_STDLIB)
    ]
    where = ""
    if frames and frames[-1].name != "<module>":
        where = f", in {frames[-1].name}: `{(frames[-1].line or '').strip()}`"
    elif not frames and isinstance(error, AttributeError | TypeError) and "'NoneType'" in str(error):
        return "None came where a value was expected: is an answer not filled in yet, or a return missing?"
    return f"{type(error).__name__}: {_short(str(error), 200)}{where}"


# ---------------------------------------------------------------- random cases


class Draw:
    """Random inputs of one test case. Every draw has its own seed."""

    def __init__(self, seed: int):
        self.generator = torch.Generator().manual_seed(seed)
        self.random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return self.random.randint(low, high)

    def number(self, low: float = 0.0, high: float = 1.0) -> float:
        """A float, uniform between `low` and `high`."""
        return self.random.uniform(low, high)

    def choice(self, options):
        """One of `options`."""
        return self.random.choice(list(options))

    def normal(self, *shape: int, mean: float = 0.0, std: float = 1.0, dtype=torch.float32) -> torch.Tensor:
        """A tensor of independent normal numbers."""
        return (mean + std * torch.randn(*shape, generator=self.generator, dtype=torch.float64)).to(dtype)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0, dtype=torch.float32) -> torch.Tensor:
        """A tensor of independent uniform numbers."""
        return (low + (high - low) * torch.rand(*shape, generator=self.generator, dtype=torch.float64)).to(dtype)

    def integers(self, *shape: int, low: int, high: int) -> torch.Tensor:
        """An int64 tensor with entries from `low` to `high`, both included."""
        return torch.randint(low, high + 1, shape, generator=self.generator)

    def permutation(self, n: int) -> torch.Tensor:
        """0 … n − 1 in random order, int64."""
        return torch.randperm(n, generator=self.generator)


def draw(n: int) -> Iterator[Draw]:
    """`n` random cases, new in every grading run.

    The graded notebook keeps the run's seed; set ``COURSE_CHECK_SEED`` to it to draw the same again.
    """
    exercise = Exercise._current
    for _ in range(n):
        if exercise is None:
            yield Draw(secrets.randbits(31))
        else:
            exercise.draws += 1
            yield Draw(zlib.crc32(f"{exercise.seed}/{exercise.id}/{exercise.draws}".encode()))


# ---------------------------------------------------------------- checks


def check(answer=None, /, **named):
    """Start a check of a function or class, ``check(f)``, or of a named value, ``check(scores=scores)``."""
    if named:
        if answer is not None or len(named) != 1:
            raise TypeError("check takes one function or class, or one named value: check(f) or check(name=value)")
        ((name, value),) = named.items()
        return Value(name, value)
    if not callable(answer):
        if Exercise._current is not None:
            Exercise._current.missing = True
        raise CheckFailed(f"a function was expected, {_kind(answer)} came.")
    return Subject(answer, _asked_as(answer, sys._getframe(1).f_globals))


def _asked_as(answer: Callable, names: dict) -> str:
    """The name under which the test found it; a lambda or an alias calls itself something else."""
    own = getattr(answer, "__name__", "the function")
    found = [name for name, value in names.items() if value is answer and not name.startswith("_")]
    return own if own in found or not found else found[-1]


class Subject:
    """A function or class under test."""

    def __init__(self, answer: Callable, name: str):
        self.answer, self.name = answer, name

    def on(self, *args, **kwargs) -> "Call":
        """Call it with these arguments. They are copied, so nothing the student does reaches the test's own."""

        grad = torch.is_grad_enabled()  # a test under torch.no_grad() stays one when it is repeated

        def observe(answer, args=args, kwargs=kwargs):
            a, k = _copy(args), _copy(kwargs)
            _seed()
            try:
                with torch.set_grad_enabled(grad):
                    value, after, changed = invoke(answer, a, k)
                return Returned(value, _plain(after), changed)
            except Exception as error:
                return Raised(error)

        return Call(self, observe, args, kwargs)

    def using(self, use: Callable, what: str = "") -> "Call":
        """Do anything with it: `use(answer)` is called with the student's object, and with the reference in its turn.

        For classes, for several calls in a row, for anything that one call cannot say.
        `what` completes the sentence "When …".
        """

        grad = torch.is_grad_enabled()

        def observe(answer):
            _seed()
            try:
                with torch.set_grad_enabled(grad):
                    return Returned(use(answer))
            except Exception as error:
                return Raised(error)

        return Call(self, observe, (), {}, use, what)

    def tells_apart(self, right, wrong, *, then: tuple = (), make: Callable | None = None, see: str | None = None) -> "Subject":
        """A tester that a student wrote says True of each right function and False of each wrong one.

        Args:
            right, wrong: what it gets, as `sorts` takes it; none of the two may be empty.
            then: further arguments after it.
            make: see `sorts`.
        """
        return self.sorts({True: right, False: wrong}, then=then, make=make, see=see)

    def sorts(self, kinds: dict, *, then: tuple = (), make: Callable | None = None, see: str | None = None) -> "Subject":
        """A tester that a student wrote gives each function its verdict.

        All functions are handed over under one name, without docstring and in an order drawn anew, so that only
        calling them tells. All are tried before a failure says which were taken for something else.

        Args:
            kinds: verdicts and the functions that have them: lists of functions, whose names are what a failure calls
                them, or dicts from words to functions. A tuple stands for several arguments.
            then: further arguments after it.
            make: for functions that remember: gets an entry of `kinds`, then whatever it is, for each tester that is tried,
                and gives the function or tuple anew.

        Raises:
            ValueError: if there is only one verdict: a tester that always gives it would pass.
        """
        planted = [(words, entry, verdict) for verdict, some in kinds.items() for words, entry in _planted(some)]
        if len({verdict for _, _, verdict in planted}) < 2:
            raise ValueError(f"{self.name}: a tester is tried on right and on wrong functions, not on one kind only")
        next(iter(draw(1))).random.shuffle(planted)
        wrong = {}
        for words, entry, verdict in planted:
            if make is None:
                call = self.on(*_nameless(entry), *then)
            else:
                call = self.using(lambda tester, entry=entry: tester(*_nameless(make(entry)), *then))
            value = call._value(see)
            if (told := difference(verdict, value)) is not None:
                kind = verdict if isinstance(verdict, bool) and isinstance(_scalar(value), bool) else told
                wrong.setdefault(kind, []).append(words)
        if wrong:
            said = {True: "it refused what is right", False: "it let pass what is wrong"}
            raise CheckFailed(f"{self.name}: " + "; ".join(f"{said.get(k, k)}: {_listed(w)}" for k, w in wrong.items()), see)
        return self


def _planted(some) -> Iterator[tuple[str, object]]:
    """Each entry of a list or dict, and what it is in words."""
    if isinstance(some, dict):
        yield from some.items()
        return
    for entry in some:
        functions = entry if isinstance(entry, tuple) else (entry,)
        yield next(x.__name__ for x in functions if callable(x)).strip("_").replace("_", " "), entry


def _nameless(entry) -> tuple:
    """A function, or a tuple with functions, as arguments that do not tell what they are called."""

    def hidden(function: Callable) -> Callable:
        def f(*args, **kwargs):
            return function(*args, **kwargs)

        return f

    args = entry if isinstance(entry, tuple) else (entry,)
    return tuple(hidden(x) if callable(x) and not isinstance(x, torch.nn.Module) else x for x in args)


def _listed(words: list[str], most: int = 3) -> str:
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


class Call:
    """One use of a function or class under test."""

    def __init__(
        self, subject: Subject, observe: Callable, args: tuple, kwargs: dict, use: Callable | None = None, what: str = ""
    ):
        self.subject, self.observe, self.use, self.what = subject, observe, use, what
        self.args, self.kwargs = args, kwargs
        has_numbers = any(_is_float(x) for x in _leaves((args, kwargs)))
        self.seen = _record(subject.name, observe, subject.answer, (args, kwargs) if has_numbers else None)

    def returns(self, expected, *, atol: float = 0.0, rtol: float = 0.0, see: str | None = None) -> "Call":
        """The result has the values of `expected`, to a tolerance that says how it was rounded.

        A nested list stands for a tensor or array of any float dtype; shapes must be equal.
        """
        value = self._value(see)
        told = difference(_like(expected, value), value, atol=atol, rtol=rtol)
        self._fail_if(told, see)
        return self

    def agrees_with(self, reference: Callable, *, see: str | None = None, rtol: float = 0.0, atol: float = 0.0) -> "Call":
        """Same type, shape, dtype and values as `reference` on these arguments, or the same kind of error.

        The tolerance is derived: what rounding the inputs to their dtype, and steps of their
        size, does to the result of the reference in float64, plus the reference's own error,
        times `SAFETY`. It is at least `SAFETY` roundings of the largest number of the result.
        `rtol` and `atol` are added, for a task that asks for an approximation.
        """
        expected = self.observe(reference)
        if isinstance(expected, Raised):
            return self.raises(type(expected.error), see=see)
        value = self._value(see)
        bounds = _bounds(self, reference, expected.value)
        told = difference(expected.value, value, bounds=bounds, rtol=rtol, atol=atol)
        self._fail_if(told, see)
        return self

    def gradients_agree_with(self, reference: Callable, *, see: str | None = None) -> "Call":
        """The gradients with respect to every float tensor argument are those of `reference`, in float64.

        Agreement to half the digits of float64: rounding costs far less, a wrong formula far more.
        """

        def observe(answer):
            _seed()
            try:
                return Returned(_gradients(answer, self.args, self.kwargs))
            except Exception as error:
                return Raised(error)

        seen, expected = _record(self.subject.name, observe, self.subject.answer), observe(reference)
        if isinstance(expected, Raised):
            raise ValueError(f"the reference has no gradients here: {expected.error}") from expected.error
        if isinstance(seen, Raised):
            missing = isinstance(seen.error, CheckFailed)
            self._fail_if(str(seen.error) if missing else f"its gradients cannot be computed: {_told(seen.error)}", see)
        for mine, right in zip(seen.value, expected.value, strict=True):
            scale = float(right.abs().max()) if right.numel() else 0.0
            told = difference(right, mine, atol=math.sqrt(torch.finfo(torch.float64).eps) * max(scale, 1.0))
            self._fail_if(told and f"the gradient is off: {told}", see)
        return self

    def leaves_arguments_alone(self, *, see: str | None = None) -> "Call":
        """The call does not change what it was given."""
        self._value(see)
        told = difference(_plain((self.args, self.kwargs)), self.seen.arguments)
        self._fail_if(told and f"`{self.subject.name}` changed an argument in place: {told}", see)
        self._fail_if(self.seen.changed and f"`{self.subject.name}` changed the `{self.seen.changed}` of an argument", see)
        return self

    def satisfies(self, predicate: Callable, claim: str, *, see: str | None = None) -> "Call":
        """`predicate(result)` is true; `claim` says so in words ("each row sums to one")."""
        value = self._value(see)
        try:
            holds = bool(predicate(value))
        except Exception as error:
            self._fail_if(f"it does not hold that {claim}: {_told(error)} ({_short(_show(value))} came)", see)
        self._fail_if(None if holds else f"it does not hold that {claim} ({_short(_show(value))} came)", see)
        return self

    def is_number(self, *, see: str | None = None) -> "Call":
        """The result is a finite real number; what follows gets it as a Python number."""
        value = self._value(see)
        number = _number(value)
        told = None if number is not None and math.isfinite(number) else f"a finite number was expected, {_kind(value)} came"
        self._fail_if(told, see)
        self.seen = Returned(number, self.seen.arguments, self.seen.changed)
        return self

    def raises(self, error: type[Exception], *, see: str | None = None) -> "Call":
        """The call raises `error` or a subclass of it."""
        if isinstance(self.seen, Returned):
            self._fail_if(f"{error.__name__} was expected, but a result came: {_short(_show(self.seen.value))}", see)
        stub = isinstance(self.seen.error, NotImplementedError) and not issubclass(error, NotImplementedError)
        if stub:  # a RuntimeError to Python
            self._fail_if(_told(self.seen.error), see)
        if not isinstance(self.seen.error, error):
            self._fail_if(f"{error.__name__} was expected, {_told(self.seen.error)} came", see)
        return self

    def _value(self, see):
        if isinstance(self.seen, Raised):
            self._fail_if(_told(self.seen.error), see)
        return self.seen.value

    def _fail_if(self, told: str | None, see: str | None) -> None:
        if told:
            where = f"({_describe(self.args, self.kwargs)})" if self.use is None else f", {self.what}" if self.what else ""
            raise CheckFailed(f"{self.subject.name}{where}: {told}", see)


class Value:
    """A value under test: a number, a choice, an order, a formula."""

    def __init__(self, name: str, value):
        self.name, self.value = name, value
        _record(name, Returned, value)

    def equals(self, expected, *, atol: float = 0.0, rtol: float = 0.0, see: str | None = None) -> "Value":
        """The value is right, in whatever kind of number or sequence; the message never tells what is right.

        Of text, letter case and the space around it do not count.
        """
        wanted, value = _simple(expected), _simple(self.value)
        if difference(wanted, value, atol=atol, rtol=rtol):
            asked, came = _sort(wanted), _sort(value)
            if asked != came and value is not None:  # a right number as text is no wrong number
                raise CheckFailed(f"{self.name} should be {asked}, {_kind(self.value)} came.", see)
            raise CheckFailed(f"{self.name} = {_short(_show(self.value))} is not right.", see)
        return self

    def chooses(self, letters: str, *, see: str | None = None) -> "Value":
        """The letters of the statements that are right, as a text or a collection, in any order and either case."""
        value = self.value
        parts = list(value) if type(value) in (list, tuple, set, frozenset) else [value]
        if not all(type(x) is str for x in parts):
            raise CheckFailed(f"{self.name} should be a text of letters such as 'ab', {_kind(value)} came.", see)
        if {x for x in "".join(parts).casefold() if x.isalnum()} != set(letters):
            raise CheckFailed(f"{self.name} = {_short(_show(value))} is not right.", see)
        return self

    def is_one_of(self, *options, see: str | None = None) -> "Value":
        """The value is one of the options of a choice or a prediction; of text, letter case does not count."""
        value = _simple(self.value)
        if not any(difference(_simple(option), value) is None for option in options):
            raise CheckFailed(f"{self.name} = {_short(_show(self.value))} is none of {', '.join(map(repr, options))}.", see)
        return self

    def is_number(self, *, see: str | None = None) -> "Value":
        """The value is a finite real number."""
        number = _number(self.value)
        if number is None or not math.isfinite(number):
            raise CheckFailed(f"{self.name} should be a number, {_kind(self.value)} came.", see)
        return self

    def is_like(self, example, *, see: str | None = None) -> "Value":
        """The value has the type and shape of `example`, whatever its numbers or letters."""
        if isinstance(example, str):
            told = None if type(self.value) is str else f"a text was expected, {_kind(self.value)} came"
        else:
            told = difference(_like(example, self.value), self.value, atol=math.inf)
        if told:
            raise CheckFailed(f"{self.name}: {told}", see)
        return self

    def is_expression_in(self, *letters: str, each: bool = False, allow: tuple[str, ...] = (), see: str | None = None) -> "Value":
        """A sympy expression, or a number, in no other letters than these; with `each`, in all of them.

        Sums, derivatives and the like that are not computed are no answer, but for those of `allow`, such as ``("Sum",)``.
        """
        from course import expressions

        found = sorted(expressions.letters(self._expression(allow, see)))
        if not set(found) <= set(letters) or (each and set(found) != set(letters)):
            wanted, came = (", ".join(names) or "none" for names in (letters, found))
            raise CheckFailed(f"{self.name} should be an expression in {wanted}, and its letters are {came}.", see)
        return self

    def has_value(
        self,
        expected: float,
        *,
        at: dict,
        atol: float = 0.0,
        rtol: float = 0.0,
        allow: tuple[str, ...] = (),
        see: str | None = None,
    ) -> "Value":
        """A sympy expression whose value is `expected` where its letters have the values of `at`."""
        from course import expressions

        where = ", ".join(f"{name} = {value}" for name, value in at.items())
        try:
            value = complex(expressions.number(self._expression(allow, see), at))
        except (expressions.NoValue, OverflowError) as error:
            raise CheckFailed(f"{self.name} has no value for {where}: {error}.", see) from None
        value = value if value.imag else value.real
        if not abs(value - expected) <= atol + rtol * abs(expected):
            raise CheckFailed(f"for {where} {self.name} should be {expected:g}, and it is {value:g}.", see)
        return self

    def is_equivalent_to(self, expression, *, allow: tuple[str, ...] = (), see: str | None = None) -> "Value":
        """A sympy expression that equals `expression` for all values of its letters.

        Its values are compared at points, to 12 digits. Nothing is evaluated that is not known: text is refused, and so is
        what is not computed, such as ``sympy.Sum``, but for the kinds of `allow`: ``("Sum", "Product")`` have values here.
        """
        from course import expressions

        value, wanted = self._expression(allow, see), expressions.read(expression)
        try:
            same = expressions.same(value, wanted)
        except expressions.NoValue:
            raise CheckFailed(f"{self.name} cannot be compared with the right expression: write it more simply.", see) from None
        if not same:
            raise CheckFailed(f"{self.name} = {_short(expressions.shown(value))} is not the same function.", see)
        return self

    def _expression(self, allow: tuple[str, ...], see: str | None):
        """The value as an expression of known parts, whatever came."""
        import sympy

        from course import expressions

        value = self.value if isinstance(self.value, sympy.Expr | expressions.Refused | str) else _number(self.value)
        if value is None:
            raise CheckFailed(f"{self.name} should be a sympy expression, {_kind(self.value)} came.", see)
        try:
            return expressions.read(value, allow)
        except expressions.ExpressionError as error:
            raise CheckFailed(f"{self.name} {error}.", see) from None


def _record(name: str, observe: Callable, answer, given: tuple | None = None):
    """Observe the student's object, and keep that; `given` are the arguments of a call that can be made with other numbers."""
    exercise = Exercise._current
    if exercise is None:
        return observe(answer)

    def held(answer, *given):  # to what the task allows; a reference is not
        with refusing(exercise.without, exercise.file):
            return observe(answer, *given)

    def again(seed: int) -> Probe:
        other = _other_numbers(given, seed)
        return Probe(name, lambda answer: held(answer, *other), held(answer, *other))

    seen = held(answer)
    exercise.probes.append(Probe(name, observe if observe is Returned else held, seen, again if given is not None else None))
    return seen


def _other_numbers(arguments, seed: int):
    """The arguments with each float multiplied by a number of its own, near one; by one of either sign for odd seeds."""
    factors = np.random.default_rng(seed)

    def other(x):
        if not _is_float(x):
            return x
        factor = factors.uniform(0.8, 1.25, np.shape(x.detach() if isinstance(x, torch.Tensor) else x))
        factor *= factors.choice([1, -1], np.shape(factor)) if seed % 2 else 1
        if isinstance(x, torch.Tensor):
            return (x.detach() * torch.from_numpy(np.asarray(factor))).to(x.dtype)
        return (x * factor).astype(x.dtype) if isinstance(x, np.ndarray) else type(x)(x * factor)

    return _map(other, _copy(arguments))


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
            if not ("site-packages" in file or file.startswith((_STDLIB, _COURSE)) or file in quiet):
                return modules, file
            modules.append(frame.f_globals.get("__name__", ""))
            frame = frame.f_back
        return modules, None


# ---------------------------------------------------------------- comparing


def difference(expected, value, *, atol: float = 0.0, rtol: float = 0.0, bounds=None) -> str | None:
    """What is different between two results, in words, or None.

    Types, shapes and dtypes must be equal; nothing broadcasts; nan equals nan. Lists and tuples
    are the same to it, as are Python numbers, numpy scalars and 0-d tensors where a plain number
    is expected. `bounds` (of the structure of `expected`) are absolute tolerances by leaf.
    """
    if isinstance(expected, torch.Tensor):
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            return f"a tensor was expected, {_kind(value)} came"
        if value.dtype != expected.dtype:
            return f"dtype {_dtype(expected.dtype)} was expected, {_dtype(value.dtype)} came"
        if value.device == expected.device and torch.equal(value, expected):
            return None
        return _array_difference(_numpy(expected), _numpy(value), atol, rtol, bounds)
    if isinstance(expected, np.ndarray):
        if type(value) is not np.ndarray:
            return f"a numpy array was expected, {_kind(value)} came"
        if value.dtype != expected.dtype:
            return f"dtype {expected.dtype} was expected, {value.dtype} came"
        return _array_difference(expected, value, atol, rtol, bounds)
    if isinstance(expected, bool | np.bool_):
        value = _scalar(value)
        return (
            None
            if type(value) is bool and (value == bool(expected) or atol == math.inf)
            else f"{bool(expected)} was expected, {_short(_show(value))} came"
        )
    if (number := _number(expected)) is not None:
        other = _number(value)
        if other is None:
            return f"a number was expected, {_kind(value)} came"
        return _array_difference(np.asarray(number), np.asarray(other), atol, rtol, bounds)
    if isinstance(expected, list | tuple):
        if type(value) is not list and not isinstance(value, tuple):  # torch.max returns a kind of tuple
            return f"a {type(expected).__name__} was expected, {_kind(value)} came"
        if len(value) != len(expected):
            return f"length {len(expected)} was expected, {len(value)} came: {_short(_show(value))}"
        for i, (e, v) in enumerate(zip(expected, value, strict=True)):
            told = difference(e, v, atol=atol, rtol=rtol, bounds=None if bounds is None else bounds[i])
            if told:
                return f"at [{i}] {told}"
        return None
    if isinstance(expected, dict):
        if type(value) is not dict and not isinstance(value, dict):
            return f"a dict was expected, {_kind(value)} came"
        missing, extra = expected.keys() - value.keys(), value.keys() - expected.keys()
        if missing or extra:
            return f"keys differ: missing {_short(str(sorted(map(repr, missing))))}, unexpected {_short(str(sorted(map(repr, extra))))}"
        for key, e in expected.items():
            told = difference(e, value[key], atol=atol, rtol=rtol, bounds=None if bounds is None else bounds[key])
            if told:
                return f"at [{key!r}] {told}"
        return None
    if type(value) is not type(expected):
        return f"{_kind(expected)} was expected, {_kind(value)} came"
    same = expected == value
    return None if same else f"{_short(_show(expected))} was expected, {_short(_show(value))} came"


def _array_difference(expected: np.ndarray, value: np.ndarray, atol, rtol, bounds) -> str | None:
    if expected.shape != value.shape:
        return f"shape {_shape(expected.shape)} was expected, {_shape(value.shape)} came"
    same = expected == value
    if same.all():
        return None
    with np.errstate(all="ignore"):
        if expected.dtype.kind in "fc":
            same |= np.isnan(expected) & np.isnan(value)
        wide = np.complex128 if "c" in (expected.dtype.kind, value.dtype.kind) else np.float64
        gap = np.where(same, 0.0, np.abs(expected.astype(wide) - value.astype(wide)))
        allowed = atol + rtol * np.abs(expected) + (0.0 if bounds is None else bounds)
        # An inf is only near to itself, and a large integer can differ by a gap that is lost in float64.
        bad = ~same & ~((gap <= allowed) & np.isfinite(gap) & ((gap > 0) | (allowed > 0)))
    if not bad.any() or atol == math.inf:
        return None
    worst = np.unravel_index(int(np.argmax(np.where(bad, np.nan_to_num(gap, nan=np.inf, posinf=np.inf), -1))), expected.shape)
    at = f" at [{', '.join(map(str, worst))}]" if worst else ""
    several = f"{int(bad.sum())} of {bad.size} numbers are off, most" if bad.size > 1 else "off"
    wanted, came = _figure(expected[worst]), _figure(value[worst])
    if wanted == came:
        wanted, came = repr(expected[worst].item()), repr(value[worst].item())
    return f"{several}{at}: {wanted} was expected, {came} came"


def _bounds(call: Call, reference: Callable, expected):
    """How far a right answer may be from the reference, for each leaf of `expected`."""
    leaves = [x for x in _leaves((call.args, call.kwargs)) if _is_float(x)]
    if call.use is not None or not any(_is_float(x) for x in _leaves(expected)):
        return _map(lambda x: SAFETY * _eps(x) * _magnitude(x) if _is_float(x) else 0.0, expected)
    # Steps as large as the inputs are rounded too: log-sum-exp is shifted by them, and cancels in exact arithmetic only.
    shift = max((min(_eps(x) * _magnitude(x), math.sqrt(min(_eps(x), 1e-6)) / SAFETY) for x in leaves), default=0.0)

    def exact(sign: np.random.Generator | None):
        def widen(x):
            if not _is_float(x):
                return x
            wide = _widened(x)
            if sign is None:
                return wide
            factor = 1 + _eps(x) * (2.0 * sign.integers(0, 2, size=np.shape(wide)) - 1.0)
            return wide * (torch.from_numpy(np.asarray(factor)) if isinstance(x, torch.Tensor) else factor)

        args, kwargs = _map(widen, (_copy(call.args), _copy(call.kwargs)))
        _seed()
        usual = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)  # for a reference that makes its floats itself
        try:
            return reference(*args, **kwargs)
        finally:
            torch.set_default_dtype(usual)

    try:
        wide = exact(None)
        nudged = [exact(np.random.default_rng(i)) for i in range(3)]
    except Exception:
        # A reference that takes one dtype only: its own rounding is all there is to go by.
        return _map(lambda x: SAFETY * _eps(x) * _magnitude(x) if _is_float(x) else 0.0, expected)

    def bound(e, w, *others):
        if not _is_float(e):
            return 0.0
        rounding = max(_gap(w, other) for other in others) + max(_eps(e), shift) * _magnitude(w)
        own = _gap(w, e)
        if own > max(0.01 * _magnitude(w), 1000 * rounding):
            own = 0.0  # not rounding: the reference draws other random numbers in float64
        return SAFETY * (rounding + own)

    return _map(bound, expected, wide, *nudged)


def _gradients(answer, args, kwargs):
    def leaf(x):
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            return x.detach().double().requires_grad_(True)
        return x

    args, kwargs = _map(leaf, (_copy(args), _copy(kwargs)))
    inputs = [x for x in _leaves((args, kwargs)) if isinstance(x, torch.Tensor) and x.requires_grad]
    outputs = [x for x in _leaves(answer(*args, **kwargs)) if isinstance(x, torch.Tensor) and x.requires_grad]
    if not outputs:
        raise CheckFailed("the result does not depend on the arguments for autograd (detached, or computed outside torch)")
    generator = torch.Generator().manual_seed(0)
    loss = sum((x * torch.randn(x.shape, generator=generator, dtype=x.dtype)).sum() for x in outputs)
    grads = torch.autograd.grad(loss, inputs, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, grads, strict=True)]


# ---------------------------------------------------------------- small things


def _seed():
    """Seed the generators that everybody shares: Python's, numpy's and torch's.

    As torch.manual_seed(0), at a hundredth of its cost: for each unused kind of accelerator that one stores a stack trace.
    """
    random.seed(0)
    np.random.seed(0)
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(0)


def _copy(x):
    """A copy that shares nothing and keeps strides, so that a non-contiguous argument stays one."""
    if isinstance(x, torch.Tensor) and not isinstance(x, torch.nn.Parameter):
        if x.is_contiguous():
            return x.detach().clone().requires_grad_(x.requires_grad)
        y = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype) if 0 not in x.stride() else torch.empty_like(x)
        return y.copy_(x.detach()).requires_grad_(x.requires_grad)
    if isinstance(x, list | tuple):
        parts = [_copy(y) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if type(x) is dict:
        return {k: _copy(v) for k, v in x.items()}
    return x if callable(x) and not isinstance(x, torch.nn.Module) else copy.deepcopy(x)


def _plain(x):
    """What of the arguments can be compared: of a module its tensors, of any other object its type."""

    def leaf(y):
        if isinstance(y, torch.nn.Module):
            return dict(y.state_dict())
        simple = isinstance(y, torch.Tensor | np.ndarray | np.generic | str | bytes | int | float | complex) or y is None
        return y if simple else type(y).__name__

    return _map(leaf, x)


AUTOGRAD = "requires_grad", "grad"
"""What autograd keeps with a tensor beside its values."""


def in_autograd(x) -> list[tuple]:
    """`AUTOGRAD` of each tensor in arguments, a module's parameters among them."""
    parts = (p for y in _leaves(x) for p in (y.parameters() if isinstance(y, torch.nn.Module) else [y]))
    tensors = [p for p in parts if isinstance(p, torch.Tensor)]
    return [(p.requires_grad, p.grad.clone() if p.is_leaf and p.grad is not None else None) for p in tensors]


def changed_in_autograd(before: list[tuple], after: list[tuple]) -> str | None:
    """The first of `AUTOGRAD` that differs."""
    pairs = ((name, b, a) for old, new in zip(before, after, strict=False) for name, b, a in zip(AUTOGRAD, old, new, strict=True))
    return next((name for name, b, a in pairs if difference(b, a) is not None), None)


def _map(f, x, *others):
    if isinstance(x, list | tuple):
        parts = [_map(f, *both) for both in zip(x, *others, strict=True)]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if type(x) is dict:
        return {k: _map(f, v, *(o[k] for o in others)) for k, v in x.items()}
    return f(x, *others)


def _leaves(x):
    if isinstance(x, list | tuple):
        for y in x:
            yield from _leaves(y)
    elif isinstance(x, dict):
        for y in x.values():
            yield from _leaves(y)
    else:
        yield x


def _like(expected, value):
    """Plain numbers in the kind and float dtype that came, so that authors can write lists."""
    if isinstance(expected, list | tuple) and isinstance(value, list | tuple) and len(expected) == len(value):
        return type(expected)(_like(e, v) for e, v in zip(expected, value, strict=True))
    try:
        if isinstance(expected, list | tuple) and type(value) in (torch.Tensor, torch.nn.Parameter):
            wanted = torch.as_tensor(expected)
            both = wanted.is_floating_point() and value.is_floating_point()
            return torch.as_tensor(expected, dtype=value.dtype) if both else wanted
        if isinstance(expected, list | tuple) and type(value) is np.ndarray:
            wanted = np.asarray(expected)
            return wanted.astype(value.dtype) if wanted.dtype.kind == "f" and value.dtype.kind == "f" else wanted
        if type(expected) is float and isinstance(value, torch.Tensor | np.generic | np.ndarray) and _is_float(value):
            rounded = torch.tensor(expected, dtype=value.dtype) if isinstance(value, torch.Tensor) else value.dtype.type(expected)
            return rounded.item()
    except (ValueError, TypeError):
        pass  # no rectangle of numbers: it is a list that was meant
    return expected


def _number(x) -> float | int | None:
    """A real number as Python's own, of whatever kind it is; None for what is none: text, truth values, lists, tensors of one entry."""
    kind = type(x)
    if kind in (int, float):
        return x
    if kind in (Fraction, Decimal):
        return _exact(x)
    if isinstance(x, np.integer | np.floating):
        return x.item()
    if kind in (torch.Tensor, torch.nn.Parameter, np.ndarray) and x.ndim == 0:
        return x.item() if str(x.dtype).removeprefix("torch.").startswith(("int", "uint", "float", "bfloat")) else None
    if (sympy := sys.modules.get("sympy")) is not None and isinstance(x, sympy.Expr):
        return _computed(x)
    return None


def _exact(x) -> float | int | None:
    if isinstance(x, Decimal) and not -LONGEST < x.adjusted() < LONGEST:
        return None if x.is_snan() else float(x)  # not finite, or digits without end
    try:
        return int(x) if x == int(x) else float(x)
    except (ArithmeticError, ValueError):  # too large for a float
        return None


def _computed(x) -> float | int | None:
    """The value of a sympy expression without letters, such as ``sympy.sqrt(2)``, if it is real."""
    import sympy

    from course import expressions

    try:
        value = expressions.number(expressions.read(x))
        return None if value.imag else int(x) if isinstance(x, sympy.Integer) else float(value.real)
    except (expressions.ExpressionError, expressions.NoValue, OverflowError):
        return None


def _scalar(x):
    """A truth value as Python's own; anything else as it is."""
    return x.item() if type(x) in (torch.Tensor, np.bool_, np.ndarray) and x.ndim == 0 and "bool" in str(x.dtype) else x


def _simple(x):
    """A named value in the plainest form: Python numbers and truth values, lists, text without case."""
    if type(x) in (torch.Tensor, torch.nn.Parameter, np.ndarray):
        x = _numpy(x) if isinstance(x, torch.Tensor) else x
        return x.tolist() if x.dtype.kind in "biuf" else x
    if type(x) in (list, tuple):
        return [_simple(y) for y in x]
    if type(x) is dict:
        return {_simple(k): _simple(v) for k, v in x.items()}
    if type(x) is str:
        return x.strip().casefold()
    number = _number(x)
    return _scalar(x) if number is None else number


def _sort(x) -> str:
    """What sort of plain value it is, in words."""
    if type(x) is list:
        inside = {_sort(y) for y in x}
        return f"a list of {inside.pop().removeprefix('a ')}s" if inside in ({"a number"}, {"a text"}) else "a list"
    sorts = {bool: "True or False", str: "a text", dict: "a dict"}
    return "a number" if _number(x) is not None else sorts.get(type(x), _kind(x))


def _is_float(x) -> bool:
    """Whether rounding moves it: real or complex."""
    if isinstance(x, torch.Tensor):
        return x.is_floating_point() or x.is_complex()
    return type(x) in (float, complex) or (isinstance(x, np.inexact | np.ndarray) and x.dtype.kind in "fc")


def _widened(x):
    """A float in twice the digits or in float64, of the kind that it was."""
    if isinstance(x, torch.Tensor):
        return x.to(torch.complex128 if x.is_complex() else torch.float64)
    if isinstance(x, np.ndarray):
        return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return x.item() if isinstance(x, np.generic) else x


def _numpy(x) -> np.ndarray:
    x = x.detach().cpu().resolve_conj()
    return (x.double() if x.is_floating_point() else x).numpy()


def _double(x) -> np.ndarray:
    x = _numpy(x) if isinstance(x, torch.Tensor) else np.asarray(x)
    return np.atleast_1d(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))


def _eps(x) -> float:
    if isinstance(x, torch.Tensor):
        return torch.finfo(x.dtype).eps
    return float(np.finfo(x.dtype if isinstance(x, np.ndarray | np.generic) else np.float64).eps)


def _magnitude(x) -> float:
    x = _double(x)
    return float(np.abs(x[np.isfinite(x)]).max(initial=0.0))


def _gap(a, b) -> float:
    a, b = _double(a), _double(b)
    if a.shape != b.shape:
        return 0.0
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
    return float(gap[np.isfinite(gap)].max(initial=0.0))


def _describe(args: tuple, kwargs: dict) -> str:
    return _short(", ".join([_show(x) for x in args] + [f"{k}={_show(v)}" for k, v in kwargs.items()]), 160)


def _show(x) -> str:
    if isinstance(x, torch.Tensor | np.ndarray):
        dtype = _dtype(x.dtype)
        if x.size and np.prod(x.shape) <= 4:
            with np.printoptions(precision=4, suppress=True, floatmode="maxprec", sign="-", formatter=None):  # whatever was set
                numbers = np.array2string(_numpy(x) if isinstance(x, torch.Tensor) else x, separator=", ")
            return f"{' '.join(numbers.split())} {dtype}"
        return f"{dtype} {_shape(x.shape)}"
    if isinstance(x, list | tuple):
        inside = ", ".join(_show(y) for y in x)
        return f"[{inside}]" if isinstance(x, list) else f"({inside})"
    if callable(x) and hasattr(x, "__name__"):
        return x.__name__
    return repr(x)


def _kind(x) -> str:
    if x is None or x is Ellipsis:
        return "nothing" if x is None else "the ellipsis `...`"
    if isinstance(x, torch.Tensor | np.ndarray):
        return f"a {'tensor' if isinstance(x, torch.Tensor) else 'numpy array'} of shape {_shape(x.shape)}"
    name = type(x).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}" + (
        f" ({_short(repr(x), 40)})" if isinstance(x, str | int | float) else ""
    )


def _shape(shape) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _dtype(dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _figure(x) -> str:
    return f"{x:.6g}" if np.issubdtype(np.asarray(x).dtype, np.floating) else str(x)


def _short(text: str, length: int = 90) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"
