"""The reference code of ch11_training against torch, brute force and scipy."""

import itertools
import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import torch
import traitlets
from scipy.optimize import minimize_scalar
from torch.nn import functional as F

from course import widgets
from course.model import GPT, Config
from course.training import (
    PUBLISHED,
    REFIT,
    Law,
    bigram,
    chinchilla_loss,
    chinchilla_opt,
    fit,
    held_out_loss,
    lm_loss,
    make_pairs,
    overlap,
    perplexity,
    unigram,
)
from course.widgets.training import ComputeBudget

LAWS = {"published": PUBLISHED, "refit": REFIT, "equal": Law(0.0, 3.0, 5.0, 0.4, 0.4)}


def random_ids(n, V, seed=0):
    return torch.randint(V, (n,), generator=torch.Generator().manual_seed(seed))


# ---------------------------------------------------------------- pairs and loss


@pytest.mark.parametrize(("n", "T"), [(2, 1), (9, 4), (10, 4), (13, 4), (100, 7)])
def test_each_target_follows_its_input(n, T):
    inputs, targets = make_pairs(torch.arange(n), T)
    assert inputs.shape == targets.shape == ((n - 1) // T, T)
    assert torch.equal(targets, inputs + 1)
    assert targets.flatten().tolist() == list(range(1, targets.numel() + 1))


@pytest.mark.parametrize(("n", "T"), [(4, 4), (0, 1), (5, 0)])
def test_a_text_without_a_window(n, T):
    with pytest.raises(ValueError, match="needs"):
        make_pairs(torch.arange(n), T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_loss_is_torchs(dtype, reduction):
    generator = torch.Generator().manual_seed(0)
    logits = (10 * torch.randn(3, 5, 7, generator=generator, dtype=dtype)).requires_grad_()
    targets = torch.randint(7, (3, 5), generator=generator)
    targets[0, 2:] = -100
    ours, theirs = (
        lm_loss(logits, targets, reduction),
        F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction),
    )
    assert torch.allclose(ours, theirs)
    assert torch.allclose(*(torch.autograd.grad(loss, logits, retain_graph=True)[0] for loss in (ours, theirs)), atol=1e-6)


def test_padding_does_not_count_even_where_it_is_impossible():
    logits = torch.tensor([[0.0, 0.0], [-math.inf, 0.0]])
    assert float(lm_loss(logits, torch.tensor([0, -100]))) == pytest.approx(math.log(2))


def test_what_the_loss_refuses():
    with pytest.raises(ValueError, match="reduction"):
        lm_loss(torch.zeros(1, 2), torch.tensor([0]), "max")
    with pytest.raises(ValueError, match="no position"):
        lm_loss(torch.zeros(1, 2), torch.tensor([-100]))


def test_perplexity_of_certain_uniform_and_impossible():
    assert perplexity(torch.zeros(4)) == 1
    assert perplexity(torch.full((4,), math.log(50), dtype=torch.float64)) == pytest.approx(50, rel=1e-12)
    assert perplexity(torch.tensor([0.0, math.inf])) == math.inf
    with pytest.raises(ValueError, match="no token"):
        perplexity(torch.zeros(0))


# ---------------------------------------------------------------- baselines and overlap


def test_the_baselines_are_shares_of_counts():
    V, ids = 5, random_ids(300, 4)
    text = ids.tolist()
    single, pairs = unigram(ids, V).exp(), bigram(ids, V).exp()
    for b in range(V):
        assert float(single[b]) == pytest.approx((text.count(b) + 1) / (len(text) + V))
        for a in range(V):
            n = sum(x == a and y == b for x, y in itertools.pairwise(text))
            assert float(pairs[a, b]) == pytest.approx((n + float(single[b])) / (text[:-1].count(a) + 1))
    assert torch.allclose(pairs.sum(dim=1), torch.ones(V, dtype=torch.float64))


def test_overlap_counts_runs():
    assert overlap(torch.tensor([1, 2, 3]), torch.tensor([2, 3, 1, 2]), 2) == pytest.approx(2 / 3)
    assert overlap(torch.tensor([1]), torch.tensor([1, 1]), 2) == 0
    learned, held = random_ids(60, 3), random_ids(40, 3, seed=1)
    spelled = "".join(map(str, learned.tolist()))
    runs = ["".join(map(str, held.tolist()[i : i + 4])) for i in range(37)]
    assert overlap(learned, held, 4) == pytest.approx(np.mean([run in spelled for run in runs]))
    for n in (0, 41):
        with pytest.raises(ValueError, match="n must be"):
            overlap(learned, held, n)


# ---------------------------------------------------------------- the loop


def test_training_learns_a_cycle_and_is_repeatable():
    ids, curves = torch.arange(200) % 5, []
    for _ in range(2):
        torch.manual_seed(0)
        model, curve = GPT(Config(V=5, d_model=16, n_layers=1, n_heads=2)), []
        fit(model, ids, steps=60, seed=1, B=4, T=8, after=lambda step, loss, curve=curve: curve.append((step, loss)))
        curves.append(curve)
    assert curves[0] == curves[1] and [step for step, _ in curves[0]] == list(range(1, 61))
    assert curves[0][0][1] == pytest.approx(math.log(5), abs=0.1)
    assert held_out_loss(model, ids, T=8) < 0.2


# ---------------------------------------------------------------- compute


@pytest.mark.parametrize("C", [1e19, 5.76e23])
@pytest.mark.parametrize("name", LAWS)
def test_the_optimum_is_scipys(name, C):
    law = LAWS[name]
    found = minimize_scalar(
        lambda x: chinchilla_loss(math.exp(x), C / 6 / math.exp(x), law),
        bounds=(5, 45),
        method="bounded",
        options={"xatol": 1e-10},
    )
    N, D = chinchilla_opt(C, law)
    assert math.isclose(N * D, C / 6, rel_tol=1e-12)
    assert math.log(N) == pytest.approx(found.x, abs=1e-5)


def test_no_compute_no_model():
    with pytest.raises(ValueError, match="positive"):
        chinchilla_opt(0.0, REFIT)


# ---------------------------------------------------------------- the widget


def node(script: str):
    found = shutil.which("node")
    assert found, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "training.js").read_text().split("export default")[0]
    text = f"{(widgets.HERE / 'library.js').read_text()}{source}\n{script}"
    return json.loads(subprocess.run([found, "-e", text], capture_output=True, text=True, check=True).stdout)


def test_the_widget_computes_what_the_reference_computes():
    cases = [{"exponent": exponent, "refit": refit} for exponent in (18.0, 20.3, 23.8, 26.0) for refit in (True, False)]
    script = f"const cases = {json.dumps(cases)};\nconsole.log(JSON.stringify(cases.map((c) => [best(c), said(c), valley(c)])));"
    for case, (best, told, valley) in zip(cases, node(script), strict=True):
        widget = ComputeBudget(**case)
        assert best == pytest.approx(widget.best(), rel=1e-9)
        assert told == widget.describe()
        for x, loss in valley[::20]:
            assert loss == pytest.approx(chinchilla_loss(10**x, 10 ** (case["exponent"] - x) / 6, widget.law), rel=1e-9)


def test_the_widget_refuses_what_it_cannot_show():
    with pytest.raises(traitlets.TraitError):
        ComputeBudget(exponent=30.0)
