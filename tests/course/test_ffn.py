"""The reference code of chapter ch06 against torch, mpmath, plain sums and optimality conditions."""

import json
import math
import shutil
import subprocess

import mpmath
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from course import data, ffn, widgets
from course.model import Config, FeedForward
from course.widgets.ffn import GRID, NAMES, ActivationChooser, at, largest_gap


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64).to(dtype)


# ---------------------------------------------------------------- activation functions


@pytest.mark.parametrize("x", [-30.0, -6.0, -2.5, -0.7518, 0.0, 0.3, 4.0, 30.0])
def test_gelu_is_x_times_a_normal_probability_to_all_digits(x):
    exact = mpmath.mpf(x) * mpmath.ncdf(x)
    assert ffn.gelu(torch.tensor(x, dtype=torch.float64)).item() == pytest.approx(float(exact), rel=1e-12, abs=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("name", "torchs"), [
    ("GELU", F.gelu), ("GELU by tanh", lambda x: F.gelu(x, approximate="tanh")), ("SiLU", F.silu), ("ReLU", F.relu),
    ("GELU by sigmoid", lambda x: F.silu(1.702 * x) / 1.702),
])  # fmt: skip
def test_activations_are_torchs(name, torchs, dtype):
    x = 3 * normal(5, 40, dtype=dtype)
    ours = ffn.ACTIVATIONS[name](x)
    assert ours.dtype == dtype
    assert torch.allclose(ours, torchs(x), rtol=0, atol=20 * torch.finfo(dtype).eps)


# ---------------------------------------------------------------- the network


def test_ffn_is_torchs_sequence_of_layers():
    first, second = torch.nn.Linear(5, 20).double(), torch.nn.Linear(20, 5).double()
    x = normal(3, 7, 5)
    expected = torch.nn.Sequential(first, torch.nn.GELU(), second)(x)
    assert torch.allclose(ffn.ffn(x, first.weight.T, first.bias, second.weight.T, second.bias), expected, rtol=0, atol=1e-14)


def test_swiglu_is_the_models():
    network = FeedForward(Config(9, d_model=8, n_heads=2)).double()
    x = normal(2, 5, 8)
    ours = ffn.swiglu(x, network.gate.weight.T, network.up.weight.T, network.down.weight.T)
    assert torch.allclose(ours, network(x), rtol=0, atol=1e-14)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["gelu", "swiglu"])
def test_parameters_are_those_of_the_models_network(kind, bias):
    network = FeedForward(Config(9, d_model=12, n_heads=2, d_ff=40, ffn=kind, bias=bias))
    assert ffn.ffn_params(12, 40, kind == "swiglu", bias) == sum(p.numel() for p in network.parameters())


def test_a_network_without_width_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        ffn.ffn_params(0, 4)


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("sigma", [torch.relu, ffn.gelu], ids=["relu", "gelu"])
def test_planted_facts_are_answered(sigma):
    x, answers = normal(20, 16), normal(20, 3, seed=1)
    W1, W2 = ffn.plant(x, answers, 64, generator(2), sigma)
    assert torch.allclose(sigma(x @ W1) @ W2, answers, rtol=0, atol=1e-10)
    assert W1.std().item() == pytest.approx(0.25, rel=0.1)
    with pytest.raises(ValueError, match="20 facts"):
        ffn.plant(x, answers, 19, generator())


@pytest.mark.parametrize("M", [0, 1, 20])
def test_an_edit_meets_its_conditions_and_is_the_smallest(M):
    W2, h, target, others = normal(30, 4), normal(30, seed=1), normal(4, seed=2), normal(M, 30, seed=3)
    edited = ffn.edit_rank1(W2, h, target, others)
    change = edited - W2
    assert torch.allclose(h @ edited, target, rtol=0, atol=1e-11)
    assert torch.allclose(others @ edited, others @ W2, rtol=0, atol=1e-11)
    assert torch.linalg.matrix_rank(change) == 1
    rows = np.concatenate([h[None].numpy(), others.numpy()])  # smallest: every column of the change is a combination of them
    left = change.numpy() - rows.T @ np.linalg.lstsq(rows.T, change.numpy(), rcond=None)[0]
    assert np.abs(left).max() < 1e-10
    assert torch.equal(ffn.edit_rank1(W2, h, target), ffn.edit_rank1(W2, h, target, others[:0]))


