"""Which mechanisms remember what: recall, overwriting and flipping, at the same number of steps; and what length costs them.

    python experiments/taxonomy.py            # a GPU, at most 200 seconds
    python experiments/taxonomy.py --small    # a CPU, under a minute

Models of one layer (`course.taxonomy.RecallModels`) differ in how a token reads what earlier tokens wrote. All arms of a task have the
same seeds (weights and texts), steps and rates; for each arm the rate with the best mean over seeds on texts for that purpose is
taken, and the accuracy on other texts is kept, for every seed. Differences between arms are paired over seeds.

Said before the first run. I expect: (1) at n = 2d keys, linear and gated sums lose to attention by more than 0.1, and the delta rule by less
than they; (2) where keys are written again, the linear sum loses most; (3) where values are flipped, attention is near chance, 0.5, and
only the delta rule whose β may reach 2 is not. What would change my mind: an interval of the paired difference that contains zero
in (1) or (2), or attention above 0.75 in (3) or at least as good as "delta to 2". Attention may lose: it has a learned price of
distance, but no way to count. An arm whose best rate is at an end of the grid is named.

Then time and peak memory of one layer of 16 heads of width 128 against its length, reading a text and writing one more token.

Writes course/data/records/taxonomy.json, and a copy into $OUT if that is set.
"""

import argparse
import os
import shutil
import statistics
import sys
import time
from pathlib import Path

BEGAN = time.time()
import torch  # noqa: E402
from torch import Tensor, multiprocessing  # noqa: E402
from torch.nn import functional as F  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.taxonomy import MECHANISMS, RecallModels, linear_attention, train_recall  # noqa: E402

H, D = 16, 128  # heads of the layer that is timed, and their width


def jobs_of(small: bool) -> list[tuple[str, int, int, str]]:
    """Task, keys, width and mechanism of each arm, the most wanted first."""
    if small:
        return [("recall", 8, 8, m) for m in MECHANISMS] + [("flip", 4, 8, m) for m in ("attention", "delta to 2")]
    jobs = [("recall", n, 16, m) for n in (32, 16, 8, 64) for m in MECHANISMS]
    jobs += [("flip", n, 16, m) for n in (4, 8) for m in MECHANISMS]
    jobs += [("latest", n, 16, m) for n in (8, 16, 32) for m in MECHANISMS]
    jobs += [("flip", n, 16, m) for n in (16,) for m in MECHANISMS]
    return jobs + [("recall", 32, d, m) for d in (8, 32) for m in MECHANISMS]


def run(job, settings: dict, device: str) -> dict:
    """Accuracy of every seed at the best rate, and the mean over seeds at each rate."""
    task, n, d, mechanism = job
    began, rates, seeds = time.time(), settings["rates"], settings["seeds"]
    each = torch.tensor(rates, device=device).repeat(seeds)
    models = RecallModels(mechanism, d, [s for s in range(seeds) for _ in rates], device=device)
    right = train_recall(models, task, n, each, settings["steps"], settings["B"], seed=1000 + n, texts=settings["texts"])
    choose, tell = (half.view(seeds, len(rates)).cpu() for half in right)
    best = int(choose.mean(dim=0).argmax())
    return {
        "task": task,
        "n": n,
        "d": d,
        "mechanism": mechanism,
        "rate": rates[best],
        "accuracy": [round(float(x), 4) for x in tell[:, best]],
        "by rate": [round(float(x), 4) for x in choose.mean(dim=0)],
        "seconds": round(time.time() - began, 1),
    }


def work(jobs, done, settings: dict, device: str, until: float) -> None:
    """Take jobs until there are none or the seconds are over."""
    while time.time() < until:
        with jobs.get_lock():
            i = jobs.value
            jobs.value += 1
        if i >= len(settings["jobs"]):
            return
        found = run(settings["jobs"][i], settings, device)
        print(
            found["task"],
            found["n"],
            found["d"],
            found["mechanism"],
            found["rate"],
            found["accuracy"],
            found["seconds"],
            flush=True,
        )
        done.append(found)


