"""What generating costs, and what the likeliest text looks like, with the trained GPT that ships with the course.

    python experiments/inference.py            # a CPU, one to two minutes
    python experiments/inference.py --small    # a CPU, some seconds

Seconds of one step with the cache and without it, and of a whole text by each rule; tokens a second against the number of
sequences; and, at each of some places of a novel, how probable and how repetitive the texts are that different rules make. What a
GPU did is copied from the record of benchmarks/decoding.py. Writes course/data/records/inference.json.

    python experiments/inference.py --texts    # only the texts of the rules, into the record that is there
"""

import argparse
import json
import math
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.checkpoint import load_gpt  # noqa: E402
from course.inference import beam, following, generate, greedy, keep_min_p, keep_top_k, pass_flops, sample, sample_top_p  # noqa: E402
from course.model import GPT, Config  # noqa: E402
from course.tokens import bpe_decode, bpe_encode  # noqa: E402

FULL = {"prompts": 16, "lengths": [64, 128, 256, 512, 1024], "batches": [1, 2, 4, 8, 16, 32, 64], "rounds": 6}
SMALL = {"prompts": 8, "lengths": [64, 256], "batches": [1, 16], "rounds": 2}
WIDE = {"V": 256, "d_model": 1024, "n_layers": 4, "n_heads": 8}
TEXTS = {"held_out": 200_000, "prompt": 16, "new": 80, "piece": 4}  # characters that experiments/training.py held out; tokens


