"""The sinks of SmolLM2: where they are, what is lost without them, and what the base of RoPE does to them.

    python experiments/sinks_trained.py            # a CPU, some minutes; needs the trained model, `python -m course.pretrained smollm2-135m`
    python experiments/sinks_trained.py --small    # two short texts

Texts are windows of two books, resampled as wholes: an interval over them says nothing of other models. Recorded for each text:

- the weight on the first token by layer and head, from the tenth of the text on; the length of the first token's stream and value in
  each layer over the median of the others;
- the loss, in nats a token over the last two thirds, with all keys and with a window of 64 keys, without the first token, with the first
  one, the first four, and with a first token that takes its weight and gives nothing (its values are zero);
- sink mass, exponent of decay and loss with the base of RoPE times ¼, ½, 1, 2 and 4 and the same weights.

Writes course/data/records/sinks_trained.json.
"""

import argparse
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data, pretrained  # noqa: E402
from course.attention_maps import distance_profile, look  # noqa: E402
from course.decay_law import decay_fit  # noqa: E402
from course.sinks import rescale_theta, sink_mass, streaming_logits  # noqa: E402

MODEL = "smollm2-135m"
FULL = {"texts": 6, "T": 256, "window": 64, "factors": [0.25, 0.5, 1.0, 2.0, 4.0]}
SMALL = {"texts": 2, "T": 96, "window": 16, "factors": [0.25, 1.0, 4.0]}


def texts(s: dict) -> list[tuple[str, list[int]]]:
    """Windows of the two books in turn, each from another place."""
    tokenizer, found = pretrained.tokenizer(MODEL), []
    for i in range(s["texts"]):
        book = ("austen", "shakespeare")[i % 2]
        whole = data.read(book)
        start = (i // 2 + 1) * len(whole) // (s["texts"] // 2 + 1)
        found.append((book, tokenizer.encode(whole[start : start + 12 * s["T"]], errors="ignore")[: s["T"]]))
    return found


def loss(logits: torch.Tensor, ids: torch.Tensor) -> float:
    late = ids.shape[1] // 3
    return round(float(F.cross_entropy(logits[0, late:-1], ids[0, late + 1 :])), 4)


@torch.no_grad()
def with_base(model, ids: torch.Tensor, whole: bool) -> dict:
    """Loss, sink and exponent of a model, and by layer and head if `whole`."""
    sinks, profiles, stream, value = [], [], [], []

    def see(layer, weights, x):
        sinks.append(sink_mass(weights)[0])  # (H,)
        profiles.append(distance_profile(weights).mean(dim=(0, 1)))
        block = model.blocks[layer]
        for kept, each in ((stream, x[0]), (value, block.attention.value(block.norm_1(x))[0])):
            sizes = each.norm(dim=-1)  # (T,)
            kept.append(round(float(sizes[0] / sizes[1:].median()), 3))

    logits = look(model, ids, see)
    gamma = float(decay_fit(torch.stack(profiles).mean(dim=0))["power"])
    told = {"loss": loss(logits, ids), "sink": round(float(torch.stack(sinks).mean()), 4), "gamma": round(gamma, 4)}
    if whole:
        told |= {"heads": [[round(float(x), 3) for x in row] for row in sinks], "stream": stream, "value": value}
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="two short texts")
    small = parser.parse_args().small
    s = SMALL if small else FULL
    torch.set_num_threads(1)
    model, rows = pretrained.load(MODEL), []
    W, T = s["window"], s["T"]
    for book, tokens in texts(s):
        ids = torch.tensor([tokens])
        row = {"book": book, "factors": []}
        for factor in s["factors"]:
            row["factors"].append({"factor": factor} | with_base(rescale_theta(model, factor), ids, factor == 1))
        kinds = {
            "no first": (W, 0),
            "first": (W, 1),
            "first four": (W, 4),
            "silent first": (W, 1, True),
            "all, silent first": (T, 1, True),
        }
        row["window"] = {name: loss(streaming_logits(model, ids, *kind), ids) for name, kind in kinds.items()}
        rows.append(row)
        print(book, row["window"], [(f["factor"], f["loss"], f["sink"], f["gamma"]) for f in row["factors"]], flush=True)
        settings = s | {
            "texts": len(rows),
            "model": MODEL,
            "loss": "nats a token over the last two thirds",
            "precision": "float32",
        }
        path = data.keep_record("sinks_trained", rows, settings=settings, seeds=[0], interval=None, small=small)  # so far
    print(path)


if __name__ == "__main__":
    main()
