"""Three scores and a temperature: what becomes of the probabilities and of their entropy."""

import math

import torch
import traitlets

from course.softmax_and_cross_entropy import entropy, softmax
from course.widgets import Widget, esm

__all__ = ["TemperatureBars"]


class TemperatureBars(Widget):
    """Sliders for three scores and τ; bars of softmax(z/τ), and the curve of the entropy over τ.

    Args:
        scores: three numbers between −8 and 8.
        tau: between 0.1 and 5.

    Raises:
        traitlets.TraitError: if a value is outside its range.
    """

    stem = "softmax_and_cross_entropy"
    _esm = esm(stem)
    scores = traitlets.List(traitlets.CFloat(min=-8, max=8), default_value=[2.0, 1.0, 0.0], minlen=3, maxlen=3).tag(sync=True)
    tau = traitlets.Float(1.0, min=0.1, max=5.0).tag(sync=True)

    def describe(self) -> str:
        logits = torch.tensor(self.scores, dtype=torch.float64)
        probs = softmax(logits, self.tau)
        scores, percent = ", ".join(f"{s:.1f}" for s in self.scores), ", ".join(f"{p:.3f}" for p in probs)
        h, top = float(entropy(probs)), math.log(len(self.scores))
        return f"Scores {scores} at temperature {self.tau:.2f} give the probabilities {percent}. Their entropy is {h:.3f} of at most {top:.3f} nats."
