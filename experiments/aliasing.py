"""What the base of RoPE does to small models of one layer, in a task of content and a task of distance.

    python experiments/aliasing.py            # a GPU, or some ten minutes of a CPU
    python experiments/aliasing.py --small    # a CPU, under a minute

Look up a value by its key, at any distance, or copy the token ten places back. For each base the same seeds, so the same first
weights and the same batches. Writes course/data/records/aliasing.json.
"""

import argparse
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import aliasing, data  # noqa: E402
from course.device import best_device  # noqa: E402

BASES = [1.5, 10.0, 30.0, 100.0, 1e4, 1e16, 1e32]
FULL = {
    "steps": {"copy": 200, "lookup": 300},
    "heads": {"copy": 1, "lookup": 2},
    "B": 16,
    "held_out": 256,
    "bases": BASES,
    "seeds": 4,
    "reference": 1e4,
}
SMALL = FULL | {"steps": {"copy": 60, "lookup": 60}, "bases": [10.0, 1e4, 1e32], "seeds": 2}
FAR = 54  # from this place on the copied token has a look-alike for pair 0, 44 places before it


@torch.no_grad()
def shares(model, task: str, n: int, device: torch.device) -> dict:
    """The shares of right answers on n held-out sequences: of all places, and of copying before and from FAR."""
    ids, answers = (each.to(device) for each in aliasing.TASKS[task][0](n, torch.Generator().manual_seed(7)))
    right = model(ids)[..., : aliasing.VALUES].argmax(dim=-1) == answers  # (n, T)
    asked = answers >= 0
    found = {"all": right[asked].double().mean()}
    if task == "copy":
        found |= {"near": right[:, :FAR][asked[:, :FAR]].double().mean(), "far": right[:, FAR:].double().mean()}
    return {name: round(float(share), 4) for name, share in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="a CPU version of under a minute")
    small = parser.parse_args().small
    settings, start = dict(SMALL if small else FULL), time.perf_counter()
    device = torch.device("cpu") if small else best_device()
    seeds, runs, differences = list(range(settings.pop("seeds"))), {}, {}
    for task in aliasing.TASKS:
        runs[task] = {}
        for base in settings["bases"]:
            how = settings["steps"][task], settings["B"], settings["heads"][task], device
            made = [aliasing.trained(task, base, seed, *how) for seed in seeds]
            runs[task][f"{base:g}"] = [shares(model, task, settings["held_out"], device) for model in made]
            print(task, f"{base:g}", runs[task][f"{base:g}"], f"{time.perf_counter() - start:.0f} s", flush=True)
        measure, reference = ("far" if task == "copy" else "all"), runs[task][f"{settings['reference']:g}"]
        differences[task] = {
            base: data.interval([a[measure] - b[measure] for a, b in zip(each, reference, strict=True)], 4)
            for base, each in runs[task].items()
        }
    path = data.keep_record(
        "aliasing",
        {"runs": runs, "differences": differences},
        settings=settings | {"T": 64, "back": 10, "d_head": aliasing.WIDTH, "layers": 1, "rate": 5e-3},
        seeds=seeds,
        interval="95% of the mean over seeds of the paired difference to base 10,000, Student's t",
        device=device,
        small=small,
        what="share of right answers: of all 32 questions (lookup), of the places from 54 on (copy)",
        prediction="lookup needs pairs that do not turn within 64 tokens, copying needs more than one pair that turns",
        null_model="chance is 1/8; a head that cannot tell distance 10 from 54 gets 9/16 of the places from 54 on",
        seconds=round(time.perf_counter() - start, 1),
    )
    print(path)


if __name__ == "__main__":
    main()
