"""Feed-forward networks: the reference code of chapter ch06.

Row vectors throughout: a layer computes ``x @ W``. The gated network inside a model is `course.model.FeedForward`.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

__all__ = [
    "ACTIVATIONS",
    "edit_rank1",
    "experts",
    "ffn",
    "ffn_params",
    "gelu",
    "gelu_sigmoid",
    "gelu_tanh",
    "moved",
    "plant",
    "related",
    "relu_cosine",
    "silu",
    "swiglu",
]

# ---------------------------------------------------------------- activation functions


def gelu(x: Tensor) -> Tensor:
    """x Φ(x), formula ch06-gelu: x times the probability that a standard normal number is below x."""
    return x * 0.5 * torch.erfc(-x / math.sqrt(2))  # erfc keeps its digits in the left tail, 1 + erf does not


def gelu_tanh(x: Tensor) -> Tensor:
    """The approximation of `gelu` by tanh, formula ch06-gelu-tanh: GPT-2's. x (...) → (...)."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_sigmoid(x: Tensor) -> Tensor:
    """The approximation of `gelu` by the sigmoid, formula ch06-gelu-sigmoid: x (...) → (...)."""
    return x * torch.sigmoid(1.702 * x)


def silu(x: Tensor) -> Tensor:
    """x times the sigmoid of x, formula ch06-silu; also called swish. x (...) → (...)."""
    return x * torch.sigmoid(x)


ACTIVATIONS = {"ReLU": torch.relu, "GELU": gelu, "GELU by tanh": gelu_tanh, "GELU by sigmoid": gelu_sigmoid, "SiLU": silu}


# ---------------------------------------------------------------- the network


def ffn(x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor, sigma: Callable = gelu) -> Tensor:
    """σ(x W1 + b1) W2 + b2, formulas ch06-ffn and ch06-gelu-ffn: each row of x by itself.

    Args:
        x: (..., d_model)
        W1: (d_model, d_ff), b1: (d_ff,), W2: (d_ff, d_model), b2: (d_model,)
        sigma: the activation function, from a tensor to one of the same shape.

    Raises:
        RuntimeError: by torch, if the shapes do not fit.
    """
    return sigma(x @ W1 + b1) @ W2 + b2  # (..., d_ff), then (..., d_model)


def swiglu(x: Tensor, W_gate: Tensor, W_up: Tensor, W_down: Tensor) -> Tensor:
    """(swish(x W_gate) ⊙ x W_up) W_down, formula ch06-swiglu.

    Args:
        x: (..., d_model)
        W_gate, W_up: (d_model, d_ff), W_down: (d_ff, d_model)

    Raises:
        RuntimeError: by torch, if the shapes do not fit.

    Source: Shazeer (2020), GLU Variants Improve Transformer, equation 6.
    """
    return (silu(x @ W_gate) * (x @ W_up)) @ W_down


def experts(x: Tensor, W_router: Tensor, networks: list[Callable], k: int) -> Tensor:
    """A mixture of experts, formula ch06-experts: each row goes through the k networks with the largest router logits.

    Args:
        x: (T, d_model), W_router: (d_model, n_experts)
        networks: the experts, each from (N, d_model) to (N, d_model).
        k: how many of them a row goes through.

    Raises:
        RuntimeError: by torch, if k is larger than n_experts.

    Source: Shazeer, Mirhoseini, Maziarz, Davis, Le, Hinton and Dean (2017), Outrageously Large Neural Networks, section 2.1.
    """
    logits, chosen = (x @ W_router).topk(k, dim=-1)  # (T, k) each
    shares, out = logits.softmax(dim=-1), torch.zeros_like(x)
    for i, network in enumerate(networks):
        rows, place = (chosen == i).nonzero(as_tuple=True)
        out = out.index_add(0, rows, shares[rows, place, None] * network(x[rows]))  # (T, d_model)
    return out


