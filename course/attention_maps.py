"""Reading attention maps: the reference code of ch13.

Shapes: B texts of T tokens, L layers, H heads.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from course.model import GPT
from course.multi_head import causal_weights

__all__ = ["FIRST", "QUERIES", "distance_profile", "look"]

FIRST = 4  # keys that are left out of a profile of distances: what they get is a matter of place, not of distance
QUERIES = 0.6  # from where on queries are counted, as a share of T: each has every distance up to there


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
    try:
        return model(ids)
    finally:
        for each in hooks:
            each.remove()


def distance_profile(weights: Tensor, first: int = FIRST, start: float = QUERIES) -> Tensor:
    """Mean weight at each distance: weights (..., T, T) → (..., D + 1), for distances 0 … D.

    Only queries from `start` · T on are counted, and no key before `first`: so each distance up to D is seen by every query that
    counts, and the mean over them is not bent by the causal mask.

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
