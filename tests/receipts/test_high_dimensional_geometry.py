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


@pytest.mark.receipt("f06-search", "derived")
def test_search():
    n, d, t, r = sp.symbols("n d t r", positive=True)
    bound = sp.sqrt(2 * sp.log(n / r) / d)
    assert sp.simplify((n * sp.exp(-d * t**2 / 2)).subs(t, bound) - r) == 0
    assert math.isclose(
        chance_cosine(100, 1000, 0.05), float(bound.subs({n: 1000, r: sp.Rational(1, 20), d: 100})), rel_tol=1e-14
    )
    best = torch.stack([cosine(normal(64, seed=s), normal(500, 64, seed=s + 999)).max() for s in range(200)])
    assert float((best > chance_cosine(64, 500)).double().mean()) <= 0.05


@pytest.mark.receipt("f06-crowd", "derived")
def test_crowd():
    d, t = sp.symbols("d t", positive=True)
    n = sp.exp(d * t**2 / 4)
    assert sp.simplify(n**2 * sp.exp(-d * t**2 / 2)) == 1
    assert int(n.subs({d: 768, t: sp.Rational(1, 4)}).evalf()) == 162_754


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


@pytest.mark.receipt("f06-spread", "derived")
def test_spread():
    z, d = sp.symbols("z d", positive=True)
    square = 2 * z**2  # of x_i − y_i, a normal number of variance 2
    mean, second = mean_over_normals(square, [z]), mean_over_normals(square**2, [z])
    assert (mean, second - mean**2) == (2, 8)
    assert sp.simplify(sp.sqrt(8 * d) / (2 * d) - sp.sqrt(2 / d)) == 0
    for size in (10, 1000, 100_000):  # the exact law of the length
        length = scipy.stats.chi(size, scale=math.sqrt(2))
        assert abs(length.mean() / math.sqrt(2 * size) - 1) <= 1 / size
        assert abs(length.std() / length.mean() * math.sqrt(2 * size) - 1) <= 1 / size


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


@pytest.mark.receipt("f06-soft", "computed")
def test_f06_soft():
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


@pytest.mark.receipt("f06-err-hundred", "computed")
def test_cosine_and_distance_blunt_alike():
    for d in (3, 100, 1000):
        x, y = normal(2, 4000, d)
        cosines, distances = cosine(x, y), euclid(x, y)
        assert abs(float(cosines.std()) * math.sqrt(d) - 1) <= 0.05
        assert abs(float(distances.std() / distances.mean()) * math.sqrt(2 * d) - 1) <= 0.05 + 0.2 / d
        query = x[0] / x[0].norm()
        unit = y / y.norm(dim=-1, keepdim=True)
        assert torch.equal(cosine(query, unit).argsort(descending=True), euclid(query, unit).argsort())


@pytest.mark.receipt("f06-err-orthogonal", "computed")
def test_an_offset_keeps_random_vectors_from_right_angles():
    x, y = torch.from_numpy(np.random.default_rng(0).uniform(size=(2, 1_000_000)))
    assert abs(float(cosine(x, y)) - 0.75) <= 0.005
    assert abs(float(cosine(x - x.mean(), y - y.mean()))) <= 0.005
