"""Recipes that end in a number for your own model: parameters, FLOPs, cache, wavelengths, memory.

    python -m course.cookbook parameters --preset llama-3-8b
    python -m course.cookbook kv-cache --layers 32 --d-model 4096 --heads 32 --kv-heads 8 --tokens 8192

A model is a `Config`: a decoder of L blocks of attention and a feed-forward network. Counts are exact
for that shape; where a recipe is a rule of thumb, its text says so. Sizes are in bytes, a GiB is 2^30 of them.

Raises:
    ValueError: by a recipe, if a number is outside its range.
"""

import argparse
import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

__all__ = [
    "BYTES",
    "PRESETS",
    "RECIPES",
    "Answer",
    "Config",
    "arguments_of",
    "attention_memory",
    "attention_overtakes",
    "chinchilla_tokens",
    "decode_speed",
    "forward_flops",
    "gpu_days",
    "kv_cache",
    "main",
    "parameters",
    "parser",
    "rope_base",
    "rope_wavelengths",
    "score_spread",
    "table",
    "training_flops",
    "training_memory",
    "uniform_loss",
    "weights_memory",
]

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8": 1, "int8": 1, "int4": 0.5}


@dataclass(frozen=True)
class Config:
    """The shape of a decoder.

    Raises:
        ValueError: if a size is not a positive whole number, the heads do not divide, or the dtype is unknown.
    """

    vocabulary: int = 50257  # V
    layers: int = 12  # L
    d_model: int = 768
    heads: int = 12  # H
    kv_heads: int = 0  # heads of keys and values; 0: as many as heads
    d_head: int = 0  # 0: d_model / H
    d_ff: int = 0  # 0: 4 d_model
    gated: bool = False  # SwiGLU: three matrices in the feed-forward network instead of two
    biases: bool = False  # in every linear layer but the output head
    norm_biases: bool = False  # LayerNorm has two vectors, RMSNorm one
    positions: int = 0  # rows of a learned position table; 0: none, as with RoPE
    tied: bool = False  # the output head is the embedding
    theta: float = 10_000.0  # base of RoPE
    dtype: str = "bfloat16"
    qkv_biases: bool = False  # in the layers to queries, keys and values only
    qk_norms: bool = False  # an RMSNorm of each head's queries, and one of its keys

    def __post_init__(self):
        for name in ("vocabulary", "layers", "d_model", "heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it is a whole number from 1 on")
        for name in ("kv_heads", "d_head", "d_ff", "positions"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it is 0 (what is usual) or a whole number from 1 on")
        if not self.d_head and self.d_model % self.heads:
            raise ValueError(f"{self.heads} heads do not divide d_model {self.d_model}: give d_head")
        if self.heads % self.key_heads:
            raise ValueError(f"kv_heads {self.key_heads} does not divide {self.heads} heads: each serves as many queries")
        if self.theta <= 1:
            raise ValueError(f"theta is {self.theta}; the base of RoPE is above 1")
        if self.dtype not in BYTES:
            raise ValueError(f"dtype {self.dtype!r} is unknown; one of {', '.join(BYTES)}")

    @property
    def key_heads(self) -> int:
        """The number of heads of keys and values."""
        return self.kv_heads or self.heads

    @property
    def head_width(self) -> int:
        """The width of a head."""
        return self.d_head or self.d_model // self.heads

    @property
    def hidden(self) -> int:
        """The width of the feed-forward network."""
        return self.d_ff or 4 * self.d_model

    @property
    def bytes_each(self) -> float:
        """The bytes of a number of this dtype."""
        return BYTES[self.dtype]


PRESETS = {
    "gpt-2": Config(biases=True, norm_biases=True, positions=1024, tied=True, dtype="float32"),
    "llama-2-7b": Config(vocabulary=32000, layers=32, d_model=4096, heads=32, d_ff=11008, gated=True),
    "llama-3-8b": Config(
        vocabulary=128256, layers=32, d_model=4096, heads=32, kv_heads=8, d_ff=14336, gated=True, theta=500_000.0
    ),
    "llama-3-70b": Config(
        vocabulary=128256, layers=80, d_model=8192, heads=64, kv_heads=8, d_ff=28672, gated=True, theta=500_000.0
    ),
    "mistral-7b": Config(vocabulary=32000, layers=32, d_model=4096, heads=32, kv_heads=8, d_ff=14336, gated=True),
}

Answer = dict[str, float]  # what each number is: the number


# ---------------------------------------------------------------- size


def parameters(config: Config) -> Answer:
    """How many parameters does the model have, and where are they?

    Embedding $V d_{\\text{model}}$; attention $2 d_{\\text{model}} d_{\\text{head}} (H + H_{\\text{kv}})$ a layer;
    feed-forward $2 d_{\\text{model}} d_{\\text{ff}}$ a layer, $3$ instead of $2$ when gated; norms and biases are counted too.
    """
    d, width, hidden = config.d_model, config.head_width, config.hidden
    queries, keys = config.heads * width, config.key_heads * width
    attention = 2 * d * queries + 2 * d * keys + config.biases * d + (config.biases or config.qkv_biases) * (queries + 2 * keys)
    ffn = (3 if config.gated else 2) * d * hidden + config.biases * ((2 if config.gated else 1) * hidden + d)
    norm = d * (2 if config.norm_biases else 1)
    parts = {
        "embedding": config.vocabulary * d,
        "positions": config.positions * d,
        "attention": config.layers * attention,
        "feed-forward": config.layers * ffn,
        "norms": (2 * config.layers + 1) * norm + config.layers * config.qk_norms * 2 * width,
        "output head": 0 if config.tied else config.vocabulary * d,
    }
    return parts | {"all": sum(parts.values())}


def weights_memory(config: Config) -> Answer:
    """How much memory do the weights take?

    Parameters times the bytes of their dtype. Scales of quantised formats are not counted.
    """
    size = parameters(config)["all"] * config.bytes_each
    return {"bytes": size, "GiB": size / 2**30}


def training_memory(config: Config) -> Answer:
    """How much memory do weights, gradients and Adam take in mixed precision?

    A rule: 16 bytes a parameter, which are 2 for the weight and 2 for the gradient in bfloat16, and 4 each in float32
    for a master copy and Adam's two moments. Activations come on top; see the recipe for attention's.
    """
    n = parameters(config)["all"]
    parts = {"weights": 2 * n, "gradients": 2 * n, "master copy": 4 * n, "first moment": 4 * n, "second moment": 4 * n}
    return {f"{name}, bytes": size for name, size in parts.items()} | {"all, GiB": sum(parts.values()) / 2**30}


# ---------------------------------------------------------------- work


def forward_flops(config: Config, tokens: int = 1024) -> Answer:
    """How many floating-point operations is one forward pass over a sequence?

    Each multiply and add of a matrix product counts: $2$ for each weight and token, and $4 T^2 H d_{\\text{head}}$ a layer
    for scores and averages, the causal half not taken off. Norms, softmax and activations are left out: they are small.
    """
    _must_be_positive(tokens=tokens)
    d, width = config.d_model, config.head_width
    projections = 2 * tokens * config.layers * 2 * d * width * (config.heads + config.key_heads)
    scores = 4 * tokens**2 * config.layers * config.heads * width
    ffn = 2 * tokens * config.layers * (3 if config.gated else 2) * d * config.hidden
    head = 2 * tokens * d * config.vocabulary
    parts = {"projections": projections, "scores and averages": scores, "feed-forward": ffn, "output head": head}
    return parts | {"all": sum(parts.values())}


def training_flops(config: Config, train_tokens: float = 1e9) -> Answer:
    """How many floating-point operations is a training run?

    The rule $6ND$: two for each parameter and token forward, four backward. $N$ is without the tables that are only
    looked up, and attention's part that grows with the length is left out.
    """
    _must_be_positive(train_tokens=train_tokens)
    count = parameters(config)
    n = count["all"] - count["positions"] - (0 if config.tied else count["embedding"])
    return {"N": n, "FLOPs": 6 * n * train_tokens}


def gpu_days(config: Config, train_tokens: float = 1e9, peak: float = 989e12, utilisation: float = 0.4) -> Answer:
    """How long does training take on one accelerator?

    $6ND$ over the operations a second that you reach: the peak (bfloat16, dense; 989 TFLOP/s is an H100's data sheet)
    times the part of it that a run uses.
    """
    _must_be_positive(train_tokens=train_tokens, peak=peak, utilisation=utilisation)
    if utilisation > 1:
        raise ValueError(f"utilisation is {utilisation}; it is a part of the peak, at most 1")
    seconds = training_flops(config, train_tokens)["FLOPs"] / (peak * utilisation)
    return {"seconds": seconds, "days": seconds / 86400}


def chinchilla_tokens(config: Config, tokens_per_parameter: float = 20.0) -> Answer:
    """How many tokens does the compute-optimal rule of thumb ask for?

    About 20 for each parameter. The number depends on data and fit, and a model that is used much is trained longer.
    """
    _must_be_positive(tokens_per_parameter=tokens_per_parameter)
    n = parameters(config)["all"]
    return {"tokens": tokens_per_parameter * n, "FLOPs": training_flops(config, tokens_per_parameter * n)["FLOPs"]}


def attention_overtakes(config: Config) -> Answer:
    """From which length on do scores and averages cost more than all linear layers of the blocks?

    Both grow with $T$, the scores with $T^2$: they meet where $4 T H d_{\\text{head}}$ is twice a block's weights.
    For $d_{\\text{ff}} = 4 d_{\\text{model}}$ and full heads that is $T = 6 d_{\\text{model}}$.
    """
    one = forward_flops(replace(config, layers=1), tokens=1)
    return {"tokens": (one["projections"] + one["feed-forward"]) / one["scores and averages"]}


# ---------------------------------------------------------------- length


def kv_cache(config: Config, tokens: int = 1024, batch: int = 1) -> Answer:
    """How large is the cache of keys and values?

    $2 L H_{\\text{kv}} d_{\\text{head}}$ numbers a token. Grouped queries make it smaller by $H / H_{\\text{kv}}$.
    """
    _must_be_positive(tokens=tokens, batch=batch)
    each = 2 * config.layers * config.key_heads * config.head_width * config.bytes_each
    return {"bytes per token": each, "bytes": each * tokens * batch, "GiB": each * tokens * batch / 2**30}


def attention_memory(config: Config, tokens: int = 1024, batch: int = 1) -> Answer:
    """How large are the attention weights of one layer, if they are stored?

    $B H T^2$ numbers. Attention in tiles (FlashAttention) never stores them: it keeps one number a row, the
    log-sum-exp of its scores in float32.
    """
    _must_be_positive(tokens=tokens, batch=batch)
    rows = batch * config.heads * tokens
    stored = rows * tokens * config.bytes_each
    return {"bytes": stored, "GiB": stored / 2**30, "bytes in tiles": 4 * rows}


def decode_speed(config: Config, tokens: int = 1024, batch: int = 1, bandwidth: float = 3.35e12) -> Answer:
    """At most how many tokens a second can decoding give?

    A bound: each step reads all weights once for the whole batch, and each sequence's cache. Bandwidth is in bytes a
    second (3.35 TB/s is an H100's data sheet); computing is taken as free. An embedding that is only looked up is not read.
    """
    _must_be_positive(tokens=tokens, batch=batch, bandwidth=bandwidth)
    count = parameters(config)
    looked_up = count["positions"] + (0 if config.tied else count["embedding"])
    read = (count["all"] - looked_up) * config.bytes_each + kv_cache(config, tokens, batch)["bytes"]
    return {"bytes read per step": read, "steps per second": bandwidth / read, "tokens per second": batch * bandwidth / read}


def rope_wavelengths(config: Config, tokens: int = 1024) -> Answer:
    """How far do RoPE's pairs turn within a context?

    Pair $i$ has the wavelength $2\\pi\\theta^{2i/d_{\\text{head}}}$ tokens. Pairs longer than the context never complete
    a turn in it.
    """
    _must_be_positive(tokens=tokens)
    pairs = _pairs(config)
    waves = [2 * math.pi * config.theta ** (2 * i / config.head_width) for i in range(pairs)]
    return {"shortest": waves[0], "longest": waves[-1], "pairs": pairs, "pairs that turn fully": sum(w <= tokens for w in waves)}


def rope_base(config: Config, factor: float = 4.0) -> Answer:
    """Which RoPE base makes the slowest pair slower by a factor (NTK-aware scaling)?

    $\\theta' = \\theta\\, s^{d/(d-2)}$ with $d = d_{\\text{head}}$: the slowest pair slows down by $s$, the fastest stays.
    """
    _must_be_positive(factor=factor)
    pairs = _pairs(config)
    if pairs < 2:
        raise ValueError(f"d_head is {config.head_width}; with one pair there is no slower one")
    return {"base": config.theta * factor ** (config.head_width / (config.head_width - 2))}


def _pairs(config: Config) -> int:
    if config.head_width % 2:
        raise ValueError(f"d_head is {config.head_width}; RoPE turns pairs, so it is even")
    return config.head_width // 2


# ---------------------------------------------------------------- softmax


def score_spread(config: Config, sigma: float = 1.0, mu: float = 0.0) -> Answer:
    """How far do scores spread when queries and keys are random?

    Independent entries of mean $\\mu$ and standard deviation $\\sigma$: the variance of a dot product is
    $d_k (\\sigma^4 + 2 \\mu^2 \\sigma^2)$; the scale divides its root by $\\sqrt{d_k}$.
    """
    if sigma < 0:
        raise ValueError(f"sigma is {sigma}; a standard deviation is not negative")
    spread = math.sqrt(config.head_width * (sigma**4 + 2 * mu**2 * sigma**2))
    return {"unscaled": spread, "scaled": spread / math.sqrt(config.head_width)}


def uniform_loss(config: Config) -> Answer:
    """Which loss must an untrained model start near?

    One that knows nothing gives each of $V$ tokens the same chance: $\\ln V$ nats a token, a perplexity of $V$.
    """
    return {"nats per token": math.log(config.vocabulary), "bits per token": math.log2(config.vocabulary)}


def _must_be_positive(**given: float) -> None:
    for name, value in given.items():
        if not value > 0:
            raise ValueError(f"{name} is {value}; it must be positive")


RECIPES: dict[str, Callable[..., Answer]] = {
    f.__name__.replace("_", "-"): f
    for f in (
        parameters,
        weights_memory,
        training_memory,
        forward_flops,
        training_flops,
        gpu_days,
        chinchilla_tokens,
        attention_overtakes,
        kv_cache,
        attention_memory,
        decode_speed,
        rope_wavelengths,
        rope_base,
        score_spread,
        uniform_loss,
    )
}

# ---------------------------------------------------------------- the command


def arguments_of(recipe: Callable[..., Answer]) -> dict[str, int | float]:
    """What a recipe takes beside the model, with the value that it has without being given."""
    return {p.name: p.default for p in inspect.signature(recipe).parameters.values() if p.default is not p.empty}


def table(answer: Answer) -> str:
    """The numbers of an answer, one a line."""
    width = max(map(len, answer))
    return "\n".join(f"{name:<{width}}  {_number(value)}" for name, value in answer.items())


def _number(value: float) -> str:
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:.4g}" if abs(value) >= 1e15 else f"{value:,.1f}"


