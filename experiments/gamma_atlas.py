"""The γ atlas: does the base of RoPE, the length, the text or the shape of a model move the exponent of attention's decay?

    python experiments/gamma_atlas.py                       # one GPU, see the budget below
    python experiments/gamma_atlas.py --small               # a CPU, under a minute; shows that it runs, measures nothing
    python experiments/gamma_atlas.py --minutes 9 --out A   # stops in time; what is done is in A/atlas.jsonl
    python experiments/gamma_atlas.py --done A/atlas.jsonl  # goes on: trains only what no file has
    for i in 0 1 2 3; do python experiments/gamma_atlas.py --out A --part $i 4 & done; wait  # four at once: small models wait for Python

What was asked, and what would count as an answer, is `course.gamma_atlas.QUESTIONS`, written before the first run.

**Grid.** `CELLS`: departures from `course.gamma_atlas.BASE`, each in what it names only. Models are the course's own `GPT` over bytes
(RMSNorm, RoPE, SwiGLU, V = 256), each cell with seeds 0, 1, 2, then 3, 4. A seed decides a model's first weights, which are the same
for all cells of one shape, and where windows are cut, which are the same places for all cells of one length.

**Tokens.** By a rule that does not look at the model: all read 2²⁴ bytes, about nine for each parameter of the base model and a bit over
four times the text; 1,024 steps of 16,384, whatever the length. Two cells read a quarter and four times as many. Rate: warm-up over
the first 5% of steps to its peak, then half a cosine to 0; AdamW (0.9, 0.95), decay 0.1 on matrices, gradients cut to norm 1 for
each model alone. Peak and decay are tuned for no cell.

**Mark.** Each window begins with byte 0, which no text has, and T − 1 bytes of the text follow: a model always reads something of known
content at place 0, so what the first token gets can be measured and, if it is much, is no accident of the window. One cell has windows
without it, cut from the middle.

**Texts.** 4 million bytes each, the last 5% held out: Austen; Shakespeare; both in turns of 65,536 bytes; Austen's words shuffled; and
four synthetic ones over 64 signs whose dependence is known:

- copies_a: each sign is with probability 0.9 the one at distance d before it, d from 1 to 512 drawn with probability ∝ d^−a, or else new. The
  best predictor is attention with weights ∝ d^−a over signs: γ = a in one layer. (Correlations are not d^−a: copies are copied.)
- copies_geometric: the same with d geometric of mean 32: the best weights fall exponentially.
- lazy_chain: a Markov chain that keeps its sign with probability 0.95: its correlation falls as 0.95^d, but all that helps is one back.

**Measured** on 32,768 held-out bytes in 8 parts, the same for all lengths, in float32, by `course.attention_maps.look`: the mean weight
at each distance over layers and heads (queries in the last 40%, first four keys left out), and its exponent by
`course.decay_law.decay_fit` in two windows: 4 to 128, common to all, and T/64 to T/2. Each model is read five times
(`course.gamma_atlas.atlas_table`): its own text, in windows of 256, shuffled within windows, another text, and untrained. The rivals,
on 4 to 128: power law, exponential, log-normal, power law with an exponential cut-off, as laws of the distance fitted by maximum
likelihood on the first four parts; on the last four, the divergence from what was measured to the law, in nats. The profiles of both halves are kept, at each distance from 1 on, as far as
128 where a model does not read its own text.

**Budget.** Models of one shape are trained as one program with an axis for the models. `PILOT` is what a pilot took of an H200.

Writes course/data/records/gamma_atlas.json and beside it the table, gamma_atlas.csv.gz.
"""

import argparse
import hashlib
import json
import math
import random
import shutil
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.attention_maps import QUERIES, distance_profile, look  # noqa: E402
from course.decay_law import decay_fit  # noqa: E402
from course.gamma_atlas import BASE, SETTING, SYNTHETIC, write_table  # noqa: E402
from course.model import GPT, Config  # noqa: E402
from course.position_rope import rope_frequencies  # noqa: E402

