"""A hidden key at a depth of a text of a length: how often the trained model finds it, by method."""

import traitlets

from course import data
from course.long_context import effective_length, wilson
from course.widgets import Widget, esm

__all__ = ["FLOOR", "LongContext"]

FLOOR = 0.5  # of the effective length


class LongContext(Widget):
    """Keys found in the record of this chapter, as a grid of lengths and depths.

    Args:
        method: "unchanged", "PI 2", "PI 4", "NTK 2", "NTK 4", "NTK 8", "YaRN 2" or "YaRN 4".
        column: number of the length that is looked at, from 0.
        row: number of the depth that is looked at, from 0, the beginning of the text.

    Raises:
        traitlets.TraitError: if a value is none of these.
    """

    stem = "long_context"
    _esm = esm(stem)
    found = traitlets.Dict().tag(sync=True)
    lengths = traitlets.List().tag(sync=True)
    depths = traitlets.List().tag(sync=True)
    trials = traitlets.Int(1).tag(sync=True)
    method = traitlets.Unicode("unchanged").tag(sync=True)
    column = traitlets.Int(3, min=0).tag(sync=True)
    row = traitlets.Int(2, min=0).tag(sync=True)

    def __init__(self, **state):
        seen = data.record("long_context")["results"]["keys"]
        found = {arm: list(each.values()) for arm, each in seen["found"].items() if arm != "decoy"}
        super().__init__(found=found, lengths=seen["lengths"], depths=seen["depths"], trials=seen["trials"], **state)

    @traitlets.validate("method")
    def _known(self, proposal):
        if self.found and proposal["value"] not in self.found:
            raise traitlets.TraitError(f"method must be one of {', '.join(self.found)}, got {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("column", "row")
    def _there(self, proposal):
        name = proposal["trait"].name
        if self.found and proposal["value"] >= len(self.lengths if name == "column" else self.depths):
            raise traitlets.TraitError(f"{name} {proposal['value']} is beyond the grid")
        return proposal["value"]

    def effective(self) -> int:
        """The longest length up to which Wilson's interval of all depths together lies above `FLOOR`."""
        right = [sum(each) for each in self.found[self.method]]
        return effective_length(self.lengths, right, [self.trials * len(self.depths)] * len(right), FLOOR)

    def describe(self) -> str:
        k = self.found[self.method][self.column][self.row]
        low, high = (round(100 * x) for x in wilson(k, self.trials))
        effective = self.effective()
        ends = f"is {effective:,} tokens" if effective else f"is below {self.lengths[0]:,} tokens"
        return (
            f"{self.method}, {self.lengths[self.column]:,} tokens, depth {100 * self.depths[self.row]:.0f} %: {k} of {self.trials} keys found, "
            f"Wilson's interval {low} to {high} %. The effective length at {100 * FLOOR:.0f} %, all depths together, {ends}."
        )
