"""Grokking: do decay and seed decide when a transformer learns to add modulo 113, and what moves before its test accuracy?

    python experiments/grokking.py            # one GPU, about five minutes; stops training after 320 s
    python experiments/grokking.py --small    # a CPU, under a minute: p = 13, a few steps; shows that it runs, measures nothing
    python experiments/grokking.py --tiny     # a CPU, ten seconds: checkpoints of two networks with p = 31, for the exercises

**Runs.** One-layer transformers without norm and biases, width 128, 4 heads, 512 hidden units, ReLU, as in Nanda et al. (2023), who have
biases in the feed-forward network. All pairs a, b modulo 113, 30% to train on, the whole of them in each step; AdamW with rate 1e-3 and
(0.9, 0.98), no warm-up; float32, the loss in float64. Six weight decays, ten seeds each. A seed decides the split and the first weights,
which are the same for all decays: pairs of runs with one seed differ in the decay only. 30,000 steps, or as many as fit in 320 s, the same
for all. All 60 are one program.

**Written before the run.** t_train: first look with training accuracy of 0.99 or more; t_test: first look with test accuracy of 0.95 or
more; a run without it at the last step is censored there, not dropped. Looks are at most 5% apart.

1. Which decay groks sooner? In each pair of neighbouring decays, the difference of ln t_test between runs of one seed that both grokked, by
   Student's t over seeds. Drag alone, weights that shrink by 1 − rate · decay a step, would make t_test ∝ 1 / decay: the slope of
   ln t_test over ln decay, one of each seed, over those decays at which all ten seeds grokked, would be −1. An interval that
   excludes 0 says that decay matters, one that excludes −1 that drag is not all. If fewer than three decays have all seeds, no slope is told.
2. Does the Fourier measure move before the test accuracy? The measure is the share of the embedding's power in its five strongest
   frequencies. In each run that grokked: the first look at which it has gone half of its way from first to last look, and the same of
   test accuracy. The lead is the difference of their logarithms, by Student's t over seeds, each decay for itself. A lead whose interval
   contains 0 or is negative at most decays would be a no. The rival: the test loss, and the look after which it only falls
   below its highest value (its peak); if the peak is as early as the measure's half, one needs no Fourier to be warned.
3. Is it an early signal? Within a decay, at the last look at or before 0.3 of the earliest t_test: Spearman's correlation of the measure
   with t_test over seeds, censored ones counted as later than all. The mean over decays with at least eight runs that grokked, beside what a
   random order of the times in each decay gives (10,000 draws). Rivals at the same look: test loss and norm of all weights. Three
   comparisons: a p below 0.05 / 3 counts.
4. Which share groks by the end? Clopper and Pearson's interval, each decay.
5. Is it a circuit? Key frequencies of the last embedding: those with more than three times an even share (at least the strongest). Test accuracy if
   the embedding keeps only these and its mean; if it loses only these; and the same with as many random ones of the others, 20 draws.
   Key frequencies make the sum if keeping them keeps the accuracy and losing them loses it, and random ones do neither.
6. Are two seeds alike? Linear CKA of last embeddings, and of logits averaged by sum, of all pairs of seeds of a decay, beside the same
   with the rows of one of them in a random order.

Restricted and excluded loss (Nanda et al. 2023) take the key frequencies of the *last* look: hindsight, so they do not predict. Beside
the restricted loss: the same with as many random ones of the others; the same with means over test pairs only; and all of them in runs
without decay. A small network with p = 31, tried on a CPU before, made this necessary: without decay it never groks, and still its
restricted loss falls, since a mean over all pairs with one sum collects what was memorised.

Writes course/data/records/grokking.json and beside it the curves, grokking.npz, with `--tiny` grokking_tiny.npz.
"""

import argparse
import math
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course import grokking as g  # noqa: E402