@pytest.mark.parametrize("h", [torch.zeros(5), torch.tensor([1.0, 2, 0, 0, 0])], ids=["zero", "combination"])
def test_an_impossible_edit_is_refused(h):
    others = torch.eye(5, dtype=torch.float64)[:2]
    with pytest.raises(ValueError, match="combination of the others"):
        ffn.edit_rank1(normal(5, 2), h.double(), normal(2), others)


def test_moved_is_the_ratio_of_two_lengths():
    W2, h, rows = normal(6, 3), normal(6, seed=1), normal(4, 6, seed=2)
    edited = ffn.edit_rank1(W2, h, normal(3, seed=3))
    lengths = (rows @ edited - rows @ W2).norm(dim=1) / (h @ edited - h @ W2).norm()
    assert torch.allclose(ffn.moved(W2, edited, h, rows), lengths, rtol=1e-10)


@pytest.mark.parametrize("cosine", [0.0, 0.3, 0.9])
def test_related_questions_have_the_cosine_that_was_asked_for(cosine):
    x = ffn.related(60, 2000, cosine, generator(4))
    assert torch.allclose(x.norm(dim=1), torch.full((60,), math.sqrt(2000), dtype=torch.float64))
    cosines = (x @ x.T / 2000)[~torch.eye(60, dtype=torch.bool)]
    assert cosines.mean().item() == pytest.approx(cosine, abs=0.03)


@pytest.mark.parametrize("cosine", [-1.0, -0.5, 0.0, 0.6, 1.0])
def test_relu_cosine_is_the_integral_over_all_keys(cosine):
    # A key in the plane of the two inputs, at angle t: E over its length drops out of the ratio.
    angle = math.acos(cosine)
    t = (torch.arange(200_000, dtype=torch.float64) + 0.5) * (2 * math.pi / 200_000)
    both = (torch.relu(t.cos()) * torch.relu((t - angle).cos())).sum()
    assert ffn.relu_cosine(cosine) == pytest.approx((both / torch.relu(t.cos()).square().sum()).item(), abs=1e-7)


# ---------------------------------------------------------------- the record


def test_the_record_compares_equal_networks():
    record = data.record("ffn")
    assert record["mode"] == "full" and len(record["seeds"]) >= 6
    assert {row["parameters"] for row in record["results"]} == {8 * record["settings"]["d_model"] ** 2}
    gelu = next(row for row in record["results"] if row["kind"] == "GELU")
    for row in record["results"]:
        assert len(row["losses"]) == len(record["seeds"])
        assert row["mean"] == pytest.approx(np.mean(row["losses"]), abs=1e-4)
        assert row["minus GELU"] == pytest.approx(np.mean(np.subtract(row["losses"], gelu["losses"])), abs=1e-4)


# ---------------------------------------------------------------- the widget


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    library = (widgets.HERE / "library.js").read_text()
    source = (widgets.HERE / "ffn.js").read_text().split("export default")[0]
    states = [{"name": name, "other": other, "x": x} for name in NAMES for other in NAMES for x in (-4.0, -0.75, 0.0, 1.41, 4.0)]
    script = f"{library}{source}\nconst states = {json.dumps(states)};\n"
    script += """console.log(JSON.stringify([Object.keys(ACTIVATIONS), GRID, states.map((s) =>
        [ACTIVATIONS[s.name](s.x), largest(s.name, s.other), said(s)])]));"""
    names, grid, shown = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    assert names == NAMES
    assert grid == GRID.tolist()
    for state, (both, gap, text) in zip(states, shown, strict=True):
        assert both == pytest.approx(at(state["name"], state["x"]), abs=1e-13)
        assert gap == pytest.approx(largest_gap(state["name"], state["other"]), abs=1e-13)
        assert text == ActivationChooser(**state).describe()
