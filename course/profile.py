"""The profile of a model: its size, its work, its cache, and, where there are weights, what its attention does on a text.

    python -m course.profile llama-3-8b
    python -m course.profile smollm2-135m --tokens 1024 --html profile.html
    python -m course.profile path/to/folder --text mine.txt --json

MODEL is a preset of `course.cookbook`, a model of `course.pretrained`, a `config.json` of Hugging Face, or a folder with one and
safetensors. Every number comes with a sentence on what it does not mean.

Shapes: W windows of T tokens, L layers, H heads.
"""

import argparse
import html
import io
import json
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from course import cookbook, data, plots, pretrained
from course.attention_maps import FIRST, QUERIES, distance_profile, look, sink_mass
from course.decay_law import decay_fit
from course.high_dimensional_geometry import effective_dimension
from course.model import GPT
from course.multi_head import induction_score, previous_score, said_twice

__all__ = [
    "CARDS",
    "LIMITS",
    "attention_on",
    "figures",
    "find",
    "main",
    "memory_free",
    "memory_needed",
    "page",
    "profile",
    "roofline",
    "shape_of",
    "show",
    "sizes",
    "step_squares",
    "summary",
    "tables",
    "windows_of",
    "work",
]

# Peak of bfloat16 without sparsity in operations a second, and memory's bandwidth in bytes a second, from the makers' data sheets.
CARDS = {
    "H200 SXM": (989e12, 4.8e12),
    "H100 SXM": (989e12, 3.35e12),
    "A100 80 GB SXM": (312e12, 2.04e12),
    "L4": (121e12, 0.3e12),
    "RTX 4090": (165e12, 1.01e12),
}
LENGTHS = (1024, 8192, 131_072)

LIMITS = {
    "size": "Counts say nothing of quality, and nothing of the memory that activations take.",
    "cache": "Without the padding and the pages of a server, which add to it.",
    "work": "Products of matrices only, all pairs of tokens counted: a kernel that skips the causal half does less.",
    "roofline": "A bound that no kernel passes, from data sheets. How near a program comes to it must be measured.",
    "wavelengths": "What a pair could tell apart, not what the trained heads use of it.",
    "loss": "Of this text and these windows. Models with other tokenizers are compared in bits a byte only.",
    "sink": "Weight on the first token is weight that is not needed elsewhere, or that the model uses to say nothing. It does not "
    "say which, and not that the first token matters.",
    "decay": "The slope of the mean weight between the distances of the fit. A slope is no law: look at R² of the other "
    "curve, and at the same slope on shuffled tokens, which have no order left to attend to.",
    "entropy": "Spread over many keys is not the same as reading much from them: values count too.",
    "induction": "Where a head looks on random tokens that repeat. That it copies what it sees there is another question.",
    "rank": "Of the stream's spread over this text. Few directions with a large spread can hide many with a small one.",
}


# ---------------------------------------------------------------- without weights


def shape_of(name: str) -> cookbook.Config:
    """The sizes of a preset, of a trained model, of a `config.json`, or of a folder that has one.

    Raises:
        KeyError: if it is none of these; the message names what there is.
        ValueError: if the file tells of a model that the course's `GPT` cannot be, or is not JSON.
    """
    if name in cookbook.PRESETS:
        return cookbook.PRESETS[name]
    place = pretrained.fetch(name) if name in pretrained.CARDS else Path(name)
    if (place / "course.json").is_file():
        return pretrained.config_here(name).shape("float32")
    path = place / "config.json" if place.is_dir() else place
    if not path.is_file():
        there = ", ".join([*cookbook.PRESETS, *pretrained.CARDS])
        raise KeyError(f"no model {name!r}: a preset ({there}), a config.json, or a folder with one")
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(said, dict):
        raise ValueError(f"{path} is not a config.json: a list of settings by name is expected")
    dtype = said.get("dtype") or said.get("torch_dtype") or "bfloat16"
    if said.get("model_type") == "bert":
        raise ValueError(f"{name} is an encoder, without a cache and without a next token: the profile is of decoders")
    return pretrained.config_of(said).shape(dtype if dtype in cookbook.BYTES else "bfloat16")


