"""Does the bend matter? The same small GPT with feed-forward networks of the same number of parameters.

    python experiments/ffn.py            # a CPU, some minutes
    python experiments/ffn.py --small    # a CPU, under a minute
    python experiments/ffn.py --missing  # only the kinds that the record has not

Character-level language models of Shakespeare's plays. Without a bend, with ReLU, with GELU, with SiLU, and with SwiGLU at
two thirds of the hidden width. For each seed all see the same batches. All five are trained a second time from a larger
start: a first matrix (two, if there is a gate) that is seven times as large, so that the pre-activations start with a
spread of one. The larger start was thought of after the first five had been seen; with GELU and ReLU first, with the
others later. After training: the loss on text that was not seen, and how many hidden numbers are silent. Writes
course/data/records/ffn.json.
"""

import argparse
import statistics
import sys
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.block import train  # noqa: E402
from course.ffn import ffn_params  # noqa: E402
from course.model import GPT, Config  # noqa: E402

SETTINGS = {"d_model": 48, "n_layers": 2, "n_heads": 4, "T": 48, "B": 12, "rate": 3e-3, "characters": 1_000_000, "tested": 256}
FULL = {"steps": 300, "seeds": 6}
SMALL = {"steps": 60, "seeds": 3}
BENDS = {"no bend": nn.Identity, "ReLU": nn.ReLU, "GELU": nn.GELU, "SiLU": nn.SiLU}
LARGER = [f"{kind}, larger start" for kind in ("ReLU", "GELU", "no bend", "SiLU", "SwiGLU")]
KINDS = [*BENDS, "SwiGLU", *LARGER]


def model_of(kind: str, V: int, s: dict) -> GPT:
    """A GPT with this feed-forward network, of 8 d_model² parameters whatever its kind."""
    sizes = {"d_model": s["d_model"], "n_layers": s["n_layers"], "n_heads": s["n_heads"]}
    bend, *start = kind.split(", ")
    gated = bend == "SwiGLU"
    model = GPT(Config(V, **sizes, d_ff=8 * s["d_model"] // 3) if gated else Config(V, **sizes, ffn="gelu"))
    for block in model.blocks:
        first = [block.ffn.gate, block.ffn.up] if gated else [block.ffn.up]
        if not gated:
            block.ffn = nn.Sequential(block.ffn.up, BENDS[bend](), block.ffn.down)
        for layer in first if start else []:
            nn.init.normal_(layer.weight, std=s["d_model"] ** -0.5)
    return model


def hidden_numbers(model: GPT, ids: torch.Tensor) -> list[torch.Tensor]:
    """What goes into the last matrix of each feed-forward network, (B, T, d_ff) a layer."""
    kept = []
    for block in model.blocks:
        last = block.ffn.down if hasattr(block.ffn, "down") else block.ffn[-1]
        last.register_forward_pre_hook(lambda module, args: kept.append(args[0]))
    with torch.no_grad():
        model(ids)
    return kept


def silent(hidden: list[torch.Tensor]) -> tuple[float, float]:
    """The share of hidden numbers that are exactly 0, and that are below a tenth of their layer's root mean square."""
    zero = statistics.mean(float((h == 0).float().mean()) for h in hidden)
    small = statistics.mean(float((h.abs() < 0.1 * h.square().mean().sqrt()).float().mean()) for h in hidden)
    return round(zero, 4), round(small, 4)


def one_run(kind: str, seed: int, seen: torch.Tensor, test: torch.Tensor, V: int, s: dict) -> dict:
    torch.manual_seed(seed)
    model, generator = model_of(kind, V, s), torch.Generator().manual_seed(1_000 + seed)

    def batch():
        starts = torch.randint(len(seen) - s["T"], (s["B"], 1), generator=generator)
        return seen[starts + torch.arange(s["T"])], torch.ones(s["B"], s["T"] - 1, dtype=torch.bool)

    fresh = silent(hidden_numbers(model_of(kind, V, s), test))
    train(model, batch, s["steps"], s["rate"])
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(test)[:, :-1].flatten(0, 1), test[:, 1:].flatten())
    return {"loss": round(float(loss), 4), "fresh": fresh, "trained": silent(hidden_numbers(model, test))}


def summary(kind: str, runs: list[dict], gelu: list[dict], s: dict) -> dict:
    """The row of one kind; its losses are also compared with GELU's, seed by seed."""
    losses = [run["loss"] for run in runs]
    mean, half = data.interval(losses, 4)
    row = {"kind": kind, "losses": losses, "mean": mean, "half_width": half}
    against = [loss - run["loss"] for loss, run in zip(losses, gelu, strict=True)]
    row["minus GELU"], row["minus GELU, half width"] = data.interval(against, 4) if kind != "GELU" else (0.0, 0.0)
    for name in ("fresh", "trained"):
        for k, what in enumerate(("zero", "small")):
            row[f"{what}, {name}"] = [run[name][k] for run in runs]
    gated = kind.startswith("SwiGLU")
    return row | {"parameters": ffn_params(s["d_model"], 8 * s["d_model"] // 3 if gated else 4 * s["d_model"], gated)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="three seeds and few steps, under a minute on a CPU")
    parser.add_argument("--missing", action="store_true", help="train only the kinds that the record has not, and add them")
    given = parser.parse_args()
    small = given.small
    s = SETTINGS | (SMALL if small else FULL)
    torch.set_num_threads(1)
    text = data.read("shakespeare", s["characters"])
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(c) for c in text])
    half = s["T"] * s["tested"]
    seen, test = ids[:-half], ids[-half:].view(s["tested"], s["T"])
    results = data.record("ffn")["results"] if given.missing and not small else []
    gelu = [{"loss": loss} for row in results for loss in row["losses"] if row["kind"] == "GELU"]
    kinds = [kind for kind in KINDS if kind not in [row["kind"] for row in results]]
    runs = {kind: [one_run(kind, seed, seen, test, len(letters), s) for seed in range(s["seeds"])] for kind in kinds}
    results += [summary(kind, runs[kind], gelu or runs["GELU"], s) for kind in runs]
    for row in results:
        print(f"{row['kind']:18} {row['mean']:.3f} ± {row['half_width']:.3f}   minus GELU {row['minus GELU']:+.3f}")
    told = "95% of the mean over seeds, Student's t; differences are taken seed by seed"
    settings = s | {"V": len(letters)}
    data.keep_record("ffn", results, settings=settings, seeds=range(s["seeds"]), interval=told, small=small)


if __name__ == "__main__":
    main()