# ---------------------------------------------------------------- what length costs


def plain(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention with its T by T matrix: (B, H, T, d) thrice → (B, H, T, d)."""
    later = torch.ones(query.shape[2], query.shape[2], dtype=torch.bool, device=query.device).triu(1)
    scores = (query @ key.mT).mul_(query.shape[-1] ** -0.5).masked_fill_(later, float("-inf"))
    return scores.softmax(dim=-1) @ value


def windowed(query: Tensor, key: Tensor, value: Tensor, w: int = 256) -> Tensor:
    """A window of w keys in blocks: each block of w queries meets its own keys and those of the block before."""
    q, k, v = (each.unflatten(2, (-1, w)) for each in (query, key, value))  # (B, H, blocks, w, d)
    k, v = (torch.cat([F.pad(each, (0, 0, 0, 0, 1, 0))[:, :, :-1], each], dim=3) for each in (k, v))  # (B, H, blocks, 2w, d)
    back = w + torch.arange(w, device=q.device)[:, None] - torch.arange(2 * w, device=q.device)
    seen = ((back >= 0) & (back < w)).repeat(q.shape[2], 1, 1)
    seen[0, :, :w] = False  # before the first block there is nothing
    bias = torch.zeros_like(seen, dtype=q.dtype).masked_fill_(~seen, float("-inf"))
    scores = q @ k.mT * q.shape[-1] ** -0.5 + bias
    return (scores.softmax(dim=-1) @ v).flatten(2, 3)


def linear(query: Tensor, key: Tensor, value: Tensor, c: int = 128) -> Tensor:
    """Linear attention without a denominator, in chunks: a product inside each, and a state between them."""
    q, k, v = (each.unflatten(2, (-1, c)) for each in (query, key, value))  # (B, H, chunks, c, d)
    states = (k.mT @ v).float().cumsum(dim=2).to(q.dtype)  # (B, H, chunks, d, d)
    before = F.pad(states, (0, 0, 0, 0, 1, 0))[:, :, :-1]
    return (q @ before + (q @ k.mT).tril() @ v).flatten(2, 3)


def timed(f, device: str, repeat: int) -> dict:
    """Median milliseconds of a call, and on a GPU its peak of memory beyond what was there."""
    for _ in range(2):
        f()
    took, peak = [], None
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        there = torch.cuda.memory_allocated()
        f()
        peak = torch.cuda.max_memory_allocated() - there
    for _ in range(repeat):
        if device == "cuda":
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            f()
            end.record()
            torch.cuda.synchronize()
            took.append(start.elapsed_time(end))
        else:
            began = time.perf_counter()
            f()
            took.append(1000 * (time.perf_counter() - began))
    return {"ms": round(statistics.median(took), 4), "peak bytes": peak}


@torch.no_grad()
def lengths(small: bool, device: str) -> list[dict]:
    """Reading T tokens in several forms, and one more token with a cache of T or with a state."""
    dtype, repeat, found = (torch.float32, 3, []) if small else (torch.bfloat16, 10, [])
    heads = 2 if small else H
    reading = {"plain": plain, "windowed, 256": windowed, "linear in chunks": linear}
    if device == "cuda":
        from course.kernels.attention import attention as kernel

        reading["course's kernel"] = lambda *qkv: kernel(*qkv, causal=True)
    else:
        reading["torch's attention"] = lambda *qkv: F.scaled_dot_product_attention(*qkv, is_causal=True)
    for T in (512, 1024) if small else (1024, 2048, 4096, 8192, 16384, 32768, 65536):
        q, k, v = (torch.randn(1, heads, T, D, device=device, dtype=dtype) for _ in range(3))
        row: dict = {"T": T, "reading": {}, "one token": {}}
        for name, f in reading.items():
            if name == "plain" and T > 32768:
                continue
            try:
                row["reading"][name] = timed(lambda f=f, q=q, k=k, v=v: f(q, k, v), device, repeat)
            except torch.OutOfMemoryError:
                row["reading"][name] = None  # the card's memory was not enough
        B = 2 if small else 16
        q = torch.randn(B, heads, 1, D, device=device, dtype=dtype)
        k, v = (torch.randn(B, heads, T, D, device=device, dtype=dtype) for _ in range(2))
        state = torch.randn(B, heads, D, D, device=device, dtype=dtype)
        few = k[:, :, :1].contiguous(), v[:, :, :1].contiguous()

        def step(q=q, state=state, few=few):  # reads and writes the state once, by the delta rule
            state += few[0].mT @ (few[1] - few[0] @ state)
            return q @ state

        state *= 0.01
        row["one token"]["cache"] = timed(lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v), device, repeat)
        row["one token"]["state"] = timed(step, device, repeat)
        row["one token"]["cache"]["bytes kept"] = 2 * k.numel() * k.element_size()
        row["one token"]["state"]["bytes kept"] = state.numel() * state.element_size()
        print(row, flush=True)
        found.append(row)
        del q, k, v, state, few, row
    return found


def check_forms() -> dict:
    """Largest difference of the timed forms from plain ones, float64, on the CPU."""
    q, k, v = torch.randn(3, 1, 2, 512, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    back = torch.arange(512)[:, None] - torch.arange(512)
    cut = F.scaled_dot_product_attention(q, k, v, attn_mask=(back >= 0) & (back < 64))
    weights = (q @ k.mT).tril()
    told = {"plain": plain(q, k, v) - whole, "windowed": windowed(q, k, v, 64) - cut, "linear": linear(q, k, v, 64) - weights @ v}
    assert linear_attention(q.exp(), k.exp(), v).shape == whole.shape
    return {name: float(each.abs().max()) for name, each in told.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="few arms and steps, to build/records")
    parser.add_argument("--seconds", type=float, default=200, help="no arm begins after this less 50")
    parser.add_argument("--processes", type=int, default=5)
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() and not given.small else "cpu"
    settings: dict = {"steps": 1200, "B": 32, "texts": 64, "rates": [0.001, 0.003, 0.01, 0.03, 0.1], "seeds": 6}
    if given.small:
        settings |= {"steps": 40, "B": 8, "texts": 16, "rates": [0.01, 0.03], "seeds": 2}
    settings["jobs"] = jobs_of(given.small)
    until = BEGAN + given.seconds - 50
    if device == "cuda":
        torch.randn(8, 8, device=device)  # before others start
        context = multiprocessing.get_context("spawn")
        with context.Manager() as manager:
            jobs, done = context.Value("i", 0), manager.list()
            workers = [context.Process(target=work, args=(jobs, done, settings, device, until)) for _ in range(given.processes)]
            for each in workers:
                each.start()
            for each in workers:
                each.join()
            found = list(done)
    else:
        found = []
        work(multiprocessing.get_context("spawn").Value("i", 0), found, settings, device, until)
    order = {job: i for i, job in enumerate(settings["jobs"])}
    found.sort(key=lambda each: order[each["task"], each["n"], each["d"], each["mechanism"]])
    trained = round(time.time() - BEGAN, 1)
    results = {"recall": found, "lengths": lengths(given.small, device), "forms": check_forms()}
    settings["jobs"], asked = len(found), len(order)
    path = data.keep_record(
        "taxonomy",
        results,
        settings=settings | {"asked": asked, "width": RecallModels.width, "heads timed": H, "d timed": D},
        seeds=range(settings["seeds"]),
        interval=None,
        device=device,
        small=given.small,
        what="share of right answers of one-layer models on new texts, at the best of the rates by other texts; milliseconds and bytes by length",
        prediction=" ".join(__doc__.split("Said before the first run. ")[1].split("\n\n")[0].split()),
        seconds={"training": trained, "all": round(time.time() - BEGAN, 1)},
    )
    print(path)
    if os.environ.get("OUT"):
        shutil.copy(path, os.environ["OUT"])


if __name__ == "__main__":
    main()
