"""Masks that make families, what a position can know, blanks to fill, cross-attention, small models: chapter ch10.

Masks are boolean here: `allowed[i, j]` is true where query i may see key j. Row vectors throughout: a layer computes ``x @ W``.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = [
    "FAMILIES",
    "MASKS",
    "Family",
    "Layer",
    "cross_attention",
    "either_order",
    "fit",
    "generate",
    "gradient_influence",
    "lists",
    "mask_for",
    "mlm_batch",
    "mlm_loss",
    "product_total",
    "reach",
    "reversal",
]

MASKS = ("bidirectional", "causal", "prefix")
FAMILIES = ("encoder", "decoder", "prefix", "encoder-decoder")

# ---------------------------------------------------------------- masks and what they let through


def mask_for(kind: str, T: int, prefix: int = 0, lengths: Tensor | None = None) -> Tensor:
    """Which query may see which key, formula ch10-mask.

    Args:
        kind: "bidirectional": all see all; "causal": what comes later is hidden; "prefix": causal, but the first
            `prefix` tokens are seen by all.
        T: number of tokens.
        prefix: used by "prefix" only.
        lengths: (B,) integers, at least 1; in row b the tokens from lengths[b] on are padding, which nobody sees. What
            comes out at padding is for nobody; it is finite, since every query sees token 0.

    Returns:
        boolean (T, T), or (B, T, T) with lengths.

    Raises:
        ValueError: if the kind is unknown, or the prefix or a length does not fit T.
    """
    if kind not in MASKS:
        raise ValueError(f"kind must be one of {', '.join(MASKS)}, got {kind!r}")
    if not 0 <= prefix <= T:
        raise ValueError(f"a prefix of {prefix} tokens does not fit {T} tokens")
    place = torch.arange(T)
    allowed = torch.ones(T, T, dtype=torch.bool) if kind == "bidirectional" else place[:, None] >= place  # (T, T)
    if kind == "prefix":
        allowed = allowed | (place < prefix)
    if lengths is None:
        return allowed
    if lengths.numel() and not 1 <= int(lengths.min()) <= int(lengths.max()) <= T:
        raise ValueError(f"lengths must be between 1 and {T}, got {int(lengths.min())} to {int(lengths.max())}")
    real = place < lengths[:, None]  # (B, T)
    return allowed & real[:, None, :]  # (B, T, T)


def reach(allowed: Tensor, n_layers: int, residual: bool = True) -> Tensor:
    """Which position can know which token after n layers of the same mask, formula ch10-reach: allowed, boolean (T, T) → (T, T).

    Without the residual stream a position knows only what it reads.

    Raises:
        ValueError: if n_layers is less than 1.
    """
    if n_layers < 1:
        raise ValueError(f"n_layers must be at least 1, got {n_layers}")
    step = allowed | torch.eye(len(allowed), dtype=torch.bool) if residual else allowed
    return torch.linalg.matrix_power(step.double(), n_layers) > 0


def gradient_influence(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """How strongly row i of f(x) depends on row j of x: the Frobenius norm of the block ∂f(x)_i/∂x_j of the Jacobian.

    x (T, d), f: (T, d) → (T, d′). Returns (T, T); an exact zero where nothing flows.
    """
    jacobian = torch.autograd.functional.jacobian(f, x)  # (T, d′, T, d)
    return jacobian.square().sum(dim=(1, 3)).sqrt()


# ---------------------------------------------------------------- blanks


def mlm_batch(ids: Tensor, V: int, mask_id: int, generator: torch.Generator | None = None, rate: float = 0.15) -> tuple:
    """Blanks for masked language modelling.

    Each token is chosen with probability `rate`. Of the chosen, 80% become [MASK], 10% a random token, 10% stay.

    Args:
        ids: (B, T) tokens below V.
        V: number of ordinary tokens; a random token is one of them.
        mask_id: the id of [MASK].

    Returns:
        What the model reads, (B, T), and which positions count in the loss, boolean (B, T).

    Raises:
        ValueError: if the rate is not between 0 and 1.

    Source: Devlin et al. (2019), BERT: Pre-training of Deep Bidirectional Transformers, section 3.1.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"rate is a probability, got {rate}")
    chosen = torch.rand(ids.shape, generator=generator) < rate  # (B, T)
    fate = torch.rand(ids.shape, generator=generator)
    random_ids = torch.randint(V, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.8), mask_id, ids)
    return torch.where(chosen & (fate >= 0.8) & (fate < 0.9), random_ids, inputs), chosen


