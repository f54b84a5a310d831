"""Evidence for the formulas of f08_regularisation_and_calibration."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import sympy as sp
import torch

from course import data
from course.regularisation_and_calibration import dropout, ece, ece_bound, fit_temperature, label_smooth

NORMAL_SIZE = np.sqrt(2 / np.pi)  # the mean size of a normal number of variance one


def masks(width: int, rate: float):
    """Every dropout mask of a width, already scaled by 1 / (1 - rate), with its probability."""
    for kept in product((0, 1), repeat=width):
        chance = np.prod([1 - rate if k else rate for k in kept])
        yield np.array(kept) / (1 - rate), chance


def softmax(z):
    powers = np.exp(z - z.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def fitted_line(x, y, penalty):
    """Intercept and slope of the line with the least squared error plus penalty · slope², in fractions; the x sum to 0."""
    slope = sum(a * b for a, b in zip(x, y, strict=True)) / (sum(a * a for a in x) + penalty)
    return sum(y) / Fraction(len(y)), slope


@pytest.mark.receipt("f08-bias-variance", "computed")
def test_bias_and_variance():
    x, truth = [Fraction(k) for k in (-2, -1, 0, 1, 2)], lambda v: v**3 / 4 + 1  # no line fits it
    errors = [Fraction(-1), Fraction(0), Fraction(2)]
    chances = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]  # the errors' mean is 0
    noise = sum(c * e**2 for c, e in zip(chances, errors, strict=True))
    found = []
    for penalty in (0, 5, 50):
        for new in (Fraction(3, 2), Fraction(-2)):
            whole = mean = square = Fraction(0)
            for drawn in product(range(3), repeat=5):  # all 243 training sets, with their chances
                chance = np.prod([chances[k] for k in drawn])
                intercept, slope = fitted_line(x, [truth(v) + errors[k] for v, k in zip(x, drawn, strict=True)], penalty)
                said = intercept + slope * new
                mean, square = mean + chance * said, square + chance * said**2
                whole += chance * sum(c * (truth(new) + e - said) ** 2 for c, e in zip(chances, errors, strict=True))
            bias, variance = (truth(new) - mean) ** 2, square - mean**2
            assert whole == bias + variance + noise
            found.append((penalty, new, bias, variance))
    at_edge = [(bias, variance) for penalty, new, bias, variance in found if new == -2]
    assert at_edge[0][0] < at_edge[1][0] < at_edge[2][0] and at_edge[0][1] > at_edge[1][1] > at_edge[2][1]
    assert abs(float(noise) - 1.5) <= 1e-15


@pytest.mark.receipt("f08-dropout", "derived")
def test_dropout():
    rho = sp.Symbol("rho", positive=True)
    factors = {1 / (1 - rho): 1 - rho, sp.Integer(0): rho}
    mean = sum(factor * chance for factor, chance in factors.items())
    square = sum(factor**2 * chance for factor, chance in factors.items())
    assert sp.simplify(mean - 1) == 0
    assert sp.simplify(square - 1 / (1 - rho)) == 0
    assert sp.simplify(square - mean**2 - rho / (1 - rho)) == 0
    x = torch.linspace(-2, 3, 20_000, dtype=torch.float64)
    drawn = dropout(x, 0.3, generator=torch.Generator().manual_seed(0))
    kept = drawn != 0
    assert torch.allclose(drawn[kept], x[kept] / 0.7) and abs(kept.double().mean() - 0.7) <= 5 * np.sqrt(0.21 / 20_000)


@pytest.mark.receipt("f08-dropout-variance", "computed")
def test_dropout_variance():
    generator = np.random.default_rng(3)
    x, w = generator.normal(size=8), generator.normal(size=8)
    for rate in (0.1, 0.5, 0.8):
        sums = [((mask * x) @ w, chance) for mask, chance in masks(8, rate)]
        mean = sum(s * chance for s, chance in sums)
        variance = sum((s - mean) ** 2 * chance for s, chance in sums)
        assert abs(mean - x @ w) <= 1e-12 and abs(variance - rate / (1 - rate) * (x**2 @ w**2)) <= 1e-12 * variance


@pytest.mark.receipt("f08-attention-dropout", "computed")
def test_attention_dropout():
    generator = np.random.default_rng(0)
    weights, V = softmax(generator.normal(size=6)), generator.normal(size=(6, 3))
    for rate in (0.1, 0.5):
        expected = sum(chance * (mask * weights @ V) for mask, chance in masks(6, rate))  # over all 64 masks
        assert np.abs(expected - weights @ V).max() <= 1e-14
        sums = [(mask * weights).sum() for mask, _ in masks(6, rate)]
        assert max(sums) >= 1.1 and min(sums) == 0  # one draw is no longer a distribution over keys
    drawn = torch.nn.functional.dropout(torch.tensor(weights).expand(40_000, 6), 0.5)
    assert set(torch.unique(drawn != 0).tolist()) == {True, False}
    assert torch.allclose(
        drawn[drawn != 0], (2 * torch.tensor(weights)).expand(40_000, 6)[drawn != 0], atol=1e-15
    )  # torch scales alike


@pytest.mark.receipt("f08-ffn-dropout", "computed")
def test_ffn_dropout():
    generator = np.random.default_rng(1)
    x, W1, b1, W2, b2 = (generator.normal(size=shape) for shape in ((4,), (4, 8), (8,), (8, 4), (4,)))
    hidden = torch.nn.functional.gelu(torch.tensor(x @ W1 + b1)).numpy()
    for rate in (0.1, 0.5):
        expected = sum(chance * ((mask * hidden) @ W2 + b2) for mask, chance in masks(8, rate))  # over all 256 masks
        assert np.abs(expected - (hidden @ W2 + b2)).max() <= 1e-13


@pytest.mark.receipt("f08-smoothing", "computed")
def test_label_smoothing():
    generator = torch.Generator().manual_seed(0)
    for n, epsilon in ((2, 0.1), (10, 0.1), (50, 0.3)):
        logits = torch.randn(8, n, generator=generator, dtype=torch.float64)
        target = torch.randint(n, (8,), generator=generator)
        smooth = label_smooth(target, n, epsilon)
        assert (smooth.sum(-1) - 1).abs().max() <= 1e-15 * n
        assert (smooth.gather(1, target[:, None]) - (1 - epsilon + epsilon / n)).abs().max() <= 1e-15
        mine = -(smooth * logits.log_softmax(-1)).sum(-1).mean()
        theirs = torch.nn.functional.cross_entropy(logits, target, label_smoothing=epsilon)
        assert abs(mine - theirs) <= 1e-13
        best = smooth.log()  # the loss is least where the softmax is the smoothed target: there its gradient is zero
        best.requires_grad_()
        torch.nn.functional.cross_entropy(best, target, label_smoothing=epsilon).backward()
        assert best.grad.abs().max() <= 1e-15


@pytest.mark.receipt("f08-smooth-split", "computed")
def test_smooth_split():
    generator = torch.Generator().manual_seed(4)
    for n, epsilon in ((2, 0.1), (10, 0.1), (50, 0.3)):
        logits = torch.randn(8, n, generator=generator, dtype=torch.float64)
        target = torch.randint(n, (8,), generator=generator)
        loss = torch.nn.functional.cross_entropy
        whole = loss(logits, label_smooth(target, n, epsilon))
        parts = (1 - epsilon) * loss(logits, target) + epsilon * loss(logits, torch.full((8, n), 1 / n, dtype=torch.float64))
        assert abs(whole - parts) <= 1e-13
        assert abs(whole - loss(logits, target, label_smoothing=epsilon)) <= 1e-13


@pytest.mark.receipt("f08-smooth-gap", "derived")
def test_smooth_gap():
    n, epsilon, lead = sp.symbols("n epsilon lead", positive=True)
    true, other = 1 - epsilon + epsilon / n, epsilon / n
    normal = sp.log(sp.exp(lead) + n - 1)
    loss = -true * (lead - normal) + (n - 1) * other * normal
    best = sp.log(1 + (1 - epsilon) * n / epsilon)
    assert sp.simplify(sp.diff(loss, lead).subs(lead, best)) == 0
    curvature = sp.simplify(sp.diff(loss, lead, 2) - (n - 1) * sp.exp(lead) / (sp.exp(lead) + n - 1) ** 2)
    assert curvature == 0  # positive, so it is the only best lead
    for classes, expected in ((10, 4.51), (50_000, 13.02)):
        assert abs(float(best.subs({n: classes, epsilon: sp.Rational(1, 10)})) - expected) <= 0.005


@pytest.mark.receipt("f08-ece", "computed")
def test_ece():
    generator = np.random.default_rng(2)
    for n, bins in ((10, 1), (57, 5), (200, 10)):
        parts = generator.integers(1, 1000, size=n)
        correct = generator.integers(0, 2, size=n).astype(float)
        exact = Fraction(0)  # by the definition, in exact arithmetic
        for m in range(bins):
            members = [i for i in range(n) if Fraction(m, bins) < Fraction(int(parts[i]), 1000) <= Fraction(m + 1, bins)]
            if members:
                accuracy = Fraction(int(sum(correct[members])), len(members))
                sure = Fraction(int(sum(parts[members])), 1000 * len(members))
                exact += Fraction(len(members), n) * abs(accuracy - sure)
        assert abs(ece(torch.from_numpy(parts / 1000), torch.from_numpy(correct), bins) - float(exact)) <= 1e-12


def honest(generator, confidence):
    """What comes true, 1.0 or 0.0, if each forecast has the chance that it says."""
    return (torch.rand(confidence.shape, generator=generator, dtype=confidence.dtype) < confidence).double()


def test_a_perfect_model_has_a_calibration_error():
    generator = torch.Generator().manual_seed(5)
    means = {}
    for N, bins in ((100, 10), (100, 50), (1_000_000, 10)):
        runs = []
        for _ in range(200 if N == 100 else 1):
            confidence = torch.rand(N, generator=generator, dtype=torch.float64)
            runs.append(ece(confidence, honest(generator, confidence), bins))
        means[N, bins] = np.mean(runs)
    assert 0.08 <= means[100, 10] <= 0.12 and means[100, 50] >= 1.5 * means[100, 10] and means[1_000_000, 10] <= 0.005
    hidden = torch.tensor([0.62, 0.78], dtype=torch.float64).repeat(50_000)  # one too low, the other too high
    right = honest(generator, hidden.flip(0))
    assert ece(hidden, right, 5) <= 0.01 and ece(hidden, right, 10) >= 0.15


@pytest.mark.receipt("f08-ece-refine", "computed")
def test_ece_refine():
    generator = torch.Generator().manual_seed(6)
    for case in range(200):
        confidence = torch.rand(5 + case, generator=generator, dtype=torch.float64)
        correct = honest(generator, confidence**2)
        errors = [ece(confidence, correct, bins) for bins in (1, 2, 4, 12, 60)]
        assert min(np.diff(errors)) >= -1e-12
        assert abs(errors[0] - abs(confidence.mean() - correct.mean())) <= 1e-12


def exact_ece(confidence: np.ndarray, bins: int) -> float:
    """The mean of the ECE of an honest model: the number right in a bin is distributed like a product of polynomials."""
    where, total = np.ceil(confidence * bins), 0.0
    for m in range(1, bins + 1):
        inside, chances = confidence[where == m], np.ones(1)
        for c in inside:
            chances = np.convolve(chances, [1 - c, c])
        total += chances @ np.abs(np.arange(len(chances)) - inside.sum())
    return total / len(confidence)


@pytest.mark.receipt("f08-ece-bound", "computed")
def test_ece_bound():
    generator = torch.Generator().manual_seed(7)
    for case in range(100):
        N, bins = 1 + case % 10, 1 + case % 7
        confidence = torch.rand(N, generator=generator, dtype=torch.float64)
        mean = 0.0
        for outcome in product((0.0, 1.0), repeat=N):  # all of them, with their chances
            right = torch.tensor(outcome, dtype=torch.float64)
            chance = torch.where(right == 1, confidence, 1 - confidence).prod()
            mean += float(chance) * ece(confidence, right, bins)
        assert abs(mean - exact_ece(confidence.numpy(), bins)) <= 1e-12
        assert mean <= ece_bound(confidence, bins) + 1e-12
        assert ece_bound(confidence, bins) <= 0.5 * np.sqrt(bins / N) + 1e-12
    assert abs(ece_bound(torch.tensor([0.5]), 1) - exact_ece(np.array([0.5]), 1)) <= 1e-15


@pytest.mark.receipt("f08-ece-noise", "computed")
def test_ece_noise():
    generator = torch.Generator().manual_seed(8)
    for N, bins in ((200, 1), (200, 10), (200, 20), (2000, 1), (2000, 20)):
        confidence = torch.rand(N, generator=generator, dtype=torch.float64)
        ratio = NORMAL_SIZE * ece_bound(confidence, bins) / exact_ece(confidence.numpy(), bins)
        assert abs(ratio - 1) <= 0.03
    sure = torch.full((10,), 0.99, dtype=torch.float64)  # where it fails
    assert abs(NORMAL_SIZE * ece_bound(sure, 1) / exact_ece(sure.numpy(), 1) - 1.39) <= 0.005


@pytest.mark.receipt("f08-temperature", "derived")
def test_temperature_scaling():
    z = sp.symbols("z0:3", real=True)
    tau = sp.Symbol("tau", positive=True)
    powers = [sp.exp(s / tau) for s in z]
    p = [power / sum(powers) for power in powers]
    for i in range(3):
        for j in range(3):  # the log of a ratio is the gap over tau: the order never changes, so neither does the argmax
            assert sp.simplify(sp.expand_log(sp.log(p[i] / p[j]), force=True) - (z[i] - z[j]) / tau) == 0
    assert sp.simplify(sum(p)) == 1
    mean = sum(q * s for q, s in zip(p, z, strict=True))
    loss = -sp.log(p[0])  # its slope in tau: zero where the target's logit is the mean logit
    assert sp.simplify(sp.diff(loss, tau) - (z[0] - mean) / tau**2) == 0


@pytest.mark.receipt("f08-tau-slope", "derived")
def test_tau_slope():
    z = sp.symbols("z0:3", real=True)
    beta = sp.Symbol("beta", positive=True)
    powers = [sp.exp(beta * s) for s in z]
    p = [power / sum(powers) for power in powers]
    mean = sum(q * s for q, s in zip(p, z, strict=True))
    variance = sum(q * (s - mean) ** 2 for q, s in zip(p, z, strict=True))
    loss = sp.log(sum(powers)) - beta * z[0]
    assert sp.simplify(sp.diff(loss, beta) - (mean - z[0])) == 0
    assert sp.simplify(sp.diff(loss, beta, 2) - variance) == 0
    generator = torch.Generator().manual_seed(9)
    logits = 3 * torch.randn(200, 5, generator=generator, dtype=torch.float64)
    classes = torch.where(torch.rand(200, generator=generator) < 0.6, logits.argmax(dim=1), 0)
    coldness = torch.tensor(1 / fit_temperature(logits, classes), dtype=torch.float64, requires_grad=True)
    torch.nn.functional.cross_entropy(coldness * logits, classes).backward()
    assert abs(coldness.grad) <= 1e-9


@pytest.mark.receipt("f08-murphy", "derived")
def test_murphy():
    c, a = sp.symbols("c a", real=True)
    assert sp.simplify(a * (c - 1) ** 2 + (1 - a) * c**2 - ((c - a) ** 2 + a * (1 - a))) == 0  # one value of the forecast
    generator = np.random.default_rng(10)
    said = [Fraction(int(k), 10) for k in generator.integers(0, 11, size=300)]
    happened = [int(r) for r in generator.integers(0, 2, size=300)]
    whole = sum((s - r) ** 2 for s, r in zip(said, happened, strict=True)) / 300
    parts = Fraction(0)
    for value in set(said):
        results = [r for s, r in zip(said, happened, strict=True) if s == value]
        share = Fraction(sum(results), len(results))
        parts += Fraction(len(results), 300) * ((value - share) ** 2 + share * (1 - share))
    assert whole == parts


@pytest.mark.receipt("f08-resolution", "derived")
def test_resolution():
    for groups in (2, 3, 4):
        counts, shares = sp.symbols(f"n1:{groups + 1}", positive=True), sp.symbols(f"a1:{groups + 1}", real=True)
        N = sum(counts)
        r = sum(n * a for n, a in zip(counts, shares, strict=True)) / N  # all that came true
        refinement = sum(n * a * (1 - a) for n, a in zip(counts, shares, strict=True)) / N
        resolution = sum(n * (a - r) ** 2 for n, a in zip(counts, shares, strict=True)) / N
        assert sp.simplify(refinement - (r * (1 - r) - resolution)) == 0
    generator = np.random.default_rng(11)
    said, happened = generator.integers(0, 11, size=300), [int(r) for r in generator.integers(0, 2, size=300)]
    r = Fraction(sum(happened), 300)
    refinement = resolution = Fraction(0)
    for value in set(said.tolist()):
        results = [h for s, h in zip(said, happened, strict=True) if s == value]
        share = Fraction(sum(results), len(results))
        refinement += sum((h - share) ** 2 for h in results) / 300  # the mean squared distance from the group's share
        resolution += Fraction(len(results), 300) * (share - r) ** 2
    assert refinement == r * (1 - r) - resolution


@pytest.mark.receipt("f08-scaled", "measured")
def test_scaled():
    record = data.record("regularisation_and_calibration")
    judged = record["results"]["judged"]
    assert len(record["seeds"]) == 10 and "Student" in record["interval"]
    for noise, gain in ((0.3, 0.074), (0.5, 0.468)):
        found = judged[f"nll after less before, plain, noise {noise}"]
        assert abs(found["mean"] + gain) <= 0.001 and found["mean"] + found["half_width"] < 0
    still = judged["nll after less before, plain, noise 0.0"]
    assert abs(still["mean"]) <= still["half_width"] and abs(still["mean"]) < 0.002
    for noise in (0.0, 0.3, 0.5):  # the null model: an honest one with the same confidences
        above = judged[f"ece after less honest, plain, noise {noise}"]
        assert 0 <= above["mean"] <= min(0.005, above["half_width"])
    for row in record["results"]["rows"]:
        assert row["accuracy before"] == row["accuracy after"]


@pytest.mark.receipt("f08-err-smoothing", "measured")
def test_err_smoothing():
    judged = data.record("regularisation_and_calibration")["results"]["judged"]
    worse, better = (judged[f"ece of smoothing less plain, noise {noise}"] for noise in (0.0, 0.5))
    assert abs(worse["mean"] - 0.131) <= 0.001 and abs(worse["half_width"] - 0.007) <= 0.0005
    assert abs(better["mean"] + 0.170) <= 0.001 and abs(better["half_width"] - 0.008) <= 0.0005
