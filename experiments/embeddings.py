"""Vectors from six novels and the analogies that they solve; tied against untied ends; one word in two sentences.

    python experiments/embeddings.py            # a CPU, some minutes
    python experiments/embeddings.py --small    # a CPU, under a minute
    python experiments/embeddings.py --encoder  # also MiniLM, a trained encoder (84 MB, Apache-2.0)

Skip-gram vectors of Austen's novels are trained with several seeds and asked for the fourth word of three kinds of
analogies, with and without the three given words among the candidates, beside two null models: the nearest neighbour of
the third word, and a difference of two words that are no pair. Two-layer language models on the same words have one table
for both ends, or two, each at five learning rates, on a GPU if there is one. The encoder reads six words of two senses, and in the same sentences
words of one sense. Without --encoder the encoder's part of the record stays as it is. Writes
course/data/records/embeddings.json, and the first seed's vectors to course/data/austen_vectors.npz.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data, pretrained  # noqa: E402
from course.device import best_device  # noqa: E402
from course.embeddings import (  # noqa: E402
    ANALOGIES,
    analogy,
    nearest,
    neighbour_counts,
    noise_counts,
    questions,
    skip_gram_loss,
    text_as_ids,
    thinned,
    train_vectors,
    unit_rows,
)
from course.model import GPT, Config  # noqa: E402

VECTORS = {"least": 50, "window": 5, "k": 5, "rarity": 1e-3, "d": 64}
RATES = [1e-3, 2e-3, 3e-3, 5e-3, 1e-2]
FULL = VECTORS | {"seeds": 8, "steps": 200, "lm_seeds": 8, "lm_steps": 800, "lm_rates": RATES}
SMALL = VECTORS | {"seeds": 3, "steps": 100, "lm_seeds": 2, "lm_steps": 10, "lm_rates": RATES}
SENTENCES = {
    "bank": (
        ("we sat on the bank of the river", "the boat lay on the muddy bank of the stream"),
        ("she took the money to the bank", "the bank raised the interest on the loan"),
    ),
    "bat": (
        ("a bat flew out of the dark cave", "the bat sleeps in the barn by day"),
        ("he hit the ball with his bat", "the player swung the wooden bat and missed"),
    ),
    "spring": (
        ("the flowers come out in spring", "last spring was cold and wet"),
        ("the spring in the mattress is broken", "a steel spring pushes the lever back"),
    ),
    "seal": (
        ("the seal swam under the ice", "a young seal lay on the beach"),
        ("the letter bore the seal of the king", "she broke the seal and read the letter"),
    ),
    "match": (
        ("he struck a match and lit the candle", "one match set the dry wood on fire"),
        ("they won the match by two goals", "the match was played in the rain"),
    ),
    "pupil": (
        ("the pupil of the eye grows wide in the dark", "light makes the pupil of an eye small"),
        ("every pupil in the class passed", "the teacher praised her best pupil"),
    ),
}  # a word in two senses, each in two sentences
ENCODER = "minilm-l6"
CONTROLS = ("box", "man", "garden")  # words of one sense, put into the same sentences in place of the word


def interval(numbers: list[float]) -> dict:
    """The numbers, their mean and the half width of the 95% interval of the mean, by Student's t."""
    mean, half = data.interval(numbers, 4)
    return {"runs": [round(x, 4) for x in numbers], "mean": mean, "half_width": half}


# ---------------------------------------------------------------- analogies


Outcome = dict[str, torch.Tensor]


def judged(E: torch.Tensor, asked: list[tuple[int, int, int, int]]) -> Outcome:
    """For each question, in float64, 1 or 0: was the answer right, was it an input, which of sum and null was right?"""
    free = [analogy(a, b, c, E, exclude=False) for a, b, c, _ in asked]
    kept = [analogy(a, b, c, E) for a, b, c, _ in asked]
    null = [nearest(unit_rows(E)[c], E, exclude=(a, b, c))[0] for a, b, c, _ in asked]
    answers = lambda given: torch.tensor([float(x == q[3]) for x, q in zip(given, asked, strict=True)]).double()  # noqa: E731
    right, nearby = answers(kept), answers(null)
    return {
        "excluding": right,
        "not excluding": answers(free),
        "an input": torch.tensor([float(x in q[:3]) for x, q in zip(free, asked, strict=True)]).double(),
        "third word": torch.tensor([float(x == q[2]) for x, q in zip(free, asked, strict=True)]).double(),
        "null": nearby,
        "both": right * nearby,
        "sum only": right * (1 - nearby),
        "null only": nearby * (1 - right),
    }


