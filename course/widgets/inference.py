"""Ten tokens, a temperature and two filters: what is drawn from."""

import math

import torch
import traitlets

from course.inference import keep_min_p, keep_top_p
from course.widgets import Widget, esm

__all__ = ["TOKENS", "Filters"]

TOKENS = ["very", "not", "so", "a", "the", "in", "now", "of", "blue", "xylophone"]


class Filters(Widget):
    """Sliders for τ, top-p and min-p over one distribution; bars of what the model says and of what is drawn from.

    Args:
        logits: ten numbers between −8 and 8, one a token.
        tau: temperature, between 0.2 and 4.
        top_p: between 0.05 and 1; 1 keeps all.
        min_p: between 0 and 1; 0 keeps all.
        last: whether the temperature comes after the filters instead of before.

    Raises:
        traitlets.TraitError: if a value is outside its range.
    """

    stem = "inference"
    _esm = esm(stem)
    logits = traitlets.List(
        traitlets.CFloat(min=-8, max=8), [3.2, 2.6, 2.1, 1.7, 1.2, 0.8, 0.3, -0.2, -0.8, -1.5], minlen=10, maxlen=10
    ).tag(sync=True)
    tau = traitlets.Float(1.0, min=0.2, max=4.0).tag(sync=True)
    top_p = traitlets.Float(0.9, min=0.05, max=1.0).tag(sync=True)
    min_p = traitlets.Float(0.0, min=0.0, max=1.0).tag(sync=True)
    last = traitlets.Bool(False).tag(sync=True)

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
        kept = [f"{token} {float(p):.3f}" for token, p in zip(TOKENS, probs, strict=True) if p > 0]
        return (
            f"At temperature {self.tau:.2f} with top-p {self.top_p:.2f} and min-p {self.min_p:.2f}, the temperature "
            f"{'last' if self.last else 'first'}, {len(kept)} of {len(TOKENS)} tokens are left: {', '.join(kept)}."
        )