def fastest(steps: dict, rounds: int) -> dict:
    """Seconds of each step, the least of some rounds in which all have their turn, after one that is not counted."""
    least = dict.fromkeys(steps, math.inf)
    for number in range(rounds + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if number:
                least[name] = min(least[name], time.perf_counter() - start)
    return least


def next_token(model: GPT, ids: torch.Tensor):
    """A step that reads the last token of ids (B, T) with the others in the cache; and the cache."""
    cache = model.cache()
    model(ids[:, :-1], cache)

    def step():
        cache.cut(ids.shape[1] - 1)
        model(ids[:, -1:], cache)

    return step, cache


# ---------------------------------------------------------------- with and without the cache


@torch.no_grad()
def single_steps(lengths: list[int], rounds: int) -> list[dict]:
    """Milliseconds for the logits of the last of so many tokens, with the others cached and without."""
    (model, _), steps, rows = load_gpt(), {}, []
    for length in lengths:
        ids = torch.randint(model.config.V, (1, length), generator=torch.Generator().manual_seed(length))
        steps["cached", length], cache = next_token(model, ids)
        steps["whole", length] = lambda ids=ids: model(ids)
        flops = {"cached_flops": pass_flops(model.config, 1, length), "whole_flops": pass_flops(model.config, length, length)}
        steps["cached", length]()
        rows.append({"length": length, **flops, "cache_bytes": cache.nbytes})
    times = fastest(steps, rounds)
    return [row | {f"{way}_ms": round(1e3 * times[way, row["length"]], 3) for way in ("cached", "whole")} for row in rows]


# ---------------------------------------------------------------- rules


def searched(width: int):
    def way(model, ids, new, generator, cached=True):
        found = [beam(following(model, prompt, cached), new, width)[0][1] for prompt in ids.split(1)]
        return torch.cat([ids, torch.tensor(found)], dim=1)

    return way


def chosen(choose):
    return lambda model, ids, new, generator, cached=True: generate(model, ids, new, lambda z: choose(z, generator), cached)


RULES = {
    "greedy": chosen(lambda z, _: greedy(z)),
    "beam of 4": searched(4),
    "top-p 0.5": chosen(lambda z, g: sample_top_p(z, 0.5, generator=g)),
    "top-p 0.9": chosen(lambda z, g: sample_top_p(z, 0.9, generator=g)),
    "top-k 40": chosen(lambda z, g: sample(keep_top_k(z, 40), generator=g)),
    "min-p 0.1": chosen(lambda z, g: sample(keep_min_p(z, 0.1), generator=g)),
    "sampled": chosen(lambda z, g: sample(z, generator=g)),
}
TIMED = ("greedy", "beam of 4", "top-p 0.9", "sampled")


def whole_texts(rounds: int, new: int = 64) -> list[dict]:
    """Seconds for so many tokens after BOS, with the cache and without, for some of the rules."""
    (model, _), steps = load_gpt(), {}
    ids = torch.tensor([[model.config.V - 1]])
    for name in TIMED:
        for cached in (True, False):
            steps[name, cached] = lambda way=RULES[name], cached=cached: way(model, ids, new, seeded(0), cached)
    times = fastest(steps, rounds)
    return [
        {"way": name, "new": new, "cached_s": round(times[name, True], 3), "whole_s": round(times[name, False], 3)}
        for name in TIMED
    ]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ---------------------------------------------------------------- likely texts


def repeated(ids: list[int], piece: int) -> float:
    """The share of pieces of so many tokens that stood in the text before."""
    pieces = [tuple(ids[i : i + piece]) for i in range(len(ids) - piece + 1)]
    return 1 - len(set(pieces)) / len(pieces)


@torch.no_grad()
def likely_texts(prompts: int) -> list[dict]:
    """What each rule writes at so many places of the novel that the model has not read."""
    (model, merges), s = load_gpt(), TEXTS
    text, length = data.read("austen")[-s["held_out"] :], s["prompt"] + s["new"]
    places = [text.index(" ", i) for i in range(0, len(text) - 1_000, len(text) // prompts)][:prompts]
    known = torch.tensor([[model.config.V - 1, *bpe_encode(text[i : i + 1_000], merges)[:length]] for i in places])  # (B, 1 + T)
    rows = []
    for name, way in {"Jane Austen": None, **RULES}.items():
        prompt = known[:, : 1 + s["prompt"]]
        ids = way(model, prompt, s["new"], seeded(0)) if way else known
        log_probs = model(ids[:, :-1]).log_softmax(-1).gather(-1, ids[:, 1:, None])[:, s["prompt"] :, 0]  # (B, new)
        new = ids[:, prompt.shape[1] :].tolist()
        again = [repeated(row, s["piece"]) for row in new]
        rows.append(
            {
                "way": name,
                "log_prob": [round(mean, 4) for mean in log_probs.mean(dim=1).tolist()],  # of each place
                "repeated": [round(share, 4) for share in again],
                "example": bpe_decode(new[0], merges),
            }
        )
        mean, share = (data.interval(rows[-1][what])[0] for what in ("log_prob", "repeated"))
        print(f"{name:12} {mean:.2f}   {share:.2f}   {rows[-1]['example']!r}", flush=True)
    return rows


# ---------------------------------------------------------------- many sequences at once


@torch.no_grad()
def batches(sizes: list[int], rounds: int) -> list[dict]:
    """Tokens a second of decoding B sequences at once after 64 tokens each, and of reading one prompt of B tokens."""
    torch.manual_seed(0)
    model, steps = GPT(Config(**WIDE)), {}
    for B in sizes:
        ids = torch.randint(model.config.V, (B, 65), generator=torch.Generator().manual_seed(B))
        steps["decode", B] = next_token(model, ids)[0]
        steps["prefill", B] = lambda ids=ids: model(ids[:, 0][None])
    times = fastest(steps, rounds)
    return [{"B": B, **{way: round(B / times[way, B], 1) for way in ("decode", "prefill")}} for B in sizes]


def on_gpu() -> dict:
    """What benchmarks/decoding.py measured on a GPU, as far as the chapter reads it."""
    found = json.loads((ROOT / "benchmarks" / "records" / "decoding.json").read_text())
    rows = [
        {"B": row["B"], "tokens_per_s": row["forms"]["ours"]["tokens_per_s"], "bound": row["bound_tokens_per_s"]}
        for row in found["results"]
    ]
    kept = {name: found[name] for name in ("card", "versions", "when", "model")}
    return {
        **kept,
        "bytes_per_s": found["ceilings"]["bytes_per_s"],
        "flop_per_s": found["ceilings"]["flop_per_s"],
        "decode": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="fewer prompts and lengths, some seconds on a CPU")
    parser.add_argument("--texts", action="store_true", help="only what the rules write, put into the record that is there")
    small, texts = (vars(parser.parse_args())[name] for name in ("small", "texts"))
    torch.set_num_threads(1)
    size = SMALL if small else FULL
    if texts:
        data.add_to_record("inference", small, texts=likely_texts(size["prompts"]))
        return
    results = {
        "steps": single_steps(size["lengths"], size["rounds"]),
        "whole_texts": whole_texts(2),
        "batches": batches(size["batches"], size["rounds"]),
        "texts": likely_texts(size["prompts"]),
        "gpu": on_gpu(),
    }
    data.keep_record(
        "inference",
        results,
        settings={"wide": WIDE, "texts": TEXTS, **size},
        seeds=[0],
        interval=None,
        small=small,
        times="the fastest of the rounds",
    )


if __name__ == "__main__":
    main()
