"""Where the norm stands: gradients at the start, rank collapse, and whether a short training needs a warmup.

    python experiments/residual_norm.py            # a CPU, some minutes
    python experiments/residual_norm.py --small    # a CPU, under a minute

Random models for the first two. For the third, models of characters of Shakespeare, pre-norm and post-norm, are
trained at several learning rates with and without warmup, all seeds side by side. Writes
course/data/records/residual_norm.json.
"""

import argparse
import itertools
import sys
from collections import Counter
from pathlib import Path

import torch
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.optimisers_and_schedules import optimiser  # noqa: E402
from course.residual_norm import gradient_norms, random_blocks, rank_residual, rms_norm, streams  # noqa: E402

SETTINGS = {"d_model": 32, "B": 8, "T": 32, "last": 25}
SHALLOW = {"L": 4, "rates": [1e-3, 3e-3, 1e-2]}
DEEP = {"L": 12, "rates": [3e-4, 1e-3]}
FULL = {"steps": 250, "warm": 50, "train_seeds": 5, "seeds": 20}
SMALL = {"steps": 60, "warm": 15, "train_seeds": 3, "seeds": 6}
DEPTHS = [2, 8, 32]
WAYS = {
    "attention alone": {"placement": "none", "skip": False, "ffn": False},
    "with norm": {"placement": "pre", "skip": False, "ffn": False},
    "with norm, causal": {"placement": "pre", "skip": False, "ffn": False, "causal": True},
    "with norm and feed-forward": {"placement": "pre", "skip": False, "ffn": True},
    "with norm and skip": {"placement": "pre", "skip": True, "ffn": False},
    "pre-norm transformer": {"placement": "pre", "skip": True, "ffn": True},
    "post-norm transformer": {"placement": "post", "skip": True, "ffn": True},
}


def gradients(placement: str, L: int, seeds: list[int]) -> dict:
    """log10 of the gradient's norm in the first and the last block."""
    logs = gradient_norms(placement, L, seeds).log10()
    (first, first_half), (last, last_half) = data.interval(logs[:, 0], 4), data.interval(logs[:, -1], 4)
    gap, gap_half = data.interval(logs[:, -1] - logs[:, 0], 4)
    ends = {"first": first, "first_half_width": first_half, "last": last, "last_half_width": last_half}
    return {"placement": placement, "L": L, **ends, "gap": gap, "gap_half_width": gap_half}


def collapse(way: str, seeds: list[int], L: int = 16, T: int = 32, d_model: int = 64) -> dict:
    """log10 of the rank residual by layer, in float64; at most 16 digits are told apart."""
    blocks = random_blocks(L, d_model, seeds, torch.float64)
    x = torch.randn(len(seeds), 1, T, d_model, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    logs = [rank_residual(h)[:, 0].log10().clamp(min=-15) for h in streams(x, blocks, **WAYS[way])]
    pairs = [data.interval(each, 4) for each in logs]
    return {"way": way, "mean": [mean for mean, _ in pairs], "half_width": [half for _, half in pairs]}


def train(placement: str, warm: int, s: dict, ids: torch.Tensor, V: int) -> torch.Tensor:
    """Loss in nats a character by step for every rate and seed: (rates, seeds, steps). Adam; every seed has its own batches."""
    seeds, rates = list(range(s["train_seeds"])), torch.tensor(s["rates"])
    R, d = len(seeds) * len(rates), s["d_model"]
    blocks = random_blocks(s["L"], d, seeds * len(rates))
    generators = [torch.Generator().manual_seed(100 + seed) for seed in seeds]

    def fill(*shape: int, std: float) -> torch.Tensor:  # the same for all rates
        return std * torch.stack([torch.randn(1, *shape, generator=g) for g in generators]).repeat(len(rates), 1, 1, 1)

    ends = [fill(V, d, std=1.0), fill(s["T"], d, std=0.5), fill(d, V, std=d**-0.5)]  # embedding, positions, head
    parameters = [tensor.requires_grad_() for tensor in ends + [W for p in blocks for W in p.values()]]
    rules = [optimiser("Adam", rates.repeat_interleave(len(seeds))[:, None, None, None]) for _ in parameters]
    runs, losses = torch.arange(R)[:, None, None], []
    for t in range(1, s["steps"] + 1):
        starts = torch.stack([torch.randint(len(ids) - s["T"] - 1, (s["B"],), generator=g) for g in generators])
        batch = ids[starts[..., None] + torch.arange(s["T"] + 1)].repeat(len(rates), 1, 1)  # (R, B, T + 1)
        x = ends[0][runs, 0, batch[..., :-1]] + ends[1]  # (R, B, T, d_model)
        out = streams(x, blocks, placement, causal=True)[-1]
        logits = (rms_norm(out) if placement == "pre" else out) @ ends[2]  # (R, B, T, V)
        loss = F.cross_entropy(logits.flatten(0, 2), batch[..., 1:].flatten(), reduction="none").view(R, -1).mean(dim=1)
        losses.append(loss.detach())
        grads = torch.autograd.grad(loss.sum(), parameters)
        with torch.no_grad():
            for rule, w, g in zip(rules, parameters, grads, strict=True):
                w.copy_(rule(w, g, min(1.0, t / warm)))
    return torch.stack(losses, dim=-1).view(len(rates), len(seeds), -1)


def training(s: dict) -> list[dict]:
    """The mean loss of the last steps for every depth, placement, warmup and rate, with intervals over seeds."""
    text = data.read("shakespeare", 200_000)
    letters = sorted(set(text))
    ids, rows = torch.tensor([letters.index(c) for c in text]), []
    for sizes, placement, warm in itertools.product((SHALLOW, DEEP), ("pre", "post"), (1, s["warm"])):
        last = train(placement, warm, s | sizes, ids, len(letters))[..., -s["last"] :].mean(dim=-1)  # (rates, seeds)
        for rate, by_seed in zip(sizes["rates"], last, strict=True):
            mean, half = data.interval(by_seed, 4)
            row = {"L": sizes["L"], "placement": placement, "warm": warm, "rate": rate, "mean": mean, "half_width": half}
            rows.append(row | {"loss": [round(float(x), 4) for x in by_seed]})
            print(f"{sizes['L']:2} blocks {placement:5} warmup {warm:3} rate {rate:.0e}: {mean:.3f} ± {half:.3f}")
    return rows


def unigram(text: str) -> float:
    """The loss in nats of the best guess that does not look at what comes before."""
    counts = torch.tensor(list(Counter(text).values()), dtype=torch.float64)
    shares = counts / counts.sum()
    return round(float(-(shares * shares.log()).sum()), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="few seeds and steps, under a minute on a CPU")
    small = parser.parse_args().small
    settings = SETTINGS | (SMALL if small else FULL)
    torch.set_num_threads(1)
    seeds = list(range(settings["seeds"]))
    with torch.no_grad():
        collapsed = [collapse(way, seeds) for way in WAYS]
    results = {
        "gradients": [gradients(placement, L, seeds) for placement in ("pre", "post") for L in DEPTHS],
        "collapse": collapsed,
        "unigram": unigram(data.read("shakespeare", 200_000)),
        "training": training(settings),
    }
    data.keep_record(
        "residual_norm",
        results,
        settings=settings | {"shallow": SHALLOW, "deep": DEEP},
        seeds=seeds,
        interval="95% of the mean over seeds, Student's t",
        small=small,
    )


if __name__ == "__main__":
    main()
