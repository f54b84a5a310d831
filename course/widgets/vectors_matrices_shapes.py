"""Two vectors in the plane: their lengths, inner product and angle."""

import math

import torch
import traitlets

from course.vectors_matrices_shapes import inner, norm
from course.widgets import Widget, esm

__all__ = ["TwoVectors"]

_LIMIT = 6


def _vector(default: list[float]):
    entry = traitlets.CFloat(min=-_LIMIT, max=_LIMIT)
    return traitlets.List(entry, default_value=default, minlen=2, maxlen=2).tag(sync=True)


class TwoVectors(Widget):
    """Two arrows to drag, with their lengths, inner product and angle, and the shadow of one on the other.

    Args:
        u, v: two numbers each, between −6 and 6.

    Raises:
        traitlets.TraitError: if a vector has another size or an entry is outside its range.
    """

    stem = "vectors_matrices_shapes"
    _esm = esm(stem)
    u = _vector([3.0, 4.0])
    v = _vector([4.0, 3.0])

    def describe(self) -> str:
        u, v = torch.tensor([self.u, self.v], dtype=torch.float64)
        product, lengths = float(inner(u, v)), [float(norm(u)), float(norm(v))]
        text = f"u = ({u[0]:.1f}, {u[1]:.1f}) has length {lengths[0]:.2f}, v = ({v[0]:.1f}, {v[1]:.1f}) has length {lengths[1]:.2f}. "
        text += f"Their inner product is {product:.2f}"
        if 0.0 in lengths:
            return (text + "; with a zero vector there is no angle.").replace("-", "−")
        cosine = min(max(product / (lengths[0] * lengths[1]), -1.0), 1.0)
        return (text + f", the cosine {cosine:.3f}, the angle {math.degrees(math.acos(cosine)):.1f}°.").replace("-", "−")
