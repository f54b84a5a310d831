"""Length generalisation of six position schemes in a small character model of Jane Austen.

    python experiments/position_rope.py            # a GPU, a few minutes
    python experiments/position_rope.py --small    # a CPU, under a minute

Trains each scheme with several seeds at one length and measures the loss at that length, twice and four
times as long, on text that was held out. The loss is taken on the last half of each window. Writes
course/data/records/position_rope.json.
"""

import argparse
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.device import best_device  # noqa: E402
from course.position_rope import SCHEMES, PositionModel  # noqa: E402

FULL = {
    "d_model": 256,
    "n_heads": 8,
    "n_layers": 4,
    "T": 256,
    "B": 64,
    "steps": 500,
    "rate": 1e-3,
    "table_rate": 10,
    "windows": 256,
    "seeds": 4,
    "characters": None,
}
SMALL = {
    "d_model": 48,
    "n_heads": 4,
    "n_layers": 2,
    "T": 32,
    "B": 16,
    "steps": 100,
    "rate": 5e-3,
    "table_rate": 10,
    "windows": 128,
    "seeds": 3,
    "characters": 400_000,
}


def corpus(characters: int | None, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, int]:
    """The text as ids: (training, held out, V). The last twentieth is held out."""
    text = data.read("austen", characters)
    letters = sorted(set(text))
    number = {letter: i for i, letter in enumerate(letters)}
    ids = torch.tensor([number[letter] for letter in text], device=device)
    cut = len(ids) * 19 // 20
    return ids[:cut], ids[cut:], len(letters)


def windows(ids: torch.Tensor, B: int, length: int, generator: torch.Generator) -> torch.Tensor:
    """B random windows, (B, length + 1). Drawn on the CPU, so that every device sees the same."""
    starts = torch.randint(0, len(ids) - length - 1, (B,), generator=generator).to(ids.device)
    return ids[starts[:, None] + torch.arange(length + 1, device=ids.device)]


def train(scheme: str, seed: int, settings: dict, ids: torch.Tensor, V: int) -> PositionModel:
    torch.manual_seed(seed)
    model = PositionModel(
        V, settings["d_model"], settings["n_heads"], settings["n_layers"], scheme, T_max=settings["lengths"][-1]
    )
    model.to(ids.device)
    tables = [p for name, p in model.named_parameters() if name.endswith("attention.table")]  # T5's biases start at zero
    others = [p for name, p in model.named_parameters() if not name.endswith("attention.table")]
    groups = [{"params": others}, {"params": tables, "weight_decay": 0.0}][: 2 if tables else 1]
    optimizer = torch.optim.AdamW(groups, lr=settings["rate"], betas=(0.9, 0.95), weight_decay=0.01)
    rates = [settings["rate"], settings["rate"] * settings["table_rate"]][: len(groups)]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=settings["steps"], pct_start=0.1)
    generator = torch.Generator().manual_seed(1_000 + seed)  # the same windows for every scheme
    for _ in range(settings["steps"]):
        batch = windows(ids, settings["B"], settings["T"], generator)  # (B, T + 1)
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model


@torch.no_grad()
def losses(model: PositionModel, settings: dict, held_out: torch.Tensor) -> list[float]:
    """Nats a character on the last T / 2 characters of each window: the same ones for every length, with more text before."""
    longest, scored = settings["lengths"][-1], settings["T"] // 2
    batch = windows(held_out, settings["windows"], longest, torch.Generator().manual_seed(7))  # the same for every model
    found = []
    for length in settings["lengths"]:
        total = 0.0
        for part in batch[:, -length - 1 :].split(16):  # (16, length + 1)
            logits = model(part[:, :-1])[:, -scored:]  # (16, T / 2, V)
            total += F.cross_entropy(logits.flatten(0, 1), part[:, -scored:].flatten()).item() * len(part)
        found.append(round(total / len(batch), 5))
    return found


def summarise(runs: list[list[float]]) -> dict:
    by_length = [data.interval(column, 4) for column in zip(*runs, strict=True)]
    change = data.interval([run[-1] - run[0] for run in runs], 4)
    return {
        "loss_mean": [mean for mean, _ in by_length],
        "loss_half_width": [half for _, half in by_length],
        "change_mean": change[0],
        "change_half_width": change[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="a CPU version of under a minute")
    parser.add_argument("--steps", type=int, help="training steps of each model")
    parser.add_argument("--seeds", type=int, help="models of each scheme, two or more")
    options = parser.parse_args()
    settings = dict(SMALL if options.small else FULL)
    settings |= {name: value for name in ("steps", "seeds") if (value := getattr(options, name)) is not None}
    settings["lengths"] = [settings["T"], 2 * settings["T"], 4 * settings["T"]]
    device = torch.device("cpu") if options.small else best_device()
    if options.small:
        torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    ids, held_out, V = corpus(settings["characters"], device)
    seeds, start, runs = list(range(settings.pop("seeds"))), time.perf_counter(), {}
    for scheme in SCHEMES:
        runs[scheme] = [losses(train(scheme, seed, settings, ids, V), settings, held_out) for seed in seeds]
        print(f"{scheme:<11} {runs[scheme]}  {time.perf_counter() - start:.0f} s", flush=True)
    about = {
        "V": V,
        "corpus": "austen",
        "loss_on": "the last T / 2 characters of the window, the same for every length",
        "held_out": "last twentieth of the text",
    }
    data.keep_record(
        "position_rope",
        {"runs": runs, "summary": {scheme: summarise(each) for scheme, each in runs.items()}},
        settings=settings | about,
        seeds=seeds,
        interval="95% of the mean over seeds, Student's t",
        device=device,
        small=options.small,
        seconds=round(time.perf_counter() - start, 1),
    )


if __name__ == "__main__":
    main()
