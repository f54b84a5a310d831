"""Edit queries, keys and values of two or three tokens; see scores, weights, outputs and contributions."""

import math

import torch
import traitlets

from course.attention import attention, attention_weights, contribution
from course.widgets import Widget, esm

__all__ = ["AttentionWidget"]


class AttentionWidget(Widget):
    """Attention small enough to compute by hand, with every number in reach.

    Args:
        query, key, value: lists of as many rows as there are tokens (two or three); query and key are equally wide.
        row: the query whose keys are shown in detail, counted from 0.
        scaled: whether scores are divided by √d_k.
    """

    stem = "attention"
    _esm = esm("attention")
    query = traitlets.List([[1, 0, 1], [0, 1, 1]]).tag(sync=True)
    key = traitlets.List([[1, 1, 0], [1, 0, 1]]).tag(sync=True)
    value = traitlets.List([[2, 0, 1], [1, 1, 0]]).tag(sync=True)
    row = traitlets.Int(0, min=0, max=2).tag(sync=True)
    scaled = traitlets.Bool(True).tag(sync=True)

    def describe(self) -> str:
        query, key, value = (torch.tensor(x, dtype=torch.float64) for x in (self.query, self.key, self.value))
        if not self.scaled:
            query = query * math.sqrt(query.shape[-1])
        weights = attention_weights(query, key)
        row = self.row

        def show(numbers):
            return ", ".join(f"{float(x):.3f}" for x in numbers)

        return (
            f"Query {row + 1} gives its keys the weights {show(weights[row])}"
            f" ({'with' if self.scaled else 'without'} scaling)."
            f" Its output is {show(attention(query, key, value)[row])}."
            f" The keys contribute vectors of length {show(contribution(weights, value)[row])}."
        )