def sizes(config: cookbook.Config, tokens: int = 1024) -> dict:
    """What the recipes of the cookbook say of a model: parameters, cache, work, wavelengths."""
    caches = {
        f"{dtype}, {length:,} tokens": cookbook.kv_cache(replace(config, dtype=dtype), length)["bytes"]
        for dtype in ("bfloat16", "int8")
        for length in LENGTHS
        if not config.positions or length <= config.positions
    }
    prefill, decode = work(config, tokens)
    found = {
        "parameters": cookbook.parameters(config),
        "bytes of the weights": cookbook.weights_memory(config),
        "bytes of the cache a token": cookbook.kv_cache(config)["bytes per token"],
        "bytes of the cache": caches,
        f"prefill of {tokens:,} tokens": prefill,
        f"a token after {tokens:,}": decode,
    }
    if not config.positions:
        waves = cookbook.rope_wavelengths(config, tokens)
        waves[f"pairs that turn fully in {tokens:,} tokens"] = waves.pop("pairs that turn fully")
        found["RoPE"] = waves | {"base": config.theta}
    return found


def work(config: cookbook.Config, tokens: int) -> tuple[dict[str, float], dict[str, float]]:
    """Operations and bytes of reading `tokens` tokens at once, and of writing the one after them."""
    read = cookbook.decode_speed(config, tokens)["bytes read per step"]
    cache = cookbook.kv_cache(config, tokens)["bytes"]
    step = cookbook.forward_flops(config, tokens + 1)["all"] - cookbook.forward_flops(config, tokens)["all"]
    step -= step_squares(config, tokens)
    prefill = {"FLOPs": cookbook.forward_flops(config, tokens)["all"], "bytes": read}  # weights read once, the cache written once
    decode = {"FLOPs": step, "bytes": read + cache / tokens}
    return tuple(each | {"FLOPs a byte": each["FLOPs"] / each["bytes"]} for each in (prefill, decode))


def step_squares(config: cookbook.Config, tokens: int) -> float:
    """What a pass over T + 1 tokens does anew for the T that a cache has kept: their scores with the last key."""
    return 4 * tokens * config.layers * config.heads * config.head_width


def roofline(config: cookbook.Config, tokens: int = 1024) -> list[dict]:
    """At best how fast each of `CARDS` reads `tokens` tokens and writes the next, for one sequence, all numbers in bfloat16."""
    config = replace(config, dtype="bfloat16")
    prefill, decode = work(config, tokens)
    rows = []
    for card, (peak, bandwidth) in CARDS.items():
        row = {"card": card, "FLOPs a byte at the ridge": peak / bandwidth}
        for what, each in (("prefill", prefill), ("decode", decode)):
            row[f"{what}, ms"] = 1000 * max(each["FLOPs"] / peak, each["bytes"] / bandwidth)
            row[f"{what} waits for"] = "memory" if each["FLOPs a byte"] < peak / bandwidth else "arithmetic"
        rows.append(row)
    return rows


# ---------------------------------------------------------------- with weights


