"""Formulas as answers: sympy's trees, of a few kinds of nodes, bounded in size, compared in numbers.

sympy makes a formula of anything (`sympify`) by evaluating text, and compares two formulas (`simplify`, `subs`,
`equals`) in a time that nobody knows. Here a formula is taken apart into names and numbers, built again as it was
written, without computing, and compared at points, in arithmetic whose every step is bounded.
"""

import itertools
import random
import time
from fractions import Fraction

import sympy
from mpmath import libmp, mp
from sympy.core import numbers
from sympy.functions.elementary.piecewise import ExprCondPair

__all__ = [
    "AGREE",
    "ASSUMPTIONS",
    "BITS",
    "CONSTANTS",
    "DEPTH",
    "DIGITS",
    "FUNCTIONS",
    "INFINITE",
    "KINDS",
    "LARGEST",
    "NAME",
    "NODES",
    "NOISE",
    "PARTS",
    "RELATIONS",
    "SECONDS",
    "TERMS",
    "UNEVALUATED",
    "ExpressionError",
    "NoValue",
    "Refused",
    "TooLarge",
    "from_plain",
    "letters",
    "number",
    "read",
    "same",
    "shown",
    "to_plain",
]

NODES, DEPTH, NAME = 1000, 50, 50  # of a formula; characters of a letter's name
BITS = 4000  # of a number that is written, and of a power of numbers
LARGEST = 100_000  # bits of a value on the way
DIGITS = 30, 60, 120, 240, 480, 960  # in which a value is computed until two agree
NOISE = 1e-20  # of a value, by which two computations of it may differ
SECONDS = 5.0  # of this process, for one comparison
TERMS = 10_000  # of a sum or product that is computed
AGREE = 1e-12  # of the value: numbers with a decimal point are rounded

INFINITE = "Infinity", "NegativeInfinity", "ComplexInfinity", "NaN"  # by themselves: in a formula sympy computes with them
CONSTANTS = {
    name: getattr(numbers, name)()
    for name in (
        *("Exp1", "Pi", "EulerGamma", "GoldenRatio", "Catalan", "ImaginaryUnit"),
        *INFINITE,
    )
} | {"BooleanTrue": sympy.true, "BooleanFalse": sympy.false}
FUNCTIONS = {
    name: getattr(sympy, name)
    for name in (
        *(
            "Add",
            "Mul",
            "Pow",
            "exp",
            "log",
            "sin",
            "cos",
            "tan",
            "cot",
            "sec",
            "csc",
            "asin",
            "acos",
            "atan",
            "acot",
            "asec",
            "acsc",
        ),
        *("atan2", "sinh", "cosh", "tanh", "coth", "sech", "csch", "asinh", "acosh", "atanh", "acoth", "erf", "erfc"),
        *("Abs", "sign", "floor", "ceiling", "Mod", "Max", "Min", "Heaviside", "factorial", "binomial", "gamma"),
    )
}
RELATIONS = {kind.__name__: kind for kind in (sympy.Eq, sympy.Ne, sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge)}
UNEVALUATED = {name: getattr(sympy, name) for name in ("Sum", "Product", "Derivative", "Integral", "Limit")}
"""What says what is to be computed. It is no answer, unless an exercise allows it: only sums and products have a value here."""
PARTS = {"Tuple": sympy.Tuple, "ExprCondPair": ExprCondPair, "Piecewise": sympy.Piecewise}
KINDS = FUNCTIONS | RELATIONS | UNEVALUATED | PARTS
"""All kinds of nodes, by name, beside letters, numbers and constants."""
_NAMES = {kind: name for name, kind in KINDS.items()}
_CONSTANT_NAMES = {type(constant): name for name, constant in CONSTANTS.items()}
ASSUMPTIONS = {
    *("positive", "negative", "nonnegative", "nonpositive", "zero", "nonzero", "real", "integer", "rational", "irrational"),
    *("even", "odd", "prime", "composite", "finite", "infinite", "complex", "imaginary", "algebraic", "transcendental"),
    *("extended_positive", "extended_negative", "extended_real", "extended_nonnegative", "extended_nonpositive"),
}


