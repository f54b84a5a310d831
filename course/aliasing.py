"""Which distances the pairs of RoPE tell apart, alone and together, and what a base does to a trained model: chapter ch14.

A distance r has one code for all: the angles ω_i r of the pairs i < d_head / 2, like the hands of a wall of clocks.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from course.model import GPT, Config
from course.multi_head import descend
from course.position_rope import rope, rope_frequencies, wavelengths

__all__ = [
    "TASKS",
    "WIDTH",
    "abel_bound",
    "base_for",
    "code_distance",
    "copy_batch",
    "copy_model",
    "count_active",
    "distance_scores",
    "key_peaking_at",
    "lookup_batch",
    "n_active",
    "nearest_gap",
    "t_cross",
    "t_max",
    "task_loss",
    "trained",
]

WIDTH = 16  # d_head of the small models
VALUES, KEYS = 8, 32  # of the task `lookup_batch`


# ---------------------------------------------------------------- codes


def code_distance(gap: Tensor, omega: Tensor) -> Tensor:
    """Root mean square chord of the pairs' hands, 0 to 2, between two distances that differ by `gap`; formula ch14-code.

    gap (...), omega (n,) frequencies → (...) float64. It depends on r and r' through r − r' only.
    """
    total = torch.zeros(gap.shape, dtype=torch.float64)
    for speed in omega.tolist():  # one pair at a time: a million gaps need no matrix
        total += (2 * (gap.double() * (speed / 2)).sin()).square()
    return (total / len(omega)).sqrt()


def nearest_gap(N: int, omega: Tensor) -> tuple[int, float]:
    """The gap from 1 to N whose two codes are nearest, and their distance: the best look-alike among the distances 0 … N.

    omega (n,) are the frequencies of the pairs that count.

    Raises:
        ValueError: if N is below 1.
    """
    if N < 1:
        raise ValueError(f"two distances are needed, so N must be at least 1, got {N}")
    apart = code_distance(torch.arange(1, N + 1), omega)
    best = int(apart.argmin())
    return best + 1, float(apart[best])


# ---------------------------------------------------------------- scales


def t_cross(theta: float) -> float:
    """2π√θ: the distance at which half of the pairs have made a turn; formula ch14-cross."""
    return 2 * math.pi * math.sqrt(theta)


def t_max(theta: float) -> float:
    """2πθ: where the line of `n_active` reaches zero; the slowest pair has made its turn before; formula ch14-max."""
    return 2 * math.pi * theta


def n_active(r: Tensor, d_head: int, theta: float = 10_000.0) -> Tensor:
    """About how many pairs have not made a turn at distance r, as a line in log r, from 0 to d_head / 2; formula ch14-active.

    r (...) positive → (...) float64.

    Raises:
        ValueError: if theta is not above 1, for then all pairs turn at one speed or faster than the first.
    """
    if not theta > 1:
        raise ValueError(f"the base must be above 1, got {theta}")
    line = d_head / 2 * (1 - (r.double() / (2 * math.pi)).log() / math.log(theta))
    return line.clamp(0, d_head / 2)


def count_active(r: Tensor, d_head: int, theta: float = 10_000.0) -> Tensor:
    """How many pairs have a wavelength of r or more: r (...) → (...) int64, less than 1 below `n_active`."""
    return (wavelengths(d_head, theta) >= r.double()[..., None]).sum(dim=-1)


def base_for(length: float, n: int, d_head: int) -> float:
    """The least base, 1 or more, with which n pairs of a head have a wavelength of `length` or more; formula ch14-base.

    Raises:
        ValueError: if no base does: pair 0 turns in 2π positions whatever the base.
    """
    if not 0 <= n <= d_head // 2:
        raise ValueError(f"a head of width {d_head} has {d_head // 2} pairs, got n = {n}")
    turns = length / (2 * math.pi)
    if n == 0 or turns <= 1:
        return 1.0
    if n == d_head // 2:
        raise ValueError(f"pair 0 turns in 2π positions with any base, and so not all {n} pairs last for {length}")
    return turns ** (d_head / (d_head - 2 * n))


# ---------------------------------------------------------------- scores over distance


def distance_scores(query: Tensor, key: Tensor, distances: Tensor, theta: float = 10_000.0) -> Tensor:
    """The product of one query and one key as a function of how far the key lies before the query: formula ch14-score.

    query, key (d_head,) not yet turned, distances (D,) → (D,), half-split layout, without 1/√d_head.
    """
    turned = rope(query.expand(len(distances), -1), distances, theta)  # (D, d_head)
    return turned @ key


def key_peaking_at(query: Tensor, r: int, theta: float = 10_000.0) -> Tensor:
    """The key of the query's length whose score with it is largest at distance r: the query turned ahead by r; formula ch14-peak.

    query (d_head,) → (d_head,). No other distance scores more, and none as much unless all pairs with a length line up again.
    """
    return rope(query[None], torch.tensor([r], device=query.device), theta)[0]


def abel_bound(query: Tensor, key: Tensor, distances: Tensor, theta: float = 10_000.0) -> Tensor:
    """What no score at that distance exceeds, by summation by parts; formula ch14-bound.

    query, key (d_head,), distances (D,) → (D,) float64: the largest step between the products of neighbouring pairs, the one
    after the last being 0, times the sum of |E_i|, the partial sums of the turns.

    Source: Su et al. (2021), RoFormer: Enhanced Transformer with Rotary Position Embedding, section 3.4.3.
    """
    q, k = (torch.complex(*each.double().chunk(2, dim=-1)) for each in (query, key))  # (d_head / 2,) each
    products = torch.cat([q * k.conj(), torch.zeros(1, dtype=torch.complex128)])
    angles = distances.double()[:, None] * rope_frequencies(len(query), theta)  # (D, d_head / 2)
    partial = torch.polar(torch.ones_like(angles), angles).cumsum(dim=-1)
    return products.diff().abs().max() * partial.abs().sum(dim=-1)


# ---------------------------------------------------------------- two tasks for small models


def copy_batch(B: int, generator: torch.Generator, T: int = 64, back: int = 10) -> tuple[Tensor, Tensor]:
    """Random tokens; the answer at each place is the token `back` places before, and −100 where there is none.

    → ids (B, T) and answers (B, T). Only the distance says where to look.
    """
    ids = torch.randint(VALUES, (B, T), generator=generator)
    return ids, torch.cat([torch.full((B, back), -100), ids[:, :-back]], dim=1)


def lookup_batch(B: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """32 facts, a key and its value as one token, in any order, then the 32 keys in another: the answer at a key is its value.

    → ids (B, 64) and answers (B, 64), −100 at the facts. Only the content says where to look, at any distance from 1 to 63; but
    naming the commonest of the 32 values, without looking anything up, is right in 22 %.
    """
    keys = torch.rand(B, KEYS, generator=generator).argsort(dim=1)
    values = torch.randint(VALUES, (B, KEYS), generator=generator)
    order = torch.rand(B, KEYS, generator=generator).argsort(dim=1)
    ids = torch.cat([keys * VALUES + values, keys.gather(1, order) + KEYS * VALUES], dim=1)
    return ids, torch.cat([torch.full((B, KEYS), -100), values.gather(1, order)], dim=1)


TASKS = {"copy": (copy_batch, VALUES), "lookup": (lookup_batch, KEYS * VALUES + KEYS)}
"""By name: what draws a batch, and the size of the vocabulary."""


def task_loss(model: GPT, ids: Tensor, answers: Tensor) -> Tensor:
    """Cross-entropy over the values at the places that have an answer: ids (B, T), answers (B, T) with −100 elsewhere → ()."""
    return F.cross_entropy(model(ids)[..., :VALUES].flatten(0, 1), answers.flatten(), ignore_index=-100)


def trained(task: str, theta: float, seed: int, steps: int, B: int = 16, heads: int = 2, device: str = "cpu") -> GPT:
    """One layer of attention and its feed-forward network, trained on a task of `TASKS` with this base.

    The seed draws the first weights and the batches, so that two bases with one seed begin alike and read the same.
    """
    batch, V = TASKS[task]
    torch.manual_seed(seed)
    model = GPT(Config(V=V, d_model=32, n_layers=1, n_heads=heads, head_width=WIDTH, theta=theta)).to(device)
    generator = torch.Generator().manual_seed(1_000 + seed)
    descend(model, lambda: task_loss(model, *(each.to(device) for each in batch(B, generator))), steps, lr=5e-3)
    return model


def copy_model(theta: float, seed: int = 0, steps: int = 200) -> GPT:
    """A small model of one head that was trained to copy what is ten places back."""
    return trained("copy", theta, seed, steps, heads=1)
