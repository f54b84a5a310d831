"""Long-context extension: the figure to play with."""

import traitlets

from course.widgets import Widget, esm


class LongContext(Widget):
    """A number and its double.

    Args:
        x: between −10 and 10.

    Raises:
        traitlets.TraitError: if it is not.
    """

    stem = "long_context"
    _esm = esm(stem)
    x = traitlets.Float(1.0, min=-10, max=10).tag(sync=True)

    def describe(self) -> str:
        return f"Twice {self.x:g} is {2 * self.x:g}."