class ExpressionError(ValueError):
    """It is no formula that can be an answer. The text goes after the answer's name: "is text …"."""


class NoValue(ArithmeticError):
    """A formula has no value at a point, or none that can be computed."""


class TooLarge(NoValue):
    """A value on the way is too large or too small."""


class Refused:
    """What stands for an expression that is not taken; `why` goes after the answer's name."""

    def __init__(self, why: str):
        self.why = why

    def __repr__(self):
        return f"(it {self.why})"


# ---------------------------------------------------------------- as names and numbers, and back


def to_plain(x) -> list:
    """A formula as lists of text, whole numbers and booleans.

    Raises:
        ExpressionError: if it is none, or too large.
    """
    return _to_plain(x, 0, itertools.count(1))


def _to_plain(x, depth: int, count) -> list:
    if depth > DEPTH or next(count) > NODES:
        raise ExpressionError(f"is a formula of more than {NODES} parts, or {DEPTH} in each other")
    kind = type(x)
    if isinstance(x, sympy.Symbol):  # a Dummy is its name here
        if x.is_commutative is not True:
            raise ExpressionError("holds a letter that does not commute")
        given = {name: is_so for name, is_so in x._assumptions_orig.items() if name in ASSUMPTIONS and isinstance(is_so, bool)}
        return ["Symbol", _letter(str(x.name)), *itertools.chain.from_iterable(sorted(given.items()))]
    if isinstance(x, sympy.Rational):
        return ["Rational", _hex(int(x.p)), _hex(int(x.q))]
    if isinstance(x, sympy.Float):
        sign, man, exponent, _ = x._mpf_
        return ["Float", _hex(-int(man) if sign else int(man)), int(exponent), min(int(x._prec), BITS)]
    if kind in _CONSTANT_NAMES and (not depth or _CONSTANT_NAMES[kind] not in INFINITE):
        return [_CONSTANT_NAMES[kind]]
    if kind not in _NAMES:
        raise ExpressionError(f"holds what no formula here may hold, sympy's {kind.__name__[:NAME]}")
    args = x.args[:3] if kind is sympy.Limit else x.args  # the side from which it comes is a letter named +
    return [_NAMES[kind], *(_to_plain(y, depth + 1, count) for y in args)]


def from_plain(told) -> sympy.Basic:
    """The formula of which `to_plain` made this, as it was written: nothing is computed.

    Raises:
        ExpressionError: if it is none, or too large.
    """
    try:
        with mp.workprec(53):
            return _from_plain(told, 0, itertools.count(1))[0]
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise error if isinstance(error, ExpressionError) else ExpressionError("is no formula") from None


def _from_plain(told, depth: int, count) -> tuple:
    """A node and, if it holds no letter, about its value: what is too large to compute is not built."""
    if type(told) is not list or not told or type(told[0]) is not str or depth > DEPTH or next(count) > NODES:
        raise ExpressionError(f"is a formula of more than {NODES} parts, or {DEPTH} in each other")
    name, *rest = told
    if name == "Symbol":
        label, *given = rest
        given = dict(zip(given[::2], given[1::2], strict=True))
        if not all(key in ASSUMPTIONS and type(is_so) is bool for key, is_so in given.items()):
            raise ExpressionError("holds a letter that is none")
        return sympy.Symbol(_letter(label), **given), None
    if name == "Rational":
        p, q = map(_whole, rest)
        return sympy.Rational(p, q), mp.mpf(p) / q
    if name == "Float":
        man, exponent, precision = rest
        if type(exponent) is not int or type(precision) is not int or abs(exponent) > BITS or not 1 <= precision <= BITS:
            raise ExpressionError("holds a number that is too large or too small")
        exact = libmp.from_man_exp(_whole(man), exponent)
        return sympy.Float._new(libmp.mpf_pos(exact, precision), precision), mp.make_mpf(exact)
    if name in CONSTANTS:
        if rest or (depth and name in INFINITE):
            raise ExpressionError("is no formula")
        return CONSTANTS[name], +_VALUES[name] if name in _VALUES else None
    kind, (nodes, values) = KINDS[name], zip(*(_from_plain(x, depth + 1, count) for x in rest), strict=True)
    return _node(kind, nodes), _about(name, values)