def mlm_loss(logits: Tensor, ids: Tensor, chosen: Tensor) -> Tensor:
    """Formula ch10-mlm: the mean loss in nats over the chosen positions. logits (B, T, V), ids and chosen (B, T).

    Raises:
        ValueError: if no position is chosen; the mean of nothing is not a number.
    """
    if not chosen.any():
        raise ValueError("no position was chosen: draw again, or give more tokens")
    return F.cross_entropy(logits[chosen], ids[chosen])


def product_total(joint: Tensor) -> Tensor:
    """Σ over all pairs (a, b) of p(a | b) p(b | a), formula ch10-total: what the product of two filled blanks sums to.

    joint (V, W): the probabilities of pairs. A 0-d tensor, at least 1. Pairs that never occur count as 0.
    """
    first, second = joint.sum(dim=1, keepdim=True), joint.sum(dim=0, keepdim=True)  # (V, 1), (1, W)
    return torch.where(joint > 0, joint.square() / (first * second), 0.0).sum()


# ---------------------------------------------------------------- cross-attention


def cross_attention(
    x: Tensor, memory: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor, W_o: Tensor, n_heads: int, allowed: Tensor | None = None
) -> Tensor:
    """Multi-head attention whose queries come from x, its keys and values from memory, formula ch10-cross.

    With memory = x it is self-attention.

    Args:
        x: (B, T, d_model).
        memory: (B, S, d_memory).
        W_q: (d_model, d_model); W_k, W_v: (d_memory, d_model); W_o: (d_model, d_model).
        allowed: boolean (T, S) or (B, T, S); None: every query sees every key.

    Returns:
        (B, T, d_model).

    Raises:
        ValueError: if the heads do not divide the width.

    Source: Vaswani et al. (2017), section 3.2.3.
    """
    if W_q.shape[1] % n_heads:
        raise ValueError(f"{n_heads} heads do not divide the width {W_q.shape[1]}")
    query, key, value = (
        each.unflatten(-1, (n_heads, -1)).transpose(-3, -2) for each in (x @ W_q, memory @ W_k, memory @ W_v)
    )  # (B, H, T, d_head), (B, H, S, d_head) twice
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (B, H, T, S)
    if allowed is not None:
        scores = scores.masked_fill(~allowed.unsqueeze(-3), -math.inf)
    mixed = scores.softmax(dim=-1) @ value  # (B, H, T, d_head)
    return mixed.transpose(-3, -2).flatten(-2) @ W_o


# ---------------------------------------------------------------- three families, one layer


