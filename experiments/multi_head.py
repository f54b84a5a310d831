"""What do single heads do? Induction heads in one and two layers, and heads removed from a model of letters.

    python experiments/multi_head.py            # a CPU, about three minutes
    python experiments/multi_head.py --small    # a CPU, under a minute

Models are layers of heads and nothing else (`course.multi_head.HeadsOnly`).

Induction: the model reads a few random tokens, then a list, then the list again, whose tokens it learns to predict.
Length and place of the list change from batch to batch, so no fixed distance and no fixed place helps. Recorded: the
induction score of each head, the same sum of weights where the second list is another one (a control, since a head may
look at likely places whatever is there), and the share right and the loss with heads of the last layer removed, by
zeros and by their means on other lists.

Text: models of two layers with four heads each learn the letters of Austen's novels. Recorded: the loss on text held
back, its rise when each head alone is removed by zeros or by its mean, the loss as heads are removed by zeros, one
after another, in the order of that rise (measured on other text), and the loss of two kinds of models that had two
heads a layer from the start: of the same width, so with half of the parameters in their heads, and twice as wide, so
with all of them.

Writes course/data/records/multi_head.json.
"""

import argparse
import statistics
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.multi_head import (  # noqa: E402
    HeadsOnly,
    descend,
    head_ablation,
    head_means,
    induction_score,
    next_token_loss,
    previous_score,
    said_twice,
    without,
)

LISTS = {
    "V": 36,
    "H": 4,
    "d_model": 64,
    "B": 32,
    "n": [8, 16],
    "before": [0, 16],
    "lr": 5e-3,
    "tested": [[8, 14], [12, 8], [16, 4]],
}
TEXT = {"H": 4, "n_layers": 2, "d_model": 64, "B": 16, "T": 64, "lr": 5e-3, "characters": 600_000, "tested": 512, "ranked": 256}
FULL = {"list_steps": 1200, "list_seeds": 8, "text_steps": 800, "text_seeds": 5}
SMALL = {"list_steps": 400, "list_seeds": 2, "text_steps": 150, "text_seeds": 2}
HALF = [(layer, head) for layer in (0, 1) for head in (2, 3)]  # removed from the start


def interval(numbers: list[float]) -> dict[str, float]:
    """Mean and half width of the 95% interval of the mean, by Student's t."""
    return dict(zip(("mean", "half_width"), data.interval(numbers, 4), strict=True))


def rounded(table: torch.Tensor) -> list[list[float]]:
    return [[round(x, 4) for x in row] for row in table.tolist()]


# ---------------------------------------------------------------- lists said twice


def list_model(n_layers: int, seed: int, s: dict, steps: int) -> HeadsOnly:
    """A model after `steps` steps on lists said twice."""
    torch.manual_seed(seed)
    model = HeadsOnly(s["V"], n_layers, s["H"], s["d_model"], 2 * s["n"][1] + s["before"][1])
    generator = torch.Generator().manual_seed(1_000 + seed)

    def loss():
        n, before = (int(torch.randint(low, high + 1, (), generator=generator)) for low, high in (s["n"], s["before"]))
        return next_token_loss(model, said_twice(s["B"], n, s["V"], generator, before), before + n)

    descend(model, loss, steps, s["lr"])
    return model


@torch.no_grad()
def on_lists(model: HeadsOnly, s: dict) -> dict:
    """Scores of all heads, and the share right with and without heads, over the tested lengths and places."""
    H, last = s["H"], len(model.layers) - 1
    removed = {"none": [], "all of the last layer": [(last, h) for h in range(H)]} | {f"head {h}": [(last, h)] for h in range(H)}
    found = {name: [] for mode in ("right", "loss", "right_mean", "loss_mean") for name in ((mode, r) for r in removed)}
    scores, controls, previous = [], [], []
    for n, before in s["tested"]:
        ids = said_twice(256, n, s["V"], torch.Generator().manual_seed(n), before)
        maps = model.maps(ids)  # (n_layers, B, H, T, T)
        scores.append(induction_score(maps, n, before).mean(dim=1))
        other = torch.rand(256, s["V"], generator=torch.Generator().manual_seed(n)).argsort(dim=1)[:, : before + 2 * n]
        controls.append(induction_score(model.maps(other), n, before).mean(dim=1))
        previous.append(previous_score(maps).mean(dim=1))
        others = said_twice(256, n, s["V"], torch.Generator().manual_seed(100 + n), before)
        means, target = head_means(model, others[:, :-1]), ids[:, before + n + 1 :]
        for name, heads in removed.items():
            for mode, edit in (("", without(heads)), ("_mean", without(heads, means))):
                logits = model(ids[:, :-1], edit)[:, before + n :]  # (B, n - 1, V)
                found["right" + mode, name].append(float((logits.argmax(dim=-1) == target).float().mean()))
                found["loss" + mode, name].append(float(F.cross_entropy(logits.flatten(0, 1), target.flatten())))
    told = {"induction": scores, "control": controls, "previous": previous}
    told = {name: rounded(torch.stack(each).mean(dim=0)) for name, each in told.items()}
    kinds = {mode for mode, _ in found}
    return told | {
        kind: {name: round(statistics.mean(each), 4) for (mode, name), each in found.items() if mode == kind}
        for kind in sorted(kinds)
    }


