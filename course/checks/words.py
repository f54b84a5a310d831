"""Values, kinds and shapes in the few words of a message to a student."""

import numpy as np
import torch

from course.checks.numbers import as_number, as_numpy

__all__ = ["describe", "dtype_of", "figure", "kind_of", "shape_of", "short", "show", "sort_of", "where_to_read"]


def describe(args: tuple, kwargs: dict) -> str:
    """The arguments of a call."""
    return short(", ".join([show(x) for x in args] + [f"{k}={show(v)}" for k, v in kwargs.items()]), 160)


def show(x) -> str:
    """A value: its numbers if they are few, or its dtype and shape."""
    if isinstance(x, torch.Tensor | np.ndarray):
        dtype = dtype_of(x.dtype)
        if x.size and np.prod(x.shape) <= 4:
            with np.printoptions(precision=4, suppress=True, floatmode="maxprec", sign="-", formatter=None):  # whatever was set
                numbers = np.array2string(as_numpy(x) if isinstance(x, torch.Tensor) else x, separator=", ")
            return f"{' '.join(numbers.split())} {dtype}"
        return f"{dtype} {shape_of(x.shape)}"
    if isinstance(x, list | tuple):
        inside = ", ".join(show(y) for y in x)
        return f"[{inside}]" if isinstance(x, list) else f"({inside})"
    if callable(x) and hasattr(x, "__name__"):
        return x.__name__
    return repr(x)


def kind_of(x) -> str:
    """What came, with its article: a tensor of a shape, a type and its value if that is short."""
    if x is None or x is Ellipsis:
        return "nothing" if x is None else "the ellipsis `...`"
    if isinstance(x, torch.Tensor | np.ndarray):
        return f"a {'tensor' if isinstance(x, torch.Tensor) else 'numpy array'} of shape {shape_of(x.shape)}"
    name = type(x).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}" + (
        f" ({short(repr(x), 40)})" if isinstance(x, str | int | float) else ""
    )


def sort_of(x) -> str:
    """What sort of plain value it is, in words."""
    if type(x) is list:
        inside = {sort_of(y) for y in x}
        return f"a list of {inside.pop().removeprefix('a ')}s" if inside in ({"a number"}, {"a text"}) else "a list"
    sorts = {bool: "True or False", str: "a text", dict: "a dict"}
    return "a number" if as_number(x) is not None else sorts.get(type(x), kind_of(x))


def shape_of(shape) -> str:
    """A shape as Python writes a tuple."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def dtype_of(dtype) -> str:
    """A dtype without its library."""
    return str(dtype).removeprefix("torch.")


def figure(x) -> str:
    """A number to six digits."""
    return f"{x:.6g}" if np.issubdtype(np.asarray(x).dtype, np.floating) else str(x)


def short(text: str, length: int = 90) -> str:
    """A text on one line, cut at `length` characters."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


def where_to_read(see: str | None) -> str:
    """The sentence that points to a section, by its slug; empty for none."""
    return f" Read: {see.replace('-', ' ').capitalize()} (#{see})." if see else ""
