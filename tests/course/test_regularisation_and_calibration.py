"""The reference code of chapter f08 against torch, scikit-learn, scipy and node."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import scipy.optimize
import sklearn.calibration
import torch
import torch.nn.functional as F

from course import widgets
from course.regularisation_and_calibration import (
    bin_of,
    dropout,
    ece,
    ece_bound,
    fit_temperature,
    label_smooth,
    mlp_logits,
    nll,
    noisy_digits,
    reliability,
    top_label,
    train_mlp,
)
from course.widgets.regularisation_and_calibration import BinCount, outcomes


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def forecasts(N=500, seed=0):
    confidence = torch.rand(N, generator=generator(seed), dtype=torch.float64)
    return confidence, (torch.rand(N, generator=generator(seed + 1)) < confidence**2).double()


# ---------------------------------------------------------------- dropout and label smoothing


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5, 0.9])
def test_dropout_is_torchs_in_values_rate_and_dtype(rho, dtype):
    x = torch.linspace(1, 2, 40_000, dtype=dtype).reshape(200, 200)
    mine, theirs = dropout(x, rho, generator=generator()), F.dropout(x, rho)
    assert mine.dtype == dtype and mine.shape == x.shape
    for out in (mine, theirs):
        kept = out != 0
        assert torch.allclose(out, x * kept / (1 - rho), rtol=1e-6, atol=0)
        assert abs(kept.double().mean() - (1 - rho)) <= 6 * math.sqrt(rho * (1 - rho) / 40_000)


def test_dropout_draws_anew_and_follows_a_generator():
    x = torch.ones(1000)
    assert not torch.equal(dropout(x, 0.5), dropout(x, 0.5))
    assert torch.equal(dropout(x, 0.5, generator=generator(3)), dropout(x, 0.5, generator=generator(3)))


def test_dropout_is_nothing_in_evaluation():
    x = torch.randn(5, generator=generator())
    assert torch.equal(dropout(x, 0.5, training=False), x)


@pytest.mark.parametrize(("V", "eps"), [(2, 0.1), (10, 0.3), (7, 0.0), (7, 1.0)])
def test_smoothed_targets_give_torchs_loss(V, eps):
    logits = torch.randn(9, V, generator=generator(), dtype=torch.float64)
    classes = torch.randint(V, (9,), generator=generator(1))
    target = label_smooth(classes, V, eps)
    assert target.shape == (9, V) and torch.allclose(target.sum(dim=1), torch.ones(9, dtype=torch.float64))
    assert abs(F.cross_entropy(logits, target) - F.cross_entropy(logits, classes, label_smoothing=eps)) <= 1e-13


# ---------------------------------------------------------------- calibration


@pytest.mark.parametrize("bins", [1, 2, 10, 15])
def test_reliability_is_scikit_learns(bins):
    confidence, correct = forecasts()
    count, conf, acc = reliability(confidence, correct, bins)
    share, mean = sklearn.calibration.calibration_curve(correct.numpy(), confidence.numpy(), n_bins=bins)
    full = count > 0
    assert count.sum() == 500 and len(count) == bins
    assert np.allclose(acc[full], share, atol=1e-12) and np.allclose(conf[full], mean, atol=1e-12)
    assert abs(ece(confidence, correct, bins) - (count[full] / 500 * (acc - conf)[full].abs()).sum()) <= 1e-12


def test_an_empty_bin_has_no_mean_and_counts_nothing():
    confidence, correct = torch.tensor([0.9, 0.95]), torch.tensor([1.0, 0.0])
    count, conf, acc = reliability(confidence, correct, 5)
    assert count.tolist() == [0, 0, 0, 0, 2] and conf[:4].isnan().all() and acc[:4].isnan().all()
    assert ece(confidence, correct, 5) == pytest.approx(0.425, abs=1e-7)


def test_a_bin_has_its_upper_edge():
    edges = torch.tensor([0.0, 0.1, 0.1 + 1e-12, 0.3, 0.7, 1.0], dtype=torch.float64)
    assert bin_of(edges, 10).tolist() == [0, 0, 1, 2, 6, 9]
    assert bin_of(torch.tensor([1.0]), 1).tolist() == [0]


def test_top_label_is_the_largest_probability():
    logits = torch.randn(50, 6, generator=generator())
    classes = torch.randint(6, (50,), generator=generator(1))
    confidence, correct = top_label(logits, classes)
    assert torch.allclose(confidence, torch.softmax(logits.double(), dim=1).amax(dim=1))
    assert correct.tolist() == (logits.argmax(dim=1) == classes).double().tolist()


def test_the_bound_is_the_sum_of_standard_deviations():
    confidence, _ = forecasts(60)
    by_hand = 0.0
    for m in range(7):
        inside = [c for c in confidence.tolist() if m / 7 < c <= (m + 1) / 7]
        by_hand += math.sqrt(sum(c * (1 - c) for c in inside)) / 60
    assert ece_bound(confidence, 7) == pytest.approx(by_hand, rel=1e-12)


# ---------------------------------------------------------------- temperature


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_the_temperature_is_scipys(scale):
    logits = torch.randn(300, 7, generator=generator(), dtype=torch.float64)
    classes = torch.distributions.Categorical(logits=logits / 0.7).sample()
    logits = scale * logits
    found = scipy.optimize.minimize_scalar(lambda t: nll(logits, classes, math.exp(t)), bracket=(-1, 1), options={"xtol": 1e-9})
    assert fit_temperature(logits, classes) == pytest.approx(math.exp(found.x), rel=1e-5)
    assert nll(logits, classes, 2.0) == pytest.approx(F.cross_entropy(logits / 2, classes).item(), rel=1e-12)


def test_the_temperature_scales_with_the_logits():
    logits = torch.randn(100, 3, generator=generator(4))
    classes = torch.where(torch.arange(100) % 3 == 0, 0, logits.argmax(dim=1))
    assert fit_temperature(5 * logits, classes) == pytest.approx(5 * fit_temperature(logits, classes), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: dropout(torch.ones(2), 1.0), "below 1"),
        (lambda: dropout(torch.ones(2), -0.1), "below 1"),
        (lambda: label_smooth(torch.tensor([0]), 2, 1.5), "between 0 and 1"),
        (lambda: ece(torch.tensor([1.2]), torch.tensor([1.0])), "logits"),
        (lambda: ece(torch.tensor([math.nan]), torch.tensor([1.0])), "logits"),
        (lambda: ece_bound(torch.tensor([])), "some"),
        (lambda: reliability(torch.tensor([0.5]), torch.tensor([1.0]), 0), "at least one bin"),
        (lambda: fit_temperature(torch.eye(3), torch.arange(3)), "not trained on"),
        (lambda: fit_temperature(torch.eye(3), torch.tensor([1, 2, 0])), "chance"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(call, told):
    with pytest.raises(ValueError, match=told):
        call()


# ---------------------------------------------------------------- the classifier


def test_the_digits_are_scikit_learns_in_three_parts():
    parts = noisy_digits(0.0, seed=2)
    assert [len(X) for X, _ in parts] == [300, 500, 997] and all(len(X) == len(classes) for X, classes in parts)
    from sklearn.datasets import load_digits

    pixels, classes = load_digits(return_X_y=True)
    mine = {(tuple(x), int(y)) for X, Y in parts for x, y in zip((16 * X).tolist(), Y, strict=True)}
    assert mine == {(tuple(x), int(y)) for x, y in zip(pixels.tolist(), classes, strict=True)}
    noisy = noisy_digits(0.5, seed=2)
    assert torch.equal(noisy[2][1], parts[2][1]) and abs((noisy[2][0] - parts[2][0]).std() - 0.5) < 0.01


def test_training_is_torchs_descent():
    X = torch.randn(20, 5, generator=generator(), dtype=torch.float64)
    classes = torch.arange(20) % 4
    start, end = train_mlp(X, classes, steps=0), train_mlp(X, classes, steps=3, eps=0.2)
    net = torch.nn.Sequential(torch.nn.Linear(5, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).double()
    with torch.no_grad():
        for own, parameter in zip(start, net.parameters(), strict=True):
            parameter.copy_(own.T if own.dim() == 2 else own)
    assert torch.allclose(mlp_logits(X, start), net(X))
    descent = torch.optim.SGD(net.parameters(), lr=0.5)
    for _ in range(3):
        descent.zero_grad()
        F.cross_entropy(net(X), classes, label_smoothing=0.2).backward()
        descent.step()
    assert torch.allclose(mlp_logits(X, end), net(X), atol=1e-12)


def test_dropout_in_the_network_is_random_and_seeded():
    X = torch.randn(20, 5, generator=generator(), dtype=torch.float64)
    parameters = train_mlp(X, torch.arange(20) % 4, steps=2, rho=0.5, seed=1)
    again = train_mlp(X, torch.arange(20) % 4, steps=2, rho=0.5, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(parameters, again, strict=True))
    assert not torch.equal(mlp_logits(X, parameters, 0.5), mlp_logits(X, parameters, 0.5))
    mean = torch.stack([mlp_logits(X, parameters, 0.5, generator(seed)) for seed in range(4000)]).mean(dim=0)
    assert (mean - mlp_logits(X, parameters)).abs().max() < 0.2  # linear behind the dropout


# ---------------------------------------------------------------- the widget


def test_the_widgets_forecasts_are_spread_evenly_and_come_true_as_said():
    said, happened = outcomes(20_000, 1.0, seed=7)
    assert abs(said.mean() - 0.5) < 0.01 and abs(said.var() - 1 / 12) < 0.002
    assert ece(said, happened, 10) < 2 * ece_bound(said, 10)
    assert ece(*outcomes(20_000, 0.5, seed=7), 10) > 0.08


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    library = (widgets.HERE / "library.js").read_text()
    source = (widgets.HERE / "regularisation_and_calibration.js").read_text().split("export default")[0]
    cases = [(10, 200, 1.0, 1), (1, 50, 0.4, 999), (60, 2000, 2.5, 12), (7, 350, 0.75, 500)]
    states = [dict(zip(("bins", "forecasts", "tau", "seed"), case, strict=True)) for case in cases]
    script = f"{library}{source}\nconst states = {json.dumps(states)};\n"
    script += """console.log(JSON.stringify(states.map((s) => {
        const pairs = outcomes(s.forecasts, s.tau, s.seed);
        return [pairs, tally(pairs, s.bins), errors(pairs, s.bins), said(s)];
    })));"""
    shown = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for state, (pairs, sums, (error, level), text) in zip(states, shown, strict=True):
        confidence, correct = outcomes(state["forecasts"], state["tau"], state["seed"])
        assert np.allclose(pairs, torch.stack([confidence, correct], dim=1), rtol=0, atol=1e-12)
        count, conf, acc = reliability(confidence, correct, state["bins"])
        assert [row[0] for row in sums] == count.tolist()
        assert np.allclose([row[1:3] for row in sums], torch.stack([conf * count, acc * count], dim=1).nan_to_num(), atol=1e-9)
        assert error == pytest.approx(ece(confidence, correct, state["bins"]), abs=1e-12)
        assert level == pytest.approx(math.sqrt(2 / math.pi) * ece_bound(confidence, state["bins"]), abs=1e-12)
        assert text == BinCount(**state).describe()
