"""The γ atlas with free axes: models as dots, a brush over some of them, and what they have in common."""

from statistics import median

import traitlets

from course.gamma_atlas import SETTING
from course.widgets import Widget, esm

__all__ = ["AXES", "COLOURS", "Atlas"]

AXES = (
    "gamma", "gamma_relative", "gamma_pade", "gamma_untrained", "gamma_shuffled", "heads_50", "theta", "T", "text", "n_layers", "d_model",
    "tokens", "seed", "bits", "R2_power", "first", "entropy",
)  # fmt: skip
COLOURS = ("text", "theta", "T", "n_layers", "d_model", "tokens", "seed")
LOGARITHMIC = ("theta", "T", "n_layers", "d_model", "tokens")


class Atlas(Widget):
    """Two columns of the atlas against each other, a dot for each model.

    Args:
        models: rows of the atlas with the columns of `AXES`, some of which may be missing, and of `SETTING`; others are left out.
        x, y: what is drawn across and up.
        colour: what the dots' colours tell, one of `COLOURS`.
        brush: left, right, bottom and top of a rectangle, as shares of the frame.

    Raises:
        traitlets.TraitError: if a column or a share is none of these.
    """

    stem = "gamma_atlas"
    _esm = esm(stem)
    models = traitlets.List(traitlets.Dict()).tag(sync=True)
    x = traitlets.Enum(AXES, "theta").tag(sync=True)
    y = traitlets.Enum(AXES, "gamma").tag(sync=True)
    colour = traitlets.Enum(COLOURS, "text").tag(sync=True)
    brush = traitlets.List(traitlets.Float(min=0, max=1), default_value=[0.0, 1.0, 0.0, 1.0], minlen=4, maxlen=4).tag(sync=True)

    @traitlets.validate("models")
    def _fewer_columns(self, proposal) -> list[dict]:
        return [{name: row[name] for name in (*AXES, *SETTING) if name in row} for row in proposal["value"]]

    def brushed(self) -> list[dict]:
        """The models whose dots lie in the brush."""
        left, right, bottom, top = self.brush
        across, up = self._shares(self.x), self._shares(self.y)
        return [row for row, a, b in zip(self.models, across, up, strict=True) if left <= a <= right and bottom <= b <= top]

    def _shares(self, name: str) -> list[float]:
        """Where the models stand on an axis, as shares of its length."""
        from math import log10

        values = [row[name] for row in self.models]
        kinds = sorted(set(values))
        places = [kinds.index(v) if isinstance(v, str) else log10(v) if name in LOGARITHMIC else v for v in values]
        low, high = min(places, default=0), max(places, default=0)
        room = 0.06 * (high - low or 1)
        return [(place - low + room) / (high - low + 2 * room) for place in places]

    def describe(self) -> str:
        chosen = self.brushed()
        head = f"{len(chosen)} of {len(self.models)} models"
        if not chosen:
            return f"{head} are in the brush."
        gammas = [row["gamma"] for row in chosen]
        kinds = {name: {str(row[name]) for row in chosen} for name in SETTING}
        free = [f"{name} ({len(found)})" for name, found in kinds.items() if len(found) > 1]
        return (
            f"{head}: γ from {min(gammas):.2f} to {max(gammas):.2f}, median {median(gammas):.2f}; "
            f"different in {', '.join(free) or 'the seed only'}."
        )
