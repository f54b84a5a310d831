"""The cache as a shelf: what stays of a real text at a budget, by method, and what the model then answers."""

import traitlets

from course import data
from course.kv_compression import SHELF
from course.widgets import Widget, esm

__all__ = ["BUDGETS", "CacheShelf"]

BUDGETS = (0.5, 0.25, 0.125, 0.0625)


class CacheShelf(Widget):
    """A text with a passkey that SmolLM2 read, each token as dark as the share of the 90 caches that keep it, and its answer.

    Args:
        method: one of `course.kv_compression.SHELF`.
        budget: share of the cache's bytes, one of `BUDGETS`.
        asked: number of the token that is looked at, from 0.

    Raises:
        traitlets.TraitError: if a value is none of these.
    """

    stem = "kv_compression"
    _esm = esm(stem)
    tokens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    answer = traitlets.List(traitlets.Int()).tag(sync=True)
    full = traitlets.Unicode().tag(sync=True)
    found = traitlets.List().tag(sync=True)
    method = traitlets.Enum(SHELF, "heavy hitters").tag(sync=True)
    budget = traitlets.Enum(BUDGETS, 0.25).tag(sync=True)
    asked = traitlets.Int(75, min=0).tag(sync=True)

    def __init__(self, **given):
        kept = data.record("kv_shelf")["results"]
        super().__init__(**({name: kept[name] for name in ("tokens", "answer", "full", "found")} | given))

    @traitlets.validate("asked")
    def _there(self, proposal):
        if self.tokens and proposal["value"] >= len(self.tokens):
            raise traitlets.TraitError(f"asked must be from 0 to {len(self.tokens) - 1}, got {proposal['value']}")
        return proposal["value"]

    def here(self) -> dict:
        """What was found with this method and budget."""
        return next(each for each in self.found if (each["method"], each["budget"]) == (self.method, self.budget))

    def describe(self) -> str:
        here, T = self.here(), len(self.tokens)
        kept = sum(int(here["stays"][i]) for i in self.answer) / len(self.answer) / 9
        says, token = (each.replace("\n", "⏎") for each in (here["says"], self.tokens[self.asked]))
        return (
            f"{self.method} at 1/{round(1 / self.budget)} of the bytes keeps {here['n']} of {T} tokens in each cache. "
            f"Of the passkey's digits it keeps about {100 * kept:.0f}%, and the model answers “{says}”; with the whole cache “{self.full}”. "
            f"Token {self.asked}, “{token}”, stays in about {100 * int(here['stays'][self.asked]) / 9:.0f}% of the caches."
        )
