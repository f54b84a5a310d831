"""Backpropagation through the smallest network, one step at a time."""

import math

import traitlets

from course.widgets import Widget, esm

__all__ = ["LABELS", "STEPS", "BackpropSteps", "walk"]

STEPS = 5


def walk(x: float, w1: float, w2: float, y: float) -> dict[str, tuple[float, float]]:
    """(value, slope of the loss) of each node of (w2 tanh(w1 x) − y)², from the loss back."""
    a = math.tanh(w1 * x)
    prediction = w2 * a
    d_prediction = 2 * (prediction - y)
    d_z = d_prediction * w2 * (1 - a * a)
    return {
        "loss": ((prediction - y) ** 2, 1.0),
        "prediction": (prediction, d_prediction),
        "w2": (w2, d_prediction * a),
        "a": (a, d_prediction * w2),
        "z": (w1 * x, d_z),
        "w1": (w1, d_z * x),
    }


class BackpropSteps(Widget):
    """The computation graph of (w₂ tanh(w₁ x) − y)² with values, and slopes as far as the walk back has come.

    Args:
        x, w1, w2, y: between −3 and 3.
        step: how far the walk back has come, 0 to 5.

    Raises:
        traitlets.TraitError: if a value is outside its range.
    """

    stem = "mlp_and_backprop"
    _esm = esm(stem)
    x = traitlets.Float(2.0, min=-3, max=3).tag(sync=True)
    w1 = traitlets.Float(0.5, min=-3, max=3).tag(sync=True)
    w2 = traitlets.Float(-1.0, min=-3, max=3).tag(sync=True)
    y = traitlets.Float(1.0, min=-3, max=3).tag(sync=True)
    step = traitlets.Int(0, min=0, max=STEPS).tag(sync=True)

    def describe(self) -> str:
        nodes = walk(self.x, self.w1, self.w2, self.y)
        said = (
            f"For x = {self.x:.1f}, w₁ = {self.w1:.1f}, w₂ = {self.w2:.1f} and y = {self.y:.1f} the prediction is "
            f"{nodes['prediction'][0]:.3f} and the loss {nodes['loss'][0]:.3f}. "
        )
        if self.step == 0:
            return said + "The walk back has not begun."
        found = [name for name, at in zip(nodes, (1, 2, 3, 3, 4, 5), strict=True) if at == self.step]
        return said + " ".join(f"The slope of the loss in {LABELS[name]} is {nodes[name][1]:.3f}." for name in found)


LABELS = {"loss": "itself", "prediction": "the prediction", "w2": "w₂", "a": "a", "z": "z", "w1": "w₁"}
