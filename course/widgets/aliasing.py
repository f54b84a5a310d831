"""A wall of clocks: the hands of RoPE at one distance, and the other distance whose wall looks most like it."""

import torch
import traitlets

from course.aliasing import code_distance
from course.position_rope import rope_frequencies
from course.widgets import Widget, esm

__all__ = ["BASES", "FAR", "ClockWall"]

BASES = (100.0, 10_000.0, 100_000.0, 1_000_000.0)
FAR = 2_000


class ClockWall(Widget):
    """The 32 hands of a head of width 64 at a distance, of which the fastest `hands` count.

    Args:
        distance: 0 to 2,000.
        hands: how many count, the fastest first, 1 to 32.
        theta: the base, one of `BASES`.

    Raises:
        traitlets.TraitError: if a value is none of these.
    """

    stem = "aliasing"
    _esm = esm(stem)
    distance = traitlets.Int(100, min=0, max=FAR).tag(sync=True)
    hands = traitlets.Int(32, min=1, max=32).tag(sync=True)
    theta = traitlets.Float(10_000.0).tag(sync=True)

    @traitlets.validate("theta")
    def _known(self, proposal):
        if proposal["value"] not in BASES:
            raise traitlets.TraitError(
                f"the base must be one of {', '.join(f'{b:,.0f}' for b in BASES)}, got {proposal['value']}"
            )
        return proposal["value"]

    def look_alike(self) -> tuple[int, float, float]:
        """The nearest look-alike among the distances 0 to 2,000, how far its code is, and how far that of a neighbour."""
        omega = rope_frequencies(64, self.theta)[: self.hands]
        apart = code_distance(torch.arange(1, max(self.distance, FAR - self.distance) + 1), omega)
        gap = int(apart.argmin()) + 1
        other = self.distance + gap if self.distance + gap <= FAR else self.distance - gap
        return other, float(apart[gap - 1]), float(apart[0])

    def describe(self) -> str:
        other, apart, neighbour = self.look_alike()
        hands = "the fastest hand of 32" if self.hands == 1 else f"the {self.hands} fastest hands of 32"
        hands = "all 32 hands" if self.hands == 32 else hands
        return (
            f"Distance {self.distance:,}, base {self.theta:,.0f}, {hands}: the nearest look-alike up to {FAR:,} is distance "
            f"{other:,}, {abs(other - self.distance):,} away. The two codes are {apart:.5f} apart, those of neighbours {neighbour:.5f}."
        )