def attention_on(model: GPT, windows: Tensor, progress: Callable[[str], None] = lambda step: None, seed: int = 0) -> dict:
    """What a model's attention does on a text.

    Args:
        model: a trained model.
        windows: (W, T) ids, at least two windows of the text.
        progress: is told of each pass before it begins.
        seed: of the order that shuffled tokens get, and of the random tokens that repeat.

    Returns:
        Tensors: `sink` and `entropy` (share of the largest possible), (W, L, H); `profile` (W, L, H, D + 1); `power`, `rate` and
        their R², (W, L, H); `shuffled`, the exponent on each window's tokens in another order, (W, L, H); `induction` and
        `previous`, (L, H); `rank`, effective dimensions of the stream before each layer, (W, L); `loss`, nats a token, (W,).

    Raises:
        ValueError: if there is only one window, or T is too small for a fit.
    """
    W, T = windows.shape
    if W < 2:
        raise ValueError("an interval over windows needs at least two")
    decay_fit(torch.ones(math.ceil(QUERIES * T) - FIRST + 1))  # raises before time is lost
    found: dict[str, list] = {name: [] for name in ("sink", "entropy", "profile", "rank", "loss")}
    most = torch.arange(1, T + 1, dtype=torch.float32).log()  # entropy of a row that spreads evenly
    generator = torch.Generator().manual_seed(seed)

    for w, ids in enumerate(windows):
        progress(f"window {w + 1} of {W}")
        seen: dict[str, list] = {name: [] for name in ("sink", "entropy", "profile", "rank")}

        def see(layer: int, weights: Tensor, stream: Tensor, seen=seen):
            weights = weights[0].float()  # (H, T, T)
            seen["sink"].append(sink_mass(weights, T // 10))
            entropy = torch.special.entr(weights).sum(dim=-1)  # (H, T)
            seen["entropy"].append((entropy[:, T // 10 :] / most[T // 10 :]).mean(dim=1))
            seen["profile"].append(distance_profile(weights))
            spread = torch.linalg.eigvalsh(torch.cov(stream[0, FIRST:].double().T)).clamp_min(0)  # (d_model,)
            seen["rank"].append(effective_dimension(spread).float())

        logits = look(model, ids[None], see)
        found["loss"].append(torch.nn.functional.cross_entropy(logits[0, :-1].float(), ids[1:]))
        for name, layers in seen.items():
            found[name].append(torch.stack(layers))
    result = {name: torch.stack(values) for name, values in found.items()}
    result |= decay_fit(result["profile"])

    shuffled = []
    for w, ids in enumerate(windows):
        progress(f"shuffled tokens, window {w + 1} of {W}")
        layers: list[Tensor] = []
        order = torch.randperm(T, generator=generator)
        look(
            model,
            ids[order][None],
            lambda layer, weights, stream, layers=layers: layers.append(distance_profile(weights[0].float())),
        )
        shuffled.append(torch.stack(layers))
    result["shuffled"] = decay_fit(torch.stack(shuffled))["power"]

    progress("random tokens that repeat")
    n, heads = min(T // 2, 128), {"induction": [], "previous": []}

    def score(layer: int, weights: Tensor, stream: Tensor):
        heads["induction"].append(induction_score(weights, n).mean(dim=0))
        heads["previous"].append(previous_score(weights).mean(dim=0))

    look(model, said_twice(2, n, model.config.V, generator), score)
    return result | {name: torch.stack(layers) for name, layers in heads.items()}


def memory_needed(config, tokens: int) -> int:
    """Bytes that looking at one window takes at its peak, in float32: logits, and a layer's scores, weights and their logarithm."""
    return 4 * tokens * (3 * config.V + 6 * config.n_heads * tokens + 4 * config.n_layers * config.d_model)


def memory_free() -> int | None:
    """Bytes of memory that are free, on a system that tells."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def windows_of(ids: list[int], tokens: int, windows: int) -> Tensor:
    """`windows` windows of `tokens` tokens, spread evenly over a text: (windows, tokens).

    Raises:
        ValueError: if the text is too short for windows that do not overlap.
    """
    if len(ids) < windows * tokens:
        raise ValueError(
            f"the text has {len(ids):,} tokens; {windows} windows of {tokens:,} need {windows * tokens:,}: "
            "give a longer one, or fewer --tokens or --windows"
        )
    starts = [round(i * (len(ids) - tokens) / max(windows - 1, 1)) for i in range(windows)]
    return torch.tensor([ids[start : start + tokens] for start in starts])


# ---------------------------------------------------------------- what is said


def summary(found: dict[str, Tensor], n_bytes: float) -> dict:
    """The tensors of `attention_on`, (W, L, H) and the like, in numbers, with 95% intervals over windows where these are resampled.

    Args:
        found: what `attention_on` returned.
        n_bytes: mean bytes of text a token.
    """

    def over_windows(values: Tensor) -> dict:
        mean, half = data.interval(values)
        return {"mean": mean, "half width": half}

    def heads(values: Tensor) -> dict:
        low, middle, high = torch.quantile(
            values.flatten().double(), torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
        ).tolist()
        return {"lower quartile": low, "median": middle, "upper quartile": high}

    def best(values: Tensor) -> list[dict]:
        order = values.flatten().argsort(descending=True)[:3].tolist()
        return [{"layer": i // values.shape[1], "head": i % values.shape[1], "score": float(values.flatten()[i])} for i in order]

    fits = ("power", "shuffled", "R2 of the power law", "R2 of the exponential")
    return {
        "windows": len(found["loss"]),
        "nats a token": over_windows(found["loss"]),
        "bits a byte": over_windows(found["loss"] / (math.log(2) * n_bytes)),
        "weight on the first token": over_windows(found["sink"].mean(dim=(1, 2))),
        "weight on the first token by layer": found["sink"].mean(dim=(0, 2)).tolist(),
        "entropy as a share of the largest": over_windows(found["entropy"].mean(dim=(1, 2))),
        "exponent of the median head": over_windows(found["power"].flatten(1).median(dim=1).values),
        "exponent of the median head, shuffled tokens": over_windows(found["shuffled"].flatten(1).median(dim=1).values),
        "over heads": {name: heads(found[name].mean(dim=0)) for name in fits},
        "induction heads": best(found["induction"]),
        "previous-token heads": best(found["previous"]),
        "effective rank of the stream by layer": found["rank"].mean(dim=0).tolist(),
    }


def profile(
    name: str, text: Path | None = None, tokens: int = 1024, windows: int = 4, progress: Callable = lambda step: None
) -> dict:
    """All that is said of a model, as JSON holds it, and the tensors behind it under "tensors" where it has weights.

    Args:
        name: see `find`.
        text: a file of UTF-8; Austen's novels without one.
        tokens: of a window, and of the context that work and cache are told for.
        windows: of the text.
        progress: is told of each pass before it begins.

    Raises:
        KeyError, ValueError, OSError, MemoryError: see `find`, `windows_of`, `memory_needed`; the message says what to do.
    """
    if tokens < 1:
        raise ValueError(f"tokens is {tokens}; it is a whole number from 1 on")
    config, model, encode = find(name)
    said = {"model": name, "sizes": sizes(config, tokens), "cards": roofline(config, tokens), "limits": LIMITS}
    if model is None:
        return said
    if model.config.position == "learned" and tokens > model.config.T_max:
        raise ValueError(f"the model has {model.config.T_max:,} learned positions: ask for at most as many --tokens")
    free, needed = memory_free(), memory_needed(model.config, tokens)
    if free is not None and needed > free:
        raise MemoryError(
            f"{tokens:,} tokens need about {needed / 2**30:.1f} GiB, {free / 2**30:.1f} are free: ask for fewer --tokens"
        )
    written = data.read("austen") if text is None else text.read_text(encoding="utf-8")
    progress("reading the text")
    enough = written[: 12 * tokens * windows * 4] if text is None else written
    ids = encode(enough)
    chosen = windows_of(ids, tokens, windows)
    found = attention_on(model, chosen, progress)
    said["attention"] = summary(found, len(enough.encode("utf-8")) / len(ids))
    said["attention"] |= {"text": "austen" if text is None else text.name, "tokens": tokens}
    if tokens > model.config.T_max:
        said["attention"]["beyond"] = f"The model was trained at {model.config.T_max:,} tokens, and this is longer."
    return said | {"tensors": found}


def find(name: str) -> tuple[cookbook.Config, GPT | None, Callable[[str], list[int]] | None]:
    """The sizes of a model, and, where there are weights and a tokenizer, the model and its tokenizer's `encode`.

    Raises:
        KeyError, ValueError, OSError: as `shape_of`, `course.pretrained.load` and `fetch` do.
    """
    if name in pretrained.CARDS:
        shape = shape_of(name)
        model, tokenizer = pretrained.load(name), pretrained.tokenizer(name)
        return shape, model, lambda text: tokenizer.encode(text, errors="ignore")
    place = Path(name)
    if place.is_dir() and list(place.glob("*.safetensors")) and (place / "tokenizer.json").is_file():
        from tokenizers import Tokenizer

        theirs = Tokenizer.from_file(str(place / "tokenizer.json"))
        return shape_of(name), pretrained.load(place), lambda text: theirs.encode(text, add_special_tokens=False).ids
    return shape_of(name), None, None


# ---------------------------------------------------------------- tables, pages


def tables(said: dict) -> list[tuple[str, list[str], list[list[str]], str]]:
    """What is said as tables: title, heads of columns, rows, and what it does not mean."""
    size = said["sizes"]
    made = [
        ("Parameters", ["part", "number"], [[part, f"{n:,.0f}"] for part, n in size["parameters"].items()], LIMITS["size"]),
        (
            f"Cache, {size['bytes of the cache a token']:,.0f} bytes a token in the model's own precision",
            ["precision and length", "MiB"],
            [[what, f"{n / 2**20:,.1f}"] for what, n in size["bytes of the cache"].items()],
            LIMITS["cache"],
        ),
        (
            "Work",
            ["what", "10⁹ operations", "10⁶ bytes", "operations a byte"],
            [
                [what, f"{each['FLOPs'] / 1e9:,.2f}", f"{each['bytes'] / 1e6:,.1f}", f"{each['FLOPs a byte']:,.1f}"]
                for what, each in size.items()
                if isinstance(each, dict) and "FLOPs a byte" in each
            ],
            LIMITS["work"],
        ),
        (
            "At best, in bfloat16",
            ["card", "prefill, ms", "waits for", "a token, ms", "waits for"],
            [
                [
                    row["card"],
                    f"{row['prefill, ms']:.2f}",
                    row["prefill waits for"],
                    f"{row['decode, ms']:.3f}",
                    row["decode waits for"],
                ]
                for row in said["cards"]
            ],
            LIMITS["roofline"],
        ),
    ]
    if "RoPE" in size:
        rows = [[what, f"{value:,.0f}" if value >= 100 else f"{value:.3g}"] for what, value in size["RoPE"].items()]
        made.append(("RoPE", ["what", "tokens, or how many"], rows, LIMITS["wavelengths"]))
    if "attention" not in said:
        return made
    told = said["attention"]

    def plus_minus(name: str, digits: int = 2) -> str:
        return f"{told[name]['mean']:.{digits}f} ± {told[name]['half width']:.{digits}f}"

    windows = f"{told['windows']} windows of {told['tokens']:,} tokens of {told['text']}"
    made += [
        (
            f"Loss on {windows}",
            ["what", "mean and 95% interval over windows"],
            [[name, plus_minus(name)] for name in ("nats a token", "bits a byte")],
            LIMITS["loss"] + (" " + told["beyond"] if "beyond" in told else ""),
        ),
        (
            "Attention, mean over heads",
            ["what", "mean and 95% interval over windows"],
            [[name, plus_minus(name, 3)] for name in ("weight on the first token", "entropy as a share of the largest")],
            f"{LIMITS['sink']} {LIMITS['entropy']}",
        ),
        (
            "Decay with distance",
            ["what", "lower quartile of heads", "median", "upper quartile"],
            [
                [_FITS[name], *(f"{told['over heads'][name][q]:.2f}" for q in ("lower quartile", "median", "upper quartile"))]
                for name in _FITS
            ],
            LIMITS["decay"],
        ),
        (
            "Heads found by score",
            ["what", "layer", "head", "score"],
            [
                [name.removesuffix("s"), str(head["layer"]), str(head["head"]), f"{head['score']:.2f}"]
                for name in ("induction heads", "previous-token heads")
                for head in told[name]
            ],
            LIMITS["induction"],
        ),
        (
            "Effective rank of the stream",
            ["before layer", "dimensions"],
            [[str(layer), f"{value:.1f}"] for layer, value in enumerate(told["effective rank of the stream by layer"])],
            LIMITS["rank"],
        ),
    ]
    return made


_FITS = {
    "power": "exponent of a power law",
    "R2 of the power law": "R² of the power law",
    "R2 of the exponential": "R² of an exponential",
    "shuffled": "exponent on shuffled tokens",
}


def figures(found: dict[str, Tensor]) -> dict[str, str]:
    """Pictures of what attention does, as SVG by their captions.

    Args:
        found: the tensors of `attention_on`, (W, L, H) and the like.
    """
    import matplotlib.pyplot as plt

    plots.use()
    made = {}
    L, H = found["induction"].shape

    fig, ax = plt.subplots(figsize=(6.4, 3.2))
    sink = found["sink"].mean(dim=0)  # (L, H)
    layers = torch.arange(L).repeat_interleave(H)
    ax.scatter(layers.numpy(), sink.flatten().numpy(), s=12, color=plots.COLOURS["weights"], alpha=0.6)
    ax.plot(sink.mean(dim=1).numpy(), color=plots.COLOURS["weights"])
    ax.set(xlabel="layer", ylabel="weight on the first token", ylim=(0, 1))
    made["What the first token gets: each dot is a head, the line is the mean of the layer."] = _svg(fig)

    fig, ax = plt.subplots(figsize=(6.4, 3.6))
    profile = found["profile"].mean(dim=(0, 2))  # (L, D + 1)
    distances = torch.arange(1, profile.shape[1])
    for layer in range(L):
        ax.plot(
            distances.numpy(),
            profile[layer, 1:].numpy(),
            color=plots.COLOURS["weights"],
            alpha=0.15 + 0.6 * layer / L,
            linewidth=1,
        )
    ax.set(xscale="log", yscale="log", xlabel="distance in tokens", ylabel="mean weight, by layer")
    made["Mean weight against distance, a line for each layer, later ones darker; the first four keys are left out."] = _svg(fig)

    fig, ax = plt.subplots(figsize=(6.4, 0.9 + 0.14 * L))
    shown = ax.imshow(found["induction"].numpy(), aspect="auto", vmin=0, vmax=1)
    ax.set(xlabel="head", ylabel="layer", xticks=range(H))
    fig.colorbar(shown, label="induction score")
    made["Where induction heads are: the weight that a token said again pays to what followed it the first time."] = _svg(fig)
    return made


def _svg(figure) -> str:
    out = io.StringIO()
    plots.save(figure, out)
    return out.getvalue()[out.getvalue().index("<svg") :]


_STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
table { border-collapse: collapse; margin: 0.5rem 0; } th, td { text-align: right; padding: 0.15rem 0.7rem; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; padding-left: 0; } .limits { color: #555; font-size: 0.9rem; } svg { max-width: 100%; height: auto; }
figcaption { font-size: 0.9rem; color: #555; } figure { margin: 1rem 0; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #16181d; } th, td { border-color: #3a3d45; } .limits, figcaption { color: #aaa; } }"""


def page(said: dict) -> str:
    """The profile as one page of HTML, with pictures, that needs nothing else."""
    e = html.escape
    parts = [f"<h1>Profile of {e(said['model'])}</h1>"]
    for title, heads, rows, limits in tables(said):
        body = "".join("<tr>" + "".join(f"<td>{e(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        head = "".join(f"<th>{e(cell)}</th>" for cell in heads)
        parts.append(f'<h2>{e(title)}</h2><table><tr>{head}</tr>{body}</table><p class="limits">{e(limits)}</p>')
    if "tensors" in said:
        for caption, svg in figures(said["tensors"]).items():
            parts.append(f"<figure>{svg}<figcaption>{e(caption)}</figcaption></figure>")
    if card := pretrained.CARDS.get(said["model"]):
        parts.append(f"<p>{e(card.what)}. By {e(card.made_by)}, {e(card.licence)}, {e(card.source)}. {e(card.caveat)}</p>")
    title, view = f"Profile of {e(said['model'])}", '<meta name="viewport" content="width=device-width">'
    return f'<!doctype html><html lang="en"><meta charset="utf-8">{view}<title>{title}</title><style>{_STYLE}</style>{"".join(parts)}</html>\n'


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code: 2 if what was asked for makes no profile."""
    parser = argparse.ArgumentParser(prog="python -m course.profile", description="The profile of a model.")
    parser.add_argument("model", metavar="MODEL", help="a preset, a trained model, a config.json, or a folder")
    parser.add_argument("--text", type=Path, help="a file of UTF-8 that its attention is looked at on; Austen without one")
    parser.add_argument("--tokens", type=int, default=1024, help="of a window (1024)")
    parser.add_argument("--windows", type=int, default=4, help="of the text (4)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with pictures")
    options = parser.parse_args(arguments)
    start = time.perf_counter()

    def progress(step: str):
        print(f"{time.perf_counter() - start:5.1f} s  {step}", file=sys.stderr, flush=True)

    try:
        said = profile(options.model, options.text, options.tokens, options.windows, progress)
    except (KeyError, ValueError, OSError, MemoryError, ImportError) as error:
        print(error.args[0] if isinstance(error, KeyError) else error, file=sys.stderr)
        return 2
    if options.html:
        options.html.write_text(page(said), encoding="utf-8")
        print(f"written to {options.html}", file=sys.stderr)
    if options.json:
        print(json.dumps({name: value for name, value in said.items() if name != "tensors"}, indent=1, ensure_ascii=False))
    elif not options.html:
        from rich.console import Console

        show(said, Console())
    return 0


def show(said: dict, console) -> None:
    """Print what was said of a model as tables.

    Args:
        said: what `profile` returned.
        console: of rich.
    """
    from rich.table import Table
    from rich.text import Text

    console.print(Text(f"Profile of {said['model']}", style="bold"))
    for title, heads, rows, limits in tables(said):
        table = Table(title=title, title_justify="left", title_style="bold")
        for i, head in enumerate(heads):
            table.add_column(head, justify="left" if i == 0 else "right")
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table, Text(limits, style="dim"), "")


if __name__ == "__main__":
    sys.exit(main())
