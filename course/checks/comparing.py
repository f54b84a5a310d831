"""Whether two results are the same, and how far a right answer may be from the reference."""

import math
from collections.abc import Callable

import numpy as np
import torch

from course.checks.arguments import copy_of, leaves, map_leaves, seed_all
from course.checks.numbers import as_number, as_numpy, as_truth, eps_of, is_float, largest_gap, magnitude, widened
from course.checks.words import dtype_of, figure, kind_of, shape_of, short, show

__all__ = ["SAFETY", "allowed_gaps", "difference", "least_gaps", "like", "simple"]

SAFETY = 8  # times the error that rounding the inputs alone can cause


def difference(expected, value, *, atol: float = 0.0, rtol: float = 0.0, bounds=None) -> str | None:
    """What is different between two results, in words, or None.

    Types, shapes and dtypes must be equal; nothing broadcasts; nan equals nan. Lists and tuples
    are the same to it, as are Python numbers, numpy scalars and 0-d tensors where a plain number
    is expected. `bounds` (of the structure of `expected`) are absolute tolerances by leaf.
    """
    if isinstance(expected, torch.Tensor):
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            return f"a tensor was expected, {kind_of(value)} came"
        if value.dtype != expected.dtype:
            return f"dtype {dtype_of(expected.dtype)} was expected, {dtype_of(value.dtype)} came"
        if value.device == expected.device and torch.equal(value, expected):
            return None
        return _array_difference(as_numpy(expected), as_numpy(value), atol, rtol, bounds)
    if isinstance(expected, np.ndarray):
        if type(value) is not np.ndarray:
            return f"a numpy array was expected, {kind_of(value)} came"
        if value.dtype != expected.dtype:
            return f"dtype {expected.dtype} was expected, {value.dtype} came"
        return _array_difference(expected, value, atol, rtol, bounds)
    if isinstance(expected, bool | np.bool_):
        value = as_truth(value)
        return (
            None
            if type(value) is bool and (value == bool(expected) or atol == math.inf)
            else f"{bool(expected)} was expected, {short(show(value))} came"
        )
    if (number := as_number(expected)) is not None:
        other = as_number(value)
        if other is None:
            return f"a number was expected, {kind_of(value)} came"
        return _array_difference(np.asarray(number), np.asarray(other), atol, rtol, bounds)
    if isinstance(expected, list | tuple):
        if type(value) is not list and not isinstance(value, tuple):  # torch.max returns a kind of tuple
            return f"a {type(expected).__name__} was expected, {kind_of(value)} came"
        if len(value) != len(expected):
            return f"length {len(expected)} was expected, {len(value)} came: {short(show(value))}"
        for i, (e, v) in enumerate(zip(expected, value, strict=True)):
            told = difference(e, v, atol=atol, rtol=rtol, bounds=None if bounds is None else bounds[i])
            if told:
                return f"at [{i}] {told}"
        return None
    if isinstance(expected, dict):
        if type(value) is not dict and not isinstance(value, dict):
            return f"a dict was expected, {kind_of(value)} came"
        missing, extra = expected.keys() - value.keys(), value.keys() - expected.keys()
        if missing or extra:
            return f"keys differ: missing {short(str(sorted(map(repr, missing))))}, unexpected {short(str(sorted(map(repr, extra))))}"
        for key, e in expected.items():
            told = difference(e, value[key], atol=atol, rtol=rtol, bounds=None if bounds is None else bounds[key])
            if told:
                return f"at [{key!r}] {told}"
        return None
    if type(value) is not type(expected):
        return f"{kind_of(expected)} was expected, {kind_of(value)} came"
    same = expected == value
    return None if same else f"{short(show(expected))} was expected, {short(show(value))} came"


def _array_difference(expected: np.ndarray, value: np.ndarray, atol, rtol, bounds) -> str | None:
    if expected.shape != value.shape:
        return f"shape {shape_of(expected.shape)} was expected, {shape_of(value.shape)} came"
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
    wanted, came = figure(expected[worst]), figure(value[worst])
    if wanted == came:
        wanted, came = repr(expected[worst].item()), repr(value[worst].item())
    return f"{several}{at}: {wanted} was expected, {came} came"


