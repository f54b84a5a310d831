"""How far does a small GPT get on two bookshelves? The model that ships with the course, from raw text to held-out loss.

    python experiments/training.py            # one GPU, some minutes
    python experiments/training.py --small    # a CPU, under a minute; writes to build/

Austen's novels and Shakespeare's plays are cut into training text, validation text and held-out text, the last of each. BPE merges
are learned on the training text, and a GPT is trained on it by experiments/train_gpt.py. Its loss on held-out text is compared with
n-gram models of the same tokens. Sizes, dropout and number of steps were chosen by the loss on the validation text (`--sweep`).
`--seeds` trains the much smaller model of the chapter on a CPU, as its notebook does, with eight seeds.
Writes course/data/gpt.npz and course/data/records/training.json.
"""

import argparse
import json
import math
import platform
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course import training as chapter  # noqa: E402
from course.checkpoint import load_gpt, save_gpt  # noqa: E402
from course.model import GPT, Config  # noqa: E402
from course.tokens import BYTES, bits_per_byte, bpe_decode, bpe_encode, bpe_train, vocabulary  # noqa: E402
from experiments.train_gpt import Settings, Trainer, place, train, windows  # noqa: E402

TEXTS = ("austen", "shakespeare")
HELD_OUT = 200_000  # the last characters of each text
VALIDATION = 100_000  # the characters before those
MODEL = Config(V=2048, d_model=192, n_layers=6, n_heads=6, tied=True)
FULL = Settings(MODEL, T=512, batch=128, micro=128, steps=3000, warmup=150, peak=6e-3, dropout=0.2)
SMALL = Settings(
    Config(V=512, d_model=64, n_layers=2, n_heads=2, tied=True), T=128, batch=16, micro=16, steps=150, warmup=15, peak=5e-3
)  # fmt: skip
CHAPTER = Config(V=256, d_model=64, n_layers=2, n_heads=4)  # of bytes; the rest of its settings are those of course.training.fit
ORDERS = (1, 2, 3, 5)  # of the n-gram models
PROMPTS = ("", "It is a truth universally acknowledged, that", "**HAMLET**  \nTo be")
# What `--sweep` compares, each one change of BASE. FULL is the best of them with twice the steps.
BASE = replace(FULL, steps=1500, peak=3e-3)
CANDIDATES = {
    "base": {},
    "dropout 0.3": {"dropout": 0.3},
    "peak 6e-3": {"peak": 6e-3},
    "V 1024": {"model": {"V": 1024}},
    "3 heads": {"model": {"n_heads": 3}},
}


# ---------------------------------------------------------------- text


