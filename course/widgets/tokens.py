"""Type a text and see its pieces as merges are applied, one after the other."""

import functools

import traitlets

from course import data
from course.tokens import BYTES, bpe_encode, bpe_train, byte_encode
from course.widgets import Widget, esm

__all__ = ["Tokens", "learned"]


@functools.cache
def learned(merges: int = 400) -> tuple[tuple[int, int], ...]:
    """The merges that the figure ships: of the first 300,000 characters of Austen's novels."""
    return tuple(bpe_train(data.read("austen", 300_000), merges))


class Tokens(Widget):
    """Merges learned from Austen, a text, and how many of the merges are applied to it."""

    stem = "tokens"
    _esm = esm("tokens")
    merges = traitlets.List(traitlets.List(traitlets.Int())).tag(sync=True)
    text = traitlets.Unicode("The lowest house is the newest: la casa más nueva.").tag(sync=True)
    applied = traitlets.Int(100).tag(sync=True)

    def __init__(self, **kwargs):
        super().__init__(**{"merges": [list(pair) for pair in learned()]} | kwargs)

    @traitlets.validate("applied")
    def _applied_is_a_count(self, proposal):
        if proposal["value"] < 0:
            raise traitlets.TraitError(f"applied must be zero or more, got {proposal['value']}")
        return proposal["value"]

    def describe(self) -> str:
        """The counts for the present text and number of merges."""
        used = [tuple(pair) for pair in self.merges[: self.applied]]
        tokens, n_bytes = len(bpe_encode(self.text, used)), len(byte_encode(self.text))
        return (
            f"After {len(used)} of {len(self.merges)} merges learned from Austen (vocabulary {BYTES + len(used)}), "
            f"the text “{self.text}” of {len(self.text)} characters and {n_bytes} bytes is {tokens} tokens."
        )
