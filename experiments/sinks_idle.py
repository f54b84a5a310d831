"""Does idleness make a sink? One attention head that must at times say nothing, for five shares of idle queries.

    python experiments/sinks_idle.py            # a CPU, about a minute
    python experiments/sinks_idle.py --small    # two seeds

The models are those of `course.sinks.IdleHeads`: no mark, BOS, plus one and a gate, with shared seeds (weights and tokens). Recorded for
each: the mean squared error and the weight on BOS and on nothing, of idle and of busy queries, after training.

The null: weight on BOS that does not depend on the share of idle queries.

Writes course/data/records/sinks_idle.json.
"""

import argparse
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.sinks import FIXES, IdleHeads, train_idle  # noqa: E402

FULL = {"shares": [0.1, 0.25, 0.5, 0.75, 0.9], "seeds": 8, "steps": 300, "B": 24, "lr": 0.03}
SMALL = FULL | {"shares": [0.1, 0.5], "seeds": 2, "steps": 100}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="two seeds, two shares, fewer steps")
    small = parser.parse_args().small
    s = SMALL if small else FULL
    torch.set_num_threads(1)
    rows = []
    for share in s["shares"]:
        jobs = [(fix, share, seed) for fix in FIXES for seed in range(s["seeds"])]
        models = IdleHeads([job[:2] for job in jobs], [seed for _, _, seed in jobs])
        told = train_idle(models, s["steps"], s["B"], s["lr"])
        for i, (fix, _, seed) in enumerate(jobs):
            numbers = {name: round(float(each[i]), 4) for name, each in told.items()}
            rows.append({"fix": fix, "share": share, "seed": seed} | numbers)
        print(
            share,
            {fix: data.interval([r["idle place"] for r in rows if r["fix"] == fix][-s["seeds"] :], 3) for fix in FIXES[1:3]},
        )
    null = "weight on BOS that does not depend on the share of idle queries"
    print(data.keep_record("sinks_idle", rows, settings=s, seeds=range(s["seeds"]), interval=None, small=small, null_model=null))


if __name__ == "__main__":
    main()
