"""Follow one sentence: each chapter's stage of it on the chapter's page, computed there by a small GPT of our own.

`follow.js` in the site is the widgets' library, the tokenizer of chapter ch02 and the files of `book/assets` as one script;
`follow-weights.js` has the weights, which a page asks for when the reader comes near the figure.
"""

import base64
import json
from functools import cache

import numpy as np
import torch
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from book.names import place
from book.registry import ROOT, RegistryError, read_yaml
from book.render import render
from course.attention_maps import look
from course.data import record
from course.follow import load_follow, stored
from course.tokens import bpe_encode, vocabulary
from course.widgets import HERE as WIDGETS

ASSETS = ROOT / "book" / "assets"
ANCHOR = "follow"
SENTENCES = ("To be, or not to", "O, my good", "She could not", "My dear Miss", "Elizabeth was", "I am very glad to")


@cache
def stages() -> dict[str, dict[str, str]]:
    """By chapter, in the order of the model: the stage's `stage`, `name`, what it `does`, and the section that it comes `after`."""
    return read_yaml(ROOT / "book" / "reference" / "follow.yml")


# ---------------------------------------------------------------- what the site has


def script() -> str:
    """All that runs in the page."""
    tokenizer = (WIDGETS / "tokens.js").read_text(encoding="utf-8").partition("export default")[0]
    own = [(ASSETS / name).read_text(encoding="utf-8") for name in ("follow-model.js", "follow.js")]
    return "\n".join(["(() => {", (WIDGETS / "library.js").read_text(encoding="utf-8"), tokenizer, *own, "})();\n"])


@cache
def weights() -> str:
    """The weights as a script: whole numbers and their steps in base64, and where each matrix stands in them."""
    kept = stored()
    whole, exact, parts = [], [], {}
    for name, array in kept.items():
        if name in ("config", "merges") or name.endswith(".step"):
            continue
        at = sum(map(len, exact))
        if array.ndim == 1:
            parts[name] = {"columns": len(array), "from": at}
            exact.append(array.astype("<f4"))
        else:
            rows, columns = array.shape
            parts[name] = {"rows": rows, "columns": columns, "from": sum(map(len, whole)), "stepFrom": at}
            whole.append(array.ravel())
            exact.append(kept[f"{name}.step"].astype("<f4"))
    model, merges = load_follow()
    config = json.loads(str(kept["config"])) | {"d_head": model.config.d_head}
    packed = {"bytes": np.concatenate(whole), "floats": np.concatenate(exact)}
    told = {"config": config, "merges": merges, "parts": parts}
    told |= {name: base64.b64encode(array.tobytes()).decode() for name, array in packed.items()}
    return f"globalThis.FOLLOW_WEIGHTS = {json.dumps(told, separators=(',', ':'))};\n"


# ---------------------------------------------------------------- what a page has


def address(stem: str, there: set[str], prefix: str) -> str:
    """Where a chapter's stage is; empty if it has none."""
    return f"{prefix}{stem}/{stem}.html#{ANCHOR}" if stem in there & set(stages()) else ""


def placed(cells: list[NotebookNode], stem: str, there: set[str]) -> list[NotebookNode]:
    """The cells of a chapter's page with its stage at the end of its section, if it has one.

    Raises:
        RegistryError: if the chapter has no such section.
    """
    if stem not in stages():
        return cells
    title = f"## {stages()[stem]['after']}"
    sections = [number for number, cell in enumerate(cells) if cell.cell_type == "markdown" and cell.source.startswith("## ")]
    first = next((number for number in sections if cells[number].source.partition("\n")[0] == title), None)
    if first is None:
        raise RegistryError(f"follow.yml: {stem} has no section {title[3:]!r}")
    end = next((number for number in sections if number > first), len(cells))
    return [*cells[:end], new_markdown_cell(figure(stem, there)), *cells[end:]]


def figure(stem: str, there: set[str]) -> str:
    """A chapter's stage as HTML that says in words what it shows, for `follow.js` to draw."""
    here = [
        (each["name"], address(other, there, "../"), place(other), other == stem)
        for other, each in stages().items()
        if other in there
    ]
    return render(
        "follow.html",
        anchor=ANCHOR,
        stage=stages()[stem],
        text=said()[stages()[stem]["stage"]],
        sentences=json.dumps(SENTENCES),
        ways=here,
        results=record("follow")["results"],
        larger=record("training")["results"]["held_out"]["austen"]["gpt"]["bits_per_byte"],
    )


@cache
def said() -> dict[str, str]:
    """What each stage shows of the first sentence, at its last token, in words."""
    model, merges = load_follow()
    words = [f"“{piece.decode(errors='replace').strip()}”" for piece in vocabulary(merges)] + ["the start"]
    text = SENTENCES[0]
    ids = [model.config.V - 1, *bpe_encode(text, merges)]
    maps, streams = [], []

    def keep(layer: int, seen: torch.Tensor, stream: torch.Tensor):
        maps.append(seen[0])  # (H, T, T)
        streams.append(stream[0, -1].square().mean().sqrt())

    with torch.no_grad():
        logits = look(model, torch.tensor([ids]), keep)[0]  # (T, V)
    chances = logits.softmax(dim=-1)  # (T, V)
    first = maps[0][0, -1]  # (T,)
    best, seen = int(chances[-1].argmax()), int(first.argmax())
    nats = -chances[torch.arange(len(ids) - 1), torch.tensor(ids[1:])].log()
    last, size, config = words[ids[-1]], f"{float(first[seen]):.0%}", model.config
    told = {
        "tokens": f"{len(ids) - 1} tokens, " + ", ".join(f"{words[id]} is number {id}" for id in ids[1:]),
        "vectors": f"{last} is row {ids[-1]} of a table of {config.V} rows of {config.d_model} numbers",
        "positions": f"{last} is at position {len(ids) - 1}: the {config.d_head // 2} pairs of its query turn by 1, 0.32, 0.1 … radians a position",
        "scores": f"in the first head the query of {last} gives {words[ids[seen]]} the largest weight, {size}",
        "heads": f"{config.n_heads} heads in each of {config.n_layers} blocks, whose results stand side by side and go through one matrix",
        "maps": f"{config.n_heads * config.n_layers} maps of {len(ids)} by {len(ids)} weights, each row with the sum 1",
        "ffn": f"{config.d_model} numbers of {last} become {config.hidden}, bend, and become {config.d_model} again",
        "stream": f"the root mean square of {last} is {float(streams[0]):.2f} as it enters the first block and {float(streams[-1]):.2f} as it enters the last",
        "block": "two norms, attention, a feed-forward network, and two sums, one after the other",
        "logits": f"of {config.V} logits the largest is that of {words[best]}, whose probability is {float(chances[-1, best]):.0%}",
        "loss": f"the mean of −ln p over the {len(nats)} tokens is {float(nats.mean()):.2f} nats",
        "sample": f"the next token is drawn: {words[best]} with a probability of {float(chances[-1, best]):.0%}",
    }
    return {
        stage: f"“{text}” in a GPT of {sum(p.numel() for p in model.parameters()):,} parameters: {sentence}."
        for stage, sentence in told.items()
    }
