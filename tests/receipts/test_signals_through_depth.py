"""Evidence for the formulas of f05_signals_through_depth."""

import itertools
import math

import numpy as np
import pytest
import sympy as sp
import torch

from course import data
from course.signals_through_depth import euler_resnet, largest_float, loss_scale, residual_growth

FORMATS = [(torch.float16, 10, 5), (torch.bfloat16, 7, 8), (torch.float32, 23, 8), (torch.float64, 52, 11)]
SIGNS = (-1, 1)


def mean(values):
    values = list(values)
    return sum(values, sp.Integer(0)) / len(values)


@pytest.mark.receipt("f05-layer", "derived")
def test_layer():
    sigma = sp.Symbol("sigma", positive=True)
    for n in (1, 2, 3, 4):
        x = sp.symbols(f"x1:{n + 1}", real=True)
        z = mean(sum(a * s * sigma for a, s in zip(x, signs, strict=True)) ** 2 for signs in itertools.product(SIGNS, repeat=n))
        assert sp.expand(z - n * sigma**2 * mean(a**2 for a in x)) == 0


@pytest.mark.receipt("f05-depth", "derived")
def test_depth():
    sigma, a, b = sp.symbols("sigma a b", real=True)
    total = sp.Integer(0)
    for s in itertools.product(SIGNS, repeat=8):
        first = [sigma * (a * s[0] + b * s[1]), sigma * (a * s[2] + b * s[3])]
        second = [sigma * (first[0] * s[4] + first[1] * s[5]), sigma * (first[0] * s[6] + first[1] * s[7])]
        total += sp.expand((second[0] ** 2 + second[1] ** 2) / 2)
    assert sp.expand(total / 256 - (2 * sigma**2) ** 2 * (a**2 + b**2) / 2) == 0


@pytest.mark.receipt("f05-relu", "derived")
def test_relu():
    z, s = sp.symbols("z s", positive=True)
    for density, end, second_moment in [
        (sp.exp(-(z**2) / (2 * s**2)) / (s * sp.sqrt(2 * sp.pi)), sp.oo, s**2),
        (1 / (2 * s), s, s**2 / 3),
        (sp.exp(-z / s) / (2 * s), sp.oo, 2 * s**2),
    ]:  # even densities, given for z > 0, with their known second moments
        assert sp.simplify(sp.integrate(z**2 * density, (z, 0, end)) - second_moment / 2) == 0


@pytest.mark.receipt("f05-he", "derived")
def test_he():
    n, variance = sp.symbols("n variance", positive=True)
    assert sp.solve(sp.Eq(n * variance / 2, 1), variance) == [2 / n]
    W = torch.empty(500, 500)
    torch.nn.init.kaiming_normal_(W, nonlinearity="relu", generator=torch.Generator().manual_seed(0))
    assert abs(float(W.square().mean()) * 500 / 2 - 1) <= 0.02


@pytest.mark.receipt("f05-relu-variance", "derived")
def test_relu_variance():
    z = sp.Symbol("z", positive=True)
    density = sp.exp(-(z**2) / 2) / sp.sqrt(2 * sp.pi)
    first, second = (sp.integrate(z**k * density, (z, 0, sp.oo)) for k in (1, 2))
    assert sp.simplify(second - first**2 - (sp.Rational(1, 2) - 1 / (2 * sp.pi))) == 0
    assert abs(float(second - first**2) - 0.341) <= 5e-4


@pytest.mark.receipt("f05-backward", "derived")
def test_backward():
    sigma = sp.Symbol("sigma", positive=True)
    for n_out in (1, 2, 3, 4):
        g = sp.symbols(f"g1:{n_out + 1}", real=True)
        rows = itertools.product(SIGNS, repeat=n_out)  # one row of W is one column of its transpose
        G_x = mean((sp.Matrix([g]) * (sigma * sp.Matrix([row])).T)[0] ** 2 for row in rows)
        assert sp.expand(G_x - n_out * sigma**2 * mean(a**2 for a in g)) == 0


@pytest.mark.receipt("f05-xavier", "derived")
def test_xavier():
    n, m, variance = sp.symbols("n m variance", positive=True)
    [solution] = sp.solve(sp.Eq((n * variance + m * variance) / 2, 1), variance)
    assert sp.simplify(solution - 2 / (n + m)) == 0
    W = torch.empty(200, 800)
    torch.nn.init.xavier_normal_(W, generator=torch.Generator().manual_seed(0))
    assert abs(float(W.square().mean()) * 1000 / 2 - 1) <= 0.02


@pytest.mark.receipt("f05-wander", "measured")
def test_wander():
    record = data.record("signals_through_depth")
    rows = record["results"]["rows"]
    assert len(record["seeds"]) == 200 and "1.96" in record["interval"] and len(rows) == 12
    ratios = [row["variance"] / row["theory"] for row in rows]
    assert abs(min(ratios) - 0.94) <= 0.005 and abs(max(ratios) - 1.27) <= 0.005
    for row in rows:
        assert abs(row["theory"] - 5 * row["depth"] / row["width"]) <= 1e-4
        assert row["variance"] > 3 * row["variance_half_width"] / 1.96  # the null model: no wandering
    inside = sum(abs(row["variance"] - row["theory"]) <= row["variance_half_width"] for row in rows)
    assert inside >= 10


@pytest.mark.receipt("f05-largest", "computed")
def test_largest():
    for dtype, m, bits in FORMATS:
        assert abs(largest_float(m, bits) - torch.finfo(dtype).max) <= 0
    assert largest_float(10, 5) == 65504 == float(np.finfo(np.float16).max)


