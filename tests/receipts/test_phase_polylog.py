"""The evidence behind the formulas of ch21_phase_polylog."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch
from scipy import optimize

from course import data
from course import phase_polylog as pp
from course.gamma_atlas import SYNTHETIC, atlas_table, bootstrap, setting_of

EULER = 0.5772156649015329
u = sp.symbols("u", positive=True)


def zeta_sum(gamma, N):
    """Z of the distances 1 to N, by mpmath's zetas."""
    return mpmath.harmonic(N) if gamma == 1 else mpmath.zeta(gamma) - mpmath.zeta(gamma, N + 1)


# ---------------------------------------------------------------- at γ = 1, and without end


@pytest.mark.receipt("ch21-euler", "computed")
def test_harmonic_numbers_are_a_logarithm_and_eulers_constant():
    total = 0.0
    for N in range(1, 20_001):
        total += 1 / N
        rest = total - math.log(N) - EULER
        assert rest + 1e-12 > 1 / (2 * N) - 1 / (8 * N**2) and rest - 1e-12 < 1 / (2 * N)
    assert abs(total - float(pp.log_partition(1.0, 20_000).exp())) < 1e-11


@pytest.mark.receipt("ch21-polylog", "computed")
def test_the_cut_off_sum_is_the_polylogarithm():
    for gamma in (-1.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.7):
        for z in (0.01, 0.3, 0.9, 0.999, 1 - 1e-6):
            exact = float(mpmath.polylog(gamma, mpmath.mpf(z)).real)
            assert abs(float(pp.polylog(gamma, z)) / exact - 1) < 1e-11
            if z < 0.95:
                assert abs(math.fsum(z**r * r**-gamma for r in range(1, 1_500)) / exact - 1) < 1e-12


@pytest.mark.receipt("ch21-near-one", "computed")
def test_near_one_the_polylogarithm_has_three_faces():
    for cut in (1e-3, 1e-4, 1e-5):
        z = mpmath.exp(-mpmath.mpf(cut))
        assert abs(mpmath.polylog(1, z) - mpmath.log(1 / mpmath.mpf(cut))) < cut
        for gamma in (0.3, 0.7, 0.9):
            leading = mpmath.gamma(1 - gamma) * mpmath.mpf(cut) ** (gamma - 1)
            assert abs(mpmath.polylog(gamma, z).real - leading - mpmath.zeta(gamma)) < cut
        for gamma in (1.1, 1.3, 1.7):
            gap = mpmath.zeta(gamma) - mpmath.polylog(gamma, z).real
            assert abs(gap + mpmath.gamma(1 - gamma) * mpmath.mpf(cut) ** (gamma - 1)) < 3 * cut


# ---------------------------------------------------------------- the continuum


def cumulants_of_the_continuum():
    """Mean and variance of ln r over ln N, from Z of a continuum of distances as a function of u."""
    log_z = sp.log((1 - sp.exp(-u)) / u)  # Z = ∫ r^−γ dr from 1 to N, over ln N
    return -sp.diff(log_z, u), sp.diff(log_z, u, 2)


@pytest.mark.receipt("ch21-collapse", "derived")
def test_a_continuum_has_one_curve():
    r, N = sp.symbols("r N", positive=True)
    for g in (sp.Rational(1, 2), sp.Rational(3, 2), 3):
        with_u = (1 - sp.exp(-(g - 1) * sp.log(N))) / (g - 1)
        assert sp.simplify(sp.integrate(r**-g, (r, 1, N)) - with_u) == 0
    mean, variance = cumulants_of_the_continuum()
    assert sp.simplify(mean - (1 / u - 1 / (sp.exp(u) - 1))) == 0
    assert sp.simplify((variance - (1 / u**2 - 1 / (4 * sp.sinh(u / 2) ** 2))).rewrite(sp.exp)) == 0
    assert sp.limit(variance, u, 0) == sp.Rational(1, 12)
    for x in (-30.0, -2.0, -0.05, 0.0, 0.05, 1.0, 12.0):
        v = mpmath.mpf(x) or mpmath.mpf(10) ** -8
        with mpmath.workdps(40):
            exact = 1 / v**2 - 1 / (4 * mpmath.sinh(v / 2) ** 2), 1 / v - 1 / mpmath.expm1(v)
        assert abs(float(pp.scaled_variance(x)) - float(exact[0])) < 1e-11
        assert abs(float(pp.scaled_mean(x)) - float(exact[1])) < 1e-8
    # exact sums come near it, at least as fast as 1 / ln N
    scales = (1e4, 1e16, 1e64)
    gaps = []
    for N in scales:
        at = torch.linspace(-8, 8, 65, dtype=torch.float64)
        found = pp.cumulants(1 + at / math.log(N), N)[:, 1] / math.log(N) ** 2
        gaps.append(float((found - pp.scaled_variance(at)).abs().max()) * math.log(N))
    assert max(gaps) < 0.12 and gaps[0] > 0.05


