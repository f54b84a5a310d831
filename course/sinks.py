"""Attention sinks: where weight goes that is not needed, what else could take it, and what depends on it: chapter ch17.

Shapes: B texts of T tokens, H heads, S keys; G small models that are trained at once.

Source: Xiao et al. (2023), Efficient Streaming Language Models with Attention Sinks, section 3, for sinks and the streaming cache.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from course import attention_maps
from course.attention_maps import distance_profile, look
from course.decay_law import decay_fit
from course.model import GPT, KVCache

__all__ = [
    "FIXES",
    "IdleHeads",
    "StreamingCache",
    "correlation",
    "gamma_and_sink",
    "models_needed",
    "rescale_theta",
    "sink_mass",
    "softmax_plus_one",
    "streaming_logits",
    "streaming_mask",
    "train_idle",
]

# ---------------------------------------------------------------- weights that must go somewhere


def sink_mass(weights: Tensor, start: float = 0.1) -> Tensor:
    """Mean weight on the first token, formula ch17-sink-mass: weights (..., T, T) → (...).

    Args:
        weights: rows are queries.
        start: queries are counted from `start` · T on, rounded up, since the earliest have few keys to choose from.
    """
    return attention_maps.sink_mass(weights, math.ceil(start * weights.shape[-1]))


def softmax_plus_one(scores: Tensor, extra: Tensor | float = 0.0) -> Tensor:
    """Softmax with a place for nothing, formula ch17-drain: scores (..., S) → weights (..., S) that sum to at most one.

    Args:
        scores: −∞ hides a key; a row may be hidden as a whole, and its weights are zero.
        extra: the logit of nothing, a number or a tensor that broadcasts to scores without their last dimension; 0 adds e⁰ = 1
            to the denominator, −∞ gives back softmax.

    Source: Miller (2023), Attention Is Off By One.
    """
    extra = torch.as_tensor(extra, dtype=scores.dtype, device=scores.device).expand(scores.shape[:-1])[..., None]  # (..., 1)
    return torch.cat([scores, extra], dim=-1).softmax(dim=-1)[..., :-1]


# ---------------------------------------------------------------- a cache that forgets the middle


class StreamingCache(KVCache):
    """A cache that keeps the first tokens and the last ones, and forgets those between: give it one token at a time.

    Args:
        n_layers: of the model.
        window: how many of the last tokens are kept, the new one among them.
        first: how many tokens from the start are kept as well.

    Raises:
        ValueError: if window is less than 1 or first is negative.
    """

    def __init__(self, n_layers: int, window: int, first: int = 0):
        super().__init__(n_layers)
        if window < 1 or first < 0:
            raise ValueError(f"a token must see itself: window is at least 1 and first at least 0, got {window} and {first}")
        self.window, self.first = window, first

    def append(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add one token, key and value (B, kv_heads, 1, d_head), forget what is too old → those kept, (B, kv_heads, kept, d_head) each.

        Raises:
            ValueError: if it is more than one token: they would not all see the same keys.
        """
        if key.shape[2] != 1:
            raise ValueError(f"a streaming cache takes one token at a time, got {key.shape[2]}")
        old, kept = self.rooms[layer], []
        for i, new in enumerate((key, value)):
            both = new if old is None else torch.cat([old[i], new], dim=2)  # (B, kv_heads, n, d_head)
            cut = max(both.shape[2] - self.window, self.first)
            kept.append(torch.cat([both[:, :, : self.first], both[:, :, cut:]], dim=2))
        self.rooms[layer] = (kept[0], kept[1])
        return kept[0], kept[1]


def streaming_mask(T: int, window: int, first: int = 0) -> Tensor:
    """Which keys a query sees, (T, T): the last `window` up to itself and the first `first`."""
    back = torch.arange(T)[:, None] - torch.arange(T)  # (T, T)
    return (back >= 0) & ((back < window) | (torch.arange(T) < first))


