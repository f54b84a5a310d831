"""Three words, a − b + c, and what comes nearest."""

import torch
import traitlets

from course.embeddings import austen_vectors
from course.widgets import Widget, esm

__all__ = ["SHOWN", "WORDS", "WordSums"]

WORDS = [
    "he",
    "she",
    "him",
    "her",
    "his",
    "himself",
    "herself",
    "man",
    "woman",
    "men",
    "women",
    "girl",
    "father",
    "mother",
    "brother",
    "sister",
    "son",
    "daughter",
    "uncle",
    "aunt",
    "husband",
    "wife",
    "gentleman",
    "lady",
    "is",
    "was",
    "has",
    "had",
    "go",
    "went",
    "come",
    "came",
    "see",
    "saw",
    "know",
    "knew",
    "think",
    "thought",
    "take",
    "took",
    "bingley",
    "netherfield",
    "darcy",
    "pemberley",
    "bennet",
    "longbourn",
    "woodhouse",
    "hartfield",
    "weston",
    "randalls",
    "elliot",
    "kellynch",
    "bertram",
    "mansfield",
    "happy",
    "miserable",
    "good",
    "bad",
    "letter",
    "house",
]
SHOWN = 8  # bars


class WordSums(Widget):
    """Choose three words and see which are nearest to a − b + c, with the three themselves or without.

    Args:
        a, b, c: words of `WORDS`.
        exclude: whether the three are left out.

    Raises:
        traitlets.TraitError: if a word is not one of those.
    """

    stem = "embeddings"
    _esm = esm(stem)
    words = traitlets.List(traitlets.Unicode(), WORDS).tag(sync=True)
    products = traitlets.List(traitlets.List(traitlets.Int())).tag(sync=True)  # thousandths of the inner products
    a = traitlets.Enum(WORDS, "woman").tag(sync=True)
    b = traitlets.Enum(WORDS, "man").tag(sync=True)
    c = traitlets.Enum(WORDS, "brother").tag(sync=True)
    exclude = traitlets.Bool(False).tag(sync=True)

    def __init__(self, **chosen):
        names, E = austen_vectors()
        rows = E[[names.index(word) for word in WORDS]].double()  # (n, d)
        super().__init__(products=(1000 * rows @ rows.T).round().int().tolist(), **chosen)

    def ranked(self) -> list[tuple[str, float]]:
        """The nearest words and their cosines, the nearest first."""
        gram = torch.tensor(self.products, dtype=torch.float64) / 1000  # (n, n)
        a, b, c = (WORDS.index(word) for word in (self.a, self.b, self.c))
        along = gram[:, a] - gram[:, b] + gram[:, c]  # (n,): inner products with a − b + c
        length = (along[a] - along[b] + along[c]).clamp(min=1e-9).sqrt()
        order = sorted(range(len(WORDS)), key=lambda w: (-float(along[w]), w))
        kept = [w for w in order if not (self.exclude and w in (a, b, c))]
        return [(WORDS[w], float(along[w] / length)) for w in kept[:SHOWN]]

    def describe(self) -> str:
        best, cosine = self.ranked()[0]
        kind = "one of the three" if best in (self.a, self.b, self.c) else "a new word"
        rule = "with the three left out" if self.exclude else "with all words allowed"
        return f"{self.a} − {self.b} + {self.c}, {rule}: nearest of {len(WORDS)} words is {best}, {kind}, with the cosine {cosine:.2f}."
