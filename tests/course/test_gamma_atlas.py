"""The atlas's table, answers, bootstrap, predictors and shares of variance against plain arithmetic and planted effects."""

import gzip
import hashlib
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from course import gamma_atlas
from course.data import record, record_path
from course.gamma_atlas import (
    BASE,
    COMPARISONS,
    QUESTIONS,
    SETTING,
    Question,
    answer,
    atlas_table,
    baseline_compare,
    bootstrap,
    constant,
    contrast,
    fitted,
    joined,
    setting_of,
    student,
    unfitted,
    variance_shares,
    write_table,
)


def row(seed: int = 0, gamma: float = 0.0, read: str = "own", **setting) -> dict:
    return BASE | setting | {"seed": seed, "read": read, "gamma": gamma}


def planted(effects: dict[str, dict], sd: float, random, seeds=(0, 1, 2), **base) -> list[dict]:
    """All combinations of the levels of some columns, γ the sum of their effects and noise."""
    rows = []
    for levels in itertools.product(*effects.values()):
        mean = sum(effect[level] for effect, level in zip(effects.values(), levels, strict=True))
        rows += [
            row(seed, mean + sd * random.standard_normal(), **base, **dict(zip(effects, levels, strict=True))) for seed in seeds
        ]
    return rows


# ---------------------------------------------------------------- the table


def test_a_table_is_read_as_it_was_written(tmp_path):
    rows = [
        row(seed, 0.12345, read, theta=1e5, mark=seed == 0)
        | {"parameters": 7, "bits": 2.0, "layers": [0.5, -1.0], "profile": [1e-5]}
        for seed, read in ((0, "own"), (1, "own"), (0, "short"))
    ]
    path = tmp_path / "table.csv.gz"
    write_table(rows, path)
    first = path.read_bytes()
    assert atlas_table(None, path) == rows and atlas_table("short", path) == rows[2:] and len(atlas_table(path=path)) == 2
    write_table(rows, path)
    assert path.read_bytes() == first and gzip.decompress(first).decode().splitlines()[0] == ",".join(rows[0])


def test_numbers_are_kept_to_five_digits_and_those_of_lists_to_four(tmp_path):
    write_table([row(0, 0.123456789) | {"parts": [0.123456789]}], tmp_path / "t")
    (kept,) = atlas_table(None, tmp_path / "t")
    assert kept["gamma"] == 0.12346 and kept["parts"] == [0.1235] and isinstance(kept["T"], int) and kept["theta"] == 1e4


def test_a_table_that_is_not_there_says_how_to_make_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"python experiments/gamma_atlas\.py"):
        atlas_table(path=tmp_path / "none.csv.gz")


# ---------------------------------------------------------------- questions and answers

DEPTH = Question("depth", "Deep?", {"n_layers": 8}, {"n_layers": 2}, ({"T": 256}, {"T": 1024}))


def test_a_contrast_is_the_mean_over_blocks_of_plus_less_minus_by_seed():
    rows = [row(s, s + layers / 10 + T / 1000, n_layers=layers, T=T) for s in (0, 1) for layers in (2, 4, 8) for T in (256, 1024)]
    assert contrast(rows, DEPTH) == pytest.approx({0: 0.6, 1: 0.6})
    assert contrast(rows[:-1], DEPTH) == pytest.approx({0: 0.6})  # seed 1 lost an arm
    other = [row(s, s + 10 * layers, "short", n_layers=layers, T=T) for s in (0, 1) for layers in (2, 8) for T in (256, 1024)]
    assert contrast(rows + other, DEPTH) == pytest.approx({0: 0.6, 1: 0.6})


def test_arms_of_a_question_differ_in_what_it_asks_about_only():
    for q in QUESTIONS:
        assert set(q.plus) == set(q.minus) and set(q.plus) <= set(SETTING) and (q.plus != q.minus or q.reads[0] != q.reads[1])
        assert all(set(block) <= set(SETTING) and not set(block) & set(q.plus) for block in q.blocks)
    assert len({q.name for q in QUESTIONS}) == len(QUESTIONS) == COMPARISONS - 2


