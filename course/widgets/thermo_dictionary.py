"""Levels and who sits on them: a power law of distances as a gas, with its heat capacity as the thermometer moves."""

import traitlets

from course.phase_polylog import cumulants
from course.thermo_dictionary import entropy, heat_capacity, heat_peak
from course.widgets import Widget, esm

__all__ = ["SIZES", "Levels"]

SIZES = (10, 100, 1000, 10000)


class Levels(Widget):
    """The weight on each octave of distances, whose energy is their logarithm, and the heat capacity at all exponents.

    Args:
        gamma: the exponent, an inverse temperature, from 0 to 4.
        N: the longest distance, 10, 100, 1000 or 10000.

    Raises:
        traitlets.TraitError: if a value is none of these.
    """

    stem = "thermo_dictionary"
    _esm = esm(stem)
    gamma = traitlets.Float(1.0, min=0, max=4).tag(sync=True)
    N = traitlets.Enum(SIZES, 1000).tag(sync=True)

    def values(self) -> dict[str, float]:
        """Mean and standard deviation of ln r, entropy, heat capacity, and the exponent at which that is largest."""
        mean, variance = cumulants(self.gamma, self.N)
        return {
            "mean": float(mean),
            "spread": float(variance.sqrt()),
            "entropy": float(entropy(self.gamma, self.N)),
            "heat": float(heat_capacity(self.gamma, self.N)),
            "peak": heat_peak(self.N)[0],
        }

    def describe(self) -> str:
        v = self.values()
        return (
            f"At γ = {self.gamma:.2f} with {self.N} distances ln r has mean {v['mean']:.2f} and standard deviation {v['spread']:.2f}; "
            f"entropy {v['entropy']:.2f}, heat capacity {v['heat']:.2f}. The heat capacity is largest at γ = {v['peak']:.2f}."
        )
