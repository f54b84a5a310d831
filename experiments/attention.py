"""Does training need the factor 1/√d_k? One attention layer learns to look up pairs, with and without it.

    python experiments/attention.py            # full: minutes on a GPU
    python experiments/attention.py --small    # less than a minute on a CPU

The task is associative recall: a memory of `pairs` (name, colour) pairs, all names different, and
one of the names; the answer is its colour. All seeds of one setting are trained side by side, each
with its own parameters, data and optimiser state. Three arms:

- scaled: softmax(q·k/√d_k), entries of q and k with variance one at the start;
- unscaled: softmax(q·k), the same start;
- unscaled_small_start: softmax(q·k), W_q and W_k smaller by d_k^(1/4) each, so that the function
  at the start is that of `scaled`. It tells the start from the scale of later steps.

Writes course/data/records/attention.json.
"""

import argparse
import math
import time

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from course import data

ARMS = ["scaled", "unscaled", "unscaled_small_start"]
COMMON = {"arms": ARMS, "names": 32, "colours": 32, "optimiser": "Adam", "test_batches": 8}
FULL = COMMON | {
    "d_k": [4, 16, 64, 256, 1024],
    "seeds": 8,
    "pairs": 16,
    "d_model": 64,
    "batch": 128,
    "steps": 1500,
    "learning_rate": 2e-3,
}
SMALL = COMMON | {"d_k": [4, 64, 512], "seeds": 3, "pairs": 8, "d_model": 32, "batch": 48, "steps": 300, "learning_rate": 4e-3}


def parameters(arm: str, d_k: int, settings: dict, seeds: list[int], device) -> dict[str, Tensor]:
    """One set of parameters a seed, stacked: (R, ...) for R seeds."""
    d_model, shrink = settings["d_model"], d_k**-0.25 if arm == "unscaled_small_start" else 1.0
    sizes = {
        "name": (settings["names"], d_model, 2**-0.5),  # a memory slot is name + colour: its entries have variance one
        "colour": (settings["colours"], d_model, 2**-0.5),
        "W_q": (d_model, d_k, (d_model / 2) ** -0.5 * shrink),  # a question is a name only
        "W_k": (d_model, d_k, d_model**-0.5 * shrink),
        "W_v": (d_model, d_model, d_model**-0.5),
        "W_o": (d_model, settings["colours"], d_model**-0.5),
    }
    stacks = {name: [] for name in sizes}
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        for name, (rows, columns, std) in sizes.items():
            stacks[name].append(std * torch.randn(rows, columns, generator=generator))
    return {name: torch.stack(stack).to(device).requires_grad_() for name, stack in stacks.items()}