def test_the_interval_is_students_t_with_the_variance_of_all_cells():
    """Against a linear model with cells and seeds, by numpy's least squares."""
    random = np.random.default_rng(0)
    levels = {"n_layers": {2: 0.2, 4: 0.3, 8: 0.4}, "T": {256: 0.0, 512: 0.1, 1024: 0.2}}
    rows = planted(levels, 0.05, random) + [row(s, 9 * random.random(), text="copies_0.7") for s in (0, 1, 2)]
    natural = rows[:-3]
    cells, seeds = sorted({setting_of(r) for r in natural}), (0, 1, 2)
    design = np.array([[setting_of(r) == c for c in cells] + [r["seed"] == s for s in seeds] for r in natural], dtype=float)
    y = np.array([r["gamma"] for r in natural])
    _, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    freedom = len(y) - rank
    se = math.sqrt((rest @ rest) / freedom * 2 / (3 * 2))
    told = answer(rows, DEPTH)
    assert freedom == 16 and told["mean"] == pytest.approx(np.mean(list(contrast(rows, DEPTH).values())))
    assert told["high"] - told["mean"] == pytest.approx(stats.t.ppf(1 - 0.025 / COMPARISONS, freedom) * se)
    assert told["mean"] - told["low"] == pytest.approx(told["high"] - told["mean"])


def test_the_interval_of_two_readings_is_that_of_their_differences():
    random, q = np.random.default_rng(1), Question("r", "Read?", blocks=({"T": 256}, {"T": 512}), reads=("own", "short"))
    rows, gaps = [], np.array([[0.1, 0.2, 0.15], [0.3, 0.35, 0.28], [0.0, 0.1, 0.02]])
    for i, T in enumerate((256, 512, 1024)):
        for s in range(3):
            at = random.standard_normal()
            rows += [row(s, at, "own", T=T), row(s, at - gaps[i, s], "short", T=T)]
    told = answer(rows, q, comparisons=1)
    rest = gaps - gaps.mean(1, keepdims=True) - gaps.mean(0) + gaps.mean()
    half = stats.t.ppf(0.975, 4) * math.sqrt((rest**2).sum() / 4 / 6)
    assert told["mean"] == pytest.approx(gaps[:2].mean()) and told["high"] == pytest.approx(gaps[:2].mean() + half)


@pytest.mark.parametrize(
    ("effect", "sd", "verdict"),
    [(0.3, 0.01, "yes"), (-0.3, 0.01, "yes"), (0.02, 0.01, "no"), (0.0, 0.01, "no"), (0.05, 0.3, "unknown")],
)
def test_a_planted_effect_is_found_and_an_absent_one_denied(effect, sd, verdict):
    rows = planted({"n_layers": {2: 0, 4: 0, 8: effect}, "T": {256: 0, 1024: 0.5}}, sd, np.random.default_rng(2))
    assert answer(rows, DEPTH)["verdict"] == verdict


def test_intervals_of_contrasts_cover_the_truth_as_often_as_they_say():
    random, hits = np.random.default_rng(4), 0
    for _ in range(600):
        rows = planted({"n_layers": {2: 0, 8: 0.1}, "T": {256: 0, 512: 1, 1024: 0.5}}, 0.1, random)
        told = answer(rows, DEPTH, comparisons=1)
        hits += told["low"] <= 0.1 <= told["high"]
    assert hits / 600 == pytest.approx(0.95, abs=0.03)


def test_one_seed_gives_no_interval():
    with pytest.raises(ValueError, match="two seeds or more"):
        answer(planted({"n_layers": {2: 0, 8: 1}, "T": {256: 0, 1024: 1}}, 0, np.random.default_rng(0), seeds=(0,)), DEPTH)


# ---------------------------------------------------------------- bootstrap


def mean_gamma(rows):
    return float(np.mean([r["gamma"] for r in rows]))


def gap(rows):
    return mean_gamma([r for r in rows if r["T"] == 1024]) - mean_gamma([r for r in rows if r["T"] == 256])


def test_a_bootstrap_by_seed_keeps_pairs():
    rows = [row(s, 10 * s + (T == 1024), T=T) for s in range(5) for T in (256, 1024)]
    assert bootstrap(rows, gap) == pytest.approx((1, 1, 1))
    value, low, high = bootstrap(rows, gap, by="within")
    assert value == pytest.approx(1) and high - low > 10


def test_a_bootstrap_of_three_seeds_is_that_of_all_27_draws():
    rows = [row(s, g) for s, g in enumerate((0.0, 1.0, 5.0))]
    means = sorted(np.mean(draw) for draw in itertools.product((0.0, 1.0, 5.0), repeat=3))
    _, low, high = bootstrap(rows, mean_gamma, draws=20_000, level=0.8)
    assert {low, high} <= set(np.round(means, 12)) | set(means) or (low in means and high in means)
    assert low == pytest.approx(np.quantile(means, 0.1), abs=0.34) and high == pytest.approx(np.quantile(means, 0.9), abs=0.34)


def test_a_bootstrap_covers_with_twenty_and_hardly_with_three():
    """The lesson of its docstring: percentiles of three draws are too narrow."""
    random, cover = np.random.default_rng(5), {}
    for n in (3, 20):
        hits = 0
        for _ in range(150):
            _, low, high = bootstrap([row(s, random.standard_normal()) for s in range(n)], mean_gamma, draws=100)
            hits += low <= 0 <= high
        cover[n] = hits / 150
    assert cover[20] > 0.85 and cover[3] < 0.83


def test_several_statistics_are_drawn_at_once():
    rows = [row(s, g) for s, g in enumerate((0.0, 1.0, 5.0, 2.0))]
    both = bootstrap(rows, lambda r: [mean_gamma(r), -mean_gamma(r)])
    value, low, high = bootstrap(rows, mean_gamma)
    assert both[0] == [value, -value] and both[1] == pytest.approx([low, -high]) and both[2] == pytest.approx([high, -low])


def test_a_bootstrap_by_setting_draws_settings():
    rows = [row(s, T / 256, T=T) for s in range(4) for T in (256, 512)]
    _, low, high = bootstrap(rows, mean_gamma, by="setting")
    assert (low, high) == (1, 2)
    with pytest.raises(ValueError, match="rows are drawn by seed, setting, within"):
        bootstrap(rows, mean_gamma, by="row")
    with pytest.raises(ValueError, match="0 rows"):
        bootstrap([], mean_gamma)


# ---------------------------------------------------------------- predictors


def log_theta(r):
    return math.log10(r["theta"])


def grid(gamma, sd=0.0, seeds=(0, 1, 2)):
    random = np.random.default_rng(6)
    return [
        row(s, gamma(theta, T) + sd * random.standard_normal(), theta=theta, T=T)
        for theta in (1e2, 1e3, 1e4, 1e5)
        for T in (256, 512, 1024)
        for s in seeds
    ]


def test_a_law_that_holds_beats_the_constant_and_one_that_does_not_loses():
    rows = grid(lambda theta, T: 0.2 * math.log10(theta) - 0.1, 0.01)
    told = baseline_compare(
        rows,
        {"law": fitted(log_theta), "length": fitted(lambda r: r["T"]), "itself": unfitted(lambda r: 0.2 * log_theta(r) - 0.1)},
    )
    assert told["law"]["R2"] > 0.98 and told["law"]["low"] > 0 and told["itself"]["low"] > 0
    assert told["constant"] == {"error": told["constant"]["error"], "R2": 0, "gain": 0, "low": 0, "high": 0}
    assert told["length"]["R2"] < 0.2 and not told["length"]["low"] > 0


def test_errors_are_those_of_settings_left_out_by_hand():
    rows = [row(s, g + d, T=T) for T, g in ((256, 0.0), (512, 0.3), (1024, 0.9)) for s, d in ((0, -0.1), (1, 0.1))]
    told = baseline_compare(rows, {"half": unfitted(lambda r: 0.5)})
    assert told["constant"]["error"] == pytest.approx((0.6 + 0.15 + 0.75) / 3)
    assert told["half"]["error"] == pytest.approx((0.5 + 0.2 + 0.4) / 3)
    assert told["half"]["R2"] == pytest.approx(1 - (0.25 + 0.04 + 0.16) / (0.36 + 0.0225 + 0.5625))
    assert told["half"]["gain"] == pytest.approx(0.4 / 3)


def test_who_knows_the_other_seeds_by_heart_gains_nothing():
    """With one row left out a memory of settings would look perfect."""
    rows = grid(lambda theta, T: hash((theta, T)) % 7 / 7)

    def memory(rows, value):
        known = {setting_of(r): r[value] for r in rows}
        return lambda r: known.get(setting_of(r), constant(rows, value)(r))

    told = baseline_compare(rows, {"memory": memory})
    assert told["memory"]["gain"] == 0 == told["memory"]["R2"]


def test_fitted_is_least_squares():
    rows = grid(lambda theta, T: 0.1 * math.log10(theta) + T / 1000, 0.05)
    predict = fitted(log_theta, lambda r: r["T"])(rows, "gamma")
    x = np.array([[1, log_theta(r), r["T"]] for r in rows])
    weights = np.linalg.solve(x.T @ x, x.T @ np.array([r["gamma"] for r in rows]))
    assert predict(rows[5]) == pytest.approx(x[5] @ weights)


def test_two_settings_are_too_few_to_leave_one_out():
    with pytest.raises(ValueError, match="three or more"):
        baseline_compare([row(0, 0.1), row(0, 0.2, T=256)], {})


# ---------------------------------------------------------------- variance

FACTORS = {"text": ("text",), "base": ("theta",), "length": ("T",)}
LEVELS = {
    "text": {"austen": 0.0, "shakespeare": 0.1, "shuffled": -0.4},
    "theta": {1e2: 0.05, 1e4: -0.05},
    "T": {256: 0.0, 1024: 0.0},
}


def test_shares_of_a_balanced_design_are_those_of_the_means_and_add_to_one():
    rows = planted(LEVELS, 0.03, np.random.default_rng(7))
    y = np.array([r["gamma"] for r in rows])
    told = variance_shares(rows, FACTORS)
    for name, (column,) in FACTORS.items():
        means = {level: y[[r[column] == level for r in rows]].mean() for level in LEVELS[column]}
        between = sum((means[r[column]] - y.mean()) ** 2 for r in rows) / ((y - y.mean()) ** 2).sum()
        assert told[name]["alone"] == pytest.approx(between) == told[name]["last"]
    assert sum(each["last"] for each in told.values()) == pytest.approx(1)
    assert told["text"]["last"] > 0.85 and told["length"]["last"] < 0.05
    within = sum(((np.array([r["gamma"] for r in g]) - np.mean([r["gamma"] for r in g])) ** 2).sum() for g in by_setting(rows))
    assert told["seeds"]["last"] == pytest.approx(within / ((y - y.mean()) ** 2).sum())


def by_setting(rows):
    groups = {}
    for r in rows:
        groups.setdefault(setting_of(r), []).append(r)
    return groups.values()


def test_adjusted_shares_of_nothing_are_nothing_on_average():
    random = np.random.default_rng(8)
    nothing = {column: dict.fromkeys(levels, 0.0) for column, levels in LEVELS.items()}
    told = [variance_shares(planted(nothing, 1.0, random), FACTORS) for _ in range(150)]
    for name in (*FACTORS, "together"):
        adjusted, last = (np.array([each[name][kind] for each in told]) for kind in ("adjusted", "last"))
        assert adjusted.mean() == pytest.approx(0, abs=4 * adjusted.std() / 12) and last.mean() > 0.02


def test_confounded_factors_have_no_share_of_their_own():
    rows = [
        row(s, g + 0.01 * s, T=T, theta=theta)
        for T, theta, g in ((256, 1e2, 0.0), (512, 1e3, 0.5), (1024, 1e4, 0.7))
        for s in (0, 1)
    ]
    told = variance_shares(rows, {"base": ("theta",), "length": ("T",)})
    assert told["base"]["alone"] > 0.99 and told["base"]["last"] == pytest.approx(0, abs=1e-9) == told["length"]["last"]


def test_columns_together_are_one_factor_and_an_interaction_is_together():
    rows = [
        row(s, float((T == 256) == (theta == 1e2)) + 0.01 * s, T=T, theta=theta)
        for T in (256, 512)
        for theta in (1e2, 1e3)
        for s in (0, 1)
    ]
    told = variance_shares(rows, {"base": ("theta",), "length": ("T",)})
    assert told["together"]["last"] > 0.99 and told["base"]["last"] == pytest.approx(0, abs=1e-9)
    assert variance_shares(rows, {"both": ("theta", "T")})["both"]["last"] > 0.99


