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
from course.decay_law import gamma_pade

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
    "joined",
    "setting_of",
    "student",
    "unfitted",
    "variance_shares",
    "write_table",
]

Row = dict
BASE = {
    "text": "austen", "theta": 1e4, "T": 512, "n_layers": 4, "d_model": 192, "n_heads": 6, "position": "rope", "mark": True,
    "tokens": 2**24, "rate": 1e-3,
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
    Question(
        "width", "Does width, 384 against 96, with heads of 32?", {"d_model": 384, "n_heads": 12}, {"d_model": 96, "n_heads": 3}
    ),
    Question("heads", "Do 3 heads of 64 instead of 6 of 32?", {"n_heads": 3}, {"n_heads": 6}),
    Question("position", "Do learned positions instead of RoPE?", {"position": "learned"}, {"position": "rope"}),
    Question("tokens", "Does training for 16 times as many tokens?", {"tokens": 2**26}, {"tokens": 2**22}),
    Question("rate", "Does three times the rate of learning?", {"rate": 3e-3}, {"rate": 1e-3}),
    Question("sink", "Does a mark at the start draw weight to it?", {"mark": True}, {"mark": False}, value="first", least=0.05),
    Question("training", "Does training, against the same model untrained?", blocks=_AUSTEN, reads=("own", "untrained")),
    Question("text read", "In one model, does another author's text?", blocks=_AUSTEN, reads=("own", "foreign")),
    Question("tokens read", "In one model, do its own tokens in another order?", blocks=_AUSTEN, reads=("own", "shuffled")),
)
"""Asked before any model of the atlas was trained, but after a pilot of 22 larger models on the same texts, from which `least` is: seeds
of the pilot differed by 0.02 to 0.04, its texts by up to 0.3.

The interval of a contrast is its mean over seeds and plus or minus t · s · √(2 / (seeds · blocks)): s² is the variance that is left in
all cells of the same family of texts (natural or synthetic) when the means of cells and of seeds are taken off, pooled because three
seeds of two cells say little; t is Student's for its degrees of freedom at a level of 5% / `COMPARISONS` (Bonferroni). Where both
arms are one model read in two ways, s² is that of the differences, and the 2 is a 1.

- **yes**: the interval leaves out 0, and the mean is at least `least` away from it;
- **no**: the interval lies within ± `least`;
- **unknown**: anything else.

Two more comparisons are of predictors, see `baseline_compare`: does γ_Padé of a model's base and length predict γ of settings left out
better than their constant does, over the twelve settings of base and length on Austen? Yes, if the interval of its gain in absolute
error, a bootstrap over settings, lies above 0; no, if below; and the same for γ_Padé with a slope and an offset fitted.

Only described, with an interval and no verdict: the shares of variance (`variance_shares`) over the balanced core, three texts by
two bases by two lengths, and over all models of natural text with RoPE; γ in the window that grows with the length.
Seeds 0, 1 and 2 come first; 3 and 4 are added if the time on the card allows, which the clock decides. Only seeds count that all cells
have. What is asked after the data are seen is called so.
"""
# Added after the data, and no part of the above: the pilot had already hinted at the answers to base, order, depth and sink, and at γ_Padé's
# failure; and cells of length 256 turned out not to be independent within a seed, so that `student` stands beside `answer`.
COMPARISONS = len(QUESTIONS) + 2


# ---------------------------------------------------------------- the table

LISTS = ("layers", "parts", "profile", "profile_held")
WORDS = ("text", "position", "read")
WHOLE = ("T", "n_layers", "d_model", "n_heads", "tokens", "seed", "parameters")


def write_table(rows: Iterable[Row], path: Path) -> None:
    """Keep rows with the same names as a compressed CSV; lists are numbers with blanks between. The same rows give the same bytes."""
    rows = list(rows)
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as packed:
        lines = [list(rows[0])] + [[_as_text(value) for value in row.values()] for row in rows]
        packed.write("".join(",".join(line) + "\n" for line in lines).encode())


