"""Residuals and normalisation: chapter ch07.

The two norms and their backward passes, where a norm stands in a block, and what depth does to gradients and to the
differences between tokens. Row vectors: a layer computes ``x @ W``.

The experiments run R random models side by side: the stream is (R, B, T, d_model), and each matrix is (R, 1, n_in, n_out).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = [
    "cloud",
    "gradient_norms",
    "layer_norm",
    "layer_norm_backward",
    "parts_of",
    "post_block",
    "pre_block",
    "random_blocks",
    "rank_residual",
    "rms_norm",
    "rms_norm_backward",
    "skip_share",
    "streams",
]

EPS = 1e-5


# ---------------------------------------------------------------- the two norms


def rms_norm(x: Tensor, weight: Tensor | float = 1.0, eps: float = EPS) -> Tensor:
    """Each row divided by its root mean square, times the gain: formula ch07-rmsnorm.

    The module of the course's GPT, which also takes half precision, is `course.model.RMSNorm`.

    Args:
        x: (..., d_model).
        weight: the gain w, (d_model,) or a number.

    Returns:
        (..., d_model).

    Source: Zhang and Sennrich (2019), Root Mean Square Layer Normalization, equation 4.
    """
    size = (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()  # (..., 1)
    return x / size * weight


def layer_norm(x: Tensor, weight: Tensor | float = 1.0, bias: Tensor | float = 0.0, eps: float = EPS) -> Tensor:
    """Each row less its mean, divided by its standard deviation, times the gain, plus the offset: formula ch07-layernorm.

    That is the RMS norm of the centred row, plus the offset. The variance divides by d_model, not by d_model − 1.

    Args:
        x: (..., d_model).
        weight, bias: the gain w and the offset b, (d_model,) or numbers.

    Returns:
        (..., d_model).

    Source: Ba, Kiros and Hinton (2016), Layer Normalization.
    """
    return rms_norm(x - x.mean(dim=-1, keepdim=True), weight, eps) + bias


def rms_norm_backward(x: Tensor, weight: Tensor, grad_out: Tensor, eps: float = EPS) -> tuple[Tensor, Tensor]:
    """Gradients of a loss in x and in the gain, without autograd: formula ch07-backward.

    Args:
        x, grad_out: (..., d_model); grad_out is the gradient in the result of `rms_norm`.
        weight: (d_model,).

    Returns:
        G_x (..., d_model) and G_w (d_model,).
    """
    size = (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()  # (..., 1)
    u = x / size  # (..., d_model)
    grad_u = grad_out * weight
    along = (grad_u * u).mean(dim=-1, keepdim=True)  # (..., 1)
    return (grad_u - along * u) / size, (grad_out * u).flatten(0, -2).sum(dim=0)


def layer_norm_backward(x: Tensor, weight: Tensor, grad_out: Tensor, eps: float = EPS) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of a loss in x, the gain and the offset: that of the RMS norm of the centred row, centred.

    Args:
        x, grad_out: (..., d_model).
        weight: (d_model,).

    Returns:
        G_x (..., d_model), G_w (d_model,) and G_b (d_model,).
    """
    grad, grad_weight = rms_norm_backward(x - x.mean(dim=-1, keepdim=True), weight, grad_out, eps)
    return grad - grad.mean(dim=-1, keepdim=True), grad_weight, grad_out.flatten(0, -2).sum(dim=0)


# ---------------------------------------------------------------- where the norm stands


def pre_block(x: Tensor, branches: list[Callable], norm: Callable) -> Tensor:
    """x + F(norm(x)) for each branch F in its turn: the norm is in the branch. Formula ch07-pre.

    A model of such blocks needs one more norm after the last one.
    """
    for branch in branches:
        x = x + branch(norm(x))
    return x


def post_block(x: Tensor, branches: list[Callable], norm: Callable) -> Tensor:
    """norm(x + F(x)) for each branch F in its turn: the norm is on the stream. Formula ch07-post."""
    for branch in branches:
        x = norm(x + branch(x))
    return x


def skip_share(n: int, s2: float, placement: str) -> float:
    """What n additions leave of a signal on the skip path alone, forwards and backwards: formula ch07-skip.

    Args:
        n: number of branches, two a block.
        s2: second moment of what a branch adds, uncorrelated with the stream, if it reads one of size 1.
        placement: "pre", with the norm after the last block, or "post".

    Raises:
        ValueError: if the placement is another.
    """
    if placement not in ("pre", "post"):
        raise ValueError(f"placement must be 'pre' or 'post', got {placement!r}")
    return 1 / math.sqrt(1 + n * s2) if placement == "pre" else (1 + s2) ** (-n / 2)


# ---------------------------------------------------------------- random models


def random_blocks(L: int, d_model: int, seeds: list[int], dtype: torch.dtype = torch.float32) -> list[dict[str, Tensor]]:
    """The matrices of L blocks for R random models: one head of attention, and a ReLU network four times as wide.

    Their variance keeps the second moment from layer to layer (chapter f05): 1/n_in, and 2/n_in after a ReLU.

    Returns:
        for each block W_q, W_k, W_v, W_o (R, 1, d_model, d_model), W_1 (R, 1, d_model, 4 d_model) and W_2 back.
    """
    shapes = dict.fromkeys(("W_q", "W_k", "W_v", "W_o"), (d_model, d_model))
    shapes |= {"W_1": (d_model, 4 * d_model), "W_2": (4 * d_model, d_model)}
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def fill(name: str, shape: tuple[int, int]) -> Tensor:
        std = math.sqrt((2 if name == "W_2" else 1) / shape[0])
        drawn = [torch.randn(1, *shape, generator=g, dtype=torch.float64) for g in generators]
        return (std * torch.stack(drawn)).to(dtype)  # (R, 1, n_in, n_out)

    return [{name: fill(name, shape) for name, shape in shapes.items()} for _ in range(L)]


