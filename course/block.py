"""The mask, what a token can influence, the GPT's tensors by name, and a copying task: chapter ch09.

The block and the GPT themselves are in `course.model`. Row vectors throughout: a layer computes ``x @ W``.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course.model import GPT, Config
from course.position_rope import rope

__all__ = ["NAMES", "AttentionOnly", "causal_mask", "copy_accuracy", "influence", "model_of", "repeats", "train", "weights_of"]

# ---------------------------------------------------------------- the mask


def causal_mask(T: int) -> Tensor:
    """M, formula ch09-causal-mask: 0 where key j may be seen by query i (j ≤ i), −∞ where it is the future. (T, T) float32."""
    return torch.full((T, T), -math.inf).triu(1)


def influence(model: Callable, ids: Tensor, V: int) -> Tensor:
    """How far the logits at position i move when the token at position j becomes the next one in the vocabulary.

    ids (T,), model: ids (B, T) → logits (B, T, V). Returns (T, T), the largest change of a logit; of a causal model
    nothing above the diagonal.
    """
    changed = (ids + torch.eye(len(ids), dtype=ids.dtype)) % V  # (T, T): row j has another token at position j
    with torch.no_grad():
        return (model(changed) - model(ids[None])).abs().amax(dim=-1).T  # (T, T)


# ---------------------------------------------------------------- the tensors of a GPT by name

NAMES = {
    "norm_1": "norm_1.weight",
    "W_q": "attention.query.weight",
    "W_k": "attention.key.weight",
    "W_v": "attention.value.weight",
    "W_o": "attention.out.weight",
    "norm_2": "norm_2.weight",
    "W_gate": "ffn.gate.weight",
    "W_up": "ffn.up.weight",
    "W_down": "ffn.down.weight",
}  # of one block, and what `course.model` calls them


def weights_of(model: GPT) -> dict:
    """The tensors of a GPT with RMSNorm, RoPE, SwiGLU and no biases; matrices as (inputs, outputs), for ``x @ W``.

    "E" (V, d_model), "norm" (d_model,), "W_head" (d_model, V) unless it is tied, and "blocks": for each a dict of
    `NAMES`. Copies: the model does not change with them.

    Raises:
        ValueError: if the model has other parts.
    """
    c = model.config
    if (c.norm, c.position, c.ffn, c.bias) != ("rms", "rope", "swiglu", False):
        raise ValueError("only a model with RMSNorm, RoPE, SwiGLU and no biases has these tensors")
    own = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    blocks = [{name: own[f"blocks.{i}.{theirs}"].t() for name, theirs in NAMES.items()} for i in range(c.n_layers)]
    p = {"E": own["embedding.weight"], "norm": own["norm.weight"], "blocks": blocks}
    return p if c.tied else p | {"W_head": own["head.weight"].T}


def model_of(p: dict, n_heads: int, n_kv_heads: int) -> GPT:
    """The GPT with copies of these tensors, in their dtype: the inverse of `weights_of`.

    Raises:
        ValueError: if the tensors fit no model.
    """
    V, d_model = p["E"].shape
    d_ff = p["blocks"][0]["W_gate"].shape[1]
    config = Config(V, d_model, len(p["blocks"]), n_heads, n_kv_heads, d_ff, tied="W_head" not in p)
    state = {f"blocks.{i}.{theirs}": b[name].t() for i, b in enumerate(p["blocks"]) for name, theirs in NAMES.items()}
    state |= {"embedding.weight": p["E"], "norm.weight": p["norm"], "head.weight": p["E"] if config.tied else p["W_head"].T}
    model = GPT(config).to(p["E"].dtype)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(f"the tensors do not fit a model of {n_heads} heads and {n_kv_heads} key heads: {error}") from error
    return model


# ---------------------------------------------------------------- the experiment: how many layers does copying need?


class AttentionOnly(nn.Module):
    """Layers of x + attention(norm(x)) and nothing else: ids (B, T) → logits (B, T, V). RoPE with base 100."""

    def __init__(self, V: int, n_layers: int, d_model: int = 32, n_heads: int = 2, causal: bool = True):
        super().__init__()
        self.n_heads, self.causal = n_heads, causal
        self.embedding = nn.Embedding(V, d_model)
        self.norms = nn.ModuleList(nn.RMSNorm(d_model) for _ in range(n_layers))
        self.qkv = nn.ModuleList(nn.Linear(d_model, 3 * d_model, bias=False) for _ in range(n_layers))
        self.out = nn.ModuleList(nn.Linear(d_model, d_model, bias=False) for _ in range(n_layers))
        self.norm, self.head = nn.RMSNorm(d_model), nn.Linear(d_model, V, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """ids (B, T) → logits (B, T, V)."""
        x, positions = self.embedding(ids), torch.arange(ids.shape[1])  # (B, T, d_model), (T,)
        for norm, qkv, out in zip(self.norms, self.qkv, self.out, strict=True):
            query, key, value = qkv(norm(x)).unflatten(-1, (3, self.n_heads, -1)).permute(2, 0, 3, 1, 4)  # (B, H, T, d_head)
            query, key = rope(query, positions, 100.0), rope(key, positions, 100.0)
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
            x = x + out(mixed.transpose(1, 2).flatten(2))
        return self.head(self.norm(x))


def repeats(B: int, T: int, V: int, periods: tuple[int, int], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """B sequences, each a random list of distinct tokens said again and again, and where the next token is a repetition.

    The length of the list is drawn from `periods`, both ends included. ids (B, T), known (B, T − 1).

    Raises:
        ValueError: if the longest list does not fit the vocabulary or leaves nothing to repeat.
    """
    low, high = periods
    if not 1 <= low <= high <= min(V, T - 1):
        raise ValueError(f"periods {periods} must lie between 1 and the smaller of V = {V} and T − 1 = {T - 1}")
    period = torch.randint(low, high + 1, (B, 1), generator=generator)
    tokens = torch.rand(B, V, generator=generator).argsort(dim=1)  # a permutation of the vocabulary in each row
    place = torch.arange(T)  # (T,)
    return tokens.gather(1, place % period), place[1:] >= period


def copy_accuracy(model: Callable, ids: Tensor, known: Tensor) -> float:
    """The share of the repeated tokens that the largest logit predicts. ids (B, T), known (B, T − 1)."""
    with torch.no_grad():
        guess = model(ids)[:, :-1].argmax(dim=-1)  # (B, T − 1)
    return float((guess == ids[:, 1:])[known].float().mean())


def train(
    model: nn.Module,
    batch: Callable,
    steps: int,
    lr: float = 1e-2,
    warmup: int = 20,
    optimiser: torch.optim.Optimizer | None = None,
) -> list[float]:
    """Adam on the loss of the next token, where it counts; returns the loss of each step in nats.

    `batch()` gives ids (B, T) and what counts, (B, T − 1). To go on with a run, give its optimiser and no warmup.
    """
    optimiser = optimiser or torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for step in range(steps):
        ids, counts = batch()
        optimiser.param_groups[0]["lr"] = lr * min(1.0, (step + 1) / max(warmup, 1))
        loss = F.cross_entropy(model(ids)[:, :-1][counts], ids[:, 1:][counts])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses
