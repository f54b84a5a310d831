"""A compute budget, and the parameters and tokens that a fitted law would buy with it."""

import traitlets

from course.training import PUBLISHED, REFIT, Law, chinchilla_loss, chinchilla_opt
from course.widgets import Widget, esm, scientific

__all__ = ["ComputeBudget", "amount"]


class ComputeBudget(Widget):
    """A slider for the compute C and a switch between two fits; the loss of all models that cost C, and the best of them.

    Args:
        exponent: C is 10 to this power in FLOPs, 18 to 26.
        refit: the constants of the refit instead of the published ones.

    Raises:
        traitlets.TraitError: if `exponent` is outside its range.
    """

    stem = "training"
    _esm = esm(stem)
    exponent = traitlets.Float(23.8, min=18.0, max=26.0).tag(sync=True)
    refit = traitlets.Bool(False).tag(sync=True)

    @property
    def law(self) -> Law:
        """The fit that is chosen."""
        return REFIT if self.refit else PUBLISHED

    def best(self) -> tuple[float, float, float]:
        """Parameters, tokens and loss at the optimum."""
        N, D = chinchilla_opt(10**self.exponent, self.law)
        return N, D, chinchilla_loss(N, D, self.law)

    def describe(self) -> str:
        N, D, loss = self.best()
        name = "refit" if self.refit else "published fit"
        return (
            f"With {scientific(10**self.exponent)} FLOPs the {name} asks for {amount(N)} parameters and {amount(D)} tokens, "
            f"{D / N:.1f} tokens a parameter, and expects a loss of {loss:.2f} nats a token."
        )


def amount(x: float) -> str:
    """Three digits and a word."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if x >= size:
            return f"{x / size:.2f} {word}"
    return f"{x:.0f}"