FULL = {
    "p": 113,
    "share": 0.3,
    "decays": [0.0, 0.3, 0.5, 1.0, 2.0, 4.0],
    "seeds": 10,
    "steps": 30_000,
    "rate": 1e-3,
    "seconds": 320,
    "chunk": 10,
    "draws": 20,
    "frames": 16,
    "sizes": g.TRANSFORMER,
}
SMALL = FULL | {
    "p": 13,
    "share": 0.5,
    "decays": [0.0, 1.0],
    "seeds": 2,
    "steps": 60,
    "draws": 2,
    "frames": 4,
    "sizes": {"d_model": 32, "H": 4, "d_ff": 64},
}
TINY = {
    "p": 31,
    "share": 0.7,
    "decays": [1.0, 0.0],
    "seed": 0,
    "rate": 1e-2,
    "looks": [0, 60, 90, 130, 180, 250, 350, 750, 1500],
    "sizes": {"d_model": 48, "d_ff": 96},
}


def at_seeds(s: dict) -> tuple[list[tuple[float, int]], Tensor, Tensor]:
    """The runs, decay and seed of each, and their pairs to train on and to test on, (M, n, 2) each."""
    runs = [(decay, seed) for decay in s["decays"] for seed in range(s["seeds"])]
    parts = [g.mod_add_data(s["p"], s["share"], seed) for _, seed in runs]
    return runs, *(torch.stack(each) for each in zip(*parts, strict=True))


def number_of(embedding: Tensor) -> Tensor:
    """The rows of the numbers 0 … p − 1 of embeddings (…, p + 1, d)."""
    return embedding[..., :-1, :]


def measure(weights: g.Weights, train: Tensor, test: Tensor, keys: list, others: list, s: dict, device: str) -> dict[str, Tensor]:
    """What one look sees of each of M models, (M,) each."""
    p, found = s["p"], {}
    everything = g.every_pair(p).to(device)
    for i in range(0, len(keys), s["chunk"]):
        cut = slice(i, i + s["chunk"])
        w = {name: x[cut].to(device) for name, x in weights.items()}
        said = g.transformer(w, everything, s["sizes"]["H"])  # (m, p², p)
        here = {"Fourier": g.fourier_measure(number_of(w["E"]))}
        for name, pairs in (("train", train[cut].to(device)), ("test", test[cut].to(device))):
            place = pairs[..., 0] * p + pairs[..., 1]  # (m, n)
            picked = said.gather(1, place[..., None].expand(*place.shape, p))
            here |= {f"{name} accuracy": g.accuracy(picked, pairs), f"{name} loss": g.losses(picked, pairs)}
        tables = said.unflatten(1, (p, p))  # (m, p, p, p)
        for name, chosen in (("restricted", keys), ("restricted, random", others)):
            here[name] = torch.stack([g.restricted_loss(table, ks) for table, ks in zip(tables, chosen[cut], strict=True)])
        unseen = zip(tables, keys[cut], test[cut].to(device), strict=True)
        here["restricted, test"] = torch.stack([g.restricted_loss(table, ks, pairs) for table, ks, pairs in unseen])
        excluded = zip(tables, keys[cut], train[cut].to(device), strict=True)
        here["excluded"] = torch.stack([g.excluded_loss(table, ks, pairs) for table, ks, pairs in excluded])
        here["norm"] = torch.stack([x.flatten(1).square().sum(dim=1) for x in w.values()]).sum(dim=0).sqrt()
        for name, x in here.items():
            found.setdefault(name, []).append(x.double().cpu())
    return {name: torch.cat(x) for name, x in found.items()}


