"""Position: sinusoids, rotations (RoPE), linear biases (ALiBi), buckets (T5), and attention without any: chapter ch08.

Row vectors throughout: a token is a row, so the rotation R acts as ``x @ R.T``.
"""

import math
from collections.abc import Callable
from functools import cache

import torch
from torch import nn
from torch.nn import functional as F

__all__ = [
    "SCHEMES",
    "Attention",
    "Block",
    "PositionModel",
    "alibi_bias",
    "alibi_slopes",
    "equivariance_gap",
    "last_token_gap",
    "layout_permutation",
    "rope",
    "rope_frequencies",
    "rope_matrix",
    "self_attention",
    "sinusoid",
    "sinusoid_offset",
    "t5_bias",
    "t5_bucket",
    "wavelengths",
]

SCHEMES = ("none", "sinusoidal", "learned", "rope", "alibi", "t5")

# ---------------------------------------------------------------- order


def self_attention(
    x: torch.Tensor, W_q: torch.Tensor, W_k: torch.Tensor, W_v: torch.Tensor, causal: bool = False
) -> torch.Tensor:
    """One attention layer of one head that knows nothing of position.

    x (..., T, d_model), W_q and W_k (d_model, d_head), W_v (d_model, d_v) → (..., T, d_v).
    """
    query, key, value = x @ W_q, x @ W_k, x @ W_v  # (..., T, d_head) twice, (..., T, d_v)
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (..., T, T)
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    return scores.softmax(dim=-1) @ value  # (..., T, d_v)


def equivariance_gap(f: Callable, x: torch.Tensor, permutation: torch.Tensor) -> float:
    """max |f(Px) − P f(x)|: zero when permuting the tokens only permutes the outputs. x (T, d_model).

    Raises:
        ValueError: if `permutation` is not one of the T rows of x.
    """
    _must_permute(permutation, len(x))
    return float((f(x[permutation]) - f(x)[permutation]).abs().max())


def last_token_gap(f: Callable, x: torch.Tensor, permutation: torch.Tensor) -> float:
    """How far the last output moves when the T − 1 tokens before it are permuted. x (T, d_model).

    Raises:
        ValueError: if `permutation` is not one of the first T − 1 rows of x.
    """
    _must_permute(permutation, len(x) - 1)
    moved = torch.cat([x[:-1][permutation], x[-1:]])  # (T, d_model)
    return float((f(moved)[-1] - f(x)[-1]).abs().max())


def _must_permute(permutation: torch.Tensor, n: int) -> None:
    if sorted(permutation.tolist()) != list(range(n)):
        raise ValueError(f"a permutation of 0 … {n - 1} was expected, got {permutation.tolist()}")


# ---------------------------------------------------------------- frequencies


def rope_frequencies(d_head: int, theta: float = 10_000.0) -> torch.Tensor:
    """ω_i = θ^(−2i/d_head), radians per position, (d_head / 2,) float64.

    `d_head` is the width that is rotated: that of one head.

    Raises:
        ValueError: if `d_head` is not a positive even number or `theta` is not above 0.

    Source: Su et al. (2021), RoFormer: Enhanced Transformer with Rotary Position Embedding, section 3.2.2.
    """
    if d_head < 2 or d_head % 2:
        raise ValueError(f"d_head must be even, got {d_head}: RoPE turns pairs of dimensions")
    if not theta > 0:
        raise ValueError(f"the base theta must be positive, got {theta}")
    return theta ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)


def wavelengths(d_head: int, theta: float = 10_000.0) -> torch.Tensor:
    """λ_i = 2π / ω_i: after how many positions pair i has made a full turn, (d_head / 2,) float64."""
    return 2 * math.pi / rope_frequencies(d_head, theta)


# ---------------------------------------------------------------- sinusoid


def sinusoid(positions: torch.Tensor, d_model: int, theta: float = 10_000.0) -> torch.Tensor:
    """PE(pos, 2i) = sin(pos·ω_i), PE(pos, 2i + 1) = cos(pos·ω_i). positions (T,) → (T, d_model) float64.

    It is added to the embedding, so its width is d_model.

    Source: Vaswani et al. (2017), Attention Is All You Need, section 3.5.
    """
    angles = positions.double()[:, None] * rope_frequencies(d_model, theta)  # (T, d_model / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)  # (T, d_model)


def sinusoid_offset(k: float, d_model: int, theta: float = 10_000.0) -> torch.Tensor:
    """M_k with PE(pos + k) = M_k PE(pos) for every pos: (d_model, d_model) float64, one 2 × 2 block a pair."""
    angles = k * rope_frequencies(d_model, theta)
    blocks = [torch.stack([torch.stack([a.cos(), a.sin()]), torch.stack([-a.sin(), a.cos()])]) for a in angles]
    return torch.block_diag(*blocks)


