"""How many layers does copying need? Attention-only models that read a random list again and again.

    python experiments/block.py            # a CPU, some minutes
    python experiments/block.py --small    # a CPU, under a minute

Models of one, two and three layers, and one layer twice as wide, learn to say what comes next in a list of random
tokens that repeats after 8 to 16 of them. In a control the list always has 12 tokens, so that "the same place 12
tokens ago" is enough. Every setting is trained with several seeds and tested on sequences that were not drawn
before. Writes course/data/records/block.json.
"""

import argparse
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.block import AttentionOnly, copy_accuracy, repeats, train  # noqa: E402

SETTINGS = {"V": 20, "T": 32, "B": 32, "n_heads": 2, "rate": 1e-2, "tested": 512, "check_every": 50}
FULL = {"steps": 600, "seeds": 8}
SMALL = {"steps": 200, "seeds": 3}
MODELS = {
    "1 layer": {"n_layers": 1, "d_model": 32, "periods": [8, 16]},
    "1 layer, twice as wide": {"n_layers": 1, "d_model": 64, "periods": [8, 16]},
    "2 layers": {"n_layers": 2, "d_model": 32, "periods": [8, 16]},
    "3 layers": {"n_layers": 3, "d_model": 32, "periods": [8, 16]},
    "1 layer, always 12 tokens": {"n_layers": 1, "d_model": 32, "periods": [12, 12]},
}


def one_run(seed: int, s: dict, n_layers: int, d_model: int, periods: list[int]) -> list[float]:
    """The accuracy on new sequences after every `check_every` steps."""
    torch.manual_seed(seed)
    model = AttentionOnly(s["V"], n_layers, d_model, s["n_heads"])
    generator = torch.Generator().manual_seed(1_000 + seed)
    test = repeats(s["tested"], s["T"], s["V"], periods, torch.Generator().manual_seed(7))
    optimiser = torch.optim.Adam(model.parameters(), lr=s["rate"])
    curve = []
    for done in range(0, s["steps"], s["check_every"]):
        batch = lambda: repeats(s["B"], s["T"], s["V"], periods, generator)  # noqa: E731
        train(model, batch, s["check_every"], s["rate"], optimiser=optimiser, warmup=20 if done == 0 else 0)
        curve.append(round(copy_accuracy(model, *test), 4))
    return curve


def best_offset(s: dict, periods: list[int]) -> float:
    """What the best rule "copy from n tokens ago" gets right, over all n."""
    ids, known = repeats(20_000, s["T"], s["V"], periods, torch.Generator().manual_seed(7))
    right = [(ids[:, n:] == ids[:, :-n])[known[:, n - 1 :]].sum() / known.sum() for n in range(1, s["T"] - 1)]
    return round(float(max(right)), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="three seeds and few steps, under a minute on a CPU")
    small = parser.parse_args().small
    settings = SETTINGS | (SMALL if small else FULL)
    torch.set_num_threads(1)
    results = []
    for name, sizes in MODELS.items():
        curves = [one_run(seed, settings, **sizes) for seed in range(settings["seeds"])]
        last = [curve[-1] for curve in curves]
        mean, half = data.interval(last, 4)
        row = {"model": name, **sizes, "curves": curves, "accuracy": last, "mean": mean, "half_width": half}
        results.append(row | {"best_offset": best_offset(settings, sizes["periods"])})
        print(f"{name:28} {mean:.3f} ± {half:.3f}   best fixed offset {results[-1]['best_offset']:.3f}")
    told = "95% of the mean over seeds, Student's t"
    data.keep_record("block", results, settings=settings, seeds=range(settings["seeds"]), interval=told, small=small)


if __name__ == "__main__":
    main()