def _as_text(value) -> str:
    if isinstance(value, list | tuple):
        return " ".join(f"{x:.4g}" for x in value)
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def atlas_table(read: str | None = "own", path: Path | None = None) -> list[Row]:
    """The atlas, one row for each model that was read so; all rows without `read`.

    Args:
        read: "own", its own text at its own length; "short", in windows of 256; "shuffled", its own tokens in another order;
            "foreign", another text; "untrained", its own text before training.
        path: of another table than the course's.

    Raises:
        FileNotFoundError: if there is no such table.
    """
    path = record_path("gamma_atlas").with_suffix(".csv.gz") if path is None else path
    if not path.exists():
        raise FileNotFoundError(f"no table {path.name}: run python experiments/gamma_atlas.py")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = [{name: _value(name, text) for name, text in row.items()} for row in csv.DictReader(file)]
    return [row for row in rows if read in (None, row["read"])]


def _value(name: str, text: str):
    if name in LISTS:
        return [float(x) for x in text.split()]
    if name in WORDS:
        return text
    if text in ("True", "False"):
        return text == "True"
    return int(text) if name in WHOLE else float(text)


def setting_of(row: Row) -> tuple:
    """All of a row's setting, without its seed, in the order of `SETTING`."""
    return tuple(row[name] for name in SETTING)


def joined(rows: Sequence[Row]) -> list[Row]:
    """One row for each model as it reads its own text, with γ of its other readings and γ_Padé of its base and length beside.

    Args:
        rows: of all ways to read.
    """
    by_read = {(setting_of(row), row["seed"], row["read"]): row["gamma"] for row in rows}
    models = [dict(row) for row in rows if row["read"] == "own"]
    for row in models:
        for read in ("short", "shuffled", "foreign", "untrained"):
            row[f"gamma_{read}"] = by_read[setting_of(row), row["seed"], read]
        row["gamma_pade"] = gamma_pade(row["theta"], row["T"])
    return models


# ---------------------------------------------------------------- answers


def contrast(rows: Sequence[Row], question: Question) -> dict[int, float]:
    """By seed, the question's contrast: the mean over its blocks of plus less minus, of the seeds that have them all.

    Args:
        rows: of all ways to read.
    """
    table = {(setting_of(row), row["read"], row["seed"]): row[question.value] for row in rows}
    arms = [
        [
            (tuple((BASE | block | arm).values()), read)
            for arm, read in zip((question.plus, question.minus), question.reads, strict=True)
        ]
        for block in question.blocks
    ]
    found = {}
    for seed in sorted({row["seed"] for row in rows}):
        try:
            found[seed] = float(np.mean([table[*plus, seed] - table[*minus, seed] for plus, minus in arms]))
        except KeyError:
            continue
    return found


def answer(rows: Sequence[Row], question: Question, comparisons: int = COMPARISONS) -> dict:
    """Yes, no or unknown, by the rules of `QUESTIONS`: mean, low and high end of the interval, the seeds, and the verdict.

    Raises:
        ValueError: if fewer than two seeds have the contrast.
    """
    from scipy.special import stdtrit

    seeds = contrast(rows, question)
    if len(seeds) < 2:
        raise ValueError(f"the question {question.name!r} needs two seeds or more, the rows have {len(seeds)}")
    variance, freedom = _noise(rows, question, list(seeds))
    arms = 2 if question.reads[0] == question.reads[1] else 1
    half = stdtrit(freedom, 1 - 0.025 / comparisons) * math.sqrt(arms * variance / (len(seeds) * len(question.blocks)))
    mean = float(np.mean(list(seeds.values())))
    return _told(question, list(seeds.values()), mean, float(half))


def student(rows: Sequence[Row], question: Question, comparisons: int = COMPARISONS) -> dict:
    """As `answer`, with Student's interval of the seeds' contrasts, which pools nothing: asked after the data were seen.

    `answer` takes what is left of a seed in two cells, its mean over all cells taken off, for independent, and of one spread in all
    cells. This assumes neither, only that seeds are independent draws and their contrasts roughly normal; with five seeds it has four
    degrees of freedom.

    Raises:
        ValueError: if fewer than two seeds have the contrast.
    """
    from scipy.special import stdtrit

    seeds = list(contrast(rows, question).values())
    if len(seeds) < 2:
        raise ValueError(f"the question {question.name!r} needs two seeds or more, the rows have {len(seeds)}")
    half = stdtrit(len(seeds) - 1, 1 - 0.025 / comparisons) * np.std(seeds, ddof=1) / math.sqrt(len(seeds))
    return _told(question, seeds, float(np.mean(seeds)), float(half))


