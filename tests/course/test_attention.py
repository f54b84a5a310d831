"""course.attention against torch, numpy in float64, autograd and brute force; the widget against course.attention."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import torch

from course.attention import attention, attention_backward, attention_weights, contribution, entropy_of_weights, std_of_scores
from course.data import record
from course.widgets import HERE

EPS64 = torch.finfo(torch.float64).eps

Q = torch.tensor([[1.0, 0, 1], [0, 1, 1]])
K = torch.tensor([[1.0, 1, 0], [1, 0, 1]])
V = torch.tensor([[2.0, 0, 1], [1, 1, 0]])


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


SHAPES = [((), 1, 1, 1, 1), ((), 2, 3, 4, 5), ((3,), 7, 1, 16, 2), ((2, 5), 4, 9, 64, 8)]


def inputs(lead, T, S, d_k, d_v, dtype=torch.float64):
    return (
        normal(*lead, T, d_k, seed=1, dtype=dtype),
        normal(*lead, S, d_k, seed=2, dtype=dtype),
        normal(*lead, S, d_v, seed=3, dtype=dtype),
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_attention_is_torchs(shape):
    query, key, value = inputs(*shape)
    theirs = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    # Two orders of the same sums of at most max(d_k, S) terms: well below 100 eps times the size.
    torch.testing.assert_close(attention(query, key, value), theirs, rtol=0, atol=100 * EPS64 * float(value.abs().max()))


@pytest.mark.parametrize("shape", SHAPES)
def test_attention_is_the_loop(shape):
    query, key, value = (x.reshape(-1, *x.shape[-2:]).numpy() for x in inputs(*shape))
    result = attention(*(torch.from_numpy(x) for x in (query, key, value)))
    for b in range(len(query)):
        for t in range(query.shape[1]):
            exponentials = [math.exp(sum(query[b, t] * k) / math.sqrt(query.shape[-1])) for k in key[b]]
            expected = sum(e * v for e, v in zip(exponentials, value[b], strict=True)) / sum(exponentials)
            np.testing.assert_allclose(result[b, t], expected, rtol=0, atol=1e-12)


def test_the_worked_example():
    weights = attention_weights(Q.double(), K.double())
    top = 1 / (1 + math.exp(-1 / math.sqrt(3)))  # two scores, 1/√3 apart
    torch.testing.assert_close(weights[0], torch.tensor([1 - top, top], dtype=torch.float64), rtol=0, atol=4 * EPS64)
    assert [round(x, 3) for x in attention(Q, K, V)[0].tolist()] == [1.360, 0.640, 0.360]
    assert attention(Q, K, V)[1].tolist() == [1.5, 0.5, 0.5]


def test_dtype_is_kept():
    assert attention(*inputs((), 2, 3, 4, 5, torch.float32)).dtype == torch.float32
    assert attention(*inputs((), 2, 3, 4, 5)).dtype == torch.float64


def test_large_scores_do_not_overflow():
    query = torch.tensor([[1e4, 0.0]])
    key = torch.tensor([[1e4, 0.0], [0.0, 1.0]])
    assert attention_weights(query, key).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("shape", SHAPES)
def test_backward_is_autograd(shape):
    arguments = [x.requires_grad_() for x in inputs(*shape)]
    output = attention(*arguments)
    grad_output = normal(*output.shape, seed=4)
    theirs = torch.autograd.grad(output, arguments, grad_output)
    mine = attention_backward(*arguments, grad_output)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1000 * EPS64 * max(1.0, float(b.abs().max())))


def test_backward_is_the_difference_quotient():
    query, key, value = inputs((), 2, 3, 4, 2)
    grad_output = normal(2, 2, seed=4)
    step = 1e-6  # the error of a central difference is about step² + eps/step
    for which, gradient in enumerate(attention_backward(query, key, value, grad_output)):
        for index in np.ndindex(*gradient.shape):
            loss = []
            for sign in (1, -1):
                moved = [query.clone(), key.clone(), value.clone()]
                moved[which][index] += sign * step
                loss.append(float((attention(*moved) * grad_output).sum()))
            assert abs((loss[0] - loss[1]) / (2 * step) - float(gradient[index])) < 1e-8


def test_contribution_is_the_norm_of_each_term():
    weights, value = torch.rand(2, 3, 4), normal(2, 4, 5, dtype=torch.float32)
    terms = weights.unsqueeze(-1) * value.unsqueeze(-3)  # (2, 3, 4, 5)
    torch.testing.assert_close(contribution(weights, value), terms.norm(dim=-1), rtol=1e-6, atol=0)


def test_entropy_has_its_two_ends():
    assert entropy_of_weights(torch.tensor([0.0, 1.0])).item() == 0
    assert entropy_of_weights(torch.full((64,), 1 / 64, dtype=torch.float64)).item() == pytest.approx(math.log(64), abs=1e-13)
    p = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    assert entropy_of_weights(p).item() == pytest.approx(torch.distributions.Categorical(p).entropy().item(), abs=1e-13)


@pytest.mark.parametrize("d_k", [4, 64, 4096])
def test_std_of_scores(d_k):
    # The sd of a measured sd over n pairs is about sd·√((kurtosis − 1)/4n) < 1.7 % at n = 4000: three of them.
    generator = torch.Generator().manual_seed(0)
    assert std_of_scores(d_k, False, generator=generator) == pytest.approx(math.sqrt(d_k), rel=0.05)
    assert std_of_scores(d_k, True, generator=generator) == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: attention_weights(torch.ones(2, 3), torch.ones(2, 4)), "same d_k"),
        (lambda: attention(torch.ones(2, 3), torch.ones(2, 3), torch.ones(3, 3)), "each key needs its value"),
        (
            lambda: attention_backward(torch.ones(2, 3), torch.ones(4, 3), torch.ones(4, 5), torch.ones(2, 4)),
            "grad_output must end in",
        ),
        (lambda: contribution(torch.ones(2, 3), torch.ones(2, 3)), "each weight needs its value"),
        (lambda: entropy_of_weights(torch.tensor([-0.1, 1.1])), "must not be negative"),
        (lambda: std_of_scores(0, True), "at least 1"),
    ],
)
def test_bad_input_is_told(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# ---------------------------------------------------------------- the widget


CASES = [
    ([[1, 0, 1], [0, 1, 1]], [[1, 1, 0], [1, 0, 1]], [[2, 0, 1], [1, 1, 0]]),
    ([[1, 0], [0, 2], [-3, 1]], [[1, 0], [0, 1], [1, 1]], [[1, 0], [0, 1], [2, 2]]),
    ([[500, 0], [0, -500]], [[3, 0], [0, 3]], [[1, 0], [0.001, 0]]),
]


@pytest.mark.skipif(not shutil.which("node"), reason="node runs the widget's arithmetic")
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_the_widget_computes_the_same(case, scaled):
    module = (HERE / "library.js").read_text() + (HERE / "attention.js").read_text().split("export default")[0]
    call = f"console.log(JSON.stringify(attend({', '.join(json.dumps(x) for x in case)}, {json.dumps(scaled)})));"
    told = json.loads(subprocess.run(["node", "-e", module + call], capture_output=True, text=True, check=True).stdout)
    query, key, value = (torch.tensor(x, dtype=torch.float64) for x in case)
    if not scaled:
        query = query * math.sqrt(query.shape[-1])
    weights = attention_weights(query, key)
    np.testing.assert_allclose(told["weights"], weights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(told["output"], attention(query, key, value), rtol=0, atol=1e-12)
    np.testing.assert_allclose(told["contributions"], contribution(weights, value), rtol=0, atol=1e-12)


def test_the_widget_says_what_it_shows():
    from course.widgets.attention import AttentionWidget

    widget = AttentionWidget()
    assert set(widget.state()) == {"query", "key", "value", "row", "scaled"}
    assert "0.360" in widget.describe()


# ---------------------------------------------------------------- the record


def test_the_record_of_the_training_experiment():
    measured = record("attention")
    assert {"settings", "device", "versions", "seeds", "results"} <= measured.keys()
    arms, widths = measured["settings"]["arms"], measured["settings"]["d_k"]
    assert len(measured["seeds"]) >= 3 and len(set(measured["seeds"])) == len(measured["seeds"])
    runs = {(r["arm"], r["d_k"], r["seed"]) for r in measured["results"]}
    assert runs == {(arm, d_k, seed) for arm in arms for d_k in widths for seed in measured["seeds"]}
    for run in measured["results"]:
        assert 0 <= run["accuracy"] <= 1 and run["loss"] >= 0
        assert 0 <= run["entropy_start"] <= math.log(measured["settings"]["pairs"]) + 1e-6