def parts(characters: int | None = None) -> dict[str, list[str]]:
    """The pieces "training", "validation" and "held_out", one of every text, or of its first `characters`."""
    held_out, validation = (n if characters is None else characters // 10 for n in (HELD_OUT, VALIDATION))
    whole = [data.read(name, characters) for name in TEXTS]
    return {
        "training": [text[: -held_out - validation] for text in whole],
        "validation": [text[-held_out - validation : -held_out] for text in whole],
        "held_out": [text[-held_out:] for text in whole],
    }


def encoded(pieces: list[str], merges: list) -> torch.Tensor:
    return torch.tensor([token for text in pieces for token in bpe_encode(text, merges)])


# ---------------------------------------------------------------- what to compare with


def kneser_ney(learned: np.ndarray, unseen: np.ndarray, V: int, order: int, discount: float = 0.75) -> np.ndarray:
    """The probability of each unseen token after the order − 1 before it, by an n-gram model of the learned tokens: (N,).

    Interpolated Kneser–Ney: from each count the discount is taken, and what that frees in a context is shared out by the model one order
    lower, which counts in how many contexts a token has been seen. Below order 1 all tokens are equal. Chen and Goodman 1999, section 4.1.6.
    """
    if V**order >= 2**63:
        raise ValueError(f"{order} tokens of {V} do not fit into 64 bits")
    p = np.full(len(unseen), 1 / V)
    for n in range(1, order + 1):
        if n == order:
            grams, counts = np.unique(codes(learned, n, V), return_counts=True)
        else:  # each n-gram counts once for every token that has been seen before it
            grams, counts = np.unique(np.unique(codes(learned, n + 1, V)) % V**n, return_counts=True)
        contexts, first, kinds = np.unique(grams // V, return_index=True, return_counts=True)
        totals = np.add.reduceat(counts, first)
        asked = codes(np.concatenate([np.zeros(n - 1, dtype=np.int64), unseen]), n, V)
        at, known = found(contexts, asked // V)
        place, seen = found(grams, asked)
        own = np.where(seen, counts[place] - discount, 0.0)
        p = np.where(known, (own + discount * kinds[at] * p) / totals[at], p)
    return p


def codes(tokens: np.ndarray, n: int, V: int) -> np.ndarray:
    """Each n tokens in a row as one number: (N − n + 1,)."""
    code = np.zeros(len(tokens) - n + 1, dtype=np.int64)
    for i in range(n):
        code = code * V + tokens[i : len(tokens) - n + 1 + i]
    return code


def found(keys: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each asked number stands among sorted keys, and whether it does."""
    at = np.searchsorted(keys, asked).clip(max=len(keys) - 1)
    return at, keys[at] == asked


# ---------------------------------------------------------------- measuring


@torch.no_grad()
def nats_of_each(model: GPT, tokens: torch.Tensor, T: int) -> np.ndarray:
    """−ln p of the tokens from T/2 on that windows reach, each with at least T/2 tokens before it but for BOS: (N,).

    Windows of T tokens begin T/2 after each other, and the second half of each is counted.
    """
    device, half = model.embedding.weight.device, T // 2
    starts = torch.arange(0, len(tokens) - T + 1, half, device=device)
    nats = []
    for some in starts.split(16):
        ids, targets = windows(tokens.to(device), some, T, model.config.V - 1)
        logits = model(ids)[:, half:]  # (B, T / 2, V)
        nats.append(F.cross_entropy(logits.float().flatten(0, 1), targets[:, half:].flatten(), reduction="none"))
    return torch.cat(nats).cpu().double().numpy()


def score(nats: np.ndarray, n_bytes: int) -> dict:
    mean = float(nats.mean())
    return {
        "nats_per_token": round(mean, 4), "bits_per_byte": round(bits_per_byte(mean, len(nats), n_bytes), 4),
        "perplexity": round(math.exp(mean), 2), "tokens": len(nats), "bytes": n_bytes,
    }  # fmt: skip


def compare(model: GPT, learned: torch.Tensor, texts: list[str], merges: list, T: int) -> dict:
    """Scores of the model and of the n-gram models on the same tokens, by text."""
    spelled, results = np.array([len(each) for each in vocabulary(merges)]), {}
    for name, text in zip(TEXTS, texts, strict=True):
        tokens = encoded([text], merges)
        nats = nats_of_each(model, tokens, T)
        counted = slice(T // 2, T // 2 + len(nats))
        n_bytes = int(spelled[tokens.numpy()[counted]].sum())
        results[name] = {"gpt": score(nats, n_bytes)}
        for order in ORDERS:
            p = kneser_ney(learned.numpy(), tokens.numpy(), len(merges) + BYTES, order)
            results[name][f"{order}-gram"] = score(-np.log(p[counted]), n_bytes)
    return results


@torch.no_grad()
def sample(model: GPT, prompt: list[int], new: int, temperature: float, generator: torch.Generator) -> list[int]:
    """`new` tokens after BOS and the prompt, drawn from softmax(logits / temperature); BOS itself is never drawn."""
    bos, cache = model.config.V - 1, model.cache()
    ids = torch.tensor([[bos, *prompt]])
    out = []
    for _ in range(new):
        logits = model(ids, cache)[0, -1, :bos]  # (V − 1,)
        ids = torch.multinomial((logits / temperature).softmax(dim=-1), 1, generator=generator)[None]
        out.append(int(ids))
    return out


# ---------------------------------------------------------------- the run


def changed(settings: Settings, change: dict) -> Settings:
    return replace(settings, **change | {"model": replace(settings.model, **change.get("model", {}))})


def validate(name: str, pieces: dict[str, list[str]]) -> dict:
    """Train a candidate and score it on the validation text."""
    settings = changed(BASE, CANDIDATES[name])
    merges = bpe_train("".join(pieces["training"]), settings.model.V - 1 - BYTES)
    learned, checked = encoded(pieces["training"], merges), encoded(pieces["validation"], merges)
    trainer = Trainer(settings, learned, place())
    curve = train(trainer, checked, settings.steps // 4)
    nats = nats_of_each(trainer.model.eval(), checked, settings.T)
    spelled = np.array([len(each) for each in vocabulary(merges)])
    n_bytes = int(spelled[checked.numpy()[settings.T // 2 : settings.T // 2 + len(nats)]].sum())
    parameters = sum(p.numel() for p in trainer.model.parameters())
    return {"candidate": name, "parameters": parameters, "curve": curve} | score(nats, n_bytes)


def sweep() -> list[dict]:
    """All candidates side by side, each in a process of its own: one such model leaves most of a GPU idle."""
    jobs = {name: [sys.executable, __file__, "--candidate", name] for name in CANDIDATES}
    started = {name: subprocess.Popen(job, stdout=subprocess.PIPE, text=True) for name, job in jobs.items()}
    rows = []
    for name, process in started.items():
        out, _ = process.communicate()
        if process.returncode:
            raise RuntimeError(f"the candidate {name!r} failed; what it said stands above")
        rows.append(json.loads(out.splitlines()[-1]))
    return sorted(rows, key=lambda row: row["bits_per_byte"])


def seeds(count: int = 8) -> dict:
    """The run of the chapter's notebook with each of `count` seeds: bits per byte of the text that it keeps aside."""
    torch.set_num_threads(1)
    text, bits = torch.tensor(list(data.read("austen", 1_000_000).encode())), []
    for seed in range(count):
        torch.manual_seed(seed)
        model = GPT(CHAPTER)
        chapter.fit(model, text[:-12_800], steps=400, seed=seed)
        bits.append(round(chapter.held_out_loss(model, text[-12_800:]) / math.log(2), 4))
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    return {"device": "CPU", "versions": versions, "model": asdict(CHAPTER), "steps": 400, "bits_per_byte": bits}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a CPU, under a minute")
    parser.add_argument(
        "--sweep", action="store_true", help="compare settings by the validation text instead; kept in the record"
    )
    parser.add_argument(
        "--seeds", action="store_true", help="the chapter's small model with eight seeds instead; kept in the record"
    )
    parser.add_argument("--candidate", choices=CANDIDATES, help="only one of those that are compared")
    options = parser.parse_args()
    settings, here = SMALL if options.small else FULL, place(cpu=options.small)
    folder = ROOT / "build" / "training" if options.small else ROOT / "course" / "data"
    folder.mkdir(parents=True, exist_ok=True)
    pieces = parts(100_000 if options.small else None)
    if options.candidate:
        return print(json.dumps(validate(options.candidate, pieces)))
    if options.sweep:
        return data.add_to_record("training", options.small, sweep=sweep())
    if options.seeds:
        return data.add_to_record("training", options.small, small_model=seeds())

    began = time.perf_counter()
    merges = bpe_train("".join(pieces["training"]), settings.model.V - 1 - BYTES)
    learned, checked = encoded(pieces["training"], merges), encoded(pieces["validation"], merges)
    trainer = Trainer(settings, learned, here)
    curve = train(trainer, checked, settings.steps // 40)
    save_gpt(trainer.model, merges, folder / "gpt.npz")

    model, merges = load_gpt(folder / "gpt.npz")  # as its users have it: weights rounded, float32, CPU
    scores = compare(model, learned, pieces["held_out"], merges, settings.T)
    generator = torch.Generator().manual_seed(settings.seed)
    samples = []
    for prompt in PROMPTS:
        ids = sample(model, bpe_encode(prompt, merges), 200, 0.8, generator)
        samples.append({"prompt": prompt, "temperature": 0.8, "text": bpe_decode(ids, merges)})
    first = encoded([pieces["held_out"][0]], merges)[: 2 * settings.T]
    path = data.record_path("training", "small" if options.small else "full")
    before = json.loads(path.read_text())["results"] if path.exists() else {}
    results = {
        "parameters": sum(p.numel() for p in model.parameters()),
        "texts": {"names": TEXTS, "held_out_characters": len(pieces["held_out"][0]), "validation_characters": len(pieces["validation"][0])},
        "training": {
            "tokens": len(learned), "bytes": sum(len(text.encode()) for text in pieces["training"]),
            "epochs": round(settings.steps * settings.batch * settings.T / len(learned), 1),
            "tokens_per_s": int(np.median([row["tokens_per_s"] for row in curve])),
        },
        "curve": curve,
        "held_out": scores,
        "check": {"text": TEXTS[0], "tokens": 2 * settings.T, "nats_per_token": round(float(nats_of_each(model, first, settings.T).mean()), 6)},
        "samples": samples,
    }  # fmt: skip
    data.keep_record(
        "training",
        results | {key: before.get(key) for key in ("sweep", "small_model")},
        settings=asdict(settings),
        seeds=[settings.seed],
        interval=None,
        device=here.device,
        small=options.small,
        packages=("torch", "numpy"),
        seconds=round(time.perf_counter() - began),
    )
    print(json.dumps({key: results[key] for key in ("parameters", "training", "held_out", "check")}, indent=1))


if __name__ == "__main__":
    main()