def _told(question: Question, seeds: list[float], mean: float, half: float) -> dict:
    """An interval and its verdict, by the rules of `QUESTIONS`."""
    low, high = mean - half, mean + half
    verdict = "yes" if low * high > 0 and abs(mean) >= question.least else "unknown"
    verdict = "no" if max(-low, high) < question.least else verdict
    return {"mean": mean, "low": low, "high": high, "seeds": seeds, "verdict": verdict}


def _noise(rows: Sequence[Row], question: Question, seeds: list[int]) -> tuple[float, int]:
    """Variance within the cells of the question's family of texts, means of cells and of seeds taken off; its degrees of freedom."""
    synthetic = (BASE | question.plus)["text"] in SYNTHETIC
    plus, minus = question.reads
    cells: dict[tuple, dict] = {}
    for row in rows:
        if (row["text"] in SYNTHETIC) == synthetic and row["seed"] in seeds and row["read"] in (plus, minus):
            cells.setdefault(setting_of(row), {})[row["read"], row["seed"]] = row[question.value]
    need = len(seeds) * len({plus, minus})
    whole = [cell for cell in cells.values() if len(cell) == need]
    y = np.array([[cell[plus, s] - (cell[minus, s] if plus != minus else 0) for s in seeds] for cell in whole])  # (cells, seeds)
    rest = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0, keepdims=True) + y.mean()
    freedom = (len(whole) - 1) * (len(seeds) - 1)
    return float((rest**2).sum() / freedom), freedom


# ---------------------------------------------------------------- bootstrap


