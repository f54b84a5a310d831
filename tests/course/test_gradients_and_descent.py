"""The reference code of chapter f02 against autograd, closed forms and torch's own optimiser."""

import json
import math
import shutil
import subprocess

import pytest
import torch

from course.gradients_and_descent import gd, gd_1d, grad_axb, grad_check, num_grad
from course.widgets import HERE
from course.widgets.gradients_and_descent import DescentSteps


def smooth(x):
    return (x.sin() * x.pow(2)).sum() + x.prod()


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (2, 1, 3)])
def test_num_grad_is_autograd_s(shape):
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    before = x.clone()
    leaf = x.clone().requires_grad_(True)
    smooth(leaf).backward()
    assert torch.allclose(num_grad(smooth, x), leaf.grad, rtol=0, atol=1e-8)
    assert torch.equal(x, before)


def test_num_grad_is_of_second_order():
    x = torch.tensor([0.7], dtype=torch.float64)
    errors = [abs(float(num_grad(lambda x: x.exp().sum(), x, step)) - math.exp(0.7)) for step in (1e-2, 5e-3)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=1e-3)  # half the step, a quarter of the error


def test_num_grad_refuses_few_digits_and_no_step():
    with pytest.raises(ValueError, match="float64"):
        num_grad(smooth, torch.ones(2))
    with pytest.raises(ValueError, match="positive"):
        num_grad(smooth, torch.ones(2, dtype=torch.float64), step=0.0)


def test_gd_1d_on_the_parabola():
    path = gd_1d(lambda x: 2 * x, 3.0, 0.1, 10)
    assert [round(x, 4) for x in path[:4]] == [3.0, 2.4, 1.92, 1.536]
    assert round(path[10], 4) == 0.3221
    assert path == pytest.approx([3 * 0.8**k for k in range(11)], rel=1e-14)


@pytest.mark.parametrize(("rate", "bounded"), [(0.01, True), (0.99, True), (1.01, False), (-0.01, False)])
def test_gd_1d_converges_between_0_and_1(rate, bounded):
    assert (abs(gd_1d(lambda x: 2 * x, 3.0, rate, 2000)[-1]) < 3) == bounded


def test_gd_is_torch_s_sgd():
    generator = torch.Generator().manual_seed(1)
    A = torch.randn(3, 3, dtype=torch.float64, generator=generator)
    start = torch.randn(2, 3, dtype=torch.float64, generator=generator)
    before = start.clone()
    path = gd(lambda w: 2 * (w @ A) @ A.T, start, 0.02, 30)  # of the squared norm of w A
    w = start.clone().requires_grad_(True)
    optimiser = torch.optim.SGD([w], lr=0.02)
    for step in range(31):
        assert torch.allclose(path[step], w.detach(), rtol=1e-12, atol=1e-12)
        optimiser.zero_grad()
        (w @ A).pow(2).sum().backward()
        optimiser.step()
    assert path.shape == (31, 2, 3)
    assert torch.equal(start, before)


@pytest.mark.parametrize("walk", [gd, gd_1d])
def test_steps_are_counted_from_zero(walk):
    start = torch.ones(2)
    assert len(walk(lambda w: w, start, 0.1, 0)) == 1
    with pytest.raises(ValueError, match="zero or more"):
        walk(lambda w: w, start, 0.1, -1)


@pytest.mark.parametrize(("m", "r", "s", "n"), [(1, 1, 1, 1), (4, 2, 3, 5), (2, 5, 1, 3)])
def test_grad_axb_is_autograd_s(m, r, s, n):
    generator = torch.Generator().manual_seed(2)
    A, X, B, C = (torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in [(m, r), (r, s), (s, n), (m, n)])
    X.requires_grad_(True)
    Y = A @ X @ B
    (Y.sin() * C).sum().backward()
    assert torch.allclose(grad_axb(A, Y.detach().cos() * C, B), X.grad, rtol=1e-12, atol=1e-12)


def test_grad_axb_wants_fitting_shapes():
    with pytest.raises(ValueError, match=r"\(2, 4\)"):
        grad_axb(torch.ones(2, 3), torch.ones(4, 2), torch.ones(3, 4))


def test_grad_check_tells_right_from_wrong():
    x = torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.1, -1.0]], dtype=torch.float64)

    def f(x):
        return x.pow(3).sum()

    assert grad_check(f, lambda x: 3 * x**2, x) < 1e-7
    assert grad_check(f, lambda x: x**2, x) == pytest.approx(2 / 3, rel=1e-6)
    assert grad_check(lambda x: x.sum() * 0, torch.zeros_like, x) == 0.0
    with pytest.raises(ValueError, match="shape of its x"):
        grad_check(f, lambda x: 3 * (x**2).T, x)


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    library, source = (
        (HERE / "library.js").read_text(),
        (HERE / "gradients_and_descent.js").read_text().split("export default")[0],
    )
    cases = [(3.0, 0.1), (-2.5, 0.5), (4.0, 0.9), (3.0, 1.0), (1.5, 1.1), (0.0, 0.3)]
    script = f"{library}{source}\nconst cases = {json.dumps(cases)};\n"
    script += "console.log(JSON.stringify(cases.map(([x, rate]) => [walk(x, rate), said(x, rate)])));"
    shown = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for (start, rate), (path, text) in zip(cases, shown, strict=True):
        assert path == pytest.approx(gd_1d(lambda x: 2 * x, start, rate, 10), abs=1e-12)
        assert text == DescentSteps(start=start, rate=rate).describe()