def _node(kind: type, args: tuple) -> sympy.Basic:
    if kind in UNEVALUATED.values() or kind in PARTS.values():
        inside = {sympy.Piecewise: ExprCondPair, sympy.Tuple: sympy.Basic, ExprCondPair: sympy.Basic}.get(kind, sympy.Expr)
        if not isinstance(args[0], inside):
            raise ExpressionError("is no formula")
        args += (sympy.Symbol("+"),) if kind is sympy.Limit else ()
        found = sympy.Basic.__new__(kind, *args)
        if kind in (sympy.Sum, sympy.Product, sympy.Integral):
            found.is_commutative = True  # a field of these
        return found
    if not all(isinstance(x, sympy.Expr) for x in args):
        raise ExpressionError("is no formula")
    return kind(*args, evaluate=False)


def _about(name: str, values: tuple):
    if name not in FUNCTIONS or any(value is None for value in values):
        return None
    try:
        found = _apply(name, values)
    except TooLarge:
        raise ExpressionError("holds a number that is too large or too small to compute") from None
    except NoValue:
        return None
    if name == "Pow" and found != 0 and abs(mp.mag(found)) > BITS:
        raise ExpressionError("holds a power that is too large or too small to compute")
    return found


def _letter(name) -> str:
    if type(name) is not str or len(name) > NAME or not name.isidentifier():
        raise ExpressionError("holds a letter whose name is not one word of letters, digits and _")
    return name


def _hex(n: int) -> str:
    if n.bit_length() > BITS:
        raise ExpressionError(f"holds a number of more than {BITS} bits")
    return hex(n)


def _whole(text) -> int:
    if type(text) is not str or len(text) > BITS // 4 + 4:
        raise ExpressionError("holds a number that is none")
    return int(text, 16)


def read(x, allow: tuple[str, ...] = ()) -> sympy.Expr:
    """A formula as an answer gives it, built again.

    Args:
        x: a sympy expression, or a number of Python.
        allow: names of UNEVALUATED that are an answer nevertheless.

    Raises:
        ExpressionError: if it is none, or holds what is to be computed yet.
    """
    if isinstance(x, Refused):
        raise ExpressionError(x.why)
    if type(x) is str:
        raise ExpressionError("is text, which is not read: write the formula without quotation marks")
    if type(x) in (int, float):
        x = sympy.Integer(x) if type(x) is int else sympy.Float(x)
    if not isinstance(x, sympy.Expr):
        raise ExpressionError("is no sympy expression")
    found = from_plain(to_plain(x))
    left = {type(node).__name__ for node in sympy.preorder_traversal(found) if type(node) in UNEVALUATED.values()} - set(allow)
    if left:
        raise ExpressionError(f"says what is to be computed ({', '.join(sorted(left))}): compute it")
    return found


def shown(x: sympy.Expr) -> str:
    """A formula as text; sympy computes a little for it, and not all can be computed."""
    try:
        return str(x)
    except (ArithmeticError, TypeError, AttributeError, ValueError):
        return "what came"


def letters(x: sympy.Expr) -> set[str]:
    """The names of a formula's letters."""
    return {symbol.name for symbol in x.free_symbols}


# ---------------------------------------------------------------- values


def number(x: sympy.Expr, at: dict[str, object] | None = None):
    """The value of a formula where its letters have these values, to 20 digits or more, as a number of mpmath.

    Raises:
        NoValue: if it has none.
    """
    return _Evaluation(at or {}, time.process_time() + SECONDS).number(x)[0]