@pytest.mark.receipt("ch21-share", "derived")
def test_half_of_the_logarithm_holds_a_logistic_share():
    area = lambda end: (1 - sp.exp(-u * end)) / u  # noqa: E731
    share = sp.simplify(area(sp.Rational(1, 2)) / area(1))
    assert sp.simplify(share - 1 / (1 + sp.exp(-u / 2))) == 0
    for N in (10**4, 10**8, 10**20):
        for gamma in (0.9, 1.0, 1.1):
            exact = float(zeta_sum(gamma, math.isqrt(N)) / zeta_sum(gamma, N))
            near = 1 / (1 + math.exp(-(gamma - 1) * math.log(N) / 2))
            assert abs(exact - near) < 0.4 / math.log(N)


@pytest.mark.receipt("ch21-ends", "derived")
def test_the_mean_of_a_long_continuum_keeps_to_one_end():
    x, end = sp.symbols("x end", positive=True)  # ln r and ln N: r^−γ dr is e^(−(γ − 1) x) dx
    for g in (sp.Rational(3, 2), sp.Integer(3)):
        area = sp.integrate(sp.exp(-(g - 1) * x), (x, 0, sp.oo))
        assert sp.simplify(sp.integrate(x * sp.exp(-(g - 1) * x), (x, 0, sp.oo)) / area - 1 / (g - 1)) == 0
    half = sp.Rational(1, 2)
    mean = sp.integrate(x * sp.exp(half * x), (x, 0, end)) / sp.integrate(sp.exp(half * x), (x, 0, end))
    assert sp.limit(sp.simplify(mean - (end - 1 / (1 - half))), end, sp.oo) == 0


@pytest.mark.receipt("ch21-response", "derived")
def test_the_response_is_the_square_on_both_sides():
    gamma, log_n = sp.symbols("gamma log_n", positive=True)
    above = sp.log(1 / (gamma - 1))  # Z of all distances from 1 on
    below = (1 - gamma) * log_n - sp.log(1 - gamma)  # Z of distances up to N without what is left out at its start
    assert sp.simplify(-sp.diff(above, gamma) - 1 / (gamma - 1)) == 0
    assert sp.simplify(-sp.diff(below, gamma) - (log_n - 1 / (1 - gamma))) == 0
    for log_z in (above, below):
        assert sp.simplify(sp.diff(log_z, gamma, 2) - 1 / (gamma - 1) ** 2) == 0
    for g in (0.3, 0.5, 0.7):
        assert abs(float(pp.cumulants(g, 1e200)[1]) * (g - 1) ** 2 - 1) < 1e-9
    for g in (1.05, 1.1, 1.3):  # above 1 whole distances stay below a continuum, near 1 by 2 γ_1 + γ_E², about 0.19
        of_zeta = float(mpmath.diff(lambda s: mpmath.log(mpmath.zeta(s)), g, 2))
        assert abs(float(pp.cumulants(g, 1e300)[1]) - of_zeta) < 1e-6
        assert 0.16 < 1 / (g - 1) ** 2 - of_zeta < 0.19


@pytest.mark.receipt("ch21-err-chi", "computed")
def test_the_mean_is_not_the_response():
    for gamma, N in ((1.05, 10**300), (0.7, 10**100), (0.9, 10**300)):
        mean, variance = pp.cumulants(gamma, N).tolist()
        gap = abs(gamma - 1)
        from_its_end = mean if gamma > 1 else math.log(N) - mean
        assert abs(from_its_end * gap - 1) < 0.06 and abs(variance * gap**2 - 1) < 0.06
        assert variance * gap > 3  # what the source calls the response is too small by the factor 1 / |γ − 1|


@pytest.mark.receipt("ch21-peak", "derived")
def test_where_the_peak_lies():
    e, d = sp.symbols("epsilon delta")
    g = (1 - sp.exp(-u)) / u
    # ln Z = ln(ln N) + ln(g + ε + δu + …), ε = γ_E / ln N and δ = −γ₁ / (ln N)², from ζ(1 + s) = 1/s + γ_E − γ₁ s + …
    third = lambda f: sp.series(f, u, 0, 5).removeO().coeff(u, 3) * 6  # noqa: E731
    slope = sp.series(sp.log(g), u, 0, 5).removeO().coeff(u, 4) * 24
    assert slope == -sp.Rational(1, 120) and third(sp.log(g)) == 0
    assert third(1 / g) == 0 and third(-1 / (2 * g**2)) == -sp.Rational(1, 4) and third(u / g) == sp.Rational(1, 2)
    place = sp.solve(slope * u - e**2 / 4 + d / 2, u)[0]  # with ε⁴ and what is smaller left out
    constant = place.subs({e: sp.EulerGamma, d: -sp.stieltjes(1)})
    assert sp.simplify(constant + 30 * sp.EulerGamma**2 + 60 * sp.stieltjes(1)) == 0
    assert abs(float(constant) + 5.6265) < 1e-3
    heights, gaps = [], []
    for N in (10**10, 10**30, 10**100, 10**300):
        gamma, variance = pp.peak(N)
        log_n = math.log(N)
        gaps.append(abs((gamma - 1) * log_n**3 - float(constant)) * log_n)
        heights.append(abs(variance - log_n**2 / 12 - EULER * log_n / 6 + 0.066) * log_n)
    assert max(gaps) < 20 and max(heights) < 0.2


