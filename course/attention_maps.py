"""Reading attention maps, and what they do not say, heads found by a score and its null, tokens and heads removed: chapter ch13.

Shapes: B texts of T tokens, L layers, H heads.

Source: Xiao et al. (2023), Efficient Streaming Language Models with Attention Sinks, for the sink; Kobayashi et al. (2020), Attention
is Not Only a Weight, for the length of what a weight brings; Nichols and Holmes (2002), Nonparametric Permutation Tests for
Functional Neuroimaging, for the null of a maximum.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle

from course.data import HERE
from course.model import GPT
from course.multi_head import causal_weights

__all__ = [
    "FIRST",
    "QUERIES",
    "KeptMaps",
    "all_maps",
    "distance_profile",
    "even_mass",
    "head_averages",
    "head_score",
    "hooked",
    "kept_maps",
    "look",
    "loss_without",
    "mean_by_distance",
    "mean_by_position",
    "other_targets",
    "p_of_maximum",
    "previous_targets",
    "ranks_agree",
    "sink_mass",
    "swap_effects",
    "token_effects",
]

# ---------------------------------------------------------------- the maps

FIRST = 4  # keys that are left out of a profile of distances: what they get is largely a matter of place
QUERIES = 0.6  # from where on queries are counted, as a share of T: each has every distance up to there


@contextmanager
def hooked(hooks: Iterable[RemovableHandle]) -> Iterator[None]:
    """Take these hooks of a model away at the end, whatever happens."""
    handles = list(hooks)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def look(model: GPT, ids: Tensor, see: Callable[[int, Tensor, Tensor], None]) -> Tensor:
    """Run a model and show the attention weights of each layer as it goes: ids (B, T) → logits (B, T, V).

    Args:
        see: is called with the layer's number, its weights (B, H, T, T), rows that sum to one, and the stream that the
            layer's block reads, (B, T, d_model).
    """
    streams: dict[int, Tensor] = {}

    def hook(layer: int):
        def before(attention, given):
            x, positions, *_ = given
            query, key, _ = attention.project(x, positions)
            key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)  # (B, H, T, d_head)
            see(layer, causal_weights(query, key), streams.pop(layer))

        return before

    def stream(layer: int):
        return lambda block, given: streams.__setitem__(layer, given[0])

    hooks = [block.register_forward_pre_hook(stream(i)) for i, block in enumerate(model.blocks)]
    hooks += [block.attention.register_forward_pre_hook(hook(i)) for i, block in enumerate(model.blocks)]
    with hooked(hooks):
        return model(ids)


@torch.no_grad()
def all_maps(model: GPT, ids: Tensor) -> Tensor:
    """The maps of all heads, formula ch13-maps: ids (B, T) → (L, B, H, T, T)."""
    found: list[Tensor] = []
    look(model, ids, lambda layer, weights, stream: found.append(weights))
    return torch.stack(found)


@dataclass(frozen=True)
class KeptMaps:
    """The maps of all heads of a trained model on one sentence, each weight rounded to a multiple of 1/255."""

    tokens: list[str]
    weights: Tensor  # (L, H, T, T)


@cache
def kept_maps() -> KeptMaps:
    """The maps that ship with the course, of the trained model on one sentence; `experiments/attention_maps.py` writes them."""
    with np.load(HERE / "head_maps.npz") as kept:
        lower, tokens = torch.from_numpy(kept["lower"]), kept["tokens"].tolist()  # (L, H, T (T + 1) / 2) bytes
    rows, columns = torch.tril_indices(len(tokens), len(tokens))
    weights = torch.zeros(*lower.shape[:2], len(tokens), len(tokens))
    weights[..., rows, columns] = lower / 255
    return KeptMaps(tokens, weights)


# ---------------------------------------------------------------- the first token


def sink_mass(weights: Tensor, start: int = 1) -> Tensor:
    """Mean weight on the first token, formula ch13-sink, over the queries from `start` on: weights (..., T, T) → (...).

    Raises:
        ValueError: if there is no such query.
    """
    if not 0 <= start < weights.shape[-2]:
        raise ValueError(f"{weights.shape[-2]} queries have none from {start} on")
    return weights[..., start:, 0].mean(dim=-1)


def even_mass(T: int, start: int = 1) -> float:
    """What `sink_mass` is if each of T tokens spreads its weight evenly over those it sees, formula ch13-even."""
    return math.fsum(1 / (i + 1) for i in range(start, T)) / (T - start)


# ---------------------------------------------------------------- position and distance


def mean_by_position(weights: Tensor) -> Tensor:
    """Mean weight on each key over the queries that may see it: causal weights (..., T, T) → (..., T)."""
    T = weights.shape[-1]
    return weights.sum(dim=-2) / torch.arange(T, 0, -1, device=weights.device)


def mean_by_distance(weights: Tensor) -> Tensor:
    """Mean weight at each distance over all queries that have a key there: causal weights (..., T, T) → (..., T).

    Far keys are seen by late queries alone, so its slope is partly the mask's: `distance_profile` is not bent.
    """
    T = weights.shape[-1]
    return torch.stack([weights.diagonal(-r, -2, -1).mean(dim=-1) for r in range(T)], dim=-1)


def distance_profile(weights: Tensor, first: int = FIRST, start: float = QUERIES) -> Tensor:
    """Mean weight at each distance: weights (..., T, T) → (..., D + 1), for distances 0 … D.

    Only queries from `start` · T on are counted, and no key before `first`: so each distance up to D is seen by every query that
    counts, and the mean over them is not bent by the causal mask.

    Formula ch13-profile.

    Raises:
        ValueError: if T is too small for a distance of 1.
    """
    T = weights.shape[-1]
    queries = torch.arange(math.ceil(start * T), T)
    D = int(queries[0]) - first if len(queries) else 0
    if D < 1:
        raise ValueError(
            f"{T} tokens are too few for a profile from query {math.ceil(start * T)} on, without the first {first} keys"
        )
    keys = queries[:, None] - torch.arange(D + 1)  # (queries, D + 1)
    return weights[..., queries[:, None], keys].mean(dim=-2)


# ---------------------------------------------------------------- heads found by a score


def previous_targets(T: int) -> Tensor:
    """The token before each, and −1 for the first, which has none: (T,)."""
    return torch.arange(-1, T - 1)


def head_score(weights: Tensor, targets: Tensor) -> Tensor:
    """Mean weight on one target for each query, formula ch13-score.

    Args:
        weights: (..., T, T).
        targets: (T,), or (R, T) for R patterns: the key that query i should look at, −1 where there is none.

    Returns:
        (...), or (R, ...).
    """
    if targets.ndim == 2:
        return torch.stack([head_score(weights, each) for each in targets])
    (queries,) = (targets >= 0).nonzero(as_tuple=True)
    return weights[..., queries, targets[queries]].mean(dim=-1)


def other_targets(targets: Tensor, R: int, generator: torch.Generator, near: int | None = None) -> Tensor:
    """R patterns that could have been asked for instead: targets (T,) → (R, T).

    A query that has a target gets a key at random, any of those before it, or one of the `near` last; all heads are scored
    on the same patterns, which keeps what they have in common.
    """
    T = len(targets)
    reach = torch.arange(T) if near is None else torch.arange(T).clamp_max(near)  # how many keys each query may be given
    back = 1 + (torch.rand(R, T, generator=generator) * reach).long()  # (R, T)
    return torch.where(targets >= 0, torch.arange(T) - back, -1)


def p_of_maximum(scores: Tensor, null: Tensor) -> Tensor:
    """How often chance gives any head a score as high, formula ch13-max-null: scores (N,), null (R, N) → (N,)."""
    best = null.amax(dim=-1)  # (R,)
    return (1 + (best[:, None] >= scores).sum(dim=0)) / (len(null) + 1)


# ---------------------------------------------------------------- removed


def token_effects(weights: Tensor, value: Tensor, W_o: Tensor) -> Tensor:
    """How far a head's addition to the stream moves if one value alone becomes the mean value, formula ch13-effect.

    weights (..., T) of one query, value (..., T, d_head), W_o (d_head, d_model), the rows that the head meets → (..., T).
    """
    moved = (value - value.mean(dim=-2, keepdim=True)) @ W_o  # (..., T, d_model)
    return weights * moved.norm(dim=-1)


@torch.no_grad()
def swap_effects(model: GPT, ids: Tensor, pool: Tensor, swaps: int, generator: torch.Generator) -> Tensor:
    """How far the prediction after the last token moves when one token alone is another: ids (T,) → (T,), in nats.

    The mean over `swaps` tokens drawn from `pool` (n,) of the Kullback-Leibler divergence from the prediction on the text as it is. Now and
    then a draw is the token that was there, and changes nothing.
    """
    T, places = len(ids), torch.arange(len(ids), device=ids.device)
    told = model(ids[None])[0, -1].log_softmax(dim=-1)  # (V,)
    moved = torch.zeros(T, device=ids.device)
    for _ in range(swaps):
        swapped = ids.repeat(T, 1)  # (T, T): row j is to have another token j
        swapped[places, places] = pool[torch.randint(len(pool), (T,), generator=generator)]
        after = model(swapped)[:, -1].log_softmax(dim=-1)  # (T, V)
        moved += (told.exp() * (told - after)).sum(dim=-1)
    return moved / swaps


def ranks_agree(a: Tensor, b: Tensor) -> float:
    """Spearman's rank correlation of a (n,) and b (n,), without ties: formula ch13-ranks."""
    ranks = torch.stack([each.argsort().argsort().double() for each in (a, b)])  # (2, n)
    return round(float(torch.corrcoef(ranks)[0, 1]), 6)


