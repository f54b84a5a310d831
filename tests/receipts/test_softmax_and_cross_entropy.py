"""Evidence for the formulas of f03_softmax_and_cross_entropy."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch

from course import data
from course.softmax_and_cross_entropy import brier, cross_entropy, entropy, log_softmax, logsumexp, softmax, softmax_jacobian

EPS = 2**-52
SIZES = (2, 3, 4)


def scores_of(n: int) -> list[sp.Symbol]:
    return list(sp.symbols(f"z1:{n + 1}", real=True))


def symbolic_softmax(z, tau=1):
    powers = [sp.exp(x / tau) for x in z]
    return [power / sum(powers) for power in powers]


def truth_of(n: int) -> list:
    """Symbolic probabilities: the last is what the others leave."""
    y = list(sp.symbols(f"y1:{n}", positive=True))
    return [*y, 1 - sum(y)]


def zero(expression) -> bool:
    return sp.simplify(expression) == 0


def random_scores(*shape, scale=1.0, seed=0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(scale=scale, size=shape))


def exact_sum_of_powers(z: list[float]):
    mpmath.mp.dps = 50
    return mpmath.fsum(mpmath.exp(mpmath.mpf(x)) for x in z)


@pytest.mark.receipt("f03-softmax", "computed")
def test_softmax():
    for seed, scale in enumerate([0.1, 1.0, 10.0, 300.0]):
        z = random_scores(50, scale=scale, seed=seed)
        total = exact_sum_of_powers(z.tolist())
        for x, p in zip(z.tolist(), softmax(z).tolist(), strict=True):
            exact = mpmath.exp(mpmath.mpf(x)) / total
            assert p >= 0 and abs(p - exact) <= exact * EPS * (4 * float(z.abs().max()) + 50) + 1e-300
        assert abs(float(softmax(z).sum()) - 1) <= EPS * (4 * float(z.abs().max()) + 50)


@pytest.mark.receipt("f03-cross-entropy", "computed")
def test_cross_entropy():
    z, classes = random_scores(20, 7, scale=3.0), torch.arange(20) % 7
    y = torch.softmax(random_scores(20, 7, seed=1), -1)
    assert abs(float(cross_entropy(z, classes) - torch.nn.functional.cross_entropy(z, classes))) <= 1e-13
    assert abs(float(cross_entropy(z, y) - torch.nn.functional.cross_entropy(z, y))) <= 1e-13
    by_hand = -sum(y[0, i].item() * math.log(softmax(z)[0, i].item()) for i in range(7))
    assert abs(float(cross_entropy(z[0], y[0])) - by_hand) <= 1e-13


@pytest.mark.receipt("f03-lse", "computed")
def test_log_sum_exp():
    for seed, (scale, shift) in enumerate([(1.0, 0.0), (10.0, 1e4), (10.0, -1e4), (1000.0, 0.0)]):
        z = random_scores(64, scale=scale, seed=seed) + shift
        exact = mpmath.log(exact_sum_of_powers(z.tolist()))
        assert abs(float(logsumexp(z)) - exact) <= EPS * (4 * float(z.abs().max()) + 64)
    assert torch.isinf(torch.tensor([100.0, 99.0]).exp().sum().log())  # the plain way, in float32
    assert abs(float(logsumexp(torch.tensor([100.0, 99.0]))) - (100 + math.log1p(math.exp(-1)))) <= 2**-23 * 100


@pytest.mark.receipt("f03-jacobian", "derived")
def test_jacobian():
    for n in SIZES:
        z = scores_of(n)
        p = symbolic_softmax(z)
        for i in range(n):
            for j in range(n):
                assert zero(sp.diff(p[i], z[j]) - p[i] * (int(i == j) - p[j]))
    scores = random_scores(7)
    wanted = torch.autograd.functional.jacobian(lambda x: torch.softmax(x, -1), scores)
    assert float((softmax_jacobian(softmax(scores)) - wanted).abs().max()) <= 16 * EPS


@pytest.mark.receipt("f03-temperature", "computed")
def test_temperature():
    z = random_scores(9, scale=2.0)
    for tau in (0.05, 0.5, 1.0, 3.0, 50.0):
        p = softmax(z, tau)
        assert float((p - torch.softmax(z / tau, -1)).abs().max()) <= EPS * (4 * float(z.abs().max()) / tau + 9)
        assert torch.equal(p.argsort(), z.argsort())
    cold, hot = softmax(z, 1e-3), softmax(z, 1e6)
    assert float(cold.max()) >= 1 - 1e-12 and float((hot - 1 / 9).abs().max()) <= 1e-6


@pytest.mark.receipt("f03-shift", "derived")
def test_shift():
    c = sp.Symbol("c", real=True)
    for n in SIZES:
        z = scores_of(n)
        for before, after in zip(symbolic_softmax(z), symbolic_softmax([x + c for x in z]), strict=True):
            assert zero(before - after)


@pytest.mark.receipt("f03-odds", "derived")
def test_odds():
    a = sp.Symbol("a", positive=True)
    for n in SIZES:
        z = scores_of(n)
        p, scaled = symbolic_softmax(z), symbolic_softmax([a * x for x in z])
        assert zero(p[0] / p[1] - sp.exp(z[0] - z[1]))
        assert zero(scaled[0] / scaled[1] - sp.exp(z[0] - z[1]) ** a)


@pytest.mark.receipt("f03-lse-bounds", "computed")
def test_lse_bounds():
    for seed in range(200):
        n = 1 + seed % 40
        z = random_scores(n, scale=10.0 ** (seed % 5 - 1), seed=seed)
        top, rounding = float(z.max()), EPS * (4 * float(z.abs().max()) + n)
        assert top - rounding <= float(logsumexp(z)) <= top + math.log(n) + rounding
        assert (
            abs(float(logsumexp(torch.full((n,), top, dtype=z.dtype))) - top - math.log(n)) <= rounding
        )  # the upper bound is attained


@pytest.mark.receipt("f03-log-softmax", "derived")
def test_log_softmax():
    for n in SIZES:
        z = scores_of(n)
        for x, p in zip(z, symbolic_softmax(z), strict=True):
            assert zero(sp.expand_log(sp.log(p)) - (x - sp.log(sum(sp.exp(u) for u in z))))
    far = torch.tensor([0.0, -1e4], dtype=torch.float64)
    assert float(log_softmax(far)[1]) == -1e4 and float(softmax(far)[1]) == 0.0


@pytest.mark.receipt("f03-entropy", "computed")
def test_entropy():
    mpmath.mp.dps = 50
    for seed in range(20):
        p = torch.softmax(random_scores(30, scale=4.0, seed=seed), -1)
        exact = -mpmath.fsum(mpmath.mpf(x) * mpmath.log(mpmath.mpf(x)) for x in p.tolist())
        assert abs(float(entropy(p)) - exact) <= EPS * 30 * 4
        assert 0 <= float(entropy(p)) <= math.log(30)
    assert float(entropy(torch.tensor([0.0, 1.0]))) == 0.0
    assert abs(float(entropy(torch.full((30,), 1 / 30, dtype=torch.float64))) - math.log(30)) <= 1e-14


@pytest.mark.receipt("f03-ce-kl", "derived")
def test_cross_entropy_is_entropy_plus_kl():
    for n in SIZES:
        y, p = sp.symbols(f"y1:{n + 1}", positive=True), sp.symbols(f"p1:{n + 1}", positive=True)
        loss = -sum(a * sp.log(b) for a, b in zip(y, p, strict=True))
        floor = -sum(a * sp.log(a) for a in y)
        extra = sum(a * sp.log(a / b) for a, b in zip(y, p, strict=True))
        assert zero(sp.expand(sp.expand_log(loss - floor - extra)))


@pytest.mark.receipt("f03-gibbs", "derived")
def test_gibbs_inequality():
    x = sp.Symbol("x", positive=True)
    gap = x - 1 - sp.log(x)  # never negative: convex, and its only flat point is x = 1, where it is 0
    assert sp.solve(sp.diff(gap, x), x) == [1] and gap.subs(x, 1) == 0 and sp.diff(gap, x, 2).is_positive
    for n in SIZES:  # the sum of y_i (p_i / y_i - 1) is the difference of two sums that are 1
        y, p = truth_of(n), [q.subs({s: sp.Symbol(f"p{s.name[1:]}", positive=True) for s in q.free_symbols}) for q in truth_of(n)]
        assert zero(sum(a * (b / a - 1) for a, b in zip(y, p, strict=True)))


@pytest.mark.receipt("f03-gradient", "derived")
def test_gradient_is_p_minus_y():
    for n in (2, 3):
        z, y = scores_of(n), truth_of(n)
        p = symbolic_softmax(z)
        log_sum = sp.log(sum(sp.exp(x) for x in z))
        loss = -sum(a * (x - log_sum) for a, x in zip(y, z, strict=True))
        for j in range(n):
            assert zero(sp.diff(loss, z[j]) - (p[j] - y[j]))
    scores, target = random_scores(5, 11, scale=3.0).requires_grad_(True), torch.arange(5)
    cross_entropy(scores, target).backward()
    wanted = (torch.softmax(scores.detach(), -1) - torch.eye(11, dtype=torch.float64)[target]) / 5
    assert float((scores.grad - wanted).abs().max()) <= 1e-14


@pytest.mark.receipt("f03-brier", "computed")
def test_brier():
    p, classes = torch.softmax(random_scores(20, 6), -1), torch.arange(20) % 6
    wanted = 6 * torch.nn.functional.mse_loss(p, torch.eye(6, dtype=torch.float64)[classes])
    assert abs(float(brier(p, classes) - wanted)) <= 1e-14
    assert float(brier(torch.tensor([1.0, 0.0]), torch.tensor(1))) == 2.0
    for n in SIZES:  # the others' probabilities q sum to 1 - p, and 2 less the score is a sum of terms that are not negative
        q = sp.symbols(f"q1:{n}", positive=True)
        score = sum(q) ** 2 + sum(x**2 for x in q)
        pairs = sum(a * b for a, b in itertools.combinations(q, 2))
        assert sp.expand(2 * sum(q) ** 2 - score - 2 * pairs) == 0  # so the score is at most 2 (1 - p)²


@pytest.mark.receipt("f03-likelihood", "computed")
def test_cross_entropy_is_the_negative_mean_log_likelihood():
    mpmath.mp.dps = 50
    classes, likelihoods, losses = np.random.default_rng(0).integers(0, 5, size=30), [], []
    for seed in range(200):
        z = random_scores(30, 5, scale=2.0, seed=seed)
        rows = [[mpmath.exp(mpmath.mpf(x)) for x in row] for row in z.tolist()]
        likelihoods.append(mpmath.fprod(row[c] / mpmath.fsum(row) for row, c in zip(rows, classes, strict=True)))
        losses.append(float(torch.nn.functional.cross_entropy(z, torch.from_numpy(classes))))
        assert abs(losses[-1] + mpmath.log(likelihoods[-1]) / 30) <= 1e-12
    assert sorted(range(200), key=losses.__getitem__) == sorted(range(200), key=likelihoods.__getitem__, reverse=True)
    seen = [3, 4, 5]  # of 12 outcomes
    forecasts = [(a, b, 12 - a - b) for a in range(1, 11) for b in range(1, 12 - a)]  # in twelfths
    likelihood = {f: math.prod(Fraction(k, 12) ** n for k, n in zip(f, seen, strict=True)) for f in forecasts}
    loss = {f: -sum(n / 12 * math.log(k / 12) for k, n in zip(f, seen, strict=True)) for f in forecasts}
    assert max(likelihood, key=likelihood.get) == min(loss, key=loss.get) == tuple(seen)
    gaps = [loss[f] - loss[tuple(seen)] for f in forecasts if f != tuple(seen)]
    assert min(gaps) >= 0.005


@pytest.mark.receipt("f03-brier-proper", "derived")
def test_brier_is_proper():
    for n in SIZES:
        y, p = truth_of(n), sp.symbols(f"p1:{n + 1}", real=True)
        expected = sum(y[c] * sum((p[i] - int(i == c)) ** 2 for i in range(n)) for c in range(n))
        distance = sum((a - b) ** 2 for a, b in zip(p, y, strict=True))
        assert sp.expand(expected - distance - (1 - sum(a**2 for a in y))) == 0


@pytest.mark.receipt("f03-heat", "derived")
def test_entropy_rises_with_temperature():
    tau = sp.Symbol("tau", positive=True)
    for n in (2, 3):
        z = scores_of(n)
        p = symbolic_softmax(z, tau)
        mean = sum(a * x for a, x in zip(p, z, strict=True))
        h = sp.log(sum(sp.exp(x / tau) for x in z)) - mean / tau
        variance = sum(a * (x - mean) ** 2 for a, x in zip(p, z, strict=True))
        assert zero(sp.diff(h, tau) - variance / tau**3)
    scores, step = random_scores(50, scale=2.0), 1e-4
    for t in (0.3, 1.0, 4.0):
        q = softmax(scores, t)
        slope = (q * (scores - (q * scores).sum()) ** 2).sum() / t**3
        finite = (entropy(softmax(scores, t + step)) - entropy(softmax(scores, t - step))) / (2 * step)
        assert abs(float(slope - finite)) <= 1e-6 * (1 + float(slope))


@pytest.mark.receipt("f03-random", "measured")
def test_random_scores_lose_half_a_squared_spread():
    record = data.record("softmax_and_cross_entropy")
    assert len(record["seeds"]) == 200 and "Student" in record["interval"]
    for row in record["results"]["rows"]:
        assert abs(row["theory"] - 1 / (2 * row["ratio"] ** 2)) <= 1e-6
        if row["n"] >= 4096 and row["ratio"] >= 1:  # the law, to 2% of itself and within its interval's reach
            assert abs(row["lost"] - row["theory"]) <= 0.02 * row["theory"] + 2 * row["half_width"]
        if row["ratio"] <= 0.25:  # where it breaks: in the cold it claims more than there is to lose, or far too much
            assert row["theory"] - row["lost"] > 5 * row["half_width"]
    judged = record["results"]["judged"]
    warm = [row for row in record["results"]["rows"] if row["ratio"] >= 1 and row["n"] > 16]
    share = {(row["sigma"], row["ratio"]): row["lost"] / math.log(16) for row in record["results"]["rows"] if row["n"] == 16}
    of_law = [row["lost"] - row["theory"] for row in warm]
    of_null = [row["lost"] - share[row["sigma"], row["ratio"]] * math.log(row["n"]) for row in warm]
    for name, errors, told in [("rms_theory", of_law, 0.004), ("rms_null", of_null, 0.44)]:
        assert abs(math.sqrt(np.mean(np.square(errors))) - judged[name]) <= 1e-5 and abs(judged[name] - told) <= 0.1 * told


def exact_softmax(z: list[int]) -> list:
    total = exact_sum_of_powers(z)
    return [mpmath.exp(x) / total for x in z]


@pytest.mark.receipt("f03-err-shift", "computed")
def test_five_and_four_are_two_and_one():
    low, high = (symbolic_softmax([sp.Integer(x) for x in z]) for z in ([2, 1], [5, 4]))
    assert all(zero(a - b) for a, b in zip(low, high, strict=True)) and abs(exact_softmax([5, 4])[0] - 0.731059) <= 5e-7
    pair = torch.softmax(torch.tensor([[2.0, 1.0], [5.0, 4.0]], dtype=torch.float64), -1)
    assert float((pair[0] - pair[1]).abs().max()) <= 4 * EPS and abs(float(pair[0, 1]) - 0.268941) <= 5e-7


@pytest.mark.receipt("f03-err-scale", "computed")
def test_softmax_is_not_scale_invariant():
    before, after = exact_softmax([2, 1, 0])[0], exact_softmax([20, 10, 0])[0]
    assert abs(before - 0.665241) <= 5e-7 and 0.999 < after < 1


@pytest.mark.receipt("f03-err-brier", "derived")
def test_squared_error_is_as_proper_as_the_logarithm():
    y, p = sp.symbols("y p", positive=True)
    bends = {-sp.log(p): y / p**2 + (1 - y) / (1 - p) ** 2, 2 * (1 - p) ** 2: sp.Integer(4)}  # positive for 0 < p, y < 1
    for loss, bend in bends.items():
        expected = y * loss + (1 - y) * loss.subs(p, 1 - p)
        assert zero(sp.diff(expected, p).subs(p, y)) and zero(sp.diff(expected, p, 2) - bend)


@pytest.mark.receipt("f03-err-log", "computed")
def test_the_logarithm_grows_slowly():
    prices = [-math.log(10.0**-k) for k in (2, 4, 8)]
    assert [round(x, 1) for x in prices] == [4.6, 9.2, 18.4]
    assert abs(-math.log(1e-4) - 9.2103) <= 5e-5 and abs(prices[2] - 2 * prices[1]) <= 1e-12
