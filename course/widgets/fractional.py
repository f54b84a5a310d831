"""Two walks and a symbol: jumps of a power law beside steps of one, made of the same random numbers, and what a wave becomes."""

import math

import traitlets

from course.widgets import Widget, esm

__all__ = ["STEPS", "Flights"]

STEPS = 200


def _uniform(i: int) -> float:
    """The i-th of a fixed sequence of numbers between 0 and 1, the same in Python and JavaScript."""
    return (0.5 + (i + 1) * 0.6180339887498949 + 0.11 * math.sin(12.9898 * (i + 1)) + 0.5 * (i * i * 0.7548776662466927 % 1)) % 1


class Flights(Widget):
    """An ant and an albatross with the same turns, and the gain of a two-sided kernel r^−γ, cut off at N, at a wave number.

    Args:
        gamma: exponent of the jumps, 0.1 to 4.
        cut: N as a power of 2, 3 to 12.
        wave: the logarithm to base 10 of the wave number that is read off, −3 to 0.45.

    Raises:
        traitlets.TraitError: if a value is outside.
    """

    stem = "fractional"
    _esm = esm(stem)
    gamma = traitlets.Float(2.3, min=0.1, max=4.0).tag(sync=True)
    cut = traitlets.Int(10, min=3, max=12).tag(sync=True)
    wave = traitlets.Float(-1.5, min=-3.0, max=0.45).tag(sync=True)

    def walks(self) -> tuple[list[float], list[float]]:
        """The places of the ant and of the albatross after 0, 1, …, 200 jumps."""
        N, power = 2**self.cut, 1 - self.gamma
        ant, albatross = [0.0], [0.0]
        for i in range(STEPS):
            side, u = (1 if _uniform(2 * i) < 0.5 else -1), _uniform(2 * i + 1)
            length = N**u if abs(power) < 1e-9 else (1 + u * (N**power - 1)) ** (1 / power)
            ant.append(ant[-1] + side)
            albatross.append(albatross[-1] + side * length)
        return ant, albatross

    def gain(self) -> float:
        """The symbol of the kernel at the wave number, which is real for one with two equal sides."""
        k, N = 10**self.wave, 2**self.cut
        weights = [r**-self.gamma for r in range(1, N + 1)]
        return math.fsum(w * math.cos(k * r) for r, w in enumerate(weights, 1)) / math.fsum(weights)

    def describe(self) -> str:
        ant, albatross = (max(abs(x) for x in walk) for walk in self.walks())
        inside = "is a Lévy index" if 1 < self.gamma < 3 else "is no Lévy index"
        said = (
            f"Exponent {self.gamma:.1f}, jumps up to {2**self.cut:,}: α = {self.gamma - 1:.1f} {inside}. In {STEPS} jumps the ant gets "
            f"{ant:.0f} away, the albatross {albatross:.0f}. A wave of wave number {10**self.wave:.3f} is multiplied by "
            f"{self.gain() + 0.0:.3f}."
        )
        return said.replace("-0.000", "0.000").replace("= -", "= −").replace("by -", "by −")
