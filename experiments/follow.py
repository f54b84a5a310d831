"""Train the GPT that is small enough for a page of the book, and say how good it is.

    python experiments/follow.py            # a CPU with one thread, under eight minutes
    python experiments/follow.py --small    # seconds; writes to build/

It reads the texts that the course's GPT has read (experiments/training.py), with the first of its tokenizer's merges, about once.
Its matrices become bytes, one step a row, and its loss on held-out text is compared with that of n-gram models of the same tokens,
and with its own before they were rounded. Writes course/data/follow.npz and course/data/records/follow.json.
"""

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.checkpoint import load_gpt  # noqa: E402
from course.follow import load_follow, save_follow  # noqa: E402
from course.model import GPT, Config  # noqa: E402
from course.tokens import BYTES, bpe_decode, bpe_encode, vocabulary  # noqa: E402
from experiments.train_gpt import Settings, Trainer, place, train  # noqa: E402
from experiments.training import TEXTS, encoded, kneser_ney, nats_of_each, parts, sample, score  # noqa: E402

FULL = Settings(
    Config(V=1024, d_model=64, n_layers=4, n_heads=4, tied=True), T=32, batch=32, micro=32, steps=8000, warmup=100, peak=5e-3
)
SMALL = Settings(
    Config(V=300, d_model=16, n_layers=2, n_heads=2, tied=True), T=16, batch=8, micro=8, steps=40, warmup=5, peak=5e-3
)
ORDERS = (1, 2, 3)  # of the n-gram models
PROMPTS = ("To be, or not to", "My dear Miss", "It is a truth")
CHECKED = "My dear Miss Woodhouse, I am very glad to see you."


def scores(model: GPT, rounded: GPT, learned: torch.Tensor, texts: list[str], merges: list, T: int) -> dict:
    """Loss on the held-out part of each text: of the model before and after rounding, and of n-gram models, on the same tokens."""
    spelled, results = np.array([len(each) for each in vocabulary(merges)]), {}
    for name, text in zip(TEXTS, texts, strict=True):
        tokens = encoded([text], merges)
        found = {"float32": nats_of_each(model, tokens, T), "int8": nats_of_each(rounded, tokens, T)}
        counted = slice(T // 2, T // 2 + len(found["int8"]))
        for order in ORDERS:
            found[f"{order}-gram"] = -np.log(kneser_ney(learned.numpy(), tokens.numpy(), len(merges) + BYTES, order)[counted])
        n_bytes = int(spelled[tokens.numpy()[counted]].sum())
        results[name] = {what: score(nats, n_bytes) for what, nats in found.items()}
    return results


@torch.no_grad()
def check(model: GPT, merges: list) -> dict:
    """The loss of the model on one sentence, for a test to compute again."""
    ids = torch.tensor([[model.config.V - 1, *bpe_encode(CHECKED, merges)]])
    nats = torch.nn.functional.cross_entropy(model(ids)[0, :-1], ids[0, 1:])
    return {"text": CHECKED, "nats_per_token": round(nats.item(), 6)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="seconds; writes to build/")
    options = parser.parse_args()
    settings, folder = (SMALL, ROOT / "build" / "follow") if options.small else (FULL, ROOT / "course" / "data")
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    began, worked = time.perf_counter(), time.process_time()
    pieces = parts(50_000 if options.small else None)
    merges = load_gpt()[1][: settings.model.V - 1 - BYTES]
    learned, checked = encoded(pieces["training"], merges), encoded(pieces["validation"], merges)[:20_000]
    trainer = Trainer(settings, learned, place(cpu=True))
    curve = train(trainer, checked, settings.steps // 20)
    save_follow(trainer.model, merges, folder / "follow.npz")
    seconds = {"seconds": round(time.perf_counter() - began), "processor_seconds": round(time.process_time() - worked)}

    rounded, _ = load_follow(folder / "follow.npz")
    generator = torch.Generator().manual_seed(settings.seed)
    samples = {prompt: bpe_decode(sample(rounded, bpe_encode(prompt, merges), 24, 0.7, generator), merges) for prompt in PROMPTS}
    results = {
        "parameters": sum(p.numel() for p in rounded.parameters()),
        "training": {"tokens": len(learned), "epochs": round(settings.steps * settings.batch * settings.T / len(learned), 2)},
        "curve": [{name: row[name] for name in ("step", "training", "validation")} for row in curve],
        "held_out": scores(trainer.model.eval(), rounded, learned, pieces["held_out"], merges, settings.T),
        "check": check(rounded, merges),
        "samples": samples,
    }
    data.keep_record(
        "follow",
        results,
        settings=asdict(settings),
        seeds=[settings.seed],
        interval=None,
        small=options.small,
        packages=("torch", "numpy"),
        **seconds,
    )
    print(results)


if __name__ == "__main__":
    main()