# ---------------------------------------------------------------- rotations


def rope_matrix(position: float, d_head: int, theta: float = 10_000.0) -> torch.Tensor:
    """R_m as a matrix, (d_head, d_head) float64: one 2 × 2 rotation by m·ω_i for each pair of neighbours.

    Slow, and meant to be looked at; `rope` does the same without the zeros.

    Source: Su et al. (2021), RoFormer: Enhanced Transformer with Rotary Position Embedding, equation 15.
    """
    angles = position * rope_frequencies(d_head, theta)
    blocks = [torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])]) for a in angles]
    return torch.block_diag(*blocks)


def rope(x: torch.Tensor, positions: torch.Tensor, theta: float = 10_000.0, layout: str = "half") -> torch.Tensor:
    """Rotate the queries or the keys of a head: x (..., T, d_head), positions (T,) → (..., T, d_head), dtype of x.

    layout "half": pair i is the dimensions i and i + d_head/2. "interleaved": 2i and 2i + 1.
    The angles are computed in float64, whatever the dtype of x.

    Raises:
        ValueError: if the layout is unknown, d_head odd, or the positions do not fit.
    """
    if layout not in ("half", "interleaved"):
        raise ValueError(f'layout must be "half" or "interleaved", got {layout!r}')
    if positions.shape != x.shape[-2:-1]:
        raise ValueError(f"one position for each of the {x.shape[-2]} tokens was expected, got shape {tuple(positions.shape)}")
    frequencies = rope_frequencies(x.shape[-1], theta).to(x.device)
    angles = positions.double()[:, None] * frequencies  # (T, d_head / 2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, dim=-1) if layout == "half" else (x[..., 0::2], x[..., 1::2])  # (..., T, d_head / 2) twice
    turned = (a * cos - b * sin, a * sin + b * cos)
    return torch.cat(turned, dim=-1) if layout == "half" else torch.stack(turned, dim=-1).flatten(-2)


def layout_permutation(d_head: int) -> torch.Tensor:
    """0, 2, 4, …, 1, 3, 5, …: ``x[..., layout_permutation(d)]`` puts interleaved pairs into half-split order: (d_head,).

    Raises:
        ValueError: if `d_head` is odd.
    """
    if d_head < 2 or d_head % 2:
        raise ValueError(f"d_head must be even, got {d_head}")
    return torch.cat([torch.arange(0, d_head, 2), torch.arange(1, d_head, 2)])


# ---------------------------------------------------------------- biases


def alibi_slopes(n_heads: int) -> torch.Tensor:
    """m_h = 2^(−8h/H) for h = 1 … H, (H,) float64.

    The authors' code uses another rule where H is not a power of two; this one is the paper's text.

    Raises:
        ValueError: if `n_heads` is not positive.

    Source: Press, Smith and Lewis (2022), Train Short, Test Long, section 3.
    """
    if n_heads < 1:
        raise ValueError(f"n_heads must be at least 1, got {n_heads}")
    return 2.0 ** (-8 * torch.arange(1, n_heads + 1, dtype=torch.float64) / n_heads)


