"""A prompt, the ten words that follow its last one in Jane Austen, a temperature and two filters: what is drawn from."""

import itertools
import json
import math
import re
from collections import Counter

import torch
import traitlets

from course.data import HERE as DATA
from course.data import read
from course.inference import keep_min_p, keep_top_p
from course.widgets import Widget, esm

__all__ = ["KEPT", "Filters", "followers"]

KEPT = DATA / "austen_followers.json"
WORDS, SHOWN = 250, 10


def followers() -> dict:
    """The `WORDS` most frequent words of Jane Austen's novels, and for each the ten that follow it most often.

    A full stop, also for a question and an exclamation mark, is a word, and what opens a text is the word "". A follower is its place in
    `words` and the logarithm of its share of all that follow, in thousandths. `KEPT` is this, written once.
    """
    found = re.findall(r"[A-Za-z]+(?:['’][a-z]+)?|[.!?]", read("austen"))
    written = Counter(found)
    text = ["." if word in "!?" else word if written[word] >= written[word.lower()] else word.lower() for word in found]
    pairs, counts = Counter(itertools.pairwise(text)), Counter(text)
    top = ["", *(word for word, _ in counts.most_common(WORDS))]
    after = {word: Counter() for word in top}
    for (one, other), n in pairs.items():
        if one in after:
            after[one][other] = n
    after[""] = after["."]
    words = list(dict.fromkeys([*top, *(other for word in top for other, _ in after[word].most_common(SHOWN))]))
    place = {word: i for i, word in enumerate(words)}
    table = [
        [[place[other], round(1000 * math.log(n / after[word].total()))] for other, n in after[word].most_common(SHOWN)]
        for word in top
    ]
    return {"words": words, "followers": table}


class Filters(Widget):
    """A prompt to edit, sliders for τ, top-p and min-p over what may come next, and a button that draws it.

    Args:
        prompt: its last word decides what may come next; one that is not in the table counts as the start of a text.
        logits: ten numbers between −8 and 8, one a token, instead of those of the prompt.
        tau: temperature, between 0.2 and 4.
        top_p: between 0.05 and 1; 1 keeps all.
        min_p: between 0 and 1; 0 keeps all.
        last: whether the temperature comes after the filters instead of before.

    Raises:
        traitlets.TraitError: if a value is outside its range.
    """

    stem = "inference"
    _esm = esm(stem)
    prompt = traitlets.Unicode("She was").tag(sync=True)
    tokens = traitlets.List(traitlets.Unicode(), minlen=10, maxlen=10).tag(sync=True)
    logits = traitlets.List(traitlets.CFloat(min=-8, max=8), minlen=10, maxlen=10).tag(sync=True)
    table = traitlets.Unicode().tag(sync=True)  # JSON of `followers`, as one line of a notebook
    tau = traitlets.Float(1.0, min=0.2, max=4.0).tag(sync=True)
    top_p = traitlets.Float(0.9, min=0.05, max=1.0).tag(sync=True)
    min_p = traitlets.Float(0.0, min=0.0, max=1.0).tag(sync=True)
    last = traitlets.Bool(False).tag(sync=True)

    def __init__(self, **given):
        kept = KEPT.read_text(encoding="utf-8").strip()
        table = json.loads(kept)
        words = table["words"]
        ending = (re.findall(r"[A-Za-z]+(?:['’][a-z]+)?|[.!?]", given.get("prompt", "She was")) or [""])[-1]
        ending = "." if ending in "!?" else ending
        known = [word for word in (ending, ending.lower()) if word in words[: len(table["followers"])]]
        row = table["followers"][words.index(known[0]) if known else 0]
        next_ = {"tokens": [words[i] for i, _ in row], "logits": [thousandths / 1000 for _, thousandths in row]}
        super().__init__(**({"table": kept} | next_ | given))

    def drawn(self) -> torch.Tensor:
        """The probabilities (10,) of what is drawn from, 0 for what is filtered out."""
        logits = torch.tensor(self.logits, dtype=torch.float64)
        seen = logits if self.last else logits / self.tau
        kept = keep_top_p(seen, self.top_p)
        if self.min_p > 0:
            kept = kept.where(keep_min_p(seen, self.min_p) > -math.inf, -math.inf)
        return (kept / self.tau if self.last else kept).softmax(dim=-1)

    def describe(self) -> str:
        probs = self.drawn()
        kept = [f"{token} {float(p):.3f}" for token, p in zip(self.tokens, probs, strict=True) if p > 0]
        return (
            f"After “{self.prompt.split()[-1] if self.prompt.split() else '…'}”, at temperature {self.tau:.2f} with top-p {self.top_p:.2f} and min-p {self.min_p:.2f}, the temperature "
            f"{'last' if self.last else 'first'}, {len(kept)} of {len(self.tokens)} tokens are left: {', '.join(kept)}."
        )
