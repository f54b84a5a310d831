"""One sentence, 270 heads of a trained model: where does each look from a word?"""

import base64

import torch
import traitlets

from course.attention_maps import kept_maps
from course.widgets import Widget, esm

__all__ = ["SCORES", "HeadBrowser"]

SCORES = {
    "previous": "weight on the token before",
    "first": "weight on the first token",
    "same": "weight on earlier copies of the token",
    "itself": "weight on itself",
}


def _packed() -> str:
    """The lower triangles of all heads, row by row, a byte for each weight, as base64."""
    weights = kept_maps().weights
    rows, columns = torch.tril_indices(*weights.shape[-2:])
    return base64.b64encode((255 * weights[..., rows, columns]).round().to(torch.uint8).numpy().tobytes()).decode()


class HeadBrowser(Widget):
    """A sentence and a wall of 270 heads: choose a word and a head, see where it looks; sort the heads by a score.

    Args:
        layer: 0 to 29.
        head: 0 to 8.
        word: the place of the token that looks, 0 to 21.
        by: the score that shades and sorts the heads, a name of `SCORES`.

    Raises:
        traitlets.TraitError: if a value is outside its range.
    """

    stem = "attention_maps"
    _esm = esm(stem)
    layer = traitlets.Int(9, min=0, max=29).tag(sync=True)
    head = traitlets.Int(2, min=0, max=8).tag(sync=True)
    word = traitlets.Int(8, min=0, max=21).tag(sync=True)
    by = traitlets.Enum(list(SCORES), "previous").tag(sync=True)
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    packed = traitlets.Unicode().tag(sync=True)

    def __init__(self, **given):
        super().__init__(tokens=kept_maps().tokens, packed=_packed(), **given)

    def scores(self) -> torch.Tensor:
        """The chosen score of each head, (L · H,), in float64."""
        weights = (255 * kept_maps().weights).round().double().flatten(0, 1)  # (heads, T, T), whole numbers
        T = weights.shape[-1]
        names = [token.strip() for token in self.tokens]
        pairs = {
            "previous": [(i, i - 1) for i in range(1, T)],
            "first": [(i, 0) for i in range(1, T)],
            "itself": [(i, i) for i in range(1, T)],
            "same": [(i, j) for i in range(T) for j in range(i) if names[i] == names[j]],
        }[self.by]
        queries = len({i for i, _ in pairs})
        return sum(weights[:, i, j] for i, j in pairs) / (255 * queries)

    def describe(self) -> str:
        place = self.layer * 9 + self.head
        row = (255 * kept_maps().weights[self.layer, self.head, self.word]).round().int().tolist()
        most = sorted(range(self.word + 1), key=lambda j: (-row[j], j))[:3]
        looks = ", ".join(f"{row[j] / 255:.2f} on “{self.tokens[j].strip()}” (token {j})" for j in most)
        scores = self.scores()
        rank = 1 + sorted(range(len(scores)), key=lambda k: (-float(scores[k]), k)).index(place)
        return (
            f"Layer {self.layer}, head {self.head}, from “{self.tokens[self.word].strip()}” (token {self.word}): {looks}. Its mean "
            f"{SCORES[self.by]} is {float(scores[place]):.2f}, rank {rank} of {len(scores)}."
        )