def like(expected, value):
    """Plain numbers in the kind and float dtype that came, so that authors can write lists."""
    if isinstance(expected, list | tuple) and isinstance(value, list | tuple) and len(expected) == len(value):
        return type(expected)(like(e, v) for e, v in zip(expected, value, strict=True))
    try:
        if isinstance(expected, list | tuple) and type(value) in (torch.Tensor, torch.nn.Parameter):
            wanted = torch.as_tensor(expected)
            both = wanted.is_floating_point() and value.is_floating_point()
            return torch.as_tensor(expected, dtype=value.dtype) if both else wanted
        if isinstance(expected, list | tuple) and type(value) is np.ndarray:
            wanted = np.asarray(expected)
            return wanted.astype(value.dtype) if wanted.dtype.kind == "f" and value.dtype.kind == "f" else wanted
        if type(expected) is float and isinstance(value, torch.Tensor | np.generic | np.ndarray) and is_float(value):
            rounded = torch.tensor(expected, dtype=value.dtype) if isinstance(value, torch.Tensor) else value.dtype.type(expected)
            return rounded.item()
    except (ValueError, TypeError):
        pass  # no rectangle of numbers: it is a list that was meant
    return expected


def simple(x):
    """A named value in the plainest form: Python numbers and truth values, lists, text without case."""
    if type(x) in (torch.Tensor, torch.nn.Parameter, np.ndarray):
        x = as_numpy(x) if isinstance(x, torch.Tensor) else x
        return x.tolist() if x.dtype.kind in "biuf" else x
    if type(x) in (list, tuple):
        return [simple(y) for y in x]
    if type(x) is dict:
        return {simple(k): simple(v) for k, v in x.items()}
    if type(x) is str:
        return x.strip().casefold()
    number = as_number(x)
    return as_truth(x) if number is None else number


def least_gaps(expected):
    """Half of what `allowed_gaps` allows for the rounding of the result alone, for each leaf of `expected`."""
    return map_leaves(lambda x: SAFETY / 2 * eps_of(x) * magnitude(x) if is_float(x) else 0.0, expected)


def allowed_gaps(reference: Callable, expected, given: tuple | None):
    """How far a right answer may be from the reference, for each leaf of `expected`.

    Args:
        reference: what gave `expected`.
        given: the arguments it was called with, (args, kwargs); None where it was used in another way.
    """
    if given is None or not any(is_float(x) for x in leaves(expected)):
        return map_leaves(lambda x: SAFETY * eps_of(x) * magnitude(x) if is_float(x) else 0.0, expected)
    # Steps as large as the inputs are rounded too: log-sum-exp is shifted by them, and cancels in exact arithmetic only.
    shift = max(
        (min(eps_of(x) * magnitude(x), math.sqrt(min(eps_of(x), 1e-6)) / SAFETY) for x in leaves(given) if is_float(x)),
        default=0.0,
    )

    def exact(sign: np.random.Generator | None):
        def widen(x):
            if not is_float(x):
                return x
            wide = widened(x)
            if sign is None:
                return wide
            factor = 1 + eps_of(x) * (2.0 * sign.integers(0, 2, size=np.shape(wide)) - 1.0)
            return wide * (torch.from_numpy(np.asarray(factor)) if isinstance(x, torch.Tensor) else factor)

        args, kwargs = map_leaves(widen, copy_of(given))
        seed_all()
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
        return map_leaves(lambda x: SAFETY * eps_of(x) * magnitude(x) if is_float(x) else 0.0, expected)

    def bound(e, w, *others):
        if not is_float(e):
            return 0.0
        rounding = max(largest_gap(w, other) for other in others) + max(eps_of(e), shift) * magnitude(w)
        own = largest_gap(w, e)
        if own > max(0.01 * magnitude(w), 1000 * rounding):
            own = 0.0  # not rounding: the reference draws other random numbers in float64
        return SAFETY * (rounding + own)

    return map_leaves(bound, expected, wide, *nudged)