def test_shares_need_two_rows_of_a_setting():
    with pytest.raises(ValueError, match="some setting must have two rows"):
        variance_shares([row(0, 0.1), row(0, 0.2, T=256)], {"length": ("T",)})


def test_shares_have_intervals_by_the_bootstrap():
    rows = planted(LEVELS, 0.03, np.random.default_rng(9), seeds=range(6))
    value, low, high = bootstrap(rows, lambda r: variance_shares(r, FACTORS)["text"]["last"], by="within", draws=100)
    assert low < value < high and high - low < 0.1 and gamma_atlas.COMPARISONS == COMPARISONS


# ---------------------------------------------------------------- the record


def test_the_courses_table_is_whole_and_that_of_its_record():
    told, path = record("gamma_atlas"), record_path("gamma_atlas").with_suffix(".csv.gz")
    assert path.stat().st_size <= 2_000_000 and hashlib.sha256(path.read_bytes()).hexdigest() == told["results"]["sha256"]
    rows = atlas_table(None)
    assert len(rows) == told["results"]["rows"] == 5 * told["results"]["models"] and told["results"]["models"] >= 60
    assert list(rows[0]) == told["results"]["columns"] and len(told["seeds"]) >= 3
    assert len({(setting_of(r), r["seed"], r["read"]) for r in rows}) == len(rows)
    assert all(list(contrast(rows, question)) == told["seeds"] for question in QUESTIONS)
    assert all(np.isfinite([x for x in r.values() if isinstance(x, float)]).all() for r in rows)


# ---------------------------------------------------------------- the record's answers, by plain arithmetic

FIGURES = {
    # name: mean, ends of the interval, verdict; ends by the seeds alone, and what they would say
    "base": (0.05, -0.01, 0.12, "unknown", -0.07, 0.17, "unknown"),
    "length": (-0.02, -0.08, 0.04, "no", -0.34, 0.30, "unknown"),
    "trained length": (-0.27, -0.33, -0.22, "yes", -0.59, 0.04, "unknown"),
    "author": (-0.00, -0.05, 0.05, "no", -0.15, 0.15, "unknown"),
    "order": (-0.36, -0.42, -0.31, "yes", -0.43, -0.30, "yes"),
    "dependence": (0.21, 0.14, 0.27, "yes", 0.18, 0.24, "yes"),
    "kind": (0.08, 0.08, 0.08, "yes", 0.08, 0.08, "yes"),
    "depth": (-0.17, -0.29, -0.06, "yes", -0.56, 0.22, "unknown"),
    "width": (0.08, -0.04, 0.19, "unknown", -0.12, 0.28, "unknown"),
    "heads": (0.07, -0.04, 0.19, "unknown", -0.06, 0.21, "unknown"),
    "position": (0.20, 0.09, 0.32, "yes", 0.09, 0.32, "yes"),
    "tokens": (0.64, 0.52, 0.76, "yes", 0.26, 1.02, "yes"),
    "rate": (0.16, 0.04, 0.28, "yes", -0.05, 0.38, "unknown"),
    "sink": (0.00, -0.00, 0.00, "no", -0.00, 0.00, "no"),
    "training": (0.93, 0.91, 0.96, "yes", 0.81, 1.06, "yes"),
    "text read": (0.03, 0.02, 0.03, "no", 0.01, 0.05, "no"),
    "tokens read": (0.01, 0.01, 0.01, "no", 0.00, 0.02, "no"),
}
ASKED = {
    # name: what plus and minus set, the settings over which it is averaged, column, readings, least
    "base": ({"theta": "1e+05"}, {"theta": "100"}, "T", "gamma", ("own", "own"), 0.1),
    "length": ({"T": "1024"}, {"T": "256"}, "theta", "gamma", ("own", "own"), 0.1),
    "trained length": ({"T": "1024"}, {"T": "256"}, "theta", "gamma", ("short", "short"), 0.1),
    "author": ({"text": "shakespeare"}, {}, "core", "gamma", ("own", "own"), 0.1),
    "order": ({"text": "shuffled"}, {}, "core", "gamma", ("own", "own"), 0.1),
    "dependence": ({"text": "copies_1.3"}, {"text": "copies_0.7"}, "", "gamma", ("own", "own"), 0.1),
    "kind": ({"text": "copies_geometric"}, {"text": "copies_0.7"}, "", "exponential_gain", ("own", "own"), 0.02),
    "depth": ({"n_layers": "8"}, {"n_layers": "2"}, "", "gamma", ("own", "own"), 0.1),
    "width": ({"d_model": "384", "n_heads": "12"}, {"d_model": "96", "n_heads": "3"}, "", "gamma", ("own", "own"), 0.1),
    "heads": ({"n_heads": "3"}, {}, "", "gamma", ("own", "own"), 0.1),
    "position": ({"position": "learned"}, {}, "", "gamma", ("own", "own"), 0.1),
    "tokens": ({"tokens": "67108864"}, {"tokens": "4194304"}, "", "gamma", ("own", "own"), 0.1),
    "rate": ({"rate": "0.003"}, {}, "", "gamma", ("own", "own"), 0.1),
    "sink": ({}, {"mark": "False"}, "", "first", ("own", "own"), 0.05),
    "training": ({}, {}, "austen", "gamma", ("own", "untrained"), 0.1),
    "text read": ({}, {}, "austen", "gamma", ("own", "foreign"), 0.1),
    "tokens read": ({}, {}, "austen", "gamma", ("own", "shuffled"), 0.1),
}
PLAIN_BASE = {
    "text": "austen", "theta": "10000", "T": "512", "n_layers": "4", "d_model": "192", "n_heads": "6", "position": "rope",
    "mark": "True", "tokens": "16777216", "rate": "0.001",
}  # fmt: skip
BASES, LENGTHS = ("100", "1000", "10000", "1e+05"), ("256", "512", "1024")
AVERAGED = {
    "": [{}],
    "T": [{"T": T} for T in LENGTHS],
    "theta": [{"theta": theta} for theta in BASES],
    "core": [{}, *({"theta": theta, "T": T} for theta in ("100", "10000") for T in ("256", "1024"))],
    "austen": [{"theta": theta, "T": T} for theta in BASES for T in LENGTHS],
}


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return atlas_table(None)


