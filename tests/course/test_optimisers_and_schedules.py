"""The reference code of chapter f07 against torch, numpy and node."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import torch

from course import widgets
from course.optimisers_and_schedules import (
    RULES,
    adam_step,
    adamw_step,
    best_heavy_ball,
    bowl,
    clip_global_norm,
    cosine,
    inverse_sqrt,
    momentum_ema,
    momentum_heavy,
    noam,
    optimiser,
    rmsprop_step,
    sgd,
    walk,
    warmup,
    wsd,
)
from course.widgets.optimisers_and_schedules import OptimiserRace

TORCHS = {
    "SGD": lambda leaf, **k: torch.optim.SGD([leaf], lr=0.03),
    "heavy ball": lambda leaf, **k: torch.optim.SGD([leaf], lr=0.03, momentum=0.9),
    "RMSprop": lambda leaf, **k: torch.optim.RMSprop([leaf], lr=0.03, alpha=0.99),
    "Adam": lambda leaf, **k: torch.optim.Adam([leaf], lr=0.03),
    "Adam + L2": lambda leaf, **k: torch.optim.Adam([leaf], lr=0.03, weight_decay=0.2),
    "AdamW": lambda leaf, **k: torch.optim.AdamW([leaf], lr=0.03, weight_decay=0.2),
}


def random_gradients(steps=25, shape=(3, 4), seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(steps, *shape)))


@pytest.mark.parametrize("rule", TORCHS)
def test_rules_take_torchs_steps(rule):
    grads = random_gradients()
    w, leaf = grads[0] + 1, (grads[0] + 1).clone().requires_grad_(True)
    step, torchs = optimiser(rule, 0.03, decay=0.2), TORCHS[rule](leaf)
    for g in grads:
        w = step(w, g)
        leaf.grad = g.clone()
        torchs.step()
        assert torch.allclose(w, leaf, rtol=1e-12, atol=1e-13)


def test_ema_momentum_is_a_weighted_sum_of_all_gradients():
    grads = random_gradients()
    w, m = torch.zeros(3, 4, dtype=torch.float64), 0.0
    for t in range(len(grads)):
        w, m = momentum_ema(w, grads[t], m, 0.5, beta=0.8)
        weights = 0.2 * 0.8 ** torch.arange(t, -1, -1, dtype=torch.float64)
        assert torch.allclose(m, torch.einsum("t,tij->ij", weights, grads[: t + 1]), rtol=1e-12, atol=1e-14)
    assert torch.allclose(walked(grads, "EMA momentum", 0.5), walked(grads, "heavy ball", 0.05), atol=1e-13)


def walked(grads, rule, rate):
    w, step = torch.zeros_like(grads[0]), optimiser(rule, rate)
    for g in grads:
        w = step(w, g)
    return w


def test_torchs_dampening_is_not_the_ema_form():
    """torch's first m is the whole gradient; later ones mix as EMA does."""
    leaf = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    torchs = torch.optim.SGD([leaf], lr=1.0, momentum=0.9, dampening=0.9)
    leaf.grad = torch.ones_like(leaf)
    torchs.step()
    assert leaf.item() == -1.0 and math.isclose(momentum_ema(0.0, 1.0, 0.0, 1.0)[0], -0.1)


def test_decay_of_sgd_is_torchs():
    grads = random_gradients()
    w, leaf = grads[0] + 1, (grads[0] + 1).clone().requires_grad_(True)
    torchs = torch.optim.SGD([leaf], lr=0.03, weight_decay=0.2)
    for g in grads:
        w = sgd(w, g, 0.03, decay=0.2)
        leaf.grad = g.clone()
        torchs.step()
    assert torch.allclose(w, leaf, rtol=1e-12)


def test_an_optimiser_scales_its_rate_and_takes_a_rate_for_each_run():
    grads = random_gradients(shape=(2, 5))
    rates = torch.tensor([[0.1], [0.3]], dtype=torch.float64)
    for rule in RULES:
        both, first, second = optimiser(rule, rates, 0.1), optimiser(rule, 0.1, 0.1), optimiser(rule, 0.1, 0.1)
        w = torch.ones(2, 5, dtype=torch.float64)
        one, other = w[0], w[1]
        for g in grads:
            w, one, other = both(w, g), first(one, g[0]), second(other, g[1], 3.0)
        assert torch.allclose(w, torch.stack([one, other]), rtol=1e-11)


def test_nothing_changes_its_arguments():
    w, g, m, v = (random_gradients(1, seed=s)[0] for s in range(4))
    v = v.abs()
    before = [x.clone() for x in (w, g, m, v)]
    sgd(w, g, 0.1, 0.1), momentum_ema(w, g, m, 0.1), momentum_heavy(w, g, m, 0.1), rmsprop_step(w, g, v, 0.1)
    adam_step(w, g, m, v, 2, 0.1), adamw_step(w, g, m, v, 2, 0.1, 0.1), clip_global_norm([w, g], 0.1)
    assert all(torch.equal(a, b) for a, b in zip((w, g, m, v), before, strict=True))


def test_the_bowl_has_its_curvatures_and_its_angle():
    A = bowl(25, 30)
    assert torch.allclose(torch.linalg.eigvalsh(A), torch.tensor([1.0, 25.0], dtype=torch.float64))
    flat = torch.tensor([math.cos(math.pi / 6), 0.5], dtype=torch.float64)
    assert torch.allclose(flat @ A, flat)
    path = walk(optimiser("SGD", 0.04), A, flat, 100, bottom=flat / 2)
    assert path.shape == (101, 2) and torch.allclose(path[-1] - flat / 2, flat / 2 * 0.96**100)


