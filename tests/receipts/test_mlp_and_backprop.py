"""Evidence for the formulas of f04_mlp_and_backprop. The loss is the mean over N rows of squared distances."""

from itertools import pairwise

import numpy as np
import pytest
import sympy as sp
import torch

from course.mlp_and_backprop import Scalar


def symbols_of(name: str, rows: int, columns: int) -> sp.Matrix:
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}{i}{j}", real=True))


def gradient(scalar, matrix: sp.Matrix) -> sp.Matrix:
    return matrix.applyfunc(lambda entry: sp.diff(scalar, entry))


def squared_error(prediction: sp.Matrix, target: sp.Matrix):
    return sum((prediction - target).applyfunc(lambda x: x**2)) / sp.Integer(target.rows)


def same(left: sp.Matrix, right: sp.Matrix) -> bool:
    return left.shape == right.shape and (left - right).applyfunc(sp.expand).is_zero_matrix


@pytest.fixture
def net():
    """N = 7 rows through 5 inputs, 6 hidden units and 3 outputs, in float64."""
    generator = np.random.default_rng(0)
    shapes = {"X": (7, 5), "Y": (7, 3), "W1": (5, 6), "b1": (6,), "W2": (6, 3), "b2": (3,)}
    return {name: generator.normal(size=shape) for name, shape in shapes.items()}


def forward(net):
    Z1 = net["X"] @ net["W1"] + net["b1"]
    A1 = np.tanh(Z1)
    return Z1, A1, A1 @ net["W2"] + net["b2"]


def by_autograd(net, loss):
    tensors = {name: torch.tensor(value, requires_grad=True) for name, value in net.items()}
    out = torch.tanh(tensors["X"] @ tensors["W1"] + tensors["b1"]) @ tensors["W2"] + tensors["b2"]
    loss(out, tensors["Y"]).backward()
    return {name: tensor.grad.numpy() for name, tensor in tensors.items()}


def mean_of_squares(out, target):
    return ((out - target) ** 2).sum() / len(target)


def close(mine, theirs) -> bool:
    return np.abs(mine - theirs).max() <= 1e-13 * max(1, np.abs(theirs).max()) * mine.size


@pytest.mark.receipt("f04-mse", "computed")
def test_mse(net):
    Y, prediction = net["Y"], forward(net)[2]
    by_hand = sum(sum((y - p) ** 2 for y, p in zip(*rows, strict=True)) for rows in zip(Y, prediction, strict=True)) / len(Y)
    assert abs(((Y - prediction) ** 2).sum() / len(Y) - by_hand) <= 1e-12
    theirs = torch.nn.functional.mse_loss(torch.tensor(prediction), torch.tensor(Y)).item()
    assert abs(by_hand - 3 * theirs) <= 1e-12  # torch also divides by the 3 outputs


@pytest.mark.receipt("f04-weight-gradient", "derived")
@pytest.mark.parametrize(("N", "d_in", "d_out"), [(1, 1, 1), (3, 2, 2), (2, 3, 1)])
def test_weight_gradient(N, d_in, d_out):
    X, W, b, Y = symbols_of("x", N, d_in), symbols_of("w", d_in, d_out), symbols_of("b", 1, d_out), symbols_of("y", N, d_out)
    prediction = X * W + sp.ones(N, 1) * b
    assert same(gradient(squared_error(prediction, Y), W), sp.Rational(2, N) * X.T * (prediction - Y))


@pytest.mark.receipt("f04-bias-gradient", "derived")
@pytest.mark.parametrize(("N", "d_in", "d_out"), [(1, 1, 1), (3, 2, 2), (2, 3, 1)])
def test_bias_gradient(N, d_in, d_out):
    X, W, b, Y = symbols_of("x", N, d_in), symbols_of("w", d_in, d_out), symbols_of("b", 1, d_out), symbols_of("y", N, d_out)
    prediction = X * W + sp.ones(N, 1) * b
    assert same(gradient(squared_error(prediction, Y), b), sp.Rational(2, N) * sp.ones(1, N) * (prediction - Y))


@pytest.mark.receipt("f04-output-gradient", "derived")
def test_output_gradient():
    z, y = sp.symbols("z0:3", real=True), sp.symbols("y0:3", real=True)
    out = sp.symbols("o0:3", real=True)
    loss = sum((o - t) ** 2 for o, t in zip(out, y, strict=True))
    sigmoid = {o: 1 / (1 + sp.exp(-s)) for o, s in zip(out, z, strict=True)}
    linear = dict(zip(out, z, strict=True))
    for i in range(3):
        assert sp.expand(sp.diff(loss.subs(linear), z[i]) - sp.diff(loss, out[i]).subs(linear)) == 0
        factor = sigmoid[out[i]] * (1 - sigmoid[out[i]])  # another output function brings its derivative in
        assert sp.simplify(sp.diff(loss.subs(sigmoid), z[i]) - sp.diff(loss, out[i]).subs(sigmoid) * factor) == 0
    z, y = np.random.default_rng(4).normal(size=(2, 3))
    for output, slope in [
        (lambda z: z, lambda z: 1.0),
        (lambda z: 1 / (1 + np.exp(-z)), lambda z: np.exp(-z) / (1 + np.exp(-z)) ** 2),
    ]:
        for i, step in enumerate(1e-5 * np.eye(3)):
            up, down = [((output(z + sign * step) - y) ** 2).sum() for sign in (1, -1)]
            assert abs((up - down) / 2e-5 - (2 * (output(z) - y) * slope(z))[i]) <= 1e-8


