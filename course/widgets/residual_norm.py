"""Depth, skip and norm: six tokens in the plane, and how different they stay."""

import torch
import traitlets

from course.residual_norm import cloud, rank_residual
from course.widgets import Widget, esm, scientific

__all__ = ["NORMS", "TokenCloud"]

NORMS = {"none": "no norm", "pre": "pre-norm", "post": "post-norm"}


class TokenCloud(Widget):
    """Layers of attention on six tokens in the plane, with and without skip connections, norms and a causal mask.

    Args:
        depth: number of layers, 1 to 12.
        skip: whether attention is added to the tokens or replaces them.
        norm: "none", "pre" or "post".
        causal: whether each token sees only itself and those before.

    Raises:
        traitlets.TraitError: if a value is outside its range.
    """

    stem = "residual_norm"
    _esm = esm(stem)
    depth = traitlets.Int(4, min=1, max=12).tag(sync=True)
    skip = traitlets.Bool(False).tag(sync=True)
    norm = traitlets.Enum(list(NORMS), "none").tag(sync=True)
    causal = traitlets.Bool(False).tag(sync=True)

    def describe(self) -> str:
        x = torch.tensor(cloud(self.depth, self.skip, self.norm, self.causal)[-1], dtype=torch.float64)
        residual = float(rank_residual(x))
        size = "below 10⁻⁸" if residual < 1e-8 else scientific(residual) if residual < 0.01 else f"{residual:.2f}"
        way = f"{'with' if self.skip else 'without'} skip connections, {NORMS[self.norm]}{', causal' * self.causal}"
        return f"After {self.depth} layer{'s' * (self.depth > 1)} of attention ({way}) the rank residual of the six tokens is {size}."
