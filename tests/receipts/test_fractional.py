"""The evidence behind the formulas of ch23_fractional."""

import itertools
import math

import mpmath
import numpy as np
import pytest
import scipy.signal
import scipy.stats
import sympy as sp
import torch

from course import data, fractional
from course.gamma_atlas import atlas_table

# ---------------------------------------------------------------- exact laws of sums


def law_of_sums(gamma, N, n):
    """The probabilities of the sum of n two-sided jumps |r|^−γ up to N, at −n N … n N, or those within half a million, by squaring."""
    r = np.abs(np.arange(-N, N + 1.0))
    r[N] = np.inf
    p = r**-gamma / (r**-gamma).sum()
    total = np.ones(1)
    while n:
        if n & 1:
            total = middle(scipy.signal.fftconvolve(total, p))
        p, n = middle(scipy.signal.fftconvolve(p, p)), n >> 1
    return total


def middle(p, most=500_000):
    cut = (len(p) - most) // 2
    return p[cut:-cut] if cut > 0 else p


def quartile(p):
    """The median distance from the start, between whole numbers: half of the probability is nearer."""
    half = len(p) // 2
    within = np.cumsum(np.concatenate([[p[half]], 2 * p[half + 1 :]]))
    i = int(np.searchsorted(within, 0.5))
    return i - 0.5 + (0.5 - within[i - 1]) / (within[i] - within[i - 1])


@pytest.mark.receipt("ch23-limit", "computed")
def test_sums_of_jumps_follow_scipys_stable_laws():
    for gamma, n, N in ((1.8, 64, 100_000), (2.0, 256, 50_000), (2.4, 1_024, 20_000)):
        alpha = gamma - 1
        scale = (n * fractional.small_k(gamma)) ** (1 / alpha)
        expected = scipy.stats.levy_stable(alpha, 0, scale=scale).ppf(0.75)
        assert quartile(law_of_sums(gamma, N, n)) == pytest.approx(expected, rel=0.02)
    r = np.arange(1, 2_001.0)
    spread = math.sqrt((r**-3).sum() / (r**-5).sum())
    assert quartile(law_of_sums(5.0, 2_000, 256)) == pytest.approx(scipy.stats.norm(scale=16 * spread).ppf(0.75), rel=0.01)


@pytest.mark.receipt("ch23-cross", "computed")
def test_a_cut_off_is_felt_at_the_crossover():
    for gamma in (1.5, 1.8):
        for N in (64, 256):
            cross = fractional.crossover(gamma, N)
            early, late = max(round(cross / 10), 1), round(10 * cross)
            assert quartile(law_of_sums(gamma, N, early)) == pytest.approx(quartile(law_of_sums(gamma, 64 * N, early)), rel=0.25)
            grown = quartile(law_of_sums(gamma, N, 4 * late)) / quartile(law_of_sums(gamma, N, late))
            assert math.log(grown, 4) == pytest.approx(0.5, abs=0.1)


@pytest.mark.receipt("ch23-range", "derived")
def test_the_sum_is_finite_above_one_and_the_mean_square_above_three():
    r, N = sp.symbols("r N", positive=True)

    def finite(power):
        return sp.limit(sp.integrate(r**power, (r, 1, N)), N, sp.oo).is_finite

    def exact(x):
        return sp.Rational(str(x))

    assert [finite(-exact(g)) for g in (0.9, 1, 1.1, 2, 2.9, 4)] == [False, False, True, True, True, True]
    assert [finite(2 - exact(g)) for g in (2, 2.9, 3, 3.1, 4)] == [False, False, False, True, True]
    for gamma in (0.9, 1.0, 1.1, 2.9, 3.1):
        both = finite(-exact(gamma)) and not finite(2 - exact(gamma))
        assert fractional.in_range(gamma) == both


# ---------------------------------------------------------------- symbols


def kernel(seed, n):
    p = np.random.default_rng(seed).random(n) ** 3
    return p / p.sum()


@pytest.mark.receipt("ch23-symbol", "computed")
def test_a_wave_comes_out_times_the_symbol():
    for seed, first in ((0, 0), (1, -6), (2, 3)):
        p, i = kernel(seed, 13), np.arange(200)
        for k in (0.0, 0.1, 1.0, 3.0, -2.0):
            wave = np.exp(-1j * k * i)
            out = np.convolve(np.exp(-1j * k * (i - first)), p)[12:200]  # Σ p_j f(i − first − j) for i = 12 … 199
            found = complex(fractional.symbol(torch.tensor(p), torch.tensor([k], dtype=torch.float64), first=first)[0])
            assert np.abs(out - found * wave[12:]).max() < 1e-12


@pytest.mark.receipt("ch23-compose", "computed")
def test_symbols_multiply():
    k = torch.linspace(-3, 3, 31, dtype=torch.float64)
    for seed in range(5):
        p, q = kernel(seed, 9), kernel(seed + 50, 14)
        both = fractional.symbol(torch.tensor(np.convolve(p, q)), k)
        assert (both - fractional.symbol(torch.tensor(p), k) * fractional.symbol(torch.tensor(q), k)).abs().max() < 1e-12


@pytest.mark.receipt("ch23-small", "computed")
def test_long_waves_lose_a_power():
    for gamma in (1.1, 1.3, 1.5, 2.0001, 2.3, 2.5, 2.7):
        with mpmath.workdps(40):
            k, g = mpmath.mpf(10) ** -11, mpmath.mpf(gamma)
            lost = 1 - mpmath.re(mpmath.polylog(g, mpmath.expj(k))) / mpmath.zeta(g)
            ratio = float(lost / k ** (g - 1)) / fractional.small_k(gamma)
        assert ratio == pytest.approx(1, abs=1e-3), gamma
    for wrong in (1.0, 3.0, 0.7):
        with pytest.raises(ValueError, match="no Lévy index"):
            fractional.small_k(wrong)


