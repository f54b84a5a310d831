"""Training a language model: pairs from a text, the loss, what to compare it with, how to spend compute: chapter ch11."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course.optimisers_and_schedules import cosine
from course.softmax_and_cross_entropy import log_softmax

__all__ = [
    "IGNORED",
    "PUBLISHED",
    "REFIT",
    "Law",
    "bigram",
    "chinchilla_loss",
    "chinchilla_opt",
    "fit",
    "held_out_loss",
    "lm_loss",
    "make_pairs",
    "overlap",
    "perplexity",
    "unigram",
]

IGNORED = -100  # a target that does not count, as in torch's cross_entropy


# ---------------------------------------------------------------- pairs and loss


def make_pairs(ids: Tensor, T: int) -> tuple[Tensor, Tensor]:
    """Cut a text into windows of T: inputs, and as targets the same, one token later.

    Args:
        ids: (n,) integers.

    Returns:
        Inputs and targets, (⌊(n − 1) / T⌋, T) each. Every token but the first is a target at most once; what is left over is dropped.

    Raises:
        ValueError: if T is not positive or the text has no T + 1 tokens.
    """
    if T < 1 or len(ids) <= T:
        raise ValueError(f"a window of {T} needs {T + 1} tokens, the text has {len(ids)}")
    n = (len(ids) - 1) // T
    return ids[: n * T].reshape(n, T), ids[1 : n * T + 1].reshape(n, T)


def lm_loss(logits: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """−Σ ln p(target) over the positions that count, formula ch11-objective, or their mean; in nats.

    Args:
        logits: (..., V).
        targets: integers (...); −100 marks positions that do not count.
        reduction: "mean" or "sum".

    Raises:
        ValueError: if the reduction is unknown, or a mean is asked of no position.
    """
    if reduction not in ("mean", "sum"):
        raise ValueError(f'reduction must be "mean" or "sum", got {reduction!r}')
    counts = targets != IGNORED  # (...)
    if reduction == "mean" and not counts.any():
        raise ValueError("no position counts: all targets are −100")
    picked = log_softmax(logits).gather(-1, targets.where(counts, 0).unsqueeze(-1)).squeeze(-1)  # (...)
    total = -picked.where(counts, 0).sum()
    return total if reduction == "sum" else total / counts.sum()


def perplexity(nats: Tensor) -> float:
    """e to the mean of the tokens' −ln p, formula ch11-text-perplexity: nats (N,). It is infinite if a token had the probability 0.

    Raises:
        ValueError: if there is no token.
    """
    if not nats.numel():
        raise ValueError("no token, no perplexity")
    return float(nats.double().mean().exp())


# ---------------------------------------------------------------- what to compare with


def unigram(ids: Tensor, V: int) -> Tensor:
    """ln p of each token by its count, plus one: ids (N,) → (V,) in float64."""
    counts = torch.bincount(ids, minlength=V).double() + 1  # (V,)
    return (counts / counts.sum()).log()


def bigram(ids: Tensor, V: int) -> Tensor:
    """ln p of the next token, a row for each present one: ids (N,) → (V, V) in float64.

    The counts of pairs, plus one count a row that is shared out as `unigram` says.
    """
    pairs = torch.bincount(ids[:-1] * V + ids[1:], minlength=V * V).double().reshape(V, V)
    return ((pairs + unigram(ids, V).exp()) / (pairs.sum(dim=1, keepdim=True) + 1)).log()


def overlap(learned: Tensor, held: Tensor, n: int) -> float:
    """The share of the held-out runs of n tokens that occur in the training text too: learned (N,), held (M,).

    Raises:
        ValueError: if n is not positive or the held-out text has no run of n tokens.
    """
    if not 1 <= n <= len(held):
        raise ValueError(f"n must be from 1 to the {len(held)} held-out tokens, got {n}")
    known = {tuple(run) for run in learned.unfold(0, n, 1).tolist()} if len(learned) >= n else set()
    return sum(tuple(run) in known for run in held.unfold(0, n, 1).tolist()) / (len(held) - n + 1)


# ---------------------------------------------------------------- the loop


def fit(
    model: nn.Module,
    ids: Tensor,
    steps: int,
    seed: int,
    B: int = 16,
    T: int = 32,
    peak: float = 1e-2,
    after: Callable | None = None,
):
    """Train a model of ids (B, T) → logits (B, T, V) on random windows of a text.

    AdamW with the betas 0.9 and 0.95, a tenth of the steps for warmup, half a cosine down, gradients clipped to the length 1.

    Args:
        after: called as `after(step, loss)` after each step, counted from 1; the loss is that of the batch, before the step.
    """
    optimiser = torch.optim.AdamW(model.parameters(), lr=peak, betas=(0.9, 0.95), weight_decay=0.1)
    generator = torch.Generator().manual_seed(seed)
    for step in range(1, steps + 1):
        starts = torch.randint(len(ids) - T, (B, 1), generator=generator)
        window = ids[starts + torch.arange(T + 1)]  # (B, T + 1)
        loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())  # lm_loss, in less time
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimiser.param_groups:
            group["lr"] = cosine(step, peak, max(steps // 10, 1), steps)
        optimiser.step()
        if after is not None:
            after(step, loss.item())


@torch.no_grad()
def held_out_loss(model: nn.Module, ids: Tensor, T: int = 32) -> float:
    """The mean loss over all windows of T tokens of a text, in nats a token: ids (N,)."""
    inputs, targets = make_pairs(ids, T)  # (n, T)
    return lm_loss(model(inputs), targets).item()


# ---------------------------------------------------------------- how to spend compute


@dataclass(frozen=True)
class Law:
    """floor + c_N / N^alpha_N + c_D / D^alpha_D: the loss in nats a token of N parameters trained on D tokens."""

    floor: float
    c_N: float
    c_D: float
    alpha_N: float
    alpha_D: float


PUBLISHED = Law(1.69, 406.4, 410.7, 0.34, 0.28)  # Hoffmann et al. 2022, the third approach
REFIT = Law(1.8172, 482.01, 2085.43, 0.3478, 0.3658)  # Besiroglu et al. 2024, fitted to the same runs, read off a figure


def chinchilla_loss(N, D, law: Law):
    """What the law says of N parameters and D tokens, numbers or tensors; formula ch11-law."""
    return law.floor + law.c_N / N**law.alpha_N + law.c_D / D**law.alpha_D


def chinchilla_opt(C: float, law: Law) -> tuple[float, float]:
    """N and D with the least loss among those with 6 N D = C, formula ch11-opt.

    Raises:
        ValueError: if C is not positive.
    """
    if not C > 0:
        raise ValueError(f"C must be positive, got {C}")
    both = law.alpha_N + law.alpha_D
    N = (law.alpha_N * law.c_N / (law.alpha_D * law.c_D)) ** (1 / both) * (C / 6) ** (law.alpha_D / both)
    return N, C / 6 / N
