"""Gradient descent on x²: where ten steps lead at any learning rate."""

import traitlets

from course.gradients_and_descent import gd_1d
from course.widgets import Widget, esm

__all__ = ["STEPS", "DescentSteps", "course_of"]

STEPS = 10


class DescentSteps(Widget):
    """Sliders for the learning rate and the start; the walk on the parabola and x against the step.

    Args:
        rate: between 0.01 and 1.2.
        start: between −4 and 4.

    Raises:
        traitlets.TraitError: if a value is outside its range.
    """

    stem = "gradients_and_descent"
    _esm = esm(stem)
    rate = traitlets.Float(0.1, min=0.01, max=1.2).tag(sync=True)
    start = traitlets.Float(3.0, min=-4, max=4).tag(sync=True)

    def describe(self) -> str:
        factor = 1 - 2 * self.rate
        end = gd_1d(lambda x: 2 * x, self.start, self.rate, STEPS)[-1]
        return (
            f"Descent on x² from {self.start:.1f} with learning rate {self.rate:.2f}: each step multiplies x by {factor:.2f}, "
            f"so it {course_of(factor)}. After {STEPS} steps x is {end:.3f}."
        )


def course_of(factor: float) -> str:
    """What repeated multiplication by `factor` does, in words."""
    size = round(abs(factor), 9)
    if size > 1:
        return "jumps from side to side and flies apart"
    if size == 1:
        return "jumps from side to side for ever"
    if size == 0:
        return "arrives in one step"
    return "comes down on one side" if factor > 0 else "jumps from side to side and comes down"
