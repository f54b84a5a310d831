"""Evidence for the formulas of ch01_overview."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
import torch
from scipy.special import erfcinv
from torch.utils.flop_counter import FlopCounterMode

from course import data
from course.overview import (
    attention_pairs,
    critical_path,
    fading_rate,
    gradient_by_distance,
    layer_work,
    layers_to_reach,
    linear_scan,
    rnn_scan,
    rounds,
)


def multiply_adds(run) -> int:
    """What torch counts in matrix products and convolutions: two operations are one multiply-add."""
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops() // 2


@pytest.mark.receipt("ch01-brent", "computed")
def test_brent():
    def chains(i, needs):  # lengths of all chains that end with operation i
        return [1 + length for j in needs[i] for length in chains(j, needs)] or [1]

    rng = random.Random(0)
    for _ in range(1000):
        needs = [sorted(rng.sample(range(i), min(i, rng.randint(0, 3)))) for i in range(rng.randint(1, 20))]
        work, depth = len(needs), max(max(chains(i, needs)) for i in range(len(needs)))
        assert depth == critical_path(needs)
        for n_proc in (1, 2, 3, 5, 20):
            assert max(math.ceil(work / n_proc), depth) <= rounds(needs, n_proc) <= work / n_proc + depth


@pytest.mark.receipt("ch01-recurrence", "computed")
def test_recurrence():
    torch.manual_seed(0)
    rnn = torch.nn.RNN(5, 7, batch_first=True, dtype=torch.float64)
    x = torch.randn(3, 50, 5, dtype=torch.float64)
    h = rnn_scan(x, rnn.weight_ih_l0.T, rnn.weight_hh_l0.T, rnn.bias_ih_l0 + rnn.bias_hh_l0)
    assert float((h - rnn(x)[0]).detach().abs().max()) <= 1e-13


@pytest.mark.receipt("ch01-linear", "computed")
def test_linear_recurrence():
    """Against the sum that the recurrence unrolls to, in fractions."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, size=(2, 40))
    states = linear_scan(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    for t in range(40):
        exact = sum(Fraction(b[k]) * math.prod(map(Fraction, a[k + 1 : t + 1])) for k in range(t + 1))
        assert abs(states[t] - float(exact)) <= 1e-13


@pytest.mark.receipt("ch01-compose", "derived")
def test_compose():
    h, a1, a2, a3, b1, b2, b3 = sp.symbols("h a1 a2 a3 b1 b2 b3")

    def then(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    s1, s2, s3 = (a1, b1), (a2, b2), (a3, b3)
    a, b = then(s1, s2)
    assert sp.expand(a * h + b - (a2 * (a1 * h + b1) + b2)) == 0
    for left, right in zip(then(then(s1, s2), s3), then(s1, then(s2, s3)), strict=True):
        assert sp.expand(left - right) == 0


@pytest.mark.receipt("ch01-scan", "computed")
def test_scan():
    for T in range(1, 300):
        span, count = [1] * T, 0  # how many steps, its own among them, each place has joined
        while min(span[i] - min(i + 1, T) for i in range(T)) < 0:
            span = [min(i + 1, s + (span[i - s] if i >= s else 0)) for i, s in enumerate(span)]
            count += 1
        assert count == math.ceil(math.log2(T))
    rng = np.random.default_rng(0)
    a, b = torch.from_numpy(rng.uniform(-1, 1, size=(2, 777)))
    h, states = 0.0, []
    for factor, addend in zip(a.tolist(), b.tolist(), strict=True):
        h = factor * h + addend
        states.append(h)
    assert np.abs(linear_scan(a, b).numpy() - states).max() <= 1e-13


@pytest.mark.receipt("ch01-pairs", "derived")
def test_pairs():
    i, T = sp.symbols("i T", integer=True, positive=True)
    assert sp.simplify(sp.summation(i, (i, 1, T)) - T * (T + 1) / 2) == 0
    assert sp.simplify(sp.summation(T, (i, 1, T)) - T**2) == 0
    for n in range(40):
        past = [(q, k) for q in range(n) for k in range(n) if k <= q]
        assert attention_pairs(n, True) == len(past) and attention_pairs(n, False) == n * n


@pytest.mark.receipt("ch01-recurrence-work", "computed")
def test_recurrence_work():
    for T, d in [(1, 8), (13, 16), (50, 4)]:
        x, W, U, b = torch.ones(T, d), torch.ones(d, d), torch.ones(d, d), torch.ones(d)
        assert abs(multiply_adds(lambda x=x, W=W, U=U, b=b: rnn_scan(x, W, U, b)) - layer_work(T, d)["recurrence"]) <= 0
        assert layer_work(T, d)["recurrence"] == 2 * T * d**2


@pytest.mark.receipt("ch01-convolution-work", "computed")
def test_convolution_work():
    for T, d, k in [(9, 8, 3), (20, 4, 5), (7, 3, 1)]:
        layer, x = torch.nn.Conv1d(d, d, k), torch.ones(1, d, T + k - 1)  # padded: T tokens come out
        assert abs(multiply_adds(lambda layer=layer, x=x: layer(x)) - layer_work(T, d, k)["convolution"]) <= 0
        assert layer_work(T, d, k)["convolution"] == k * T * d**2


def attention(x, W):
    q, k, v = (x @ W for _ in range(3))
    return (q @ k.T).softmax(dim=-1) @ v @ W


@pytest.mark.receipt("ch01-attention-work", "computed")
def test_attention_work():
    for T, d in [(1, 8), (13, 16), (50, 4)]:
        counted = multiply_adds(lambda T=T, d=d: attention(torch.ones(T, d), torch.ones(d, d)))
        assert abs(counted - layer_work(T, d)["attention"]) <= 0 and counted == 4 * T * d**2 + 2 * T**2 * d


@pytest.mark.receipt("ch01-convolution-path", "computed")
def test_convolution_path():
    for k in (2, 3, 5):
        for T in range(2, 40):
            past = torch.arange(T)[:, None] - torch.arange(T)
            assert abs(layers_to_reach([(past >= 0) & (past < k)]) - math.ceil((T - 1) / (k - 1))) <= 0


@pytest.mark.receipt("ch01-dilated-path", "computed")
def test_dilated_path():
    for k in (2, 3, 5):
        for T in range(2, 130):
            past = torch.arange(T)[:, None] - torch.arange(T)
            layers = [(past >= 0) & (past < k * k**i) & (past % k**i == 0) for i in range(8)]
            wanted = next(L for L in range(1, 9) if k**L >= T)  # the logarithm rounded up, in whole numbers
            assert abs(layers_to_reach(layers) - wanted) <= 0


@pytest.mark.receipt("ch01-back", "computed")
def test_back():
    torch.manual_seed(0)
    h, U, G = torch.randn(3, 6, 6, dtype=torch.float64)
    h.requires_grad_(True)
    after = torch.tanh(h @ U)
    (after * G).sum().backward()
    assert float((h.grad - (G * (1 - after**2)) @ U.T).detach().abs().max()) <= 1e-14


def mean_field(gain: float, input_std: float = 0.5) -> tuple[float, float]:
    """log10 of the gain times the root of the mean squared slope, and times the mean slope, z by its quantiles."""
    z = -math.sqrt(2) * erfcinv(np.linspace(0, 2, 400_002)[1:-1])  # evenly likely
    density = np.full(len(z), 1 / len(z))
    q = 1.0
    for _ in range(300):
        q = gain**2 * float(density @ np.tanh(math.sqrt(q) * z) ** 2) + input_std**2
    slope = 1 - np.tanh(math.sqrt(q) * z) ** 2
    return math.log10(gain * math.sqrt(density @ slope**2)), math.log10(gain * float(density @ slope))


@pytest.mark.receipt("ch01-fading", "measured")
def test_fading():
    record = data.record("overview")
    assert len(record["seeds"]) == 20 and "Student" in record["interval"] and record["settings"]["width"] == 256
    inside = []
    for row in record["results"]["gradients"]:
        theory, rival = mean_field(row["gain"])
        assert abs(row["theory"] - 100 * theory) <= 0.01 and abs(100 * fading_rate(row["gain"]) - row["theory"]) <= 1e-3
        assert abs(row["by the mean slope"] - 100 * rival) <= 0.1
        mean, half = data.interval(row["runs"], 2)
        assert len(row["runs"]) == 20 and abs(mean - row["log10"]) <= 0.01 and abs(half - row["half_width"]) <= 0.01
        inside.append(abs(row["log10"] - row["theory"]) <= row["half_width"])
        assert abs(row["log10"] - row["theory"]) <= 0.34
        assert 2 <= abs(row["log10"] - row["by the mean slope"]) <= 19
    assert sum(inside) == 4 and not inside[0]
    assert abs(float(gradient_by_distance(1.0, 101, 256, seed=0)[-1]) - record["results"]["gradients"][1]["theory"]) <= 1.5


@pytest.mark.receipt("ch01-err-path", "computed")
def test_a_convolution_without_dilation_has_no_logarithmic_path():
    past = torch.arange(64)[:, None] - torch.arange(64)
    dilated = [(past >= 0) & (past < 3 * 3**i) & (past % 3**i == 0) for i in range(4)]
    assert abs(layers_to_reach([(past >= 0) & (past < 3)]) - 32) <= 0 and abs(layers_to_reach(dilated) - 4) <= 0


@pytest.mark.receipt("ch01-err-work", "computed")
def test_the_matrices_cost_more_than_the_pairs_below_two_d():
    for d in (64, 512, 4096):
        W = torch.ones(d, d, device="meta")  # shapes only
        share = []
        for T in (2 * d - 1, 2 * d, 2 * d + 1):
            x = torch.ones(T, d, device="meta")
            pairs = multiply_adds(lambda x=x: (x @ x.T) @ x)
            share.append(pairs / multiply_adds(lambda x=x, W=W: attention(x, W)))
        assert share[0] < 0.5 and abs(share[1] - 0.5) <= 1e-15 and share[2] > 0.5


def test_on_a_graphics_card_attention_waits_for_nothing():
    """What the chapter's puzzle says of the recorded times."""
    times = data.record("overview")["results"]["times"]["rows"]
    card, core = times["NVIDIA H200"], times["one thread of a CPU"]
    ratio = card[-1]["attention"][1] / card[0]["attention"][1]
    assert 0.9 < ratio < 1.1 and 140 < card[-1]["work"][1] / card[0]["work"][1] < 145
    assert card[-1]["recurrence"][1] > 3 * card[3]["recurrence"][1]
    slower = [row["attention"][0] > row["recurrence"][2] for row in core]
    assert slower == [False] * 4 + [True] * 2


def test_newton_finds_the_states_of_a_recurrence_with_tanh():
    x, u = torch.randn(1000, 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64), 0.9
    states = rnn_scan(x, *(torch.tensor(v, dtype=torch.float64) for v in ([[1.0]], [[u]], [0.0])))
    guess = torch.zeros_like(x)
    for _ in range(7):
        before = torch.cat([torch.zeros(1, 1), guess[:-1]])
        value = torch.tanh(x + u * before)
        guess = linear_scan(u * (1 - value**2), value - u * (1 - value**2) * before)
    assert float((guess - states).abs().max()) <= 1e-12


def test_only_time_is_a_chain():
    """The entries of a step and the sequences of a batch need the step before and nothing of their own step."""
    B, T, d = 3, 5, 4
    index = {(t, s, i): n for n, (t, s, i) in enumerate((t, s, i) for t in range(T) for s in range(B) for i in range(d))}
    needs = [[index[t - 1, s, j] for j in range(d)] if t else [] for t, s, i in index]
    assert len(needs) == B * T * d and critical_path(needs) == T and rounds(needs, B * d) == T


def test_the_scores_need_not_be_stored():
    X = torch.randn(50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    blocks = torch.cat([(X[i : i + 7] @ X.T).softmax(dim=-1) @ X for i in range(0, 50, 7)])
    assert float((blocks - (X @ X.T).softmax(dim=-1) @ X).abs().max()) <= 1e-14
