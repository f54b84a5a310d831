"""The evidence behind the formulas of ch16_gamma_atlas."""

from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest

from course import data, looks
from course.gamma_atlas import (
    BASE,
    QUESTIONS,
    SETTING,
    Question,
    answer,
    atlas_table,
    baseline_compare,
    contrast,
    fitted,
    joined,
    setting_of,
    student,
    unfitted,
    variance_shares,
)

BASES = (1e2, 1e3, 1e4, 1e5)


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return atlas_table(None)


@pytest.fixture(scope="module")
def models(rows) -> list[dict]:
    return joined(rows)


def gammas(rows, read: str = "own", **change) -> np.ndarray:
    setting = tuple((BASE | change).values())
    return np.array([row["gamma"] for row in rows if setting_of(row) == setting and row["read"] == read])


# ---------------------------------------------------------------- arithmetic


@pytest.mark.receipt("ch16-sign", "computed")
def test_the_sign_test_counts_the_lopsided_splits():
    for n in range(1, 11):
        for few in range(n // 2 + 1):
            lopsided = sum(min(sum(coins), n - sum(coins)) <= few for coins in product((0, 1), repeat=n))
            formula = min(Fraction(1), Fraction(2, 2**n) * sum(comb(n, k) for k in range(few + 1)))
            assert formula == Fraction(lopsided, 2**n)


@pytest.mark.receipt("ch16-contrast", "computed")
def test_a_contrast_is_the_coefficient_of_its_arm(rows):
    for name in ("length", "order"):
        (question,) = (q for q in QUESTIONS if q.name == name)
        arms = {
            tuple((BASE | block | arm).values()): (i, sign)
            for i, block in enumerate(question.blocks)
            for arm, sign in ((question.plus, 1), (question.minus, 0))
        }
        some = [row for row in rows if row["read"] == "own" and setting_of(row) in arms]
        pairs = [(arms[setting_of(row)][0], row["seed"]) for row in some]
        table = np.array(
            [
                [arms[setting_of(row)][1], *(pair == each for each in sorted(set(pairs)))]
                for row, pair in zip(some, pairs, strict=True)
            ],
            dtype=float,
        )
        coefficient = np.linalg.lstsq(table, np.array([row["gamma"] for row in some]), rcond=None)[0][0]
        assert np.mean(list(contrast(rows, question).values())) == pytest.approx(coefficient, abs=1e-9)


@pytest.mark.receipt("ch16-interval", "computed")
def test_the_interval_covers_only_where_cells_are_independent(rows):
    random, blocks = np.random.default_rng(0), tuple({"theta": theta} for theta in BASES)
    question, lengths, seeds, hits = Question("T", "?", {"T": 1024}, {"T": 256}, blocks), (256, 512, 1024), range(5), {}
    for shared in (0.0, 0.1):
        hits[shared] = 0
        for _ in range(600):
            luck = {s: 0.2 * random.standard_normal() for s in seeds}  # falls out of every contrast
            trace = {(T, s): shared * random.standard_normal() for T in lengths for s in seeds}
            made = [
                BASE
                | {
                    "theta": theta,
                    "T": T,
                    "seed": s,
                    "read": "own",
                    "gamma": 0.3 * (T == 1024) + luck[s] + trace[T, s] + 0.04 * random.standard_normal(),
                }
                for theta in BASES
                for T in lengths
                for s in seeds
            ]
            told = answer(made, question, comparisons=1)
            hits[shared] += told["low"] <= 0.3 <= told["high"]
    assert 0.92 <= hits[0.0] / 600 <= 0.98 and hits[0.1] / 600 < 0.75
    cells = np.array([gammas(rows, theta=theta, T=256) for theta in BASES])  # (bases, seeds)
    assert np.corrcoef(cells)[np.triu_indices(4, 1)].min() > 0.75


@pytest.mark.receipt("ch16-two-lengths", "computed")
def test_length_is_trained_plus_read(rows):
    exact = {
        (row["theta"], row["T"], row["read"], row["seed"]): Decimal(repr(row["gamma"]))
        for row in rows
        if row["text"] == "austen" and row["T"] != 512
    }
    for theta, s in product(BASES, range(5)):
        trained = exact[theta, 1024, "short", s] - exact[theta, 256, "short", s]
        read = exact[theta, 1024, "own", s] - exact[theta, 1024, "short", s]
        assert exact[theta, 1024, "own", s] - exact[theta, 256, "own", s] == trained + read


@pytest.mark.receipt("ch16-left-out", "computed")
def test_a_gain_by_the_formula_for_leaving_out():
    random = np.random.default_rng(1)
    for n in (4, 7, 12):
        x, y = random.standard_normal(n), random.standard_normal(n)
        made = [BASE | {"T": k, "seed": 0, "gamma": y[k], "x": x[k]} for k in range(n)]
        missed = []
        for table in (np.ones((n, 1)), np.stack([np.ones(n), x], axis=1)):
            hat = table @ np.linalg.inv(table.T @ table) @ table.T  # (n, n)
            missed.append(np.abs((y - hat @ y) / (1 - np.diag(hat))))
        told = baseline_compare(made, {"line": fitted(lambda row: row["x"])})
        assert told["line"]["gain"] == pytest.approx((missed[0] - missed[1]).mean(), abs=1e-9)


def core(models) -> list[dict]:
    free = {"text": ("austen", "shakespeare", "shuffled"), "theta": (1e2, 1e4), "T": (256, 1024)}
    return [row for row in models if all(row[name] in free.get(name, (BASE[name],)) for name in SETTING)]


@pytest.mark.receipt("ch16-share", "computed")
def test_shares_of_the_core_are_those_of_its_means(models):
    some = core(models)
    y = np.array([row["gamma"] for row in some])
    told, total = variance_shares(some, {"text": ("text",), "base": ("theta",), "length": ("T",)}), ((y - y.mean()) ** 2).sum()
    for name, column in (("text", "text"), ("base", "theta"), ("length", "T")):
        level = np.array([y[[other[column] == row[column] for other in some]].mean() for row in some])
        assert told[name]["last"] == pytest.approx(((level - y.mean()) ** 2).sum() / total, abs=1e-9)
    assert len(some) == 60 and sum(each["last"] for each in told.values()) == pytest.approx(1, abs=1e-9)
    assert told["text"]["last"] > 0.85 and told["base"]["last"] + told["length"]["last"] < 0.012


# ---------------------------------------------------------------- the record


@pytest.mark.receipt("ch16-answers", "measured")
def test_the_answers_are_those_of_the_record(rows):
    record = data.record("gamma_atlas")
    assert record["mode"] == "full" and record["seeds"] == [0, 1, 2, 3, 4] and record["results"]["models"] == 185
    told = {question.name: answer(rows, question) for question in QUESTIONS}
    alone = {question.name: student(rows, question)["verdict"] for question in QUESTIONS}
    verdict = lambda kind: {name for name, each in told.items() if each["verdict"] == kind}  # noqa: E731
    assert verdict("yes") == {"training", "tokens", "order", "trained length", "dependence", "kind", "position", "depth", "rate"}
    assert verdict("no") == {"length", "author", "sink", "text read", "tokens read"} and verdict("unknown") == {
        "base",
        "width",
        "heads",
    }
    for name, mean in (("tokens", 0.64), ("order", -0.36), ("base", 0.05), ("length", -0.02)):
        assert told[name]["mean"] == pytest.approx(mean, abs=0.005)
    intervals = {name: (each["low"], each["high"]) for name, each in told.items()}
    assert intervals["order"] == pytest.approx((-0.42, -0.31), abs=0.005) and intervals["base"] == pytest.approx(
        (-0.01, 0.12), abs=0.005
    )
    assert {name for name, each in alone.items() if each == "yes"} == {
        "order",
        "dependence",
        "kind",
        "position",
        "tokens",
        "training",
    }
    assert {name for name, each in alone.items() if each == "no"} == {"sink", "text read", "tokens read"}


@pytest.mark.receipt("ch16-read", "measured")
def test_reading_longer_is_steeper(rows):
    rise = np.array([gammas(rows, theta=b, T=1024) - gammas(rows, "short", theta=b, T=1024) for b in BASES])  # (bases, seeds)
    mean, half = data.interval(rise.mean(axis=0).tolist())
    assert rise.min() > 0 and mean == pytest.approx(0.25, abs=0.005) and half < 0.015
    for theta in BASES:
        some = [row for row in rows if setting_of(row) == tuple((BASE | {"theta": theta, "T": 1024}).values())]
        x, y = (np.mean([row["profile"][3:128] for row in some if row["read"] == read], axis=0) for read in ("own", "short"))
        assert np.corrcoef(x, y)[0, 1] ** 2 > 0.98 and np.polyfit(x, y, 1)[1] > 0
    seen = data.record("looks")["results"]["atlas_dot"]
    assert looks.LOOKS["atlas_dot"] and all(b - a > 0.1 for a, b in zip(seen["own"]["256"], seen["own"]["512"], strict=True))


@pytest.mark.receipt("ch16-predicts", "refuted")
def test_gamma_pade_is_worse_than_a_constant(models):
    grid = [row for row in models if all(row[name] == BASE[name] for name in SETTING if name not in ("theta", "T"))]
    told = baseline_compare(
        grid, {"pade": unfitted(lambda row: row["gamma_pade"]), "fitted": fitted(lambda row: row["gamma_pade"])}
    )
    assert len({setting_of(row) for row in grid}) == 12 and len(grid) == 60
    assert told["pade"]["error"] == pytest.approx(0.495, abs=6e-4) and told["constant"]["error"] == pytest.approx(0.022, abs=6e-4)
    assert told["pade"]["high"] < 0 and told["fitted"]["low"] < 0 < told["fitted"]["high"] and told["fitted"]["gain"] < 0.004
    large = baseline_compare([row for row in grid if row["theta"] >= 1e4], {"pade": unfitted(lambda row: row["gamma_pade"])})
    assert large["pade"]["error"] < 0.03 and large["constant"]["error"] < 0.03  # where bases are large neither is refuted
    means = [np.mean([row["gamma"] for row in grid if setting_of(row) == each]) for each in {setting_of(row) for row in grid}]
    formula = [(1 - x) / (1 + x) for x in (row["T"] / (2**0.5 * row["theta"]) for row in grid)]
    assert (min(means), max(means)) == pytest.approx((0.90, 0.99), abs=0.005)
    assert (min(formula), max(formula)) == pytest.approx((-0.76, 1.00), abs=0.005)


@pytest.mark.receipt("ch16-err-below", "erratum")
def test_untrained_models_lie_below_one_as_well(models):
    assert len(models) == 185 and max(abs(row["gamma_untrained"]) for row in models) < 0.03
    assert sum(row["gamma"] < 1 for row in models) == 155
    assert {row["text"] for row in models if row["gamma"] <= row["gamma_untrained"]} == {"lazy_chain"}


@pytest.mark.receipt("ch16-err-edge", "erratum")
def test_more_training_crosses_one(rows):
    by_tokens = np.array([gammas(rows, tokens=tokens) for tokens in (2**22, 2**24, 2**26)])  # (tokens, seeds)
    assert by_tokens.mean(axis=1) == pytest.approx([0.49, 0.92, 1.13], abs=0.005)
    assert (np.diff(by_tokens, axis=0) > 0).all() and by_tokens[2].min() > 1