def parser() -> argparse.ArgumentParser:
    """The command line: one subcommand a recipe."""
    top = argparse.ArgumentParser(
        prog="python -m course.cookbook",
        description="Numbers for your own model. A recipe takes a preset, or your own sizes, or a preset with some of them changed.",
    )
    recipes = top.add_subparsers(dest="recipe", required=True, metavar="RECIPE")
    for name, recipe in RECIPES.items():
        summary = recipe.__doc__.splitlines()[0]
        command = recipes.add_parser(name, help=summary, description=summary)
        command.add_argument("--preset", choices=PRESETS, help="start from the shape of a known model")
        for field in fields(Config):
            flag = "--" + field.name.replace("_", "-")
            if field.type is bool:
                command.add_argument(flag, action=argparse.BooleanOptionalAction, default=None)
            else:
                command.add_argument(flag, type=field.type, default=None, metavar=field.type.__name__.upper())
        for argument, default in arguments_of(recipe).items():
            command.add_argument(
                f"--{argument.replace('_', '-')}", type=type(default), default=default, help=f"{default:g} without it"
            )
    return top


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code: 2 if the sizes make no model."""
    given = vars(parser().parse_args(arguments))
    recipe = RECIPES[given["recipe"]]
    start = PRESETS[given["preset"]] if given["preset"] else Config()
    sizes = {field.name: given[field.name] for field in fields(Config) if given[field.name] is not None}
    try:
        answer = recipe(replace(start, **sizes), **{name: given[name] for name in arguments_of(recipe)})
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(table(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