def bootstrap(
    rows: Sequence[Row],
    statistic: Callable[[list[Row]], float | Sequence[float]],
    by: str = "seed",
    draws: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple:
    """A statistic of the rows, and the percentiles between which it lies when they are drawn again: value, low, high.

    Args:
        rows: of models; what is drawn together stays together.
        statistic: of a list of rows, in which some are there more than once; a number, or several, which give as many of each.
        by: what is drawn: "seed", all models of a seed, so that pairs stay pairs; "setting", all models of a setting; "within", seeds in
            each setting for itself. With fewer than about ten of them the interval is too narrow: three seeds give 27 draws.

    Raises:
        ValueError: if there is nothing to draw, or no such way to draw.
    """
    keys = {"seed": lambda row: row["seed"], "setting": setting_of, "within": setting_of}
    if by not in keys or not rows:
        raise ValueError(f"rows are drawn by {', '.join(keys)}, and there must be some; got {by!r} and {len(rows)} rows")
    groups: dict = {}
    for row in rows:
        groups.setdefault(keys[by](row), []).append(row)
    groups, random = list(groups.values()), np.random.default_rng(seed)
    values = []
    for _ in range(draws):
        drawn = groups if by == "within" else [groups[i] for i in random.integers(len(groups), size=len(groups))]
        if by == "within":
            drawn = [[group[i] for i in random.integers(len(group), size=len(group))] for group in drawn]
        values.append(statistic([row for group in drawn for row in group]))
    ends = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return tuple(np.asarray(each).tolist() for each in (statistic(list(rows)), *ends))


# ---------------------------------------------------------------- predictors

Predictor = Callable[[Sequence[Row], str], Callable[[Row], float]]


def constant(rows: Sequence[Row], value: str) -> Callable[[Row], float]:
    """A predictor that gives the mean of the rows it was fitted on, whatever the setting."""
    mean = float(np.mean([row[value] for row in rows]))
    return lambda row: mean


def unfitted(formula: Callable[[Row], float]) -> Predictor:
    """A predictor that gives what a formula says and fits nothing."""
    return lambda rows, value: formula


def fitted(*features: Callable[[Row], float]) -> Predictor:
    """A predictor that fits an offset and a slope for each feature by least squares."""

    def fit(rows: Sequence[Row], value: str) -> Callable[[Row], float]:
        columns = lambda row: [1.0, *(feature(row) for feature in features)]  # noqa: E731
        weights, *_ = np.linalg.lstsq(
            np.array([columns(row) for row in rows]), np.array([row[value] for row in rows]), rcond=None
        )
        return lambda row: float(columns(row) @ weights)

    return fit


def baseline_compare(
    rows: Sequence[Row], predictors: dict[str, Predictor], value: str = "gamma", comparisons: int = COMPARISONS
) -> dict[str, dict[str, float]]:
    """Predictors on settings that they have not seen, each against a constant.

    One setting after the other is left out with all its seeds; each predictor is fitted on the others and predicts its mean. To leave out
    one row would not do: its setting's other seeds would tell it.

    Returns:
        Of each predictor the mean absolute `error`; `R2`, 1 less its squared error over the constant's, which can be below 0; and the
        `gain`, the constant's error less its own, with its `low` and `high` end by a bootstrap over settings.

    Raises:
        ValueError: if the rows have fewer than three settings.
    """
    settings = list(dict.fromkeys(map(setting_of, rows)))
    if len(settings) < 3:
        raise ValueError(f"to leave one setting out takes three or more, the rows have {len(settings)}")
    missed = {"constant": [], **{name: [] for name in predictors}}
    for setting in settings:
        left, others = ([row for row in rows if (setting_of(row) == setting) is out] for out in (True, False))
        truth = float(np.mean([row[value] for row in left]))
        for name, fit in {"constant": constant, **predictors}.items():
            missed[name].append(fit(others, value)(left[0]) - truth)
    base = np.array(missed["constant"])
    return {name: _against(base, np.array(each), 0.05 / comparisons) for name, each in missed.items()}


def _against(base: np.ndarray, missed: np.ndarray, level: float) -> dict[str, float]:
    gains = np.abs(base) - np.abs(missed)
    drawn = gains[np.random.default_rng(0).integers(len(gains), size=(20_000, len(gains)))].mean(axis=1)
    low, high = np.quantile(drawn, [level / 2, 1 - level / 2])
    error, r2 = np.abs(missed).mean(), 1 - (missed**2).sum() / (base**2).sum()
    return {"error": float(error), "R2": float(r2), "gain": float(gains.mean()), "low": float(low), "high": float(high)}


# ---------------------------------------------------------------- variance


def variance_shares(
    rows: Sequence[Row], factors: dict[str, tuple[str, ...]], value: str = "gamma"
) -> dict[str, dict[str, float]]:
    """Which share of the variance of a value each factor has, by nested linear models.

    Args:
        factors: the columns that are a factor, by its name; its levels are the combinations that occur.

    Returns:
        Of each factor its share `alone`, what a model of it only explains; `last`, what it explains beyond all others (equal in a
        balanced design); and `adjusted`, `last` less what as many levels of pure noise would get. Further, each as a share: `together`,
        what settings explain beyond the sum of the factors, and `seeds`, what is left within settings.

    Raises:
        ValueError: if no setting has two rows, or all values are equal.
    """
    y = np.array([row[value] for row in rows], dtype=float)
    levels = {name: [tuple(row[column] for column in columns) for row in rows] for name, columns in factors.items()}
    (total, _), (within, cells) = _rest(y, []), _rest(y, [[setting_of(row) for row in rows]])
    if len(y) == cells or total == 0:
        raise ValueError(
            "variance is shared out between settings and seeds: some setting must have two rows, and values must differ"
        )
    noise = within / (len(y) - cells)
    added, rank = _rest(y, list(levels.values()))
    shares = {}
    for name, level in levels.items():
        without, fewer = _rest(y, [each for other, each in levels.items() if other != name])
        alone, gained = total - _rest(y, [level])[0], without - added
        shares[name] = {"alone": alone / total, "last": gained / total, "adjusted": (gained - (rank - fewer) * noise) / total}
    together = {"last": (added - within) / total, "adjusted": (added - within - (cells - rank) * noise) / total}
    return shares | {"together": together, "seeds": {"last": within / total}}


def _rest(y: np.ndarray, factors: list[list]) -> tuple[float, int]:
    """Sum of squares that a constant and the levels of some factors leave, and the rank of that model: y (n,)."""
    columns = [np.ones(len(y))]
    for level in factors:
        columns += [np.array([each == one for each in level], dtype=float) for one in dict.fromkeys(level)]
    design = np.stack(columns, axis=1)  # (n, 1 + levels)
    weights, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    return float(((y - design @ weights) ** 2).sum()), int(rank)
