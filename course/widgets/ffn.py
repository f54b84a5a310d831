"""Activation functions to choose from and to compare."""

import torch
import traitlets

from course.ffn import ACTIVATIONS
from course.widgets import Widget, esm

__all__ = ["GRID", "NAMES", "ActivationChooser", "at", "largest_gap"]

NAMES = list(ACTIVATIONS)
GRID = torch.arange(-400, 401, dtype=torch.float64) / 100  # where the largest difference is looked for


def at(name: str, x: float) -> tuple[float, float]:
    """Value and slope of the activation function at x; at its corner the slope of ReLU is given as 0."""
    here = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    value = ACTIVATIONS[name](here)
    (slope,) = torch.autograd.grad(value, here)
    return value.item(), slope.item()


def largest_gap(name: str, other: str) -> float:
    """The largest distance of the two between −4 and 4, on a grid of steps of 0.01."""
    return (ACTIVATIONS[name](GRID) - ACTIVATIONS[other](GRID)).abs().max().item()


class ActivationChooser(Widget):
    """Two activation functions, a point that moves, and the difference of the two.

    Args:
        name, other: of `course.ffn.ACTIVATIONS`.
        x: −4 to 4.

    Raises:
        traitlets.TraitError: if there is no such function, or x is outside its range.
    """

    stem = "ffn"
    _esm = esm(stem)
    name = traitlets.Enum(NAMES, "GELU").tag(sync=True)
    other = traitlets.Enum(NAMES, "ReLU").tag(sync=True)
    x = traitlets.Float(-0.75, min=-4.0, max=4.0).tag(sync=True)

    def describe(self) -> str:
        (value, slope), (theirs, _) = at(self.name, self.x), at(self.other, self.x)
        if self.name == self.other:
            compared = "It is compared with itself."
        else:
            gap = largest_gap(self.name, self.other)
            compared = f"{self.other} has {theirs:.4f} there. Between −4 and 4 they differ by at most {gap:.4f}."
        told = f"{self.name} at x = {self.x:.2f}: value {value:.4f}, slope {slope:.4f}. {compared}"
        return told.replace("-0.0000", "0.0000").replace("-0.00,", "0.00,").replace("-", "−")
