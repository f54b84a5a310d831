"""High-dimensional geometry and similarity: chapter f06.

Cosine and distance, what chance does to them in d dimensions, search by inner product, and the AUC that judges a measure.
Vectors are rows.
"""

import math

import torch

__all__ = ["auc", "chance_cosine", "cosine", "cosine_density", "effective_dimension", "euclid", "mips", "soft_mips"]


def cosine(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """⟨u, v⟩ / (‖u‖ ‖v‖), formula f06-cosine.

    Each vector is divided by its length first, so that no product of lengths overflows.

    Args:
        u, v: (..., d), of shapes that broadcast.

    Returns:
        (...) between −1 and 1, up to a rounding.

    Raises:
        ValueError: if a vector is zero, which has no direction.
    """
    return (_unit(u) * _unit(v)).sum(dim=-1)


def euclid(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """‖u − v‖, formula f06-euclid.

    Args:
        u, v: (..., d), of shapes that broadcast.

    Returns:
        (...).
    """
    return torch.linalg.vector_norm(u - v, dim=-1)


def cosine_density(cosines: torch.Tensor, d: int) -> torch.Tensor:
    """Density of the cosine of two independent random directions in d dimensions, formula f06-density.

    Args:
        cosines: (...), strictly between −1 and 1.
        d: dimension, at least 2.

    Raises:
        ValueError: if `d` is less than 2.
    """
    if d < 2:
        raise ValueError(f"one dimension has two directions and no density: d must be at least 2, got {d}")
    log_constant = math.lgamma(d / 2) - math.lgamma((d - 1) / 2) - math.log(math.pi) / 2
    return ((d - 3) / 2 * torch.log1p(-(cosines**2)) + log_constant).exp()


def chance_cosine(d: float, n: int = 1, risk: float = 0.05) -> float:
    """The cosine that the best of n random directions exceeds with a probability of at most `risk`, formula f06-search.

    Args:
        d: dimension. With an effective dimension below d the bound is an estimate, not a promise.
        n: number of candidates.
        risk: between 0 and 1.

    Returns:
        A number that may exceed 1: then the bound says nothing.

    Raises:
        ValueError: if an argument is outside its range.

    Source: Ball (1997), An Elementary Introduction to Modern Convex Geometry, for the tail of one cosine.
    """
    if not (d > 0 and n >= 1 and 0 < risk < 1):
        raise ValueError(f"d > 0, n ≥ 1 and 0 < risk < 1 are needed, got {d}, {n} and {risk}")
    return math.sqrt(2 * math.log(n / risk) / d)


def effective_dimension(variances: torch.Tensor) -> torch.Tensor:
    """(Σ λ_i)² / Σ λ_i², formula f06-deff.

    Args:
        variances: (..., d) variances λ_i of uncorrelated coordinates, not all zero.

    Returns:
        (...) between 1 and d.

    Raises:
        ValueError: if a variance is negative or all are zero.
    """
    if (variances < 0).any() or (variances.sum(dim=-1) == 0).any():
        raise ValueError("variances are not negative, and at least one is positive")
    return variances.sum(dim=-1) ** 2 / (variances**2).sum(dim=-1)


def mips(query: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """Maximum inner product search by brute force, formula f06-mips.

    Args:
        query: (..., d).
        vectors: (N, d), the same for all queries.

    Returns:
        (...) int64, the row with the largest inner product; the first of equals.
    """
    return (query @ vectors.T).argmax(dim=-1)  # (..., N) before the search


def soft_mips(query: torch.Tensor, vectors: torch.Tensor, tau: float = 1.0) -> torch.Tensor:
    """Σ_j softmax(⟨q, v_j⟩/τ) v_j: an average that leans towards the best, as far as formula f06-gap says.

    Args:
        query: (..., d).
        vectors: (N, d).
        tau: temperature, positive.

    Returns:
        (..., d).

    Raises:
        ValueError: if `tau` is not positive.
    """
    if not tau > 0:
        raise ValueError(f"the temperature must be positive, got {tau}; for tau → 0 use mips")
    return torch.softmax(query @ vectors.T / tau, dim=-1) @ vectors  # (..., N) @ (N, d)


def auc(related: torch.Tensor, unrelated: torch.Tensor) -> float:
    """P(a related pair scores higher than an unrelated one), a tie counting half: formula f06-auc.

    Args:
        related, unrelated: (n,) and (m,) scores; higher means more alike.

    Raises:
        ValueError: if one of them is empty or has a nan.

    Source: Hanley and McNeil (1982), The Meaning and Use of the Area under a ROC Curve.
    """
    if not (len(related) and len(unrelated)) or related.isnan().any() or unrelated.isnan().any():
        raise ValueError("both lists need at least one score, and none may be nan")
    order = unrelated.sort().values  # (m,)
    below = torch.searchsorted(order, related.contiguous())  # (n,): unrelated scores that are lower
    not_above = torch.searchsorted(order, related.contiguous(), right=True)
    return float((below + not_above).double().mean()) / (2 * len(unrelated))


def _unit(v: torch.Tensor) -> torch.Tensor:
    """v / ‖v‖, (..., d)."""
    length = torch.linalg.vector_norm(v, dim=-1, keepdim=True)  # (..., 1)
    if (length == 0).any():
        raise ValueError("the zero vector has no direction, so no cosine: leave such rows out")
    return v / length