def alibi_bias(n_heads: int, T: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """−m_h·(i − j) for j ≤ i and −∞ for the future, (H, T, T) float64: added to the scaled scores."""
    i = torch.arange(T, device=device)
    offset = (i[None, :] - i[:, None]).double()  # (T, T), j − i
    bias = alibi_slopes(n_heads).to(device)[:, None, None] * offset  # (H, T, T)
    return bias.masked_fill(offset > 0, -math.inf)


def t5_bucket(relative: torch.Tensor, n_buckets: int = 32, max_distance: int = 128, bidirectional: bool = False) -> torch.Tensor:
    """The bucket of each relative position j − i (key minus query): any shape of integers → int64.

    The rule is that of the published code: half of the buckets hold one distance each, the others grow by a constant factor up to `max_distance`, the last takes all that is
    beyond. One-sided, keys after the query are in bucket 0; two-sided, they have buckets of their own.

    Raises:
        ValueError: if there are too few buckets or `max_distance` is not above the single-distance part.

    Source: Raffel et al. (2020), Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer, section 2.1.
    """
    sides = 2 if bidirectional else 1
    n_side = n_buckets // sides
    exact = n_side // 2
    if exact < 1 or max_distance <= exact:
        raise ValueError(
            f"{n_buckets} buckets up to distance {max_distance} leave no room: use more buckets or a longer distance"
        )
    distance = relative.abs() if bidirectional else (-relative).clamp(min=0)
    edges = torch.tensor(_t5_edges(exact, n_side, max_distance), device=relative.device)  # first distance of each later bucket
    far = exact + torch.bucketize(distance, edges, right=True)
    bucket = torch.where(distance < exact, distance, far)
    return bucket + n_side * (relative > 0) if bidirectional else bucket


@cache
def _t5_edges(exact: int, n_side: int, max_distance: int) -> tuple[int, ...]:
    """The first distance of buckets exact + 1 … n_side − 1, in whole numbers: no logarithm is rounded.

    Bucket exact + s starts at the least n with (n / exact)^(n_side − exact) ≥ (max_distance / exact)^s.
    """
    steps, edges, n = n_side - exact, [], exact
    for s in range(1, steps):
        while n**steps * exact**s < max_distance**s * exact**steps:
            n += 1
        edges.append(n)
    return tuple(edges)


def t5_bias(table: torch.Tensor, T: int, max_distance: int = 128) -> torch.Tensor:
    """A learned number for each head and bucket: table (n_buckets, H) → (H, T, T), causal, −∞ for the future.

    It is added to query·key. T5 does not divide by √d_head.
    """
    i = torch.arange(T, device=table.device)
    bucket = t5_bucket(i[None, :] - i[:, None], len(table), max_distance)  # (T, T)
    bias = table[bucket].movedim(-1, 0)  # (H, T, T)
    return bias.masked_fill((i[None, :] > i[:, None]), -math.inf)


# ---------------------------------------------------------------- a small causal model, one position scheme each


class Attention(nn.Module):
    """Causal self-attention with H heads under one of `SCHEMES`. x (B, T, d_model) → (B, T, d_model)."""

    def __init__(self, d_model: int, n_heads: int, scheme: str, theta: float):
        super().__init__()
        self.n_heads, self.scheme, self.theta = n_heads, scheme, theta
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)
        self.table = nn.Parameter(torch.zeros(32, n_heads)) if scheme == "t5" else None
        if scheme == "t5":  # no 1/√d_head in the scores: the queries start smaller by that factor instead
            with torch.no_grad():
                self.qkv.weight[:d_model] /= math.sqrt(d_model // n_heads)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (B, T, d_model) → (B, T, d_model)."""
        B, T, d_model = x.shape
        query, key, value = self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)  # (B, H, T, d_head) each
        if self.scheme == "rope":
            positions = torch.arange(T, device=x.device)
            query, key = rope(query, positions, self.theta), rope(key, positions, self.theta)
        scale = 1.0 if self.scheme == "t5" else None
        bias = self.bias(T, x)  # (H, T, T) with the causal mask in it, or None
        mixed = F.scaled_dot_product_attention(query, key, value, bias, is_causal=bias is None, scale=scale)
        return self.out(mixed.transpose(1, 2).reshape(B, T, d_model))  # (B, T, d_model)

    def bias(self, T: int, x: torch.Tensor) -> torch.Tensor | None:
        """(H, T, T), on the device of x, for the schemes that add one to the scores; else None."""
        if self.scheme == "alibi":
            return alibi_bias(self.n_heads, T, x.device).to(x)
        return t5_bias(self.table, T).to(x) if self.scheme == "t5" else None


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, d_model: int, n_heads: int, scheme: str, theta: float):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = Attention(d_model, n_heads, scheme, theta)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (B, T, d_model) → (B, T, d_model)."""
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class PositionModel(nn.Module):
    """A small causal language model that differs from its siblings only in how it is told the order.

    ids (B, T) → logits (B, T, V). `T_max` is the size of the learned table.

    Raises:
        ValueError: if the scheme is none of `SCHEMES`, or d_model does not fit the heads.
    """

    def __init__(self, V: int, d_model: int, n_heads: int, n_layers: int, scheme: str, T_max: int, theta: float = 10_000.0):
        super().__init__()
        if scheme not in SCHEMES:
            raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}, got {scheme!r}")
        if d_model % (2 * n_heads):
            raise ValueError(f"d_model = {d_model} must be {n_heads} heads of even width")
        self.scheme = scheme
        self.embed = nn.Embedding(V, d_model)
        self.learned = nn.Embedding(T_max, d_model) if scheme == "learned" else None
        self.blocks = nn.ModuleList(Block(d_model, n_heads, scheme, theta) for _ in range(n_layers))
        self.norm, self.unembed = nn.LayerNorm(d_model), nn.Linear(d_model, V, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids (B, T) → logits (B, T, V)."""
        x = self.embed(ids)  # (B, T, d_model)
        positions = torch.arange(ids.shape[-1], device=ids.device)
        if self.scheme == "sinusoidal":
            x = x + sinusoid(positions.cpu(), x.shape[-1]).to(x)
        elif self.scheme == "learned":
            x = x + self.learned(positions)
        for block in self.blocks:
            x = block(x)
        return self.unembed(self.norm(x))  # (B, T, V)
