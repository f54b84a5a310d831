"""Speculative decoding with a draft of our own: how many guesses are kept, and what that is worth, on one GPU in one run.

    python -m benchmarks.speculative             # benchmarks/records/speculative.json

A target of 24 layers and a draft of two are trained on the course's texts, with the same tokens, and continue pieces of held-out text. Both
are run in bfloat16 in the fast form, with and without the draft, and in the plain form, the models with their caches. Times are by the wall
clock, prompt included.
"""

import argparse
import statistics
import time
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.kernels import RECORDS, header, write
from course.checkpoint import load_gpt
from course.kernels.decoding import Decoder
from course.kernels.speculative import SpeculativeDecoder, generate
from course.model import GPT
from experiments.train_gpt import Trainer, place
from experiments.training import FULL, encoded, parts

MODELS = {
    "target": {"d_model": 512, "n_layers": 24, "n_heads": 8},
    "draft": {"d_model": 256, "n_layers": 2, "n_heads": 4},
}  # fmt: skip
STEPS, PROMPTS, PROMPT, NEW = 600, 6, 64, 192
GUESSES, TEMPERATURES = (2, 4, 6), (0.0, 1.0)


def trained(name: str, learned: torch.Tensor, checked: torch.Tensor) -> tuple[GPT, dict]:
    settings = replace(FULL, model=replace(FULL.model, **MODELS[name]), steps=STEPS, warmup=100, peak=2e-3, dropout=0.1)
    trainer = Trainer(settings, learned, place())
    for _ in range(STEPS):
        trainer.take_step()
    loss, size = trainer.evaluate(checked), sum(p.numel() for p in trainer.model.parameters())
    print(name, size, loss, flush=True)
    return trainer.model.bfloat16().requires_grad_(False), {**MODELS[name], "parameters": size, "validation_nats": round(loss, 3)}


def measured(target: GPT, draft: GPT, prompts: torch.Tensor, guesses: int, temperature: float, fast: bool) -> dict:
    """Of the plain form the first two prompts, since each takes seconds."""
    times, passes, guessed, kept = [], 0, 0, 0
    generator = torch.Generator(prompts.device).manual_seed(0)
    if fast:
        run = SpeculativeDecoder(target, draft, PROMPT + NEW, guesses, temperature, generator).generate
    else:
        prompts = prompts[:2]

        def run(prompt, new):
            return generate(target, draft, prompt, new, guesses, temperature, generator)

    run(prompts[:1], 16)
    for prompt in prompts[:, None]:
        torch.cuda.synchronize()
        start = time.perf_counter()
        _, counts = run(prompt, NEW)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        passes, guessed, kept = passes + counts.passes, guessed + counts.guessed, kept + counts.kept
    return {
        "form": "fast" if fast else "plain", "guesses": guesses, "temperature": temperature,
        "seconds": {"median": round(statistics.median(times), 4), "all": [round(each, 4) for each in times]},
        "tokens_per_s": round(NEW / statistics.median(times), 1), "tokens_per_pass": round(1 + kept / passes, 3),
        "kept": round(kept / guessed, 4) if guessed else None,
    }  # fmt: skip


def alone(target: GPT, prompts: torch.Tensor) -> float:
    """Tokens a second of `Decoder`, greedy."""
    decoder, times = Decoder(target, 1, PROMPT + NEW), []
    decoder.generate(prompts[:1], NEW)
    for prompt in prompts[:, None]:
        torch.cuda.synchronize()
        start = time.perf_counter()
        decoder.generate(prompt, NEW)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return round(NEW / statistics.median(times), 1)


def record() -> dict:
    pieces = parts()
    merges = load_gpt()[1]  # learned on the same text
    learned, checked, unseen = (encoded(pieces[part], merges) for part in ("training", "validation", "held_out"))
    models, sizes = {}, {}
    for name in MODELS:
        models[name], sizes[name] = trained(name, learned, checked)
    torch.use_deterministic_algorithms(False)
    starts = torch.arange(PROMPTS) * (len(unseen) // PROMPTS)
    prompts = unseen[starts[:, None] + torch.arange(PROMPT)].cuda()
    decoder, results = alone(models["target"], prompts), []
    for fast, temperature in (*((True, temperature) for temperature in TEMPERATURES), (False, 0.0)):
        for guesses in (0, *GUESSES) if fast else (0, GUESSES[0]):
            one = measured(models["target"], models["draft"], prompts, guesses, temperature, fast)
            without = next(
                (other for other in results if (other["form"], other["temperature"]) == (one["form"], temperature)), one
            )
            results.append(one | {"speed_up": round(one["tokens_per_s"] / without["tokens_per_s"], 3)})
            print(results[-1], flush=True)
    return header() | {
        "models": sizes, "training_steps": STEPS, "seed": FULL.seed, "prompts": PROMPTS, "prompt": PROMPT, "new": NEW, "dtype": "bfloat16",
        "decoder_tokens_per_s": decoder, "results": results,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RECORDS, help="folder of the record")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU here that torch can use")
    write(options.out / "speculative.json", record())


if __name__ == "__main__":
    main()
