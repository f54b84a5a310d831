"""Paint a mask and see which position can know which token after one, two or three layers."""

import torch
import traitlets

from course.architectures import mask_for, reach
from course.widgets import Widget, esm

__all__ = ["MaskPainter", "T"]

T = 6


class MaskPainter(Widget):
    """A mask of six tokens to paint, and what it lets through after some layers.

    Args:
        mask: six rows of six numbers; row i, column j is 1 where query i may see key j, else 0.
        n_layers: 1, 2 or 3.
        residual: each position also keeps what it knew.

    Raises:
        traitlets.TraitError: if a value is none of these.
    """

    stem = "architectures"
    _esm = esm(stem)
    mask = traitlets.List(
        traitlets.List(traitlets.Int(min=0, max=1), minlen=T, maxlen=T),
        default_value=mask_for("causal", T).int().tolist(),
        minlen=T,
        maxlen=T,
    ).tag(sync=True)
    n_layers = traitlets.Int(2, min=1, max=3).tag(sync=True)
    residual = traitlets.Bool(True).tag(sync=True)

    def known(self) -> torch.Tensor:
        """Boolean (6, 6): which position can know which token."""
        return reach(torch.tensor(self.mask, dtype=torch.bool), self.n_layers, self.residual)

    def describe(self) -> str:
        painted, known = torch.tensor(self.mask, dtype=torch.bool), self.known()
        indirect = (known & ~painted).nonzero().tolist()
        said = (
            f"Painted: {int(painted.sum())} of {T * T} pairs. After {self.n_layers} layer{'s' * (self.n_layers > 1)}, "
            f"{'with' if self.residual else 'without'} the residual stream, {int(known.sum())} pairs are connected, "
            f"{len(indirect)} of them not painted."
        )
        return said + (f" The first of these: position {indirect[0][0]} knows token {indirect[0][1]}." if indirect else "")
