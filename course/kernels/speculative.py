"""Speculative decoding: a small model guesses some tokens, the large one checks all of them in one pass, and nothing is lost.

For one sequence a pass of the target over k + 1 tokens takes about as long as over one: its time goes into reading weights and
starting kernels. So a draft, a smaller GPT with the same vocabulary, guesses k tokens, one after the other. A guess x that the draft
drew with probability q(x) is kept with probability min(1, p(x) / q(x)), p being the target's. At the first that is not kept a token is
drawn from what is left, max(p − q, 0) / Σ max(p − q, 0), and the guesses after it are dropped. What comes out has the target's
distribution exactly, whatever the draft is; the draft only decides how fast.

`generate` says it plainly, with the models and their caches. `SpeculativeDecoder` is its fast twin: both models are decoders of
`course.kernels.decoding`, and a round, guesses, check and choice, is one CUDA graph that never waits for Python.

Source: Leviathan et al. (2023), Fast Inference from Transformers via Speculative Decoding, algorithm 1 and appendix A.1.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from course.kernels.decoding import Decoder, captured
from course.model import GPT

__all__ = ["Counts", "SpeculativeDecoder", "generate"]


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
    _check(target, draft)
    if ids.ndim != 2 or len(ids) != 1 or not ids.shape[1]:
        raise ValueError(f"ids must be (1, T) with at least one token, got {tuple(ids.shape)}")
    if min(new, guesses, temperature) < 0:
        raise ValueError(f"new, guesses and temperature must be 0 or more, got {new}, {guesses} and {temperature}")
    end, counts = ids.shape[1] + new, Counts()
    caches = {model: model.cache() for model in (target, draft)}

    def probabilities(model: GPT, tokens: Tensor, last: int) -> Tensor:
        """Of what follows each of the last tokens, (last, V). The model reads those that its cache does not hold."""
        return _softmax(model(tokens[:, len(caches[model]) :], caches[model])[0, -last:], temperature)

    while ids.shape[1] < end:
        k = min(guesses, end - ids.shape[1] - 1)
        tokens, guessed = ids, []
        for _ in range(k):
            guessed.append(probabilities(draft, tokens, 1))
            tokens = torch.cat([tokens, _draw(guessed[-1], generator)], dim=1)
        p = probabilities(target, tokens, k + 1)  # (k + 1, V)
        kept, token = _verdict(p, torch.cat([*guessed, torch.zeros_like(p[:1])]), tokens[0, -k - 1 :], generator)
        ids = torch.cat([tokens[:, : ids.shape[1] + kept], token], dim=1)
        for cache in caches.values():
            cache.cut(ids.shape[1] - 1)  # what was read of guesses that are dropped goes
        counts.passes, counts.guessed, counts.kept = counts.passes + 1, counts.guessed + k, counts.kept + int(kept)
    return ids, counts


def _check(target: GPT, draft: GPT) -> None:
    if target.config.V != draft.config.V:
        raise ValueError(f"draft and target must have one vocabulary, got V = {draft.config.V} and {target.config.V}")


def _softmax(logits: Tensor, temperature: float) -> Tensor:
    """(n, V) → (n, V) in float32; at temperature 0 all of it on the likeliest token."""
    if temperature == 0:
        return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).float()
    return (logits.float() / temperature).softmax(dim=-1)


def _verdict(p: Tensor, q: Tensor, tokens: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """How many of k guesses are kept, (), and the token behind those, (1, 1).

    Args:
        p, q: (k + 1, V) of target and draft; the last row of q is zeros, since nothing was guessed there, and so all of p is left.
        tokens: (k + 1,), the token that was there and the guesses.
    """
    proposed = tokens[1:, None]  # (k, 1)
    ratio = (p[:-1].gather(1, proposed) / q[:-1].gather(1, proposed))[:, 0].clamp(max=1.0)  # (k,)
    kept = _coins(ratio, generator).long().cumprod(dim=0).sum()  # those before the first that is not kept
    left = (p - q).index_select(0, kept[None]).clamp(min=0.0)  # (1, V)
    return kept, _draw(left, generator)


def _draw(weights: Tensor, generator: torch.Generator | None) -> Tensor:
    """A token of each row with the probability of its share, (n, V) → (n, 1): the first to come of exponential waits with these rates."""
    waits = torch.empty_like(weights).exponential_(generator=generator)
    return (weights / waits).argmax(dim=-1, keepdim=True)


def _coins(probabilities: Tensor, generator: torch.Generator | None) -> Tensor:
    """True with the given probabilities."""
    return torch.rand(probabilities.shape, generator=generator, device=probabilities.device) < probabilities


class SpeculativeDecoder:
    """`generate` for one sequence of up to `length` tokens, prompt and new ones together, fast.

    Args:
        target, draft: on a GPU, in bfloat16 or float16, with the same vocabulary; their weights are read when this is made.
        length: how many tokens there is room for.
        guesses, temperature, generator: as of `generate`; the generator must be of the models' device.

    Raises:
        TypeError, ValueError: as `Decoder` does, and if the vocabularies differ or a number is out of range.
    """

    def __init__(
        self,
        target: GPT,
        draft: GPT,
        length: int,
        guesses: int = 4,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
    ):
        _check(target, draft)
        if min(guesses, temperature) < 0:
            raise ValueError(f"guesses and temperature must be 0 or more, got {guesses} and {temperature}")
        self.length, self.guesses, self.temperature, self.generator = length, guesses, temperature, generator
        self.target, self.draft = (Decoder(model, 1, length + guesses) for model in (target, draft))  # a last round may go beyond
        self.draft.tokens = self.target.tokens
        self.counts = torch.zeros(3, dtype=torch.int64, device=self.target.tokens.device)
        self.graph = None

    @torch.no_grad()
    def generate(self, ids: Tensor, new: int) -> tuple[Tensor, Counts]:
        """(1, T) → (1, T + new) and the counts, in which guesses of the last round count although they may lie beyond the end.

        Raises:
            ValueError: if ids are not (1, T) with at least one token, or there is no room for all tokens.
        """
        if ids.ndim != 2 or len(ids) != 1 or not ids.shape[1]:
            raise ValueError(f"ids must be (1, T) with at least one token, got {tuple(ids.shape)}")
        end = ids.shape[1] + new
        if new < 0 or end > self.length:
            raise ValueError(f"{ids.shape[1]} tokens and {new} new ones do not fit into a length of {self.length}")
        if self.graph is None and ids.is_cuda:
            self.graph = self._captured()
        self.counts.zero_()
        for decoder in (self.draft, self.target):
            decoder.start(ids)
        there = ids.shape[1]
        while there < end:
            least = -(-(end - there) // (self.guesses + 1))  # so many rounds it takes at least: none of them needs a look
            for _ in range(least):
                self.graph.replay() if self.graph else self._round()
            there = int(self.target.position) + 1
        return self.target.tokens[:, :end].clone(), Counts(*self.counts.tolist())

    def _captured(self) -> torch.cuda.CUDAGraph:
        return captured(self._round, *([self.generator] if self.generator else []))

    def _round(self) -> None:
        """Guess, check, choose; then the position is that of the last token chosen, which neither model needs to have read."""
        target, draft, tokens, at = self.target, self.draft, self.target.tokens, self.target.position
        guessed = []
        for guess in range(self.guesses):
            if guess:
                logits = draft.read()
            else:  # if all guesses were kept, the draft has not read the last of them: it always reads two tokens here
                draft.position.copy_((at - 1).clamp(min=0))
                logits = draft.read(2).index_select(0, at - draft.position)  # (1, V)
                draft.position.copy_(at)
            guessed.append(_softmax(logits, self.temperature))
            draft.position += 1
            tokens.index_copy_(1, draft.position, _draw(guessed[-1], self.generator))
        p = _softmax(target.read(self.guesses + 1), self.temperature)  # (guesses + 1, V)
        seen = at + torch.arange(self.guesses + 1, device=at.device)
        kept, token = _verdict(p, torch.cat([*guessed, torch.zeros_like(p[:1])]), tokens[0].index_select(0, seen), self.generator)
        at += kept + 1
        tokens.index_copy_(1, at, token)
        self.counts += torch.stack([torch.ones_like(kept), torch.full_like(kept, self.guesses), kept])
