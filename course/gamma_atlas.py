"""The γ atlas: our own models in one table, what was asked of them beforehand, and honest comparisons: chapter ch16.

A row is one model as it was read in one way: its setting, its seed, and what was measured. `experiments/gamma_atlas.py` makes
the table. γ is the exponent of attention's decay, the `power` of `course.decay_law.decay_fit` on the mean profile.
"""

import csv
import gzip
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from course.data import record_path

__all__ = [
    "BASE",
    "COMPARISONS",
    "QUESTIONS",
    "SETTING",
    "SYNTHETIC",
    "Question",
    "answer",
    "atlas_table",
    "baseline_compare",
    "bootstrap",
    "constant",
    "contrast",
    "fitted",
    "setting_of",
    "unfitted",
    "variance_shares",
    "write_table",
]

Row = dict
BASE = {
    "text": "austen", "theta": 1e4, "T": 512, "n_layers": 4, "d_model": 192, "n_heads": 6, "position": "rope", "mark": True,
    "tokens": 2**24, "rate": 2e-3,
}  # fmt: skip
"""The setting from which the others depart, each in what its question names and in nothing else."""
SETTING = tuple(BASE)
SYNTHETIC = ("copies_0.7", "copies_1.3", "copies_geometric", "lazy_chain")


# ---------------------------------------------------------------- what was asked before there were data


@dataclass(frozen=True)
class Question:
    """A question, the contrast that answers it, and the least difference that counts.

    The contrast is `value` with the settings `plus` less `value` with the settings `minus`, all other settings and the seed being
    the same; it is averaged over `blocks`, settings in which both arms depart from `BASE`, and computed within each seed.
    """

    name: str
    asks: str
    plus: dict = field(default_factory=dict)
    minus: dict = field(default_factory=dict)
    blocks: tuple[dict, ...] = ({},)
    value: str = "gamma"
    reads: tuple[str, str] = ("own", "own")  # how the models of both arms were read
    least: float = 0.10


_BASES, _LENGTHS = (1e2, 1e3, 1e4, 1e5), (256, 512, 1024)
_TEXTS = ({}, *({"theta": theta, "T": T} for theta in (1e2, 1e4) for T in (256, 1024)))
_AUSTEN = tuple({"theta": theta, "T": T} for theta in _BASES for T in _LENGTHS)

QUESTIONS = (
    Question(
        "base",
        "Does the base of RoPE that a model is trained with move γ?",
        {"theta": 1e5},
        {"theta": 1e2},
        tuple({"T": T} for T in _LENGTHS),
    ),
    Question(
        "length",
        "Does the length that it is trained and read at?",
        {"T": 1024},
        {"T": 256},
        tuple({"theta": theta} for theta in _BASES),
    ),
    Question(
        "trained length",
        "Does the length that it is trained at, when all read 256 tokens?",
        {"T": 1024},
        {"T": 256},
        tuple({"theta": theta} for theta in _BASES),
        reads=("short", "short"),
    ),
    Question("author", "Does another author's text?", {"text": "shakespeare"}, {"text": "austen"}, _TEXTS),
    Question("order", "Does it, if the text's words are shuffled?", {"text": "shuffled"}, {"text": "austen"}, _TEXTS),
    Question(
        "dependence",
        "Does a steeper law of the distances over which the data copy give a larger γ?",
        {"text": "copies_1.3"},
        {"text": "copies_0.7"},
    ),
    Question(
        "kind",
        "Does attention take the kind of the data's law, an exponential where distances are geometric?",
        {"text": "copies_geometric"},
        {"text": "copies_0.7"},
        value="exponential_gain",
        least=0.02,
    ),
    Question("depth", "Does depth, 8 blocks against 2?", {"n_layers": 8}, {"n_layers": 2}),
    Question("width", "Does width, 384 against 96, with heads of 32?", {"d_model": 384, "n_heads": 12}, {"d_model": 96, "n_heads": 3}),
    Question("heads", "Do 3 heads of 64 instead of 6 of 32?", {"n_heads": 3}, {"n_heads": 6}),
    Question("position", "Do learned positions instead of RoPE?", {"position": "learned"}, {"position": "rope"}),
    Question("tokens", "Does training for 16 times as many tokens?", {"tokens": 2**26}, {"tokens": 2**22}),
    Question("rate", "Does four times the rate of learning?", {"rate": 2e-3}, {"rate": 5e-4}),
    Question("sink", "Does a mark at the start draw weight to it?", {"mark": True}, {"mark": False}, value="first", least=0.05),
    Question("training", "Does training, against the same model untrained?", blocks=_AUSTEN, reads=("own", "untrained")),
    Question("text read", "In one model, does another author's text?", blocks=_AUSTEN, reads=("own", "foreign")),
    Question("tokens read", "In one model, do its own tokens in another order?", blocks=_AUSTEN, reads=("own", "shuffled")),
)
"""Asked before any model of the atlas was trained.

The interval of a contrast is its mean over seeds and plus or minus t · s · √(2 / (seeds · blocks)): s² is the variance that is left in
all cells of the same family of texts (natural or synthetic) when the means of cells and of seeds are taken off, pooled because three
seeds of two cells say little; t is Student's for its degrees of freedom at a level of 5% / `COMPARISONS` (Bonferroni). Where both
arms are one model read in two ways, s² is that of the differences, and the 2 is a 1.

- **yes**: the interval leaves out 0, and the mean is at least `least` away from it;
- **no**: the interval lies within ± `least`;
- **unknown**: anything else.

One more comparison is of predictors, see `baseline_compare`: does γ_Padé of a model's base and length predict γ of settings left out
better than their constant does, over the twelve settings of base and length on Austen? Yes, if the interval of its gain in absolute
error, a bootstrap over settings, lies above 0; no, if below; and the same for γ_Padé with a slope and an offset fitted.

Only described, with an interval and no verdict: the shares of variance (`variance_shares`) over the balanced core, three texts by
two bases by two lengths, and over all models of natural text with RoPE; γ in the window that grows with the length.
Seeds 0, 1 and 2 come first; 3 and 4 are added if the time on the card allows, which the clock decides. Only seeds count that all cells
have. What is asked after the data are seen is called so.
"""
COMPARISONS = len(QUESTIONS) + 1
