"""The evidence behind the formulas of ch22_thermo_dictionary."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch
from scipy.optimize import minimize_scalar

from course import data
from course import thermo_dictionary as thermo
from course.phase_polylog import power_law


def summed(gamma: float, N: int) -> tuple[float, float]:
    """Mean and variance of ln r by plain sums over all distances."""
    x = np.log(np.arange(1, N + 1, dtype=float))
    z = -gamma * x
    w = np.exp(z - z.max())
    p = w / w.sum()
    mean = float(p @ x)
    return mean, float(p @ (x - mean) ** 2)


# ---------------------------------------------------------------- entropy


@pytest.mark.receipt("ch22-entropy", "computed")
def test_entropy_is_mpmaths():
    for gamma in (-2.0, 0.0, 0.5, 1.0, 1.3, 2.5, 6.0):
        for N in (2, 30, 300):
            with mpmath.workdps(40):
                w = [mpmath.mpf(r) ** -gamma for r in range(1, N + 1)]
                Z = mpmath.fsum(w)
                expected = float(-mpmath.fsum(x / Z * mpmath.log(x / Z) for x in w))
            assert abs(float(thermo.entropy(gamma, N)) - expected) <= 1e-11


@pytest.mark.receipt("ch22-regimes", "computed")
@pytest.mark.receipt("ch22-err-area", "erratum")
def test_three_regimes_of_entropy():
    L, gamma = sp.symbols("L gamma", positive=True)
    below = (1 - gamma) * L - sp.log(1 - gamma) + gamma * (L - 1 / (1 - gamma))  # ln Z + γ U, leading terms, L = ln N
    assert sp.simplify(sp.limit(below.subs(gamma, sp.Rational(1, 2)) / L, L, sp.oo) - 1) == 0
    assert sp.limit((sp.log(L) + L / 2) / L, L, sp.oo) == sp.Rational(1, 2)
    above = sp.log(1 / (gamma - 1)) + gamma / (gamma - 1)
    assert sp.limit(above.subs(gamma, sp.Rational(3, 2)) / L, L, sp.oo) == 0

    def slope(gamma, N):
        return float(thermo.entropy(gamma, 10 * N) - thermo.entropy(gamma, N)) / math.log(10)

    for gamma, limit in ((0.3, 1), (0.7, 1), (0.9, 1), (1.0, 0.5), (1.3, 0), (2.0, 0)):
        assert abs(slope(gamma, 10**50) - limit) <= 0.01
    for gamma in (0.3, 0.7, 0.9):
        assert slope(gamma, 10**6) < 1
    assert slope(1.0, 10**6) > 0.5 and slope(1.3, 10**6) > 0
    for gamma, expected in ((0.7, 0.96), (1.0, 0.58), (1.3, 0.08)):
        plain = []
        for N in (10**5, 10**6):
            p = np.arange(1, N + 1, dtype=float) ** -gamma
            p /= p.sum()
            plain.append(float(-(p * np.log(p)).sum()))
        assert abs((plain[1] - plain[0]) / math.log(10) - expected) <= 0.005
    assert abs(float(thermo.entropy(0.0, 1000)) - math.log(1000)) <= 1e-12


# ---------------------------------------------------------------- the variance at γ = 1


@pytest.mark.receipt("ch22-discrete", "derived")
def test_the_variance_on_whole_distances():
    L, e, s, t = sp.symbols("L e s t")  # ln N; Euler's constant, the first and the second Stieltjes constant
    S0, S1, S2 = L + e, L**2 / 2 + s, L**3 / 3 + t
    x = sp.symbols("x", positive=True)  # 1 / L
    variance = sp.together((S2 / S0 - (S1 / S0) ** 2).subs(L, 1 / x))
    found = sp.series(variance * x**2, x, 0, 3).removeO()
    expected = sp.Rational(1, 12) + e / 6 * x + (-sp.Rational(5, 12) * e**2 - s) * x**2
    assert sp.expand(found - expected) == 0
    for N in (10**3, 10**4, 10**6, 10**12, 10**50, 10**100):
        rest = float(thermo.heat_capacity(1.0, N)) - thermo.expansion_at_one(N)
        assert 0.03 <= rest * math.log(N) <= 0.04
    for N, value in ((1000, 4.580), (10**6, 17.171)):
        _, exact = summed(1.0, N)
        assert abs(exact - value) <= 5e-4 and abs(float(thermo.heat_capacity(1.0, N)) - exact) <= 1e-8
    assert abs(thermo.expansion_at_one(1000, 1) - 3.976) <= 5e-4


@pytest.mark.receipt("ch22-peak", "computed")
def test_the_heat_capacity_is_largest_above_one():
    def searched(N):
        return minimize_scalar(lambda g: -(g**2) * summed(g, N)[1], bounds=(0.8, 3), method="bounded", options={"xatol": 1e-7})

    found = searched(1000)
    assert abs(found.x - 1.2998) <= 5e-4 and abs(thermo.heat_peak(1000)[0] - found.x) <= 1e-5
    assert abs(-found.fun / summed(1.0, 1000)[1] - 1.31) <= 0.005
    assert abs(1 + 20 / math.log(1000) ** 2 - 1.42) <= 0.005
    for N in (30, 300):
        assert searched(N).x > 1 and abs(thermo.heat_peak(N)[0] - searched(N).x) <= 1e-5
    shares = [(thermo.heat_peak(N)[0] - 1) * math.log(N) ** 2 / 20 for N in (10**3, 10**6, 10**12, 10**50)]
    assert shares == sorted(shares) and abs(shares[2] - 0.94) <= 0.005 and abs(shares[3] - 0.99) <= 0.005
    u, L = sp.symbols("u L", positive=True)
    curve = sp.series(1 / u**2 - 1 / (4 * sp.sinh(u / 2) ** 2), u, 0, 4).removeO()
    assert sp.simplify(curve - (sp.Rational(1, 12) - u**2 / 240)) == 0
    step = sp.symbols("step")
    lowest = 2 * step - step**2 * L**2 / 20  # of ln C_V
    assert sp.solve(sp.diff(lowest, step), step) == [20 / L**2]


# ---------------------------------------------------------------- the thermometer, and heads


def test_the_likeliest_exponent_reaches_the_bound():
    """To 5% for 100 draws: what the entry ch22-cramer-rao says of a simulation."""
    generator = np.random.default_rng(0)
    N, n, runs = 300, 100, 2500
    x = np.log(np.arange(1, N + 1))
    for gamma in (0.5, 1.0, 1.5):
        p = power_law(gamma, N).numpy()
        draws = generator.choice(x, size=(runs, n), p=p / p.sum())
        found = thermo.fit_exponent(torch.tensor(draws.mean(axis=1)), N).numpy()
        least = (n * summed(gamma, N)[1]) ** -0.5
        assert abs(np.sqrt(np.mean((found - gamma) ** 2)) / least - 1) <= 0.05
        assert abs(found.mean() - gamma) <= 0.01


@pytest.mark.receipt("ch22-head", "measured")
def test_a_power_law_overstates_the_response_of_heads():
    record = data.record("thermo_dictionary")
    assert record["mode"] == "full" and record["settings"]["windows"] == 12 and record["settings"]["N"] == 256
    text = {k: np.array(v) for k, v in record["results"]["text"].items()}
    ratio = text["predicted"] / text["response"]
    assert len(ratio) == 36 and abs(np.median(ratio) - 2.8) <= 0.05
    assert np.abs(np.quantile(ratio, [0.25, 0.75]) - [2.2, 3.1]).max() <= 0.05
    assert int((np.abs(ratio - 1) < 0.2).sum()) == 2
    others = np.array([np.median(np.delete(text["response"], i)) for i in range(36)])
    error = {k: np.abs(v / text["response"] - 1) for k, v in (("law", text["predicted"]), ("null", others))}
    assert np.median(error["law"]) > 1.5 and np.median(error["null"]) < 0.3
    more, half = data.interval(np.abs(np.log(ratio)) - np.abs(np.log(others / text["response"])))
    assert more - half > 0
    own = -text["exponent"] * text["within"] / text["response"]
    steps = [text["law"] / text["profile"], text["profile"] / text["within"], own]
    assert np.allclose(np.prod(steps, axis=0), ratio, rtol=5e-2) and all(np.median(step) > 1.2 for step in steps)
    moved = text["moved"] / (0.1 * text["response"])
    assert moved.min() > 0.8 and moved.max() <= 1.01
    law, profile, query = (text[k] for k in ("law entropy", "profile entropy", "entropy"))
    assert (law > profile).all() and (profile > query).all()
    assert abs(np.median(np.exp(law - profile)) - 1.09) <= 0.01 and abs(np.median(np.exp(law - query)) - 2.7) <= 0.05
    for start, single, whole in (("from 1", 0.79, 0.96), ("from 4", 0.84, 0.98)):
        spread = record["results"]["spread"][start]
        assert len(spread["heads"]) == 36 and abs(np.median(spread["heads"]) - single) <= 0.005
        assert abs(spread["mean of heads"] - whole) <= 0.005
    planted = record["results"]["planted"]
    assert planted[0]["noise"] == 0 and abs(planted[0]["predicted"] / planted[0]["response"] - 1) < 1e-3
    ratios = [row["predicted"] / row["response"] for row in planted]
    assert ratios == sorted(ratios) and ratios[-1] > 1.7
    seen = {k: np.array(v) for k, v in data.record("looks")["results"]["responses"].items() if k in ("predicted", "response")}
    for x, y, most in ((text["predicted"], text["response"], 0.0), (seen["predicted"], seen["response"], -0.15)):
        factor, null = (np.array([np.median(np.delete(z, i)) for i in range(len(z))]) for z in (x / y, y))
        less, half = data.interval(np.abs(x / factor - y) - np.abs(null - y))
        assert less + half < most
    assert 1.7 < np.median(seen["predicted"] / seen["response"]) < 1.9