class Layer(nn.Module):
    """Pre-norm: self-attention, cross-attention if asked for, a feed-forward network with GELU. (B, T, d_model) → same."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, cross: bool = False):
        super().__init__()
        self.n_heads = n_heads
        self.norms = nn.ModuleList(nn.RMSNorm(d_model) for _ in range(3 if cross else 2))
        self.own = nn.ParameterList(torch.randn(d_model, d_model) * d_model**-0.5 for _ in range(4))  # W_q, W_k, W_v, W_o
        self.cross = nn.ParameterList(torch.randn(d_model, d_model) * d_model**-0.5 for _ in range(4 if cross else 0))
        self.up, self.down = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Tensor, allowed: Tensor, memory: Tensor | None = None) -> Tensor:
        """x (B, T, d_model) with the mask allowed (T, T), and memory (B, S, d_model) for the cross-attention → shape of x."""
        h = self.norms[0](x)
        x = x + cross_attention(h, h, *self.own, self.n_heads, allowed)
        if memory is not None:
            x = x + cross_attention(self.norms[1](x), memory, *self.cross, self.n_heads)
        return x + self.down(F.gelu(self.up(self.norms[-1](x))))


class Family(nn.Module):
    """A model that reads a source of n tokens and gives logits for a target of n tokens, in one of four arrangements.

    Two layers each: both of the encoder, both of the decoder, or one of each. The last has a cross-attention more and
    a narrower feed-forward network, so that all have as many matrix entries. One table of 2n positions for all.

    Args:
        kind: of `FAMILIES`. "prefix" is a decoder whose source is seen in both directions.
        V: number of tokens; one more is added, which comes before the target.
        n: length of source and target.
        d_model: width, divisible by the heads.

    Raises:
        ValueError: if the kind is unknown.
    """

    def __init__(self, kind: str, V: int, n: int, d_model: int = 32, n_heads: int = 2):
        super().__init__()
        if kind not in FAMILIES:
            raise ValueError(f"kind must be one of {', '.join(FAMILIES)}, got {kind!r}")
        self.kind, self.V, self.n = kind, V, n
        self.embedding, self.position = nn.Embedding(V + 1, d_model), nn.Embedding(2 * n, d_model)
        both = kind == "encoder-decoder"
        readers, writers = {"encoder": (2, 0), "encoder-decoder": (1, 1)}.get(kind, (0, 2))
        sizes = d_model, n_heads, (3 if both else 4) * d_model
        self.readers = nn.ModuleList(Layer(*sizes) for _ in range(readers))
        self.writers = nn.ModuleList(Layer(*sizes, cross=both) for _ in range(writers))
        self.norm, self.head = nn.RMSNorm(d_model), nn.Linear(d_model, V, bias=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """source, target (B, n) → logits (B, n, V) for the target. Position k uses the target's tokens before k only."""
        x = self.embedding(source) + self.position.weight[: self.n]  # (B, n, d_model)
        for layer in self.readers:
            x = layer(x, mask_for("bidirectional", self.n))
        if self.kind != "encoder":
            x = self.write(x, target)
        return self.head(self.norm(x))

    def write(self, x: Tensor, target: Tensor) -> Tensor:
        """The stream after the writing layers, at the positions of the target: x (B, n, d_model), target (B, n) → (B, n, d_model)."""
        n, start = self.n, torch.full_like(target[:, :1], self.V)
        shifted = torch.cat([start, target[:, :-1]], dim=1)  # (B, n): teacher forcing
        y = self.embedding(shifted) + self.position.weight[n:]
        if self.kind == "encoder-decoder":
            for layer in self.writers:
                y = layer(y, mask_for("causal", n), memory=x)
            return y
        y = torch.cat([x, y], dim=1)  # (B, 2n, d_model): source and target in one row
        allowed = mask_for("prefix" if self.kind == "prefix" else "causal", 2 * n, prefix=n if self.kind == "prefix" else 0)
        for layer in self.writers:
            y = layer(y, allowed)
        return y[:, n:]


def generate(model: Family, source: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """A target for each source: the largest logit, or drawn from the softmax if there is a generator. (B, n) → (B, n).

    An encoder fills all places at once; the others write one token after the other and read what they wrote.
    """
    target = torch.zeros_like(source)
    for k in range(source.shape[1]):
        with torch.no_grad():
            logits = model(source, target)  # (B, n, V)
        if generator is None:
            chosen = logits.argmax(dim=-1)
        else:
            chosen = torch.multinomial(logits.softmax(dim=-1).flatten(0, 1), 1, generator=generator).view_as(source)
        if model.kind == "encoder":
            return chosen
        target[:, k] = chosen[:, k]
    return target


# ---------------------------------------------------------------- two tasks


def lists(B: int, n: int, V: int, generator: torch.Generator) -> Tensor:
    """B lists of n distinct tokens, in random order: (B, n)."""
    return torch.rand(B, V, generator=generator).argsort(dim=1)[:, :n]


def reversal(B: int, n: int, V: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Lists, and the same lists backwards: twice (B, n)."""
    source = lists(B, n, V, generator)
    return source, source.flip(1)


def either_order(B: int, n: int, V: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Lists, and the same lists forwards or backwards, with probability one half each: twice (B, n)."""
    source = lists(B, n, V, generator)
    backwards = torch.rand(B, 1, generator=generator) < 0.5
    return source, torch.where(backwards, source.flip(1), source)


def fit(model: Family, batch: Callable, steps: int, lr: float = 1e-2) -> list[float]:
    """Adam on the loss of the target, given its true tokens before; the learning rate falls to 0 in a straight line.

    `batch()` gives source and target, (B, n). Returns the loss of each step in nats.
    """
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for step in range(steps):
        source, target = batch()
        optimiser.param_groups[0]["lr"] = lr * (1 - step / steps)
        loss = F.cross_entropy(model(source, target).flatten(0, 1), target.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses
