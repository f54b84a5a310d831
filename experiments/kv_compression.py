"""What a trained model loses when its cache is held to a budget of bytes, by the method that fills the budget.

    COURSE_MODELS=folder python experiments/kv_compression.py            # a GPU, at most --seconds 450; folder/smollm2-135m has the model
    python experiments/kv_compression.py --small                         # a CPU, under a minute: a tiny untrained model, to see that it runs

SmolLM2-135M-Instruct (30 layers, 9 heads in 3 groups, d_head 64, tuned and quantised by others) in float32 reads texts through
`course.kv_compression.read_in_blocks`. Methods are those of `course.kv_compression.METHODS`; budgets are 1/2, 1/4, 1/8 and 1/16 of the bytes that a
cache of 16-bit numbers would have at the end of the text. Counted: keys and values in their bits, step and offset of each group of
32 numbers (2 bytes each), 4 bytes for the accumulated weight of each key where a rule needs it. Not counted: positions (the keys are rotated
already) and the bases of "low rank", which do not grow with the text and were found on other places of the same two books. A method of few bits keeps the first four tokens in 16 bits and then
as many of the last as its bytes pay for.

What is approximated. Reading is teacher-forced in blocks of 32 tokens: a query sees what was kept when its block began and all of the
block before it, in full precision, so on average 16 and at most 31 keys more than the budget, the same for all methods; what a cache that is cut
after every token would do is read at blocks of 8, for some methods, as a check. A block's quantisation, projection or eviction is done
when the block has been read. Numbers are computed in float32 from the stored levels; no speed is measured.

Tasks.
- loss: nats a token of the last 1,024 of 2,048 tokens, 32 windows of each of two books. The books are old and public: the model has
  probably read them, so this is not text that it has never seen. Intervals are of the paired difference to the full cache, over windows.
- passkey: five digits, said twice in one sentence at one of five depths of 1,024 tokens of Austen, then asked for; right if the model
  would say all five. 40 texts a depth, Wilson's interval. The cache is cut before the question is known.
- copy: 32 tokens of another chapter, at three depths of 1,024 tokens; after the text come its first 8 tokens, and counted is the share of the
  other 24 that the model would say. The null is the same without the passage: what is said of it from its first words alone.
- passkey and copy are read in two ways: "stream", the cache held to its budget all along, and "once", the text read with the full cache,
  which is cut to the budget before the question.
- mass and fidelity: in a full pass over 1,024 tokens, for each head and the last 32 queries, the mass of the keys that a rule keeps and the
  relative change of the head's output, weights renormalised.

Said before the first run on the GPU. (1) Without the first four tokens a window loses more than 0.3 nats at 1/4; with them less than 0.1.
(2) At 1/4 and below, "4 bits" (more tokens, coarser) has a smaller loss than "sinks + window" in 16 bits, and "2 bits" a larger one than "4 bits" at
every budget at which both are cut. (3) A passkey outside the window is lost by "window", "sinks + window" and "random + window" (below 10 % right);
"heavy hitters" brings back between 10 % and 60 % of those at 1/4, and its loss is within 0.05 nats of "sinks + window": a ranking by loss
and one by passkey differ. (4) "value-aware" without protection of the first tokens is worse than "heavy hitters", since their values are short; with it no
worse. (5) "low rank" with no training costs more than "8 bits" at 1/2, and "one group" more than one nat at each budget. (6) "once" is better than
"stream" for heavy hitters on the passkey. (7) Of the pairs of a head and a text that keep 99 % of the mass, at least one in a hundred changes its output
by more than a tenth. What would change our mind: about (1) to (6), the paired interval, or Wilson's of the pooled depths, on the other side; if "random
+ window" equals "heavy hitters" in all tasks, the weight a key has had says nothing here; if copy is as good without the passage, it measures memory.

Writes course/data/records/kv_compression.json, and a copy into $OUT if that is set.
"""

import argparse
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

from course import data, pretrained  # noqa: E402
from course.kv_compression import METHODS, Kept, Method, chosen, principal, read_in_blocks  # noqa: E402
from course.model import GPT, Config  # noqa: E402

MODEL = "smollm2-135m"
SAY, ASK = "\n\nThe pass key is {key}. Remember it. {key} is the pass key.\n\n", "\n\nWhat is the pass key? The pass key is {key}"
FULL = {
    "budgets": [0.5, 0.25, 0.125, 0.0625],
    "block": 32,
    "loss": {"T": 2048, "windows": 32, "batch": 64},
    "passkey": {"T": 1024, "texts": 40, "depths": [0.0, 0.25, 0.5, 0.75, 1.0]},
    "copy": {"T": 1024, "texts": 40, "depths": [0.1, 0.5, 0.9], "passage": 32, "cue": 8},
    "fine": {
        "block": 8,
        "windows": 8,
        "methods": ["sinks + window", "heavy hitters", "value-aware + sinks"],
        "budgets": [0.0625],
    },
    "fidelity": {
        "T": 1024,
        "windows": 8,
        "rules": ["window", "sinks", "hitters", "value", "value and sinks"],
        "shares": [0.5, 0.25, 0.0625],
    },
}
SMALL = {
    "budgets": [0.5, 0.25],
    "block": 32,
    "loss": {"T": 128, "windows": 2, "batch": 4},
    "passkey": {"T": 96, "texts": 1, "depths": [0.0, 1.0]},
    "copy": {"T": 96, "texts": 1, "depths": [0.5], "passage": 32, "cue": 8},
    "fine": {"block": 8, "windows": 1, "methods": ["sinks + window"], "budgets": [0.25]},
    "fidelity": {"T": 128, "windows": 1, "rules": ["sinks", "value"], "shares": [0.25]},
}


class Reader:
    """The model, its tokenizer or an arithmetic one for the tiny model, and the methods with their bases."""

    def __init__(self, s: dict, device: str, tiny: bool):
        self.s, self.device = s, device
        if tiny:
            torch.manual_seed(0)
            self.model = GPT(Config(V=512, d_model=192, n_layers=2, n_heads=6, n_kv_heads=3)).requires_grad_(False).eval()
            self.encode = lambda text: [ord(c) % 512 for c in text]
        else:
            self.model = pretrained.load(MODEL).to(device)
            tokenizer = pretrained.tokenizer(MODEL)
            self.encode = lambda text: tokenizer.encode(text, errors="ignore")
        self.config = self.model.config
        self.books = {}
        for book in ("austen", "shakespeare"):
            self.books[book] = data.read(book)
        tokens = s["loss"]["T"]
        calibration = [self.piece(book, 0.001, tokens) for book in self.books]
        self.bases = principal(self.model, torch.tensor(calibration, device=device))

    def piece(self, book: str, where: float, tokens: int) -> list[int]:
        """Tokens from a place in a book, where is from 0 to 1."""
        text = self.books[book]
        start = round(where * (len(text) - 8 * tokens))
        return self.encode(text[start : start + 8 * tokens])[:tokens]

    def read(
        self, ids: Tensor, name: str, share: float, block: int, logits_from: int, T: int, **more
    ) -> tuple[Tensor, list[Kept]]:
        """Logits and what is kept at a share of the bytes of T tokens; "full" keeps all."""
        method = METHODS.get(name, Method("all"))
        n = method.keeps(share, T, self.config.d_head, self.config.kv_heads)[0]
        change = method.change(self.model, share, self.bases)
        return read_in_blocks(self.model, ids, block, method.rule, n, change, logits_from=logits_from, **more)

    def cut(self, layers: list[Kept], name: str, share: float, T: int, block: int) -> list[Kept]:
        """What a method keeps of a cache that was read in full: stored block by block as in a stream, then cut once."""
        method, few = METHODS[name], []
        n = method.keeps(share, T, self.config.d_head, self.config.kv_heads)[0]
        change = method.change(self.model, share, self.bases)
        for layer, each in enumerate(layers):
            stored = [
                change(layer, each.key[:, :, at : at + block], each.value[:, :, at : at + block], at) for at in range(0, T, block)
            ]
            key, value = (torch.cat(parts, dim=2) for parts in zip(*stored, strict=True))
            new = Kept(key, value, each.mass, each.place)
            few.append(new.only(chosen(new, method.rule, n)))
        return few


def losses(reader: Reader, name: str, share: float, block: int, ids: Tensor, batch: int) -> list[float]:
    """Nats a token of the second half of each text, ids (B, T + 1)."""
    T, found = ids.shape[1] - 1, []
    for part in ids.split(batch):
        logits, _ = reader.read(part[:, :-1], name, share, block, T // 2, T)
        each = torch.stack([F.cross_entropy(a, b) for a, b in zip(logits, part[:, T // 2 + 1 :], strict=True)])
        found += [round(float(x), 4) for x in each]
    return found


def place_in(filler: list[int], said: list[int], depth: float, T: int) -> list[int]:
    """A text of T tokens with something said at a depth."""
    at = round(depth * (T - len(said)))
    return filler[:at] + said + filler[at : T - len(said)]


def passkeys(reader: Reader) -> tuple[Tensor, Tensor, Tensor]:
    """Texts (B, T), questions with their answers (B, q), depths (B,)."""
    s, draw, rows = reader.s["passkey"], torch.Generator().manual_seed(0), []
    for i in range(s["texts"]):
        for depth in s["depths"]:
            key = str(int(torch.randint(10_000, 100_000, (1,), generator=draw)))
            filler = reader.piece("austen", (i + 0.37) / s["texts"], s["T"])
            rows.append(
                (place_in(filler, reader.encode(SAY.format(key=key)), depth, s["T"]), reader.encode(ASK.format(key=key)), depth)
            )
    return tuple(torch.tensor(each, device=reader.device) for each in zip(*rows, strict=True))


def copies(reader: Reader, given: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Texts (B, T), passages that begin anew (B, passage), depths (B,); the text lacks the passage if not given."""
    s, rows = reader.s["copy"], []
    for i in range(s["texts"]):
        for depth in s["depths"]:
            filler = reader.piece("austen", (i + 0.61) / s["texts"], s["T"])
            passage = reader.piece("austen", ((i + s["texts"] // 2 + 0.5) % s["texts"] + 0.27) / s["texts"], s["passage"])
            rows.append((place_in(filler, passage if given else [], depth, s["T"]), passage, depth))
    return tuple(torch.tensor(each, device=reader.device) for each in zip(*rows, strict=True))


def answers(reader: Reader, layers: list[Kept], asked: Tensor, T: int, known: int) -> Tensor:
    """Whether each token after the first `known` of asked (B, q) would be said, (B, q − known), with these kept keys and values."""
    logits, _ = read_in_blocks(reader.model, asked[:, :-1], asked.shape[1], start=T, layers=layers, logits_from=known - 1)
    return logits.argmax(dim=-1) == asked[:, known:]


def told(task: str, right: Tensor, depths: Tensor) -> dict:
    """By depth: of passkeys how many of all are right as a whole, of copies the shares of tokens right, one a text."""
    found = {}
    for depth in depths.unique().tolist():
        here = right[depths == depth]
        whole = here.all(dim=1)
        found[f"{depth:g}"] = (
            [int(whole.sum()), len(whole)] if task == "passkey" else [round(float(x), 3) for x in here.float().mean(dim=1)]
        )
    return found


@torch.no_grad()
def fidelity(reader: Reader) -> list[dict]:
    """Mass kept and relative change of the output, by rule and share: quantiles over heads and texts, and how many pairs keep much and change."""
    s, rows = reader.s["fidelity"], []
    T, late = s["T"], 32
    ids = torch.tensor([reader.piece("austen", (i + 0.2) / s["windows"], T) for i in range(s["windows"])], device=reader.device)
    _, layers = read_in_blocks(reader.model, ids[:, :-late], 256, logits_from=T - late - 1)
    seen: dict[int, tuple[Tensor, Kept]] = {}
    read_in_blocks(
        reader.model,
        ids[:, -late:],
        late,
        start=T - late,
        layers=layers,
        see=lambda i, w, kept: seen.update({i: (w, kept)}),
        logits_from=late - 1,
    )
    for rule in s["rules"]:
        for share in s["shares"]:
            n, masses, changes = int(share * T), [], []
            for i, (weights, now) in seen.items():
                stays = torch.zeros_like(now.place, dtype=torch.bool)  # (B, G, T)
                stays[..., : T - late].scatter_(-1, chosen(layers[i], rule, n), True)
                stays[..., T - late :] = True
                some = weights * stays[:, :, None, None]  # (B, G, H / G, late, T)
                mass, value = some.sum(dim=-1), now.value[:, :, None]
                whole, part = weights @ value, (some / mass[..., None]) @ value
                masses.append(mass.mean(dim=-1).flatten())
                changes.append(((part - whole).norm(dim=-1) / whole.norm(dim=-1)).mean(dim=-1).flatten())
            mass, change = torch.cat(masses), torch.cat(changes)
            rank = lambda x: x.argsort().argsort().double()  # noqa: E731
            row = {
                "rule": rule,
                "share": share,
                "pairs": len(mass),
                "Spearman": round(float(torch.corrcoef(torch.stack([rank(mass), rank(change)]))[0, 1]), 3),
            }
            q = torch.tensor([0.1, 0.25, 0.5, 0.75, 0.9], device=mass.device)
            row |= {
                "mass": [round(float(x), 4) for x in mass.quantile(q)],
                "change": [round(float(x), 4) for x in change.quantile(q)],
            }
            much = mass >= 0.99
            row |= {"99%": int(much.sum())} | {
                f"99%, change above {c}": int((much & (change > c)).sum()) for c in (0.05, 0.1, 0.2, 0.5)
            }
            rows.append(row)
    return rows


def cell(reader: Reader, name: str, budget: float, ids: Tensor, asked: dict, known: dict, whole: dict) -> dict[str, list[dict]]:
    """One method at one budget in all tasks."""
    w, block, d_head, G = reader.s["loss"], reader.s["block"], reader.config.d_head, reader.config.kv_heads
    found: dict[str, list[dict]] = {"loss": [], "passkey": [], "copy": []}
    kept, used = METHODS[name].keeps(budget, w["T"], d_head, G)
    row = {"method": name, "budget": budget, "tokens": kept, "bytes": round(used, 4)}
    row["nats"] = losses(reader, name, budget, block, ids, w["batch"])
    found["loss"].append(row)
    for task, (text, question, depths) in asked.items():
        T = text.shape[1]
        kept, used = METHODS[name].keeps(budget, T, d_head, G)
        row = {"method": name, "budget": budget, "tokens": kept, "bytes": round(used, 4)}
        _, layers = reader.read(text, name, budget, block, T - 1, T)
        right = answers(reader, layers, question, T, known[task])
        found[task].append(row | {"way": "stream", "right": told(task, right, depths)})
        layers = reader.cut(whole[task], name, budget, T, block)
        right = answers(reader, layers, question, T, known[task])
        found[task].append(row | {"way": "once", "right": told(task, right, depths)})
        del layers
    return found


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="few short texts, to build/records")
    parser.add_argument("--seconds", type=float, default=450, help="no cell begins after this")
    given = parser.parse_args()
    s = SMALL if given.small else FULL
    device = "cuda" if torch.cuda.is_available() and not given.small else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    tiny = given.small
    reader = Reader(s, device, tiny)
    block = s["block"]
    results: dict = {"loss": [], "passkey": [], "copy": [], "fine": [], "fidelity": fidelity(reader), "left out": []}
    print(f"fidelity {time.time() - BEGAN:.0f} s", results["fidelity"][:2], flush=True)

    w = s["loss"]
    texts = [reader.piece(book, (i + 0.5) / w["windows"], w["T"] + 1) for book in reader.books for i in range(w["windows"])]
    ids = torch.tensor(texts, device=device)  # (2 windows, T + 1), Austen first
    results["loss"].append({"method": "full", "budget": 1, "nats": losses(reader, "full", 1, 256, ids, w["batch"] // 2)})
    asked = {"passkey": passkeys(reader), "copy": copies(reader)}
    known = {"passkey": asked["passkey"][1].shape[1] - 5, "copy": s["copy"]["cue"]}
    whole = {}
    for task, (text, question, depths) in asked.items():
        T = text.shape[1]
        _, whole[task] = read_in_blocks(reader.model, text, 128, logits_from=T - 1)
        right = answers(reader, whole[task], question, T, known[task])
        results[task].append({"method": "full", "budget": 1, "way": "full", "right": told(task, right, depths)})
    text, question, depths = copies(reader, given=False)
    _, layers = read_in_blocks(reader.model, text, 128, logits_from=text.shape[1] - 1)
    right = answers(reader, layers, question, text.shape[1], known["copy"])
    results["copy"].append({"method": "not given", "budget": 1, "way": "full", "right": told("copy", right, depths)})
    del layers
    print(f"full {time.time() - BEGAN:.0f} s", {k: [r.get("right") for r in results[k]] for k in ("passkey", "copy")}, flush=True)

    jobs = [(budget, name) for budget in s["budgets"] for name in METHODS]
    jobs.sort(
        key=lambda job: job[0] not in s["budgets"][:2] and job[1] not in list(METHODS)[:10]
    )  # what may be left out comes last
    for budget, name in jobs:
        if time.time() - BEGAN > given.seconds:
            results["left out"].append([name, budget])
            continue
        try:
            for task, rows in cell(reader, name, budget, ids, asked, known, whole).items():
                results[task] += rows
        except Exception as error:  # what was found so far is kept
            results["left out"].append([name, budget, str(error)[:200]])
            print(name, budget, error, flush=True)
            continue
        nats = torch.tensor(results["loss"][-1]["nats"])
        print(
            f"{time.time() - BEGAN:4.0f} s  {budget:6.4f}  {name:24} {nats.mean():.3f}",
            [r["right"] for r in results["passkey"][-2:]],
            flush=True,
        )
    few = s["fine"]
    for name in few["methods"]:
        for budget in few["budgets"]:
            if time.time() - BEGAN > given.seconds:
                results["left out"].append([f"fine {name}", budget])
                continue
            texts = ids[: few["windows"]]
            for size in (block, few["block"]):
                nats = losses(reader, name, budget, size, texts, w["batch"])
                results["fine"].append({"method": name, "budget": budget, "block": size, "nats": nats})
    path = data.keep_record(
        "kv_compression",
        results,
        settings=s
        | {
            "model": "tiny, untrained" if tiny else MODEL,
            "precision": "float32, no TF32",
            "methods": {k: vars(m) for k, m in METHODS.items()},
        },
        seeds=[0],
        interval=None,
        device=device,
        small=given.small,
        what="loss, passkey and copying of a trained model whose cache is held to a share of its bytes",
        prediction=" ".join(__doc__.split("Said before the first run on the GPU. ")[1].split("\n\n")[0].split()),
        null_model="random + window; the passage not given",
        seconds=round(time.time() - BEGAN, 1),
    )
    print(path, f"{time.time() - BEGAN:.0f} s", flush=True)
    if os.environ.get("OUT"):
        shutil.copy(path, os.environ["OUT"])


if __name__ == "__main__":
    main()