@pytest.fixture(scope="module")
def plain() -> dict:
    """The table as text: value by column, cell, reading and seed; nothing of `course.gamma_atlas` reads it."""
    lines = gzip.decompress(record_path("gamma_atlas").with_suffix(".csv.gz").read_bytes()).decode().splitlines()
    names = lines[0].split(",")
    rows = [dict(zip(names, line.split(","), strict=True)) for line in lines[1:]]
    return {
        (column, tuple(row[name] for name in PLAIN_BASE), row["read"], int(row["seed"])): float(row[column])
        for row in rows
        for column in ("gamma", "exponential_gain", "first")
    }


def plain_answer(plain: dict, name: str) -> tuple:
    plus, minus, averaged, column, (read, other), least = ASKED[name]
    cell = lambda *changes: tuple({k: v for each in (PLAIN_BASE, *changes) for k, v in each.items()}.values())  # noqa: E731
    blocks = AVERAGED[averaged]
    by_seed = [
        sum(plain[column, cell(b, plus), read, s] - plain[column, cell(b, minus), other, s] for b in blocks) / len(blocks)
        for s in range(5)
    ]
    family = {
        each[1]
        for each in plain
        if (each[1][0] in ("copies_0.7", "copies_1.3", "copies_geometric", "lazy_chain")) == (averaged == "" and "text" in plus)
    }
    less = 0.0 if read == other else 1.0
    y = {(c, s): plain[column, c, read, s] - less * plain[column, c, other, s] for c in family for s in range(5)}
    of_cell = {c: sum(y[c, s] for s in range(5)) / 5 for c in family}
    of_seed = [sum(y[c, s] for c in family) / len(family) for s in range(5)]
    grand, freedom = sum(of_seed) / 5, 4 * (len(family) - 1)
    variance = sum((y[c, s] - of_cell[c] - of_seed[s] + grand) ** 2 for c in family for s in range(5)) / freedom
    mean = sum(by_seed) / 5
    half = stats.t.ppf(1 - 0.05 / 19 / 2, freedom) * math.sqrt((1 if less else 2) * variance / (5 * len(blocks)))
    alone = stats.t.ppf(1 - 0.05 / 19 / 2, 4) * math.sqrt(sum((x - mean) ** 2 for x in by_seed) / 4 / 5)

    def says(half: float) -> str:
        if mean + half < least and mean - half > -least:
            return "no"
        return "yes" if abs(mean) >= least and (mean > half or -mean > half) else "unknown"

    return mean, mean - half, mean + half, says(half), mean - alone, mean + alone, says(alone)


