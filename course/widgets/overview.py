"""Steps and pairs: what recurrence, scan and attention ask for as a text grows."""

import traitlets

from course.overview import attention_pairs
from course.widgets import Widget, esm

__all__ = ["StepsAndPairs"]


class StepsAndPairs(Widget):
    """A slider for the length of a text; the steps of a recurrence, the rounds of a scan and the pairs of attention.

    Args:
        doublings: the text has 2 to this power tokens, 1 to 17.
        causal: whether a token sees only itself and what came before.

    Raises:
        traitlets.TraitError: if `doublings` is outside its range.
    """

    stem = "overview"
    _esm = esm(stem)
    doublings = traitlets.Int(9, min=1, max=17).tag(sync=True)
    causal = traitlets.Bool(True).tag(sync=True)

    def describe(self) -> str:
        T = 2**self.doublings
        pairs, twice = (attention_pairs(n, self.causal) for n in (T, 2 * T))
        kind = "causal attention" if self.causal else "attention"
        return (
            f"For a text of {T:,} tokens: a recurrence takes {T:,} steps in a row, a linear scan {self.doublings:,} rounds, "
            f"and {kind} compares {pairs:,} pairs. Twice the text has {twice / pairs:.2f} times the pairs."
        )
