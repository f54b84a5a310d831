"""A dimension and a number of candidates: what cosine chance alone brings."""

import math

import traitlets

from course.high_dimensional_geometry import chance_cosine
from course.widgets import Widget, esm

__all__ = ["ChanceCosines"]


class ChanceCosines(Widget):
    """Sliders for the dimension and the number of candidates; the density of the cosine of random directions.

    Args:
        dimension: 2 to 10,000.
        candidates: 1 to 1,000,000.

    Raises:
        traitlets.TraitError: if a value is outside its range.
    """

    stem = "high_dimensional_geometry"
    _esm = esm(stem)
    dimension = traitlets.Int(100, min=2, max=10_000).tag(sync=True)
    candidates = traitlets.Int(1, min=1, max=1_000_000).tag(sync=True)

    def describe(self) -> str:
        sd = 1 / math.sqrt(self.dimension)
        low = math.degrees(math.acos(sd))
        bound = chance_cosine(self.dimension, self.candidates)
        best = "One random candidate" if self.candidates == 1 else f"The best of {self.candidates:,} random candidates"
        told = (
            f"stays below {bound:.3f} in at least 19 of 20 searches"
            if bound < 1
            else "may come as near as it likes, for all the bound says"
        )
        return (
            f"In {self.dimension:,} dimensions the cosine of two random directions is 0 ± {sd:.3f}, an angle of {low:.1f}° to {180 - low:.1f}°. "
            f"{best} {told}."
        )
