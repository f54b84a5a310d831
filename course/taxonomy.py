"""Attention mechanisms and their rivals, each in a few lines beside the form that it is tested against: chapter ch18.

Shapes: leading axes such as batch and heads, then T tokens; queries and keys have the width d_k, values d_v. All is causal where
nothing else is said: a token sees itself and what came before. G models are trained at once in the recall tasks.

Source: Dao and Gu (2024), Transformers are SSMs, section 3, for a recurrence and a product that compute the same.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from course import pretrained
from course.multi_head import said_twice
from course.sinks import streaming_logits

__all__ = [
    "MECHANISMS",
    "TASKS",
    "RecallModels",
    "costs",
    "delta_product",
    "delta_rule",
    "elu_features",
    "exp_features",
    "hybrid_attention",
    "latent_attention",
    "latent_expanded",
    "linear_attention",
    "linear_recurrence",
    "low_rank_attention",
    "recall_batch",
    "sparse_attention",
    "ssm_matrix",
    "ssm_scan",
    "tiled_attention",
    "train_recall",
    "window_recall",
    "windowed_attention",
]

# ---------------------------------------------------------------- the same function, in another order


def tiled_attention(query: Tensor, key: Tensor, value: Tensor, block: int) -> Tensor:
    """Causal attention from blocks of keys, of which no T by T matrix is made, formula ch18-merge.

    Args:
        query: (..., T, d_k).
        key: (..., T, d_k).
        value: (..., T, d_v).
        block: how many keys are looked at together; the last block may be smaller.

    Returns:
        (..., T, d_v), what plain attention gives but for rounding.

    Raises:
        ValueError: if the block is empty.
    """
    if block < 1:
        raise ValueError(f"a block needs at least one key, got {block}")
    T, scale = query.shape[-2], query.shape[-1] ** -0.5
    largest = query.new_full((*query.shape[:-1], 1), -math.inf)
    total, mixed = torch.zeros_like(largest), torch.zeros_like(query[..., :1] * value[..., :1, :])
    for start in range(0, T, block):
        keys, values = key[..., start : start + block, :], value[..., start : start + block, :]
        place = torch.arange(start, start + keys.shape[-2], device=query.device)
        scores = query @ keys.mT * scale  # (..., T, block)
        scores = scores.masked_fill(place > torch.arange(T, device=query.device)[:, None], -math.inf)
        new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        old, powers = (largest - new).exp(), (scores - new).exp()  # the first block holds key 1, which all queries see
        total, mixed = old * total + powers.sum(dim=-1, keepdim=True), old * mixed + powers @ values
        largest = new
    return mixed / total


# ---------------------------------------------------------------- fewer keys


def windowed_attention(query: Tensor, key: Tensor, value: Tensor, window: int) -> Tensor:
    """Attention to the last `window` keys, its own included, in memory for T times window scores.

    Args:
        query, key: (..., T, d_k).
        value: (..., T, d_v).
        window: at least 1; from T on it is causal attention.

    Returns:
        (..., T, d_v).

    Raises:
        ValueError: if the window is empty.
    """
    if window < 1:
        raise ValueError(f"a token must see itself: window is at least 1, got {window}")
    T, w = query.shape[-2], min(window, query.shape[-2])
    keys, values = (F.pad(each, (0, 0, w - 1, 0)).unfold(-2, w, 1) for each in (key, value))  # (..., T, d, w)
    scores = (query[..., None, :] @ keys)[..., 0, :] * query.shape[-1] ** -0.5  # (..., T, w)
    place = torch.arange(T, device=query.device)[:, None] - torch.arange(w - 1, -1, -1, device=query.device)
    weights = scores.masked_fill(place < 0, -math.inf).softmax(dim=-1)
    return (values @ weights[..., None])[..., 0]  # (..., T, d_v)


def sparse_attention(query: Tensor, key: Tensor, value: Tensor, keep: int) -> Tensor:
    """Attention of each query to the `keep` keys of its largest scores.

    It still makes all scores in order to choose; practical forms choose blocks of keys, or choose by something cheaper.

    Args:
        query, key: (..., T, d_k).
        value: (..., T, d_v).
        keep: how many keys a query sees; from T on it is causal attention.

    Returns:
        (..., T, d_v).

    Raises:
        ValueError: if no key would be kept.
    """
    if keep < 1:
        raise ValueError(f"at least one key must be kept, got {keep}")
    T = query.shape[-2]
    later = torch.ones(T, T, dtype=torch.bool, device=query.device).triu(1)
    scores = (query @ key.mT * query.shape[-1] ** -0.5).masked_fill(later, -math.inf)  # (..., T, T)
    best = scores.topk(min(keep, T), dim=-1).indices
    kept = torch.full_like(scores, -math.inf).scatter(-1, best, scores.gather(-1, best))
    return kept.softmax(dim=-1) @ value


def low_rank_attention(query: Tensor, key: Tensor, value: Tensor, project: Tensor) -> Tensor:
    """Attention to r mixtures of the keys, without a mask.

    Args:
        query: (..., T, d_k).
        key: (..., S, d_k).
        value: (..., S, d_v).
        project: (r, S), which keys, and with what shares, make each mixture; the identity gives attention itself.

    Returns:
        (..., T, d_v).

    Source: Wang et al. (2020), Linformer: Self-Attention with Linear Complexity.
    """
    scores = query @ (project @ key).mT * query.shape[-1] ** -0.5  # (..., T, r)
    return scores.softmax(dim=-1) @ (project @ value)


# ---------------------------------------------------------------- a sum in place of a list


def elu_features(x: Tensor) -> Tensor:
    """elu(x) + 1, a feature map with positive entries: x (..., d) → (..., d).

    Source: Katharopoulos et al. (2020), Transformers are RNNs, section 3.2.
    """
    return F.elu(x) + 1


def exp_features(x: Tensor, directions: Tensor) -> Tensor:
    """Random features whose inner products are the exponential of a score on average, formula ch18-random.

    Args:
        x: (..., d), queries or keys, to be divided by the fourth root of d_k first if scores are to be scaled.
        directions: (r, d) standard normal numbers, the same for queries and keys.

    Returns:
        (..., r).

    Source: Choromanski et al. (2021), Rethinking Attention with Performers, lemma 1.
    """
    return (x @ directions.mT - x.square().sum(dim=-1, keepdim=True) / 2).exp() / math.sqrt(len(directions))


def linear_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Linear attention as a product with a mask.

    Args:
        query, key: (..., T, r), features; the weights are their inner products, divided by their sum, which must not be 0.
        value: (..., T, d_v).

    Returns:
        (..., T, d_v).
    """
    weights = (query @ key.mT).tril()  # (..., T, T)
    return weights @ value / weights.sum(dim=-1, keepdim=True)


