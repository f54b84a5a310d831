"""What generating costs, and what the likeliest text looks like.

    python experiments/inference.py            # a CPU, some minutes
    python experiments/inference.py --small    # a CPU, under a minute

Seconds of one step with the cache and without it; tokens a second against the number of sequences; and how probable and
how repetitive the texts are that different ways of choosing make of a character model. The same on a GPU is in the record
of benchmarks/decoding.py, of which the figures are taken over. Writes course/data/records/inference.json.
"""

import argparse
import json
import math
import platform
import statistics
import sys
import time
from datetime import date
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.inference import CountModel, beam, greedy, pass_flops, sample, sample_top_p  # noqa: E402
from course.model import GPT, Config  # noqa: E402

RECORD = ROOT / "course" / "data" / "records" / "inference.json"
FULL = {"prompts": 40, "lengths": [64, 128, 256, 512, 1024], "batches": [1, 2, 4, 8, 16, 32, 64], "rounds": 15}
SMALL = {"prompts": 8, "lengths": [64, 256], "batches": [1, 16], "rounds": 3}
SIZES = {"V": 256, "d_model": 256, "n_layers": 4, "n_heads": 8}
WIDE = {"V": 256, "d_model": 1024, "n_layers": 4, "n_heads": 8}
COUNTED = {"characters": 400_000, "order": 6, "prompt": 30, "new": 100, "piece": 8}
STUDENT = {8: 2.365, 40: 2.023}  # 97.5% points of Student's t, by number of prompts


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
    kept = list(zip(cache.keys, cache.values, strict=True))

    def step():
        cache.keys, cache.values = [key for key, _ in kept], [value for _, value in kept]
        model(ids[:, -1:], cache)

    return step, cache


# ---------------------------------------------------------------- with and without the cache


@torch.no_grad()
def single_steps(lengths: list[int], rounds: int) -> list[dict]:
    """Milliseconds for the logits of the last of so many tokens, with the others cached and without."""
    torch.manual_seed(0)
    model, steps, rows = GPT(Config(**SIZES)), {}, []
    for length in lengths:
        ids = torch.randint(model.config.V, (1, length), generator=torch.Generator().manual_seed(length))
        steps["cached", length], cache = next_token(model, ids)
        steps["whole", length] = lambda ids=ids: model(ids)
        flops = {"cached_flops": pass_flops(model.config, 1, length), "whole_flops": pass_flops(model.config, length, length)}
        steps["cached", length]()
        rows.append({"length": length, **flops, "cache_bytes": cache.nbytes})
    times = fastest(steps, rounds)
    return [row | {f"{way}_ms": round(1e3 * times[way, row["length"]], 3) for way in ("cached", "whole")} for row in rows]


# ---------------------------------------------------------------- likely texts


def repeated(text: str, piece: int) -> float:
    """The share of pieces of so many characters that stood in the text before."""
    pieces = [text[i : i + piece] for i in range(len(text) - piece + 1)]
    return 1 - len(set(pieces)) / len(pieces)


def grown(model: CountModel, prompt: tuple[int, ...], new: int, choose) -> tuple[int, ...]:
    ids = prompt
    for _ in range(new):
        ids = (*ids, int(choose(model.log_probs(ids)[None])[0]))
    return ids[len(prompt) :]


def searched(width: int):
    return lambda model, prompt, new, _: beam(lambda ids: model.log_probs(prompt + ids), new, width)[0][1]


WAYS = {
    "greedy": lambda model, prompt, new, _: grown(model, prompt, new, greedy),
    "beam of 4": searched(4),
    "beam of 16": searched(16),
    "top-p 0.5": lambda model, prompt, new, g: grown(model, prompt, new, lambda z: sample_top_p(z, 0.5, generator=g)),
    "top-p 0.9": lambda model, prompt, new, g: grown(model, prompt, new, lambda z: sample_top_p(z, 0.9, generator=g)),
    "sampled": lambda model, prompt, new, g: grown(model, prompt, new, lambda z: sample(z, generator=g)),
}


def interval(numbers: list[float]) -> list[float]:
    """Mean and half width of the 95% interval of the mean, by Student's t."""
    half = STUDENT[len(numbers)] * statistics.stdev(numbers) / math.sqrt(len(numbers))
    return [round(statistics.mean(numbers), 4), round(half, 4)]


def likely_texts(prompts: int) -> list[dict]:
    s = COUNTED
    text = data.read("austen", s["characters"] + 1_000 * prompts)
    model = CountModel(text[: s["characters"]], s["order"])
    places = range(s["characters"], len(text), 1_000)
    known = [text[i : i + s["prompt"] + s["new"]] for i in places]
    known = [model.encode("".join(c for c in piece if c in model.id_of)) for piece in known]
    rows = []
    for name, way in [("Jane Austen", None), *WAYS.items()]:
        per_character, again, example = [], [], None
        for seed, ids in enumerate(known):
            prompt = ids[: s["prompt"]]
            new = way(model, prompt, s["new"], torch.Generator().manual_seed(seed)) if way else ids[s["prompt"] :]
            total = sum(float(model.log_probs(prompt + new[:t])[new[t]]) for t in range(len(new)))
            per_character.append(total / len(new))
            again.append(repeated(model.decode(new), s["piece"]))
            example = example or model.decode(new)
        rows.append({"way": name, "log_prob": interval(per_character), "repeated": interval(again), "example": example})
        print(f"{name:12} {rows[-1]['log_prob'][0]:.2f}   {rows[-1]['repeated'][0]:.2f}   {example!r}", flush=True)
    return rows


# ---------------------------------------------------------------- many sequences at once


@torch.no_grad()
def batches(sizes: list[int], rounds: int) -> list[dict]:
    """Tokens a second of decoding B sequences at once behind 64 tokens each, and of reading one prompt of B tokens."""
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
    parser.add_argument("--small", action="store_true", help="fewer prompts and lengths, under a minute on a CPU")
    small = parser.parse_args().small
    torch.set_num_threads(1)
    size = SMALL if small else FULL
    record = {
        "experiment": "experiments/inference.py",
        "mode": "small" if small else "full",
        "date": date.today().isoformat(),
        "settings": {"model": SIZES, "wide": WIDE, "texts": COUNTED, **size},
        "device": "CPU, one thread; times are the fastest of the rounds",
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "seeds": list(range(size["prompts"])),
        "interval": "95% of the mean over prompts, Student's t",
        "steps": single_steps(size["lengths"], size["rounds"]),
        "batches": batches(size["batches"], size["rounds"]),
        "texts": likely_texts(size["prompts"]),
        "gpu": on_gpu(),
    }
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
