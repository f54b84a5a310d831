"""Heads whose scores are multiplied by a number: how the mean of ln r answers, and what a power law with the same mean would do.

    python experiments/thermo_dictionary.py            # a CPU, under a minute
    python experiments/thermo_dictionary.py --small    # two windows, a few seconds

The course's own GPT reads windows of Austen that it was not trained on, each after its mark for the start. Late queries are read in the
256 keys before each. For each head `course.thermo_dictionary.head_response` gives the exponent of the power law with the head's mean
of ln r, the response that the law has, and the head's own. `moved` is by how much the mean of ln r really changes if the scores
are multiplied by 1.1, which the response should give to first order for any scores. The same for shuffled tokens, and for
planted heads whose scores are −γ ln r with noise that differs from query to query.

`spread`, added after the rest was seen, is what chapter ch21 measures: the variance of ln r of a profile over that of the power law with
the same mean, from distance 1 on and from 4 on, of each head and of the mean over all heads.

Before it ran: if the dictionary holds of heads, the law's response is within 20% of a head's own for most of them. A constant, the
median response of the other heads, is the predictor that it has to beat.
"""

import argparse
import sys
from pathlib import Path

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.attention_maps import look  # noqa: E402
from course.checkpoint import load_gpt  # noqa: E402
from course.model import GPT  # noqa: E402
from course.phase_polylog import log_spread  # noqa: E402
from course.thermo_dictionary import head_response, windows  # noqa: E402
from course.tokens import bpe_encode  # noqa: E402

READ = {"characters": 60_000, "windows": 12, "T": 512, "N": 256, "factor": 1.1}
PLANTED = {"gamma": 1.0, "noise": [0.0, 0.5, 1.0, 1.5, 2.0], "queries": 2_000}


def rounded(x: Tensor, digits: int = 4) -> list:
    return [round(v, digits) for v in x.tolist()]


def moved(weights: Tensor, N: int, factor: float) -> Tensor:
    """Change of the mean of ln r in the windows if the scores are multiplied: weights (..., T, T) → (...)."""
    scores = windows(weights, N).double().log()
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()
    return ((factor * scores).softmax(dim=-1) @ log_r - scores.softmax(dim=-1) @ log_r).mean(dim=-1)


@torch.no_grad()
def heads(model: GPT, texts: Tensor, s: dict) -> dict[str, Tensor]:
    """What `head_response` says of each text and head, (W, heads) each."""
    rows = []
    for ids in texts:
        layers: list[dict] = []

        def see(layer: int, weights: Tensor, stream: Tensor, layers=layers):
            found = head_response(weights[0], s["N"])
            rows = windows(weights[0], s["N"]).double()
            profile = (rows / rows.sum(dim=-1, keepdim=True)).mean(dim=-2)  # (heads, N)
            layers.append(found | {"moved": moved(weights[0], s["N"], s["factor"]), "mean weights": profile})

        look(model, ids[None], see)
        rows.append({k: torch.cat([layer[k] for layer in layers]) for k in layers[0]})
    return {k: torch.stack([row[k] for row in rows]) for k in rows[0]}


def told(found: dict[str, Tensor]) -> dict:
    """Means over windows of each head, and the median over heads of prediction over response in each window."""
    ratio = found["predicted"] / found["response"]
    means = {k: rounded(v.mean(dim=0)) for k, v in found.items() if k != "mean weights"}
    return means | {"median ratio": rounded(ratio.median(dim=1).values, 3)}


def spread(profiles: Tensor) -> dict:
    """Variance of ln r over the power law's, by the first distance, of each head and of their mean: profiles (heads, N)."""
    from_0 = torch.cat([torch.zeros_like(profiles[:, :1]), profiles], dim=1)  # (heads, N + 1), distance 0 left empty
    found = {}
    for low in (1, 4):
        each, whole = (log_spread(p, low, profiles.shape[1])["ratio"] for p in (from_0, from_0.mean(dim=0)))
        found[f"from {low}"] = {"heads": rounded(each), "mean of heads": round(float(whole), 4)}
    return found


def planted(s: dict, N: int) -> list[dict]:
    """Queries with scores −γ ln r plus normal noise, one head for each spread of the noise."""
    log_r = torch.arange(1, N + 1, dtype=torch.float64).log()
    rows = []
    for noise in s["noise"]:
        generator = torch.Generator().manual_seed(0)
        extra = torch.randn(s["queries"], N, generator=generator, dtype=torch.float64)
        p = (-s["gamma"] * log_r + noise * extra).softmax(dim=-1)  # (queries, N)
        weights = torch.zeros(s["queries"] + N + 4, s["queries"] + N + 4, dtype=torch.float64)
        i = torch.arange(N + 4, s["queries"] + N + 4)[:, None]
        weights[i, i - torch.arange(1, N + 1)] = p
        rows.append({"noise": noise} | {k: round(float(v), 4) for k, v in head_response(weights, N).items()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="two windows, a few seconds")
    small = parser.parse_args().small
    s = READ | ({"windows": 2} if small else {})
    torch.set_num_threads(1)
    model, merges = load_gpt()
    ids, T, bos = bpe_encode(data.read("austen")[-s["characters"] :], merges), s["T"], model.config.V - 1
    starts = [round(i * (len(ids) - T + 1) / (s["windows"] - 1)) for i in range(s["windows"])]
    texts = torch.tensor([[bos, *ids[start : start + T - 1]] for start in starts])
    generator = torch.Generator().manual_seed(0)
    order = torch.stack([torch.cat([torch.zeros(1).long(), 1 + torch.randperm(T - 1, generator=generator)]) for _ in starts])
    found = heads(model, texts, s)
    results = {"text": told(found), "shuffled": told(heads(model, texts.gather(1, order), s))}
    results["spread"] = spread(found["mean weights"].mean(dim=0))
    results["planted"] = planted(PLANTED, s["N"])
    print({k: v["median ratio"] for k, v in results.items() if "median ratio" in v}, *results["planted"], sep="\n")
    data.keep_record(
        "thermo_dictionary",
        results,
        settings=READ | s | {"planted": PLANTED},
        seeds=[0],
        interval=None,
        small=small,
        what="response of the mean of ln r to a factor of the scores, of 36 heads and of power laws with their means",
        prediction="within 20% for most heads",
        null_model="the median response of the other heads",
    )


if __name__ == "__main__":
    main()
