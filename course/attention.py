"""Scaled dot-product attention, its backward pass, and what can be measured on it: chapter ch04.

Shapes: T queries, S keys and values, any number of leading dimensions `...` (batch, heads).

Source: Vaswani et al. (2017), Attention Is All You Need, section 3.2.1, equation 1.
"""

import math

import torch
from torch import Tensor

__all__ = ["attention", "attention_backward", "attention_weights", "contribution", "entropy_of_weights", "std_of_scores"]


def attention_weights(query: Tensor, key: Tensor) -> Tensor:
    """How each query spreads its attention over the keys: softmax(QKᵀ/√d_k), each row sums to one.

    Args:
        query: (..., T, d_k).
        key: (..., S, d_k).

    Returns:
        (..., T, S).

    Raises:
        ValueError: if the widths of query and key differ; project both to the same d_k.
    """
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query has width {query.shape[-1]}, key {key.shape[-1]}: project both to the same d_k")
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (..., T, S)
    return scores.softmax(dim=-1)  # over the keys


def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """For each query the average of the values, weighted by how well its keys match.

    Args:
        query: (..., T, d_k).
        key: (..., S, d_k).
        value: (..., S, d_v).

    Returns:
        (..., T, d_v).

    Raises:
        ValueError: if the widths of query and key, or the numbers of keys and values, differ.
    """
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"there are {key.shape[-2]} keys and {value.shape[-2]} values: each key needs its value")
    return attention_weights(query, key) @ value  # (..., T, d_v)


def attention_backward(query: Tensor, key: Tensor, value: Tensor, grad_output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of a loss with respect to query, key and value, without autograd.

    Args:
        query, key, value: as for `attention`.
        grad_output: (..., T, d_v), the gradient of the loss with respect to the output.

    Returns:
        G_Q (..., T, d_k), G_K (..., S, d_k), G_V (..., S, d_v).

    Raises:
        ValueError: if grad_output has not the shape of the output.
    """
    weights = attention_weights(query, key)  # (..., T, S)
    if grad_output.shape[-2:] != (query.shape[-2], value.shape[-1]):
        raise ValueError(f"grad_output must end in {(query.shape[-2], value.shape[-1])}, not {tuple(grad_output.shape[-2:])}")
    grad_value = weights.mT @ grad_output  # (..., S, d_v)
    grad_weights = grad_output @ value.mT  # (..., T, S)
    mean = (weights * grad_weights).sum(dim=-1, keepdim=True)  # (..., T, 1)
    grad_scores = weights * (grad_weights - mean)  # (..., T, S), the softmax Jacobian of each row
    scale = 1 / math.sqrt(query.shape[-1])
    return grad_scores @ key * scale, grad_scores.mT @ query * scale, grad_value


def entropy_of_weights(weights: Tensor) -> Tensor:
    """The entropy of each row in nats: 0 for one key only, ln S for all S keys alike.

    Args:
        weights: (..., S), rows that sum to one.

    Returns:
        (...).

    Raises:
        ValueError: if a weight is negative.
    """
    if (weights < 0).any():
        raise ValueError("weights must not be negative: give the softmax of the scores")
    return torch.special.entr(weights).sum(dim=-1)  # entr(p) = −p ln p, and 0 at p = 0


def std_of_scores(
    d_k: int, scaled: bool, *, mean: float = 0.0, std: float = 1.0, pairs: int = 4000, generator: torch.Generator | None = None
) -> float:
    """The measured standard deviation of q·k over random pairs with independent normal entries.

    Args:
        d_k: width of query and key.
        scaled: whether the score is divided by √d_k.
        mean, std: of the entries.
        pairs: how many independent pairs are drawn.
        generator: for reproducible draws.

    Raises:
        ValueError: if d_k is less than 1 or pairs less than 2.
    """
    if d_k < 1 or pairs < 2:
        raise ValueError(f"d_k must be at least 1 and pairs at least 2, got {d_k} and {pairs}")
    query = mean + std * torch.randn(pairs, d_k, generator=generator)  # (pairs, d_k)
    key = mean + std * torch.randn(pairs, d_k, generator=generator)  # (pairs, d_k)
    scores = (query * key).sum(dim=-1)  # (pairs,)
    return (scores / math.sqrt(d_k) if scaled else scores).std().item()


def contribution(weights: Tensor, value: Tensor) -> Tensor:
    """The length of what each key adds to each output, ‖α_ij v_j‖.

    Args:
        weights: (..., T, S).
        value: (..., S, d_v).

    Returns:
        (..., T, S).

    Raises:
        ValueError: if there are not as many weights in a row as values.

    Source: Kobayashi et al. (2020), Attention is Not Only a Weight.
    """
    if weights.shape[-1] != value.shape[-2]:
        raise ValueError(f"{weights.shape[-1]} weights in a row, {value.shape[-2]} values: each weight needs its value")
    return weights * value.norm(dim=-1).unsqueeze(-2)  # (..., T, S) * (..., 1, S)
