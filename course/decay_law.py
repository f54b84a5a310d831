"""The decay law: the reference code of ch15."""

import math
from itertools import pairwise

import torch
from torch import Tensor

__all__ = ["decay_fit"]


def decay_fit(profile: Tensor, low: int = 4, high: int | None = None) -> dict[str, Tensor]:
    """Exponent of a power law and rate of an exponential that fit a profile of distances: (..., D + 1) → (...) each.

    Least squares of the logarithm of the mean weight in bins that are equally wide in the logarithm of the distance, so that
    each scale counts the same. `power` is a in weight ∝ distance^−a, `rate` is b in weight ∝ e^(−b distance), with the shares of
    the spread that each explains, `R2 of the power law` and `R2 of the exponential`.

    Args:
        low, high: first and last distance of the fit; high is D / 2 without it.

    Raises:
        ValueError: if there are fewer than four bins between them.
    """
    D = profile.shape[-1] - 1
    high = D // 2 if high is None else min(high, D)
    edges = sorted({round(low * 2 ** (i / 2)) for i in range(64) if low * 2 ** (i / 2) <= high + 1})
    if len(edges) < 5:
        raise ValueError(f"distances from {low} to {high} make {max(len(edges) - 1, 0)} bins of half an octave; a fit needs four")
    at, means = [], []
    for start, end in pairwise(edges):
        at.append(math.sqrt(start * (end - 1)) if end > start + 1 else start)
        means.append(profile[..., start:end].mean(dim=-1))
    y = torch.stack(means, dim=-1).clamp_min(1e-12).log().double()  # (..., bins)
    distance = torch.tensor(at, dtype=torch.float64)
    power, power_r2 = _line(distance.log(), y)
    rate, rate_r2 = _line(distance, y)
    return {"power": -power, "rate": -rate, "R2 of the power law": power_r2, "R2 of the exponential": rate_r2}


def _line(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Slope and R² of the line that fits y (..., n) over x (n,)."""
    x, centred = x - x.mean(), y - y.mean(dim=-1, keepdim=True)
    slope = (x * centred).sum(dim=-1) / x.square().sum()
    rest = (centred - slope[..., None] * x).square().sum(dim=-1)
    total = centred.square().sum(dim=-1)
    return slope, torch.where(total > 0, 1 - rest / total, torch.ones_like(total))
