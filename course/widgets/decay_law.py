"""The window of a fit: the exponent and the held-out gain of three curves as its ends move."""

import torch
import traitlets

from course import data
from course.decay_law import fit_curve, gains
from course.widgets import Widget, esm

__all__ = ["CURVES", "LEAST", "DecayWindow"]

CURVES = ("power law", "exponential", "log-normal")
LEAST = 7  # how far apart the ends of the window are at least


class DecayWindow(Widget):
    """Mean attention of the course's GPT over distance, and three curves that are fitted between two distances.

    Args:
        low, high: first and last distance of the fit, at least 7 apart.
        axes: "log-log", "log-linear" or "linear".
        train, test: profiles from distance 0 on, those of the record if none are given; the curves are fitted to the first and
            scored on the second.

    Raises:
        traitlets.TraitError: if a value is none of these, or the window is not in the profiles.
    """

    stem = "decay_law"
    _esm = esm(stem)
    train = traitlets.List(traitlets.Float()).tag(sync=True)
    test = traitlets.List(traitlets.Float()).tag(sync=True)
    low = traitlets.Int(4, min=1).tag(sync=True)
    high = traitlets.Int(150).tag(sync=True)
    axes = traitlets.Enum(("log-log", "log-linear", "linear"), "log-log").tag(sync=True)

    def __init__(self, **given):
        if "train" not in given:
            given = {k: v[:301] for k, v in data.record("decay_law")["results"]["gpt"]["profile"].items()} | given
        super().__init__(**given)

    @traitlets.validate("high")
    def _fits(self, proposal):
        if proposal["value"] < self.low + LEAST or (self.train and proposal["value"] >= len(self.train)):
            raise traitlets.TraitError(
                f"high must be from {self.low + LEAST} to {len(self.train) - 1}, the end of the profile, got {proposal['value']}"
            )
        return proposal["value"]

    def fits(self) -> dict[str, float]:
        """The exponent of the likeliest power law, and the held-out gain in nats of each curve and of the profile itself."""
        train, test = torch.tensor(self.train), torch.tensor(self.test)
        exponent = fit_curve(train, "power law", self.low, self.high)["eta"]
        found = gains(train, test, self.low, self.high, CURVES)
        return {"exponent": float(exponent)} | {name: float(x) for name, x in found.items()}

    def describe(self) -> str:
        found = self.fits()
        told = ", ".join(f"{name} {found[name]:.3f}" for name in CURVES)
        return (
            f"Fitted from distance {self.low} to {self.high}, the power law has exponent {found['exponent']:.2f}. "
            f"Held-out gain in nats: {told}; the training profile itself {found['profile itself']:.3f}."
        ).replace("-0.", "−0.")
