"""The parts of a GPT by size: width, depth, shared keys, the gate and the tie."""

import math

import traitlets

from course import cookbook
from course.model import Config
from course.widgets import Widget, esm

__all__ = ["D_HEAD", "BlockParts", "V"]

V, D_HEAD = 50_257, 64


class BlockParts(Widget):
    """Sliders for width and depth, switches for parts; how many parameters are where, and the shapes between them.

    The vocabulary has 50,257 tokens and a head is 64 wide. Norms are RMSNorm, positions RoPE, and there are no biases.

    Args:
        d_model: width of the stream, a multiple of 64 from 64 to 2048.
        n_layers: number of blocks, 1 to 48.
        group: heads of queries that share a key and value head: 1, 2, 4 or 8, or as many of them as divide the heads.
        gated: SwiGLU instead of GELU.
        tied: the head is the embedding.

    Raises:
        traitlets.TraitError: if a value is none of these.
    """

    stem = "block"
    _esm = esm(stem)
    d_model = traitlets.Int(768, min=64, max=2048).tag(sync=True)
    n_layers = traitlets.Int(12, min=1, max=48).tag(sync=True)
    group = traitlets.Enum([1, 2, 4, 8], default_value=1).tag(sync=True)
    gated = traitlets.Bool(False).tag(sync=True)
    tied = traitlets.Bool(True).tag(sync=True)

    @traitlets.validate("d_model")
    def _whole_heads(self, proposal):
        if proposal["value"] % D_HEAD:
            raise traitlets.TraitError(f"d_model must be a multiple of {D_HEAD}, got {proposal['value']}")
        return proposal["value"]

    def config(self) -> Config:
        """The model that is shown."""
        heads = self.d_model // D_HEAD
        ffn = "swiglu" if self.gated else "gelu"
        return Config(V, self.d_model, self.n_layers, heads, heads // math.gcd(heads, self.group), ffn=ffn, tied=self.tied)

    def describe(self) -> str:
        c = self.config()
        n = cookbook.parameters(c.shape())
        return (
            f"{c.n_layers} blocks of width {c.d_model}: {c.n_heads} heads of queries and {c.kv_heads} of keys and values, each {D_HEAD} wide; "
            f"{'SwiGLU' if self.gated else 'GELU'} with {c.hidden:,} hidden numbers; the head is {'tied' if c.tied else 'not tied'}. "
            f"{n['all']:,} parameters: embedding {n['embedding']:,}, attention {n['attention']:,}, feed-forward {n['feed-forward']:,}, "
            f"norms {n['norms']:,}, head {n['output head']:,}."
        )
