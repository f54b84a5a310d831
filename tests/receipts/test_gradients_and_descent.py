"""Evidence for the formulas of f02_gradients_and_descent."""

import itertools

import numpy as np
import pytest
import sympy as sp
import torch


def symbols_of(name: str, rows: int, columns: int) -> sp.Matrix:
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}{i}{j}", real=True))


def gradient(scalar, matrix: sp.Matrix) -> sp.Matrix:
    """Entry by entry, from the definition: the gradient has the shape of the matrix."""
    return matrix.applyfunc(lambda entry: sp.diff(scalar, entry))


def same(left: sp.Matrix, right: sp.Matrix) -> bool:
    return left.shape == right.shape and (left - right).applyfunc(sp.expand).is_zero_matrix


@pytest.mark.receipt("f02-line", "derived")
def test_line():
    x, u, m, b = sp.symbols("x u m b", real=True)
    line = m * x + b
    assert sp.simplify((line.subs(x, u) - line) / (u - x)) == m  # the slope between any two points
    assert line.subs(x, 0) == b


@pytest.mark.receipt("f02-derivative", "derived")
def test_derivative():
    x, h = sp.symbols("x h", real=True)
    a = sp.symbols("a0:5", real=True)
    polynomial = sum(c * x**k for k, c in enumerate(a))
    quotient = sp.cancel((polynomial.subs(x, x + h) - polynomial) / h)  # h divides: the limit is the value at 0
    assert sp.expand(quotient.subs(h, 0) - sum(k * c * x ** (k - 1) for k, c in enumerate(a) if k)) == 0
    for step in (1e-2, 1e-3, 1e-4):  # beyond polynomials: within h/2 max|f''| (and rounding) of the derivative
        for at in np.linspace(-2, 2, 9):
            assert abs((np.sin(at + step) - np.sin(at)) / step - np.cos(at)) <= step / 2 + 4e-16 / step


@pytest.mark.receipt("f02-chain", "derived")
def test_chain():
    x, y = sp.symbols("x y", real=True)
    a, b = sp.symbols("a0:4", real=True), sp.symbols("b0:4", real=True)
    outer, inner = sum(c * y**k for k, c in enumerate(a)), sum(c * x**k for k, c in enumerate(b))
    expanded = sp.Poly(sp.expand(outer.subs(y, inner)), x)  # a polynomial: differentiating needs no chain rule
    assert sp.expand(expanded.diff(x).as_expr() - sp.diff(outer, y).subs(y, inner) * sp.diff(inner, x)) == 0


@pytest.mark.receipt("f02-axb", "derived")
@pytest.mark.parametrize(("p", "m", "n", "q"), [(1, 1, 1, 1), (2, 3, 2, 2), (1, 3, 2, 3)])
def test_axb(p, m, n, q):
    A, X, B, G = symbols_of("a", p, m), symbols_of("x", m, n), symbols_of("b", n, q), symbols_of("g", p, q)
    loss = sum(G.multiply_elementwise(A * X * B))  # any loss whose gradient in AXB is G
    assert same(gradient(loss, X), A.T * G * B.T)


@pytest.mark.receipt("f02-trace", "derived")
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (3, 2)])
def test_trace(m, n):
    A, X = symbols_of("a", n, m), symbols_of("x", m, n)
    assert same(gradient((A * X).trace(), X), A.T)


@pytest.mark.receipt("f02-frobenius", "derived")
@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (3, 2)])
def test_frobenius(m, n):
    X = symbols_of("x", m, n)
    assert same(gradient(sum(X.multiply_elementwise(X)), X), 2 * X)


