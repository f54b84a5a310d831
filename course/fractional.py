"""Walks with long jumps, the symbol of a kernel, and attention over depth as a walk back through the text: chapter ch23.

A kernel p gives the probability of each distance; a walk jumps by such distances. `gamma` is the exponent of p(r) ∝ r^−γ and
α = γ − 1 its Lévy index, which means something for 1 < γ < 3 alone. Shapes: W texts, L layers, n places.
"""

import math

import torch
from torch import Tensor

from course.attention_maps import FIRST, QUERIES
from course.data import interval
from course.phase_polylog import polylog

__all__ = [
    "SHARE",
    "contraction",
    "crossover",
    "depth_test",
    "distance_law",
    "growth",
    "in_range",
    "jumps",
    "levy_walk",
    "planted",
    "ratios",
    "reached",
    "rollout",
    "small_k",
    "spread",
    "symbol",
    "walk_matrix",
    "without_first",
]

SHARE = 0.5  # of the stream that a layer's attention is given in a rollout; the rest is what stays

# ---------------------------------------------------------------- jumps and walks


def jumps(gamma: float, shape: tuple[int, ...], generator: torch.Generator, N: float = math.inf) -> Tensor:
    """Lengths from 1 to N with density ∝ r^−γ, by inverting their distribution: → float64 of any shape that is asked for.

    Raises:
        ValueError: if N is not above 1, or is infinite although γ is at most 1 and the density has no finite sum.
    """
    if not N > 1 or (math.isinf(N) and gamma <= 1):
        raise ValueError(f"lengths from 1 to {N} with exponent {gamma} have no distribution: give N above 1, finite where γ ≤ 1")
    u = torch.rand(shape, generator=generator, dtype=torch.float64)
    if gamma == 1:
        return N**u
    power = 1 - gamma
    return (1 + u * (N**power - 1)) ** (1 / power)


def levy_walk(gamma: float, n: int, walks: int, generator: torch.Generator, N: float = math.inf) -> Tensor:
    """Places after each of n jumps of `jumps` to either side: → (walks, n). Above γ = 3 their median distance grows as Brownian motion's.

    Raises:
        ValueError: as `jumps` does.
    """
    sides = torch.randint(2, (walks, n), generator=generator) * 2.0 - 1
    return (sides * jumps(gamma, (walks, n), generator, N)).cumsum(dim=1)


def growth(places: Tensor, at: list[int]) -> float:
    """The exponent with which the median distance from the start grows: places (walks, n), numbers of jumps `at` → slope.

    Least squares through the logarithms. A median, since a mean of squares need not exist: formula ch23-limit.
    """
    reach = torch.stack([places[:, n - 1].abs().median() for n in at]).log()
    steps = torch.tensor(at, dtype=torch.float64).log()
    steps, reach = steps - steps.mean(), reach - reach.mean()
    return float((steps * reach).sum() / steps.square().sum())


def crossover(gamma: float, N: float) -> float:
    """The number of jumps around which a cut-off at N comes to be felt, N^(γ−1); the change is gradual: formula ch23-cross.

    Raises:
        ValueError: if γ is not between 1 and 3.
    """
    in_range(gamma, strict=True)
    return N ** (gamma - 1)


def in_range(gamma: float, strict: bool = False) -> bool:
    """Whether α = γ − 1 is a Lévy index, 0 < α < 2: formula ch23-range.

    Raises:
        ValueError: if it is not, and `strict` is set.
    """
    inside = 1 < gamma < 3
    if strict and not inside:
        raise ValueError(f"γ = {gamma} gives α = {gamma - 1:g}, which is no Lévy index: 1 < γ < 3 is needed")
    return inside


# ---------------------------------------------------------------- the symbol


def symbol(p: Tensor, k: Tensor, first: int = 0) -> Tensor:
    """The symbol of a kernel, formula ch23-symbol: p (..., R) at the distances `first`, first + 1, …, and k (K,) → (..., K) complex128."""
    turns = torch.outer(torch.arange(first, first + p.shape[-1], dtype=torch.float64), k.double())  # (R, K)
    return p.to(torch.complex128) @ torch.polar(torch.ones_like(turns), turns)


def small_k(gamma: float) -> float:
    """The constant c of 1 − p̂(k) ≈ c |k|^(γ−1), p ∝ |r|^−γ at all whole r but 0: formula ch23-small.

    Raises:
        ValueError: if γ is not between 1 and 3.
    """
    in_range(gamma, strict=True)
    alpha = gamma - 1
    return math.pi / (2 * math.gamma(gamma) * math.sin(math.pi * alpha / 2) * float(polylog(gamma, 1.0)))


# ---------------------------------------------------------------- layers


def contraction(P: Tensor) -> Tensor:
    """Half of the largest L1 distance of two rows, 0 to 1, formula ch23-contract: P (..., n, n) → (...).

    A layer shrinks the difference between the largest and the smallest of the numbers that it averages to this factor of it, or less.
    """
    return torch.stack([(row[..., None, :] - P).abs().sum(dim=-1).amax(dim=-1) for row in P.unbind(dim=-2)]).amax(dim=0) / 2


def without_first(maps: Tensor, first: int = FIRST) -> Tensor:
    """Maps without the first keys and queries, rows summing to one again: maps (..., T, T) → (..., T − first, T − first)."""
    left = maps[..., first:, first:]
    return left / left.sum(dim=-1, keepdim=True)


