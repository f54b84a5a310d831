"""Evidence for the formulas of f06_high_dimensional_geometry."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats
import sympy as sp
import torch

from course.high_dimensional_geometry import (
    auc,
    chance_cosine,
    cosine,
    cosine_density,
    effective_dimension,
    euclid,
    mips,
    soft_mips,
)

EPS = 2**-52


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def vector(name: str, d: int) -> list[sp.Symbol]:
    return list(sp.symbols(f"{name}1:{d + 1}", real=True))


def inner(u, v):
    return sum(a * b for a, b in zip(u, v, strict=True))


def mean_over_normals(polynomial, variables):
    """The mean of a polynomial in independent normal numbers: odd powers vanish, z^2k has the mean (2k − 1)!!."""
    total = sp.Integer(0)
    for powers, factor in sp.Poly(polynomial, *variables).terms():
        if all(power % 2 == 0 for power in powers):
            total += factor * sp.prod(sp.factorial2(power - 1) for power in powers)
    return sp.expand(total)


@pytest.mark.receipt("f06-cosine", "computed")
def test_cosine():
    mpmath.mp.dps = 50
    for d in (1, 2, 7, 300):
        u, v = normal(d, seed=d), normal(d, seed=d + 1)
        exact = [mpmath.matrix(x.tolist()) for x in (u, v)]
        wanted = mpmath.fdot(*exact) / (mpmath.norm(exact[0]) * mpmath.norm(exact[1]))
        assert abs(float(cosine(u, v)) - wanted) <= (d + 8) * EPS


@pytest.mark.receipt("f06-euclid", "computed")
def test_euclid():
    for d in (1, 2, 7, 300):
        u, v = normal(d, seed=d), normal(d, seed=d + 1)
        squared = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(u.tolist(), v.tolist(), strict=True))
        wanted = mpmath.sqrt(mpmath.mpf(squared.numerator) / squared.denominator)
        assert abs(float(euclid(u, v)) - wanted) <= (d + 4) * EPS * float(wanted)


def test_cat_and_dog():
    cat, dog = [sp.Rational(x, 10) for x in (8, 2, 1)], [sp.Rational(x, 10) for x in (7, 3, 2)]
    exact = inner(cat, dog) / sp.sqrt(inner(cat, cat) * inner(dog, dog))
    assert exact == sp.Rational(64, 100) / sp.sqrt(sp.Rational(69 * 62, 10_000)) and abs(exact.evalf() - 0.9785) < 5e-5
    assert abs(float(cosine(torch.tensor([0.8, 0.2, 0.1]), torch.tensor([0.7, 0.3, 0.2]))) - 0.9785) < 5e-5


@pytest.mark.receipt("f06-expand", "derived")
def test_expand():
    for d in (1, 2, 3, 6):
        u, v = vector("u", d), vector("v", d)
        difference = [a - b for a, b in zip(u, v, strict=True)]
        assert sp.expand(inner(difference, difference) - inner(u, u) - inner(v, v) + 2 * inner(u, v)) == 0


@pytest.mark.receipt("f06-unit", "derived")
def test_unit():
    for d in (2, 3, 4):
        u, v = vector("u", d), vector("v", d)
        lengths = sp.sqrt(inner(u, u)), sp.sqrt(inner(v, v))
        difference = [a / lengths[0] - b / lengths[1] for a, b in zip(u, v, strict=True)]
        assert sp.simplify(inner(difference, difference) - 2 + 2 * inner(u, v) / (lengths[0] * lengths[1])) == 0


@pytest.mark.receipt("f06-chance", "derived")
def test_chance():
    # Over all signs and cyclic shifts of any u; a rule that prefers no side is a mixture of such families.
    for d in (2, 3, 4):
        u, v = vector("u", d), vector("v", d)
        products = [
            inner([s * a for s, a in zip(signs, u[k:] + u[:k], strict=True)], v)
            for signs in itertools.product((-1, 1), repeat=d)
            for k in range(d)
        ]
        assert sp.expand(sum(products)) == 0
        assert sp.expand(sum(x**2 for x in products) / len(products) - inner(u, u) * inner(v, v) / d) == 0


@pytest.mark.receipt("f06-density", "derived")
def test_density():
    # Moments decide a density on [−1, 1]. A normal vector is a random direction times an independent length.
    a = sp.Symbol("a")
    for d in range(2, 8):
        area = sp.integrate(sp.cos(a) ** (d - 2), (a, -sp.pi / 2, sp.pi / 2))  # c = sin a
        for k in range(4):
            moment = sp.integrate(sp.sin(a) ** (2 * k) * sp.cos(a) ** (d - 2), (a, -sp.pi / 2, sp.pi / 2)) / area
            z = vector("z", d)
            wanted = sp.factorial2(2 * k - 1) / mean_over_normals(sp.expand(inner(z, z) ** k), z)
            assert sp.simplify(moment - wanted) == 0
        grid = torch.linspace(-0.9, 0.9, 7, dtype=torch.float64)
        wanted = (1 - grid**2) ** ((d - 3) / 2) / float(area)
        assert float((cosine_density(grid, d) - wanted).abs().max()) <= 1e-13


@pytest.mark.receipt("f06-tail", "computed")
def test_tail():
    t = np.linspace(0, 1, 201)
    for d in (2, 3, 4, 5, 10, 100, 1000, 10_000):
        exact = scipy.stats.beta((d - 1) / 2, (d - 1) / 2).sf((1 + t) / 2)  # (1 + c)/2 has this law
        assert (exact <= np.exp(-d * t**2 / 2)).all()
    directions = torch.nn.functional.normalize(normal(100_000, 10), dim=-1)
    share = float((directions[:, 0] >= 0.5).double().mean())
    assert abs(share - scipy.stats.beta(4.5, 4.5).sf(0.75)) <= 5 * math.sqrt(share / 100_000)


@pytest.mark.receipt("f06-search", "computed")
def test_search():
    for d, n, r in itertools.product((10, 64, 300, 768, 5000), (1, 30, 1000, 1_000_000), (0.5, 0.05, 0.001)):
        law = scipy.stats.beta((d - 1) / 2, (d - 1) / 2)  # of (1 + cos)/2
        bound = min(chance_cosine(d, n, r), 1.0)
        assert -math.expm1(n * math.log1p(-law.sf((1 + bound) / 2))) <= r
        if n >= 30 and bound < 1 and r <= 0.05:  # the cosine that the best of n exceeds with a probability of r
            exact = 2 * law.isf(-math.expm1(math.log1p(-r) / n)) - 1
            assert 0.8 <= exact / bound <= 0.94
    generator = torch.Generator().manual_seed(0)
    stored = torch.randn(500, 64, generator=generator)
    queries = torch.randn(2000, 1, 64, generator=generator)
    best = torch.cat([cosine(some, stored).amax(dim=-1) for some in queries.split(200)])
    assert float((best > chance_cosine(64, 500)).double().mean()) <= 0.05


@pytest.mark.receipt("f06-crowd", "computed")
def test_crowd():
    def room(d, cos):
        return math.floor(math.exp(d * cos**2 / 4))

    for d, cos, wanted in [(50, 0.5, 22), (64, 0.6, 317), (100, 0.5, 518), (200, 0.4, 2980), (768, 0.2, 2164), (300, 0.3, 854)]:
        assert room(d, cos) == wanted
        directions = torch.nn.functional.normalize(normal(wanted, d, seed=d), dim=-1)
        pairs = (directions @ directions.T).fill_diagonal_(0)
        assert float(pairs.abs().max()) <= cos
    law = scipy.stats.beta(767 / 2, 767 / 2)
    assert room(768, 0.25) == 162_754
    assert 162_754 * 162_753 / 2 * 2 * law.sf((1 + 0.25) / 2) < 1


@pytest.mark.receipt("f06-limit", "computed")
def test_limit():
    d = 1_000_000
    x, y, g = normal(3, d)
    for u, v, wanted in [
        (x, y, 0.0),
        (x, x + g, 1 / math.sqrt(2)),
        (x + 0.5 * y, x + 2 * g, 1 / math.sqrt(1.25 * 5)),
        (x + 3, y + 3, 0.9),
        (x.clamp(min=0), y.clamp(min=0), 1 / math.pi),
    ]:
        assert abs(float(cosine(u, v)) - wanted) <= 5 / math.sqrt(d)


@pytest.mark.receipt("f06-deff", "computed")
def test_deff():
    for k, d in [(1, 5), (3, 100), (100, 100)]:
        assert float(effective_dimension((torch.arange(d) < k).double() * 7)) == k
    for seed in range(20):
        variances = normal(50, seed=seed).square()
        exact = [Fraction(x) for x in variances.tolist()]
        wanted = float(sum(exact) ** 2 / sum(x**2 for x in exact))
        assert math.isclose(effective_dimension(variances), wanted, rel_tol=60 * EPS) and 1 <= wanted <= 50


@pytest.mark.receipt("f06-both", "derived")
def test_both():
    for d in (1, 2, 3):
        x, y, sd = vector("x", d), vector("y", d), sp.symbols(f"s1:{d + 1}", positive=True)
        scaled = [s * a for s, a in zip(sd, x, strict=True)], [s * a for s, a in zip(sd, y, strict=True)]
        difference = [a - b for a, b in zip(*scaled, strict=True)]
        square, size, product = inner(difference, difference), inner(scaled[0], scaled[0]), inner(*scaled)
        mean = {e: mean_over_normals(sp.expand(e), x + y) for e in (square, square**2, size, product**2)}
        d_eff = sum(s**2 for s in sd) ** 2 / sum(s**4 for s in sd)
        assert sp.simplify((mean[square**2] - mean[square] ** 2) / mean[square] ** 2 - 2 / d_eff) == 0
        assert sp.simplify(mean[product**2] / mean[size] ** 2 - 1 / d_eff) == 0


@pytest.mark.receipt("f06-johnson-lindenstrauss", "computed")
def test_johnson_lindenstrauss():
    def columns(n, error):
        return math.ceil(4 * math.log(n) / (error**2 / 2 - error**3 / 3))

    for n, error in itertools.product((2, 3, 5, 10, 100, 1000, 30_000, 1_000_000), (0.05, 0.1, 0.2, 0.3, 0.5, 0.9)):
        law = scipy.stats.chi2(columns(n, error))  # of the squared length of a projected unit vector, times d_low
        low, high = (columns(n, error) * (1 + sign * error) for sign in (-1, 1))
        assert n * (n - 1) / 2 * (law.cdf(low) + law.sf(high)) < 1
    low = columns(200, 0.5)
    assert low == 255
    clusters = normal(10, 3000, seed=1)[torch.arange(200) % 10] + 0.1 * normal(200, 3000, seed=2)
    for i, points in enumerate([normal(200, 3000), clusters, torch.eye(3000, dtype=torch.float64)[:200]]):
        thin = points @ normal(3000, low, seed=3 + i) / math.sqrt(low)
        ratio = (torch.pdist(thin) / torch.pdist(points)) ** 2
        assert float((ratio - 1).abs().max()) <= 0.5


@pytest.mark.receipt("f06-mips", "computed")
def test_mips():
    for seed in range(20):
        rows = np.random.default_rng(seed).integers(-9, 10, size=(30, 4))
        query = np.random.default_rng(seed + 99).integers(-9, 10, size=4)
        best = max(range(30), key=lambda j: sum(int(a) * int(b) for a, b in zip(query, rows[j], strict=True)))
        assert int(mips(torch.from_numpy(query).double(), torch.from_numpy(rows).double())) == best


@pytest.mark.receipt("f06-hull", "derived")
def test_hull():
    q, weights = vector("q", 3), sp.symbols("w1:5", nonnegative=True)
    rows = [vector(f"v{j}_", 3) for j in range(4)]
    average = [sum(w * row[i] for w, row in zip(weights, rows, strict=True)) for i in range(3)]
    assert sp.expand(inner(q, average) - sum(w * inner(q, row) for w, row in zip(weights, rows, strict=True))) == 0
    stored = normal(8, 3)
    inside = torch.softmax(normal(100, 8, seed=1), dim=-1) @ stored
    both = torch.cat([stored, inside])
    assert int(mips(normal(2000, 3, seed=2), both).max()) < len(stored)


def test_soft_search_is_torchs_attention():
    for tau in (0.1, 1.0, 7.0):
        q, stored = normal(5, 4), normal(9, 4, seed=1)
        wanted = torch.nn.functional.scaled_dot_product_attention(q[None], stored[None], stored[None], scale=1 / tau)[0]
        assert float((soft_mips(q, stored, tau) - wanted).abs().max()) <= 1e-13 / tau
    assert float((soft_mips(q, stored, 1e-6) - stored[mips(q, stored)]).abs().max()) <= 1e-12


@pytest.mark.receipt("f06-gap", "derived")
def test_gap():
    g, tau = sp.symbols("g tau", positive=True)
    for others in (1, 2, 5):
        more = sp.symbols(f"x1:{others + 1}", nonnegative=True)  # how much farther than g each other score lies behind
        best = 1 / (1 + sum(sp.exp(-(g + x) / tau) for x in more))
        assert sp.simplify(best.subs(dict.fromkeys(more, 0)) - 1 / (1 + others * sp.exp(-g / tau))) == 0
        assert all(sp.diff(best, x).is_positive for x in more)


@pytest.mark.receipt("f06-auc", "computed")
def test_f06_auc():
    assert auc(torch.tensor([3.0, 1.0]), torch.tensor([2.0, 1.0])) == 0.625
    for seed in range(20):
        rng = np.random.default_rng(seed)
        related, unrelated = rng.integers(0, 9, size=40), rng.integers(0, 7, size=25)
        wanted = scipy.stats.mannwhitneyu(related, unrelated).statistic / (40 * 25)
        assert math.isclose(auc(torch.from_numpy(related).double(), torch.from_numpy(unrelated).double()), wanted, rel_tol=1e-14)


def friends_and_strangers(d, n, seed, corr):
    """Two rows of n related pairs with normal entries of variance 1 and this correlation."""
    themes = normal(n, d, seed=seed)
    noise = normal(2, n, d, seed=seed + 1)
    return math.sqrt(corr) * themes + math.sqrt(1 - corr) * noise


def judged(measure, x, y):
    return auc(measure(x, y), measure(x, y.roll(1, 0)))


def nearness(u, v):
    return -euclid(u, v)


@pytest.mark.receipt("f06-sensitivity", "derived")
def test_sensitivity():
    corr = sp.Symbol("corr", positive=True)
    for d in (1, 2, 3, 4):
        x, z = vector("x", d), vector("z", d)
        y = [corr * a + sp.sqrt(1 - corr**2) * b for a, b in zip(x, z, strict=True)]
        difference = [a - b for a, b in zip(x, y, strict=True)]

        def mean(polynomial, names=tuple(x + z)):
            return mean_over_normals(sp.expand(polynomial), names)

        product, square = inner(x, y), inner(difference, difference)
        at_zero = {corr: 0}
        for score, sign, root in [(product, 1, sp.sqrt(d)), (square, -1, sp.sqrt(sp.Rational(d, 2)))]:
            strangers = mean(score).subs(at_zero), (mean(score**2) - mean(score) ** 2).subs(at_zero)
            sensitivity = sign * (mean(score) - strangers[0]) / sp.sqrt(strangers[1])
            assert sp.simplify(sensitivity - corr * root) == 0
    for d, corr in [(100, 0.1), (1000, 1 / math.sqrt(1000))]:
        pairs = [friends_and_strangers(d, 4000, seed, corr) for seed in range(0, 20, 2)]
        for measure, sensitivity in [(cosine, corr * math.sqrt(d)), (nearness, corr * math.sqrt(d / 2))]:
            found = np.mean([judged(measure, x, y) for x, y in pairs])
            assert abs(found - scipy.stats.norm.cdf(sensitivity / math.sqrt(2))) <= 0.01
    assert abs(scipy.stats.chi(10).mean() ** 2 / 10 - 0.95) <= 0.005  # what a cosine of 10 normal entries keeps, for small corr


@pytest.mark.receipt("f06-err-hundred", "computed")
def test_no_threshold_at_one_hundred_dimensions():
    for d in (10, 1000, 100_000):  # exact laws: of the cosine's square, and of the length of a difference
        assert math.isclose(scipy.stats.beta((d - 1) / 2, (d - 1) / 2, loc=-1, scale=2).std(), 1 / math.sqrt(d), rel_tol=1e-9)
        length = scipy.stats.chi(d, scale=math.sqrt(2))
        assert abs(length.mean() / math.sqrt(2 * d) - 1) <= 1 / d
        assert abs(length.std() / length.mean() * math.sqrt(2 * d) - 1) <= 1 / d
    for d in (10, 100, 1000):
        x, y = friends_and_strangers(d, 4000, 5, 1 / math.sqrt(d))
        assert 0.03 <= judged(cosine, x, y) - judged(nearness, x, y) <= 0.09
        unit = [rows / rows.norm(dim=-1, keepdim=True) for rows in (x, y)]
        assert abs(judged(cosine, *unit) - judged(nearness, *unit)) <= 1e-12
        jitter = (normal(2, 4000, 1, seed=6) / 2).exp()
        assert judged(cosine, x * jitter[0], y * jitter[1]) - judged(nearness, x * jitter[0], y * jitter[1]) > 0.1
        lengths = normal(4000, 1, seed=7).exp() * normal(1, d, seed=8)
        x, y = lengths + 1.5 * normal(2, 4000, d, seed=9)
        assert judged(cosine, x, y) - judged(nearness, x, y) < -0.1


def test_a_new_stranger_comes_in_at_each_place_equally_often():
    for m in range(1, 6):  # all orders of m + 1 bests, and all ways in which some are equal
        for levels in itertools.product(range(m + 1), repeat=m + 1):
            for j in range(1, m + 1):
                orders = [(levels[i], sorted(levels[:i] + levels[i + 1 :], reverse=True)) for i in range(m + 1)]
                beyond = sum(new > old[j - 1] for new, old in orders)
                assert beyond <= j and (len(set(levels)) <= m or beyond == j)


@pytest.mark.receipt("f06-err-orthogonal", "computed")
def test_an_offset_keeps_random_vectors_from_right_angles():
    x, y = torch.from_numpy(np.random.default_rng(0).uniform(size=(2, 1_000_000)))
    assert abs(float(cosine(x, y)) - 0.75) <= 0.005
    assert abs(float(cosine(x - x.mean(), y - y.mean()))) <= 0.005
