"""Pairs to remember: a list that grows, a window, a sum and a corrected square of fixed size."""

import torch
import traitlets
from torch import Tensor
from torch.nn import functional as F

from course.widgets import Widget, esm

__all__ = ["MEMORIES", "MOST", "WIDTH", "Taxonomy"]

WIDTH, MOST, WINDOW, SHARPNESS = 8, 24, 4, 30.0
MEMORIES = ("list", "window", "sum", "corrected")


class Taxonomy(Widget):
    """Which of the pairs that were fed each memory still answers right: its own value is the nearest of all that were fed.

    Args:
        n: pairs fed, 1 to 24.
        asked: number of the pair that is looked at, counted from 1.

    Raises:
        traitlets.TraitError: if a value is none of these.
    """

    stem = "taxonomy"
    _esm = esm(stem)
    keys_of = traitlets.List().tag(sync=True)
    values_of = traitlets.List().tag(sync=True)
    n = traitlets.Int(10, min=1, max=MOST).tag(sync=True)
    asked = traitlets.Int(1, min=1, max=MOST).tag(sync=True)

    def __init__(self, **state):
        draw = torch.Generator().manual_seed(3)
        key, value = (torch.randn(MOST, WIDTH, generator=draw, dtype=torch.float64) for _ in range(2))
        rounded = [[[round(x, 3) for x in row] for row in each.tolist()] for each in (F.normalize(key, dim=-1), value)]
        super().__init__(keys_of=rounded[0], values_of=rounded[1], **state)

    def answers(self) -> dict[str, Tensor]:
        """What each memory gives to the keys that were fed, (n, 8) each."""
        key, value = (torch.tensor(each[: self.n], dtype=torch.float64) for each in (self.keys_of, self.values_of))
        state = torch.zeros(WIDTH, WIDTH, dtype=torch.float64)
        for k, v in zip(key, value, strict=True):
            k = k / k.norm()
            state += k[:, None] * (v - k @ state)
        scores, last = SHARPNESS * key @ key.mT, max(self.n - WINDOW, 0)
        made = {"list": scores.softmax(dim=-1) @ value, "window": scores[:, last:].softmax(dim=-1) @ value[last:]}
        return made | {"sum": key @ (key.mT @ value), "corrected": key @ state}

    def taken_for(self) -> dict[str, list[int]]:
        """Whose value each answer is nearest to, counted from 1."""
        value = torch.tensor(self.values_of[: self.n], dtype=torch.float64)
        return {name: (torch.cdist(out, value).argmin(dim=-1) + 1).tolist() for name, out in self.answers().items()}

    def describe(self) -> str:
        taken = self.taken_for()
        right = ", ".join(f"{name} {sum(x == i for i, x in enumerate(each, 1))}" for name, each in taken.items())
        said = f"Of {self.n} pairs answered right: {right}. The list keeps {2 * WIDTH * self.n} numbers, the others at most 64."
        if self.asked > self.n:
            return f"{said} Pair {self.asked} has not been fed."
        given = ", ".join(f"{name} {each[self.asked - 1]}" for name, each in taken.items())
        return f"{said} Asked for pair {self.asked}, they answer with the value of pair: {given}."