class _Evaluation:
    """Values of formulas at one point.

    Args:
        at: values of letters by name: whole numbers, fractions, floats.
        end: of `time.process_time`.
    """

    def __init__(self, at: dict, end: float):
        self.at, self.end = at, end

    def number(self, x) -> tuple:
        """The value, and the size of what it is the sum of."""
        before = None
        for digits in DIGITS:
            with mp.workdps(digits):
                self.size = mp.mpf(0)
                letters = {
                    name: mp.mpf(v.numerator) / v.denominator if isinstance(v, int | Fraction) else mp.mpf(v)
                    for name, v in self.at.items()
                }
                now = self.value(x, letters)
                if before is not None and now != 0 and abs(now - before) <= NOISE * abs(now):
                    return (mp.re(now) if abs(mp.im(now)) <= NOISE * abs(now) else now), max(self.size, abs(now))
                before = now
        if abs(now) <= mp.mpf(10) ** (-DIGITS[-1] // 2) * self.size:  # nothing but rounding is left
            return mp.mpf(0), self.size
        raise NoValue("its digits do not come")

    def value(self, x, letters: dict):
        if time.process_time() > self.end:
            raise NoValue("it takes too long")
        kind = type(x)
        if kind is sympy.Symbol:
            if x.name not in letters:
                raise NoValue(f"{x.name} has no value")
            return letters[x.name]
        if isinstance(x, sympy.Rational):
            return mp.mpf(int(x.p)) / int(x.q)
        if isinstance(x, sympy.Float):
            return mp.make_mpf(x._mpf_)
        if kind in _CONSTANT_NAMES:
            if _CONSTANT_NAMES[kind] not in _VALUES:
                raise NoValue("it is infinite or no number")
            return +_VALUES[_CONSTANT_NAMES[kind]]
        if kind is sympy.Piecewise:
            return self.value(next((part.args[0] for part in x.args if self.holds(part.args[1], letters)), sympy.nan), letters)
        if kind in (sympy.Sum, sympy.Product):
            return self.series(kind, x.args[0], x.args[1:], letters)
        if kind not in _NAMES or _NAMES[kind] not in FUNCTIONS:
            raise NoValue(f"sympy's {kind.__name__} has no value here")
        values = [self.value(y, letters) for y in x.args]
        if kind is sympy.Add:
            self.size = max(self.size, *map(abs, values))
        return _apply(_NAMES[kind], values)

    def holds(self, condition, letters: dict) -> bool:
        if condition in (sympy.true, sympy.false):
            return condition is sympy.true
        if type(condition) not in RELATIONS.values():
            raise NoValue("a condition that is none")
        left, right = (self.value(y, letters) for y in condition.args)
        if not (mp.isinf(left) or mp.isinf(right)) and mp.im(left) == 0 == mp.im(right):
            return _COMPARE[type(condition)](mp.re(left), mp.re(right))
        raise NoValue("numbers that have no order")

    def series(self, kind: type, term, limits: tuple, letters: dict):
        """A sum or product, term by term; the last limits are the outer ones."""
        if not limits:
            return self.value(term, letters)
        index, *ends = limits[-1].args
        first, last = (mp.nint(mp.re(self.value(end, letters))) for end in ends)
        if not first - 1 <= last <= first + TERMS:
            raise NoValue("a sum or product of too many terms")
        total = mp.mpf(0 if kind is sympy.Sum else 1)
        for i in range(int(first), int(last) + 1):
            value = self.series(kind, term, limits[:-1], letters | {index.name: mp.mpf(i)})
            total = _checked(total + value if kind is sympy.Sum else total * value)
        return total


_VALUES = {
    "Exp1": mp.e,
    "Pi": mp.pi,
    "EulerGamma": mp.euler,
    "GoldenRatio": mp.phi,
    "Catalan": mp.catalan,
    "ImaginaryUnit": mp.mpc(0, 1),
}
_COMPARE = {
    sympy.Eq: lambda a, b: a == b,
    sympy.Ne: lambda a, b: a != b,
    sympy.Lt: lambda a, b: a < b,
    sympy.Le: lambda a, b: a <= b,
    sympy.Gt: lambda a, b: a > b,
    sympy.Ge: lambda a, b: a >= b,
}
_STEP = {
    "Abs": abs,
    "sign": mp.sign,
    "floor": mp.floor,
    "ceiling": mp.ceil,
    "log": mp.log,
    "Heaviside": lambda x, at_zero: at_zero if x == 0 else mp.mpf(x > 0),
}
"""Functions of any number; all others take what is not too large."""
_ORDERED = "Max", "Min", "Mod", "atan2", "Heaviside", "floor", "ceiling"  # functions of real numbers
_LIMITS = {"factorial": 10, "gamma": 10, "binomial": 10}  # bits of the argument; 16 for others


def _apply(name: str, values):
    """A function of numbers.

    Raises:
        NoValue, TooLarge: if it has no value, or none that is small enough.
    """
    try:
        if name == "Add":
            return _checked(sum(values, mp.mpf(0)))
        if name == "Mul":
            found = mp.mpf(1)
            for value in values:
                found = _checked(found * value)
            return found
        if name == "Pow":
            return _power(*values)
        if name in _ORDERED and any(mp.im(value) != 0 for value in values):
            raise NoValue("numbers that have no order")
        values = [mp.re(value) for value in values] if name in _ORDERED else values
        if name in ("Max", "Min"):
            return max(values) if name == "Max" else min(values)
        if name == "Mod":
            return _checked(values[0] - values[1] * mp.floor(values[0] / values[1]))
        if name in _STEP:
            return _checked(_STEP[name](*values))
        most = _LIMITS.get(name, 6 if name.startswith("erf") and any(mp.im(value) != 0 for value in values) else 16)
        if any(mp.mag(value) > most for value in values):
            raise TooLarge
        return _checked(getattr(mp, name)(*values))
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, libmp.NoConvergence) as error:
        raise NoValue(str(error)) from None


