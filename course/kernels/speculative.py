"""Speculative decoding: a small model guesses some tokens, the large one checks all of them in one pass, and nothing is lost.

For one sequence a pass of the target over k + 1 tokens takes about as long as over one: its time goes into reading weights and
starting kernels. So a draft, a smaller GPT with the same vocabulary, guesses k tokens, one after the other. A guess x that the draft
drew with probability q(x) is kept with probability min(1, p(x) / q(x)), p being the target's. At the first that is not kept a token is
drawn from what is left, max(p − q, 0) / Σ max(p − q, 0), and the guesses after it are dropped. What comes out has the target's
distribution exactly, whatever the draft is; the draft only decides how fast. Leviathan et al. 2023, algorithm 1 and appendix A.1.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from course.model import GPT, KVCache

__all__ = ["Counts", "generate"]


@dataclass
class Counts:
    """How a run went: passes of the target, tokens guessed, guesses kept."""

    passes: int = 0
    guessed: int = 0
    kept: int = 0


@torch.no_grad()
def generate(
    target: GPT,
    draft: GPT,
    ids: Tensor,
    new: int,
    guesses: int = 4,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Counts]:
    """Continue one sequence as the target would.

    Args:
        ids: (1, T), the prompt, T ≥ 1.
        new: how many tokens to add.
        guesses: how many tokens the draft guesses before the target checks them; 0 is decoding without a draft.
        temperature: of the softmax of both models; 0 takes the likeliest token, and gives the target's greedy tokens.

    Returns:
        (1, T + new) and the counts.

    Raises:
        ValueError: if the vocabularies differ, ids are not (1, T), or a number is negative.
    """
    if target.config.V != draft.config.V:
        raise ValueError(f"draft and target must have one vocabulary, got V = {draft.config.V} and {target.config.V}")
    if ids.ndim != 2 or len(ids) != 1 or not ids.shape[1]:
        raise ValueError(f"ids must be (1, T) with at least one token, got {tuple(ids.shape)}")
    if min(new, guesses, temperature) < 0:
        raise ValueError(f"new, guesses and temperature must be 0 or more, got {new}, {guesses} and {temperature}")
    end, counts = ids.shape[1] + new, Counts()
    caches = {model: model.cache() for model in (target, draft)}

    def probabilities(model: GPT, tokens: Tensor, last: int) -> Tensor:
        """Of what follows each of the last tokens, (last, V). The model reads those that its cache does not hold."""
        logits = model(tokens[:, len(caches[model]) :], caches[model])[0, -last:].float()
        if temperature == 0:
            return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).float()
        return (logits / temperature).softmax(dim=-1)

    while ids.shape[1] < end:
        k = min(guesses, end - ids.shape[1] - 1)
        tokens, guessed = ids, []
        for _ in range(k):
            guessed.append(probabilities(draft, tokens, 1))
            tokens = torch.cat([tokens, _draw(guessed[-1], generator)], dim=1)
        p = probabilities(target, tokens, k + 1)  # (k + 1, V)
        kept = 0
        if k:
            q, proposed = torch.cat(guessed), tokens[0, -k:, None]  # (k, V), (k, 1)
            ratio = (p[:k].gather(1, proposed) / q.gather(1, proposed))[:, 0].clamp(max=1.0)  # (k,)
            kept = int(_coins(ratio, generator).long().cumprod(dim=0).sum())  # those before the first that is not kept
        left = p[kept] if kept == k else (p[kept] - q[kept]).clamp(min=0.0)  # (V,); multinomial divides by the sum
        ids = torch.cat([tokens[:, : ids.shape[1] + kept], _draw(left[None], generator)], dim=1)
        for cache in caches.values():
            _forget(cache, ids.shape[1] - 1)
        counts.passes, counts.guessed, counts.kept = counts.passes + 1, counts.guessed + k, counts.kept + kept
    return ids, counts


def _draw(weights: Tensor, generator: torch.Generator | None) -> Tensor:
    """A token of each row with the probability of its share: (n, V) → (n, 1)."""
    return torch.multinomial(weights, 1, generator=generator)


def _coins(probabilities: Tensor, generator: torch.Generator | None) -> Tensor:
    """True with the given probabilities."""
    return torch.rand(probabilities.shape, generator=generator, device=probabilities.device) < probabilities


def _forget(cache: KVCache, n: int) -> None:
    """Keep at most the first n tokens: what was read of guesses that are dropped goes."""
    if len(cache) > n:
        cache.keys = [key[:, :, :n] for key in cache.keys]
        cache.values = [value[:, :, :n] for value in cache.values]
