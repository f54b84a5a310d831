"""The heads of one layer: what more of them cost, and what they do not."""

import traitlets

from course.multi_head import mha_cost
from course.widgets import Widget, esm

__all__ = ["D_MODEL", "HeadCount"]

D_MODEL = 768


class HeadCount(Widget):
    """A slider for the number of heads of a layer of width 768 and one for the tokens; parameters, work and weights.

    Args:
        heads: a divisor of 768: 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384 or 768.
        T: tokens, 128 to 8192, a multiple of 128.

    Raises:
        traitlets.TraitError: if a value is none of these.
    """

    stem = "multi_head"
    _esm = esm(stem)
    heads = traitlets.Int(12).tag(sync=True)
    T = traitlets.Int(1024, min=128, max=8192).tag(sync=True)

    @traitlets.validate("heads")
    def _fits(self, proposal):
        if proposal["value"] < 1 or D_MODEL % proposal["value"]:
            raise traitlets.TraitError(f"heads must divide {D_MODEL}, got {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("T")
    def _whole(self, proposal):
        if proposal["value"] % 128:
            raise traitlets.TraitError(f"T must be a multiple of 128, got {proposal['value']}")
        return proposal["value"]

    def describe(self) -> str:
        c = mha_cost(self.T, D_MODEL, self.heads)
        heads = "1 head" if self.heads == 1 else f"{self.heads} heads"
        return (
            f"{heads} of width {c['d_head']} in a layer of width {D_MODEL}, {self.T:,} tokens: {c['parameters']:,} parameters and "
            f"{c['products'] / 1e9:.2f} billion multiplications, as with any number of heads; {c['weights']:,} attention weights, "
            f"{4 * c['weights'] / 2**20:.1f} MiB in float32 if all are stored."
        )