def ablated(weights: g.Weights, test: Tensor, keys: list, s: dict, device: str) -> list[dict]:
    """Test accuracies of M models whose embedding keeps or loses key frequencies, or as many random others."""
    p, rows = s["p"], []
    for i, ks in enumerate(keys):
        w = {name: x[i : i + 1].to(device) for name, x in weights.items()}
        E, pairs = number_of(w["E"][0]), test[i].to(device)
        draw = torch.Generator().manual_seed(i)
        rest = [k for k in range(1, (p + 1) // 2) if k not in ks]
        random = [[rest[j] for j in torch.randperm(len(rest), generator=draw)[: len(ks)]] for _ in range(s["draws"])]
        mean = E.mean(dim=0)

        def accuracy(table, w=w, pairs=pairs):
            changed = w | {"E": torch.cat([table, w["E"][0, -1:]])[None]}
            return round(float(g.accuracy(g.transformer(changed, pairs, s["sizes"]["H"]), pairs)[0]), 4)

        only = lambda chosen, E=E: g.keep_frequencies(E, chosen)  # noqa: E731
        rows.append(
            {
                "keeps keys": accuracy(only(ks)),
                "loses keys": accuracy(E - only(ks) + mean),
                "keeps random": [accuracy(only(chosen)) for chosen in random],
                "loses random": [accuracy(E - only(chosen) + mean) for chosen in random],
            }
        )
    return rows


def by_sum(weights: g.Weights, s: dict, device: str) -> Tensor:
    """Logits averaged over all pairs with the same sum, of M models: (M, p, p)."""
    everything = g.every_pair(s["p"]).to(device)
    found = []
    for i in range(len(weights["E"])):
        said = g.transformer({name: x[i : i + 1].to(device) for name, x in weights.items()}, everything, s["sizes"]["H"])
        found.append(g.by_sum(said.unflatten(1, (s["p"], s["p"])))[0].cpu())
    return torch.stack(found)


def likeness(tables: Tensor, runs: list) -> dict[str, dict[str, list[float]]]:
    """CKA of all pairs of seeds of each decay, and with rows of one in a random order: tables (M, n, d)."""
    draw, found = torch.Generator().manual_seed(0), {}
    for decay in sorted({decay for decay, _ in runs}):
        own = [i for i, run in enumerate(runs) if run[0] == decay]
        pairs = [(i, j) for i in own for j in own if i < j]
        order = [torch.randperm(tables.shape[1], generator=draw) for _ in pairs]
        found[str(decay)] = {
            "seeds": [round(float(g.linear_cka(tables[i], tables[j])), 3) for i, j in pairs],
            "rows permuted": [
                round(float(g.linear_cka(tables[i], tables[j][at])), 3) for (i, j), at in zip(pairs, order, strict=True)
            ],
        }
    return found


def circles(kept: list[g.Weights], looks: list[int], keys: list) -> np.ndarray:
    """Embeddings in the plane of the strongest key frequency of the last look, (M, looks, p, 2) as whole numbers from −127 to 127."""
    found = []
    for i, ks in enumerate(keys):
        E = torch.stack([number_of(kept[look]["E"][i]).double() for look in looks])  # (looks, p, d)
        E = E - E.mean(dim=1, keepdim=True)
        angle = 2 * math.pi * ks[0] * torch.arange(E.shape[1]) / E.shape[1]
        plane = torch.stack([angle.cos(), angle.sin()]).double() @ E[-1]  # (2, d)
        first = plane[0] / plane[0].norm()
        second = plane[1] - (plane[1] @ first) * first
        at = E @ torch.stack([first, second / second.norm()]).T  # (looks, p, 2)
        found.append((127 * at / at.abs().max()).round().to(torch.int8))
    return torch.stack(found).numpy()


def transformers(s: dict, small: bool) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    began = time.perf_counter()
    runs, train, test = at_seeds(s)
    w = g.first_weights("transformer", s["p"], [seed for _, seed in runs], **s["sizes"])
    w = {name: x.to(device) for name, x in w.items()}
    model = lambda w, pairs: g.transformer(w, pairs, s["sizes"]["H"])  # noqa: E731
    decays, on = [decay for decay, _ in runs], train.to(device)
    steps, kept = g.decayed_adam(w, model, on, decays, g.log_steps(s["steps"]), s["rate"], s["seconds"])
    trained = time.perf_counter() - began
    print(f"{len(runs)} runs, {steps[-1]:,} steps in {trained:.0f} s", flush=True)
    with torch.no_grad():
        keys = [g.key_frequencies(number_of(E)) or g.key_frequencies(number_of(E), 0.0)[:1] for E in kept[-1]["E"]]
        others = []
        for i, ks in enumerate(keys):
            rest = [k for k in range(1, (s["p"] + 1) // 2) if k not in ks]
            order = torch.randperm(len(rest), generator=torch.Generator().manual_seed(1_000 + i))
            others.append([rest[j] for j in order[: len(ks)]])
        seen = [measure(each, train, test, keys, others, s, device) for each in kept]
        curves = {name: torch.stack([look[name] for look in seen], dim=1) for name in seen[0]}  # (M, looks)
        cut = ablated(kept[-1], test, keys, s, device)
        alike = {
            "embeddings": likeness(number_of(kept[-1]["E"]), runs),
            "logits by sum": likeness(by_sum(kept[-1], s, device), runs),
        }
    rows = []
    for i, (decay, seed) in enumerate(runs):
        t_train, t_test = g.phase_times(steps, curves["train accuracy"][i].tolist(), curves["test accuracy"][i].tolist())
        last = {name: float(f"{float(x[i, -1]):.5g}") for name, x in curves.items()}
        rows.append({"decay": decay, "seed": seed, "t_train": t_train, "t_test": t_test, "last": last, "keys": keys[i]} | cut[i])
        print(
            decay, seed, t_train, t_test, last["test accuracy"], keys[i], cut[i]["keeps keys"], cut[i]["loses keys"], flush=True
        )
    looks = np.unique(np.geomspace(1, len(steps), s["frames"]).round().astype(int) - 1) if small else frames(steps, s["frames"])
    path = data.keep_record(
        "grokking",
        {"runs": rows, "steps": steps, "frames": [steps[i] for i in looks], "CKA": alike},
        settings=s | {"optimiser": "AdamW, betas 0.9 and 0.98", "precision": "float32, loss in float64"},
        seeds=range(s["seeds"]),
        interval=None,
        device=device,
        small=small,
        what="accuracy, loss, norm and Fourier measures at each look: grokking.npz, runs in the order of `runs`",
        seconds={"training": round(trained), "all": round(time.perf_counter() - began)},
    )
    arrays = {name: x.numpy().astype(np.float32 if "loss" in name else np.float16) for name, x in curves.items()}
    np.savez_compressed(path.with_suffix(".npz"), circles=circles(kept, list(looks), keys), **arrays)
    print(path, f"{time.perf_counter() - began:.0f} s in all")
    if os.environ.get("OUT"):
        for each in (path, path.with_suffix(".npz")):
            shutil.copy(each, os.environ["OUT"])


def frames(steps: list[int], n: int) -> list[int]:
    """Looks at n steps that are evenly spaced in the logarithm from 10 on, and the first."""
    wanted = [0, *np.geomspace(10, steps[-1], n - 1)]
    return sorted({min(range(len(steps)), key=lambda i, x=x: abs(steps[i] - x)) for x in wanted})


def tiny(s: dict) -> None:
    """Two networks on a CPU, with and without decay, at nine looks."""
    torch.set_num_threads(1)
    train, test = g.mod_add_data(s["p"], s["share"], s["seed"], ordered=False)
    w = g.first_weights("mlp", s["p"], [s["seed"]] * len(s["decays"]), **s["sizes"])
    steps, kept = g.decayed_adam(w, g.mlp, train, s["decays"], s["looks"], s["rate"])
    for step, each in zip(steps, kept, strict=True):
        print(step, *(g.accuracy(g.mlp(each, pairs), pairs).numpy().round(3) for pairs in (train, test)))
    path = data.record_path("grokking_tiny").with_suffix(".npz")
    arrays = {name: np.stack([each[name].numpy() for each in kept], axis=1).astype(np.float16) for name in kept[0]}
    np.savez_compressed(path, steps=np.array(steps), train=train.numpy(), test=test.numpy(), **arrays)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="p = 13 and a few steps")
    parser.add_argument("--tiny", action="store_true", help="checkpoints of two small networks, on a CPU")
    given = parser.parse_args()
    if given.tiny:
        tiny(TINY)
    else:
        transformers(SMALL if given.small else FULL, given.small)


if __name__ == "__main__":
    main()