@pytest.mark.receipt("f05-absorb", "computed")
def test_absorb():
    for dtype, m, _ in FORMATS:
        one, limit = torch.ones((), dtype=dtype), torch.tensor(2.0 ** -(m + 1), dtype=dtype)
        assert abs(one + limit - one) <= 0 and one + limit * (1 + 2.0**-m) > one


@pytest.mark.receipt("f05-scale", "derived")
def test_scale():
    s, w, x, y = sp.symbols("s w x y", real=True)
    loss = (sp.tanh(w * x) - y) ** 2
    assert sp.simplify(sp.diff(s * loss, w) - s * sp.diff(loss, w)) == 0
    gradients = 1e-3 * torch.randn(10_000, generator=torch.Generator().manual_seed(0))
    assert torch.equal(gradients * 2.0**15 / 2.0**15, gradients)
    assert loss_scale(torch.tensor(1e-8), 1.0) == 0 and abs(loss_scale(torch.tensor(1e-8), 2.0**15) - 1e-8) <= 1e-11


@pytest.mark.receipt("f05-scaled-residual", "computed")
def test_scaled_residual():
    h = start = torch.from_numpy(np.random.default_rng(0).normal(size=8))
    blocks = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 8, 8)))
    remaining = iter(blocks)
    for W in blocks:
        h = h + 0.3 * (h @ W)
    assert float((euler_resnet(lambda x: x @ next(remaining), start, 5, time=1.5) - h).abs().max()) <= 1e-14 * float(
        h.abs().max()
    )


def grown(step) -> sp.Expr:
    """The second moment after L steps that start at 1."""
    L, m = sp.Symbol("L", integer=True, nonnegative=True), sp.Function("m")
    return sp.rsolve(m(L + 1) - step(m(L)), m(L), {m(0): 1}).subs(L, sp.Symbol("depth"))


@pytest.mark.receipt("f05-normed", "derived")
def test_normed():
    alpha, depth, h = sp.Symbol("alpha", positive=True), sp.Symbol("depth"), sp.Symbol("h", real=True)
    assert sp.expand(mean((h + alpha * s) ** 2 for s in SIGNS) - h**2 - alpha**2) == 0
    assert sp.expand(grown(lambda m: m + alpha**2) - 1 - depth * alpha**2) == 0
    assert residual_growth(48, 0.5, normed=True) == 13


@pytest.mark.receipt("f05-plain", "derived")
def test_plain():
    alpha, depth, h = sp.Symbol("alpha", positive=True), sp.Symbol("depth"), sp.Symbol("h", real=True)
    assert sp.expand(mean((h + alpha * s * h) ** 2 for s in SIGNS) - (1 + alpha**2) * h**2) == 0
    assert sp.simplify(grown(lambda m: (1 + alpha**2) * m) - (1 + alpha**2) ** depth) == 0
    assert sp.limit((1 + 1 / depth) ** depth, depth, sp.oo) == sp.E
    assert all(residual_growth(L, L**-0.5, normed=False) < math.e for L in (1, 10, 100, 10_000))


@pytest.mark.receipt("f05-euler", "computed")
def test_euler():
    turn = torch.tensor([[0.0, 2.0], [-2.0, 0.0]], dtype=torch.float64)
    start = torch.tensor([1.0, 0.5], dtype=torch.float64)
    flows = [
        (lambda h: -3 * h, start * math.exp(-3)),
        (lambda h: h * (1 - h), 1 / (1 + (1 / start - 1) * math.exp(-1))),
        (lambda h: h @ turn, start @ torch.linalg.matrix_exp(turn)),
    ]
    for F, exact in flows:
        errors = [float((euler_resnet(F, start, L) - exact).abs().max()) for L in (512, 1024)]
        assert errors[1] <= 3 / 1024 and abs(errors[0] / errors[1] - 2) <= 0.04


@pytest.mark.receipt("f05-ode", "derived")
def test_residual_ode():
    c, t = sp.symbols("c t", real=True)
    L, h = sp.Symbol("L", positive=True), sp.Function("h")
    flow = sp.dsolve(sp.Eq(h(t).diff(t), c * h(t)), h(t), ics={h(0): 1}).rhs
    for rate in (-3, -1, sp.Rational(1, 2), 2):
        assert sp.simplify(sp.limit((1 + rate / L) ** L, L, sp.oo) - flow.subs({c: rate, t: 1})) == 0


@pytest.mark.receipt("f05-err-amp", "computed")
def test_autocast_keeps_gradients_of_activations_in_16_bits():
    layer = torch.nn.Linear(8, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(torch.ones(3, 8))
    out.retain_grad()
    out.float().square().sum().backward()
    assert out.element_size() <= 2 and out.grad.element_size() <= 2
    assert layer.weight.element_size() >= 4 and layer.weight.grad.element_size() >= 4


@pytest.mark.receipt("f05-err-alpha", "computed")
def test_a_fixed_alpha_below_one_explodes():
    assert abs(residual_growth(100, 0.5, normed=False) / 4.909e9 - 1) <= 1e-3
    assert residual_growth(100, 0.1, normed=False) < math.e


@pytest.mark.receipt("f05-err-euler", "computed")
def test_a_step_of_one_is_no_flow():
    one = torch.ones((), dtype=torch.float64)
    assert abs(float(euler_resnet(lambda h: -3 * h, one, 1)) - math.exp(-3)) >= 2
    assert abs(float(euler_resnet(lambda h: -3 * h, one, 20, time=20.0))) >= 1e6
