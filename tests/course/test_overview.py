"""The reference code of chapter ch01 against torch, numpy, brute force and node."""

import itertools
import json
import math
import random
import shutil
import subprocess

import numpy as np
import pytest
import torch

from course import widgets
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
from course.widgets.overview import StepsAndPairs


def random_computation(seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    return [sorted(rng.sample(range(i), min(i, rng.randint(0, 3)))) for i in range(rng.randint(1, 12))]


@pytest.mark.parametrize("seed", range(20))
def test_critical_path_is_the_longest_of_all_chains(seed):
    needs = random_computation(seed)
    reached = np.zeros((len(needs), len(needs)), dtype=int)
    for i, before in enumerate(needs):
        reached[i, before] = 1
    longest = next(n for n in itertools.count(1) if not np.linalg.matrix_power(reached, n).any())  # no chain of n waits
    assert critical_path(needs) == longest == rounds(needs, len(needs))
    assert rounds(needs, 1) == len(needs)


def test_no_operations_take_no_steps():
    assert critical_path([]) == rounds([], 3) == 0


@pytest.mark.parametrize("shape", [(1, 3), (7, 3), (2, 5, 4)])
def test_rnn_scan_is_torchs(shape):
    generator = torch.Generator().manual_seed(len(shape))
    x = torch.randn(*shape, generator=generator, dtype=torch.float64)
    rnn = torch.nn.RNN(shape[-1], 6, batch_first=True, dtype=torch.float64)
    h = rnn_scan(x, rnn.weight_ih_l0.T, rnn.weight_hh_l0.T, rnn.bias_ih_l0 + rnn.bias_hh_l0)
    assert h.shape == (*shape[:-1], 6) and torch.allclose(h, rnn(x)[0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("T", [0, 1, 2, 3, 64, 65, 100])
def test_linear_scan_is_the_loop(T):
    rng = np.random.default_rng(T)
    a, b = rng.normal(size=(T, 3)), rng.normal(size=(T, 3))
    h, states = np.zeros(3), np.zeros((T, 3))
    for t in range(T):
        states[t] = h = a[t] * h + b[t]
    given = torch.from_numpy(a), torch.from_numpy(b)
    scale = 1 + np.abs(states).max(initial=0)
    assert np.allclose(linear_scan(*given).numpy(), states, rtol=0, atol=1e-13 * scale)
    assert np.array_equal(given[0].numpy(), a) and np.array_equal(given[1].numpy(), b)


def test_layers_to_reach_is_the_power_of_the_table():
    for seed in range(10):
        sees = torch.from_numpy(np.tril(np.random.default_rng(seed).random((9, 9)) < 0.3)) | torch.eye(9, dtype=torch.bool)
        sees |= torch.diag(torch.ones(8, dtype=torch.bool), -1)
        assert layers_to_reach([sees]) == next(
            n for n in range(1, 10) if np.linalg.matrix_power(sees.numpy().astype(int), n)[-1, 0]
        )


def test_gradient_by_distance_is_autograds():
    generator = torch.Generator().manual_seed(3)
    U = 1.2 / math.sqrt(8) * torch.randn(8, 8, generator=generator, dtype=torch.float64)
    x = 0.5 * torch.randn(12, 8, generator=generator, dtype=torch.float64)
    G = torch.randn(8, generator=generator, dtype=torch.float64)
    h, states = torch.zeros(8, dtype=torch.float64, requires_grad=True), []
    for row in x:
        h = torch.tanh(row + h @ U)
        h.retain_grad()
        states.append(h)
    (h @ G).backward()
    norms = torch.stack([state.grad.norm() for state in reversed(states)])
    assert torch.allclose(gradient_by_distance(1.2, 12, 8, seed=3), (norms / norms[0]).log10(), rtol=0, atol=1e-12)


def test_fading_rate_of_a_tiny_signal_is_the_gain():
    """Without inputs and below gain 1 the state dies, and tanh is the identity there."""
    assert math.isclose(fading_rate(0.5, input_std=1e-6), math.log10(0.5), rel_tol=1e-9)
    z = np.linspace(-8, 8, 20_001)  # one step with gain 0: only the input is left
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    slope = np.trapezoid(density * (1 - np.tanh(0.5 * z) ** 2) ** 2, z)
    assert math.isclose(fading_rate(1e-6), 0.5 * math.log10(1e-12 * slope), rel_tol=1e-9)


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: critical_path([[0]]), "earlier operations"),
        (lambda: critical_path([[], [-1]]), "earlier operations"),
        (lambda: rounds([[]], 0), "at least one processor"),
        (lambda: linear_scan(torch.ones(3), torch.ones(4)), "as many factors"),
        (lambda: attention_pairs(-1, True), "not negative"),
        (lambda: layers_to_reach([torch.eye(4, dtype=torch.bool)]), "never hears"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_a_layer_without_tokens_has_no_work():
    assert set(layer_work(0, 64).values()) == {0}


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "overview.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    cases = [(1, True), (1, False), (2, True), (9, True), (9, False), (17, True), (17, False)]
    script = f"{library}{source}\nconst cases = {json.dumps(cases)};\n"
    script += "console.log(JSON.stringify(cases.map((c) => [counts(...c), said(...c)])));"
    told = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for (doublings, causal), ((T, pairs, ratio), text) in zip(cases, told, strict=True):
        assert (T, pairs) == (2**doublings, attention_pairs(2**doublings, causal))
        assert math.isclose(ratio, attention_pairs(2 * T, causal) / pairs, rel_tol=1e-15)
        assert text == StepsAndPairs(doublings=doublings, causal=causal).describe()
