"""The heads of one layer: where those of the course's GPT look, what more of them cost, and what they do not."""

import base64
import json

import torch
import traitlets

from course.attention_maps import all_maps
from course.checkpoint import load_gpt
from course.data import HERE as DATA
from course.multi_head import mha_cost
from course.tokens import bpe_encode, vocabulary
from course.widgets import Widget, esm

__all__ = ["D_MODEL", "KEPT", "TEXT", "HeadCount", "head_maps"]

D_MODEL = 768
TEXT = "She was glad when he came, and she was sorry when he went."
KEPT = DATA / "gpt_heads.json"


def head_maps() -> dict:
    """The tokens of `TEXT`, and the weights of all heads of the course's GPT on them, as the widget ships them.

    The weights are the lower triangles row by row, layer after layer and head after head, a byte each, as base64.
    `KEPT` is this, written once, so that a notebook stores the same bytes on every processor.
    """
    model, merges = load_gpt()
    ids = bpe_encode(TEXT, merges)
    weights = all_maps(model, torch.tensor([[model.config.V - 1, *ids]]))[:, 0]  # (L, H, T, T)
    rows, columns = torch.tril_indices(*weights.shape[-2:])
    bytes_ = (255 * weights[..., rows, columns]).round().to(torch.uint8).numpy().tobytes()
    spelled = vocabulary(merges)
    return {"tokens": ["start", *(spelled[i].decode() for i in ids)], "packed": base64.b64encode(bytes_).decode()}


class HeadCount(Widget):
    """The 36 heads of the course's GPT on a sentence; and, for a layer of width 768, sliders for the number of heads and tokens.

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
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    packed = traitlets.Unicode().tag(sync=True)

    def __init__(self, **given):
        super().__init__(**json.loads(KEPT.read_text(encoding="utf-8")), **given)

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
