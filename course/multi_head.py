"""Multi-head attention, what each head adds, what heads cost, and how a head is scored and removed: chapter ch05.

Shapes: B sequences of T tokens, H heads of width d_head = d_model / H. Row vectors: a layer computes ``x @ W``.

Source: Vaswani et al. (2017), Attention Is All You Need, section 3.2.2, for the formula; Olsson et al. (2022), In-context
Learning and Induction Heads, for the induction pattern; Michel et al. (2019), Are Sixteen Heads Really Better than One?,
for the removal of heads.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = [
    "Heads",
    "HeadsOnly",
    "causal_weights",
    "descend",
    "head_ablation",
    "head_means",
    "head_parts",
    "induction_score",
    "merge_heads",
    "mha",
    "mha_cost",
    "next_token_loss",
    "previous_score",
    "said_twice",
    "split_heads",
    "without",
]

# ---------------------------------------------------------------- the formula


def split_heads(x: Tensor, H: int) -> Tensor:
    """Cut the last axis into H heads: x (..., T, H · d_head) → (..., H, T, d_head).

    Raises:
        ValueError: if H does not divide the width.
    """
    if H < 1 or x.shape[-1] % H:
        raise ValueError(f"{H} heads do not divide a width of {x.shape[-1]}")
    return x.unflatten(-1, (H, -1)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """The heads side by side again, the inverse of `split_heads`: x (..., H, T, d_head) → (..., T, H · d_head)."""
    return x.transpose(-3, -2).flatten(-2)


def causal_weights(query: Tensor, key: Tensor) -> Tensor:
    """Attention weights in which no token reads a later one: query, key (..., T, d_head) → (..., T, T), rows sum to one."""
    T = query.shape[-2]
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (..., T, T)
    future = torch.ones(T, T, dtype=torch.bool, device=query.device).triu(1)
    return scores.masked_fill(future, -math.inf).softmax(dim=-1)


def mha(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, H: int) -> Tensor:
    """Causal multi-head self-attention: x (..., T, d_model) → (..., T, d_model). W_q, W_k, W_v, W_o (d_model, d_model).

    Raises:
        ValueError: if H does not divide d_model.
    """
    query, key, value = (split_heads(x @ W, H) for W in (W_q, W_k, W_v))  # (..., H, T, d_head)
    return merge_heads(causal_weights(query, key) @ value) @ W_o


def head_parts(x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, H: int) -> Tensor:
    """What each head adds to the result of `mha`: (..., H, T, d_model); their sum over the heads is that result.

    x (..., T, d_model); W_q, W_k, W_v, W_o (d_model, d_model).

    Raises:
        ValueError: if H does not divide d_model.
    """
    query, key, value = (split_heads(x @ W, H) for W in (W_q, W_k, W_v))  # (..., H, T, d_head)
    rows = W_o.unflatten(0, (H, -1))  # (H, d_head, d_model): the rows of W_o that head h meets
    return causal_weights(query, key) @ value @ rows


def mha_cost(T: int, d_model: int, H: int) -> dict[str, int]:
    """What one layer of multi-head self-attention costs for one sequence of T tokens, without biases.

    Returns:
        "d_head"; "parameters" of the four matrices; "products", the multiplications of all matrix products, every pair
        of tokens counted; "weights", how many attention weights there are, and exponentials to take.

    Raises:
        ValueError: if a size is less than 1 or H does not divide d_model.
    """
    if min(T, d_model, H) < 1 or d_model % H:
        raise ValueError(f"{H} heads do not divide a width of {d_model}, or a size is less than 1")
    projections, d_head = 4 * d_model**2, d_model // H
    products = T * projections + 2 * H * T**2 * d_head  # scores and averages
    return {"d_head": d_head, "parameters": projections, "products": products, "weights": H * T**2}


# ---------------------------------------------------------------- a model that is nothing but heads


class Heads(nn.Module):
    """One layer of causal multi-head attention: (B, T, d_model) → (B, T, d_model), no biases."""

    def __init__(self, d_model: int, H: int):
        super().__init__()
        self.H = H
        self.query, self.key, self.value, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def weights(self, x: Tensor) -> Tensor:
        """The attention weights of each head: x (B, T, d_model) → (B, H, T, T)."""
        return causal_weights(split_heads(self.query(x), self.H), split_heads(self.key(x), self.H))

    def forward(self, x: Tensor, edit: Callable | None = None) -> Tensor:
        """x (B, T, d_model) → (B, T, d_model). `edit` may change the heads' outputs, (B, H, T, d_head), before they are joined."""
        mixed = self.weights(x) @ split_heads(self.value(x), self.H)  # (B, H, T, d_head)
        return self.out(merge_heads(mixed if edit is None else edit(mixed)))