def batch(settings: dict, generators: list[torch.Generator], device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """names (R, B, S), colours (R, B, S), asked (R, B), answers (R, B)."""
    B, S = settings["batch"], settings["pairs"]
    names, colours = [], []
    for generator in generators:
        names.append(torch.rand(B, settings["names"], generator=generator, device=device).argsort(-1)[:, :S])
        colours.append(torch.randint(settings["colours"], (B, S), generator=generator, device=device))
    names, colours = torch.stack(names), torch.stack(colours)
    return names, colours, names[..., 0].clone(), colours[..., 0].clone()  # slots have no order: asking for the first is general


def look_up(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of each seed's own table: (R, N, d), (R, ...) → (R, ..., d)."""
    flat = ids.reshape(ids.shape[0], -1)
    rows = torch.gather(table, 1, flat.unsqueeze(-1).expand(-1, -1, table.shape[-1]))
    return rows.reshape(*ids.shape, table.shape[-1])


def forward(p: dict[str, Tensor], names: Tensor, colours: Tensor, asked: Tensor, scaled: bool) -> tuple[Tensor, Tensor]:
    """Logits of the answer (R, B, colours) and attention weights (R, B, S)."""
    slots = look_up(p["name"], names) + look_up(p["colour"], colours)  # (R, B, S, d_model)
    query = look_up(p["name"], asked) @ p["W_q"]  # (R, B, d_k)
    key = slots @ p["W_k"].unsqueeze(1)  # (R, B, S, d_k)
    value = slots @ p["W_v"].unsqueeze(1)  # (R, B, S, d_model)
    scores = (key @ query.unsqueeze(-1)).squeeze(-1)  # (R, B, S)
    weights = (scores / math.sqrt(query.shape[-1]) if scaled else scores).softmax(-1)
    output = (weights.unsqueeze(-2) @ value).squeeze(-2)  # (R, B, d_model)
    return output @ p["W_o"], weights


@torch.no_grad()
def evaluate(p, settings, scaled, seeds, device) -> dict[str, list[float]]:
    """Accuracy, loss and entropy of the weights by seed, on data that training never draws."""
    generators = [torch.Generator(device).manual_seed(1_000_000 + seed) for seed in seeds]
    sums = torch.zeros(3, len(seeds), device=device)
    for _ in range(settings["test_batches"]):
        names, colours, asked, answers = batch(settings, generators, device)
        logits, weights = forward(p, names, colours, asked, scaled)
        loss = cross_entropy(logits.flatten(0, 1), answers.flatten(), reduction="none").view_as(answers)
        entropy = torch.special.entr(weights).sum(-1)
        sums += torch.stack([(logits.argmax(-1) == answers).float().mean(-1), loss.mean(-1), entropy.mean(-1)])
    accuracy, loss, entropy = (sums / settings["test_batches"]).tolist()
    return {"accuracy": accuracy, "loss": loss, "entropy": entropy}


def train(arm: str, d_k: int, settings: dict, seeds: list[int], device) -> list[dict]:
    """Train all seeds of one setting and return one result a seed."""
    p, scaled = parameters(arm, d_k, settings, seeds, device), arm == "scaled"
    generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]
    optimiser = torch.optim.Adam(p.values(), lr=settings["learning_rate"])
    start, curve = evaluate(p, settings, scaled, seeds, device), []
    for step in range(1, settings["steps"] + 1):
        names, colours, asked, answers = batch(settings, generators, device)
        logits, _ = forward(p, names, colours, asked, scaled)
        losses = cross_entropy(logits.flatten(0, 1), answers.flatten(), reduction="none").view_as(answers).mean(-1)  # (R,)
        optimiser.zero_grad()
        losses.sum().backward()  # no parameter is shared: each seed gets its own gradient
        optimiser.step()
        if step % (settings["steps"] // 10) == 0:
            curve.append([round(x, 4) for x in losses.tolist()])
    end = evaluate(p, settings, scaled, seeds, device)
    return [
        {
            "arm": arm,
            "d_k": d_k,
            "seed": seed,
            "accuracy": round(end["accuracy"][i], 4),
            "loss": round(end["loss"][i], 4),
            "entropy_start": round(start["entropy"][i], 4),
            "entropy_end": round(end["entropy"][i], 4),
            "training_loss": [losses[i] for losses in curve],
        }
        for i, seed in enumerate(seeds)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="less than a minute on a CPU")
    small = parser.parse_args().small
    device = torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
    if device.type == "cpu":
        torch.set_num_threads(1)
    settings = dict(SMALL if small else FULL)
    seeds, began, results = list(range(settings.pop("seeds"))), time.perf_counter(), []
    for d_k in settings["d_k"]:
        for arm in ARMS:
            results += train(arm, d_k, settings, seeds, device)
            mean = sum(r["accuracy"] for r in results[-len(seeds) :]) / len(seeds)
            print(f"d_k {d_k:5d}  {arm:21s} accuracy {mean:.3f}  {time.perf_counter() - began:.0f} s", flush=True)
    seconds = round(time.perf_counter() - began)
    data.keep_record(
        "attention", results, settings=settings, seeds=seeds, interval=None, device=device, small=small, seconds=seconds
    )


if __name__ == "__main__":
    main()
