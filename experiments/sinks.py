"""When do attention sinks arise in small models, and what keeps them away?

    python experiments/sinks.py            # a GPU, about two minutes in all
    python experiments/sinks.py --small    # a CPU, under a minute

Models of bytes (RMSNorm, RoPE, SwiGLU) read windows cut anywhere out of Austen's novels. Arms differ in one thing; seeds (weights
and windows) are shared, so differences between arms are paired:

    no mark        a window begins with whatever byte is there
    BOS            the same token before every window
    plus one       BOS, and 1 added to the denominator of every softmax: an extra logit that is always 0
    learned sink   BOS, and an extra logit of its own for each head, learned
    registers      BOS after four learned tokens
    gate           BOS, and a sigmoid gate on each head's output, which reads the token
    lr / 4, lr × 3, wd 0, wd × 10   BOS, with another learning rate or weight decay

All models are trained at once, their weights stacked in one tensor, with a constant rate after the warm-up, so that a step of
the run is a length of training. Then wider models, with and without BOS. Each part stops at its number of steps or when its seconds
are over, for all its models at the same step. Recorded as training goes on: bits a byte on text held back, and the
mean weight on the marks before the text, on its first byte, on the extra logit, and the largest that any one key gets from the
second half of the window. At the end, by layer, the same, the lengths of the first key's stream and value over those of the
others, and all of it once more with the base of RoPE made smaller and larger inside the trained models, with the exponent of decay.

Writes course/data/records/sinks.json, and a copy into $OUT if that is set.
"""

import argparse
import math
import os
import shutil
import sys
import time
from pathlib import Path

BEGAN = time.time()
import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.nn import functional as F  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data  # noqa: E402
from course.attention_maps import distance_profile  # noqa: E402
from course.decay_law import decay_fit  # noqa: E402
from course.position_rope import rope_frequencies  # noqa: E402

REGISTERS, BOS, V = 4, 260, 261  # ids 256 to 259 are registers
MARKS = REGISTERS + 1  # slots before the text; an arm that does not use one hides it from all others
ARMS = {
    "no mark": {"marks": 0},
    "BOS": {},
    "plus one": {"plus_one": True},
    "learned sink": {"learned": True},
    "registers": {"marks": MARKS},
    "gate": {"gate": True},
    "lr / 4": {"lr": 0.25},
    "lr × 3": {"lr": 3.0},
    "wd 0": {"wd": 0.0},
    "wd × 10": {"wd": 10.0},
}
COMMON = {
    "theta": 10_000.0,
    "lr": 2e-3,
    "wd": 0.1,
    "warm_up": 100,
    "betas": [0.9, 0.95],
    "clip": 1.0,
    "factors": [0.25, 1.0, 4.0],
}
FULL = COMMON | {
    "seeds": 4,
    "tested": 16,
    "parts": [
        {"d_model": 128, "L": 4, "H": 4, "T": 256, "B": 16, "steps": 6000, "seconds": 80, "arms": list(ARMS)},
        {"d_model": 256, "L": 4, "H": 8, "T": 256, "B": 16, "steps": 6000, "seconds": 30, "arms": ["no mark", "BOS"]},
    ],
}
SMALL = COMMON | {
    "seeds": 2,
    "tested": 4,
    "warm_up": 10,
    "parts": [
        {"d_model": 32, "L": 2, "H": 2, "T": 64, "B": 4, "steps": 60, "seconds": 15, "arms": list(ARMS)},
        {"d_model": 64, "L": 2, "H": 4, "T": 64, "B": 4, "steps": 60, "seconds": 10, "arms": ["no mark", "BOS"]},
    ],
}


