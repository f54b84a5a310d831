"""The evidence behind the formulas of ch15_decay_law."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch
from scipy.optimize import minimize

from course import data, decay_law, gamma_atlas
from course.attention_maps import distance_profile


def random_shares(seed: int, n: int) -> np.ndarray:
    p = np.random.default_rng(seed).uniform(0.02, 1, n)
    return p / p.sum()


def slope_of(x, y) -> tuple[float, float]:
    x, y = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    return -float(np.polyfit(x, y, 1)[0]), float(np.corrcoef(x, y)[0, 1] ** 2)


# ---------------------------------------------------------------- the law and its line


@pytest.mark.receipt("ch15-decay", "measured")
def test_the_mean_over_heads_is_nearly_a_power_law_and_heads_are_not():
    record = data.record("decay_law")
    gpt = record["results"]["gpt"]
    assert record["mode"] == "full" and record["settings"]["gpt"]["windows"] == 12
    gains = {curve: np.array(values) for curve, values in gpt["gains"].items()}
    share = {curve: values / gains["profile itself"] for curve, values in gains.items()}
    assert share["power law"].min() >= 0.98 and share["exponential"].max() < 0.9
    ahead = gains["power law"] - gains["exponential"]
    assert ahead.min() > 0
    for rival in ("log-normal", "stretched exponential", "truncated power law", "broken power law"):
        lead, half = data.interval(gains[rival] - gains["power law"])
        assert lead - half > 0 and lead + half < 0.004
    heads = gpt["heads"]
    assert heads["best"]["power law"] == 0 and sum(heads["best"].values()) == 36
    assert min(heads["exponent"]) < 0.1 and max(heads["exponent"]) > 1.8
    assert sum(a < b for a, b in zip(heads["gains"]["power law"], heads["gains"]["exponential"], strict=True)) == 15
    more, half = data.interval(np.subtract(gpt["exponent"]["shuffled tokens"], gpt["exponent"]["text"]))
    assert more - half > 0 and more + half < 0.04
    assert max(abs(x) for null in ("keys permuted", "untrained") for x in gpt["exponent"][null]) < 0.03


@pytest.mark.receipt("ch15-slope", "computed")
def test_the_slope_is_numpys():
    for seed, (low, high) in enumerate(((4, 150), (2, 60), (10, 199))):
        profile = np.random.default_rng(seed).uniform(0.1, 1, 200)
        n = round(2 * math.log2((high + 1) / low))
        edges = [round(low * ((high + 1) / low) ** (i / n)) for i in range(n + 1)]
        bins = [list(range(a, b)) for a, b in pairwise(edges)]
        at = [math.exp(np.mean(np.log(each))) for each in bins]
        expected, _ = slope_of(at, [profile[each].mean() for each in bins])
        found = decay_law.decay_fit(torch.tensor(profile), low, high)["power"]
        assert abs(float(found) - expected) <= 1e-9


@pytest.mark.receipt("ch15-phase", "computed")
def test_the_sum_grows_without_bound_up_to_one():
    x, R = sp.symbols("x R", positive=True)
    for gamma in (0.4, 0.7, 0.9, 1.0, 1.1, 1.3, 2.0):
        antiderivative = (lambda r: math.log(r)) if gamma == 1 else (lambda r, g=gamma: (r ** (1 - g) - 1) / (1 - g))
        total = 0.0
        for r in range(1, 100_001):
            total += r**-gamma
            if r in (1, 10, 1000, 100_000):
                above, below = total - antiderivative(r + 1), 1 + antiderivative(r) - total
                error = max(-above, -below)
                assert error <= 1e-9
    for gamma, endless in ((sp.Rational(1, 2), True), (1, True), (sp.Rational(3, 2), False), (2, False)):
        assert (sp.limit(sp.integrate(x**-gamma, (x, 1, R)), R, sp.oo) == sp.oo) is endless


@pytest.mark.receipt("ch15-err-r2", "erratum")
def test_curves_that_are_no_power_laws_pass():
    r = np.arange(20, 61)
    assert slope_of(r, np.exp(-r / 30))[1] > 0.95
    r = np.arange(1, 401)
    assert slope_of(r, np.exp(-((np.log(r) - 1) ** 2) / 8) / r)[1] > 0.95
    r = np.arange(1, 256)
    assert slope_of(r, decay_law.even_profile(512)[1:256])[1] > 0.95


# ---------------------------------------------------------------- even attention


@pytest.mark.receipt("ch15-null", "computed")
def test_the_null_is_the_mean_over_queries():
    for T in (1, 2, 3, 5, 8, 13, 21, 34, 55):
        table = [[Fraction(1, i + 1) if j <= i else Fraction(0) for j in range(T)] for i in range(T)]
        expected = [sum(table[i][i - r] for i in range(r, T)) / (T - r) for r in range(T)]
        error = max(abs(float(x) - y) for x, y in zip(expected, decay_law.even_profile(T).tolist(), strict=True))
        assert error <= 1e-15


@pytest.mark.receipt("ch15-null-log", "computed")
def test_the_error_of_the_logarithm():
    with mpmath.workdps(40):
        for T in range(2, 151):
            total = mpmath.mpf(0)
            for r in range(T - 1, 0, -1):
                total += mpmath.mpf(1) / (r + 1)
                excess = mpmath.log(mpmath.mpf(T) / r) - total
                bound = (mpmath.mpf(1) / r - mpmath.mpf(1) / T) / 2
                assert excess > 0 and excess < bound
                assert float(excess - bound) <= 0.0


@pytest.mark.receipt("ch15-null-protocols", "computed")
def test_even_attention_has_an_exponent_by_two_protocols():
    nine = np.array([10, 20, 30, 50, 100, 200, 500, 1000, 2000])
    gamma, r2 = slope_of(nine, 1 / (nine + 50))
    assert abs(gamma - 0.686) <= 1e-3 and abs(r2 - 0.967) <= 1e-3
    gamma, r2 = slope_of(nine[2:], 1 / (nine[2:] + 50))
    assert abs(gamma - 0.783) <= 1e-3 and abs(r2 - 0.988) <= 1e-3
    T = 512
    weights = np.tril(np.ones((T, T))) / np.arange(1, T + 1)[:, None]
    r = np.arange(1, T // 2)
    gamma, r2 = slope_of(r, [np.diagonal(weights, -k).mean() for k in r])
    assert abs(gamma - 0.314) <= 1e-3 and abs(r2 - 0.978) <= 1e-3
    late = decay_law.decay_fit(distance_profile(torch.tensor(weights)))["power"]
    assert abs(float(late)) <= 1e-9


# ---------------------------------------------------------------- curves, likelihood, entropy


@pytest.mark.receipt("ch15-curves", "derived")
def test_each_curve_has_the_form_that_its_name_says():
    r, gamma, b, mu, sigma, c = sp.symbols("r gamma b mu sigma c", positive=True)
    densities = {
        "power law": (r**-gamma, [gamma]),
        "exponential": (sp.exp(-b * r), [b]),
        "stretched exponential": (sp.exp(-b * r**c), [b]),
        "truncated power law": (r**-gamma * sp.exp(-b * r), [gamma, b]),
        "log-normal": (sp.exp(-((sp.log(r) - mu) ** 2) / (2 * sigma**2)) / r, [1 - mu / sigma**2, 1 / (2 * sigma**2)]),
    }
    for curve, (density, eta) in densities.items():
        functions = {
            "power law": [sp.log(r)],
            "exponential": [r],
            "stretched exponential": [r**c],
            "truncated power law": [sp.log(r), r],
            "log-normal": [sp.log(r), sp.log(r) ** 2],
        }[curve]
        rest = sp.expand_log(sp.log(density), force=True) + sum(e * f for e, f in zip(eta, functions, strict=True))
        assert sp.simplify(sp.diff(sp.expand(rest), r)) == 0  # a constant, which makes the shares sum to one
        distance = torch.arange(2, 30, dtype=torch.float64)
        built = decay_law.budgets(curve, distance, 0.4)
        for row, f in zip(built, functions, strict=True):
            expected = np.array(sp.lambdify((r, c), f)(distance.numpy(), 0.4), dtype=float)
            assert np.abs(row.numpy() - expected).max() < 1e-12


@pytest.mark.receipt("ch15-likelihood", "computed")
def test_the_likeliest_multipliers_are_scipys():
    r = np.arange(3, 90)
    for seed, rows in enumerate(([np.log(r)], [r / 10], [np.log(r), np.log(r) ** 2], [np.log(r), r / 10])):
        p, f = random_shares(seed, len(r)) * r**-0.7, np.array(rows, dtype=float)
        p = p / p.sum()

        def loss(eta, p=p, f=f):
            z = -eta @ f
            return float(-p @ (z - z.max() - np.log(np.exp(z - z.max()).sum())))

        theirs = minimize(
            loss, np.zeros(len(f)), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15, "maxiter": 20_000}
        ).x
        ours = decay_law.multipliers(torch.tensor(f @ p), torch.tensor(f))
        error = float(np.abs(ours.numpy() - theirs).max())
        assert error <= 1e-5
        q = (-ours @ torch.tensor(f)).softmax(0).numpy()
        assert np.abs(f @ q - f @ p).max() <= 1e-9


@pytest.mark.receipt("ch15-maxent", "computed")
def test_no_distribution_with_the_same_mean_has_more_entropy():
    for seed in range(8):
        n = 12 + 5 * seed
        p, log = random_shares(seed, n), np.log(np.arange(1, n + 1))
        q = decay_law.maxent(torch.tensor(log)[None], torch.tensor([p @ log])).numpy()
        entropy = lambda s: float(-s @ np.log(s))  # noqa: E731
        error = abs(entropy(p) - (entropy(q) - float(p @ np.log(p / q))))
        assert error <= 1e-9
        assert entropy(p) < entropy(q)
    n, log = 8, np.log(np.arange(1, 9))
    p = random_shares(3, n)
    rules = [{"type": "eq", "fun": lambda s: s.sum() - 1}, {"type": "eq", "fun": lambda s: s @ log - p @ log}]
    theirs = minimize(
        lambda s: s @ np.log(s),
        p,
        bounds=[(1e-9, 1)] * n,
        constraints=rules,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    ).x
    q = decay_law.maxent(torch.tensor(log)[None], torch.tensor([p @ log])).numpy()
    error = float(np.abs(theirs - q).max())
    assert error <= 1e-4
    assert np.abs(np.diff(np.log(q)) / np.diff(log) - np.diff(np.log(q))[0] / np.diff(log)[0]).max() < 1e-9  # a line


@pytest.mark.receipt("ch15-err-fixed", "erratum")
def test_heads_of_one_model_do_not_share_a_mean_logarithm():
    record = data.record("decay_law")
    means = record["results"]["gpt"]["heads"]["mean log"]  # of the measured shares of each head, distances 4 to 150
    assert record["mode"] == "full" and len(means) == 36
    assert max(means) - min(means) > 1.5


@pytest.mark.receipt("ch15-gain", "computed")
def test_the_gain_is_a_mean_over_draws():
    low, high, n = 3, 60, 400_000
    train, test = (torch.tensor(random_shares(seed, 61) / np.arange(1, 62)) for seed in (1, 2))
    found = decay_law.gains(train, test, low, high)
    p = test[low : high + 1].numpy()
    drawn = np.random.default_rng(0).choice(np.arange(low, high + 1), size=n, p=p / p.sum())
    for curve in ("power law", "exponential", "log-normal"):
        log_q = decay_law.fit_curve(train, curve, low, high)["log_q"].numpy()
        values = log_q[drawn - low] + math.log(high - low + 1)
        error = abs(float(found[curve]) - values.mean())
        assert error <= 5 * values.std() / math.sqrt(n)


# ---------------------------------------------------------------- the closed form as a prediction


@pytest.mark.receipt("ch15-predicts", "refuted")
def test_the_closed_form_does_not_predict():
    rows = decay_law.PUBLIC
    assert len(rows) == 20 and sum(theta == 10_000 for _, _, theta, _ in rows) == 16
    pade = np.array([(1 - x) / (1 + x) for x in (2000 / (math.sqrt(2) * theta) for _, _, theta, _ in rows)])
    seen = np.array([gamma for *_, gamma in rows])
    others = (seen.sum() - seen) / (len(seen) - 1)
    assert np.corrcoef(pade, seen)[0, 1] < 0.1
    assert 1 - ((seen - pade) ** 2).sum() / ((seen - seen.mean()) ** 2).sum() < -0.25
    assert np.median(np.abs(pade - seen) / seen) > np.median(np.abs(others - seen) / seen)
    settings = {(theta, T): [] for theta in (1e2, 1e3, 1e4, 1e5) for T in (256, 512, 1024)}
    same = {k: v for k, v in gamma_atlas.BASE.items() if k not in ("theta", "T")}
    for row in gamma_atlas.atlas_table():
        if all(row[k] == v for k, v in same.items()):
            settings[row["theta"], row["T"]].append(row["gamma"])
    assert [len(seeds) for seeds in settings.values()] == [5] * 12
    pade = np.array([(1 - x) / (1 + x) for x in (T / (math.sqrt(2) * theta) for theta, T in settings)])
    seen = np.array([np.mean(seeds) for seeds in settings.values()])
    others = (seen.sum() - seen) / (len(seen) - 1)
    assert np.ptp(pade) > 1.7 and np.ptp(seen) < 0.1
    assert np.abs(pade - seen).mean() > 0.45 and np.abs(others - seen).mean() < 0.03
    lines = [np.polyval(np.polyfit(np.delete(pade, i), np.delete(seen, i), 1), pade[i]) for i in range(12)]
    assert np.abs(others - seen).mean() - np.abs(lines - seen).mean() < 0.005