def ffn_params(d_model: int, d_ff: int, gated: bool = False, bias: bool = False) -> int:
    """How many numbers the matrices hold, with their biases if there are any: formula ch06-count.

    Raises:
        ValueError: if a width is not positive.
    """
    if min(d_model, d_ff) < 1:
        raise ValueError(f"widths must be at least 1, got d_model = {d_model}, d_ff = {d_ff}")
    outwards = 2 if gated else 1  # matrices from d_model to d_ff
    biases = outwards * d_ff + d_model if bias else 0
    return (outwards + 1) * d_model * d_ff + biases


# ---------------------------------------------------------------- memory


def plant(
    x: Tensor, answers: Tensor, d_ff: int, generator: torch.Generator, sigma: Callable = torch.relu
) -> tuple[Tensor, Tensor]:
    """A network without biases that maps each row of x to its row of answers: W1 at random, W2 by least squares.

    Args:
        x: (N, d_model), answers: (N, d_out), both float64.

    Returns:
        W1 (d_model, d_ff) of independent normal numbers with variance 1 / d_model, and the smallest W2 (d_ff, d_out).

    Raises:
        ValueError: if there are more facts than hidden units, so that not all of them can be met exactly.
    """
    if len(x) > d_ff:
        raise ValueError(f"{len(x)} facts do not fit {d_ff} hidden units exactly")
    d_model = x.shape[1]
    W1 = torch.randn(d_model, d_ff, generator=generator, dtype=x.dtype) / math.sqrt(d_model)
    return W1, torch.linalg.pinv(sigma(x @ W1)) @ answers  # (d_ff, d_out)


def edit_rank1(W2: Tensor, h: Tensor, target: Tensor, others: Tensor | None = None) -> Tensor:
    """The smallest change of W2 after which h is answered by target, and each row of others as before: ch06-edit.

    Args:
        W2: (d_ff, d_out), h: (d_ff,), target: (d_out,)
        others: (M, d_ff) hidden rows, M < d_ff, of which h is no combination; none by default.

    Returns:
        A new matrix (d_ff, d_out) that differs from W2 by one of rank one.

    Raises:
        ValueError: if h is 0 or a combination of the others: then no such change exists.
    """
    u = h
    if others is not None and len(others):
        u = h - torch.linalg.lstsq(others.T, h[:, None]).solution[:, 0] @ others  # the part that no other row has
    if float(u.norm()) <= 1e-6 * max(float(h.norm()), torch.finfo(h.dtype).tiny):
        raise ValueError("the hidden row is 0 or a combination of the others: its answer cannot change while theirs stay")
    return W2 + torch.outer(u, target - h @ W2) / (u @ h)


def moved(W2: Tensor, edited: Tensor, h: Tensor, rows: Tensor) -> Tensor:
    """How far the answers of rows (M, d_ff) moved, as shares of how far that of h (d_ff,) did: (M,).

    W2 (d_ff, d_out) is the matrix before it was edited, edited (d_ff, d_out) the one after.
    """
    change = edited - W2  # (d_ff, d_out)
    return (rows @ change).norm(dim=-1) / (h @ change).norm()


def related(n: int, d: int, cosine: float, generator: torch.Generator) -> Tensor:
    """n random directions in d dimensions, any two at the given cosine on average: (n, d) float64, rows of length √d.

    Each is a common direction and one of its own, mixed. The cosine is between 0 and 1.
    """
    common, own = (torch.randn(k, d, generator=generator, dtype=torch.float64) for k in (1, n))
    x = math.sqrt(cosine) * common + math.sqrt(1 - cosine) * own
    return math.sqrt(d) * x / x.norm(dim=-1, keepdim=True)


def relu_cosine(cosine: float) -> float:
    """The cosine of two ReLU hidden rows, very wide and of random weights, whose inputs have this one: ch06-arc-cosine.

    Source: Cho and Saul (2009), Kernel Methods for Deep Learning, section 2.2, the kernel of order 1.
    """
    angle = math.acos(cosine)
    return (math.sin(angle) + (math.pi - angle) * cosine) / math.pi