@pytest.mark.parametrize("name", FIGURES)
def test_the_answers_of_the_record_are_those_of_plain_arithmetic(plain, rows, name):
    found, told = plain_answer(plain, name), FIGURES[name]
    assert [found[i] for i in (3, 6)] == [told[i] for i in (3, 6)]
    assert [found[i] for i in (0, 1, 2, 4, 5)] == pytest.approx([told[i] for i in (0, 1, 2, 4, 5)], abs=0.005)
    (question,) = (q for q in QUESTIONS if q.name == name)
    for answered, start in ((answer(rows, question), 1), (student(rows, question), 4)):
        assert answered["verdict"] == found[start + 2]
        assert [answered[k] for k in ("mean", "low", "high")] == pytest.approx([found[0], *found[start : start + 2]], abs=1e-9)


def test_gamma_pade_on_the_record_by_plain_arithmetic(plain):
    """Twelve settings of base and length, each left out once."""
    at = [(float(b["theta"]), float(b["T"]), tuple((PLAIN_BASE | b).values())) for b in AVERAGED["austen"]]
    truth = np.array([sum(plain["gamma", c, "own", s] for s in range(5)) / 5 for *_, c in at])
    pade = np.array([(2 * theta - T * 2**0.5) / (2 * theta + T * 2**0.5) for theta, T, _ in at])
    missed = {"constant": [], "pade": [], "fitted": []}
    for k in range(12):
        others = np.arange(12) != k
        slope, offset = np.polyfit(pade[others], truth[others], 1)
        for name, guess in (("constant", truth[others].mean()), ("pade", pade[k]), ("fitted", offset + slope * pade[k])):
            missed[name].append(abs(guess - truth[k]))
    errors = {name: float(np.mean(each)) for name, each in missed.items()}
    assert errors == pytest.approx({"constant": 0.022, "pade": 0.495, "fitted": 0.020}, abs=6e-4)
    own = [r for r in joined(atlas_table(None)) if all(r[k] == BASE[k] for k in SETTING if k not in ("theta", "T"))]
    told = baseline_compare(own, {"pade": unfitted(lambda r: r["gamma_pade"]), "fitted": fitted(lambda r: r["gamma_pade"])})
    assert {name: each["error"] for name, each in told.items()} == pytest.approx(errors, abs=1e-9)
    assert told["pade"]["high"] < 0 and told["fitted"]["low"] < 0 < told["fitted"]["high"]


def test_seeds_of_cells_of_one_length_move_together():
    """Why the seeds' own interval is wider than the rule's for the question of length."""
    own = [r for r in atlas_table() if all(r[k] == BASE[k] for k in SETTING if k not in ("theta", "T"))]
    y = np.array([[r["gamma"] for r in own if (r["theta"], r["T"]) == (theta, 256)] for theta in (1e2, 1e3, 1e4, 1e5)])  # (4, 5)
    between = np.corrcoef(y)[np.triu_indices(4, 1)]
    assert between.min() > 0.75


def test_students_interval_covers_where_blocks_share_a_seed_and_the_rules_does_not():
    random, hits = np.random.default_rng(11), {"rule": 0, "seeds": 0}
    question = Question("T", "?", {"T": 1024}, {"T": 256}, tuple({"theta": theta} for theta in (1e2, 1e3, 1e4, 1e5)))
    for _ in range(300):
        shared = {(T, s): 0.1 * random.standard_normal() for T in (256, 1024) for s in range(5)}
        rows = [
            row(s, shared[T, s] + 0.03 * random.standard_normal(), theta=theta, T=T)
            for theta in (1e2, 1e3, 1e4, 1e5)
            for T in (256, 1024)
            for s in range(5)
        ]
        for name, told in (("rule", answer(rows, question, 1)), ("seeds", student(rows, question, 1))):
            hits[name] += told["low"] <= 0 <= told["high"]
    assert hits["seeds"] / 300 == pytest.approx(0.95, abs=0.035) and hits["rule"] / 300 < 0.8
    with pytest.raises(ValueError, match="two seeds or more"):
        student(rows[:1], question)
