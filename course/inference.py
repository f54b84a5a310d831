"""Choosing tokens, remembering keys and values, and what both cost: the reference code of chapter ch12."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course.model import GPT, Config

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
    reached = logits.softmax(dim=-1).gather(-1, order).cumsum(dim=-1)  # (..., V)
    before = torch.nn.functional.pad(reached, (1, -1))  # (..., V), what the more probable tokens sum to
    return _only(logits, order).where((before < p).gather(-1, order.argsort(dim=-1)), -math.inf)


def keep_min_p(logits: Tensor, m: float) -> Tensor:
    """The tokens at least m times as probable as the most probable one, formula ch12-min-p; the others become −∞.

    Args:
        logits: (..., V) floats.
        m: above 0, at most 1; 1 keeps the most probable token and its equals.

    Returns:
        (..., V) in the dtype of logits.

    Raises:
        ValueError: if m is not in (0, 1].

    Source: Nguyen et al. (2024), Turning Up the Heat: Min-p Sampling.
    """
    if not 0 < m <= 1:
        raise ValueError(f"m is a share above 0, at most 1, got {m}")
    return logits.where(logits >= logits.amax(dim=-1, keepdim=True) + math.log(m), -math.inf)


def _order(logits: Tensor) -> Tensor:
    """Ids from the largest logit to the smallest, the smaller id first among equals: (..., V)."""
    return logits.argsort(dim=-1, descending=True, stable=True)


def _only(logits: Tensor, ids: Tensor) -> Tensor:
    return torch.full_like(logits, -math.inf).scatter(-1, ids, logits.gather(-1, ids))


def greedy(logits: Tensor) -> Tensor:
    """The most probable token: (..., V) → (...) ids, the smallest among equals."""
    return _order(logits)[..., 0]


def sample(logits: Tensor, tau: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """A token drawn from softmax(logits / tau): (B, V) → (B,) ids.

    Raises:
        ValueError: if tau is not positive: for the limit at 0 take `greedy`.
    """
    if not tau > 0:
        raise ValueError(f"tau must be positive, got {tau}: for the limit at 0 take greedy")
    lead = logits - logits.amax(dim=-1, keepdim=True)  # at most 0, so that a small tau does not overflow
    return torch.multinomial((lead / tau).softmax(dim=-1), 1, generator=generator)[:, 0]


def sample_top_p(logits: Tensor, p: float, tau: float = 1.0, generator: torch.Generator | None = None) -> Tensor:
    """A token drawn from the nucleus, temperature first, then the filter: (B, V) → (B,) ids.

    Raises:
        ValueError: if p is not in (0, 1] or tau is not positive.
    """
    if not tau > 0:
        raise ValueError(f"tau must be positive, got {tau}: for the limit at 0 take greedy")
    return sample(keep_top_p((logits - logits.amax(dim=-1, keepdim=True)) / tau, p), generator=generator)


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
    log_probs: Callable[[tuple[int, ...]], Tensor], steps: int, width: int, end: int | None = None, alpha: float = 0.0
) -> list[tuple[float, tuple[int, ...]]]:
    """Continuations of up to `steps` tokens found by beam search, the best first.

    Args:
        log_probs: the tokens chosen so far → (V,) log-probabilities of the next one.
        steps: at most how many tokens.
        width: how many continuations are kept at each step; 1 is greedy.
        end: the id of the token that ends a text; None lets all texts have `steps` tokens.
        alpha: scores are divided by length**alpha, formula ch12-length: 0 ranks by probability, 1 by its mean logarithm.

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
    return sorted(((total / len(ids) ** alpha, ids) for total, ids in done + live), key=lambda found: -found[0])


class CountModel:
    """A language model of characters by counting: the next one given the last `order` − 1.

    A context seen rarely leans on the next shorter one: p = (count + prior · p_shorter) / (total + prior), down to equal
    chances for all characters.

    Args:
        text: what to count; its characters, sorted, are the vocabulary.
        order: how many characters a count spans, at least 1.
        prior: how many counts the shorter context is worth.
    """

    def __init__(self, text: str, order: int = 6, prior: float = 1.0):
        self.vocabulary, self.order, self.prior = sorted(set(text)), order, prior
        self.id_of = {character: i for i, character in enumerate(self.vocabulary)}
        self.counts: dict[str, Counter[int]] = defaultdict(Counter)
        for length in range(order):
            for i in range(length, len(text)):
                self.counts[text[i - length : i]][self.id_of[text[i]]] += 1

    def log_probs(self, ids: Sequence[int]) -> Tensor:
        """Ids so far → (V,) float64, the log-probability of each next character."""
        context = self.decode(ids[-(self.order - 1) :] if self.order > 1 else ())
        probs = torch.full((len(self.vocabulary),), 1 / len(self.vocabulary), dtype=torch.float64)
        for length in range(len(context) + 1):
            seen = self.counts.get(context[len(context) - length :])
            if not seen:
                break
            probs = self.prior * probs
            probs[list(seen)] += torch.tensor(list(seen.values()), dtype=torch.float64)
            probs = probs / (seen.total() + self.prior)
        return probs.log()

    def encode(self, text: str) -> tuple[int, ...]:
        """Raises KeyError at a character that was never counted."""
        return tuple(self.id_of[character] for character in text)

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.vocabulary[i] for i in ids)


# ---------------------------------------------------------------- what it costs


def kv_bytes(n_layers: int, n_kv_heads: int, d_head: int, tokens: int = 1, batch: int = 1, bytes_each: float = 2) -> float:
    """The cache of keys and values in bytes, 2 · L · H_kv · d_head · T · B · b, formula x-kvbytes.

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