@torch.no_grad()
def streaming_logits(model: GPT, ids: Tensor, window: int, first: int = 0, silent: bool = False) -> Tensor:
    """What a model says with a `StreamingCache`, for all tokens at once: ids (B, T) → logits (B, T, V).

    Args:
        model: with positions of RoPE.
        window, first: as of the cache.
        silent: whether the first keys take weight from later tokens and give them nothing: their values are zero.
    """
    T, H = ids.shape[1], model.config.n_heads
    mask, positions, x = streaming_mask(T, window, first).to(ids.device), torch.arange(T, device=ids.device), model.embedding(ids)
    for block in model.blocks:
        query, key, value = block.attention.project(block.norm_1(x), positions)
        key, value = (each.repeat_interleave(H // each.shape[1], dim=1) for each in (key, value))  # (B, H, T, d_head)
        heard = value if not silent else value * (torch.arange(T, device=ids.device) >= first)[:, None]
        mixed = F.scaled_dot_product_attention(query, key, heard, attn_mask=mask)  # (B, H, T, d_head)
        if silent:  # to each other the first tokens still speak
            few = (each[:, :, :first] for each in (query, key, value))
            mixed[:, :, :first] = F.scaled_dot_product_attention(*few, is_causal=True)
        x = x + block.attention.out(mixed.transpose(1, 2).flatten(2))  # (B, T, d_model)
        x = x + block.ffn(block.norm_2(x))
    return model.head(model.norm(x))


# ---------------------------------------------------------------- one model, another base


def rescale_theta(model: GPT, factor: float) -> GPT:
    """The same weights, not copied, with the base of RoPE times `factor`. The model itself is left as it is.

    Raises:
        ValueError: if the factor is not positive, or the model's positions are not RoPE's.
    """
    if not factor > 0 or model.config.position != "rope":
        raise ValueError(
            f"a positive factor of a base of RoPE is needed, got {factor} and positions of kind {model.config.position!r}"
        )
    with torch.device("meta"):
        twin = GPT(replace(model.config, theta=factor * model.config.theta))
    twin.load_state_dict(model.state_dict(), assign=True)
    if model.config.tied:
        twin.head.weight = twin.embedding.weight
    return twin.train(model.training)


def gamma_and_sink(model: GPT, ids: Tensor) -> tuple[float, float]:
    """The exponent of decay of the mean profile, and the sink mass, over layers, heads and texts: ids (B, T)."""
    profiles, sinks = [], []

    def see(layer, weights, stream):
        profiles.append(distance_profile(weights).mean(dim=(0, 1)))  # (D + 1,)
        sinks.append(sink_mass(weights).mean())

    look(model, ids, see)
    power = decay_fit(torch.stack(profiles).mean(dim=0))["power"]
    return float(power), float(torch.stack(sinks).mean())


# ---------------------------------------------------------------- do two readings move together?


def correlation(x: Tensor, y: Tensor) -> tuple[float, float, float]:
    """Pearson's r of x and y (n,), and the ends of its 95% interval by Fisher's z, formula ch17-fisher.

    Raises:
        ValueError: if there are fewer than four pairs, or one of the two does not vary.
    """
    if x.shape != y.shape or x.ndim != 1 or len(x) < 4:
        raise ValueError(f"an interval takes at least four pairs, got {tuple(x.shape)} and {tuple(y.shape)}")
    a, b = (each.double() - each.double().mean() for each in (x, y))
    if x.min() == x.max() or y.min() == y.max():  # the mean of equal numbers may be off in its last digit
        raise ValueError("a quantity that does not vary has no correlation with another")
    r = float((a @ b) / (a.norm() * b.norm()))
    z, half = math.atanh(max(min(r, 1 - 1e-15), -1 + 1e-15)), 1.959964 / math.sqrt(len(x) - 3)
    return r, math.tanh(z - half), math.tanh(z + half)


def models_needed(difference: float, spread: float, z_error: float = 1.959964, z_power: float = 0.841621) -> int:
    """How many models a test needs to see a mean difference, formula ch17-models.

    Args:
        difference: the mean that is to be told from zero.
        spread: standard deviation of the difference from model to model.
        z_error, z_power: normal quantiles, of a two-sided test at 5% and of a power of 80%.

    Raises:
        ValueError: if the difference is zero, which no number of models tells from zero, or the spread is negative.
    """
    if difference == 0 or spread < 0:
        raise ValueError(f"a difference from zero and a spread of at least 0 are needed, got {difference} and {spread}")
    return math.ceil(((z_error + z_power) * spread / difference) ** 2)


# ---------------------------------------------------------------- a head with nothing to do

FIXES = ("no mark", "BOS", "plus one", "gate")


class IdleHeads:
    """G models of one attention head whose task is at times to say nothing, trained at once.

    Each of T tokens has a name, one of V vectors, and a payload. The head must return the payload of the earlier token of the
    same name, and zero if there is none. A token with nothing to find is idle. All is computed in float64, so that what a training
    gives is nearly the same on every processor.

    Args:
        jobs: a fix of `FIXES` and a share of idle queries, from 0 to 1, for each model.
        seeds: as many numbers; models of one seed begin with the same weights and read tokens of the same draw.
    """

    V, T, d_name, d_payload = 16, 12, 16, 4

    def __init__(self, jobs: list[tuple[str, float]], seeds: list[int]):
        self.jobs, self.seeds, d = jobs, seeds, self.d_name + self.d_payload + 1
        self.draws = {seed: torch.Generator().manual_seed(seed) for seed in seeds}
        starts = {seed: self._start(self.draws[seed], d) for seed in self.draws}
        self.weights = {name: torch.stack([starts[s][name] for s in seeds]).requires_grad_(True) for name in starts[seeds[0]]}
        self.names = torch.stack([starts[s]["names"] for s in seeds])  # (G, V, d_name), not trained
        self.weights.pop("names")
        self.fix = torch.tensor([FIXES.index(fix) for fix, _ in jobs])  # (G,)

    def _start(self, draw: torch.Generator, d: int) -> dict[str, Tensor]:
        shapes = {"query": (d, 16), "key": (d, 16), "value": (d, self.d_payload), "mark": (d,), "gate": (d,)}
        made = {
            name: torch.randn(shape, generator=draw, dtype=torch.float64) * (0.0 if name == "gate" else d**-0.5)
            for name, shape in shapes.items()
        }
        return made | {"names": F.normalize(torch.randn(self.V, self.d_name, generator=draw, dtype=torch.float64), dim=-1)}

    def batch(self, B: int) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (G, B, T, d), targets (G, B, T, d_payload) and idle queries (G, B, T)."""
        drawn = {}
        for seed in dict.fromkeys(self.seeds):
            one = {"generator": self.draws[seed], "dtype": torch.float64}
            drawn[seed] = (
                torch.rand(B, self.V, **one).argsort(dim=1),
                torch.rand(B, self.T, **one),
                torch.randn(B, self.T, self.d_payload, **one),
            )
        order, chance, payload = (torch.stack([drawn[seed][i] for seed in self.seeds]) for i in range(3))
        share = torch.tensor([idle for _, idle in self.jobs])[:, None, None]
        half, place = self.T // 2, torch.arange(self.T)
        earlier = place - half  # the second half repeats the first, but for those that are idle
        idle = (place < half) | (chance < share)  # (G, B, T)
        name = torch.where(idle, order[..., : self.T], order[..., : self.T].gather(2, earlier.clamp_min(0).expand_as(chance)))
        vectors = self.names.gather(1, name.flatten(1)[..., None].expand(-1, -1, self.d_name)).unflatten(1, name.shape[1:])
        found = payload.roll(half, dims=2) * ~idle[..., None]
        return torch.cat([4 * vectors, payload, torch.ones_like(payload[..., :1])], dim=-1), found, idle

    def attend(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x (G, B, T, d) → outputs (G, B, T, d_payload) and weights (G, B, T, T + 2): the mark's, the tokens', nothing's."""
        w, (G, B, T, _) = self.weights, x.shape
        x = torch.cat([w["mark"][:, None, None].expand(G, B, 1, -1), x], dim=2)  # (G, B, T + 1, d)
        query, key, value = (torch.einsum("gbtd,gde->gbte", x, w[name]) for name in ("query", "key", "value"))
        scores = query @ key.mT / 4  # (G, B, T + 1, T + 1)
        fix = self.fix[:, None, None, None]
        place = torch.arange(T + 1)
        hidden = (place > place[:, None]) | ((place == 0) & (fix != 1) & (place[:, None] > 0))
        nothing = torch.where(fix == 2, 0.0, -math.inf).to(x.dtype).expand(G, B, T + 1, 1)
        weights = torch.cat([scores.masked_fill(hidden, -math.inf), nothing], dim=-1).softmax(dim=-1)
        gate = torch.where(fix == 3, torch.einsum("gbtd,gd->gbt", x, w["gate"]).sigmoid()[..., None], 1.0)
        return (gate * (weights[..., :-1] @ value))[:, :, 1:], weights[:, :, 1:]


def train_idle(models: IdleHeads, steps: int, B: int = 32, lr: float = 0.02) -> dict[str, Tensor]:
    """Train by Adam on the squared error of the second half of the tokens, then test on 256 new texts.

    Returns:
        "idle error" and "busy error": mean squared error of queries without and with something to find, (G,); "idle place" and
        "busy place": their mean weight on the mark and on nothing together, (G,). The payloads have variance 1, so silence where
        the head is busy has an error of 1.
    """
    optimiser, half = torch.optim.Adam(list(models.weights.values()), lr=lr), models.T // 2
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = lr * min(1.0, 2 * (steps - step) / steps)
        x, target, _ = models.batch(B)
        error = (models.attend(x)[0] - target)[:, :, half:].square().mean(dim=(1, 2, 3)).sum()
        optimiser.zero_grad()
        error.backward()
        optimiser.step()
    with torch.no_grad():
        x, target, idle = models.batch(256)
        out, weights = models.attend(x)
        error, place = (out - target).square().mean(dim=-1)[:, :, half:], (weights[..., 0] + weights[..., -1])[:, :, half:]
        told = {}
        for kind, chosen in (("idle", idle[:, :, half:]), ("busy", ~idle[:, :, half:])):
            n = chosen.sum(dim=(1, 2))
            told[f"{kind} error"], told[f"{kind} place"] = ((each * chosen).sum(dim=(1, 2)) / n for each in (error, place))
    return told
