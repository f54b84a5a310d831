"""What a model does beyond the length of its training, by method, with and without more training.

    python experiments/long_context.py            # one GPU, at most 480 seconds; SmolLM2 has to be here, see course.pretrained
    python experiments/long_context.py --small    # a CPU, under a minute; the course's own GPT takes the place of SmolLM2

(a) SmolLM2-135M-Instruct, at up to four times its length: its released file says 8,192 tokens and the base 100,000; a training
file that goes under its makers' name says 2,048 tokens and the base 10,000. Unchanged, and with its frequencies changed by PI, NTK-aware and YaRN with the
factors 2 and 4, NTK-aware also with 8; no training. On windows of 32,768 tokens of two texts: the loss of each token by its position, and,
as a baseline that reads no further than the model's own length, the loss of the unchanged model when it starts anew every 4,096 tokens
(or 1,024) and is asked for the second half of 8,192 (or 2,048). A key of five digits hidden in the texts: by length and depth, all
arms with the same texts, places and digits; right is all five digits, in greedy writing. Once more with another number hidden
in each prompt, a decoy, in the unchanged model.

(b) Small models of bytes, trained on windows of 128: half are plain text of Austen; in a quarter a key of four signs is hidden and asked
for at the end, in a quarter a key of forty, or of a quarter of the window, which teaches copying sooner. Seeds draw weights and windows, the same for all arms. Tested at 128 to 1,024: as they are, and by method with the factor 4 (NTK-aware also 8). Then the
same after a short training on 512 bytes, with each method; after as many more steps on 128 bytes; and models that were trained on 512 bytes
from the start, with as many bytes as the others before their short training.

Predictions, written before the first run of this script. A pilot of 4 windows and 8 keys a cell was known: unchanged, the loss was
flat to 10,000 tokens and 5.5 at 16,000, keys were found to 1,024 always, at 4,096 often, at 12,000 never.

P1  Unchanged, the loss at 12,288 to 16,384 is more than 0.5 above that at 4,096 to 8,192, on both texts. A rise below 0.1 on
    either would change my mind: then unseen angles do not matter here.
P2  On the first 2,048 tokens, where nothing needs changing, PI 4 costs more than NTK 4 and YaRN 4, by more than 0.05 each. I would
    give up that squeezing near distances is what PI pays for if PI 4 cost less than either.
P3  NTK 4 leaves the pairs between fastest and slowest with angles that training never showed. So at 24,576 to 32,768 NTK 8 has a lower
    loss than NTK 4, and YaRN 4, which leaves none, a lower one than NTK 4. If NTK 4 is the lower one, unseen angles are not what counts.
P4  No arm's loss at 16,384 to 32,768 is lower by more than 0.02 than that of the model which starts anew within its own 8,192
    tokens: what the formulas buy is not a use of the far text. An arm that is lower by 0.05 on both texts would refute it.
P5  There is an arm whose loss at 16,384 to 32,768 is within 0.15 of its loss at 4,096 to 8,192 while its share of keys falls by 0.3 or
    more between 4,096 and 32,768: loss does not tell of retrieval. If every arm with a flat loss finds as many keys, I was wrong.
P6  Small models, those seeds that find 0.9 of the keys at 128, not trained further: at 512 unchanged finds fewer than a quarter of the keys, and the best method at least 0.2 more.
P7  After the short training on 512 bytes every arm, unchanged included, finds 0.9 of the keys at 512, and the spread between the means of
    the arms is less than a third of what it was before. The control that trains on at 128 gains less than 0.1 at 512. If unchanged stays
    0.2 below the others after it, the formulas give something that this training does not.
P8  At 1,024, twice what the short training showed, every arm falls by more than 0.2 again.

Each part stops at its number or by the clock, for all arms at the same point, and the record says what was reached.
Writes course/data/records/long_context.json, and a copy into $OUT if that is set.
"""

import argparse
import itertools
import math
import os
import shutil
import sys
import time
from pathlib import Path

BEGAN = time.time()
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from course import data, pretrained  # noqa: E402
from course.checkpoint import load_gpt  # noqa: E402
from course.long_context import (  # noqa: E402
    SIGNS_OF_A_KEY,
    V_KEYS,
    LongAttention,
    exact_answers,
    extended,
    hidden,
    hidden_keys,
    passkey,
    position_losses,
)
from course.model import GPT, Config, attend  # noqa: E402
from course.tokens import bpe_encode  # noqa: E402

TEXTS = ("austen", "shakespeare")
ARMS = {
    "unchanged": ("unchanged", 1),
    "PI 2": ("PI", 2),
    "PI 4": ("PI", 4),
    "NTK 2": ("NTK", 2),
    "NTK 4": ("NTK", 4),
    "NTK 8": ("NTK", 8),
    "YaRN 2": ("YaRN", 2),
    "YaRN 4": ("YaRN", 4),
}
LONG_KEY = 40  # signs of the keys in a quarter of the rows: they make small models learn to copy sooner
SMALL_ARMS = ("unchanged", "PI 4", "NTK 4", "NTK 8", "YaRN 4")
TUNED = ("unchanged", "PI 4", "NTK 4", "YaRN 4")
DEPTHS = [0.0, 0.25, 0.5, 0.75, 1.0]
FULL = {
    "name": "smollm2-135m",
    "length": 8192,
    "window": 32768,
    "windows": 8,
    "edges": [0, 128, 512, 2048, 4096, 8192, 12288, 16384, 20480, 24576, 28672, 32768],
    "keys": {"lengths": [1024, 2048, 4096, 8192, 16384, 32768], "trials": 24},
    "small": {"d_model": 128, "L": 4, "H": 4, "theta": 1e4, "T": 128, "B": 32, "steps": 5000, "rate": 3e-3, "seeds": 8},
    "tune": {"T": 512, "B": 8, "steps": 200, "rate": 5e-4},
    "tested": {"lengths": [128, 256, 512, 1024], "keys": 64, "windows": 32},
    "seconds": {"loss": 90, "trained": 70, "trained_512": 70, "tune": 40, "keys until": 250},
}
SMALL = {
    "name": "gpt",
    "length": 128,
    "window": 512,
    "windows": 2,
    "edges": [0, 32, 128, 256, 512],
    "keys": {"lengths": [128, 512], "trials": 2},
    "small": {"d_model": 32, "L": 2, "H": 2, "theta": 1e4, "T": 32, "B": 16, "steps": 40, "rate": 2e-3, "seeds": 2},
    "tune": {"T": 128, "B": 4, "steps": 4, "rate": 5e-4},
    "tested": {"lengths": [32, 128], "keys": 4, "windows": 2},
    "seconds": {"loss": 10, "trained": 5, "trained_512": 5, "tune": 8, "keys until": 22},
}


def since() -> float:
    return time.time() - BEGAN


def say(*what) -> None:
    print(f"{since():6.1f} s", *what, flush=True)


def means(losses: Tensor, edges: list[int]) -> list[float]:
    """Mean loss between each two edges: losses (T − 1,), the loss at position p being that of the token p + 1."""
    return [round(float(losses[a:b].mean()), 4) for a, b in itertools.pairwise(edges)]


# ---------------------------------------------------------------- (a) a trained model


class Reader:
    """The trained model, its arms and its texts as tokens."""

    def __init__(self, settings: dict, device: str):
        self.device, self.cuda = device, device == "cuda"
        if settings["name"] == "gpt":
            model, merges = load_gpt()
            self.encode = lambda text: bpe_encode(text, merges)
        else:
            model, tokenizer = pretrained.load(settings["name"]), pretrained.tokenizer(settings["name"])
            self.encode = lambda text: tokenizer.encode(text, errors="ignore")
        model = model.to(device).requires_grad_(False)
        self.arms = {name: extended(model, method, s, settings["length"]) for name, (method, s) in ARMS.items()}
        need, self.texts = settings["windows"] * settings["window"], {}
        for name in TEXTS:
            piece = data.read(name, 6 * need)
            self.texts[name] = torch.tensor(self.encode(piece)[: 2 * need], device=device)

    def half(self):
        return torch.autocast("cuda", torch.bfloat16, enabled=self.cuda)

    @torch.no_grad()
    def losses(self, arm: str, ids: Tensor) -> Tensor:
        with self.half():
            return position_losses(self.arms[arm], ids).double().cpu()

    @torch.no_grad()
    def right(self, arm: str, prompts: Tensor, answers: Tensor) -> list[int]:
        with self.half():
            return exact_answers(self.arms[arm], prompts, answers).int().tolist()


