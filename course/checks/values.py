"""Checks of a named value: a number, a choice, an order, a formula."""

import math

from course.checks.comparing import difference, like, simple
from course.checks.numbers import as_number
from course.checks.outcomes import CheckFailed, Returned
from course.checks.probing import observed
from course.checks.words import kind_of, short, show, sort_of

__all__ = ["Value"]


class Value:
    """A value under test: a number, a choice, an order, a formula.

    Raises:
        CheckFailed: by what is asked of it, if it does not hold.
    """

    def __init__(self, name: str, value):
        self.name, self.value = name, value
        observed(name, Returned, value)

    def equals(self, expected, *, atol: float = 0.0, rtol: float = 0.0, see: str | None = None) -> "Value":
        """The value is right, in whatever kind of number or sequence; the message never tells what is right.

        Of text, letter case and the space around it do not count.
        """
        wanted, value = simple(expected), simple(self.value)
        if difference(wanted, value, atol=atol, rtol=rtol):
            asked, came = sort_of(wanted), sort_of(value)
            if asked != came and value is not None:  # a right number as text is no wrong number
                raise CheckFailed(f"{self.name} should be {asked}, {kind_of(self.value)} came.", see)
            raise CheckFailed(f"{self.name} = {short(show(self.value))} is not right.", see)
        return self

    def chooses(self, letters: str, *, see: str | None = None) -> "Value":
        """The letters of the statements that are right, as a text or a collection, in any order and either case."""
        if self._letters(see) != set(letters):
            raise CheckFailed(f"{self.name} = {short(show(self.value))} is not right.", see)
        return self

    def chooses_from(self, letters: str, *, see: str | None = None) -> "Value":
        """A choice as `chooses` takes it, of one or more of these letters and no others."""
        chosen = self._letters(see)
        if not chosen or not chosen <= set(letters):
            asked = f"some of the letters {letters[0]} to {letters[-1]}"
            raise CheckFailed(f"{self.name} should be {asked}, {short(show(self.value))} came.", see)
        return self

    def _letters(self, see: str | None) -> set[str]:
        parts = list(self.value) if type(self.value) in (list, tuple, set, frozenset) else [self.value]
        if not all(type(x) is str for x in parts):
            raise CheckFailed(f"{self.name} should be a text of letters such as 'ab', {kind_of(self.value)} came.", see)
        return {x for x in "".join(parts).casefold() if x.isalnum()}

    def is_one_of(self, *options, see: str | None = None) -> "Value":
        """The value is one of the options of a choice or a prediction; of text, letter case does not count."""
        value = simple(self.value)
        if not any(difference(simple(option), value) is None for option in options):
            raise CheckFailed(f"{self.name} = {short(show(self.value))} is none of {', '.join(map(repr, options))}.", see)
        return self

    def is_number(self, *, see: str | None = None) -> "Value":
        """The value is a finite real number."""
        number = as_number(self.value)
        if number is None or not math.isfinite(number):
            raise CheckFailed(f"{self.name} should be a number, {kind_of(self.value)} came.", see)
        return self

    def is_like(self, example, *, see: str | None = None) -> "Value":
        """The value has the type and shape of `example`, whatever its numbers or letters."""
        if isinstance(example, str):
            told = None if type(self.value) is str else f"a text was expected, {kind_of(self.value)} came"
        else:
            told = difference(like(example, self.value), self.value, atol=math.inf)
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
            raise CheckFailed(f"{self.name} = {short(expressions.shown(value))} is not the same function.", see)
        return self

    def _expression(self, allow: tuple[str, ...], see: str | None):
        """The value as an expression of known parts, whatever came."""
        import sympy

        from course import expressions

        value = self.value if isinstance(self.value, sympy.Expr | expressions.Refused | str) else as_number(self.value)
        if value is None:
            raise CheckFailed(f"{self.name} should be a sympy expression, {kind_of(self.value)} came.", see)
        try:
            return expressions.read(value, allow)
        except expressions.ExpressionError as error:
            raise CheckFailed(f"{self.name} {error}.", see) from None
