"""KV compression: the figure to play with."""

import traitlets

from course.widgets import Widget, esm


class KvCompression(Widget):
    """A number and its double.

    Args:
        x: between −10 and 10.

    Raises:
        traitlets.TraitError: if it is not.
    """

    stem = "kv_compression"
    _esm = esm(stem)
    x = traitlets.Float(1.0, min=-10, max=10).tag(sync=True)

    def describe(self) -> str:
        return f"Twice {self.x:g} is {2 * self.x:g}."