@pytest.mark.receipt("ch23-onesided", "computed")
def test_a_one_sided_kernel_has_a_complex_symbol():
    with mpmath.workdps(40):
        for gamma in (1.2, 1.5, 1.7):
            k, g = mpmath.mpf(10) ** -12, mpmath.mpf(gamma)
            left = 1 - mpmath.polylog(g, mpmath.expj(k)) / mpmath.zeta(g)
            right = -mpmath.gamma(1 - g) / mpmath.zeta(g) * mpmath.expj(-mpmath.pi * (g - 1) / 2) * k ** (g - 1)
            assert abs(left / right - 1) < 2e-3
        k, g = mpmath.mpf(10) ** -7, mpmath.mpf(5) / 2
        drift = (1 - mpmath.polylog(g, mpmath.expj(k)) / mpmath.zeta(g)) / k
        assert abs(drift + 1j * mpmath.zeta(g - 1) / mpmath.zeta(g)) < 1e-3


@pytest.mark.receipt("ch23-riesz", "computed")
def test_a_kernel_below_one_is_a_riesz_potential():
    for gamma in (0.3, 0.7, 0.9):
        k, s = 0.01, (gamma - 1) / 2
        exact = 2 * float(mpmath.re(mpmath.polylog(gamma, mpmath.expj(k))))
        power = 2 * math.gamma(1 - gamma) * math.sin(math.pi * gamma / 2) * k ** (2 * s)
        assert exact == pytest.approx(power + 2 * float(mpmath.zeta(gamma)), abs=1e-4 * power)


@pytest.mark.receipt("ch23-err-amplify", "erratum")
def test_a_kernel_of_one_point_three_amplifies_nothing():
    k, most = np.linspace(0, np.pi, 400), 0.0
    for N in (10, 100, 1_000, 10_000):
        r = np.arange(1, N + 1.0)
        p = r**-1.3 / (r**-1.3).sum()
        one = np.array([(p * np.exp(1j * x * r)).sum() for x in k])
        assert np.abs(one).max() <= 1 + 1e-12 and np.abs(one.real).max() <= 1 + 1e-12
        most = max(most, (1 - one.real).max())
    assert most > 1.2


@pytest.mark.receipt("ch23-err-range", "erratum")
def test_most_models_of_the_atlas_are_outside_the_range():
    gammas = [row["gamma"] for row in atlas_table()]
    assert len(gammas) == 185
    assert sum(g <= 1 for g in gammas) == 155 and not any(g >= 3 for g in gammas)
    assert sum(fractional.in_range(g) for g in gammas) == 30


# ---------------------------------------------------------------- layers


@pytest.mark.receipt("ch23-rollout", "computed")
def test_a_rollout_is_where_walks_end():
    generator = torch.Generator().manual_seed(0)
    for L, n in ((1, 4), (2, 3), (3, 4)):
        A = torch.rand(L, n, n, generator=generator, dtype=torch.float64).tril()
        A = A / A.sum(dim=-1, keepdim=True)
        found = fractional.rollout(A)[-1]
        for i in range(n):
            ends = [0.0] * n
            for path in itertools.product(range(n), repeat=L):
                chance, now = 1.0, i
                for layer, then in zip(reversed(range(L)), path, strict=True):
                    chance *= 0.5 * (now == then) + 0.5 * float(A[layer, now, then])
                    now = then
                ends[now] += chance
            assert found[i].tolist() == pytest.approx(ends, abs=1e-12)


def lines():
    results = data.record("fractional")["results"]
    return {(model.split("-")[0], text): found for model, texts in results.items() for text, found in texts.items()}


@pytest.mark.receipt("ch23-depth", "measured")
def test_distances_over_depth_are_those_of_independent_jumps():
    found = lines()
    for text in ("austen", "shakespeare"):
        ratio = fractional.ratios(found["gpt", text])
        assert len(ratio) == 6 and len(found["gpt", text]["measured"][0]) == 16
        assert all(mean - half > 0.95 and mean + half < 1.05 for mean, half in ratio)
        assert fractional.ratios(found["gpt", f"{text}, planted"])[-1][0] > 1.04
        assert fractional.ratios(found["gpt", f"{text}, planted anew"])[-1][0] < 1.035
        (real, half), (bound, wide) = (
            fractional.ratios(found["gpt", which], to="other")[-1] for which in (text, f"{text}, planted")
        )
        assert real + half < 1.01 < bound - wide
        smol = found["smollm2", text]
        free = [x for x, wall in zip(fractional.ratios(smol), smol["wall"], strict=True) if wall < 0.1]
        assert len(free) == 11 and all(0.97 < mean < 1.03 for mean, _ in free)
    outside = [n + 1 for n, (mean, half) in enumerate(free) if mean - half < 0.95 or mean + half > 1.05]
    assert outside == [1, 11]


@pytest.mark.receipt("ch23-keys", "measured")
def test_walks_of_one_text_share_keys():
    after = {("gpt", "austen"): 0.93, ("gpt", "shakespeare"): 0.96, ("smollm2", "austen"): 0.76, ("smollm2", "shakespeare"): 0.82}
    for which, expected in after.items():
        ratio = fractional.ratios(lines()[which], "keys", "keys of other")
        mean, half = ratio[5]
        assert mean + half < 1 and mean == pytest.approx(expected, abs=0.01) and ratio[0][0] == pytest.approx(1, abs=0.01)
    below = [n + 1 for n, (mean, half) in enumerate(ratio[:11]) if mean + half < 1]
    assert below == [3, 4, 5, 6, 7, 8, 9]  # SmolLM2 on Shakespeare, where the wall holds less than a tenth
