"""Evidence for the formulas of f04_mlp_and_backprop. The loss is the mean over N rows of squared distances."""

import numpy as np
import pytest
import sympy as sp
import torch


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


@pytest.mark.receipt("n-mse", "computed")
def test_n_mse(net):
    Y, prediction = net["Y"], forward(net)[2]
    by_hand = sum(sum((y - p) ** 2 for y, p in zip(*rows, strict=True)) for rows in zip(Y, prediction, strict=True)) / len(Y)
    assert abs(((Y - prediction) ** 2).sum() / len(Y) - by_hand) <= 1e-12
    theirs = torch.nn.functional.mse_loss(torch.tensor(prediction), torch.tensor(Y)).item()
    assert abs(by_hand - 3 * theirs) <= 1e-12  # torch also divides by the 3 outputs


@pytest.mark.receipt("n-gw", "derived")
@pytest.mark.parametrize(("N", "d_in", "d_out"), [(1, 1, 1), (3, 2, 2), (2, 3, 1)])
def test_n_gw(N, d_in, d_out):
    X, W, b, Y = symbols_of("x", N, d_in), symbols_of("w", d_in, d_out), symbols_of("b", 1, d_out), symbols_of("y", N, d_out)
    prediction = X * W + sp.ones(N, 1) * b
    assert same(gradient(squared_error(prediction, Y), W), sp.Rational(2, N) * X.T * (prediction - Y))


@pytest.mark.receipt("n-gb", "derived")
@pytest.mark.parametrize(("N", "d_in", "d_out"), [(1, 1, 1), (3, 2, 2), (2, 3, 1)])
def test_n_gb(N, d_in, d_out):
    X, W, b, Y = symbols_of("x", N, d_in), symbols_of("w", d_in, d_out), symbols_of("b", 1, d_out), symbols_of("y", N, d_out)
    prediction = X * W + sp.ones(N, 1) * b
    assert same(gradient(squared_error(prediction, Y), b), sp.Rational(2, N) * sp.ones(1, N) * (prediction - Y))


@pytest.mark.receipt("e16", "derived")
def test_e16_output_gradient():
    z, y = sp.symbols("z0:3", real=True), sp.symbols("y0:3", real=True)
    out = sp.symbols("o0:3", real=True)
    loss = sum((o - t) ** 2 for o, t in zip(out, y, strict=True))
    sigmoid = {o: 1 / (1 + sp.exp(-s)) for o, s in zip(out, z, strict=True)}
    linear = dict(zip(out, z, strict=True))
    for i in range(3):
        assert sp.expand(sp.diff(loss.subs(linear), z[i]) - sp.diff(loss, out[i]).subs(linear)) == 0
        factor = sigmoid[out[i]] * (1 - sigmoid[out[i]])  # another output function brings its derivative in
        assert sp.simplify(sp.diff(loss.subs(sigmoid), z[i]) - sp.diff(loss, out[i]).subs(sigmoid) * factor) == 0


@pytest.mark.receipt("n-mlpf", "computed")
def test_n_mlpf(net):
    theirs = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3)).double()
    with torch.no_grad():
        for layer, number in ((theirs[0], 1), (theirs[2], 2)):
            layer.weight.copy_(torch.tensor(net[f"W{number}"]).T)  # torch stores W transposed
            layer.bias.copy_(torch.tensor(net[f"b{number}"]))
        assert close(forward(net)[2], theirs(torch.tensor(net["X"])).numpy())


@pytest.mark.receipt("n-mlpb", "computed")
def test_n_mlpb(net):
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


@pytest.mark.receipt("n-w12", "computed")
def test_n_w12(net):
    x, W1, W2 = net["X"][0], net["W1"], net["W2"]
    G = np.random.default_rng(3).normal(size=3)  # the gradient of any loss in the output y = tanh(x W1) W2
    hidden = np.tanh(x @ W1)
    mine = {"W2": np.outer(hidden, G), "W1": np.outer(x, (G @ W2.T) * (1 - hidden**2))}

    def loss(W1, W2):
        return np.tanh(x @ W1) @ W2 @ G

    for name, value in mine.items():
        for index in np.ndindex(value.shape):  # central differences: error below h^2 and rounding over h
            step = np.zeros_like(value)
            step[index] = 1e-5
            up, down = [loss(**{"W1": W1, "W2": W2, name: net[name] + sign * step}) for sign in (1, -1)]
            assert abs((up - down) / 2e-5 - value[index]) <= 1e-8