@pytest.mark.parametrize("kappa", [1.0, 4.0, 100.0, 1e4])
def test_the_best_heavy_ball_is_the_best_of_a_grid(kappa):
    def slowest(rate, beta):
        sizes = []
        for curvature in (1.0, kappa, (1 + kappa) / 2):
            matrix = torch.tensor([[1 + beta - rate * curvature, -beta], [1.0, 0.0]], dtype=torch.float64)
            sizes.append(float(torch.linalg.eigvals(matrix).abs().max()))
        return max(sizes)

    rate, beta = best_heavy_ball(1.0, kappa)
    assert math.isclose(slowest(rate, beta), math.sqrt(beta), abs_tol=1e-6)
    for r in (0.8, 0.95, 1.05, 1.2):
        for b in (0.9, 1.0, 1.02):
            assert slowest(rate * r, min(beta * b, 0.9999)) >= math.sqrt(beta) - 1e-6


@pytest.mark.parametrize("size", [0.0, 0.5, 1.0, 50.0])
def test_clipping_is_torchs(size):
    grads = [random_gradients(1)[0], random_gradients(1, (5,), seed=1)[0]]
    norm = torch.cat([g.flatten() for g in grads]).norm()
    grads = [g * size * 5 / norm for g in grads]
    leaves = [torch.nn.Parameter(torch.zeros_like(g)) for g in grads]
    for leaf, g in zip(leaves, grads, strict=True):
        leaf.grad = g.clone()
    torch.nn.utils.clip_grad_norm_(leaves, 5.0)
    for mine, leaf in zip(clip_global_norm(grads, 5.0), leaves, strict=True):
        assert torch.allclose(mine, leaf.grad, rtol=1e-6)  # torch adds 1e-6 to the norm


def test_schedules_are_torchs():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    parts = [
        torch.optim.lr_scheduler.LinearLR(optimizer, 1 / 10, 1.0, total_iters=9),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30),
    ]
    torchs = torch.optim.lr_scheduler.SequentialLR(optimizer, parts, milestones=[9])  # its step 0 is our step 1
    for t in range(1, 41):
        assert math.isclose(cosine(t, 0.3, 10, 40), optimizer.param_groups[0]["lr"], rel_tol=1e-9, abs_tol=1e-12)
        optimizer.step()
        torchs.step()


def test_schedules_at_their_corners():
    assert warmup(1, 2.0, 4) == 0.5 and warmup(4, 2.0, 4) == warmup(9, 2.0, 4) == 2.0
    assert cosine(40, 1.0, 10, 40) == cosine(55, 1.0, 10, 40) == 0.0
    assert wsd(5, 1.0, 10, 30, 40) == 0.5 and wsd(30, 1.0, 10, 30, 40) == 1.0
    assert wsd(35, 1.0, 10, 30, 40) == 0.5 and wsd(40, 1.0, 10, 30, 40) == wsd(50, 1.0, 10, 30, 40) == 0.0
    assert inverse_sqrt(40, 1.0, 10) == 0.5
    for t in (1, 77, 400, 401, 9000):
        assert math.isclose(noam(t, 64, 400), inverse_sqrt(t, (64 * 400) ** -0.5, 400), rel_tol=1e-14)


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: adam_step(0.0, 1.0, 0.0, 0.0, 0, 0.1), "counted from 1"),
        (lambda: optimiser("Adagrad", 0.1), "there are SGD"),
        (lambda: best_heavy_ball(2.0, 1.0), "0 < a"),
        (lambda: bowl(0.5, 0), "1 or more"),
        (lambda: clip_global_norm([torch.ones(2)], 0.0), "positive"),
        (lambda: warmup(0, 1.0, 10), "counted from 1"),
        (lambda: warmup(1, 1.0, 0), "counted from 1"),
        (lambda: cosine(5, 1.0, 10, 10), "after the warmup"),
        (lambda: noam(0, 512, 4000), "1 or more"),
        (lambda: wsd(1, 1.0, 10, 5, 20), "warm ≤ fall < end"),
    ],
    ids=["adam", "optimiser", "heavy", "bowl", "clip", "step", "warm", "cosine", "noam", "wsd"],
)
def test_bad_input_is_refused_with_what_to_do(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "optimisers_and_schedules.js").read_text().split("export default")[0]
    cases = [
        {"angle": 0, "rate": 0.04, "beta": 0.9, "adam_rate": 0.1},
        {"angle": 45, "rate": 0.076, "beta": 0.5, "adam_rate": 0.31},
        {"angle": 17, "rate": 0.1, "beta": 0.0, "adam_rate": 0.02},
        {"angle": 90, "rate": 0.011, "beta": 0.98, "adam_rate": 0.5},
    ]
    script = f"{(widgets.HERE / 'library.js').read_text()}{source}\nconst cases = {json.dumps(cases)};\n"
    script += "const losses = (s) => RUNNERS.map(([rule]) => lossesOf(pathOf(rule, s), s.angle));\n"
    script += "console.log(JSON.stringify(cases.map((s) => [losses(s), said(s)])));"
    told = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for case, (losses, text) in zip(cases, told, strict=True):
        widget = OptimiserRace(**case)
        for mine, theirs in zip(widget.losses().values(), losses, strict=True):
            assert torch.allclose(torch.tensor(theirs, dtype=torch.float64), mine, rtol=1e-7, atol=1e-12)
        assert text == widget.describe()


def test_the_widget_says_when_a_walk_flies_apart():
    assert "plain descent with rate 0.100 has flown apart" in OptimiserRace(rate=0.1).describe()
