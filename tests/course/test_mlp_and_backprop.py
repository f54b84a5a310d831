"""The reference code of chapter f04 against torch."""

import json
import math
import shutil
import subprocess
from itertools import pairwise

import pytest
import torch

from course.mlp_and_backprop import Scalar, in_order, mlp_backward, mlp_forward, parameter_count, two_spirals
from course.widgets import HERE
from course.widgets.mlp_and_backprop import BackpropSteps, walk


def a_net(N=4, d_in=3, d_hidden=5, d_out=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(N, d_in), (N, d_out), (d_in, d_hidden), (d_hidden,), (d_hidden, d_out), (d_out,)]
    return [torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in shapes]


@pytest.mark.parametrize("sizes", [(4, 3, 5, 2), (1, 1, 1, 1), (6, 2, 2, 2), (3, 4, 1, 3)])
def test_backward_is_torch_s(sizes):
    X, Y, *parameters = a_net(*sizes)
    leaves = [p.clone().requires_grad_(True) for p in parameters]
    hidden = torch.tanh(X @ leaves[0] + leaves[1])
    ((hidden @ leaves[2] + leaves[3] - Y) ** 2).sum(dim=-1).mean().backward()
    Z1, A1, Z2 = mlp_forward(X, *parameters)
    assert torch.allclose(A1, hidden) and torch.allclose(torch.tanh(Z1), A1) and Z2.shape == Y.shape
    for mine, leaf in zip(mlp_backward(X, Y, *parameters), leaves, strict=True):
        assert mine.shape == leaf.shape
        assert torch.allclose(mine, leaf.grad, rtol=1e-12, atol=1e-12)


def expression(a, b, c, tanh):
    shared = tanh(a * b + c)
    return (shared - 2.0) * shared + 3.0 * a - (1.0 - b) * shared * shared + shared


def test_scalar_is_torch_s():
    values = (0.7, -1.3, 0.4)
    mine = [Scalar(v) for v in values]
    loss = expression(*mine, tanh=Scalar.tanh)
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    theirs = expression(*leaves, tanh=torch.tanh)
    theirs.backward()
    for _ in range(2):  # again gives the same
        loss.backward()
        assert loss.value == pytest.approx(theirs.item(), rel=1e-14)
        assert [m.grad for m in mine] == pytest.approx([leaf.grad.item() for leaf in leaves], rel=1e-12)


def test_each_number_comes_after_its_parents_and_once():
    a = Scalar(1.0)
    b = a * a
    c = b + a * b
    order = in_order(c)
    assert order[-1] is c and len({id(node) for node in order}) == len(order)
    place = {id(node): i for i, node in enumerate(order)}
    assert all(place[id(parent)] < place[id(node)] for node in order for parent, _ in node.parents)


@pytest.mark.parametrize("widths", [(2, 3, 1), (784, 128, 128, 10), (5, 1)])
def test_parameters_are_counted_as_torch_counts_them(widths):
    layers = [torch.nn.Linear(a, b) for a, b in pairwise(widths)]
    assert parameter_count(*widths) == sum(p.numel() for layer in layers for p in layer.parameters())


@pytest.mark.parametrize("widths", [(3,), (3, 0, 1), ()])
def test_widths_that_make_no_network(widths):
    with pytest.raises(ValueError, match="two positive widths"):
        parameter_count(*widths)


def test_two_spirals():
    X, Y = two_spirals(2000, turns=1.0, noise=0.0, seed=3)
    assert X.shape == (4000, 2) and Y.shape == (4000, 1) and Y.sum() == 0
    assert torch.equal(X[:2000], -X[2000:])  # one is the other, turned by half a turn
    radius = X[:2000].norm(dim=1)
    angle = torch.remainder(torch.atan2(X[:2000, 1], X[:2000, 0]), 2 * math.pi)
    assert (torch.remainder(angle - 2 * math.pi * radius + math.pi, 2 * math.pi) - math.pi).abs().max() < 1e-4
    assert torch.equal(two_spirals(9, seed=3)[0], two_spirals(9, seed=3)[0])
    with pytest.raises(ValueError, match="positive"):
        two_spirals(0)


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    library, source = (HERE / "library.js").read_text(), (HERE / "mlp_and_backprop.js").read_text().split("export default")[0]
    cases = [(2.0, 0.5, -1.0, 1.0), (-3.0, 3.0, 2.5, 0.0), (0.0, 1.0, 1.0, -2.0)]
    states = [dict(zip(("x", "w1", "w2", "y"), case, strict=True), step=step) for case in cases for step in range(6)]
    script = f"{library}{source}\nconst states = {json.dumps(states)};\n"
    script += "console.log(JSON.stringify(states.map((s) => [walk(s.x, s.w1, s.w2, s.y), said(s)])));"
    shown = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for state, (nodes, text) in zip(states, shown, strict=True):
        w1, w2 = Scalar(state["w1"]), Scalar(state["w2"])
        error = w2 * (w1 * state["x"]).tanh() - state["y"]
        (error * error).backward()
        assert nodes["w1"] == pytest.approx([w1.value, w1.grad], abs=1e-12)
        assert nodes["w2"] == pytest.approx([w2.value, w2.grad], abs=1e-12)
        theirs = walk(*(state[name] for name in ("x", "w1", "w2", "y")))
        assert all(nodes[name] == pytest.approx(theirs[name], abs=1e-12) for name in theirs)
        assert text == BackpropSteps(**state).describe()
