"""A race in a bowl: plain descent, the heavy ball and Adam from one start."""

import torch
import traitlets

from course.optimisers_and_schedules import bowl, optimiser, walk
from course.widgets import Widget, esm, scientific

__all__ = ["KAPPA", "START", "STEPS", "OptimiserRace", "ended"]

STEPS = 60
KAPPA = 25
START = [-1.2, 0.5]


class OptimiserRace(Widget):
    """Sliders for the bowl's angle, the rates and β; the three paths, and the loss against the step.

    Args:
        angle: of the flat axis, 0 to 90 degrees.
        rate: of plain descent and the heavy ball, 0.002 to 0.1.
        beta: of the heavy ball and, as β₁, of Adam, 0 to 0.98.
        adam_rate: 0.01 to 0.5.

    Raises:
        traitlets.TraitError: if a value is outside its range.
    """

    stem = "optimisers_and_schedules"
    _esm = esm(stem)
    angle = traitlets.Int(0, min=0, max=90).tag(sync=True)
    rate = traitlets.Float(0.04, min=0.002, max=0.1).tag(sync=True)
    beta = traitlets.Float(0.9, min=0.0, max=0.98).tag(sync=True)
    adam_rate = traitlets.Float(0.1, min=0.01, max=0.5).tag(sync=True)

    def losses(self) -> dict[str, torch.Tensor]:
        """The loss divided by its start, (STEPS + 1,), of each of the three."""
        A, start = bowl(KAPPA, self.angle), torch.tensor(START, dtype=torch.float64)
        rates = {"SGD": self.rate, "heavy ball": self.rate, "Adam": self.adam_rate}
        paths = {rule: walk(optimiser(rule, rate, beta=self.beta), A, start, STEPS) for rule, rate in rates.items()}
        values = {rule: (path @ A * path).sum(dim=1) for rule, path in paths.items()}
        return {rule: value / value[0] for rule, value in values.items()}

    def describe(self) -> str:
        last = {rule: float(loss[-1]) for rule, loss in self.losses().items()}
        return (
            f"A bowl with curvatures 1 and {KAPPA}, turned by {self.angle}°. After {STEPS} steps "
            f"plain descent with rate {self.rate:.3f} {ended(last['SGD'])}, "
            f"the heavy ball with β = {self.beta:.2f} {ended(last['heavy ball'])}, "
            f"Adam with rate {self.adam_rate:.2f} {ended(last['Adam'])}."
        )


def ended(share: float) -> str:
    """What became of a loss, from its last value divided by the first."""
    if not share <= 1:
        return "has flown apart"
    return f"is at {scientific(max(share, 1e-30))} of its first loss"