@torch.no_grad()
def head_averages(model: GPT, ids: Tensor) -> Tensor:
    """What each head says on average over texts and places, before the output projection: ids (B, T) → (L, H, d_head)."""
    found: list[Tensor] = []

    def keep(out, given):
        found.append(given[0].unflatten(-1, (model.config.n_heads, -1)).mean(dim=(0, 1)))

    with hooked(block.attention.out.register_forward_pre_hook(keep) for block in model.blocks):
        model(ids)
    return torch.stack(found)


@torch.no_grad()
def loss_without(model: GPT, ids: Tensor, heads: list[tuple[int, int]], averages: Tensor, first: int = 0) -> Tensor:
    """Mean loss of each text, in nats a token after place `first`, with some heads saying only their average: ids (B, T) → (B,).

    heads are pairs of layer and head, averages (L, H, d_head) of `head_averages`.
    """

    def edit(layer: int):
        def before(out, given):
            said = given[0].unflatten(-1, (model.config.n_heads, -1)).clone()  # (B, T, H, d_head)
            for where, head in heads:
                if where == layer:
                    said[:, :, head] = averages[layer, head]
            return (said.flatten(-2),)

        return before

    with hooked(model.blocks[i].attention.out.register_forward_pre_hook(edit(i)) for i in sorted({layer for layer, _ in heads})):
        logits = model(ids[:, :-1])[:, first:].float()  # (B, T − 1 − first, V)
    return F.cross_entropy(logits.transpose(1, 2), ids[:, first + 1 :], reduction="none").mean(dim=-1)
