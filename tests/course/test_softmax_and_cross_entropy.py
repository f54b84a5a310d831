"""The reference code of chapter f03 against torch, mpmath and node."""

import json
import math
import shutil
import subprocess
from pathlib import Path

import mpmath
import pytest
import torch
import torch.nn.functional as F

from course.softmax_and_cross_entropy import brier, cross_entropy, entropy, log_softmax, logsumexp, softmax, softmax_jacobian
from course.widgets.softmax_and_cross_entropy import TemperatureBars

EPS = {torch.float32: 2**-23, torch.float64: 2**-52}
SHAPES = [(1,), (3,), (4, 7), (2, 3, 5), (1000,)]


def logits(*shape, scale=1.0, dtype=torch.float64, seed=0):
    return (scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).to(dtype)


def bound(x):
    """An error of a few roundings of the largest score, of the V terms of a sum, and of the exponential."""
    return EPS[x.dtype] * (4 * x.abs().max().item() + x.shape[-1] + 8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_softmax_and_its_logarithm_are_torchs(shape, scale, dtype):
    x = logits(*shape, scale=scale, dtype=dtype)
    assert softmax(x).dtype == log_softmax(x).dtype == logsumexp(x).dtype == dtype
    assert (softmax(x) - torch.softmax(x, -1)).abs().max() <= bound(x)
    assert (log_softmax(x) - torch.log_softmax(x, -1)).abs().max() <= 2 * bound(x)
    assert (logsumexp(x) - torch.logsumexp(x, -1)).abs().max() <= bound(x)


def test_logsumexp_of_infinite_scores_is_torchs():
    inf = math.inf
    x = torch.tensor([[-inf, -inf], [-inf, 3.0], [inf, 0.0], [1000.0, 999.0]])
    assert torch.equal(logsumexp(x), torch.logsumexp(x, -1))


def test_masked_scores_get_no_probability():
    assert torch.allclose(softmax(torch.tensor([0.0, -math.inf, 0.0])), torch.tensor([0.5, 0.0, 0.5]))


@pytest.mark.parametrize("tau", [0.01, 0.5, 2.0, 100.0])
def test_temperature_divides_the_scores(tau):
    x = logits(4, 7, scale=3.0)
    assert (softmax(x, tau) - torch.softmax(x / tau, -1)).abs().max() <= bound(x / tau)


@pytest.mark.parametrize("shape", [(3,), (4, 7), (2, 3, 5)])
def test_cross_entropy_is_torchs(shape):
    x = logits(*shape, scale=5.0)
    classes = torch.randint(shape[-1], shape[:-1], generator=torch.Generator().manual_seed(1))
    soft = torch.softmax(logits(*shape, seed=2), -1)
    flat = x.reshape(-1, shape[-1])
    assert abs(cross_entropy(x, classes) - F.cross_entropy(flat, classes.reshape(-1))) <= bound(x)
    assert abs(cross_entropy(x, soft) - F.cross_entropy(flat, soft.reshape(flat.shape))) <= bound(x)


def test_cross_entropy_stays_finite_where_the_probability_is_rounded_to_zero():
    assert cross_entropy(torch.tensor([0.0, -5000.0]), torch.tensor(1)).item() == 5000.0


@pytest.mark.parametrize("shape", [(3,), (4, 6)])
def test_jacobian_is_autograds(shape):
    x = logits(*shape)
    mine = softmax_jacobian(softmax(x)).reshape(-1, shape[-1], shape[-1])
    for row, J in zip(x.reshape(-1, shape[-1]), mine, strict=True):
        assert (torch.autograd.functional.jacobian(lambda z: torch.softmax(z, -1), row) - J).abs().max() <= 16 * EPS[x.dtype]


def test_entropy_is_torchs_categorical_and_zero_for_a_certainty():
    p = torch.softmax(logits(5, 9, scale=3.0), -1)
    assert (entropy(p) - torch.distributions.Categorical(probs=p).entropy()).abs().max() <= 100 * EPS[p.dtype]
    assert entropy(torch.tensor([0.0, 1.0, 0.0])) == 0
    assert math.isclose(entropy(torch.full((50,), 0.02, dtype=torch.float64)), math.log(50), rel_tol=1e-14)


def test_brier_is_the_mean_squared_distance():
    p = torch.softmax(logits(4, 3), -1)
    classes = torch.tensor([0, 2, 1, 2])
    assert math.isclose(brier(p, classes), 3 * F.mse_loss(p, F.one_hot(classes, 3).double()), rel_tol=1e-14)
    assert brier(torch.tensor([1.0, 0.0]), torch.tensor(1)) == 2


@pytest.mark.parametrize(
    "call, error, told",
    [
        (lambda: softmax(torch.tensor([1, 2])), TypeError, "float"),
        (lambda: logsumexp(torch.tensor([1, 2])), TypeError, "float"),
        (lambda: softmax(torch.zeros(2), 0.0), ValueError, "positive"),
        (lambda: softmax(torch.zeros(2), math.nan), ValueError, "positive"),
        (lambda: cross_entropy(torch.zeros(4, 3), torch.zeros(3, dtype=torch.long)), ValueError, "one class for each row"),
        (lambda: cross_entropy(torch.zeros(2, 3), torch.tensor([0, 3])), ValueError, "between 0 and 2"),
        (lambda: cross_entropy(torch.zeros(2, 3), torch.tensor([0, -1])), ValueError, "between 0 and 2"),
        (lambda: cross_entropy(torch.zeros(2, 3), torch.zeros(3)), ValueError, "shape of the logits"),
        (lambda: entropy(torch.tensor([2.0, 1.0])), ValueError, "logits"),
        (lambda: entropy(torch.tensor([1.5, -0.5])), ValueError, "non-negative"),
        (lambda: brier(torch.ones(2, 2) / 2, torch.tensor([0, 2])), ValueError, "between 0 and 1"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(call, error, told):
    with pytest.raises(error, match=told):
        call()


def test_nothing_changes_its_arguments():
    x, y = logits(2, 3), torch.tensor([0, 1])
    before = x.clone(), y.clone()
    (
        softmax(x),
        log_softmax(x),
        logsumexp(x),
        cross_entropy(x, y),
        softmax_jacobian(softmax(x)),
        entropy(softmax(x)),
        brier(softmax(x), y),
    )
    assert torch.equal(x, before[0]) and torch.equal(y, before[1])


def test_softmax_against_fifty_digits():
    mpmath.mp.dps = 50
    x = logits(40, scale=20.0)
    powers = [mpmath.exp(mpmath.mpf(v)) for v in x.tolist()]
    for mine, power in zip(softmax(x).tolist(), powers, strict=True):
        assert abs(mine - power / mpmath.fsum(powers)) <= bound(x)


def test_what_all_scores_have_in_common_costs_no_digits():
    x = torch.tensor([10_000.0, 9_999.0, 9_990.0])
    exact = torch.softmax(x.double(), -1)
    assert ((softmax(x) - exact).abs() <= 32 * EPS[x.dtype] * exact).all()
    assert ((log_softmax(x) - exact.log()).abs() <= 32 * EPS[x.dtype]).all()
    assert abs(float((x - logsumexp(x)).exp().sum()) - 1) > 1e-4  # the form without a division does lose them


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (
        (Path(__file__).parents[2] / "course" / "widgets" / "softmax_and_cross_entropy.js").read_text().split("export default")[0]
    )
    library = (Path(__file__).parents[2] / "course" / "widgets" / "library.js").read_text()
    cases = [([2.0, 1.0, 0.0], 1.0), ([-8.0, 8.0, 0.5], 0.1), ([1.0, 1.0, 1.0], 3.0), ([3.2, -1.1, 3.2], 0.35)]
    script = f"{library}{source}\nconst cases = {json.dumps(cases)};\n"
    script += "console.log(JSON.stringify(cases.map(([s, t]) => [softmaxAt(s, t), entropyOf(softmaxAt(s, t)), slopeAt(s, t), said(s, t)])));"
    said = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for (scores, tau), (probs, h, slope, text) in zip(cases, said, strict=True):
        z = torch.tensor(scores, dtype=torch.float64)
        p = softmax(z, tau)
        variance = (p * (z - (p * z).sum()) ** 2).sum()
        assert torch.allclose(torch.tensor(probs, dtype=torch.float64), p, rtol=0, atol=1e-12)
        assert math.isclose(h, entropy(p), abs_tol=1e-12) and math.isclose(slope, variance / tau**3, abs_tol=1e-9)
        assert text == TemperatureBars(scores=scores, tau=tau).describe()