@torch.no_grad()
def loss_by_position(reader: Reader, settings: dict) -> dict:
    """Of each text and arm, the mean losses between edges, a row for each window; and of models that start anew."""
    T, edges = settings["window"], settings["edges"]
    rows = {text: {arm: [] for arm in ARMS} for text in TEXTS}
    anew = {text: {} for text in TEXTS}
    done, began = 0, since()
    for i in range(settings["windows"]):
        if since() - began > settings["seconds"]["loss"]:
            break
        for text in TEXTS:
            ids = reader.texts[text][i * T : (i + 1) * T]
            for arm in ARMS:
                rows[text][arm].append(means(reader.losses(arm, ids[None])[0], edges))
            for length in (settings["length"], settings["length"] // 4):
                cut = ids.unfold(0, length, length // 2)  # (n, length), their second halves lie end to end
                late = torch.cat([reader.losses("unchanged", part)[:, length // 2 - 1 :] for part in cut.split(4)])
                starts = torch.arange(len(cut)) * (length // 2) + length // 2  # position of each first token asked for
                far = [float(late[k].mean()) for k in range(len(cut)) if starts[k] >= settings["window"] // 2]
                anew[text].setdefault(str(length), []).append(round(sum(far) / len(far), 4))
        done += 1
    say("loss", {t: {a: [round(sum(c) / len(c), 2) for c in zip(*r, strict=True)] for a, r in rows[t].items()} for t in TEXTS})
    return {"edges": edges, "windows": done, "rows": rows, "anew": anew}


@torch.no_grad()
def precision(reader: Reader, settings: dict) -> dict:
    """The loss of a window of the model's own length in float32, as it is read here, and by the model's own attention."""
    ids = reader.texts["austen"][None, : min(settings["length"], 2048)]
    wide = position_losses(reader.arms["unchanged"], ids).double().mean()
    return {"float32": round(float(wide), 5), "read here": round(float(reader.losses("unchanged", ids).mean()), 5)}


def prompts_of(reader: Reader, text: str, trial: int, length: int, decoy: bool) -> tuple[Tensor, Tensor]:
    """One prompt for each depth with the same digits and text: (depths, length − 4) and the answers (depths, 5)."""
    generator = torch.Generator().manual_seed(10_000 * trial + length)
    digits = lambda: "".join(str(int(d)) for d in torch.randint(10, (5,), generator=generator))  # noqa: E731
    key, other = digits(), digits()
    while other == key:
        other = digits()
    ids = reader.texts[text]
    start = int(torch.randint(len(ids) - length, (1,), generator=generator))
    filler = ids[start : start + length].tolist()
    needle = reader.encode(f"\nThe pass key is {key}. Remember it. {key} is the pass key.\n")
    question = reader.encode("\nWhat is the pass key? The pass key is")
    question, answer = question + reader.encode(" ") * (reader.encode(" " + key)[:1] == reader.encode(" ")), reader.encode(key)
    rows = []
    for depth in DEPTHS:
        around = filler
        if decoy:
            false = reader.encode(f"\nThe house number is {other}. Remember it. {other} is the house number.\n")
            at = int(torch.randint(length // 8, length - length // 8, (1,), generator=generator))
            around = filler[:at] + false + filler[at:]
        rows.append(passkey(around, needle, question, length - len(answer) + 1, depth))
    return torch.tensor(rows, device=reader.device), torch.tensor([answer] * len(DEPTHS), device=reader.device)


def keys(reader: Reader, settings: dict) -> dict:
    """By arm and length, of each depth how many keys were found; every trial is of all arms and lengths."""
    lengths, limit = settings["keys"]["lengths"], settings["seconds"]["keys until"]
    found = {arm: {str(n): [0] * len(DEPTHS) for n in lengths} for arm in [*ARMS, "decoy"]}
    done, slowest = 0, 0.0
    for trial in range(settings["keys"]["trials"]):
        began = since()
        if began + 1.2 * slowest > limit:
            break
        new = []
        for n in lengths:
            text = TEXTS[trial % len(TEXTS)]
            prompts, answers = prompts_of(reader, text, trial, n, False)
            new += [(arm, n, reader.right(arm, prompts, answers)) for arm in ARMS]
            if n <= settings["length"]:
                new.append(("decoy", n, reader.right("unchanged", *prompts_of(reader, text, trial, n, True))))
        for arm, n, right in new:
            found[arm][str(n)] = [a + b for a, b in zip(found[arm][str(n)], right, strict=True)]
        done, slowest = done + 1, max(slowest, since() - began)
        if trial in (0, 5, 11) or done == settings["keys"]["trials"]:
            say("keys, trials", done, {arm: {n: sum(v) for n, v in each.items()} for arm, each in found.items()})
    for n in lengths:
        if n > settings["length"]:
            del found["decoy"][str(n)]
    return {"depths": DEPTHS, "lengths": lengths, "trials": done, "found": found}


# ---------------------------------------------------------------- (b) small models


class Small(nn.Module):
    """A GPT as a module whose weights may be stacked: its attention is plain products, which vmap takes."""

    def __init__(self, gpt: GPT):
        super().__init__()
        self.gpt = gpt
        for block in gpt.blocks:
            block.attention.__class__ = Plain

    def forward(self, ids: Tensor) -> Tensor:
        return self.gpt.head(hidden(self.gpt, ids))


class Plain(LongAttention):
    """Without the fused kernel."""

    def forward(self, x: Tensor, positions: Tensor, cache=None) -> Tensor:
        mixed = attend(*self.project(x, positions))
        return self.out(mixed.transpose(1, 2).flatten(2))


def start(part: dict, device: str) -> tuple[GPT, dict[str, Tensor]]:
    """A model for its shape, and the weights of all seeds, stacked."""
    config = Config(V=V_KEYS, d_model=part["d_model"], n_layers=part["L"], n_heads=part["H"], theta=part["theta"])
    models = []
    for seed in range(part["seeds"]):
        torch.manual_seed(seed)
        models.append(GPT(config).to(device))
    weights, _ = torch.func.stack_module_state(models)
    return models[0], {name: each.detach().clone() for name, each in weights.items()}


def batches(text: Tensor, T: int, B: int, seeds: int, many: int, salt: int):
    """Endless batches (seeds, B, T), each seed's windows and keys from its own generator."""
    generators = [torch.Generator().manual_seed(1_000 * salt + seed) for seed in range(seeds)]
    while True:
        drawn = []
        for generator in generators:
            at = torch.randint(len(text) - T, (many * B,), generator=generator)
            rows = text[at[:, None] + torch.arange(T)].long().view(many, B, T)  # the first half of a batch is left plain
            for a, b, signs in ((B // 2, 3 * B // 4, SIGNS_OF_A_KEY), (3 * B // 4, B, LONG_KEY)):
                with_keys = hidden_keys(rows[:, a:b].flatten(0, 1), generator, signs=min(signs, T // 4))
                rows[:, a:b] = with_keys.view(many, b - a, T)
            drawn.append(rows)
        yield from torch.stack(drawn, dim=1)  # (many, seeds, B, T)


def train(
    model: GPT, weights: dict[str, Tensor], text: Tensor, T: int, B: int, part: dict, seconds: float, salt: int, device: str
):
    """All seeds at once, in place; the number of steps that were made."""
    skeleton = Small(model)
    names, values = zip(*((f"gpt.{name}", each.clone().requires_grad_(True)) for name, each in weights.items()), strict=True)
    optimiser = torch.optim.AdamW(values, lr=part["rate"], betas=(0.9, 0.95), weight_decay=0.01)
    seeds, steps, began = len(values[0]), part["steps"], since()

    def loss(parameters, ids):
        losses = F.cross_entropy(
            torch.func.functional_call(skeleton, parameters, (ids[:, :-1],)).mT, ids[:, 1:], reduction="none"
        )
        half, long = len(ids) // 2, 3 * len(ids) // 4
        text = (losses[:half].mean() + losses[half:long, :-SIGNS_OF_A_KEY].mean()) / 2
        return text + losses[half:long, -SIGNS_OF_A_KEY:].mean() + losses[long:, -min(LONG_KEY, T // 4) :].mean()

    each, source = torch.func.vmap(loss), batches(text, T, B, seeds, 50, salt)
    parameters = dict(zip(names, values, strict=True))
    for step in range(steps):
        share = max(step / steps, min(1.0, (since() - began) / seconds))  # of the steps or of the time, whichever is further
        optimiser.param_groups[0]["lr"] = part["rate"] * min(1, (step + 1) / 100) * (1 - 0.9 * share)
        now = each(parameters, next(source).to(device, non_blocking=True))  # (seeds,)
        optimiser.zero_grad()
        now.sum().backward()
        for value in values:  # each seed's gradient is clipped as if it were alone
            value.grad.clamp_(-1, 1)
        optimiser.step()
        if step % 500 == 0 or step == steps - 1:
            say("  step", step, [round(float(x), 3) for x in now.detach()])
        if share >= 1:
            break
    with torch.no_grad():
        for name, value in zip(weights, values, strict=True):
            weights[name] = value.detach().clone()
    return step + 1


@torch.no_grad()
def examine(model: GPT, weights: dict[str, Tensor], arm: str, held: Tensor, settings: dict, length: int, device: str) -> dict:
    """Of each seed: keys found by length and depth, and bits a byte by position, on text held back."""
    tested, found = settings["tested"], {"keys": [], "bits": []}
    longest, method = max(tested["lengths"]), ARMS[arm]
    edges = [0, *tested["lengths"]]
    windows = held[: tested["windows"] * longest].view(-1, longest).long().to(device)
    for seed in range(len(next(iter(weights.values())))):
        one = extended(model, *method, length)
        for name, parameter in one.named_parameters():  # shared with the model, which is only a shape
            parameter.copy_(weights[name][seed])
        rows = {}
        for n in tested["lengths"]:
            rows[str(n)] = []
            for depth in DEPTHS:
                generator = torch.Generator().manual_seed(99 + n + round(100 * depth))
                at = torch.randint(len(held) - n, (tested["keys"],), generator=generator)
                ids = hidden_keys(held[at[:, None] + torch.arange(n)].long(), generator, depth).to(device)
                rows[str(n)].append(int(exact_answers(one, ids[:, :-SIGNS_OF_A_KEY], ids[:, -SIGNS_OF_A_KEY:]).sum()))
        found["keys"].append(rows)
        found["bits"].append(
            [round(x / math.log(2), 4) for x in means(position_losses(one, windows).double().mean(dim=0), edges)]
        )
    say(" ", arm, {n: sum(sum(row[n]) for row in found["keys"]) for n in rows}, found["bits"][0])
    return found


def small_models(settings: dict, device: str) -> dict:
    """Train, change, train a little more; what was found of each arm and seed."""
    part, tune, seconds = settings["small"], settings["tune"], settings["seconds"]
    text = torch.frombuffer(bytearray(data.read("austen").encode("latin-1", "ignore")), dtype=torch.uint8)
    held, text = text[-len(text) // 10 :], text[: -len(text) // 10]
    model, weights = start(part, device)
    made = {"trained": train(extended(model), weights, text, part["T"], part["B"], part, seconds["trained"], 1, device)}
    found = {"as trained": {arm: examine(model, weights, arm, held, settings, part["T"], device) for arm in SMALL_ARMS}}
    each = seconds["tune"] / (len(TUNED) + 1)
    tuned = {}
    for arm in TUNED:
        more = dict(weights)
        skeleton = extended(model, *ARMS[arm], part["T"])
        made[f"tuned {arm}"] = train(skeleton, more, text, tune["T"], tune["B"], tune, each, 2, device)
        tuned[arm] = examine(model, more, arm, held, settings, part["T"], device)
    more = dict(weights)
    as_many = tune | {"B": tune["B"] * tune["T"] // part["T"]}
    made["more at 128"] = train(extended(model), more, text, part["T"], as_many["B"], as_many, each, 2, device)
    tuned["more at 128"] = examine(model, more, "unchanged", held, settings, part["T"], device)
    model, fresh = start(part, device)
    B = part["B"] * part["T"] // tune["T"]
    as_long = part | {"steps": made["trained"]}
    made["trained at 512"] = train(extended(model), fresh, text, tune["T"], B, as_long, seconds["trained_512"], 3, device)
    found |= {
        "tuned": tuned,
        "trained at 512": {"unchanged": examine(model, fresh, "unchanged", held, settings, tune["T"], device)},
    }
    return {"steps": made, "depths": DEPTHS} | found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="a CPU version of under a minute")
    small = parser.parse_args().small
    settings, device = (SMALL, "cpu") if small else (FULL, "cuda")
    torch.backends.cuda.matmul.allow_tf32 = True
    results = {}

    def keep() -> None:
        path = data.keep_record(
            "long_context",
            results,
            settings=settings,
            seeds=list(range(settings["small"]["seeds"])),
            interval=None,
            device=device,
            small=small,
            what="loss by position and hidden keys found beyond the length of training, by method",
            prediction="P1 to P8 of the script's docstring, written before its first run",
            null_model="the unchanged model that starts anew within its own length; more training at the old length",
            seconds=round(since(), 1),
        )
        if out := os.environ.get("OUT"):
            shutil.copy(path, out)

    reader = Reader(settings, device)
    say("texts read", {name: len(ids) for name, ids in reader.texts.items()})
    results["precision"] = precision(reader, settings)
    say(results["precision"])
    results["loss"] = loss_by_position(reader, settings)
    keep()
    results["keys"] = keys(reader, settings)
    keep()
    results["small"] = small_models(settings, device)
    keep()
    say("done")


if __name__ == "__main__":
    main()