def _power(base, exponent):
    if base == 0:
        if exponent == 0 or mp.re(exponent) > 0:
            return mp.mpf(exponent == 0)
        raise NoValue("a division by zero")
    if mp.mag(exponent) > 40 or abs(mp.log(abs(base), 2)) * abs(exponent) > LARGEST:
        raise TooLarge
    return _checked(mp.power(base, exponent))


def _checked(x):
    if not mp.isfinite(x):
        raise NoValue("it is infinite or no number")
    if x != 0 and abs(mp.mag(x)) > LARGEST:
        raise TooLarge
    return x


# ---------------------------------------------------------------- comparing


def same(x: sympy.Expr, wanted: sympy.Expr) -> bool:
    """Whether two formulas have the same values, to 12 digits: letters of the same name are the same.

    Three letters of either sign meet in all ways; of more, some. Where one of the two has no value, other numbers are tried.

    Raises:
        ValueError: if `wanted` has no value anywhere.
        NoValue: if it takes too long.
    """
    draws, end = random.Random(0), time.process_time() + SECONDS
    known = {symbol.name: symbol for symbol in sorted(x.free_symbols, key=str)} | {s.name: s for s in wanted.free_symbols}
    seen = False
    for signs in itertools.product([1, -1], repeat=3):
        missing = 0
        for _ in range(3):
            own = itertools.chain(signs, iter(lambda: draws.choice([-1, 1]), None))
            at = {name: _drawn(symbol, draws, own) for name, symbol in sorted(known.items())}
            evaluation = _Evaluation(at, end)
            try:
                right, size = evaluation.number(wanted)
            except NoValue:
                continue
            try:
                mine, own_size = evaluation.number(x)
            except NoValue:
                if time.process_time() > end:
                    raise
                missing += 1
                continue
            off = abs(mine - right)
            if off > AGREE * (abs(right) or max(size, own_size)):
                return False
            seen, missing = True, 0
            break
        if missing:
            return False
    if time.process_time() > end:
        raise NoValue("it takes too long")
    if not seen:
        raise ValueError(f"{wanted} has no value at any point that was tried")
    return True


def _drawn(symbol: sympy.Symbol, draws: random.Random, signs):
    found = Fraction(draws.randint(1, 9))
    found = found if symbol.is_integer else found + Fraction(draws.randint(1, 99), 100)
    return found if symbol.is_nonnegative else -found if symbol.is_nonpositive else found * next(signs)
