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
    # 1 - ratio² is positive, and so |ratio| < 1 and its powers tend to 0, exactly between 0 and 2/a
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


@pytest.mark.receipt("f02-quartic", "derived")
def test_f02_quartic():
    u, eta, x, over = sp.symbols("u eta x over", positive=True)
    after = x - eta * sp.diff(x**4, x)
    assert sp.expand(4 * eta * after**2 - (u * (1 - u) ** 2).subs(u, 4 * eta * x**2)) == 0  # u = 4 eta x² has a map of its own
    assert sp.expand(u - u * (1 - u) ** 2 - u**2 * (2 - u)) == 0  # below 2 it falls …
    assert sp.solveset(u * (1 - u) ** 2 - u, u, sp.S.Reals) == {0, 2}  # … to a fixed point, which is 0, since it began below 2
    more = sp.Poly(sp.expand((u * (1 - u) ** 2 - u - 4 * over).subs(u, 2 + over)), over)
    assert all(c >= 0 for c in more.coeffs()) and more.eval(0) == 0  # from 2 + over it grows by at least 4 over each time
    for start in np.random.default_rng(6).uniform(0.1, 50, size=40):  # and so it goes in floats
        edge, x = 1 / (2 * start**2), start
        for _ in range(20_000):
            x -= 0.99 * edge * 4 * x**3
        assert abs(x) < start / 100
        x, steps = start, 0
        while abs(x) < 1e6 * start and steps < 1000:
            x, steps = x - 1.01 * edge * 4 * x**3, steps + 1
        assert abs(x) >= 1e6 * start


def curved(w: torch.Tensor) -> torch.Tensor:
    """A smooth function of n numbers, curved differently at every place."""
    return (w.sin() * w.roll(1)).sum() + (w**2).sum().cosh().log()


@pytest.mark.receipt("f02-hessian", "computed")
def test_f02_hessian():
    generator = np.random.default_rng(7)
    for n in (2, 3, 5):
        w = torch.tensor(generator.normal(size=n))
        gradient = torch.autograd.functional.jacobian(curved, w)
        by_differences = torch.zeros(n, n, dtype=torch.float64)  # second differences of f: no derivative is taken
        for i, j in itertools.product(range(n), repeat=2):
            a, b = 1e-4 * torch.eye(n, dtype=torch.float64)[[i, j]]
            by_differences[i, j] = (curved(w + a + b) - curved(w + a - b) - curved(w - a + b) + curved(w - a - b)) / 4e-8
        hessian = torch.autograd.functional.hessian(curved, w)
        assert torch.allclose(by_differences, hessian, rtol=0, atol=1e-5) and torch.allclose(
            hessian, hessian.T, rtol=0, atol=1e-12
        )
        for _ in range(5):
            v = torch.tensor(generator.normal(size=n))
            steps = (1e-2, 5e-3)
            errors = [float(curved(w + t * v) - curved(w) - t * gradient @ v - t * t / 2 * v @ hessian @ v) for t in steps]
            assert abs(errors[0] / errors[1] - 8) <= 1  # half the step, an eighth of the error


@pytest.mark.receipt("f02-lemma", "computed")
def test_f02_lemma():
    eta, top, s = sp.symbols("eta Lambda s", positive=True)
    square = sp.Symbol("square", positive=True)  # |g|²
    slope = -square + sp.integrate(top * square, (s, 0, s))  # along the way, if the curvature is the largest all the time
    assert sp.simplify(sp.integrate(slope, (s, 0, eta)) + eta * (1 - eta * top / 2) * square) == 0
    generator = np.random.default_rng(8)
    for _ in range(20):  # ln(1 + e^z) has curvatures of at most 1/4, so the largest of the sum is that of A^T A / 4
        A = torch.tensor(generator.normal(size=(6, 4)))
        largest = float(torch.linalg.eigvalsh(A.T @ A).max()) / 4
        tight = False
        for _ in range(100):
            w, rate = torch.tensor(3 * generator.normal(size=4)), float(generator.uniform(0, 3)) / largest
            g = torch.autograd.functional.jacobian(lambda w, A=A: torch.nn.functional.softplus(A @ w).sum(), w)
            before, after = (float(torch.nn.functional.softplus(A @ x).sum()) for x in (w, w - rate * g))
            assert after <= before - rate * (1 - rate * largest / 2) * float(g @ g) + 1e-12
            tight |= after > before - rate * float(g @ g)  # without the term of the curvature it would be false
        assert tight
    for rate in (0.3, 1.0, 1.9, 2.1):  # along the steepest axis of a bowl it is an equality, so 2 / Lambda is sharp
        w, largest = np.array([0.0, 1.7]), 5.0
        f = [np.array([1.0, largest]) @ x**2 / 2 for x in (w, w - rate / largest * largest * w)]
        assert abs(f[1] - f[0] + rate / largest * (1 - rate / 2) * (largest * 1.7) ** 2) <= 1e-12


def test_the_valley_of_the_text_is_left_where_it_is_too_sharp():
    u, v = sp.symbols("u v", real=True)
    hessian = sp.hessian((u * v - 1) ** 2 / 2, (u, v)).subs(v, 1 / u)
    assert {sp.simplify(x) for x in hessian.eigenvals()} == {sp.Integer(0), sp.simplify(u**2 + 1 / u**2)}
    for rate in (0.01, 0.1, 0.2, 0.23, 0.26, 0.3):
        x, y = 3.0, 0.4
        for _ in range(4000):
            gap = x * y - 1
            x, y = x - rate * gap * y, y - rate * gap * x
        assert abs(x * y - 1) <= 1e-12 and x * x + y * y < 2 / rate
        assert (x * x + y * y > 9) == (rate <= 0.2)