@pytest.mark.receipt("f04-forward", "computed")
def test_forward(net):
    theirs = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3)).double()
    with torch.no_grad():
        for layer, number in ((theirs[0], 1), (theirs[2], 2)):
            layer.weight.copy_(torch.tensor(net[f"W{number}"]).T)  # torch stores W transposed
            layer.bias.copy_(torch.tensor(net[f"b{number}"]))
        assert close(forward(net)[2], theirs(torch.tensor(net["X"])).numpy())


@pytest.mark.receipt("f04-backward", "computed")
def test_backward(net):
    N, (Z1, A1, out) = len(net["X"]), forward(net)
    delta2 = 2 / N * (out - net["Y"])
    delta1 = delta2 @ net["W2"].T * (1 - np.tanh(Z1) ** 2)
    mine = {"W2": A1.T @ delta2, "b2": delta2.sum(0), "W1": net["X"].T @ delta1, "b1": delta1.sum(0)}
    theirs = by_autograd(net, mean_of_squares)
    for name, value in mine.items():
        assert close(value, theirs[name]), name
    halved = by_autograd(net, lambda out, target: mean_of_squares(out, target) / 2)
    for name, value in mine.items():  # with 1/N for 2/N one has the gradient of half the loss
        assert close(value / 2, halved[name]), name
        assert abs(np.linalg.norm(value) / np.linalg.norm(halved[name]) - 2) <= 1e-12, name


@pytest.mark.receipt("f04-both-gradients", "computed")
def test_both_gradients(net):
    x, W1, W2 = net["X"][0], net["W1"], net["W2"]
    hidden, weights = np.tanh(x @ W1), np.random.default_rng(3).normal(size=3)
    # each loss of the output row, with its gradient G there, derived by hand
    for loss, G in [(lambda out: out @ weights, weights), (lambda out: np.sin(out) @ weights, np.cos(hidden @ W2) * weights)]:
        mine = {"W2": np.outer(hidden, G), "W1": np.outer(x, (G @ W2.T) * (1 - hidden**2))}
        for name, value in mine.items():
            for index in np.ndindex(value.shape):  # central differences: error below h^2 and rounding over h
                step = np.zeros_like(value)
                step[index] = 1e-5
                moved = [{"W1": W1, "W2": W2, name: net[name] + sign * step} for sign in (1, -1)]
                up, down = [loss(np.tanh(x @ w["W1"]) @ w["W2"]) for w in moved]
                assert abs((up - down) / 2e-5 - value[index]) <= 1e-8


@pytest.mark.receipt("f04-collapse", "derived")
@pytest.mark.parametrize(("N", "d_in", "d_hidden", "d_out"), [(1, 1, 1, 1), (2, 3, 2, 3)])
def test_f04_collapse(N, d_in, d_hidden, d_out):
    X, W1, b1 = symbols_of("x", N, d_in), symbols_of("w", d_in, d_hidden), symbols_of("b", 1, d_hidden)
    W2, b2, ones = symbols_of("v", d_hidden, d_out), symbols_of("c", 1, d_out), sp.ones(N, 1)
    assert same((X * W1 + ones * b1) * W2 + ones * b2, X * (W1 * W2) + ones * (b1 * W2 + b2))


@pytest.mark.receipt("f04-count", "computed")
def test_f04_count():
    for d_in, d_out in np.random.default_rng(1).integers(1, 200, size=(30, 2)):
        layer = torch.nn.Linear(int(d_in), int(d_out))
        assert sum(p.numel() for p in layer.parameters()) == (d_in + 1) * d_out


@pytest.mark.receipt("f04-layers", "computed")
@pytest.mark.parametrize("depth", [2, 3, 4, 6])
def test_f04_layers(depth):
    generator = np.random.default_rng(depth)
    widths = generator.integers(1, 6, size=depth + 1)
    W = [generator.normal(size=(a, b)) for a, b in pairwise(widths)]
    b = [generator.normal(size=n) for n in widths[1:]]
    X, Y = generator.normal(size=(7, widths[0])), generator.normal(size=(7, widths[-1]))
    Z, A = [None], [X]
    for weights, bias in zip(W, b, strict=True):
        Z.append(A[-1] @ weights + bias)
        A.append(np.tanh(Z[-1]))
    delta = 2 / len(X) * (Z[-1] - Y)
    leaves = [torch.tensor(w, requires_grad=True) for w in W]
    out = torch.tensor(X)
    for layer, (leaf, bias) in enumerate(zip(leaves, b, strict=True), start=1):
        out = out @ leaf + torch.tensor(bias)
        out = torch.tanh(out) if layer < depth else out
    mean_of_squares(out, torch.tensor(Y)).backward()
    for layer in range(depth, 0, -1):
        assert close(A[layer - 1].T @ delta, leaves[layer - 1].grad.numpy())
        if layer > 1:
            delta = delta @ W[layer - 1].T * (1 - np.tanh(Z[layer - 1]) ** 2)


@pytest.mark.receipt("f04-reverse", "computed")
def test_f04_reverse():
    for seed in range(50):
        generator = np.random.default_rng(seed)
        values = generator.normal(size=4)
        mine, theirs = [Scalar(v) for v in values], [torch.tensor(v, requires_grad=True) for v in values]
        made, checked = list(mine), list(theirs)
        for _ in range(15):
            i, j, kind = generator.integers(len(made)), generator.integers(len(made)), generator.integers(3)
            for numbers in (made, checked):
                a, b = numbers[i], numbers[j]
                numbers.append(a + b if kind == 0 else (a * b).tanh() if kind == 1 else a.tanh())
        made[-1].backward()
        checked[-1].backward()
        assert made[-1].value == pytest.approx(checked[-1].item(), rel=1e-12)
        for one, other in zip(mine, theirs, strict=True):
            assert one.grad == pytest.approx(0.0 if other.grad is None else other.grad.item(), rel=1e-9, abs=1e-15)