def parts_of(p: dict[str, Tensor], causal: bool = False) -> list[Callable]:
    """The two branches of a block from its matrices p, (R, 1, n_in, n_out) each: attention with one head, and the feed-forward
    network; both take and give (R, B, T, d_model)."""

    def attention(x: Tensor) -> Tensor:
        query, key, value = (x @ p[name] for name in ("W_q", "W_k", "W_v"))  # (R, B, T, d_model)
        return F.scaled_dot_product_attention(query, key, value, is_causal=causal) @ p["W_o"]

    def ffn(x: Tensor) -> Tensor:
        return (x @ p["W_1"]).relu() @ p["W_2"]

    return [attention, ffn]


def streams(
    x: Tensor,
    blocks: list[dict[str, Tensor]],
    placement: str = "pre",
    skip: bool = True,
    ffn: bool = True,
    causal: bool = False,
) -> list[Tensor]:
    """The stream before the first block and after each: L + 1 tensors (R, B, T, d_model).

    Args:
        x: (R, B, T, d_model), what goes into the first block.
        blocks: the matrices of each, as `random_blocks` gives them.
        placement: of the norm: "pre", "post" or "none".
        skip: whether a branch is added to the stream or replaces it.
        ffn: whether blocks have a feed-forward network, or attention only.
        causal: whether a token sees no later one.

    Raises:
        ValueError: if the placement is another.
    """
    if placement not in ("pre", "post", "none"):
        raise ValueError(f"placement must be 'pre', 'post' or 'none', got {placement!r}")
    found = [x]
    for p in blocks:
        for branch in parts_of(p, causal)[: 1 + ffn]:
            added = branch(rms_norm(x) if placement == "pre" else x)
            x = x + added if skip else added
            x = rms_norm(x) if placement == "post" else x
        found.append(x)
    return found


def gradient_norms(placement: str, L: int, seeds: list[int], d_model: int = 32, B: int = 4, T: int = 16, V: int = 32) -> Tensor:
    """Norm of the loss's gradient in W_2 of each block, for random models, inputs and targets: (R, L).

    The loss is the cross-entropy of V classes, by a random head; pre-norm models have a norm in front of it.
    """
    blocks = random_blocks(L, d_model, seeds)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(len(seeds), B, T, d_model, generator=generator)
    head = torch.randn(len(seeds), 1, d_model, V, generator=generator) / math.sqrt(d_model)
    target = torch.randint(V, (len(seeds), B, T), generator=generator)
    into = [p["W_2"].requires_grad_() for p in blocks]
    out = streams(x, blocks, placement)[-1]  # (R, B, T, d_model)
    logits = (rms_norm(out) if placement == "pre" else out) @ head  # (R, B, T, V)
    losses = F.cross_entropy(logits.flatten(0, 2), target.flatten(), reduction="none")
    grads = torch.autograd.grad(losses.sum() / (B * T), into)
    return torch.stack([g.flatten(1).norm(dim=1) for g in grads], dim=1)


# ---------------------------------------------------------------- do tokens stay different?


def rank_residual(x: Tensor) -> Tensor:
    """How far the rows are from being equal: ‖X − 1 X̄‖ / ‖X‖ in Frobenius norms, 0 for equal rows. Formula ch07-residual.

    Args:
        x: (..., T, d_model), not all zero.

    Returns:
        (...), between 0 and 1.

    Source: Dong, Cordonnier and Loukas (2021), who use another norm and do not divide.
    """
    apart = x - x.mean(dim=-2, keepdim=True)  # (..., T, d_model)
    return apart.flatten(-2).norm(dim=-1) / x.flatten(-2).norm(dim=-1)


def cloud(depth: int, skip: bool, placement: str, causal: bool = False) -> list[list[list[float]]]:
    """Six tokens in the plane before and after each of `depth` layers of attention, for the figure to play with.

    Scores are the inner products of the tokens over √2; layer l turns its values by l · 137.5 degrees.

    Returns:
        depth + 1 lists of six points.
    """
    angles = torch.tensor([0.1, 0.8, 1.9, 3.0, 4.0, 5.5], dtype=torch.float64)
    lengths = torch.tensor([1.5, 0.9, 1.2, 1.6, 0.8, 1.3], dtype=torch.float64)
    x = torch.stack([lengths * angles.cos(), lengths * angles.sin()], dim=1)  # (6, 2)
    found = [x]
    for layer in range(1, depth + 1):
        turn = math.radians(137.5 * layer)
        W_v = torch.tensor([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]], dtype=torch.float64)
        h = rms_norm(x) if placement == "pre" else x
        added = F.scaled_dot_product_attention(h, h, h @ W_v, is_causal=causal)  # (6, 2)
        x = x + added if skip else added
        x = rms_norm(x) if placement == "post" else x
        found.append(x)
    return [points.tolist() for points in found]
