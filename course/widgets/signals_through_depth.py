"""Depth, gain and width: what becomes of a signal's mean square."""

import traitlets

from course.signals_through_depth import spread_through_depth
from course.widgets import Widget, esm, scientific

__all__ = ["DepthAndGain"]


class DepthAndGain(Widget):
    """Sliders for depth, width and gain; the mean square through ReLU layers, expected and for single networks.

    Args:
        depth: number of layers, 1 to 100.
        gain: what He's standard deviation is multiplied by, 0.7 to 1.4.
        width: units in each layer, 32 to 1024.

    Raises:
        traitlets.TraitError: if a value is outside its range.
    """

    stem = "signals_through_depth"
    _esm = esm(stem)
    depth = traitlets.Int(50, min=1, max=100).tag(sync=True)
    gain = traitlets.Float(1.0, min=0.7, max=1.4).tag(sync=True)
    width = traitlets.Int(128, min=32, max=1024).tag(sync=True)

    def describe(self) -> str:
        expected, low, high = spread_through_depth(self.depth, self.gain, self.width)
        mean, least, most = (scientific(10**x) for x in (expected, low, high))
        return (
            f"After {self.depth} ReLU layers of width {self.width}, with {self.gain:.2f} times He's standard deviation, the expected "
            f"mean square is {mean}. About 19 of 20 networks lie between {least} and {most}."
        )