def linear_recurrence(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Linear attention as a recurrence, of which nothing that is kept grows with T, formula ch18-recurrence.

    Args:
        query, key: (..., T, r), features.
        value: (..., T, d_v).

    Returns:
        (..., T, d_v).
    """
    state, total, out = 0.0, 0.0, []
    for t in range(query.shape[-2]):
        q, k, v = (each[..., t, :] for each in (query, key, value))
        state, total = state + k[..., :, None] * v[..., None, :], total + k  # (..., r, d_v), (..., r)
        out.append((q[..., None, :] @ state)[..., 0, :] / (q * total).sum(dim=-1, keepdim=True))
    return torch.stack(out, dim=-2)


def hybrid_attention(query: Tensor, key: Tensor, value: Tensor, window: int, features: Callable = elu_features) -> Tensor:
    """Exact weights for the last `window` keys, feature weights for all older ones, under one denominator.

    Args:
        query, key: (..., T, d_k).
        value: (..., T, d_v).
        window: 0 gives linear attention, T causal attention.
        features: of queries and keys, with positive entries.

    Returns:
        (..., T, d_v).

    Source: Zhang et al. (2024), LoLCATs: On Low-Rank Linearizing of Large Language Models.
    """
    place = torch.arange(query.shape[-2], device=query.device)
    back = place[:, None] - place  # (T, T)
    near, older = (back >= 0) & (back < window), (back >= window) & (back >= 0)
    scores = (query @ key.mT * query.shape[-1] ** -0.5).masked_fill(~near, -math.inf)
    largest = scores.amax(dim=-1, keepdim=True).clamp(min=0.0)  # both kinds are divided by its exponential
    weights = (scores - largest).exp() + features(query) @ features(key).mT * older * (-largest).exp()
    return weights @ value / weights.sum(dim=-1, keepdim=True)


# ---------------------------------------------------------------- a sum that forgets: a state-space model


def ssm_scan(decay: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """A selective state space as a recurrence, formula ch18-ssm: what is kept is multiplied by a number of each token.

    Args:
        decay: (..., T), how much of the state each token keeps; Mamba-2 writes a.
        query: (..., T, d_k), Mamba-2's C.
        key: (..., T, d_k), its B.
        value: (..., T, d_v), its X.

    Returns:
        (..., T, d_v).

    Source: Dao and Gu (2024), Transformers are SSMs, section 3.
    """
    state, out = 0.0, []
    for t in range(query.shape[-2]):
        q, k, v = (each[..., t, :] for each in (query, key, value))
        state = decay[..., t, None, None] * state + k[..., :, None] * v[..., None, :]  # (..., d_k, d_v)
        out.append((q[..., None, :] @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


def ssm_matrix(decay: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """The matrix that a selective state space multiplies the values by, formula ch18-dual.

    Args:
        decay: (..., T), which may be 0, but not negative: its logarithm is summed.
        query, key: (..., T, d_k).

    Returns:
        (..., T, T), zero above the diagonal.
    """
    T, zero = decay.shape[-1], decay == 0
    log = torch.where(zero, 1.0, decay).log().cumsum(dim=-1)  # (..., T)
    resets = zero.cumsum(dim=-1)
    later = torch.ones(T, T, dtype=torch.bool, device=decay.device).triu(1)
    forgets = (resets[..., :, None] != resets[..., None, :]) | later  # a token of decay 0 stands between
    kept = torch.where(forgets, -math.inf, log[..., :, None] - log[..., None, :]).exp()  # (..., T, T)
    return (query @ key.mT) * kept


# ---------------------------------------------------------------- a sum that corrects: the delta rule


def delta_rule(beta: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The delta rule as a recurrence, formula ch18-delta: a token writes the difference from what its key already gives.

    Args:
        beta: (..., T), how far the answer to the key is moved to the value, from 0 to 1, or to 2.
        query: (..., T, d_k).
        key: (..., T, d_k), of length 1.
        value: (..., T, d_v).

    Returns:
        (..., T, d_v).

    Source: Schlag, Irie and Schmidhuber (2021), Linear Transformers Are Secretly Fast Weight Programmers, section 4.2.
    """
    state, out = torch.zeros_like(key[..., 0, :, None] * value[..., 0, None, :]), []  # (..., d_k, d_v)
    for t in range(query.shape[-2]):
        q, k, v = (each[..., t, None, :] for each in (query, key, value))  # (..., 1, d)
        state = state + beta[..., t, None, None] * k.mT @ (v - k @ state)
        out.append((q @ state)[..., 0, :])
    return torch.stack(out, dim=-2)


def delta_product(beta: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The delta rule as a product, formula ch18-delta-product.

    What each token writes solves a triangular system, since it depends on what earlier ones wrote.

    Args:
        beta: (..., T).
        query: (..., T, d_k).
        key: (..., T, d_k).
        value: (..., T, d_v).

    Returns:
        (..., T, d_v).

    Source: Yang et al. (2024), Parallelizing Linear Transformers with the Delta Rule over Sequence Length, section 3.
    """
    earlier = (beta[..., None] * (key @ key.mT)).tril(-1)  # (..., T, T)
    system = earlier + torch.eye(key.shape[-2], dtype=key.dtype, device=key.device)
    written = torch.linalg.solve_triangular(system, beta[..., None] * value, upper=False, unitriangular=True)  # (..., T, d_v)
    return (query @ key.mT).tril() @ written


# ---------------------------------------------------------------- short notes in place of keys and values


def latent_expanded(query: Tensor, latent: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    """Attention whose keys and values are made from one short vector a token, by making them.

    Args:
        query: (..., H, T, d_k).
        latent: (..., T, c), all that is kept.
        W_k: (H, c, d_k).
        W_v: (H, c, d_v).

    Returns:
        (..., H, T, d_v).
    """
    key, value = latent[..., None, :, :] @ W_k, latent[..., None, :, :] @ W_v  # (..., H, T, d_k), (..., H, T, d_v)
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def latent_attention(query: Tensor, latent: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    """The same without making them, formula ch18-absorb.

    Rotary positions are left out; a model with them keeps a short rotated key beside the latent.

    Args:
        query: (..., H, T, d_k).
        latent: (..., T, c), all that is kept.
        W_k: (H, c, d_k).
        W_v: (H, c, d_v).

    Returns:
        (..., H, T, d_v).

    Source: DeepSeek-AI (2024), DeepSeek-V2, section 2.1.
    """
    T = query.shape[-2]
    scores = (query @ W_k.mT) @ latent[..., None, :, :].mT * query.shape[-1] ** -0.5  # (..., H, T, T)
    later = torch.ones(T, T, dtype=torch.bool, device=query.device).triu(1)
    weights = scores.masked_fill(later, -math.inf).softmax(dim=-1)
    return (weights @ latent[..., None, :, :]) @ W_v


# ---------------------------------------------------------------- what they keep and what they pay


def costs(
    T: int,
    H: int = 16,
    d: int = 128,
    kv: int = 4,
    window: int = 256,
    keep: int = 256,
    latent: int = 512,
    turned: int = 64,
    full: int = 4,
) -> dict:
    """Numbers that one layer keeps after T tokens, and multiplications and additions for one more token, by mechanism.

    Not counted: projections (those into and out of the latent rows too), the softmax, normalisers, and the sum of features of linear
    attention. The sparse form makes all scores.

    Args:
        T: tokens read.
        H, d: heads, and the width of each in keys and in values.
        kv: heads of keys and values of the grouped form; one in the form with one for all.
        window, keep: of windowed and of sparse attention.
        latent, turned: numbers a token in latent attention, of the row and of the rotated key, which the values do not need; DeepSeek-V2's.
        full: one layer of so many of the hybrid is full attention, the others follow the delta rule; its costs are means over layers.

    Returns:
        For each mechanism (numbers kept, operations a token).
    """
    w, state = min(window, T), H * d * d
    made = {
        "attention": (2 * H * d * T, 4 * H * d * T),
        "grouped": (2 * kv * d * T, 4 * H * d * T),
        "one key head": (2 * d * T, 4 * H * d * T),
        "latent": ((latent + turned) * T, 2 * H * (2 * latent + turned) * T),
        "sparse": (2 * H * d * T, 2 * H * d * T + 2 * H * d * min(keep, T)),
        "windowed": (2 * H * d * w, 4 * H * d * w),
        "linear": (state, 4 * state),
        "state space": (state, 5 * state),
        "delta rule": (state, 6 * state),
    }
    made["hybrid"] = tuple((made["attention"][i] + (full - 1) * made["delta rule"][i]) / full for i in (0, 1))
    return made


# ---------------------------------------------------------------- recall tasks that tell them apart

TASKS = ("recall", "latest", "flip")
MECHANISMS = ("attention", "window", "linear", "gated", "delta", "delta to 2")
KEYS, VALUES, FLIP, ASK = 64, 16, 16, 17


def recall_batch(task: str, n: int, shape: tuple[int, ...], draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Texts that write to n keys and then ask for all of them: each token is a key and what is said of it.

    Args:
        task: "recall" writes each key once; "latest" then writes n times more to keys among them, and the last value counts; "flip"
            writes one of two values to each, and then n times turns the value of a key over.
        n: number of keys, drawn from `KEYS` for each text.
        shape: of the batch.
        draw: on the device that the texts are to be on.

    Returns:
        Keys (B, T), what is said (B, T), and the answers (B, n) to the last n tokens, with all of `shape` in the place of B; T is 2n,
        or 3n if there are more writes.

    Raises:
        ValueError: if there is no such task, or there are not so many keys.
    """
    if task not in TASKS or not 1 <= n <= KEYS:
        raise ValueError(f"a task of {', '.join(TASKS)} and 1 to {KEYS} keys are needed, got {task!r} and {n}")
    how = {"generator": draw, "device": draw.device}
    values = 2 if task == "flip" else VALUES
    names = torch.rand(*shape, KEYS, **how).argsort(dim=-1)[..., :n]
    now = torch.randint(values, (*shape, n), **how)
    keys, said = [names], [now]
    if task != "recall":
        which = torch.randint(n, (*shape, n), **how)
        new = torch.randint(values, (*shape, n), **how)
        hits = which[..., None, :] == torch.arange(n, device=draw.device)[:, None]  # (*shape, n keys, n writes)
        if task == "flip":
            now = (now + hits.sum(dim=-1)) % 2
        else:
            last = (hits * torch.arange(1, n + 1, device=draw.device)).amax(dim=-1)  # 0 where a key is not written again
            now = torch.where(last > 0, new.gather(-1, (last - 1).clamp_min(0)), now)
        keys.append(names.gather(-1, which))
        said.append(torch.full_like(new, FLIP) if task == "flip" else new)
    order = torch.rand(*shape, n, **how).argsort(dim=-1)
    keys.append(names.gather(-1, order))
    said.append(torch.full_like(order, ASK))
    return torch.cat(keys, dim=-1), torch.cat(said, dim=-1), now.gather(-1, order)


class RecallModels:
    """G models of one layer that differ in how a token reads what earlier tokens wrote, trained at once.

    Each: the vectors of key and saying are added, one head of width d mixes, a network with one hidden layer answers. Queries and keys
    have length 1 in all of them. Attention has a learned scale and a learned price of distance; the window is d / 2, so that
    its keys and values are d² numbers, as many as the state of the recurrent ones.

    Args:
        mechanism: of `MECHANISMS`. "delta to 2" is the delta rule whose β may reach 2.
        d: width of queries, keys and values.
        seeds: G numbers; models of one seed begin with the same weights, whatever the mechanism.
        device, dtype: of the weights.

    Raises:
        ValueError: if there is no such mechanism.
    """

    width = 64

    def __init__(self, mechanism: str, d: int, seeds: list[int], device: str = "cpu", dtype: torch.dtype = torch.float32):
        if mechanism not in MECHANISMS:
            raise ValueError(f"a mechanism is one of {', '.join(MECHANISMS)}, got {mechanism!r}")
        self.mechanism, self.d, D = mechanism, d, self.width
        shapes = {"keys": (KEYS, D), "said": (ASK + 1, D), "qkv": (D, 3 * d), "gates": (D, 2), "out": (d, D), "up": (D, 2 * D)}
        shapes |= {"down": (2 * D, VALUES)}
        made = {name: [] for name in shapes}
        for seed in seeds:
            draw = torch.Generator().manual_seed(seed)
            for name, shape in shapes.items():
                size = 1.0 if name in ("keys", "said") else 0.0 if name == "gates" else shape[0] ** -0.5
                made[name].append(torch.randn(shape, generator=draw, dtype=torch.float64) * size)
        stacked = {name: torch.stack(each) for name, each in made.items()}
        stacked["bias"] = torch.tensor([[4.0, 0.0]], dtype=torch.float64).repeat(len(seeds), 1)  # decay near 1, β in the middle
        stacked["scale"] = torch.tensor([[math.log(8.0), -4.0]], dtype=torch.float64).repeat(len(seeds), 1)
        self.weights = {name: each.to(device, dtype).requires_grad_(True) for name, each in stacked.items()}

    def mix(self, x: Tensor) -> Tensor:
        """What each token reads: x (G, B, T, width) → (G, B, T, d)."""
        w, d, T = self.weights, self.d, x.shape[2]
        query, key, value = torch.einsum("gbtd,gde->gbte", x, w["qkv"]).split(d, dim=-1)
        query, key = F.normalize(query, dim=-1), F.normalize(key, dim=-1)
        gates = torch.einsum("gbtd,gde->gbte", x, w["gates"]) + w["bias"][:, None, None]
        place = torch.arange(T, device=x.device)
        back = place[:, None] - place  # (T, T)
        if self.mechanism in ("attention", "window"):
            scale, price = w["scale"][:, :1].exp(), F.softplus(w["scale"][:, 1:])  # (G, 1)
            scores = scale[..., None, None] * (query @ key.mT) - price[..., None, None] * back
            hidden = (back < 0) | (back >= (max(d // 2, 1) if self.mechanism == "window" else T))
            return scores.masked_fill(hidden, -math.inf).softmax(dim=-1) @ value
        if self.mechanism.startswith("delta"):
            beta = gates[..., 1].sigmoid() * (2 if self.mechanism == "delta to 2" else 1)
            return delta_product(beta, query, key, value)
        weights = (query @ key.mT).tril()
        if self.mechanism == "gated":
            log = F.logsigmoid(gates[..., 0]).cumsum(dim=-1)  # (G, B, T)
            weights = weights * (log[..., :, None] - log[..., None, :]).tril().exp()
        return weights @ value

    def answer(self, keys: Tensor, said: Tensor, n: int) -> Tensor:
        """The answers to the last n tokens: keys (G, B, T) and said (G, B, T) → logits (G, B, n, VALUES)."""
        w, G = self.weights, len(keys)
        which = torch.arange(G, device=keys.device)[:, None, None]
        x = w["keys"][which, keys] + w["said"][which, said]  # (G, B, T, width)
        mixed = F.rms_norm(self.mix(x)[:, :, -n:], (self.d,))
        y = F.rms_norm(x[:, :, -n:] + torch.einsum("gbtd,gde->gbte", mixed, w["out"]), (self.width,))
        return torch.einsum("gbtd,gde->gbte", F.gelu(torch.einsum("gbtd,gde->gbte", y, w["up"])), w["down"])


def train_recall(
    models: RecallModels, task: str, n: int, rates: Tensor, steps: int, B: int, seed: int, texts: int = 64
) -> Tensor:
    """Train by Adam, then ask on new texts.

    Args:
        models: G of them.
        task, n: as of `recall_batch`.
        rates: (G,) learning rates; after a warm-up over a twentieth of the steps they fall to zero in a straight line.
        steps, B: of training; B texts a step for each model.
        seed: of the texts. Models are S seeds times G / S rates, rates inside: of one seed all read the same texts, and so do
            models of other mechanisms.
        texts: of each half of the test.

    Returns:
        The share of right answers (2, G): of the first half, to choose a rate by, and of the second, to report.
    """
    w, G = models.weights, len(rates)
    seeds = G // len(torch.unique(rates))
    device = w["keys"].device
    draw = torch.Generator(device).manual_seed(seed)
    first, second = ({name: torch.zeros_like(each) for name, each in w.items()} for _ in range(2))

    def batch(size: int):
        drawn = recall_batch(task, n, (seeds, size), draw)
        return (each.repeat_interleave(G // seeds, dim=0) for each in drawn)  # (G, size, …)

    for step in range(1, steps + 1):
        keys, said, target = batch(B)
        loss = F.cross_entropy(models.answer(keys, said, n).flatten(0, 2), target.flatten(), reduction="sum") / (B * n)
        grads = torch.autograd.grad(loss, list(w.values()), allow_unused=True)
        rate = rates * min(20 * step / steps, (steps - step) / steps * 20 / 19)
        with torch.no_grad():
            for (name, each), grad in zip(w.items(), grads, strict=True):
                if grad is None:
                    continue
                first[name].lerp_(grad, 0.1)
                second[name].lerp_(grad.square(), 0.01)
                moved = (first[name] / (1 - 0.9**step)) / ((second[name] / (1 - 0.99**step)).sqrt() + 1e-8)
                each -= moved * rate.view(-1, *[1] * (each.ndim - 1))
    with torch.no_grad():
        right = []
        for _ in range(2):
            keys, said, target = batch(texts)
            right.append((models.answer(keys, said, n).argmax(dim=-1) == target).double().mean(dim=(1, 2)))
    return torch.stack(right)


# ---------------------------------------------------------------- a trained model through a window


@torch.no_grad()
def window_recall(n: int = 24, lists: int = 6, windows: tuple[int, ...] = (28, 24, 23), first: int = 4) -> dict:
    """A look: SmolLM2 reads n random tokens twice, with all keys or, beside the first tokens, the last of each window.

    Returns:
        "right": for "full" and each window, for each list the share of the tokens of the second reading that it would have
        said; the first four of the list are left out, since their keys are always kept, and so is the last.
    """
    model = pretrained.load("smollm2-135m")
    ids = said_twice(lists, n, model.config.V, torch.Generator().manual_seed(0))
    told = {}
    for window in (2 * n, *windows):
        guess = streaming_logits(model, ids, window, first)[:, n + first : -1].argmax(dim=-1)  # (lists, n - first - 1)
        shares = (guess == ids[:, n + first + 1 :]).float().mean(dim=1)
        told["full" if window == 2 * n else str(window)] = [round(float(x), 3) for x in shares]
    return {"n": n, "lists": lists, "first": first, "right": told}