@pytest.mark.receipt("f02-matrix-chain", "computed")
def test_matrix_chain():
    generator = np.random.default_rng(0)
    X, C = generator.normal(size=(3, 4)), generator.normal(size=(3, 3))
    Y = np.tanh(X) @ X.T
    loss_gradient = np.cos(Y) * C  # of L = sum C sin(Y)
    by_sum = np.zeros_like(X)
    for i, j in np.ndindex(X.shape):  # dY/dX_ij by hand, then the sum over all entries of Y
        one = np.zeros_like(X)
        one[i, j] = 1
        by_sum[i, j] = (loss_gradient * ((1 - np.tanh(X) ** 2) * one @ X.T + np.tanh(X) @ one.T)).sum()
    T = torch.tensor(X, requires_grad=True)
    (torch.tensor(C) * torch.sin(torch.tanh(T) @ T.T)).sum().backward()
    assert np.abs(by_sum - T.grad.numpy()).max() <= 1e-12 * np.abs(by_sum).max()


@pytest.mark.receipt("f02-descent-line", "derived")
def test_descent_line():
    x0, eta, x = sp.symbols("x0 eta x", real=True)
    k = sp.Symbol("k", integer=True, nonnegative=True)
    ratio = 1 - 2 * eta
    step = sp.diff(x**2, x)
    at_k = x0 * ratio**k
    assert sp.simplify(at_k.subs(k, 0)) == x0  # induction: the start …
    assert sp.cancel((at_k - eta * step.subs(x, at_k)) / at_k) == ratio.expand()  # … and the step
    tenth = at_k.subs({x0: 3, eta: sp.Rational(1, 10), k: 10})
    assert tenth == 3 * sp.Rational(4, 5) ** 10
    assert (round(float(tenth), 4), round(float(tenth**2), 4)) == (0.3221, 0.1038)


@pytest.mark.receipt("f02-descent", "computed")
def test_descent():
    generator = np.random.default_rng(1)
    root = generator.normal(size=(5, 5))
    A = root @ root.T / 5 + 0.1 * np.eye(5)  # f(w) = w A w^T / 2, gradient w A
    top = np.linalg.eigvalsh(A).max()
    for eta in (0.5 / top, 1.9 / top):
        start = generator.normal(size=5)
        w, losses = start.copy(), []
        theirs = torch.tensor(start, requires_grad=True)
        optimiser = torch.optim.SGD([theirs], lr=eta)
        for _ in range(40):
            losses.append(w @ A @ w / 2)
            w = w - eta * (w @ A)
            optimiser.zero_grad()
            (theirs @ torch.tensor(A) @ theirs / 2).backward()
            optimiser.step()
        closed = start @ np.linalg.matrix_power(np.eye(5) - eta * A, 40)
        assert np.abs(w - closed).max() <= 1e-12
        assert np.abs(w - theirs.detach().numpy()).max() <= 1e-12
        assert all(after < before for before, after in itertools.pairwise(losses))  # below 2 / top it descends


@pytest.mark.receipt("f02-flow", "computed")
def test_gradient_flow():
    generator = np.random.default_rng(2)
    root = generator.normal(size=(4, 4))
    values, vectors = np.linalg.eigh(root @ root.T / 4)
    A, start, time = vectors * values @ vectors.T, generator.normal(size=4), 2.0
    flow = start @ (vectors * np.exp(-time * values) @ vectors.T)  # solves w' = -w A
    errors = []
    for steps in (64, 128, 256):
        w, eta = start.copy(), time / steps
        for _ in range(steps):
            w = w - eta * (w @ A)
        errors.append(np.linalg.norm(w - flow))
        assert errors[-1] <= eta * time / 2 * values.max() ** 2 * np.linalg.norm(start)  # Euler's bound
    for coarse, fine in itertools.pairwise(errors):
        assert abs(coarse / fine - 2) <= 0.1  # first order: half the step, half the error


@pytest.mark.receipt("f02-central", "derived")
def test_f02_central():
    x, h = sp.symbols("x h", real=True)
    f = sum(c * x**k for k, c in enumerate(sp.symbols("a0:7", real=True)))
    quotient = sp.cancel((f.subs(x, x + h) - f.subs(x, x - h)) / (2 * h))
    rest = sp.Poly(sp.expand(quotient - sp.diff(f, x) - h**2 / 6 * sp.diff(f, x, 3)), h)
    assert min(power for (power,) in rest.monoms()) == 4


