"""Arguments and results as trees of lists, tuples and dicts: their leaves, and copies that share nothing."""

import copy
import random
from collections.abc import Iterator

import numpy as np
import torch

from course.checks.numbers import is_float

__all__ = ["comparable", "copy_of", "leaves", "map_leaves", "other_numbers", "seed_all"]


def map_leaves(f, x, *others):
    """The tree of `f(leaf, …)`, of one tree or of several of the same form."""
    if isinstance(x, list | tuple):
        parts = [map_leaves(f, *both) for both in zip(x, *others, strict=True)]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if type(x) is dict:
        return {k: map_leaves(f, v, *(o[k] for o in others)) for k, v in x.items()}
    return f(x, *others)


def leaves(x) -> Iterator:
    """The leaves of a tree, in order."""
    if isinstance(x, list | tuple):
        for y in x:
            yield from leaves(y)
    elif isinstance(x, dict):
        for y in x.values():
            yield from leaves(y)
    else:
        yield x


def copy_of(x):
    """A copy that shares nothing and keeps strides, so that a non-contiguous argument stays one."""
    if isinstance(x, torch.Tensor) and not isinstance(x, torch.nn.Parameter):
        if x.is_contiguous():
            return x.detach().clone().requires_grad_(x.requires_grad)
        y = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype) if 0 not in x.stride() else torch.empty_like(x)
        return y.copy_(x.detach()).requires_grad_(x.requires_grad)
    if isinstance(x, list | tuple):
        parts = [copy_of(y) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if type(x) is dict:
        return {k: copy_of(v) for k, v in x.items()}
    return x if callable(x) and not isinstance(x, torch.nn.Module) else copy.deepcopy(x)


def comparable(x):
    """What of the arguments can be compared: of a module its tensors, of any other object its type."""

    def leaf(y):
        if isinstance(y, torch.nn.Module):
            return dict(y.state_dict())
        simple = isinstance(y, torch.Tensor | np.ndarray | np.generic | str | bytes | int | float | complex) or y is None
        return y if simple else type(y).__name__

    return map_leaves(leaf, x)


def other_numbers(arguments, seed: int):
    """The arguments with each float multiplied by a number of its own, near one; by one of either sign for odd seeds."""
    factors = np.random.default_rng(seed)

    def other(x):
        if not is_float(x):
            return x
        factor = factors.uniform(0.8, 1.25, np.shape(x.detach() if isinstance(x, torch.Tensor) else x))
        factor *= factors.choice([1, -1], np.shape(factor)) if seed % 2 else 1
        if isinstance(x, torch.Tensor):
            return (x.detach() * torch.from_numpy(np.asarray(factor))).to(x.dtype)
        return (x * factor).astype(x.dtype) if isinstance(x, np.ndarray) else type(x)(x * factor)

    return map_leaves(other, copy_of(arguments))


def seed_all() -> None:
    """Seed the generators that everybody shares: Python's, numpy's and torch's.

    As torch.manual_seed(0), at a hundredth of its cost: for each unused kind of accelerator that one stores a stack trace.
    """
    random.seed(0)
    np.random.seed(0)
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(0)
