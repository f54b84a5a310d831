"""What counts as a number, and how many digits it has."""

import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import torch

__all__ = ["LONGEST", "as_number", "as_numpy", "as_truth", "eps_of", "is_float", "largest_gap", "magnitude", "widened"]

LONGEST = 1000  # digits before or after the point of a decimal


def as_number(x) -> float | int | None:
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


def as_truth(x):
    """A truth value as Python's own; anything else as it is."""
    return x.item() if type(x) in (torch.Tensor, np.bool_, np.ndarray) and x.ndim == 0 and "bool" in str(x.dtype) else x


def is_float(x) -> bool:
    """Whether rounding moves it: real or complex."""
    if isinstance(x, torch.Tensor):
        return x.is_floating_point() or x.is_complex()
    return type(x) in (float, complex) or (isinstance(x, np.inexact | np.ndarray) and x.dtype.kind in "fc")


def widened(x):
    """A float in twice the digits or in float64, of the kind that it was."""
    if isinstance(x, torch.Tensor):
        return x.to(torch.complex128 if x.is_complex() else torch.float64)
    if isinstance(x, np.ndarray):
        return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return x.item() if isinstance(x, np.generic) else x


def as_numpy(x) -> np.ndarray:
    """A tensor of any shape as an array, floats in float64."""
    x = x.detach().cpu().resolve_conj()
    return (x.double() if x.is_floating_point() else x).numpy()


def _double(x) -> np.ndarray:
    x = as_numpy(x) if isinstance(x, torch.Tensor) else np.asarray(x)
    return np.atleast_1d(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))


def eps_of(x) -> float:
    """The distance from 1 to the next float of this dtype."""
    if isinstance(x, torch.Tensor):
        return torch.finfo(x.dtype).eps
    return float(np.finfo(x.dtype if isinstance(x, np.ndarray | np.generic) else np.float64).eps)


def magnitude(x) -> float:
    """The largest finite entry, without its sign."""
    x = _double(x)
    return float(np.abs(x[np.isfinite(x)]).max(initial=0.0))


def largest_gap(a, b) -> float:
    """The largest finite distance between entries; 0 where shapes differ."""
    a, b = _double(a), _double(b)
    if a.shape != b.shape:
        return 0.0
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
    return float(gap[np.isfinite(gap)].max(initial=0.0))
