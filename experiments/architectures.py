"""Encoder, decoder, prefix decoder and encoder-decoder on two tasks with lists.

    python experiments/architectures.py            # a CPU, some minutes
    python experiments/architectures.py --small    # a CPU, under a minute

Four arrangements with as many matrix entries learn to say a list of distinct tokens backwards. Then they learn to say
it forwards or backwards, whichever they like: what is right is then a list as a whole, not a token at each place.
Every setting is trained with several seeds and tested on lists drawn anew. Writes course/data/records/architectures.json.
"""

import argparse
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.architectures import FAMILIES, Family, either_order, fit, generate, reversal  # noqa: E402

SETTINGS = {"V": 16, "n": 8, "B": 64, "d_model": 32, "n_heads": 2, "rate": 1e-2, "tested": 1000}
FULL = {"steps": {"reversal": [25, 50, 100], "either order": [300, 1000]}, "seeds": 5}
SMALL = {"steps": {"reversal": [100], "either order": [200]}, "seeds": 3}
TASKS = {"reversal": reversal, "either order": either_order}


def one_run(kind: str, task: str, steps: int, seed: int, s: dict) -> tuple[Family, dict]:
    """A trained model, and the share of new lists that it says right: every token, and drawn or by the largest logit."""
    torch.manual_seed(seed)
    model, generator = Family(kind, s["V"], s["n"], s["d_model"], s["n_heads"]), torch.Generator().manual_seed(1_000 + seed)
    fit(model, lambda: TASKS[task](s["B"], s["n"], s["V"], generator), steps, s["rate"])
    source, backwards = reversal(s["tested"], s["n"], s["V"], torch.Generator().manual_seed(2_000 + seed))
    wrote = generate(model, source, None if task == "reversal" else torch.Generator().manual_seed(3_000 + seed))
    right = (wrote == backwards).all(dim=1)
    places = wrote == backwards
    if task == "either order":
        right |= (wrote == source).all(dim=1)
        places |= wrote == source
    return model, {"lists": float(right.float().mean()), "tokens": float(places.float().mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="three seeds and few steps, under a minute on a CPU")
    small = parser.parse_args().small
    settings = SETTINGS | (SMALL if small else FULL)
    torch.set_num_threads(1)
    results = []
    for task in TASKS:
        for steps in settings["steps"][task]:
            for kind in FAMILIES:
                runs = [one_run(kind, task, steps, seed, settings) for seed in range(settings["seeds"])]
                row = {"task": task, "model": kind, "steps": steps, "parameters": sum(p.numel() for p in runs[0][0].parameters())}
                for what in ("lists", "tokens"):
                    row[what] = [round(told[what], 4) for _, told in runs]
                row["mean"], row["half_width"] = data.interval(row["lists"], 4)
                row["mean_tokens"], row["half_width_tokens"] = data.interval(row["tokens"], 4)
                results.append(row)
                print(f"{task:13} {steps:4} steps  {kind:16} lists {row['mean']:.3f} ± {row['half_width']:.3f}", flush=True)
    told = "95% of the mean over seeds, Student's t"
    data.keep_record("architectures", results, settings=settings, seeds=range(settings["seeds"]), interval=told, small=small)


if __name__ == "__main__":
    main()
