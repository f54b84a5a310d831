"""Tokens a second of `course.kernels.decoding` beside the plain form and Hugging Face's `generate`, on one GPU in one run.

    python -m benchmarks.decoding                # benchmarks/records/decoding.json

GPT-2 small's shape in bfloat16 with random weights, a prompt of 16 tokens, 256 new ones, the likeliest each time. Times are by the
wall clock, from the prompt to the last token, after a first run that compiles and captures. The bound is the bytes that must be
read, the weights once a step and the cache as far as it is filled, over the bandwidth of a copy.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.kernels import RECORDS, header, write
from course.kernels.decoding import Decoder
from course.model import GPT, Config

GPT2 = Config(
    V=50257, d_model=768, n_layers=12, n_heads=12, norm="layer", position="learned", ffn="gelu_tanh", tied=True, bias=True
)  # fmt: skip
PROMPT, NEW, LENGTH = 16, 256, 1024


def seconds(f, runs: int) -> list[float]:
    f()
    times = []
    for _ in range(runs):
        torch.cuda.synchronize()
        start = time.perf_counter()
        f()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return times


@torch.no_grad()
def plain(model: GPT, ids: Tensor, new: int) -> Tensor:
    """Greedy decoding as the course teaches it: the model, called for each token with its cache."""
    cache, tokens = model.cache(), ids
    for _ in range(new):
        logits = model(tokens if len(cache) == 0 else tokens[:, -1:], cache)  # (B, T, V)
        tokens = torch.cat([tokens, logits[:, -1:].argmax(dim=-1)], dim=1)
    return tokens


def hugging_face(ids: Tensor):
    os.environ["HF_HUB_OFFLINE"] = "1"
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).to("cuda", torch.bfloat16).eval()
    return lambda: model.generate(ids, max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False, pad_token_id=0)


def bound(model: GPT, B: int, bytes_per_s: float) -> float:
    """Tokens a second that the bandwidth allows. The embedding is read as the head; of positions one row a step."""
    weights = sum(parameter.nbytes for parameter in model.parameters()) - model.position.weight.nbytes
    per_token = 2 * 2 * GPT2.n_layers * GPT2.kv_heads * GPT2.d_head  # keys and values, 2 bytes each
    filled = sum(range(PROMPT, PROMPT + NEW)) / NEW
    return B / ((weights + B * filled * per_token) / bytes_per_s)


def record() -> dict:
    top = header()
    torch.manual_seed(0)
    model = GPT(GPT2).to("cuda", torch.bfloat16).requires_grad_(False)
    results = []
    for B in (1, 32):
        ids = torch.randint(GPT2.V, (B, PROMPT), device="cuda")
        decoder = Decoder(model, B, LENGTH)
        forms = {
            "ours": (lambda decoder=decoder, ids=ids: decoder.generate(ids, NEW), 9),
            "plain": (lambda ids=ids: plain(model, ids, NEW), 3),
            "hugging_face": (hugging_face(ids), 2),
        }
        limit = bound(model, B, top["ceilings"]["bytes_per_s"])
        result = {"B": B, "prompt": PROMPT, "new": NEW, "dtype": "bfloat16", "bound_tokens_per_s": round(limit), "forms": {}}
        for name, (f, runs) in forms.items():
            times = seconds(f, runs)
            median = statistics.median(times)
            result["forms"][name] = {
                "seconds": {"median": round(median, 5), "all": [round(each, 5) for each in times]},
                "tokens_per_s": round(B * NEW / median), "share_of_bound": round(B * NEW / median / limit, 3),
            }  # fmt: skip
            print(B, name, result["forms"][name], round(limit), flush=True)
        results.append(result)
    return top | {"model": "GPT-2 small's shape, random weights", "results": results}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RECORDS, help="folder of the record")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU here that torch can use")
    write(options.out / "decoding.json", record())


if __name__ == "__main__":
    main()