def mismatched(asked: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Questions whose difference a − b is of two words of other pairs: b of one, a of a second, c and the answer of a third."""
    pairs = pairs_of(asked)
    apart = [(p, q, r) for p in pairs for q in pairs for r in pairs if len({p, q, r}) == 3]
    return [(q[1], p[0], r[0], r[1]) for p, q, r in apart]


def pairs_of(asked: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """The pairs of `questions` as ids, first and second word."""
    return sorted({(b, a) for a, b, _, _ in asked})


def without_one(pairs: list[tuple[int, int]], asked: list[tuple[int, int, int, int]], values: torch.Tensor) -> list[float]:
    """For each pair the mean of the values of those questions in which it has no part."""
    left = [[x not in question and y not in question for question in asked] for x, y in pairs]
    return [round(float(values[torch.tensor(keep)].mean()), 5) for keep in left]


def analogies(s: dict) -> tuple[dict, list[str], torch.Tensor]:
    """Each seed thins the text anew and starts from other vectors. The results, the vocabulary, the first seed's E."""
    names, counts, ids = text_as_ids(data.read("austen"), s["least"])
    asked = {kind: questions(kind, names) for kind in ANALOGIES}
    crossed = {kind: mismatched(asked[kind]) for kind in ANALOGIES}
    results, crosses, first, losses = {kind: [] for kind in ANALOGIES}, {kind: [] for kind in ANALOGIES}, None, []
    for seed in range(s["seeds"]):
        kept = thinned(ids, counts, s["rarity"], torch.Generator().manual_seed(seed))
        n = neighbour_counts(kept, len(names), s["window"])
        noise = noise_counts(n, counts, s["k"])
        E, U = train_vectors(n, noise, s["d"], s["steps"], seed)
        losses.append(float(skip_gram_loss(E, U, n, noise)))
        first = E if first is None else first
        for kind in ANALOGIES:
            results[kind].append(judged(E, asked[kind]))
            given = [analogy(a, b, c, E) for a, b, c, _ in crossed[kind]]
            crosses[kind].append(torch.tensor([float(x == q[3]) for x, q in zip(given, crossed[kind], strict=True)]).double())
            shares = {k: round(float(v.mean()), 3) for k, v in results[kind][-1].items()}
            print(f"seed {seed}, {kind:8}", shares, round(float(crosses[kind][-1].mean()), 3), flush=True)
    rows = []
    for kind, runs in results.items():
        row = {"kind": kind, "questions": len(asked[kind])}
        row |= {k: interval([float(run[k].mean()) for run in runs]) for k in runs[0]}
        row["mismatched"] = interval([float(cross.mean()) for cross in crosses[kind]])
        means = {k: torch.stack([run[k] for run in runs]).mean(dim=0) for k in ("excluding", "null")}  # over seeds
        crossed_means = torch.stack(crosses[kind]).mean(dim=0)
        pairs = pairs_of(asked[kind])
        row["pairs"] = [f"{names[x]} {names[y]}" for x, y in pairs]
        row["without one pair"] = {k: without_one(pairs, asked[kind], v) for k, v in means.items()}
        row["without one pair"]["mismatched"] = without_one(pairs, crossed[kind], crossed_means)
        rows.append(row)
    return {"V": len(names), "words": len(ids), "loss": interval(losses), "rows": rows}, names, first


# ---------------------------------------------------------------- one table or two


def held_out_loss(ids: torch.Tensor, V: int, s: dict, seed: int, tied: bool, d: int, lr: float) -> tuple[float, int]:
    """Loss in nats a word on the last tenth of the text after training on the rest, and the number of parameters."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    device = best_device()
    model = GPT(Config(V, d, n_layers=2, n_heads=4, tied=tied)).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    cut, T = int(0.9 * len(ids)), 32

    def loss_at(starts):
        rows = ids[starts[:, None] + torch.arange(T + 1)].to(device)  # (B, T + 1)
        return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    for step in range(s["lm_steps"]):
        optimiser.param_groups[0]["lr"] = lr * min(1, (step + 1) / 20) * (1 - step / s["lm_steps"])
        loss = loss_at(torch.randint(cut - T - 1, (16,), generator=generator))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        starts = torch.arange(cut, len(ids) - T - 1, (len(ids) - T - 1 - cut) // 400)
        return float(loss_at(starts)), sum(p.numel() for p in model.parameters())


ENDS = {"tied": (True, 64), "untied": (False, 64), "untied, narrow": (False, 48)}  # the last is as large as the first


def tied_ends(s: dict) -> dict:
    """A row for each model and learning rate; runs of one seed read the same rows of the text, so they are paired."""
    names, _, ids = text_as_ids(data.read("austen"), s["least"])
    rows = []
    for name, (tied, d) in ENDS.items():
        for lr in s["lm_rates"]:
            runs = [held_out_loss(ids, len(names), s, seed, tied, d, lr) for seed in range(s["lm_seeds"])]
            losses, sizes = zip(*runs, strict=True)
            rows.append({"model": name, "d_model": d, "rate": lr, "parameters": sizes[0]} | interval(list(losses)))
            print(
                f"{name:14} {sizes[0]:,} parameters, rate {lr}, {rows[-1]['mean']:.3f} ± {rows[-1]['half_width']:.3f}", flush=True
            )
    device = best_device()
    what = torch.cuda.get_device_name() if device.type == "cuda" else f"{device.type}, one thread"
    return {"V": len(names), "device": what, "torch": torch.__version__, "rows": rows}


# ---------------------------------------------------------------- a real encoder


def encoder() -> dict:
    """Cosines of one word's vectors in two sentences, layer by layer, in the same sense and in two senses."""
    tokenizer, model = pretrained.tokenizer(ENCODER), pretrained.load(ENCODER)
    table = model.embedding.weight
    cosines = {"same sense": [], "two senses": []}
    controls = {word: {"same sense": [], "two senses": []} for word in CONTROLS}
    seen = []
    for word, senses in SENTENCES.items():
        for stand_in, kept in [(word, cosines), *controls.items()]:  # the word, then words of one sense in its place
            sentences = [[re.sub(rf"\b{word}\b", stand_in, sentence) for sentence in sense] for sense in senses]
            vectors = [[layers_of(stand_in, sentence, tokenizer, model) for sentence in sense] for sense in sentences]
            kept["same sense"] += [F.cosine_similarity(*sense, dim=-1).tolist() for sense in vectors]
            kept["two senses"] += [F.cosine_similarity(x, y, dim=-1).tolist() for x in vectors[0] for y in vectors[1]]
            seen += [vectors[0][0]] if stand_in == word else []
    strangers = [F.cosine_similarity(x, y, dim=-1).tolist() for i, x in enumerate(seen) for y in seen[:i]]
    return {
        "model": pretrained.CARDS[ENCODER].what,
        "words": list(SENTENCES),
        "sentences": SENTENCES["bank"],
        "d_model": table.shape[1],
        "V": table.shape[0],
        "parameters": sum(p.numel() for p in model.parameters()),
        "depths": ["table", "with position", *range(1, model.config.n_layers + 1)],
        "cosines": {kind: rounded(runs) for kind, runs in (cosines | {"other words": strangers}).items()},
        "controls": {word: {kind: rounded(runs) for kind, runs in kept.items()} for word, kept in controls.items()},
    }


def rounded(runs: list[list[float]]) -> list[list[float]]:
    return [[round(x, 4) for x in run] for run in runs]


def layers_of(word: str, sentence: str, tokenizer, model) -> torch.Tensor:
    """The word's vector in a sentence at all depths (n, d_model): its row of the table first, then the hidden states."""
    ids = torch.tensor([tokenizer.encode(sentence)])
    place = tokenizer.words(ids[0]).index(word)
    states: list[torch.Tensor] = []
    with torch.no_grad():
        states.append(model(ids, see=lambda layer, weights, x: states.append(x)))
    return torch.stack([model.embedding.weight[ids[0, place]], *(state[0, place] for state in states)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="few seeds and steps, under a minute on a CPU")
    parser.add_argument("--encoder", action="store_true", help="also measure MiniLM, which is fetched if it is not here")
    args = parser.parse_args()
    settings = SMALL if args.small else FULL
    torch.set_num_threads(1)
    before = data.record_path("embeddings", "small" if args.small else "full")
    measured = encoder() if args.encoder else json.loads(before.read_text())["results"]["encoder"] if before.exists() else None
    solved, names, E = analogies(settings)
    path = data.keep_record(
        "embeddings",
        {"analogies": solved, "tied": tied_ends(settings), "encoder": measured},
        settings=settings,
        seeds=range(settings["seeds"]),
        interval="95% of the mean over seeds, Student's t",
        small=args.small,
    )
    whole = (127 * E / E.abs().amax(dim=-1, keepdim=True)).round().to(torch.int8)  # (V, d): directions are kept, to 1/127
    folder = path.parent if args.small else data.HERE
    np.savez_compressed(folder / "austen_vectors.npz", words=np.array(names), vectors=whole.numpy())


if __name__ == "__main__":
    main()