def rollout(maps: Tensor, share: float = SHARE) -> Tensor:
    """Where a walk from each place is after the highest layer, the two highest, …: maps (..., L, n, n) → (..., L, n, n).

    In each layer it stays with probability 1 − share and else jumps to a key by the layer's weights; formula ch23-rollout.

    Source: Abnar and Zuidema (2020), Quantifying Attention Flow in Transformers, section 3.
    """
    now, found = torch.eye(maps.shape[-1], dtype=maps.dtype, device=maps.device), []
    for layer in maps.flip(-3).unbind(dim=-3):
        now = (1 - share) * now + share * (now @ layer)
        found.append(now)
    return torch.stack(found, dim=-3)


def spread(P: Tensor, start: int) -> Tensor:
    """Standard deviation of the distance walked back, over all walks from place `start` on: P (..., n, n) → (...)."""
    back = (torch.arange(start, P.shape[-1])[:, None] - torch.arange(P.shape[-1])).to(P.dtype)  # (queries, n)
    mean, square = ((P[..., start:, :] * back**k).sum(dim=-1).mean(dim=-1) for k in (1, 2))
    return (square - mean.square()).sqrt()


def distance_law(maps: Tensor, steps: int = 200) -> Tensor:
    """The likeliest law of the distance alone: maps (..., n, n), causal → (..., n), which sums to one.

    Query i is to look r back with probability g(r) over the sum of g(0) … g(i). With g repeatedly set to the total weight at r over the sum of
    1 / (g(0) + … + g(i)) of the queries that have it, the weight at each distance over all queries becomes that of the maps.
    """
    total = torch.stack([maps.diagonal(-r, -2, -1).sum(dim=-1) for r in range(maps.shape[-1])], dim=-1)  # (..., n)
    g = torch.full_like(total, 1 / total.shape[-1])
    for _ in range(steps):
        g = total / (1 / g.cumsum(dim=-1)).flip(-1).cumsum(dim=-1).flip(-1)
        g = g / g.sum(dim=-1, keepdim=True)
    return g


def walk_matrix(law: Tensor) -> Tensor:
    """A law of distances as a causal row-stochastic matrix: each row is cut where the text begins, law (..., n) → (..., n, n)."""
    n = law.shape[-1]
    back = torch.arange(n)[:, None] - torch.arange(n)
    weights = law[..., back.clamp_min(0)].tril()
    return weights / weights.sum(dim=-1, keepdim=True)


def reached(P: Tensor, start: int) -> Tensor:
    """On how many keys walks end, 1 / Σ m_j² for the shares m of those from place `start` on that end at j: P (..., n, n) → (...)."""
    return 1 / P[..., start:, :].mean(dim=-2).square().sum(dim=-1)


def depth_test(maps: Tensor, share: float = SHARE, first: int = FIRST, start: float = QUERIES) -> dict[str, list]:
    """Attention over depth against walks with independent jumps: maps (W, L, T, T), mean over heads, of W texts.

    By number of layers from the highest down, (L,), or (L, W) where there is one for each text: `measured`, the spread; `null`, that of
    jumps which depend on nothing but the distance law of their layer, cut where the text begins; `other`, of walks whose every layer
    reads another text; `open`, the root of the summed variances, as if a text had no beginning; `wall`, the null's weight on the first
    place; `keys` and `keys of other`, on how many keys the walks end. Queries are those from `start` · T on, without the `first` keys.
    """
    kept = without_first(maps.double(), first)
    W, L, n = kept.shape[:3]
    q = math.ceil(start * maps.shape[-1]) - first
    law = walk_matrix(distance_law(kept.mean(dim=0)))  # (L, n, n)
    mixed = torch.stack([kept[(w + torch.arange(L)) % W, torch.arange(L)] for w in range(W)])  # (W, L, n, n)
    alone = spread((1 - share) * torch.eye(n, dtype=torch.float64) + share * law, q)  # (L,)
    walk, measured, other = (rollout(each, share) for each in (law, kept, mixed))
    return {
        "measured": spread(measured, q).T.tolist(),
        "null": spread(walk, q).tolist(),
        "other": spread(other, q).T.tolist(),
        "open": alone.flip(0).square().cumsum(0).sqrt().tolist(),
        "wall": walk[:, q:, 0].mean(dim=-1).tolist(),
        "keys": reached(measured, q).T.tolist(),
        "keys of other": reached(other, q).T.tolist(),
    }


def ratios(found: dict[str, list], of: str = "measured", to: str = "null") -> list[tuple[float, float]]:
    """By number of layers, the mean over texts of one entry of `depth_test` over another, and the half width of its 95% interval."""
    above, below = torch.tensor(found[of]), torch.tensor(found[to])  # (L, W), (L,) or (L, W)
    return [interval(row.tolist()) for row in above / (below if below.ndim == 2 else below[:, None])]


def planted(maps: Tensor, far: float, alike: float, generator: torch.Generator, anew: bool = False) -> Tensor:
    """Maps in which half of the tokens look farther than before, by (r + 1)^far, the others nearer, and each prefers its own kind by e^(2 alike).

    maps (W, L, T, T) → the same shape. A token has one kind in all layers, so that jumps depend on each other: a long one is followed
    by a long one. With `anew` the kinds are drawn for each layer, and nothing ties the layers.
    """
    W, L, T = maps.shape[:3]
    kind = 2.0 * torch.randint(2, (W, L if anew else 1, T), generator=generator) - 1
    kind = kind.expand(W, L, T).double()
    back = (torch.arange(T)[:, None] - torch.arange(T)).clamp_min(0).double() + 1
    tilt = far * kind[..., :, None] * back.log() + alike * kind[..., :, None] * kind[..., None, :]  # (W, L, T, T)
    weights = maps.double() * tilt.exp()
    return weights / weights.sum(dim=-1, keepdim=True)