MARK = 0
STEP = 2**14  # tokens of a step
HELD = 2**15  # tokens that are measured on
PARTS = 8
COMMON = (4, 128)
SHORT = 256
LENGTH = 4_000_000
MOST = 12  # models in a stack
PILOT = 22 / (1200 * 32_768 * 6 * 256)  # seconds of an H200 for a token, a layer and a unit of width, of models one by one
SMALL = {"tokens": 3 * 2**10, "step": 2**10, "held": 2**11, "length": 60_000}

# ---------------------------------------------------------------- the grid


def cells() -> list[dict]:
    """The settings, in the order in which they are trained."""
    shapes = [{"n_layers": 2}, {"n_layers": 8}, {"d_model": 96, "n_heads": 3}, {"d_model": 384, "n_heads": 12}, {"n_heads": 3}]
    departures = [{"theta": theta, "T": T} for T in (512, 256, 1024) for theta in (1e2, 1e3, 1e4, 1e5)]
    departures += [{"text": text} for text in ("shakespeare", "mixture", "shuffled", *SYNTHETIC)]
    corners = [{"theta": theta, "T": T} for theta in (1e2, 1e4) for T in (256, 1024)]
    departures += [{"text": text} | corner for text in ("shakespeare", "shuffled") for corner in corners]
    departures += [*shapes, {"position": "learned"}, {"mark": False}, {"rate": 3e-3}, {"tokens": 2**22}, {"tokens": 2**26}]
    return [BASE | departure for departure in departures]


SEEDS = ((0, 1, 2), (3, 4))


def stacks(settings: list[dict], rounds=SEEDS) -> list[list[dict]]:
    """Models that can be trained as one program: of one shape, length, rate and number of steps."""
    made = []
    for seeds in rounds:
        alike: dict[tuple, list] = {}
        for setting in settings:
            shape = tuple(setting[name] for name in SETTING if name not in ("text", "theta", "mark"))
            alike.setdefault(shape, []).extend(setting | {"seed": seed} for seed in seeds)
        chunks = [models[i : i + MOST] for models in alike.values() for i in range(0, len(models), MOST)]
        made += sorted(chunks, key=cost)
    return made


def cost(models: list[dict]) -> float:
    """Tokens, layers and units of width of a stack, which its time grows with."""
    return sum(model["tokens"] * model["n_layers"] * model["d_model"] for model in models)


def config(model: dict) -> Config:
    sizes = {name: model[name] for name in ("d_model", "n_layers", "n_heads", "position", "theta")}
    return Config(V=256, T_max=model["T"], **sizes)


def key(model: dict) -> tuple:
    return (*(model[name] for name in SETTING), model["seed"])


# ---------------------------------------------------------------- texts


