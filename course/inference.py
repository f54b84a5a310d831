"""Choosing tokens, remembering keys and values, and what both cost: the reference code of chapter ch12."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from course.model import GPT, Config

__all__ = [
    "beam",
    "following",
    "generate",
    "greedy",
    "intensity",
    "keep_min_p",
    "keep_top_k",
    "keep_top_p",
    "kv_bytes",
    "pass_flops",
    "sample",
    "sample_top_p",
]

# ---------------------------------------------------------------- from logits to a token


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """The k largest logits of each row; the others become −∞. Among equals the smaller id is kept.

    Args:
        logits: (..., V) floats.
        k: from 1; more than V keeps all.

    Returns:
        (..., V) in the dtype of logits.

    Raises:
        ValueError: if k is not positive.

    Source: Fan, Lewis and Dauphin (2018), Hierarchical Neural Story Generation.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}: some token has to stay")
    return _only(logits, _order(logits)[..., :k])


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """The fewest tokens of each row whose probabilities sum to at least p, formula ch12-top-p; the others become −∞.

    A token stays if the more probable ones alone do not reach p: so the one that crosses p stays, and the first always does.
    A sum that misses p by no more than the rounding of the logits has reached it: ln ½ and ln ¼ in float32 make ¾, not a little less.

    Args:
        logits: (..., V) floats.
        p: above 0, at most 1; 1 keeps all.

    Returns:
        (..., V) in the dtype of logits. Among equals the smaller id comes first.

    Raises:
        ValueError: if p is not in (0, 1].

    Source: Holtzman et al. (2020), The Curious Case of Neural Text Degeneration.
    """
    if not 0 < p <= 1:
        raise ValueError(f"p is a probability above 0, at most 1, got {p}")
    if p == 1:
        return logits  # a sum rounds to 1 before the last tokens are in it
    order = _order(logits)
    probs = logits.double().softmax(dim=-1)  # (..., V)
    reached = probs.gather(-1, order).cumsum(dim=-1)  # (..., V)
    before = torch.nn.functional.pad(reached, (1, -1))  # (..., V), what the more probable tokens sum to
    size = (probs * logits.double().where(probs > 0, 0.0).abs()).sum(dim=-1, keepdim=True)  # (..., 1), mean size of a logit
    eps = min(torch.finfo(logits.dtype).eps, torch.finfo(torch.float32).eps)
    slack = eps * (size + 1) + logits.shape[-1] * torch.finfo(torch.float64).eps  # logits that are off by half an eps; the sum
    kept = (before < p - slack) | (before == 0)  # (..., V), in the order of ids; the first one whatever p is
    return _only(logits, order).where(kept.gather(-1, order.argsort(dim=-1)), -math.inf)


def keep_min_p(logits: Tensor, p_min: float) -> Tensor:
    """The tokens at least p_min times as probable as the most probable one, formula ch12-min-p; the others become −∞.

    Args:
        logits: (..., V) floats.
        p_min: above 0, at most 1; 1 keeps the most probable token and its equals.

    Returns:
        (..., V) in the dtype of logits.

    Raises:
        ValueError: if p_min is not in (0, 1].

    Source: Nguyen et al. (2024), Turning Up the Heat: Min-p Sampling.
    """
    if not 0 < p_min <= 1:
        raise ValueError(f"p_min is a share above 0, at most 1, got {p_min}")
    return logits.where(logits >= logits.amax(dim=-1, keepdim=True) + math.log(p_min), -math.inf)


def _order(logits: Tensor) -> Tensor:
    """Ids from the largest logit to the smallest, the smaller id first among equals: (..., V)."""
    return logits.argsort(dim=-1, descending=True, stable=True)


def _only(logits: Tensor, ids: Tensor) -> Tensor:
    return torch.full_like(logits, -math.inf).scatter(-1, ids, logits.gather(-1, ids))


def greedy(logits: Tensor) -> Tensor:
    """The most probable token: logits (..., V) → (...) ids, the smallest among equals."""
    return _order(logits)[..., 0]


def _tempered(logits: Tensor, tau: float) -> Tensor:
    """(..., V), float64, logits / tau up to a constant: at most 0, so that no tau, however small, makes it overflow to nan."""
    if not 0 < tau < math.inf:
        raise ValueError(f"tau must be positive and finite, got {tau}: for the limit at 0 take greedy")
    exact = logits.double()  # float32 would make 0 of a tau below 1e-45, and inf of one above 3e38
    return (exact - exact.amax(dim=-1, keepdim=True)) / tau


