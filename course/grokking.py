"""Models that add modulo p and grok: many at once, their Fourier measures, and times with runs that never end: chapter ch24.

A stack of M models is a dict of weights with M in front. Sums are c = a + b modulo an odd p, frequencies k = 1 … (p − 1) / 2, and the
constant part, frequency 0, is none of them.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from course import data

__all__ = [
    "TRANSFORMER",
    "accuracy",
    "by_sum",
    "checkpoints",
    "curves",
    "decayed_adam",
    "every_pair",
    "exact_interval",
    "excluded_loss",
    "first_weights",
    "fourier_measure",
    "fourier_shares",
    "kaplan_meier",
    "keep_frequencies",
    "key_frequencies",
    "linear_cka",
    "log_steps",
    "losses",
    "mlp",
    "mod_add_data",
    "phase_times",
    "restricted_loss",
    "transformer",
]

TRANSFORMER = {"d_model": 128, "H": 4, "d_ff": 512}
"""Sizes of the one-layer transformer of Nanda et al. (2023)."""

Weights = dict[str, Tensor]

# ---------------------------------------------------------------- the task


def mod_add_data(p: int, share: float, seed: int, ordered: bool = True) -> tuple[Tensor, Tensor]:
    """Pairs (a, b) in a random order, cut in two: round(share · n) of them to train on, and the others, (…, 2) each.

    Args:
        ordered: whether all n = p² pairs count, or only the n = p (p + 1) / 2 with a ≤ b. A model that adds two embeddings cannot tell
            a + b from b + a, so it is tested fairly only on pairs whose mirror it has not seen.

    Raises:
        ValueError: if p is no odd number above 1, or one part would be empty.
    """
    pairs = every_pair(max(p, 0))
    pairs = pairs if ordered else pairs[pairs[:, 0] <= pairs[:, 1]]
    n = round(share * len(pairs))
    if p < 3 or p % 2 == 0 or not 0 < n < len(pairs):
        raise ValueError(f"p must be odd and at least 3, and both parts need pairs: got p = {p}, {n} of {len(pairs)} to train on")
    pairs = pairs[torch.randperm(len(pairs), generator=torch.Generator().manual_seed(seed))]
    return pairs[:n], pairs[n:]


def every_pair(p: int) -> Tensor:
    """All pairs (a, b), with b running fastest: (p², 2)."""
    return torch.cartesian_prod(torch.arange(p), torch.arange(p))


# ---------------------------------------------------------------- models, many at once


def first_weights(kind: str, p: int, seeds: Iterable[int], **sizes: int) -> Weights:
    """Random weights of a stack of models, one of each seed, (M, …) each; spreads are 1 / √fan-in.

    Args:
        kind: "mlp" with d_model and d_ff, or "transformer" with d_model, H and d_ff (see `TRANSFORMER`).

    Raises:
        ValueError: if there is no such kind.
    """
    d, hidden = sizes["d_model"], sizes["d_ff"]
    shapes = {
        "mlp": {"E": (p, d), "W_1": (d, hidden), "W_2": (hidden, p)},
        "transformer": {
            "E": (p + 1, d),
            "position": (3, d),
            **{f"W_{name}": (d, d) for name in "qkvo"},
            "W_1": (d, hidden),
            "W_2": (hidden, d),
            "W_head": (d, p),
        },
    }
    if kind not in shapes:
        raise ValueError(f"no kind {kind!r}; there are {', '.join(shapes)}")
    models = []
    for seed in seeds:
        draw = torch.Generator().manual_seed(seed)
        scale = {name: d if name in ("E", "position") else shape[0] for name, shape in shapes[kind].items()}
        models.append({name: torch.randn(shape, generator=draw) / scale[name] ** 0.5 for name, shape in shapes[kind].items()})
    return {name: torch.stack([model[name] for model in models]) for name in shapes[kind]}


def mlp(w: Weights, pairs: Tensor) -> Tensor:
    """What M networks say of pairs: relu((E[a] + E[b]) W_1) W_2, for pairs (n, 2) or (M, n, 2) → (M, n, p)."""
    rows = w["E"] @ w["W_1"]  # (M, p, d_ff)
    a, b = (_rows(rows, each) for each in _columns(pairs, len(rows)))
    return F.relu(a + b) @ w["W_2"]


def transformer(w: Weights, pairs: Tensor, H: int = 4) -> Tensor:
    """What M transformers say after "a b =": pairs (n, 2) or (M, n, 2) → (M, n, p).

    One layer, no norm, no biases, learned positions: attention at "=" (token p) over the three tokens, then a feed-forward network with
    ReLU, both added to the stream. As "=" is always the same, each key's score depends on its own token only.

    Source: Nanda et al. (2023), Progress measures for grokking via mechanistic interpretability.
    """
    M, p = w["E"].shape[0], w["E"].shape[1] - 1
    stream = w["E"][:, None] + w["position"][:, :, None]  # (M, 3, p + 1, d): each token at each place
    end = stream[:, 2, p:]  # (M, 1, d)
    query = (end @ w["W_q"]).view(M, 1, 1, H, -1)  # (M, 1, 1, H, d_head)
    key = (stream @ w["W_k"][:, None]).view(M, 3, p + 1, H, -1)
    score = (query * key).sum(dim=-1) / math.sqrt(key.shape[-1])  # (M, 3, p + 1, H)
    table = torch.cat([score, stream @ w["W_v"][:, None]], dim=-1)  # (M, 3, p + 1, H + d)
    a, b = (_rows(table[:, place], each) for place, each in enumerate(_columns(pairs, M)))
    seen = torch.stack([a, b, table[:, 2, p:].expand_as(a)])  # (3, M, n, H + d)
    weights = seen[..., :H].softmax(dim=0)[..., None]  # (3, M, n, H, 1)
    mixed = (weights * seen[..., H:].unflatten(-1, (H, -1))).sum(dim=0).flatten(-2)  # (M, n, d)
    x = end + mixed @ w["W_o"]
    return (x + F.relu(x @ w["W_1"]) @ w["W_2"]) @ w["W_head"]


def _columns(pairs: Tensor, M: int) -> tuple[Tensor, Tensor]:
    pairs = pairs.expand(M, -1, -1)
    return pairs[..., 0], pairs[..., 1]


def _rows(table: Tensor, index: Tensor) -> Tensor:
    """Rows of M tables (M, rows, d) at index (M, n) → (M, n, d), as a product with ones and zeros: its gradient adds up in one order."""
    return torch.eye(table.shape[1], dtype=table.dtype, device=table.device)[index] @ table


# ---------------------------------------------------------------- training


def losses(logits: Tensor, pairs: Tensor) -> Tensor:
    """Mean cross-entropy in nats of each model, in float64, since float32 ends at 1e-7: logits (..., n, p), pairs (..., n, 2) → (...)."""
    p = logits.shape[-1]
    target = (pairs.sum(dim=-1) % p).expand(logits.shape[:-1])
    return -logits.double().log_softmax(dim=-1).gather(-1, target[..., None])[..., 0].mean(dim=-1)


def accuracy(logits: Tensor, pairs: Tensor) -> Tensor:
    """Share of right sums of each model: logits (..., n, p), pairs (..., n, 2) → (...)."""
    return (logits.argmax(dim=-1) == pairs.sum(dim=-1) % logits.shape[-1]).double().mean(dim=-1)


def log_steps(last: int, ratio: float = 1.05) -> list[int]:
    """Steps at which to look: 0, 1, 2, …, each at most `ratio` times the one before or the next number, up to the last."""
    steps = [0, 1]
    while steps[-1] < last:
        steps.append(min(last, max(steps[-1] + 1, math.floor(ratio * steps[-1]))))
    return steps


def decayed_adam(
    w: Weights,
    model: Callable[[Weights, Tensor], Tensor],
    train: Tensor,
    decays: Sequence[float],
    look_at: Sequence[int],
    rate: float = 1e-3,
    seconds: float = math.inf,
) -> tuple[list[int], list[Weights]]:
    """Train a stack on all of its pairs in each step by AdamW, each model with its own weight decay.

    Args:
        w: first weights, (M, …) each; they are not changed.
        model: `mlp` or `transformer`.
        train: pairs (n, 2), or (M, n, 2), of each model its own.
        decays: M of them; in each step a model's weights first shrink by 1 − rate · decay: formula ch24-drag.
        look_at: steps at which the weights are kept, rising; 0 is before the first.
        seconds: after which it stops, at a step of `look_at`.

    Returns:
        The steps, and the weights after each, on the CPU.
    """
    w = {name: x.detach().clone().requires_grad_() for name, x in w.items()}
    every = list(w.values())
    shrink = [(1 - rate * torch.tensor(decays, device=x.device)).view(-1, *[1] * (x.ndim - 1)) for x in every]
    optimiser = torch.optim.AdamW(every, lr=rate, betas=(0.9, 0.98), weight_decay=0.0, fused=every[0].is_cuda)
    keep, steps, kept, start = set(look_at), [], [], time.perf_counter()
    for step in range(look_at[-1] + 1):
        if step in keep:
            steps.append(step)
            kept.append({name: x.detach().cpu().clone() for name, x in w.items()})
            if step == look_at[-1] or time.perf_counter() - start > seconds:
                break
        optimiser.zero_grad(set_to_none=True)
        losses(model(w, train), train).sum().backward()
        with torch.no_grad():
            torch._foreach_mul_(every, shrink)
        optimiser.step()
    return steps, kept


def phase_times(
    steps: Sequence[int], train: Sequence[float], test: Sequence[float], learned: float = 0.99, grokked: float = 0.95
) -> tuple[int | None, int | None]:
    """First steps at which the accuracy on training pairs is at least `learned`, and that on test pairs at least `grokked`.

    None is censored: it had not happened at the last step. A time is known to within the step before it at which one looked.

    Args:
        steps, train, test: when one looked, rising, and what one saw, of one length.
    """
    first = lambda values, level: next((s for s, x in zip(steps, values, strict=True) if x >= level), None)  # noqa: E731
    return first(train, learned), first(test, grokked)


# ---------------------------------------------------------------- what was recorded


def curves() -> dict[str, Tensor]:
    """What `experiments/grokking.py` measured of each run at each look, (runs, looks) each, and `circles` (runs, frames, p, 2).

    Runs, looks and frames are in the order of the record grokking.
    """
    with np.load(data.record_path("grokking").with_suffix(".npz")) as kept:
        return {name: torch.from_numpy(kept[name]).float() for name in kept.files}


def checkpoints(groks: bool = True) -> tuple[list[int], list[Weights], Tensor, Tensor]:
    """Two small networks with p = 31 on the way: steps, weights at each, pairs to train on (n, 2) and to test on (n', 2).

    Args:
        groks: the one with weight decay 1, or the one without, which only memorises.
    """
    with np.load(data.record_path("grokking_tiny").with_suffix(".npz")) as kept:
        which = 0 if groks else 1
        w = {name: torch.from_numpy(kept[name][which]).float() for name in ("E", "W_1", "W_2")}
        steps, train, test = kept["steps"].tolist(), torch.from_numpy(kept["train"]), torch.from_numpy(kept["test"])
    return steps, [{name: x[i : i + 1] for name, x in w.items()} for i in range(len(steps))], train, test


# ---------------------------------------------------------------- Fourier measures


def fourier_shares(table: Tensor) -> Tensor:
    """How power is divided among the frequencies 1 … (p − 1) / 2: table (..., p, d) → (..., (p − 1) / 2), float64.

    Power is summed over the columns, without frequency 0: formula ch24-share.

    Raises:
        ValueError: if p is even.
    """
    if table.shape[-2] % 2 == 0:
        raise ValueError(f"p must be odd, got a table of {table.shape[-2]} rows")
    power = torch.fft.rfft(table.double(), dim=-2)[..., 1:, :].abs().square().sum(dim=-1)
    return power / power.sum(dim=-1, keepdim=True)


def fourier_measure(table: Tensor, top: int = 5) -> Tensor:
    """Share of the power of a table in its `top` strongest frequencies: table (..., p, d) → (...)."""
    return fourier_shares(table).topk(top, dim=-1).values.sum(dim=-1)


def key_frequencies(table: Tensor, times: float = 3.0) -> list[int]:
    """Frequencies with more than `times` an even share of the power of a table (p, d), the strongest first."""
    shares = fourier_shares(table)
    order = shares.argsort(descending=True)
    return [int(k) + 1 for k in order if shares[k] * len(shares) > times]


def keep_frequencies(table: Tensor, frequencies: Iterable[int], dim: int = -2) -> Tensor:
    """What is left if only the mean and some frequencies along an axis of length p stay: table (..., p, d) → (..., p, d), its dtype."""
    spectrum = torch.fft.rfft(table.double(), dim=dim)
    keep = torch.zeros(spectrum.shape[dim], dtype=torch.bool, device=table.device)
    keep[[0, *frequencies]] = True
    shape = [1] * table.ndim
    shape[dim] = -1
    return torch.fft.irfft(spectrum * keep.view(shape), n=table.shape[dim], dim=dim).to(table.dtype)


def by_sum(logits: Tensor, pairs: Tensor | None = None) -> Tensor:
    """Means over all pairs with the same sum: logits (..., p, p, p), the answer's axis last → (..., p, p), row s for the sum s.

    Args:
        pairs: (n, 2), the only ones that count; a sum that none of them has gets a row of zeros.
    """
    p = logits.shape[-1]
    pairs = every_pair(p).to(logits.device) if pairs is None else pairs
    total = pairs.sum(dim=1) % p  # (n,)
    picked = logits.double()[..., pairs[:, 0], pairs[:, 1], :]  # (..., n, p)
    sums = picked.new_zeros(*picked.shape[:-2], p, p).index_add(-2, total, picked)
    return sums / total.bincount(minlength=p).clamp_min(1)[:, None]


def restricted_loss(logits: Tensor, frequencies: Iterable[int], pairs: Tensor | None = None) -> Tensor:
    """Loss if of the logits only what depends on the sum at some frequencies stays, and their mean: formula ch24-restricted.

    logits (..., p, p, p), the answer's axis last → (...), in nats, float64. What stays is the same for all pairs with one sum, and each
    sum counts the same.

    Args:
        pairs: (n, 2), the only ones of which the means are taken, such as those that were not trained on.

    Source: Nanda et al. (2023), Progress measures for grokking via mechanistic interpretability, section 5.1.
    """
    kept = keep_frequencies(by_sum(logits, pairs), frequencies)  # (..., p, p)
    return -kept.log_softmax(dim=-1).diagonal(dim1=-2, dim2=-1).mean(dim=-1)


def excluded_loss(logits: Tensor, frequencies: Iterable[int], pairs: Tensor) -> Tensor:
    """Loss on pairs (..., n, 2), those to train on, if what depends on the sum at some frequencies is taken from the logits.

    logits (..., p, p, p) → (...), in nats, float64: formula ch24-excluded.

    Source: Nanda et al. (2023), Progress measures for grokking via mechanistic interpretability, section 5.1.
    """
    p = logits.shape[-1]
    means = by_sum(logits)
    circuit = keep_frequencies(means, frequencies) - means.mean(dim=-2, keepdim=True)  # (..., p, p), without the mean
    pairs = pairs.expand(*logits.shape[:-3], -1, -1)
    place = pairs[..., 0] * p + pairs[..., 1]  # (..., n)
    picked = logits.double().flatten(-3, -2).gather(-2, place[..., None].expand(*place.shape, p))  # (..., n, p)
    total = (pairs.sum(dim=-1) % p)[..., None].expand(*place.shape, p)
    return losses(picked - circuit.gather(-2, total), pairs)


def linear_cka(X: Tensor, Y: Tensor) -> Tensor:
    """Likeness of two descriptions of the same n things, from 0 to 1: X (..., n, d), Y (..., n, d') → (...); formula ch24-cka.

    It stays as it is if either is turned or scaled. Unrelated descriptions do not give 0 where widths are not far below n.

    Source: Kornblith et al. (2019), Similarity of Neural Network Representations Revisited.
    """
    X, Y = (Z.double() - Z.double().mean(dim=-2, keepdim=True) for Z in (X, Y))
    norm = lambda A: A.flatten(-2).norm(dim=-1)  # noqa: E731
    return norm(Y.mT @ X).square() / (norm(X.mT @ X) * norm(Y.mT @ Y))


# ---------------------------------------------------------------- times that were not seen, and shares


def kaplan_meier(times: Sequence[float], seen: Sequence[bool], level: float = 0.95) -> list[tuple[float, float, float, float]]:
    """Share that has not had its event after each time at which one was seen: time, share, low, high; formula ch24-kaplan.

    Args:
        times: of the event, or of the last look at a run that was still without it.
        seen: whether it is the event's. One that ends at the time of an event was still there at it.
        level: of the interval at each time for itself, by Greenwood's variance on the scale of ln(−ln share); nan where the share is 0.

    Raises:
        ValueError: if lengths differ.
    """
    from scipy.special import ndtri

    z, share, spread, table = float(ndtri(0.5 + level / 2)), 1.0, 0.0, []
    for t in sorted({t for t, event in zip(times, seen, strict=True) if event}):
        there = sum(other >= t for other in times)
        events = sum(bool(event) for other, event in zip(times, seen, strict=True) if other == t)
        share *= 1 - events / there
        if share == 0:
            table.append((t, 0.0, math.nan, math.nan))
            continue
        spread += events / (there * (there - events))
        half = z * math.sqrt(spread) / abs(math.log(share))
        table.append((t, share, share ** math.exp(half), share ** math.exp(-half)))
    return table


def exact_interval(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of a probability, after k of n: formula ch24-exact.

    Raises:
        ValueError: if k is not between 0 and n, or n is 0.
    """
    from scipy.special import betaincinv

    if not 0 <= k <= n or n < 1:
        raise ValueError(f"k is one of 0 … n, and n at least 1: got {k} of {n}")
    tail = (1 - level) / 2
    low = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1 - tail))
    return low, high