class Stack:
    """G models of one size, their weights stacked: every tensor of `weights` is (G, …)."""

    def __init__(self, arms: list[str], seeds: int, part: dict, device: str):
        self.part, self.device = part, device
        self.jobs = [(arm, seed) for arm in arms for seed in range(seeds)]
        self.say = [
            {"marks": 1, "plus_one": False, "learned": False, "gate": False, "lr": 1.0, "wd": 1.0} | ARMS[a] for a, _ in self.jobs
        ]
        d, H, hidden = part["d_model"], part["H"], 8 * math.ceil(part["d_model"] / 3)
        shapes = {"embedding": (V, d), "head": (d, 256), "norm": (d,)}
        for i in range(part["L"]):
            shapes |= {f"{i}.norm_1": (d,), f"{i}.norm_2": (d,), f"{i}.qkv": (d, 3 * d), f"{i}.out": (d, d)}
            shapes |= {f"{i}.up": (d, 2 * hidden), f"{i}.down": (hidden, d), f"{i}.gate": (d, H), f"{i}.sink": (H,)}
        self.weights = {name: self._start(name, shape, seeds) for name, shape in shapes.items()}
        flag = lambda key: torch.tensor([bool(each[key]) for each in self.say], device=device)  # noqa: E731
        self.plus_one, self.learned, self.gated = flag("plus_one"), flag("learned"), flag("gate")
        marks = torch.tensor([each["marks"] for each in self.say], device=device)
        width = part["T"] + MARKS
        place = torch.arange(width, device=device)
        seen = (place >= MARKS) | (place >= MARKS - marks[:, None])  # (G, width), the last mark is BOS
        causal = place[:, None] >= place
        self.hidden = ~((causal & seen[:, None]) | (place[:, None] == place))  # (G, width, width), a hidden slot sees itself

    def _start(self, name: str, shape: tuple[int, ...], seeds: int) -> Tensor:
        """The same draw for every arm of a seed."""
        each = []
        for seed in range(seeds):
            generator = torch.Generator().manual_seed(hash_of(name) + seed)
            std = 0.0 if name.endswith(("gate", "sink")) else 0.02
            if name.endswith(("out", "down")):
                std /= math.sqrt(2 * self.part["L"])
            value = torch.ones(shape) if "norm" in name else std * torch.randn(shape, generator=generator)
            each.append(value)
        stacked = torch.stack([each[seed] for _, seed in self.jobs])  # (G, …)
        return stacked.to(self.device).requires_grad_(True)

    def forward(self, text: Tensor, theta: float, see=None) -> Tensor:
        """text (G, B, T) → logits (G, B, T, 256). `see(layer, weights (G, B, H, S, S + 1), stream, value)` with S = MARKS + T."""
        w, (G, B, T), (d, H) = self.weights, text.shape, (self.part["d_model"], self.part["H"])
        S = MARKS + T
        ids = torch.cat([torch.arange(256, V, device=text.device).expand(G, B, MARKS), text], dim=2)  # (G, B, S)
        offset = V * torch.arange(G, device=text.device)[:, None, None]
        x = F.embedding(ids + offset, w["embedding"].flatten(0, 1)).flatten(1, 2)  # (G, B · S, d)
        angle = torch.arange(S).double()[:, None] * rope_frequencies(d // H, theta)
        cos, sin = (f(angle).float().to(text.device) for f in (torch.cos, torch.sin))  # (S, d_head / 2)
        zero = torch.zeros((), device=text.device)
        for i in range(self.part["L"]):
            y = normed(x, w[f"{i}.norm_1"])
            qkv = torch.bmm(y, w[f"{i}.qkv"]).view(G, B, S, 3, H, d // H).permute(3, 0, 1, 4, 2, 5)  # (3, G, B, H, S, d_head)
            query, key, value = turned(qkv[0], cos, sin), turned(qkv[1], cos, sin), qkv[2]
            scores = (query @ key.mT).float() / math.sqrt(d // H)  # (G, B, H, S, S)
            scores = scores.masked_fill(self.hidden[:, None, None, :S, :S], -math.inf)
            extra = torch.where(
                self.learned[:, None], w[f"{i}.sink"], torch.where(self.plus_one, zero, -math.inf)[:, None]
            )  # (G, H)
            column = extra[:, None, :, None, None].expand(G, B, H, S, 1)
            weights = torch.cat([scores, column], dim=-1).softmax(dim=-1)  # (G, B, H, S, S + 1)
            if see:
                see(i, weights, x.view(G, B, S, d), value)
            mixed = weights[..., :-1].to(value.dtype) @ value  # (G, B, H, S, d_head)
            gate = torch.where(self.gated[:, None, None], torch.bmm(y, w[f"{i}.gate"]).sigmoid(), zero + 1)  # (G, B · S, H)
            mixed = mixed * gate.view(G, B, S, H).transpose(2, 3)[..., None]
            x = x + torch.bmm(mixed.transpose(2, 3).reshape(G, B * S, d), w[f"{i}.out"])
            a, b = torch.bmm(normed(x, w[f"{i}.norm_2"]), w[f"{i}.up"]).chunk(2, dim=-1)
            x = x + torch.bmm(F.silu(a) * b, w[f"{i}.down"])
        x = normed(x, w["norm"]).view(G, B, S, d)[:, :, MARKS:].flatten(1, 2)
        return torch.bmm(x, w["head"]).view(G, B, T, 256)


def hash_of(name: str) -> int:
    return sum((i + 1) * ord(c) for i, c in enumerate(name)) * 1_000


def normed(x: Tensor, weight: Tensor) -> Tensor:
    """RMSNorm of the stream of each model: x (G, n, d), weight (G, d)."""
    return x * (x.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt() * weight[:, None]


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)


class AdamW:
    """AdamW with a rate and a decay for each of the G models, their gradients clipped one by one."""

    def __init__(self, stack: Stack, s: dict):
        self.s, self.names = s, list(stack.weights)
        self.p = list(stack.weights.values())
        self.m, self.v = ([torch.zeros_like(p) for p in self.p] for _ in range(2))
        self.lr, self.wd = (torch.tensor([each[key] * s[key] for each in stack.say], device=stack.device) for key in ("lr", "wd"))

    @torch.no_grad()
    def step(self, t: int) -> None:
        b1, b2 = self.s["betas"]
        grads = [p.grad for p in self.p]
        norm = sum(g.flatten(1).square().sum(dim=1) for g in grads).sqrt()  # (G,)
        shrink = self.s["clip"] / norm.clamp_min(self.s["clip"])
        lr = self.lr * min(1.0, (t + 1) / self.s["warm_up"])
        for name, p, g, m, v in zip(self.names, self.p, grads, self.m, self.v, strict=True):
            wide = lambda of, p=p: of.view(-1, *[1] * (p.ndim - 1))  # noqa: E731
            g = g * wide(shrink)
            m.lerp_(g, 1 - b1)
            v.lerp_(g.square(), 1 - b2)
            if p.ndim == 3 and name != "embedding":
                p.mul_(1 - wide(lr * self.wd))
            p.sub_(wide(lr) * (m / (1 - b1 ** (t + 1))) / ((v / (1 - b2 ** (t + 1))).sqrt() + 1e-8))
            p.grad = None


@torch.no_grad()
def reading(stack: Stack, held: Tensor, theta: float, whole: bool = False) -> list[dict]:
    """What each model does on the held-back windows (n, T + 1), one dict a model; by layer, and more, if `whole`."""
    G, T = len(stack.jobs), held.shape[1] - 1
    found: dict[str, list[Tensor]] = {
        name: [] for name in ("marks", "byte", "nothing", "greatest", "stream", "value", "heads", "profile")
    }

    def see(layer, weights, stream, value):
        text, half = weights[..., MARKS + T // 10 :, :], weights[..., MARKS + T // 2 :, :]  # queries of the text
        found["marks"].append(text[..., :MARKS].sum(-1).mean(dim=(1, 2, 3)))
        found["byte"].append(text[..., MARKS].mean(dim=(1, 2, 3)))
        found["nothing"].append(text[..., -1].mean(dim=(1, 2, 3)))
        found["greatest"].append(half[..., : MARKS + T // 2].mean(dim=3).amax(dim=-1).mean(dim=(1, 2)))
        if whole:
            found["heads"].append((text[..., :MARKS].sum(-1) + text[..., -1]).mean(dim=(1, 3)))  # (G, H)
            for name, each in (("stream", stream.norm(dim=-1)), ("value", value.norm(dim=-1).mean(dim=2))):  # (G, B, S)
                first = torch.tensor([MARKS - 1 + (one["marks"] == 0) for one in stack.say], device=each.device)  # BOS or a byte
                here = each.mean(dim=1).gather(1, first[:, None])[:, 0]
                found[name].append(here / each[:, :, MARKS + 1 :].flatten(1).median(dim=1).values)
            own = weights[..., MARKS:, MARKS:-1]  # (G, B, H, T, T)
            found["profile"].append(distance_profile(own).mean(dim=(1, 2)))

    text = held[:, :-1].expand(G, -1, -1)  # (G, n, T)
    logits = stack.forward(text, theta, see).float()
    loss = F.cross_entropy(logits.flatten(0, 2), held[:, 1:].expand(G, -1, -1).flatten(), reduction="none")
    bits = (loss.view(G, -1).mean(dim=1) / math.log(2)).tolist()
    mean = {name: torch.stack(found[name]) for name in ("marks", "byte", "nothing", "greatest")}  # (L, G)
    told = [{"bits": round(bits[g], 4)} | {k: round(float(v[:, g].mean()), 4) for k, v in mean.items()} for g in range(G)]
    if whole:
        power = decay_fit(torch.stack(found["profile"]).mean(dim=0).cpu())["power"]  # (G,), of the mean over layers and heads
        for g, each in enumerate(told):
            each |= {"gamma": round(float(power[g]), 3)}
            each |= {f"{k} by layer": [round(float(x), 4) for x in v[:, g]] for k, v in mean.items()}
            each |= {f"{k} by layer": [round(float(x[g]), 3) for x in found[k]] for k in ("stream", "value")}
            each |= {"heads": [[round(float(x), 3) for x in layer[g]] for layer in found["heads"]]}
    return told


def looked_at(step: int) -> bool:
    """At 0, 50, 100, 200, 400, and then every 400."""
    return step in (0, 50, 100, 200) or step % 400 == 0


def train(part: dict, s: dict, corpus: Tensor, held: Tensor, device: str) -> dict:
    """One part of the experiment: all its models at once."""
    stack = Stack(part["arms"], s["seeds"], part, device)
    optimiser, T = AdamW(stack, s), part["T"]
    draws = [torch.Generator().manual_seed(1_000 + seed) for seed in range(s["seeds"])]
    steps, told, began = [], [], time.time()
    for t in range(part["steps"] + 1):
        over = time.time() - began > part["seconds"] or t == part["steps"]
        if over or looked_at(t):
            steps.append(t)
            told.append(reading(stack, held, s["theta"]))
        if over:
            break
        if t % 100 == 0:  # the windows of the next hundred steps, the same for all arms of a seed
            starts = torch.stack([torch.randint(len(corpus) - T - 1, (100, part["B"]), generator=g) for g in draws], dim=1)
            starts = starts[:, [seed for _, seed in stack.jobs]].to(device)  # (100, G, B)
        windows = corpus[starts[t % 100][..., None] + torch.arange(T + 1, device=device)]  # (G, B, T + 1)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = stack.forward(windows[..., :-1], s["theta"])
        loss = F.cross_entropy(logits.float().flatten(0, 2), windows[..., 1:].flatten(), reduction="none")
        loss.view(len(stack.jobs), -1).mean(dim=1).sum().backward()
        optimiser.step(t)
    print(f"width {part['d_model']}: {t} steps, {time.time() - began:.0f} s", flush=True)
    ends = {f: reading(stack, held, f * s["theta"], whole=True) for f in s["factors"]}
    models = []
    for g, (arm, seed) in enumerate(stack.jobs):
        course = {key: [each[g][key] for each in told] for key in told[0][g]}
        rescaled = [
            {"factor": f, **{k: each[g][k] for k in ("bits", "marks", "byte", "nothing", "gamma")}} for f, each in ends.items()
        ]
        models.append({"arm": arm, "seed": seed, "course": course, "end": ends[1.0][g], "rescaled": rescaled})
        if seed == 0:
            print(f"  {arm:14}", {k: v for k, v in ends[1.0][g].items() if isinstance(v, float)}, flush=True)
    sink = [stack.weights[f"{i}.sink"].detach()[stack.learned].flatten().tolist() for i in range(part["L"])]
    return {
        "d_model": part["d_model"],
        "steps": t,
        "seconds": round(time.time() - began, 1),
        "looked at": steps,
        "models": models,
        "learned logits": [[round(x, 2) for x in layer] for layer in sink],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="two seeds, tiny models, few steps: under a minute on a CPU")
    small = parser.parse_args().small
    s = SMALL if small else FULL
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    if device == "cpu":
        torch.set_num_threads(1)
    text = torch.frombuffer(bytearray(data.read("austen").encode("utf-8")), dtype=torch.uint8).long()
    cut = len(text) * 19 // 20
    corpus, rest = text[:cut].to(device), text[cut:].to(device)
    parts = []
    for part in s["parts"]:
        starts = torch.linspace(0, len(rest) - part["T"] - 1, s["tested"], device=device).long()
        held = rest[starts[:, None] + torch.arange(part["T"] + 1, device=device)]  # (tested, T + 1)
        parts.append(train(part, s, corpus, held, device))
    path = data.keep_record(
        "sinks",
        parts,
        settings=s | {"arms": ARMS, "registers": REGISTERS, "precision": "bfloat16 autocast" if device == "cuda" else "float32"},
        seeds=range(s["seeds"]),
        interval=None,
        device=device,
        small=small,
        seconds=round(time.time() - BEGAN, 1),
    )
    if out := os.environ.get("OUT"):
        shutil.copy(path, out)
    print(path, f"{time.time() - BEGAN:.0f} s in all")


if __name__ == "__main__":
    main()
