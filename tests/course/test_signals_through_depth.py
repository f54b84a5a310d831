"""The reference code of chapter f05 against torch, numpy and node."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import torch

from course import widgets
from course.signals_through_depth import (
    euler_resnet,
    he_std,
    largest_float,
    loss_scale,
    residual_growth,
    spread_through_depth,
    var_through_depth,
    xavier_std,
)
from course.widgets.signals_through_depth import DepthAndGain


@pytest.mark.parametrize("shape", [(1, 1), (64, 64), (10, 1000), (1000, 10)])
def test_initial_stds_are_torchs(shape):
    n_in, n_out = shape
    W = torch.empty(n_out, n_in)  # torch stores (out, in)
    assert math.isclose(xavier_std(*shape), math.sqrt(2 / sum(shape)), rel_tol=1e-15)
    torch.nn.init.kaiming_normal_(W, nonlinearity="relu", generator=torch.Generator().manual_seed(1))
    if W.numel() > 1000:
        assert abs(float(W.square().mean().sqrt()) / he_std(n_in) - 1) <= 0.05


def test_var_through_depth_scales_with_the_weights():
    widths = [32, 48, 16, 64]
    one = var_through_depth(widths, lambda n, m: he_std(n), seed=3)
    two = var_through_depth(widths, lambda n, m: 2 * he_std(n), seed=3)
    assert one.shape == (3,) and one.dtype == torch.float64
    assert torch.allclose(two / one, torch.tensor([4.0, 16.0, 64.0], dtype=torch.float64), rtol=1e-12)


def test_var_through_depth_has_the_expected_mean():
    """Over 400 networks; a network's square has a relative spread of about the root of 5 L / n."""
    for relu, std in [(True, lambda n, m: he_std(n)), (False, lambda n, m: n**-0.5)]:
        squares = torch.stack([var_through_depth([64] * 4, std, seed, relu) for seed in range(400)])
        first = 2.0 if relu else 1.0
        assert ((squares.mean(dim=0) / first - 1).abs() <= 5 * math.sqrt(5 * 3 / 64 / 400)).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [1.0, 2.0**10])
def test_loss_scale_is_a_pass_through_the_format(dtype, scale):
    g = 10.0 ** torch.linspace(-9, 3, 50)
    assert torch.equal(loss_scale(g, scale, dtype), (g * scale).to(dtype).float() / scale)
    kept = loss_scale(g, scale, dtype)
    inside = (g * scale > torch.finfo(dtype).smallest_normal) & (g * scale < torch.finfo(dtype).max)
    assert ((kept / g - 1)[inside].abs() <= torch.finfo(dtype).eps).all()


def test_residual_growth_is_what_random_blocks_do():
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(500, 128, generator=generator, dtype=torch.float64)
    for _ in range(20):
        h = h + 0.2 * h @ torch.randn(128, 128, generator=generator, dtype=torch.float64) / math.sqrt(128)
    assert abs(float(h.square().mean()) / residual_growth(20, 0.2, normed=False) - 1) <= 0.1


def test_euler_resnet_halves_its_error():
    start = torch.ones(3, dtype=torch.float64)
    errors = [float((euler_resnet(torch.neg, start, L) - math.exp(-1)).abs().max()) for L in (100, 200)]
    assert abs(errors[0] / errors[1] - 2) <= 0.02
    assert torch.equal(start, torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: xavier_std(0, 3), "positive"),
        (lambda: he_std(0), "positive"),
        (lambda: var_through_depth([4], xavier_std), "two widths"),
        (lambda: largest_float(10, 12), "2 to 11"),
        (lambda: largest_float(-1, 5), "mantissa"),
        (lambda: loss_scale(torch.ones(2), 0.0), "positive"),
        (lambda: euler_resnet(torch.neg, torch.ones(2), 0), "at least one"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "signals_through_depth.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    cases = [(1, 1.0, 32), (50, 1.05, 128), (100, 0.7, 1024), (100, 1.4, 64), (7, 0.93, 512)]
    script = f"{library}{source}\nconst cases = {json.dumps(cases)};\n"
    script += "console.log(JSON.stringify(cases.map((c) => [spread(...c), said(...c)])));"
    told = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for (depth, gain, width), (found, text) in zip(cases, told, strict=True):
        assert np.allclose(found, spread_through_depth(depth, gain, width), rtol=0, atol=1e-12)
        assert text == DepthAndGain(depth=depth, gain=gain, width=width).describe()