# ---------------------------------------------------------------- letters of a text


def letters(s: dict) -> tuple[torch.Tensor, int]:
    """Austen in 34 signs: small letters, a few marks, all others as blanks. ids (N,), V."""
    signs = "abcdefghijklmnopqrstuvwxyz .,;'\"-\n"
    return torch.tensor(
        [max(signs.find(c), 0) if c in signs else signs.index(" ") for c in data.read("austen", s["characters"]).lower()]
    ), len(signs)


def text_model(seed: int, ids: torch.Tensor, V: int, s: dict, steps: int, removed: list, H: int) -> HeadsOnly:
    """A model of H heads a layer after `steps` steps on all but the last tenth of the text, some heads removed from the start."""
    torch.manual_seed(seed)
    model = HeadsOnly(V, s["n_layers"], H, s["d_model"], s["T"])
    generator = torch.Generator().manual_seed(1_000 + seed)
    with torch.no_grad():
        for table in (model.token, model.place):
            table.weight.mul_(0.3)

    def loss():
        start = torch.randint(len(ids) * 9 // 10 - s["T"] - 1, (s["B"], 1), generator=generator)
        return next_token_loss(model, ids[start + torch.arange(s["T"] + 1)], edit=without(removed) if removed else None)

    descend(model, loss, steps, s["lr"])
    return model


@torch.no_grad()
def on_text(seed: int, ids: torch.Tensor, V: int, s: dict, steps: int) -> dict:
    """Losses on held-back text: intact, with single heads removed, with more and more removed, with half from the start."""
    width, n = s["T"] + 1, s["ranked"]
    held = ids[len(ids) * 9 // 10 :][: (n + s["tested"]) * width].view(-1, width)  # (n + tested, T + 1)
    ranked, test = held[:n], held[n:]
    with torch.enable_grad():
        arms = ([], s["H"]), (HALF, s["H"]), ([], s["H"] // 2)
        model, half, wide = (text_model(seed, ids, V, s, steps, removed, H) for removed, H in arms)
    means = head_means(model, ranked[:, :-1])
    loss = lambda removed, of=model: round(float(next_token_loss(of, test, edit=without(removed))), 4)  # noqa: E731
    order = head_ablation(model, ranked).flatten().argsort().tolist()  # the least needed first
    pairs = [divmod(i, s["H"]) for i in order]
    shuffled = [pairs[i] for i in torch.randperm(len(pairs), generator=torch.Generator().manual_seed(seed))]
    return {
        "seed": seed,
        "intact": loss([]),
        "zero": rounded(head_ablation(model, test)),
        "mean": rounded(head_ablation(model, test, means=means)),
        "removed_in_order": [loss(pairs[:k]) for k in range(len(pairs) + 1)],
        "removed_at_random": [loss(shuffled[:k]) for k in range(len(pairs) + 1)],
        "half_from_the_start": loss(HALF, half),
        "half_but_twice_as_wide": loss([], wide),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="two seeds and few steps, under a minute on a CPU")
    small = parser.parse_args().small
    run = SMALL if small else FULL
    torch.set_num_threads(1)
    lists = []
    for n_layers in (1, 2):
        rows = [
            {"seed": seed} | on_lists(list_model(n_layers, seed, LISTS, run["list_steps"]), LISTS)
            for seed in range(run["list_seeds"])
        ]
        best = interval([max(map(max, row["induction"])) for row in rows])
        gain = interval(
            [
                max(a - b for pair in zip(row["induction"], row["control"], strict=True) for a, b in zip(*pair, strict=True))
                for row in rows
            ]
        )
        right = interval([row["right"]["none"] for row in rows])
        lists.append({"n_layers": n_layers, "seeds": rows, "best_score": best, "best_gain": gain, "right": right})
        print(f"{n_layers} layers: best induction score {best}, above control {gain}, right {right}", flush=True)
    ids, V = letters(TEXT)
    text = []
    for seed in range(run["text_seeds"]):
        text.append(on_text(seed, ids, V, TEXT, run["text_steps"]))
        print({k: v for k, v in text[-1].items() if k != "removed_at_random"}, flush=True)
    data.keep_record(
        "multi_head",
        {"lists": lists, "text": text},
        settings={"lists": LISTS, "text": TEXT} | run,
        seeds=range(run["list_seeds"]),
        interval="95% of the mean over seeds, Student's t",
        small=small,
    )


if __name__ == "__main__":
    main()