@cache
def text(name: str, length: int = LENGTH) -> tuple[Tensor, Tensor]:
    """The bytes to train on and those held out, (n,) uint8 each."""
    if name == "mixture":
        mixed = []
        for pair in zip(*(text(each, length) for each in ("austen", "shakespeare")), strict=True):
            turns = zip(*(half[: len(half) // 2].split(65_536) for half in pair), strict=True)
            mixed.append(torch.cat([each for turn in turns for each in turn]))
        return tuple(mixed)
    if name in SYNTHETIC:
        ids = synthetic(name, length)
    elif name == "shuffled":
        words = data.read("austen", length).split(" ")
        random.Random(0).shuffle(words)
        ids = np.frombuffer(" ".join(words).encode()[:length], np.uint8)
    else:
        ids = np.frombuffer(data.read(name, length).encode()[:length], np.uint8)
    ids, held = torch.from_numpy(ids.copy()), len(ids) // 20
    return ids[:-held], ids[-held:]


def synthetic(name: str, length: int, signs: int = 64, farthest: int = 512) -> np.ndarray:
    """A text over the signs 1 … 64 that copies itself, by the law of distances in its name."""
    drawn = np.random.default_rng(0)
    new = drawn.integers(1, signs + 1, length)
    if name == "lazy_chain":
        back, copied = np.ones(length, dtype=int), drawn.random(length) < 0.95
    else:
        distances = np.arange(1, farthest + 1)
        kind = name.partition("_")[2]
        law = np.exp(-distances / 32) if kind == "geometric" else distances ** -float(kind)
        back, copied = drawn.choice(distances, length, p=law / law.sum()), drawn.random(length) < 0.9
    ids, back, copied = new.tolist(), back.tolist(), copied.tolist()
    for t in range(1, length):
        if copied[t] and back[t] <= t:
            ids[t] = ids[t - back[t]]
    return np.array(ids, dtype=np.uint8)


FOREIGN = {"austen": "shakespeare", "copies_0.7": "copies_1.3", "copies_1.3": "copies_0.7"}


def foreign(name: str) -> str:
    """The other text that a model trained on a text reads."""
    return FOREIGN.get(name, "copies_0.7" if name in SYNTHETIC else "austen")


# ---------------------------------------------------------------- training many models at once


def first_weights(model: dict) -> dict[str, Tensor]:
    torch.manual_seed(model["seed"])
    return GPT(config(model)).state_dict()


def stacked(models: list[dict], device: str) -> dict[str, Tensor]:
    """The first weights of all models, (M, …) each, by the names that `GPT` has for them."""
    states = [first_weights(model) for model in models]
    return {name: torch.stack([state[name] for state in states]).to(device).requires_grad_() for name in states[0]}


def angles(models: list[dict], T: int, device: str) -> tuple[Tensor, Tensor]:
    """Cosines and sines of RoPE of all models, (M, 1, 1, T, d_head / 2)."""
    width = models[0]["d_model"] // models[0]["n_heads"]
    turns = torch.stack([torch.arange(T)[:, None] * rope_frequencies(width, model["theta"]) for model in models])
    return tuple(each.float()[:, None, None].to(device) for each in (turns.cos(), turns.sin()))


def logits(p: dict[str, Tensor], ids: Tensor, models: list[dict], turn: tuple[Tensor, Tensor]) -> Tensor:
    """What M models say of M batches: ids (M, B, T) → (M, B · T, V), as each `GPT` says of its own."""
    M, B, T = ids.shape
    n_layers, H, rope = models[0]["n_layers"], models[0]["n_heads"], models[0]["position"] == "rope"
    times = lambda x, *names: x @ torch.cat([p[f"{name}.weight"] for name in names], dim=1).mT  # noqa: E731
    norm = lambda x, name: F.rms_norm(x, x.shape[-1:], eps=1e-5) * p[f"{name}.weight"][:, None]  # noqa: E731
    table = p["embedding.weight"]  # (M, V, d_model)
    shift = torch.arange(M, device=ids.device)[:, None, None] * table.shape[1]
    x = F.embedding((ids + shift).flatten(1), table.flatten(0, 1))  # (M, B · T, d_model)
    if not rope:
        x = x + p["position.weight"].repeat(1, B, 1)
    for i in range(n_layers):
        at = f"blocks.{i}.attention."
        qkv = times(norm(x, f"blocks.{i}.norm_1"), f"{at}query", f"{at}key", f"{at}value")
        qkv = qkv.view(M, B, T, 3, H, -1).permute(3, 0, 1, 4, 2, 5)  # (3, M, B, H, T, d_head)
        q, k, v = qkv.unbind()
        if rope:
            q, k = (_turned(each, turn) for each in (q, k))
        mixed = F.scaled_dot_product_attention(*(each.flatten(0, 1) for each in (q, k, v)), is_causal=True)
        x = x + times(mixed.transpose(1, 2).reshape(M, B * T, -1), f"{at}out")
        at = f"blocks.{i}.ffn."
        gate, up = times(norm(x, f"blocks.{i}.norm_2"), f"{at}gate", f"{at}up").chunk(2, dim=-1)
        x = x + times(F.silu(gate) * up, f"{at}down")
    return times(norm(x, "norm"), "head")


def _turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    cos, sin = turn
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)


def batches(models: list[dict], device: str, length: int, step: int):
    """Inputs and targets of each step, (M, B, T) each."""
    T, steps = models[0]["T"], models[0]["tokens"] // step
    texts = [text(model["text"], length)[0] for model in models]
    together = torch.cat(texts).to(device)
    begin = torch.tensor([0, *(len(each) for each in texts)]).cumsum(0)[:-1, None].to(device)
    room = torch.tensor([len(each) - T for each in texts])[:, None].to(device)
    places = torch.stack([_places(model["seed"], steps, step // T) for model in models], dim=1).to(device)  # (steps, M, B)
    bare = torch.tensor([not model["mark"] for model in models], device=device)[:, None]
    for place in places:
        start = begin + 1 + (place * (room - 1)).long()
        at = start[:, :, None] + torch.arange(T, device=device)
        ids, targets = together[at - 1].long(), together[at].long()
        ids[:, :, 0] = torch.where(bare, ids[:, :, 0], MARK)
        yield ids, targets


def _places(seed: int, steps: int, B: int) -> Tensor:
    """Where in the text the windows of a seed begin, as shares of it, (steps, B)."""
    return torch.rand(steps, B, generator=torch.Generator().manual_seed(1_000 + seed), dtype=torch.float64)


def schedule(i: int, steps: int) -> float:
    return min((i + 1) / max(1, round(0.05 * steps)), 0.5 * (1 + math.cos(math.pi * i / steps)))


@torch.no_grad()
def cut(parameters: list[Tensor], most: float = 1.0) -> None:
    """Cut the gradients of each model to a norm of at most 1; a model's are those at its place of the first axis."""
    norms = torch.stack([p.grad.flatten(1).square().sum(dim=1) for p in parameters]).sum(dim=0).sqrt()  # (M,)
    scale = (most / (norms + 1e-6)).clamp(max=1.0)
    for p in parameters:
        p.grad.mul_(scale.view(-1, *[1] * (p.ndim - 1)))


def train(models: list[dict], device: str, length: int = LENGTH, step: int = STEP) -> tuple[dict[str, Tensor], Tensor]:
    """The weights of all models after training, (M, …) each, and their losses at each step, (steps, M), in nats."""
    p, turn = stacked(models, device), angles(models, models[0]["T"], device)
    every = list(p.values())
    groups = [
        {"params": [x for x in every if x.ndim == 3], "weight_decay": 0.1},
        {"params": [x for x in every if x.ndim == 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.95), fused=device == "cuda")
    steps, losses = models[0]["tokens"] // step, []
    for i, (ids, targets) in enumerate(batches(models, device, length, step)):
        for group in optimiser.param_groups:
            group["lr"] = models[0]["rate"] * schedule(i, steps)
        with torch.autocast("cuda", torch.bfloat16, enabled=device == "cuda"):
            said = logits(p, ids, models, turn)
        loss = F.cross_entropy(said.flatten(0, 1).float(), targets.flatten(), reduction="none").view(len(models), -1).mean(dim=1)
        optimiser.zero_grad(set_to_none=True)
        loss.sum().backward()
        cut(every)
        optimiser.step()
        losses.append(loss.detach())
    return {name: x.detach() for name, x in p.items()}, torch.stack(losses)


# ---------------------------------------------------------------- reading


def held_out(name: str, T: int, mark: bool, length: int, held: int) -> tuple[Tensor, Tensor]:
    """Windows of held-out text and their targets, (windows, T) each: the same `held` bytes whatever T is."""
    ids = text(name, length)[1].long()
    longest = min(1024, held // PARTS)
    starts = torch.linspace(1, len(ids) - longest - 1, held // longest).long()
    at = (starts[:, None] + torch.arange(longest)).view(-1, T)
    inputs, targets = ids[at - 1], ids[at]
    if mark:
        inputs[:, 0] = MARK
    return inputs, targets


def shuffle(inputs: Tensor) -> Tensor:
    """Each window's tokens in another order, but for the first."""
    order = torch.rand(inputs[:, 1:].shape, generator=torch.Generator().manual_seed(0)).argsort(dim=1)
    return torch.cat([inputs[:, :1], inputs[:, 1:].gather(1, order)], dim=1)


@torch.no_grad()
def read(gpt: GPT, inputs: Tensor, targets: Tensor) -> dict:
    """What `PARTS` parts of some windows, (windows, T), say of a model."""
    parts = []
    for ids, target in zip(inputs.chunk(PARTS), targets.chunk(PARTS), strict=True):
        profiles, firsts, entropies = [], [], []

        def see(layer, weights, stream, profiles=profiles, firsts=firsts, entropies=entropies):
            late = weights[:, :, math.ceil(QUERIES * weights.shape[-1]) :]  # (B, H, queries, T)
            profiles.append(distance_profile(weights).mean(dim=0).cpu())
            firsts.append(late[..., 0].mean(dim=(0, 2)).cpu())
            entropies.append(torch.special.entr(late).sum(dim=-1).mean().cpu())

        said = look(gpt, ids, see)
        bits = F.cross_entropy(said.flatten(0, 1), target.flatten()).item() / math.log(2)
        parts.append([torch.stack(profiles), torch.stack(firsts), torch.stack(entropies).mean(), torch.tensor(bits)])
    return measured(*(torch.stack(each) for each in zip(*parts, strict=True)), T=inputs.shape[1])


def measured(profiles: Tensor, firsts: Tensor, entropies: Tensor, bits: Tensor, T: int) -> dict:
    """A row's values: profiles (parts, L, H, D + 1), firsts (parts, L, H), entropies and bits (parts,)."""
    mean = profiles.mean(dim=(1, 2))  # (parts, D + 1)
    fit = decay_fit(mean.mean(dim=0), *COMMON)
    heads = decay_fit(profiles.mean(dim=0), *COMMON)["power"].flatten().double()
    laws = rivals(mean[: PARTS // 2].mean(dim=0), mean[PARTS // 2 :].mean(dim=0))
    return {
        "bits": float(bits.mean()),
        "gamma": float(fit["power"]),
        "gamma_relative": float(decay_fit(mean.mean(dim=0), max(2, T // 64), T // 2)["power"]),
        "R2_power": float(fit["R2 of the power law"]),
        "R2_exponential": float(fit["R2 of the exponential"]),
        **{f"nats_{name}": nats for name, nats in laws.items()},
        "exponential_gain": laws["power"] - laws["exponential"],
        **{f"heads_{round(100 * q)}": float(heads.quantile(q)) for q in (0.1, 0.25, 0.5, 0.75, 0.9)},
        "first": float(firsts.mean()),
        "first_max": float(firsts.mean(dim=0).max()),
        "entropy": float(entropies.mean()),
        "layers": decay_fit(profiles.mean(dim=(0, 2)), *COMMON)["power"].tolist(),
        "parts": decay_fit(mean, *COMMON)["power"].tolist(),
        "profile": mean[: PARTS // 2].mean(dim=0)[1:].tolist(),
        "profile_held": mean[PARTS // 2 :].mean(dim=0)[1:].tolist(),
    }


FEATURES = {
    "power": lambda d: [d.log()],
    "exponential": lambda d: [d / 64],
    "log_normal": lambda d: [d.log(), d.log() ** 2],
    "cut_off": lambda d: [d.log(), d / 64],
}


def rivals(seen: Tensor, unseen: Tensor) -> dict[str, float]:
    """Nats by which laws fitted on one profile miss another on `COMMON`, (D + 1,) each: the divergence from it to the law."""
    low, high = COMMON
    p, q = (each[low : high + 1].double() / each[low : high + 1].double().sum() for each in (seen, unseen))
    d = torch.arange(low, low + len(p), dtype=torch.float64)
    told = {}
    for name, features in FEATURES.items():
        f = torch.stack(features(d), dim=1)  # (distances, k)
        told[name] = float((q * (q.log() - likeliest(f, p))).sum())
    return told


def likeliest(f: Tensor, p: Tensor) -> Tensor:
    """Log of the law ∝ exp(f w) under which p is likeliest, by Newton's method: f (n, k), p (n,) → (n,)."""
    f = f - (p[:, None] * f).sum(dim=0)
    w = torch.zeros(f.shape[1], dtype=f.dtype)
    for _ in range(50):
        law = (f @ w).softmax(dim=0)
        mean = law @ f
        spread = (law[:, None] * (f - mean)).mT @ (f - mean)
        step = torch.linalg.solve(spread + 1e-12 * torch.eye(len(w), dtype=f.dtype), -mean)
        longest = float(step.abs().max())
        w = w + step * min(1.0, 2.0 / max(longest, 1e-12))
        if longest < 1e-12:
            break
    return (f @ w).log_softmax(dim=0)


def readings(model: dict, weights: dict[str, Tensor], device: str, length: int, held: int) -> list[dict]:
    """The rows of a model: five ways to read it."""
    T, mark = model["T"], model["mark"]
    own, other = model["text"], foreign(model["text"])
    gpt = GPT(config(model)).to(device).eval()
    windows = {
        "own": held_out(own, T, mark, length, held),
        "short": held_out(own, min(T, SHORT), mark, length, held),
        "foreign": held_out(other, T, mark, length, held),
        "untrained": held_out(own, T, mark, length, held),
    }
    windows["shuffled"] = tuple(map(shuffle, windows["own"]))  # its targets mean nothing
    head = model | {"parameters": sum(p.numel() for p in gpt.parameters())}
    rows = []
    for name, (inputs, targets) in windows.items():
        gpt.load_state_dict(first_weights(model) if name == "untrained" else weights)
        rows.append(head | {"read": name} | read(gpt, inputs.to(device), targets.to(device)))
        for half in ("profile", "profile_held"):
            rows[-1][half] = [float(f"{x:.6g}") for x in rows[-1][half][: None if name == "own" else COMMON[1]]]
    return rows


# ---------------------------------------------------------------- running


def finished(paths: list[Path]) -> dict[tuple, list[dict]]:
    """The rows of each model in the files of earlier runs; a last line that was cut off is left out."""
    done = {}
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                rows = json.loads(line)
            except ValueError:
                continue
            done[key(rows[0])] = rows
    return done


def run(plan: list[list[dict]], done: dict, file: Path, device: str, until: float, sizes: dict) -> bool:
    """Train and read what is not done yet, write each model's rows at once; whether all was done before the time was up."""
    file.write_text("".join(json.dumps(rows) + "\n" for rows in done.values()))
    spent, paid = 0.0, 0.0  # seconds, and what they bought
    for models in plan:
        models = [model for model in models if key(model) not in done]
        if not models:
            continue
        began, expected = time.time(), (spent / paid if paid else PILOT) * cost(models)
        if began + 1.15 * expected > until:
            print(f"no time for {len(models)} more models, which take about {expected:.0f} s", flush=True)
            return False
        weights, losses = train(models, device, sizes["length"], sizes["step"])
        trained = time.time() - began
        for i, model in enumerate(models):
            rows = readings(model, {name: x[i] for name, x in weights.items()}, device, sizes["length"], sizes["held"])
            card = torch.cuda.get_device_name() if device == "cuda" else device
            took = {"seconds": trained / len(models), "where": f"{card}, torch {torch.__version__}"}
            done[key(model)] = rows = [row | took for row in rows]
            with file.open("a") as out:
                out.write(json.dumps(rows) + "\n")
        spent, paid = spent + time.time() - began, paid + cost(models)
        memory = torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else 0
        print(
            f"{len(models)} models, {models[0]['n_layers']} × {models[0]['d_model']}, T {models[0]['T']}, {models[0]['tokens']} tokens: "
            f"{trained:.1f} s and {time.time() - began - trained:.1f} s to read; {memory:.1f} GB; "
            f"loss {losses[-1].mean():.3f}; γ {[round(done[key(m)][0]['gamma'], 2) for m in models]}",
            flush=True,
        )
    return True


def keep(settings: list[dict], done: dict, small: bool, sizes: dict) -> list[Path]:
    """Write the table and the record, of the seeds that all cells have; their paths."""
    seeds = [s for s in sorted({k[-1] for k in done}) if all(key(each | {"seed": s}) in done for each in settings)]
    rows = [dict(row) for each in settings for seed in seeds for row in done[key(each | {"seed": seed})]]
    where = sorted({row.pop("where") for row in rows})  # they may have been trained on another machine than this
    path = data.record_path("gamma_atlas", "small" if small else "full").with_suffix(".csv.gz")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(rows, path)
    record = data.keep_record(
        "gamma_atlas",
        {"table": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "rows": len(rows), "models": len(rows) // 5,
         "seconds": round(sum(row["seconds"] for row in rows) / 5, 1), "columns": list(rows[0])},
        settings={"base": BASE, "cells": len(settings), "step": sizes["step"], "held": sizes["held"], "parts": PARTS, "common": COMMON,
                  "short": SHORT, "most": MOST},
        seeds=seeds,
        interval=None,
        device=" and ".join(where),
        small=small,
        packages=("torch", "numpy"),
        what="The table beside this record has a row for each model and each way to read it; course.gamma_atlas reads it.",
    )  # fmt: skip
    return [record, path]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="four tiny models, under a minute on a CPU")
    parser.add_argument("--minutes", type=float, default=math.inf, help="start nothing that would not end by then")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gamma_atlas", help="folder for atlas.jsonl and the record")
    parser.add_argument("--done", type=Path, nargs="*", default=[], help="files of earlier runs")
    parser.add_argument("--rounds", type=int, default=len(SEEDS), help="1: seeds 0 to 2; 2: also 3 and 4")
    parser.add_argument("--plan", action="store_true", help="print what would be trained, and stop")
    parser.add_argument(
        "--part", type=int, nargs=2, default=(0, 1), metavar=("I", "N"), help="train every N-th stack, from number I on"
    )
    given = parser.parse_args()
    part, parts = given.part
    until = time.time() + 60 * given.minutes
    device = "cuda" if torch.cuda.is_available() and not given.small else "cpu"
    torch.set_float32_matmul_precision("highest")  # for reading; training is in bfloat16 by autocast on a GPU
    settings, sizes, rounds = cells(), {"step": STEP, "held": HELD, "length": LENGTH}, SEEDS[: given.rounds]
    if given.small:
        torch.set_num_threads(1)
        tiny = {"T": 256, "n_layers": 2, "d_model": 32, "n_heads": 2, "tokens": SMALL["tokens"]}
        settings, sizes, rounds = [BASE | tiny | {"text": name} for name in ("austen", "copies_1.3")], SMALL, ((0, 1),)
    plan = stacks(settings, rounds)[part::parts]
    if given.plan:
        for models in plan:
            print(len(models), {k: v for k, v in models[0].items() if v != BASE.get(k)}, f"{PILOT * cost(models):.0f} s")
        print(sum(map(len, plan)), "models, by the pilot", round(PILOT * sum(map(cost, plan))), "s of an H200")
        return
    given.out.mkdir(parents=True, exist_ok=True)
    file = given.out / ("atlas.jsonl" if parts == 1 else f"atlas-{part}.jsonl")
    done = finished([*given.done, *([] if given.small else [file])])
    whole = run(plan, done, file, device, until, sizes)
    if all(key(each | {"seed": seed}) in done for each in settings for seed in rounds[0]):
        for path in keep(settings, done, given.small, sizes):
            print("wrote", path.name, path.stat().st_size, "bytes")
            if path.parent.resolve() != given.out.resolve():
                shutil.copy(path, given.out)
    print("all done" if whole else "not all done: go on with --done", flush=True)


if __name__ == "__main__":
    main()