def test_the_peak_is_the_largest_variance():
    for N in (2, 3, 10, 1000):
        r = np.arange(1, N + 1)

        def minus_variance(gamma, r=r):
            p = r**-gamma / (r**-gamma).sum()
            return -(p @ np.log(r) ** 2 - (p @ np.log(r)) ** 2)

        found = optimize.minimize_scalar(minus_variance, bounds=(-1, 2), method="bounded", options={"xatol": 1e-10})
        gamma, variance = pp.peak(N)
        assert abs(gamma - found.x) < 1e-6 and abs(variance + found.fun) < 1e-12
        grid = np.linspace(-1.0003, 3, 801)  # of two distances it is 0 at γ = 0 exactly
        k3 = pp.cumulants(torch.from_numpy(grid), N, 3)[:, 2].numpy()
        assert (np.diff(np.sign(k3)) != 0).sum() == 1


@pytest.mark.receipt("ch21-jump", "computed")
def test_by_the_logarithm_of_n_the_kink_is_sharp():
    for gamma in (0.0, 0.5, 0.8, 1.0, 1.2, 2.0):
        for N in (10**3, 10**10, 10**40, 10**200):
            with mpmath.workdps(60):
                exact = float(mpmath.log(zeta_sum(gamma, N))) / math.log(N)
            room = math.log(1 + 1 / abs(1 - gamma)) if gamma != 1 else math.log(1 + math.log(N))
            assert abs(exact - max(0, 1 - gamma)) <= room / math.log(N)
            assert abs(float(pp.log_partition(gamma, N)) / math.log(N) - exact) < 1e-12


# ---------------------------------------------------------------- measured


def spreads(row: dict) -> dict:
    """Exponent from the training windows, ratio of the variance of the held-out ones to that power law's."""
    high = row["T"] // 2
    law = pp.log_spread(torch.tensor(row["profile"]), 4, high)
    held = pp.profile_cumulants(torch.tensor(row["profile_held"]), 4, high)[1]
    return row | {"exponent": float(law["exponent"]), "excess": float(held / law["variance"] * law["ratio"]) - 1}


def by_setting_and_seed(rows: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Excess and γ, each (settings, seeds): all settings have the same five seeds."""
    table = {(setting_of(row), row["seed"]): (row["excess"], row["gamma"]) for row in rows}
    settings = dict.fromkeys(setting for setting, _ in table)
    values = np.array([[table[setting, seed] for seed in range(5)] for setting in settings])
    return values[..., 0], values[..., 1]


def again(statistic, settings: int, level: float, seeds: bool) -> np.ndarray:
    """Ends of the interval of a statistic of settings and seeds, when settings are drawn again, and the seeds that they share too."""
    random = np.random.default_rng(0)
    draw = lambda n: random.integers(n, size=n)  # noqa: E731
    values = [statistic(draw(settings), draw(5) if seeds else np.arange(5)) for _ in range(2000)]
    return np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)


@pytest.mark.receipt("ch21-excess", "measured")
def test_measured_profiles_spread_more_widely_than_their_power_law():
    assert data.record("gamma_atlas")["results"]["rows"] > 0
    rows = [spreads(row) for row in atlas_table() if row["text"] not in SYNTHETIC]
    assert len(rows) == 165
    excess, gamma = by_setting_and_seed(rows)
    assert excess.shape == (33, 5) and -0.14 < excess.min() < -0.12 and 0.35 < excess.max() < 0.37
    natural = [row for row in rows if row["text"] in ("austen", "shakespeare")]
    for by in ("setting", "seed"):
        value, low, high = bootstrap(rows, lambda drawn: float(np.mean([row["excess"] for row in drawn])), by=by, draws=500)
        assert 0.1 < low < value < high < 0.2
    assert all(0.1 < end < 0.2 for end in again(lambda i, j: excess[i][:, j].mean(), 33, 0.95, seeds=True))
    excess, gamma = by_setting_and_seed(natural)

    def bumps(i, j):
        e, g = excess[i][:, j], gamma[i][:, j]
        inside = lambda c: np.abs(g - c) < 0.05  # noqa: E731
        flank = lambda c: (np.abs(g - c) >= 0.05) & (np.abs(g - c) < 0.15)  # noqa: E731
        mean = lambda x: x.mean() if len(x) else np.nan  # noqa: E731  a draw may have no model there: it is left out
        return [mean(e[inside(c)]) - mean(e[flank(c)]) for c in (0.85, 0.9, 0.95, 1.0, 1.05)]

    for seeds in (False, True):
        low, high = again(bumps, len(gamma), 1 - 0.05 / 5, seeds)
        assert all(a < 0 < b for a, b in zip(low, high, strict=True))
    assert (gamma > 1).sum() == 30 and sum(row["exponent"] > 1 for row in rows) == sum(
        row["exponent"] > 1 for row in natural
    ) == 12
