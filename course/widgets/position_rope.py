"""Rotary clocks: one clock for each pair of dimensions, and the score that only the distance changes."""

import traitlets

from course.position_rope import rope_frequencies
from course.widgets import Widget, esm

__all__ = ["RotaryClocks"]


class RotaryClocks(Widget):
    """A key (1, 0) at `position` and a query (1, 0) `distance` places after it, in every pair of a head of width 16.

    Args:
        theta: the base of the frequencies, 10 to 1,000,000.
        position: of the key, 0 to 1,000.
        distance: query position minus key position, 0 to 1,000.
    """

    stem = "position_rope"
    _esm = esm("position_rope")

    theta = traitlets.Float(10_000.0).tag(sync=True)
    position = traitlets.Int(20).tag(sync=True)
    distance = traitlets.Int(3).tag(sync=True)
    d_head = traitlets.Int(16).tag(sync=True)

    def shares(self) -> list[float]:
        """cos(ω_i · distance) for each pair: what the pair adds to the score, as a share of distance 0."""
        return (rope_frequencies(self.d_head, self.theta) * self.distance).cos().tolist()

    def describe(self) -> str:
        shares = self.shares()
        score = sum(shares) / len(shares)
        return (
            f"{len(shares)} clocks, one for each pair of dimensions, base {self.theta:,.0f}. The key is at position {self.position}, "
            f"the query {self.distance} after it. The score is {score:.2f} of the score at distance 0; the key's position does not change it."
        )
