"""The course's GPT: a decoder in one file that reads from top to bottom.

Token ids go in, a score for each possible next token comes out:

    embedding → n_layers × (x + attention(norm(x)), then x + ffn(norm(x))) → norm → head

With its defaults it is built as Llama is: RMSNorm, RoPE, SwiGLU, no biases. With ``norm="layer"``,
``position="learned"``, ``ffn="gelu_tanh"``, ``bias=True``, ``tied=True`` it is GPT-2; ``qkv_bias=True`` makes it Qwen 2,
``qk_norm=True`` Qwen 3. The tests hold it equal to all of them.

Shapes: B sequences of T new tokens, S tokens that are attended to (S = T without a cache), H = n_heads.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course import cookbook
from course.position_rope import rope

__all__ = ["GPT", "Attention", "Block", "Config", "FeedForward", "KVCache", "RMSNorm", "attend"]


# ---------------------------------------------------------------- what a model is


@dataclass(frozen=True)
class Config:
    """The sizes and the parts of a GPT.

    Raises:
        ValueError: if a size is not positive, a part is unknown, or the heads do not fit.
    """

    V: int  # size of the vocabulary
    d_model: int = 64  # width of the residual stream
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 0  # heads of keys and values; 0: as many as n_heads
    d_ff: int = 0  # hidden width; 0: 4 d_model, and 8/3 d_model rounded up to a multiple of 8 for SwiGLU
    T_max: int = 1024  # rows of the table of learned positions; RoPE has no such bound
    norm: str = "rms"  # or "layer"
    position: str = "rope"  # or "learned"
    ffn: str = "swiglu"  # or "gelu", or "gelu_tanh", GPT-2's approximation of it
    tied: bool = False  # the head is the embedding
    bias: bool = False  # in every linear layer but the head
    qkv_bias: bool = False  # in those to queries, keys and values only
    qk_norm: bool = False  # an RMSNorm of each head's queries and keys, before RoPE
    head_width: int = 0  # d_head; 0: d_model / n_heads
    theta: float = 10_000.0  # base of RoPE
    eps: float = 1e-5  # of the norms

    def __post_init__(self):
        for name in ("V", "d_model", "n_layers", "n_heads", "T_max"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name, known in {"norm": NORMS, "position": POSITIONS, "ffn": FFNS}.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")
        if self.head_width < 0:
            raise ValueError(f"head_width must be 0 (what is usual) or more, got {self.head_width}")
        if not self.head_width and self.d_model % self.n_heads:
            raise ValueError(f"{self.n_heads} heads do not divide d_model = {self.d_model}")
        if self.n_kv_heads < 0 or self.n_heads % self.kv_heads:
            raise ValueError(f"n_kv_heads = {self.n_kv_heads} does not divide {self.n_heads} heads: each serves as many queries")
        if self.position == "rope" and self.d_head % 2:
            what = "head_width" if self.head_width else "d_model / n_heads"
            raise ValueError(f"{what} is {self.d_head}: RoPE turns pairs, so it must be even")
        if self.d_ff < 0:
            raise ValueError(f"d_ff must be 0 (what is usual) or more, got {self.d_ff}")

    @property
    def d_head(self) -> int:
        """The width of a head."""
        return self.head_width or self.d_model // self.n_heads

    @property
    def kv_heads(self) -> int:
        """The number of heads of keys and values."""
        return self.n_kv_heads or self.n_heads

    @property
    def hidden(self) -> int:
        """The width of the feed-forward network."""
        usual = 8 * math.ceil(self.d_model / 3) if self.ffn == "swiglu" else 4 * self.d_model
        return self.d_ff or usual

    def shape(self, dtype: str = "float32") -> cookbook.Config:
        """The same model for the recipes of `course.cookbook`: parameters, FLOPs, bytes of the cache."""
        learned, layer_norm, gated = self.position == "learned", self.norm == "layer", self.ffn == "swiglu"
        sizes = (self.V, self.n_layers, self.d_model, self.n_heads, self.kv_heads, self.d_head, self.hidden)
        rows = self.T_max if learned else 0
        parts = (gated, self.bias, layer_norm, rows, self.tied, self.theta, dtype)
        return cookbook.Config(*sizes, *parts, qkv_biases=self.qkv_bias, qk_norms=self.qk_norm)


# ---------------------------------------------------------------- norm


class RMSNorm(nn.Module):
    """weight · x / √(mean(x²) + eps) over the last dimension: (..., d_model) → (..., d_model), dtype of x.

    Half-precision input is squared and averaged in float32.

    Source: Zhang and Sennrich (2019), Root Mean Square Layer Normalization, equation 4.
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """x (..., d_model) → (..., d_model)."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        unit = wide * (wide.square().mean(dim=-1, keepdim=True) + self.eps).rsqrt()  # (..., d_model), mean square 1
        return (self.weight * unit).to(x.dtype)


NORMS = {"rms": RMSNorm, "layer": nn.LayerNorm}
POSITIONS = ("rope", "learned")
FFNS = ("swiglu", "gelu", "gelu_tanh")


# ---------------------------------------------------------------- attention


class KVCache:
    """The keys and values of all tokens read so far, (B, kv_heads, S, d_head) a layer, keys already rotated.

    Start with `GPT.cache()`, pass it with each call of the model, give the model only what is new. What a call adds counts when
    the call has ended: one that fails leaves the cache as it was.
    """

    def __init__(self, n_layers: int):
        self.length = 0  # tokens read
        self.rooms: list[tuple[Tensor, Tensor] | None] = [None] * n_layers  # keys and values, with room for more tokens

    def __len__(self) -> int:
        """How many tokens have been read."""
        return self.length

    def __bool__(self) -> bool:
        """A cache is a cache, also before the first token."""
        return True

    @property
    def keys(self) -> list[Tensor]:
        """Of each layer, (B, kv_heads, S, d_head); none before the first token."""
        return [room[0][:, :, : self.length] for room in self.rooms if self.length]

    @property
    def values(self) -> list[Tensor]:
        """Of each layer, (B, kv_heads, S, d_head); none before the first token."""
        return [room[1][:, :, : self.length] for room in self.rooms if self.length]

    @property
    def nbytes(self) -> int:
        """Of the keys and values of the tokens read; room for more may take as much again."""
        return sum(tensor.nbytes for tensor in self.keys + self.values)

    def append(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Put T tokens after those read: key, value (B, kv_heads, T, d_head) → the layer's of all S tokens, (B, kv_heads, S, d_head)."""
        room, new, end = self.rooms[layer] if self.length else None, (key, value), self.length + key.shape[2]
        if room is None or end > room[0].shape[2] or key.requires_grad:  # autograd forbids to write into what it has seen
            old = room or [each[:, :, :0] for each in new]
            spare = key.new_empty(*key.shape[:2], self.length, key.shape[3])  # doubled, so that a token is copied twice at most
            grown = (torch.cat([a[:, :, : self.length], b, spare], dim=2) for a, b in zip(old, new, strict=True))
            self.rooms[layer] = room = tuple(grown)
        else:
            for tensor, each in zip(room, new, strict=True):
                tensor[:, :, self.length : end] = each
        return room[0][:, :, :end], room[1][:, :, :end]

    def copy(self) -> "KVCache":
        """A cache of the same tokens, for another continuation."""
        twin = KVCache(len(self.rooms))
        twin.length = self.length
        twin.rooms = [room and tuple(each[:, :, : self.length].clone() for each in room) for room in self.rooms]
        return twin

    def cut(self, n: int) -> None:
        """Keep at most the first n tokens.

        Raises:
            ValueError: if n is negative.
        """
        if n < 0:
            raise ValueError(f"n is a number of tokens, got {n}")
        self.length = min(self.length, n)


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal attention in which groups of heads share a key and a value.

    query (B, H, T, d_head); key, value (B, kv_heads, S, d_head) → (B, H, T, d_head). The queries are the last T of
    the S tokens, and each sees the keys up to its own.

    Source: Ainslie et al. (2023), GQA: Training Generalized Multi-Query Transformer Models, section 2.2, for the groups.
    """
    (H, T, d_head), (kv_heads, S) = query.shape[1:], key.shape[1:3]
    key = key.repeat_interleave(H // kv_heads, dim=1)  # (B, H, S, d_head): query head h reads group h // (H / kv_heads)
    value = value.repeat_interleave(H // kv_heads, dim=1)
    scores = query @ key.mT / math.sqrt(d_head)  # (B, H, T, S)
    future = torch.ones(T, S, dtype=torch.bool, device=query.device).triu(S - T + 1)  # (T, S)
    weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)  # (B, H, T, S)
    return weights @ value


class Attention(nn.Module):
    """Multi-head attention with grouped queries (kv_heads < H) or without: (B, T, d_model) → (B, T, d_model)."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        self.config, self.layer = config, layer
        width, kv_width, bias = config.n_heads * config.d_head, config.kv_heads * config.d_head, config.bias or config.qkv_bias
        self.query = nn.Linear(config.d_model, width, bias=bias)
        self.key = nn.Linear(config.d_model, kv_width, bias=bias)
        self.value = nn.Linear(config.d_model, kv_width, bias=bias)
        self.out = nn.Linear(width, config.d_model, bias=config.bias)
        if config.qk_norm:
            self.query_norm, self.key_norm = (RMSNorm(config.d_head, eps=config.eps) for _ in range(2))

    def forward(self, x: Tensor, positions: Tensor, cache: KVCache | None = None) -> Tensor:
        """x (B, T, d_model) at positions (T,) → (B, T, d_model); with a cache, after the tokens that it holds."""
        query, key, value = self.project(x, positions)
        if cache is not None:
            key, value = cache.append(self.layer, key, value)  # (B, kv_heads, S, d_head)
        mixed = attend(query, key, value)  # (B, H, T, d_head)
        return self.out(mixed.transpose(1, 2).flatten(2))  # (B, T, d_model)

    def project(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, turned by RoPE: x (B, T, d_model) at positions (T,) → (B, H or kv_heads, T, d_head) each."""
        query, key, value = (self.split_heads(f(x)) for f in (self.query, self.key, self.value))
        if self.config.qk_norm:
            query, key = self.query_norm(query), self.key_norm(key)
        if self.config.position == "rope":
            query, key = (rope(each, positions, self.config.theta) for each in (query, key))
        return query, key, value

    def split_heads(self, x: Tensor) -> Tensor:
        """x (B, T, heads · d_head) → (B, heads, T, d_head)."""
        return x.unflatten(2, (-1, self.config.d_head)).transpose(1, 2)


# ---------------------------------------------------------------- feed-forward


class FeedForward(nn.Module):
    """GELU(x W_up) W_down, or SwiGLU: (swish(x W_gate) ⊙ x W_up) W_down. (..., d_model) → (..., d_model).

    Source: Hendrycks and Gimpel (2016), Gaussian Error Linear Units; Shazeer (2020), GLU Variants Improve Transformer, equation 6.
    """

    def __init__(self, config: Config):
        super().__init__()
        self.kind = config.ffn
        if self.kind == "swiglu":
            self.gate = nn.Linear(config.d_model, config.hidden, bias=config.bias)
        self.up = nn.Linear(config.d_model, config.hidden, bias=config.bias)
        self.down = nn.Linear(config.hidden, config.d_model, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        """x (..., d_model) → (..., d_model)."""
        if self.kind == "swiglu":
            hidden = F.silu(self.gate(x)) * self.up(x)  # (..., d_ff)
        else:
            hidden = F.gelu(self.up(x), approximate="tanh" if self.kind == "gelu_tanh" else "none")  # (..., d_ff)
        return self.down(hidden)


# ---------------------------------------------------------------- block and model


class Block(nn.Module):
    """Pre-norm: each part reads a normed copy of the stream and adds its result to it. (B, T, d_model) → same."""

    def __init__(self, config: Config, layer: int):
        super().__init__()
        self.norm_1 = NORMS[config.norm](config.d_model, eps=config.eps)
        self.attention = Attention(config, layer)
        self.norm_2 = NORMS[config.norm](config.d_model, eps=config.eps)
        self.ffn = FeedForward(config)

    def forward(self, x: Tensor, positions: Tensor, cache: KVCache | None = None) -> Tensor:
        """x (B, T, d_model) at positions (T,) → (B, T, d_model); with a cache, after the tokens that it holds."""
        x = x + self.attention(self.norm_1(x), positions, cache)
        return x + self.ffn(self.norm_2(x))


class GPT(nn.Module):
    """A causal language model: ids (B, T) of integers → logits (B, T, V).

    Weights start as GPT-2's do: normal with standard deviation 0.02, divided by √(2 n_layers) in the layers that
    write into the residual stream, so that its variance does not grow with depth.

    Source: Radford et al. (2019), Language Models are Unsupervised Multitask Learners, section 2.3, for the weights at the start.
    """

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.V, config.d_model)
        if config.position == "learned":
            self.position = nn.Embedding(config.T_max, config.d_model)
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layers))
        self.norm = NORMS[config.norm](config.d_model, eps=config.eps)
        self.head = nn.Linear(config.d_model, config.V, bias=False)
        if config.tied:
            self.head.weight = self.embedding.weight
        self.initialise()

    def initialise(self, std: float = 0.02):
        """Draw all weights anew; norms are left as they are."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                writes = name.endswith((".out", ".down"))
                nn.init.normal_(module.weight, std=std / math.sqrt(2 * self.config.n_layers) if writes else std)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def cache(self) -> KVCache:
        """An empty cache for a new batch of sequences."""
        return KVCache(self.config.n_layers)

    def forward(self, ids: Tensor, cache: KVCache | None = None) -> Tensor:
        """With a cache, ids are the T tokens after those that it holds.

        Raises:
            TypeError: if ids are not integers.
            ValueError: if ids are not (B, T), not tokens of the vocabulary, too many for the learned positions,
                or of another batch size than the cache.
        """
        start = 0 if cache is None else len(cache)
        self._check(ids, start, cache)
        positions = torch.arange(start, start + ids.shape[1], device=ids.device)  # (T,)
        x = self.embedding(ids)  # (B, T, d_model)
        if self.config.position == "learned":
            x = x + self.position(positions)
        for block in self.blocks:
            x = block(x, positions, cache)
        logits = self.head(self.norm(x))  # (B, T, V)
        if cache is not None:
            cache.length += ids.shape[1]
        return logits

    def _check(self, ids: Tensor, start: int, cache: KVCache | None):
        if ids.dtype not in (torch.int64, torch.int32):
            raise TypeError(f"ids must be integers (torch.int64), got {ids.dtype}")
        if ids.ndim != 2 or 0 in ids.shape:
            raise ValueError(f"ids must have the shape (B, T), at least one token each, got {tuple(ids.shape)}")
        if self.config.position == "learned" and start + ids.shape[1] > self.config.T_max:
            raise ValueError(f"{start + ids.shape[1]} tokens are more than the T_max = {self.config.T_max} learned positions")
        if start and len(cache.rooms[0][0]) != len(ids):
            raise ValueError(f"the cache is of {len(cache.rooms[0][0])} sequences, ids of {len(ids)}: start a new cache")
        if ids.device.type == "cpu" and not torch.compiler.is_compiling():  # elsewhere looking at ids would wait for the device
            low, high = ids.aminmax()
            if low < 0 or high >= self.config.V:
                raise ValueError(f"ids must be between 0 and V − 1 = {self.config.V - 1}, got {int(low)} to {int(high)}")