def sample(logits: Tensor, tau: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """A token drawn from softmax(logits / tau), computed in float64: logits (B, V) → (B,) ids.

    Raises:
        ValueError: if tau is not positive and finite: for the limit at 0 take `greedy`.
    """
    return torch.multinomial(_tempered(logits, tau).softmax(dim=-1), 1, generator=generator)[:, 0]


def sample_top_p(logits: Tensor, p: float, tau: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """A token drawn from the nucleus, temperature first, then the filter: logits (B, V) → (B,) ids.

    Raises:
        ValueError: if p is not in (0, 1] or tau is not positive and finite.
    """
    tempered = _tempered(logits, tau)
    kept = keep_top_p(tempered.to(logits.dtype), p) > -math.inf  # in the dtype whose rounding p is held against
    return sample(tempered.where(kept, -math.inf), generator=generator)


# ---------------------------------------------------------------- from tokens to a text


@torch.no_grad()
def generate(model: GPT, ids: Tensor, n: int, choose: Callable[[Tensor], Tensor] = greedy, cached: bool = True) -> Tensor:
    """Each sequence with n more tokens: ids (B, T) → (B, T + n).

    Args:
        model: gives logits (B, T, V); with a cache it reads only what is new.
        ids: integers, at least one token a sequence.
        n: how many tokens to add.
        choose: logits (B, V) → ids (B,), such as `greedy` or a function that calls `sample_top_p`.
        cached: whether to keep keys and values, or to read the whole text anew for each token.

    Raises:
        ValueError: if n is negative.
    """
    if n < 0:
        raise ValueError(f"n is a number of tokens, got {n}")
    cache, new = model.cache() if cached else None, ids
    for _ in range(n):
        chosen = choose(model(new, cache)[:, -1])  # (B,), from the logits (B, V) of the last token
        ids = torch.cat([ids, chosen[:, None]], dim=1)  # (B, T + 1)
        new = ids[:, -1:] if cached else ids
    return ids


def beam(
    log_probs: Callable[[tuple[int, ...]], Tensor], steps: int, width: int, end: int | None = None, penalty: float = 0.0
) -> list[tuple[float, tuple[int, ...]]]:
    """Continuations of up to `steps` tokens found by beam search, the best first.

    Args:
        log_probs: the tokens chosen so far → (V,) log-probabilities of the next one.
        steps: at most how many tokens.
        width: how many continuations are kept at each step; 1 is greedy.
        end: the id of the token that ends a text; None lets all texts have `steps` tokens.
        penalty: scores are divided by length**penalty, formula ch12-length: 0 ranks by probability, 1 by its mean logarithm.

    Returns:
        Pairs of a score and the tokens. A text that has ended keeps the place it took and leaves it at the next step.

    Raises:
        ValueError: if steps or width is not positive.

    Source: Wu et al. (2016), Google's Neural Machine Translation System, with a simpler penalty.
    """
    if steps < 1 or width < 1:
        raise ValueError(f"steps and width must be at least 1, got {steps} and {width}")
    live, done = [(0.0, ())], []
    for _ in range(steps):
        grown = [
            (total + float(step[i]), (*ids, int(i)))
            for total, ids in live
            for step in [log_probs(ids)]
            for i in _order(step)[:width]
            if step[i] > -math.inf
        ]
        best = sorted(grown, key=lambda found: -found[0])[:width]
        done += [found for found in best if found[1][-1] == end]
        live = [found for found in best if found[1][-1] != end]
    return sorted(((total / len(ids) ** penalty, ids) for total, ids in done + live), key=lambda found: -found[0])


def following(model: GPT, ids: Tensor, cached: bool = True) -> Callable[[tuple[int, ...]], Tensor]:
    """What `beam` asks a GPT: the tokens chosen so far after ids → (V,) log-probabilities of the next one.

    Args:
        model: gives logits (B, T, V).
        ids: (1, T) integers, the text to continue, at least one token.
        cached: whether each beginning keeps its keys and values: then it is asked only for tokens after a beginning of the step before.

    Raises:
        ValueError: if ids is not one sequence.
    """
    if ids.ndim != 2 or len(ids) != 1:
        raise ValueError(f"ids is one sequence, (1, T), got {tuple(ids.shape)}")
    caches = {}  # by the tokens chosen

    @torch.no_grad()
    def log_probs(chosen: tuple[int, ...]) -> Tensor:
        new = torch.cat([ids, ids.new_tensor([chosen])], dim=1) if chosen else ids  # (1, T + n)
        if not cached:
            return model(new)[0, -1].log_softmax(dim=-1)
        cache = caches[chosen[:-1]].copy() if chosen else model.cache()  # the beginning may be continued in other ways
        logits = model(new[:, len(cache) :], cache)[0, -1]
        for old in [key for key in caches if len(key) < len(chosen) - 1]:
            del caches[old]
        caches[chosen] = cache
        return logits.log_softmax(dim=-1)

    return log_probs


# ---------------------------------------------------------------- what it costs


def kv_bytes(n_layers: int, n_kv_heads: int, d_head: int, tokens: int = 1, batch: int = 1, bytes_each: float = 2) -> float:
    """The cache of keys and values in bytes, 2 · L · H_kv · d_head · T · B · b, formula ch12-kv-bytes.

    Args:
        n_layers, n_kv_heads, d_head: L, H_kv and d_head of the model.
        tokens, batch: T tokens in each of B sequences.
        bytes_each: b, the size of a number: 2 in float16, 4 in float32, 0.5 in 4 bits.
    """
    return 2 * n_layers * n_kv_heads * d_head * tokens * batch * bytes_each


def pass_flops(config: Config, new: int, total: int) -> int:
    """Multiplications and additions in the matrix products of one pass, formula ch12-pass.

    Args:
        config: of a `course.model.GPT`.
        new: tokens that are read; without a cache all of them.
        total: tokens that are attended to, those in the cache and the new ones.
    """
    d, width, kv_width = config.d_model, config.n_heads * config.d_head, config.kv_heads * config.d_head
    layer = 2 * d * width + 2 * d * kv_width + (3 if config.ffn == "swiglu" else 2) * d * config.hidden
    linear = 2 * new * (config.n_layers * layer + d * config.V)
    return linear + 4 * config.n_layers * new * total * width  # scores, and sums of values


def intensity(new: int, d_in: int, d_out: int, bytes_each: float = 2) -> float:
    """Operations for each byte that a linear layer moves, formula ch12-intensity: `new` rows through a (d_in, d_out) matrix."""
    return 2 * new * d_in * d_out / (bytes_each * (d_in * d_out + new * (d_in + d_out)))
