"""The bins of a reliability diagram: how much of a calibration error is noise."""

import math

import torch
import traitlets

from course.regularisation_and_calibration import ece, ece_bound
from course.widgets import Widget, esm

__all__ = ["MODULUS", "MULTIPLIER", "BinCount", "outcomes"]

MODULUS, MULTIPLIER = 2**31 - 1, 48_271  # Park and Miller's generator: exact in JavaScript's floats too


def outcomes(forecasts: int, tau: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What a forecaster says of that many events, and which of them happened, both (N,) float64.

    The chances are spread evenly between 0 and 1. At tau = 1 they are said as they are; else their log-odds are divided by tau.
    """
    state = seed * 1_000_003 % MODULUS
    drawn = []
    for _ in range(2 * forecasts + 4):
        state = MULTIPLIER * state % MODULUS
        drawn.append(state / MODULUS)
    chance, coin = torch.tensor(drawn[4:], dtype=torch.float64).view(-1, 2).T  # (N,) each; the first few follow the seed
    return torch.sigmoid(torch.logit(chance) / tau), (coin < chance).double()


class BinCount(Widget):
    """Sliders for bins, forecasts and τ; a reliability diagram, and the ECE over the number of bins.

    Args:
        bins: 1 to 60.
        forecasts: 50 to 2000.
        tau: 0.4 to 2.5; below 1 the forecaster is overconfident.
        seed: 1 to 999.

    Raises:
        traitlets.TraitError: if a value is outside its range.
    """

    stem = "regularisation_and_calibration"
    _esm = esm(stem)
    bins = traitlets.Int(10, min=1, max=60).tag(sync=True)
    forecasts = traitlets.Int(200, min=50, max=2000).tag(sync=True)
    tau = traitlets.Float(1.0, min=0.4, max=2.5).tag(sync=True)
    seed = traitlets.Int(1, min=1, max=999).tag(sync=True)

    def describe(self) -> str:
        said, happened = outcomes(self.forecasts, self.tau, self.seed)
        level = math.sqrt(2 / math.pi) * ece_bound(said, self.bins)
        kind = "An honest" if self.tau == 1 else "An overconfident" if self.tau < 1 else "A modest"
        return (
            f"{kind} forecaster, τ = {self.tau:.2f}, with {self.forecasts} forecasts and {self.bins} bin{'s' * (self.bins > 1)}: "
            f"the ECE is {ece(said, happened, self.bins):.3f}. "
            f"An honest forecaster who says the same gets about {level:.3f}."
        )
