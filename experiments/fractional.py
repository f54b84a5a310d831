"""Does attention over depth spread over a text as a walk with independent jumps does?

    python experiments/fractional.py            # a CPU, some five minutes, with the trained model of `course.pretrained`
    python experiments/fractional.py --small    # a CPU, under a minute

The maps of all layers, mean over heads, of windows of two authors, read by the course's GPT and by SmolLM2. Writes
course/data/records/fractional.json.
"""

import argparse
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data, fractional, pretrained  # noqa: E402
from course.attention_maps import FIRST, QUERIES  # noqa: E402
from course.looks import MODEL, layer_maps  # noqa: E402

FULL = {
    "gpt": {"windows": 16, "tokens": 512},
    MODEL: {"windows": 10, "tokens": 256},
    "planted": {"far": 0.5, "alike": 1.0},
}
SMALL = FULL | {"gpt": {"windows": 4, "tokens": 192}, MODEL: {"windows": 2, "tokens": 64}}
WHAT = """Spread of rollouts (half of the stream stays in each layer, the first 4 keys left out, queries from 0.6 T on) over
that of walks whose jumps follow each layer's likeliest law of distance, cut where the text begins, and over that of walks whose every layer
reads another window; and on how many keys the walks end."""
PREDICTION = """Written after a pilot on eight windows of Austen read by the course's GPT and eight read by SmolLM2, before Shakespeare was
read: at every number of layers at which the null walk has less than a tenth of its weight on the first place, the 95% interval of measured
over null spread lies within 0.95 to 1.05; walks end on fewer keys than those whose layers read different windows."""


def rounded(found: dict[str, list]) -> dict[str, list]:
    return {k: [[round(y, 3) for y in x] if isinstance(x, list) else round(x, 4) for x in v] for k, v in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="a CPU version of under a minute")
    small = parser.parse_args().small
    settings, results = SMALL if small else FULL, {}
    for model in ("gpt", MODEL):
        if model == MODEL and not pretrained.is_here(MODEL):
            print(f"{MODEL} is not on this machine and is left out")
            continue
        for text in ("austen", "shakespeare"):
            maps = layer_maps(model, text, **settings[model])
            results.setdefault(model, {})[text] = rounded(fractional.depth_test(maps))
            if model == "gpt":
                for name, anew in (("planted", False), ("planted anew", True)):
                    drawn = fractional.planted(maps, **settings["planted"], generator=torch.Generator().manual_seed(0), anew=anew)
                    results[model][f"{text}, {name}"] = rounded(fractional.depth_test(drawn))
    told = {"first": FIRST, "start": QUERIES, "share": fractional.SHARE}
    how = "95% by Student's t over windows of one text; models and texts were not resampled"
    about = {"what": WHAT, "prediction": PREDICTION, "null_model": "jumps by the likeliest law of distance of each layer"}
    about = {k: " ".join(v.split()) for k, v in about.items()}
    print(data.keep_record("fractional", results, settings=settings | told, seeds=[0], interval=how, small=small, **about))


if __name__ == "__main__":
    main()
