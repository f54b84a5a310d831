"""Phase structure, to play with: where a power law has its weight, octave by octave, as the exponent and the length move."""

import math

import torch
import traitlets

from course.phase_polylog import octave_shares
from course.widgets import Widget, esm

__all__ = ["Octaves"]


class Octaves(Widget):
    """The share of a power law's weight in each octave of distances, 1, 2–3, 4–7 and so on.

    Args:
        gamma: the exponent, from 0 to 2.
        octaves: how many octaves there are, from 2 to 60; the longest distance is 2 to this power, less 1.

    Raises:
        traitlets.TraitError: if one is not.
    """

    stem = "phase_polylog"
    _esm = esm(stem)
    gamma = traitlets.Float(1.1, min=0, max=2).tag(sync=True)
    octaves = traitlets.Int(13, min=2, max=60).tag(sync=True)

    def shares(self) -> list[float]:
        """The share of each octave, the nearest first."""
        return octave_shares(self.gamma, self.octaves).tolist()

    def near(self) -> float:
        """The share of the near half of the octaves; of an odd number the one in the middle counts half."""
        at = torch.arange(self.octaves) + 0.5
        return float(octave_shares(self.gamma, self.octaves) @ (self.octaves / 2 + 0.5 - at).clamp(0, 1).double())

    def describe(self) -> str:
        near = self.near()
        log_n = math.log(2**self.octaves - 1)
        u = (self.gamma - 1) * log_n
        said = (
            "Neither half has nine tenths."
            if 0.1 < near < 0.9
            else f"The {'near' if near > 0.5 else 'far'} half has nine tenths."
        )
        return (
            f"γ = {self.gamma:.2f}, {self.octaves} octaves of distances (ln N = {log_n:.1f}): the near half has "
            f"{100 * near:.1f}% of the weight (u = {u:.1f}). {said}"
        ).replace("-", "−")