class HeadsOnly(nn.Module):
    """ids (B, T) → logits (B, T, V): a vector for each token plus one for each place, layers of heads, logits.

    Each layer adds its result to the vectors. No norms, no feed-forward networks.
    """

    def __init__(self, V: int, n_layers: int, H: int, d_model: int, T_max: int):
        super().__init__()
        self.token, self.place = nn.Embedding(V, d_model), nn.Embedding(T_max, d_model)
        self.layers = nn.ModuleList(Heads(d_model, H) for _ in range(n_layers))
        self.logits = nn.Linear(d_model, V, bias=False)

    def forward(self, ids: Tensor, edit: Callable | None = None) -> Tensor:
        """ids (B, T) → logits (B, T, V). `edit(layer, mixed)` gets each layer's number and its heads' outputs, and returns
        what takes their place."""
        x = self.token(ids) + self.place.weight[: ids.shape[1]]  # (B, T, d_model)
        for number, layer in enumerate(self.layers):
            x = x + layer(x, edit and (lambda mixed, number=number: edit(number, mixed)))
        return self.logits(x)

    @torch.no_grad()
    def maps(self, ids: Tensor) -> Tensor:
        """The attention weights of all heads: ids (B, T) → (n_layers, B, H, T, T)."""
        x, found = self.token(ids) + self.place.weight[: ids.shape[1]], []
        for layer in self.layers:
            found.append(layer.weights(x))
            x = x + layer(x)
        return torch.stack(found)


def next_token_loss(model: nn.Module, ids: Tensor, first: int = 0, edit: Callable | None = None) -> Tensor:
    """Mean cross-entropy in nats of the tokens after place `first`, each predicted from those before it. ids (B, T)."""
    logits = model(ids[:, :-1], edit)[:, first:]  # (B, T − 1 − first, V)
    return F.cross_entropy(logits.flatten(0, 1), ids[:, first + 1 :].flatten())


def descend(model: nn.Module, loss: Callable, steps: int, lr: float) -> list[float]:
    """Adam on `loss()`, which draws its own batch; the rate rises for 50 steps and falls to zero in the last third."""
    optimiser, found = torch.optim.Adam(model.parameters(), lr=lr), []
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = lr * min(1.0, (step + 1) / 50, 3 * (steps - step) / steps)
        now = loss()
        optimiser.zero_grad()
        now.backward()
        optimiser.step()
        found.append(now.item())
    return found


# ---------------------------------------------------------------- the induction pattern


def said_twice(B: int, n: int, V: int, generator: torch.Generator, before: int = 0) -> Tensor:
    """`before` random tokens, then n others, then the same n again, all of a sequence distinct but for that: (B, before + 2n).

    Raises:
        ValueError: if V tokens are too few.
    """
    if n < 1 or before < 0 or before + n > V:
        raise ValueError(f"{before} + {n} distinct tokens are not to be had from {V}")
    tokens = torch.rand(B, V, generator=generator).argsort(dim=1)  # (B, V), a permutation in each row
    noise, said = tokens[:, n : n + before], tokens[:, :n]
    return torch.cat([noise, said, said], dim=1)


def induction_score(weights: Tensor, n: int, before: int = 0) -> Tensor:
    """How much of its attention a token said again pays to what followed it the first time, on average.

    weights (..., T, T) on sequences of `said_twice`; of the n tokens said again the last has no follower. Returns (...).

    Raises:
        ValueError: if n is less than 2, or T is not before + 2n.
    """
    if n < 2 or weights.shape[-1] != before + 2 * n:
        raise ValueError(f"before + 2n is {before + 2 * n} (n at least 2), the weights are for {weights.shape[-1]} tokens")
    first = torch.arange(before, before + n - 1)  # where a token with a follower is the first time
    return weights[..., first + n, first + 1].mean(dim=-1)


def previous_score(weights: Tensor) -> Tensor:
    """How much of its attention a token pays to the one before it, on average: weights (..., T, T) → (...)."""
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=-1)


# ---------------------------------------------------------------- heads removed


@torch.no_grad()
def head_means(model: HeadsOnly, ids: Tensor) -> list[Tensor]:
    """Each head's mean output over sequences and places: ids (B, T) → (H, d_head) a layer."""
    means = []

    def keep(layer: int, mixed: Tensor) -> Tensor:
        means.append(mixed.mean(dim=(0, 2)))  # (H, d_head)
        return mixed

    model(ids, keep)
    return means


def without(heads: list[tuple[int, int]], means: list[Tensor] | None = None) -> Callable:
    """An `edit` for `HeadsOnly` that removes heads, given as (layer, head): by zeros, or by the means of `head_means`."""

    def edit(layer: int, mixed: Tensor) -> Tensor:
        mixed = mixed.clone()
        for where, head in heads:
            if where == layer:
                mixed[:, head] = 0.0 if means is None else means[layer][head]
        return mixed

    return edit


@torch.no_grad()
def head_ablation(model: HeadsOnly, ids: Tensor, first: int = 0, means: list[Tensor] | None = None) -> Tensor:
    """By how many nats the loss rises when one head alone is removed, by zeros or by `means`: ids (B, T) → (n_layers, H)."""
    intact = next_token_loss(model, ids, first)
    rise = [
        [next_token_loss(model, ids, first, without([(layer, head)], means)) - intact for head in range(each.H)]
        for layer, each in enumerate(model.layers)
    ]
    return torch.tensor(rise)
