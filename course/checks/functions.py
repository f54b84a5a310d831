"""Checks of a function or class: one call of it, or one use."""

import math
from collections.abc import Callable, Iterator

import torch

from course.checks.arguments import comparable, copy_of, leaves, seed_all
from course.checks.autograd import gradients
from course.checks.comparing import allowed_gaps, difference, least_gaps, like
from course.checks.drawing import draw
from course.checks.exercise import told_of
from course.checks.grading import grader
from course.checks.numbers import as_number, as_truth, is_float
from course.checks.outcomes import CheckFailed, Raised, Returned
from course.checks.probing import observed
from course.checks.words import describe, kind_of, short, show

__all__ = ["Call", "Subject"]


class Subject:
    """A function or class under test.

    Raises:
        CheckFailed: by what is asked of it, if it does not hold.
    """

    def __init__(self, answer: Callable, name: str):
        self.answer, self.name = answer, name

    def on(self, *args, **kwargs) -> "Call":
        """Call it with these arguments. They are copied, so nothing the student does reaches the test's own."""

        grad = torch.is_grad_enabled()  # a test under torch.no_grad() stays one when it is repeated

        def observe(answer, args=args, kwargs=kwargs):
            a, k = copy_of(args), copy_of(kwargs)
            seed_all()
            try:
                with torch.set_grad_enabled(grad):
                    value, after, changed = grader.invoke(answer, a, k)
                return Returned(value, comparable(after), changed)
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
            seed_all()
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
                kind = verdict if isinstance(verdict, bool) and isinstance(as_truth(value), bool) else told
                wrong.setdefault(kind, []).append(words)
                call.probe.failed = True
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
    """One use of a function or class under test.

    Raises:
        CheckFailed: by what is asked of it, if it does not hold.
    """

    def __init__(
        self, subject: Subject, observe: Callable, args: tuple, kwargs: dict, use: Callable | None = None, what: str = ""
    ):
        self.subject, self.observe, self.use, self.what = subject, observe, use, what
        self.args, self.kwargs = args, kwargs
        has_numbers = any(is_float(x) for x in leaves((args, kwargs)))
        self.probe = observed(subject.name, observe, subject.answer, (args, kwargs) if has_numbers else None)
        self.seen = self.probe.seen

    def returns(self, expected, *, atol: float = 0.0, rtol: float = 0.0, see: str | None = None) -> "Call":
        """The result has the values of `expected`, to a tolerance that says how it was rounded.

        A nested list stands for a tensor or array of any float dtype; shapes must be equal.
        """
        value = self._value(see)
        told = difference(like(expected, value), value, atol=atol, rtol=rtol)
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
        if difference(expected.value, value, bounds=least_gaps(expected.value)) is None:
            return self  # nearer than any tolerance that would be derived, at four more calls of the reference
        bounds = allowed_gaps(reference, expected.value, (self.args, self.kwargs) if self.use is None else None)
        told = difference(expected.value, value, bounds=bounds, rtol=rtol, atol=atol)
        self._fail_if(told, see)
        return self

    def gradients_agree_with(self, reference: Callable, *, see: str | None = None) -> "Call":
        """The gradients with respect to every float tensor argument are those of `reference`, in float64.

        Agreement to half the digits of float64: rounding costs far less, a wrong formula far more.

        Raises:
            ValueError: if the reference has none.
        """

        def observe(answer):
            seed_all()
            try:
                return Returned(gradients(answer, self.args, self.kwargs))
            except Exception as error:
                return Raised(error)

        self.probe, expected = observed(self.subject.name, observe, self.subject.answer), observe(reference)
        seen = self.probe.seen
        if isinstance(expected, Raised):
            raise ValueError(f"the reference has no gradients here: {expected.error}") from expected.error
        if isinstance(seen, Raised):
            missing = isinstance(seen.error, CheckFailed)
            self._fail_if(str(seen.error) if missing else f"its gradients cannot be computed: {told_of(seen.error)}", see)
        for mine, right in zip(seen.value, expected.value, strict=True):
            scale = float(right.abs().max()) if right.numel() else 0.0
            told = difference(right, mine, atol=math.sqrt(torch.finfo(torch.float64).eps) * max(scale, 1.0))
            self._fail_if(told and f"the gradient is off: {told}", see)
        return self

    def leaves_arguments_alone(self, *, see: str | None = None) -> "Call":
        """The call does not change what it was given."""
        self._value(see)
        told = difference(comparable((self.args, self.kwargs)), self.seen.arguments)
        self._fail_if(told and f"`{self.subject.name}` changed an argument in place: {told}", see)
        self._fail_if(self.seen.changed and f"`{self.subject.name}` changed the `{self.seen.changed}` of an argument", see)
        return self

    def satisfies(self, predicate: Callable, claim: str, *, see: str | None = None) -> "Call":
        """`predicate(result)` is true; `claim` says so in words ("each row sums to one")."""
        value = self._value(see)
        try:
            holds = bool(predicate(value))
        except Exception as error:
            self._fail_if(f"it does not hold that {claim}: {told_of(error)} ({short(show(value))} came)", see)
        self._fail_if(None if holds else f"it does not hold that {claim} ({short(show(value))} came)", see)
        return self

    def is_number(self, *, see: str | None = None) -> "Call":
        """The result is a finite real number; what follows gets it as a Python number."""
        value = self._value(see)
        number = as_number(value)
        told = None if number is not None and math.isfinite(number) else f"a finite number was expected, {kind_of(value)} came"
        self._fail_if(told, see)
        self.seen = Returned(number, self.seen.arguments, self.seen.changed)
        return self

    def raises(self, error: type[Exception], *, see: str | None = None) -> "Call":
        """The call raises `error` or a subclass of it."""
        if isinstance(self.seen, Returned):
            self._fail_if(f"{error.__name__} was expected, but a result came: {short(show(self.seen.value))}", see)
        stub = isinstance(self.seen.error, NotImplementedError) and not issubclass(error, NotImplementedError)
        if stub:  # a RuntimeError to Python
            self._fail_if(told_of(self.seen.error), see)
        if not isinstance(self.seen.error, error):
            self._fail_if(f"{error.__name__} was expected, {told_of(self.seen.error)} came", see)
        return self

    def _value(self, see):
        if isinstance(self.seen, Raised):
            self._fail_if(told_of(self.seen.error), see)
        return self.seen.value

    def _fail_if(self, told: str | None, see: str | None) -> None:
        if told:
            self.probe.failed = True
            where = f"({describe(self.args, self.kwargs)})" if self.use is None else f", {self.what}" if self.what else ""
            raise CheckFailed(f"{self.subject.name}{where}: {told}", see)
