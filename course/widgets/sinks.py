"""A drain in the denominator: real scores of four heads of the trained model, with and without the first token."""

import math

import torch
import traitlets

from course import data
from course.sinks import softmax_plus_one
from course.widgets import Widget, esm

__all__ = ["CLOSED", "Sinks"]

CLOSED = -12.0  # at this logit and below the drain counts as closed


class Sinks(Widget):
    """The weights of one word on the words before it, as water in glasses, with a drain to open and a first token to take away.

    Args:
        head: "14.3", "25.4", "18.8" or "11.1", layer and head.
        query: number of the word that looks, from 1 to the last.
        first: whether the first token is there.
        drain: logit of nothing, from −12, closed, to 12.

    Raises:
        traitlets.TraitError: if a value is none of these.
    """

    stem = "sinks"
    _esm = esm(stem)
    words = traitlets.List(traitlets.Unicode()).tag(sync=True)
    scores = traitlets.Dict().tag(sync=True)
    head = traitlets.Unicode("14.3").tag(sync=True)
    query = traitlets.Int(12, min=1).tag(sync=True)
    first = traitlets.Bool(True).tag(sync=True)
    drain = traitlets.Float(CLOSED, min=CLOSED, max=12.0).tag(sync=True)

    def __init__(self, **state):
        seen = data.record("looks")["results"]["sinks"]
        super().__init__(words=[word.strip() for word in seen["words"]], scores=seen["scores"], **state)

    @traitlets.validate("head")
    def _known(self, proposal):
        if self.scores and proposal["value"] not in self.scores:
            raise traitlets.TraitError(f"head must be one of {', '.join(self.scores)}, got {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("query")
    def _there(self, proposal):
        if self.words and proposal["value"] >= len(self.words):
            raise traitlets.TraitError(f"query must be below {len(self.words)}, got {proposal['value']}")
        return proposal["value"]

    def weights(self) -> list[float]:
        """The weight on each word up to the query's own, 0 on a first one that is taken away."""
        row = torch.tensor(self.scores[self.head][self.query], dtype=torch.float64)
        row[0] = row[0] if self.first else -math.inf
        return softmax_plus_one(row, self.drain if self.drain > CLOSED else -math.inf).tolist()

    def describe(self) -> str:
        weights = self.weights()
        most = max(range(len(weights)), key=weights.__getitem__)
        gone = "" if self.first else " without the first token"
        lost = f"; the drain takes {1 - sum(weights):.2f}" if self.drain > CLOSED else ", and the drain is closed"
        return (
            f"Head {self.head}, word {self.query + 1}, “{self.words[self.query]}”{gone}: the fullest glass is word {most + 1}, "
            f"“{self.words[most]}”, with {weights[most]:.2f}{lost}."
        )
