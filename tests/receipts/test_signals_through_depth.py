"""Evidence for the formulas of f05_signals_through_depth."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import sympy as sp
import torch
from scipy.special import digamma, polygamma

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
    for x in ([sp.Integer(3)], [sp.Integer(3), sp.Rational(-1, 2)], [sp.Integer(2), sp.Integer(1), sp.Integer(5)]):
        n, hidden = len(x), 2
        first, second = sp.sqrt(sp.Rational(2, n)), sp.sqrt(sp.Rational(2, hidden))  # standard deviations by the rule
        before, after = [], []
        for signs in itertools.product(SIGNS, repeat=n * hidden + hidden):
            z = [first * sum(a * s for a, s in zip(x, signs[j * n : (j + 1) * n], strict=True)) for j in range(hidden)]
            before += [a**2 for a in z]
            after.append((second * sum(max(a, 0) * s for a, s in zip(z, signs[n * hidden :], strict=True))) ** 2)
        assert sp.expand(mean(after) - mean(before)) == 0
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


@pytest.mark.receipt("f05-backward", "computed")
def test_backward():
    sigma = 0.7
    for n_out in (1, 2, 3, 4):
        G_z = torch.from_numpy(np.random.default_rng(n_out).normal(size=n_out))
        squares = []
        for signs in itertools.product(SIGNS, repeat=2 * n_out):
            W = sigma * torch.tensor(signs, dtype=torch.float64).reshape(2, n_out)
            x = torch.ones(2, dtype=torch.float64, requires_grad=True)
            (x @ W).backward(G_z)
            squares.append(x.grad.square())
        assert float((torch.stack(squares).mean(0) - n_out * sigma**2 * G_z.square().mean()).abs().max()) <= 1e-12


@pytest.mark.receipt("f05-xavier", "computed")
def test_xavier():
    generator = torch.Generator().manual_seed(0)
    for n, m in [(200, 800), (600, 100), (300, 300)]:
        factors = []
        for _ in range(200):
            W = math.sqrt(2 / (n + m)) * torch.randn(n, m, generator=generator)
            x, G_z = torch.randn(n, generator=generator).requires_grad_(), torch.randn(m, generator=generator)
            z = x @ W
            z.backward(G_z)
            forwards = z.square().mean() / x.square().mean()
            factors.append(float(forwards.detach() + x.grad.square().mean() / G_z.square().mean()) / 2)
        assert abs(np.mean(factors) - 1) <= 0.03
    for fill in (torch.nn.init.xavier_normal_, torch.nn.init.xavier_uniform_):
        W = fill(torch.empty(200, 800), generator=generator)
        assert abs(float(W.square().mean()) * 1000 / 2 - 1) <= 0.02
    assert float(W.abs().max()) <= math.sqrt(6 / 1000)


def variance_of_one_layer(n):
    """Of ln of a sum of max(0, z)² over n normal z: ln χ² with as many degrees of freedom as there are positive z."""
    k = np.arange(1, n + 1)
    p = scipy.stats.binom(n, 0.5).pmf(k) / (1 - 0.5**n)
    first, spread = digamma(k / 2), polygamma(1, k / 2)
    return float(p @ spread + p @ (first - p @ first) ** 2)


@pytest.mark.receipt("f05-wander", "measured")
def test_wander():
    record = data.record("signals_through_depth")
    rows = record["results"]["rows"]
    assert len(record["seeds"]) == 200 and "Student" in record["interval"] and len(rows) == 12
    for width, wanted in [(32, 5.68), (128, 5.15)]:
        assert abs(width * variance_of_one_layer(width) - wanted) <= 0.005
    z = np.random.default_rng(0).normal(size=(20_000, 32))  # the law itself, against random numbers
    assert abs(np.log((np.maximum(z, 0) ** 2).sum(1)).var() / variance_of_one_layer(32) - 1) <= 0.05
    inside = dict.fromkeys(("5 L / n", "exact", "2 L / n", "5 / n"), 0)
    for row in rows:
        found, half = data.interval((np.array(row["runs"]) - np.mean(row["runs"])) ** 2)
        L, n = row["depth"], row["width"]
        rules = {"5 L / n": 5 * L / n, "exact": L * variance_of_one_layer(n), "2 L / n": 2 * L / n, "5 / n": 5 / n}
        for name, rule in rules.items():
            inside[name] += abs(found - rule) <= half
        for name, key in [("5 L / n", "theory"), ("exact", "exact"), ("2 L / n", "linear"), ("5 / n", "one_layer")]:
            assert abs(row[key] - rules[name]) <= 1e-4
    assert inside == {"5 L / n": 11, "exact": 12, "2 L / n": 0, "5 / n": 0}


@pytest.mark.receipt("f05-orthogonal", "derived")
def test_orthogonal():
    for d in (2, 3):
        x, u, v = (sp.Matrix([sp.symbols(f"{name}1:{d + 1}", real=True)]) for name in "xuv")
        first, second = (sp.eye(d) - 2 * a.T * a / (a * a.T)[0] for a in (u, v))  # reflections, which are orthogonal
        assert sp.simplify(first * first.T - sp.eye(d)) == sp.zeros(d)
        moved = x * first * second
        assert sp.simplify((moved * moved.T)[0] - (x * x.T)[0]) == 0
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, generator=generator, dtype=torch.float64).requires_grad_()
    h = x
    for _ in range(200):
        h = h @ torch.nn.init.orthogonal_(torch.empty(50, 50, dtype=torch.float64), generator=generator)
    G = torch.randn(50, generator=generator, dtype=torch.float64)
    h.backward(G)
    assert abs(float(h.detach().norm() / x.detach().norm()) - 1) <= 1e-12 and abs(float(x.grad.norm() / G.norm()) - 1) <= 1e-12


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
        if m <= 10:  # all numbers of 16 bits from 0 to 1
            every = torch.arange(2**15, dtype=torch.int32).to(torch.int16).view(dtype)
            deltas = every[every <= 1]
            assert len(deltas) > 15_000
        else:
            share = torch.rand(10_000, generator=torch.Generator().manual_seed(m), dtype=torch.float64).to(dtype)
            deltas = torch.cat([share * limit, limit * (1 + share).clamp(min=1 + 2.0**-m)])
        assert torch.equal(one + deltas == one, deltas <= limit)


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
    start = torch.from_numpy(np.random.default_rng(0).normal(size=8))
    blocks = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 8, 8)))
    remaining = iter(blocks)
    wanted = start.numpy() @ np.linalg.multi_dot([np.eye(8) + 0.3 * W for W in blocks.numpy()])
    found = euler_resnet(lambda x: x @ next(remaining), start, 5, time=1.5).numpy()
    assert np.abs(found - wanted).max() <= 1e-13 * np.abs(wanted).max()


def two_blocks(a, b, alpha, size, root):
    """Mean square after two residual blocks of width 2 from (a, b), over all signs of weights ± root; branches are over `size`."""
    total = 0
    for signs in itertools.product(SIGNS, repeat=4):
        first, second = (alpha * root * (a * signs[i] + b * signs[i + 1]) / size(a, b) for i in (0, 2))
        h = (a + first, b + second)
        for more in itertools.product(SIGNS, repeat=4):
            branches = (root * (h[0] * more[i] + h[1] * more[i + 1]) / size(*h) for i in (0, 2))
            total += sum((old + alpha * branch) ** 2 for old, branch in zip(h, branches, strict=True)) / 2
    return total / 256


@pytest.mark.receipt("f05-normed", "computed")
def test_normed():
    for a, b, alpha in itertools.product((3.0, 0.5), (-1.0, 2.0), (0.1, 1.0, 2.5)):
        found = two_blocks(a, b, alpha, lambda x, y: math.sqrt((x**2 + y**2) / 2), math.sqrt(0.5))
        assert math.isclose(found, (a**2 + b**2) / 2 + 2 * alpha**2, rel_tol=1e-12)
    generator = torch.Generator().manual_seed(0)
    h = start = 2 * torch.randn(400, 1, 32, generator=generator)  # 400 stacks, each with its own weights
    for _ in range(16):
        branch = h / h.square().mean(-1, keepdim=True).sqrt()
        h = h + 0.7 * branch @ torch.randn(400, 32, 32, generator=generator) / math.sqrt(32)
    assert abs(float(h.square().mean()) / (float(start.square().mean()) + 16 * 0.7**2) - 1) <= 0.02
    assert residual_growth(48, 0.5, normed=True) == 13


@pytest.mark.receipt("f05-plain", "derived")
def test_plain():
    alpha, depth, a, b = (*sp.symbols("alpha depth", positive=True), *sp.symbols("a b", real=True))
    found = two_blocks(a, b, alpha, lambda x, y: 1, sp.sqrt(sp.Rational(1, 2)))
    assert sp.expand(found - (1 + alpha**2) ** 2 * (a**2 + b**2) / 2) == 0
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
    assert sp.simplify(sp.limit((1 + c / L) ** L, L, sp.oo) - flow.subs(t, 1)) == 0
    for rate in (-3, -1, sp.Rational(1, 2), 2):
        assert sp.simplify(sp.limit((1 + rate / L) ** L, L, sp.oo) - flow.subs({c: rate, t: 1})) == 0


@pytest.mark.receipt("f05-err-amp", "computed")
def test_autocast_keeps_gradients_of_activations_in_16_bits():
    layer, kept = torch.nn.Linear(8, 4), []
    optimiser = torch.optim.Adam(layer.parameters())
    x = torch.ones(3, 8, requires_grad=True)  # so that the product keeps both of its inputs
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.element_size()) or t, lambda t: t)
    with hooks, torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(x)
    out.retain_grad()
    out.float().square().sum().backward()
    optimiser.step()
    assert len(kept) == 2 and max(kept) <= 2
    assert out.element_size() <= 2 and out.grad.element_size() <= 2
    assert layer.weight.element_size() >= 4 and layer.weight.grad.element_size() >= 4
    assert all(optimiser.state[layer.weight][name].element_size() >= 4 for name in ("exp_avg", "exp_avg_sq"))


@pytest.mark.receipt("f05-err-alpha", "computed")
def test_a_fixed_alpha_below_one_explodes():
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(2000, generator=generator)
    for _ in range(40):
        grown = h + 0.5 * h @ torch.randn(2000, 2000, generator=generator) / math.sqrt(2000)
        assert 1.2 <= float(grown.square().mean() / h.square().mean()) <= 1.3
        h = grown
    assert abs(residual_growth(100, 0.5, normed=False) / 4.909e9 - 1) <= 1e-3
    assert residual_growth(100, 0.1, normed=False) < math.e


@pytest.mark.receipt("f05-err-euler", "computed")
def test_a_step_of_one_is_no_flow():
    one = torch.ones((), dtype=torch.float64)
    assert abs(float(euler_resnet(lambda h: -3 * h, one, 1)) - math.exp(-3)) >= 2
    assert abs(float(euler_resnet(lambda h: -3 * h, one, 20, time=20.0))) >= 1e6