@pytest.mark.receipt("f02-linear", "computed")
def test_f02_linear():
    generator = np.random.default_rng(4)
    w = torch.tensor(generator.normal(size=6), requires_grad=True)

    def f(w):
        return (w.sin() * w.roll(1)).sum() + w.pow(2).sum()

    f(w).backward()
    g = w.grad.numpy()
    with torch.no_grad():
        for _ in range(10):
            v = torch.tensor(generator.normal(size=6))
            errors = [abs(float(f(w + t * v) - f(w)) - t * float(g @ v.numpy())) for t in (1e-3, 5e-4)]
            assert abs(errors[0] / errors[1] - 4) <= 0.2  # half the step, a quarter of the error
        length = 1e-4
        climbs = [float(f(w + length * torch.tensor(v / np.linalg.norm(v)))) for v in generator.normal(size=(2000, 6))]
        assert max(climbs) < float(f(w + length * torch.tensor(g / np.linalg.norm(g))))


@pytest.mark.receipt("f02-stable", "derived")
def test_f02_stable():
    x0, eta, x = sp.symbols("x0 eta x", real=True)
    a = sp.Symbol("a", positive=True)
    k = sp.Symbol("k", integer=True, nonnegative=True)
    ratio = 1 - eta * a
    at_k = x0 * ratio**k
    assert at_k.subs(k, 0) == x0
    assert sp.cancel((at_k - eta * sp.diff(a * x**2 / 2, x).subs(x, at_k)) / at_k) == ratio.expand()
    # 1 - ratio² is positive, and so |ratio| < 1, exactly between 0 and 2/a
    assert sp.expand(1 - ratio**2 - a * eta * (2 - a * eta)) == 0


@pytest.mark.receipt("f02-bowl", "derived")
def test_f02_bowl():
    a, gap, more = sp.symbols("a gap more", positive=True)
    b = a + gap
    rate, factor = 2 / (a + b), (b - a) / (b + a)
    assert sp.simplify(1 - rate * a - factor) == 0 and sp.simplify(rate * b - 1 - factor) == 0
    # a smaller rate leaves the flat axis slower, a larger one the steep axis
    assert sp.simplify(1 - (rate - more) * a - factor - a * more) == 0
    assert sp.simplify((rate + more) * b - 1 - factor - b * more) == 0
    for low, high in np.sort(np.random.default_rng(5).uniform(0.1, 10, size=(20, 2))):
        rates = np.linspace(0, 2 / high, 20_001)
        worst = np.maximum(abs(1 - rates * low), abs(1 - rates * high))
        assert abs(worst.min() - (high - low) / (high + low)) <= 2e-4
        assert abs(rates[worst.argmin()] - 2 / (low + high)) <= 2e-4 / high


@pytest.mark.receipt("f02-linear-model", "derived")
@pytest.mark.parametrize(("n", "d_in", "d_out"), [(1, 1, 1), (3, 2, 2)])
def test_f02_linear_model(n, d_in, d_out):
    X, W, Y, b = symbols_of("x", n, d_in), symbols_of("w", d_in, d_out), symbols_of("y", n, d_out), symbols_of("b", 1, d_out)
    errors = X * W + sp.ones(n, 1) * b - Y
    loss = sum(errors.multiply_elementwise(errors)) / n
    assert same(gradient(loss, W), 2 * X.T * errors / n)
    assert same(gradient(loss, b), 2 * sp.ones(1, n) * errors / n)


@pytest.mark.receipt("f02-quartic", "computed")
def test_f02_quartic():
    for start in np.random.default_rng(6).uniform(0.1, 50, size=40):
        edge, x = 1 / (2 * start**2), start
        for _ in range(20_000):
            x -= 0.99 * edge * 4 * x**3
        assert abs(x) < start / 100
        x, steps = start, 0
        while abs(x) < 1e6 * start and steps < 1000:
            x, steps = x - 1.01 * edge * 4 * x**3, steps + 1
        assert abs(x) >= 1e6 * start
