"""A power law of distances in the words of statistical mechanics, and what a trained head makes of its predictions: chapter ch22.

The energy of the distance r is ln r and the inverse temperature is γ. Distances are 1, 2, …, N, everything is in float64, and a `gamma`
is a number or a tensor (...), and what comes back begins with its shape. Heads are read in a window: the N keys before each query.
"""

import math

import torch
from torch import Tensor

from course.attention_maps import FIRST
from course.decay_law import multipliers
from course.phase_polylog import cumulants, log_partition

__all__ = [
    "EULER",
    "STIELTJES",
    "entropy",
    "expansion_at_one",
    "fisher",
    "fit_exponent",
    "free_energy",
    "head_response",
    "heat_capacity",
    "heat_peak",
    "response",
    "spread_by_pairs",
    "windows",
]

EULER = 0.5772156649015329
"""What the sum of 1/r over the distances 1 to N is more than ln N, for large N."""

STIELTJES = -0.0728158454836767
"""What the sum of ln r / r over the distances 1 to N is more than (ln N)²/2, for large N."""


# ---------------------------------------------------------------- the dictionary


def free_energy(gamma: float | Tensor, N: float) -> Tensor:
    """−ln Z / γ, formula ch22-free-energy: gamma (...) → (...), infinite at 0."""
    return -log_partition(gamma, N) / gamma


def entropy(gamma: float | Tensor, N: float) -> Tensor:
    """Entropy in nats, ln Z + γ E[ln r], formula ch22-entropy: gamma (...) → (...)."""
    return log_partition(gamma, N) + gamma * cumulants(gamma, N, 1)[..., 0]


def fisher(gamma: float | Tensor, N: float) -> Tensor:
    """Fisher information about γ in one distance, Var(ln r), formula ch22-fisher: gamma (...) → (...)."""
    return cumulants(gamma, N)[..., 1]


def heat_capacity(gamma: float | Tensor, N: float) -> Tensor:
    """γ² Var(ln r), formula ch22-heat: gamma (...) → (...)."""
    return gamma**2 * cumulants(gamma, N)[..., 1]


def spread_by_pairs(p: Tensor, energy: Tensor) -> Tensor:
    """The variance of energies under p as a sum over pairs, formula ch22-pairs: p (..., N), energy (N,) → (...)."""
    gaps = (energy[:, None] - energy).square().triu()  # (N, N)
    return torch.einsum("...i,...j,ij->...", p, p, gaps)


def heat_peak(N: float) -> tuple[float, float]:
    """The γ at which the heat capacity of the distances 1 to N is largest, and its value there.

    There 2 Var(ln r) is γ times the third cumulant; the place is found by halving between 1/2 and 5.

    Raises:
        ValueError: if N is not a whole number from 2 on.
    """
    if N < 2:
        raise ValueError(f"one distance has no spread: N must be 2 or more, got {N}")
    low, high = 0.5, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        _, variance, third = cumulants(middle, N, 3)
        if 2 * variance > middle * third:
            low = middle
        else:
            high = middle
    return middle, float(heat_capacity(middle, N))


def expansion_at_one(N: float, terms: int = 3) -> float:
    """Var(ln r) at γ = 1 by its first terms for large N, formula ch22-discrete: squared logarithm, logarithm, constant."""
    found = (math.log(N) ** 2 / 12, EULER * math.log(N) / 6, -5 * EULER**2 / 12 - STIELTJES)
    return math.fsum(found[:terms])


# ---------------------------------------------------------------- a thermometer


def fit_exponent(mean_log: Tensor, N: int) -> Tensor:
    """The γ of the power law on the distances 1 to N with a given mean of ln r, also the likeliest: mean_log (...) → (...).

    Raises:
        ValueError: if a mean is not between 0 and ln N, where no exponent gives it.
    """
    mean_log = torch.as_tensor(mean_log, dtype=torch.float64)
    if not ((mean_log > 0) & (mean_log < math.log(N))).all():
        raise ValueError(f"a mean of ln r lies between 0 and ln {N} = {math.log(N):.3f}, or no exponent gives it")
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()
    return multipliers(mean_log[..., None], log_r[None])[..., 0]


# ---------------------------------------------------------------- response


def response(scores: Tensor, f: Tensor) -> Tensor:
    """How fast the mean of f (N,) under the softmax of b times the scores (..., N) changes with b, at b = 1: (...).

    The covariance of f with the scores, formula ch22-response. A masked key has the score −∞ and no weight.
    """
    scores = scores.double()
    p = scores.softmax(dim=-1)
    f = f - (p * f).sum(dim=-1, keepdim=True)  # (..., N), about its mean
    return (p * f * scores.masked_fill(p == 0, 0)).sum(dim=-1)


def windows(weights: Tensor, N: int) -> Tensor:
    """The weights on the N keys before each query that has them, nearest first: weights (..., T, T) → (..., queries, N).

    The first `FIRST` keys of the text are in no window, and neither is the query's own.

    Raises:
        ValueError: if no query has so many keys.
    """
    T = weights.shape[-1]
    if not 1 <= N < T - FIRST:
        raise ValueError(f"{T} tokens have windows of 1 to {T - FIRST - 1} keys, got {N}")
    i = torch.arange(N + FIRST, T)[:, None]  # (queries, 1)
    return weights[..., i, i - torch.arange(1, N + 1)]


def head_response(weights: Tensor, N: int) -> dict[str, Tensor]:
    """What the dictionary predicts for heads, and what is so, within windows of N keys: weights (..., T, T) → (...) each.

    `exponent` γ has the head's mean of ln r, over queries; `law`, `profile` and `within` are the variances of ln r of that power law,
    of the mean weights, and in one query, averaged; `predicted` is −γ times the first of them, `response` how fast the mean of
    ln r really changes if the head's scores are multiplied by a number near 1: formula ch22-head. `law entropy`,
    `profile entropy` and `entropy` are the entropies of the same three, in nats.
    """
    rows = windows(weights, N).double()  # (..., queries, N)
    p = rows / rows.sum(dim=-1, keepdim=True)
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()
    mean = p @ log_r  # (..., queries)
    within = p @ log_r.square() - mean.square()
    gamma = fit_exponent(mean.mean(dim=-1), N)
    law = cumulants(gamma, N)[..., 1]
    return {
        "exponent": gamma,
        "law": law,
        "profile": within.mean(dim=-1) + mean.var(dim=-1, correction=0),  # formula ch22-blend
        "within": within.mean(dim=-1),
        "predicted": -gamma * law,
        "response": response(p.log(), log_r).mean(dim=-1),
        "law entropy": entropy(gamma, N),
        "profile entropy": torch.special.entr(p.mean(dim=-2)).sum(dim=-1),
        "entropy": torch.special.entr(p).sum(dim=-1).mean(dim=-1),
    }
