"""Tokens a second of `experiments/train_gpt.py` beside Hugging Face's GPT-2, and on two GPUs beside one, each in one run.

    python -m benchmarks.training               # one GPU: benchmarks/records/training.json
    python -m benchmarks.training --gpus 2      # adds its two-GPU part, with one GPU measured anew

GPT-2 small's shape, 1024 tokens, random tokens, no dropout, AdamW in its fused form. A step is forward and backward passes
of all windows and the optimiser's step; its time is by CUDA events, after steps that compile. Each form runs in a process of its own. Of each
form the fastest of the micro-batches, and for Hugging Face of the precisions, that are tried here is recorded.

Useful FLOPs a token: 6 N + 12 n_layers d_model T (Chowdhery et al. 2022, PaLM, appendix B), N the parameters without the padding of the vocabulary and
without the table of positions; the causal mask is not taken off. The peak is 989 TFLOP/s, dense bfloat16 by the data sheets of H100 and H200.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import torch

from benchmarks.kernels import RECORDS, header, write
from course.cookbook import PRESETS as SHAPES
from course.cookbook import parameters
from experiments.train_gpt import PRESETS, Trainer, place

T, WINDOWS, WARM_UP, STEPS, PEAK = 1024, 256, 3, 8, 989e12
SHAPE = SHAPES["gpt-2"]
SIZE = parameters(SHAPE)["all"] - parameters(SHAPE)["positions"]
FLOP = 6 * SIZE + 12 * SHAPE.layers * SHAPE.d_model * T  # a token
OURS = [64, 128]  # windows at once
# Hugging Face's forms: compiled, weights in bfloat16 (else float32 under autocast), windows at once.
PEERS = {
    "hugging_face_compiled": [(True, True, 64), (True, False, 32)],
    "hugging_face_eager": [(False, True, 32)],
}


# ---------------------------------------------------------------- in a process of its own


def milliseconds(step) -> list[float]:
    """Of each of STEPS calls of `step`."""
    for _ in range(WARM_UP):
        step()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(STEPS + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairwise(marks)]


def ours(batch: int, micro: int) -> dict:
    here = place()
    settings = replace(PRESETS["gpt2"], T=T, batch=batch, micro=micro)
    tokens = torch.randint(50_257, (4_000_000,), generator=torch.Generator().manual_seed(0))
    trainer = Trainer(settings, tokens, here)
    times = milliseconds(trainer.take_step)
    return {"micro": micro, "weights": "float32, read as bfloat16", "times": times}


def hugging_face(compiled: bool, half: bool, micro: int) -> dict:
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    config = GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
    model = GPT2LMHeadModel(config).to("cuda", torch.bfloat16 if half else torch.float32).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run = torch.compile(model) if compiled else model
    ids = torch.randint(50_257, (WINDOWS, T), device="cuda")

    def step():
        for some in ids.split(micro):
            with torch.autocast("cuda", torch.bfloat16, enabled=not half):
                loss = run(input_ids=some, labels=some).loss * (micro / WINDOWS)
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    weights = "bfloat16" if half else "float32, autocast to bfloat16"
    return {"micro": micro, "weights": weights, "times": milliseconds(step)}


# ---------------------------------------------------------------- the record


def apart(form: str, *arguments, gpus: int = 1) -> dict:
    """What a form measures, in `gpus` processes of its own; {"failed": why} if it does not fit."""
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(gpus)]
    job = ["-m", "benchmarks.training", "--form", form, *map(str, arguments)]
    began = time.perf_counter()
    run = subprocess.run([sys.executable, *(command if gpus > 1 else []), *job], capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
    result = json.loads(lines[-1]) if lines else {"failed": run.stderr.strip()[-300:]}
    print(form, *arguments, gpus, f"{time.perf_counter() - began:.0f} s", result, flush=True)
    return result


def summary(result: dict, batch: int, gpus: int = 1) -> dict:
    lower, median, upper = statistics.quantiles(result["times"], n=4)
    speed = batch * T / median * 1e3
    return {
        "micro": result["micro"], "weights": result["weights"],
        "step": {"median": round(median, 3), "quartiles": [round(lower, 3), round(upper, 3)], "runs": STEPS},
        "tokens_per_s": round(speed), "share_of_peak": round(speed * FLOP / gpus / PEAK, 4),
    }  # fmt: skip


def one_gpu() -> dict:
    results = {"ours": [apart("ours", WINDOWS, micro) for micro in OURS]}
    results |= {name: [apart("hugging_face", *map(int, job)) for job in jobs] for name, jobs in PEERS.items()}
    done = {name: [summary(one, WINDOWS) for one in some if "times" in one] for name, some in results.items()}
    return {
        "windows": WINDOWS,
        "forms": {name: max(some, key=lambda one: one["tokens_per_s"]) for name, some in done.items()},
        "tried": [{"form": name} | one for name, some in done.items() for one in some],
    }


def several_gpus(gpus: int) -> dict:
    """One step of the preset's whole batch on one GPU and on several."""
    batch, micro = PRESETS["gpt2"].batch, PRESETS["gpt2"].micro
    forms = {str(n): summary(apart("ours", batch, micro, gpus=n), batch, n) for n in (1, gpus)}
    speeds = [form["tokens_per_s"] for form in forms.values()]
    return {"card": torch.cuda.get_device_name(), "windows": batch, "gpus": forms, "times_one": round(speeds[1] / speeds[0], 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RECORDS, help="folder of the record")
    parser.add_argument("--gpus", type=int, default=1, help="more than 1: only the part of several GPUs")
    parser.add_argument("--form", nargs="*", help="only measure this form, in this process")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU here that torch can use")
    if options.form:
        name, *arguments = options.form
        result = {"ours": ours, "hugging_face": hugging_face}[name](*map(int, arguments))
        if int(os.environ.get("RANK", 0)) == 0:
            print(json.dumps(result), flush=True)
        return
    path = options.out / "training.json"
    if options.gpus > 1:
        return write(path, json.loads(path.read_text()) | {"several": several_gpus(options.gpus)})
    shape = {
        "model": "GPT-2 small's shape, random weights",
        "T": T,
        "parameters": SIZE,
        "flop_per_token": FLOP,
        "peak_flop_per_s": PEAK,
    }
    write(path, header() | shape | one_gpu())


if __name__ == "__main__":
    main()
