"""Evidence for the formulas of f08_regularisation_and_calibration."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import sympy as sp
import torch


def masks(width: int, rate: float):
    """Every dropout mask of a width, already scaled by 1 / (1 - rate), with its probability."""
    for kept in product((0, 1), repeat=width):
        chance = np.prod([1 - rate if k else rate for k in kept])
        yield np.array(kept) / (1 - rate), chance


def softmax(z):
    powers = np.exp(z - z.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.receipt("e46", "computed")
def test_e46_attention_dropout():
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


@pytest.mark.receipt("e47", "computed")
def test_e47_ffn_dropout():
    generator = np.random.default_rng(1)
    x, W1, b1, W2, b2 = (generator.normal(size=shape) for shape in ((4,), (4, 8), (8,), (8, 4), (4,)))
    hidden = torch.nn.functional.gelu(torch.tensor(x @ W1 + b1)).numpy()
    for rate in (0.1, 0.5):
        expected = sum(chance * ((mask * hidden) @ W2 + b2) for mask, chance in masks(8, rate))  # over all 256 masks
        assert np.abs(expected - (hidden @ W2 + b2)).max() <= 1e-13


@pytest.mark.receipt("e48", "computed")
def test_e48_label_smoothing():
    generator = torch.Generator().manual_seed(0)
    for V, epsilon in ((2, 0.1), (10, 0.1), (50, 0.3)):
        logits = torch.randn(8, V, generator=generator, dtype=torch.float64)
        target = torch.randint(V, (8,), generator=generator)
        smooth = (1 - epsilon) * torch.nn.functional.one_hot(target, V).double() + epsilon / V
        assert (smooth.sum(-1) - 1).abs().max() <= 1e-15 * V
        assert (smooth.gather(1, target[:, None]) - (1 - epsilon + epsilon / V)).abs().max() <= 1e-15
        mine = -(smooth * logits.log_softmax(-1)).sum(-1).mean()
        theirs = torch.nn.functional.cross_entropy(logits, target, label_smoothing=epsilon)
        assert abs(mine - theirs) <= 1e-13
        best = smooth.log()  # the loss is least where the softmax is the smoothed target: there its gradient is zero
        best.requires_grad_()
        torch.nn.functional.cross_entropy(best, target, label_smoothing=epsilon).backward()
        assert best.grad.abs().max() <= 1e-15


def ece(confidence, correct, bins):
    """In numpy: bins (0, 1/M], (1/M, 2/M], …, each weighed by its share of the examples."""
    index = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    count, right, sure = (np.bincount(index, weights=w, minlength=bins) for w in (np.ones_like(confidence), correct, confidence))
    full = count > 0
    return (count[full] / len(confidence) * np.abs(right[full] / count[full] - sure[full] / count[full])).sum()


@pytest.mark.receipt("n-ece", "computed")
def test_n_ece():
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
        assert abs(ece(parts / 1000, correct, bins) - float(exact)) <= 1e-12
    biased = []
    for _ in range(200):  # a model that is calibrated by construction is never told so
        confidence = generator.uniform(size=100)
        biased.append(ece(confidence, (generator.uniform(size=100) < confidence).astype(float), 10))
    assert 0.05 <= np.mean(biased) <= 0.2
    confidence = generator.uniform(size=1_000_000)
    assert ece(confidence, (generator.uniform(size=1_000_000) < confidence).astype(float), 10) <= 0.005


@pytest.mark.receipt("n-tscale", "derived")
def test_n_tscale():
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
