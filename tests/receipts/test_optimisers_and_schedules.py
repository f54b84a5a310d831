"""Evidence for the formulas of f07_optimisers_and_schedules."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
import torch

from course.optimisers_and_schedules import (
    adam_l2_step,
    adam_step,
    adamw_step,
    best_heavy_ball,
    cosine,
    inverse_sqrt,
    momentum_ema,
    momentum_heavy,
    noam,
    optimiser,
    rmsprop_step,
    warmup,
    wsd,
)

SHAPE = (3, 4)


def gradients(steps=30, seed=0, size=1.0):
    return torch.from_numpy(np.random.default_rng(seed).normal(scale=size, size=(steps, *SHAPE)))


def worst(step, torchs, steps=30):
    """The largest difference between a rule's path and that of a torch optimiser, on the same gradients."""
    grads = gradients(steps)
    w, leaf = grads[0] - 2, (grads[0] - 2).clone().requires_grad_(True)
    theirs, gap = torchs(leaf), 0.0
    for t, g in enumerate(grads, start=1):
        w = step(w, g, t)
        leaf.grad = g.clone()
        theirs.step()
        gap = max(gap, float((w - leaf).detach().abs().max()))
    return gap


def remembering(rule, count, *args, **kwargs):
    """`step(w, g, t)` of a rule that carries `count` memories and may want t."""
    memory = [0.0] * count

    def step(w, g, t):
        nonlocal memory
        w, *memory = rule(w, g, *memory, *((t,) if count == 2 else ()), *args, **kwargs)
        return w

    return step


def zero(expression) -> bool:
    return sp.simplify(expression) == 0


# ---------------------------------------------------------------- momentum


@pytest.mark.receipt("f07-momentum-mean", "computed")
def test_momentum_mean():
    grads, m = gradients(), 0.0
    for t, g in enumerate(grads, start=1):
        _, m = momentum_ema(torch.zeros(SHAPE, dtype=g.dtype), g, m, 1.0, beta=0.8)
        by_hand = sum(0.2 * 0.8 ** (t - s) * grads[s - 1] for s in range(1, t + 1))
        assert float((m - by_hand).abs().max()) <= 1e-14
    exact = sum((1 - Fraction(9, 10)) * Fraction(9, 10) ** k for k in range(50))
    assert exact == 1 - Fraction(9, 10) ** 50  # the weights of 50 gradients


@pytest.mark.receipt("f07-momentum", "computed")
def test_momentum_step():
    """With β = 0 it is torch's plain descent, else torch's heavy ball with 1 − β times the rate."""
    for beta in (0.0, 0.9):
        torchs = lambda leaf, beta=beta: torch.optim.SGD([leaf], lr=0.3 * (1 - beta), momentum=beta)  # noqa: E731
        assert worst(remembering(momentum_ema, 1, 0.3, beta=beta), torchs) <= 1e-12


@pytest.mark.receipt("f07-heavy", "computed")
def test_heavy_ball():
    torchs = lambda leaf: torch.optim.SGD([leaf], lr=0.05, momentum=0.9)  # noqa: E731
    assert worst(remembering(momentum_heavy, 1, 0.05), torchs) <= 1e-12


@pytest.mark.receipt("f07-steady", "derived")
def test_steady():
    beta, g = sp.symbols("beta g", positive=True)
    t = sp.Symbol("t", integer=True, positive=True)
    for closed, fresh in [((1 - beta**t) * g, (1 - beta) * g), ((1 - beta**t) / (1 - beta) * g, g)]:
        assert closed.subs(t, 0) == 0
        assert zero(beta * closed + fresh - closed.subs(t, t + 1))  # one step more, from any step
    for rule, steady in [(momentum_ema, 1.0), (momentum_heavy, 10.0)]:
        w, m = 0.0, 0.0
        for _ in range(400):
            before = w
            w, m = rule(w, 1.0, m, 1.0)
        assert abs((before - w) - steady) <= 1e-9


@pytest.mark.receipt("f07-forms", "derived")
def test_forms():
    beta, eta = sp.symbols("beta eta", positive=True)
    ema = heavy = w_ema = w_heavy = sp.Integer(0)
    for g in sp.symbols("g1:6"):
        ema, heavy = beta * ema + (1 - beta) * g, beta * heavy + g
        w_ema, w_heavy = w_ema - eta * ema, w_heavy - (1 - beta) * eta * heavy
        assert sp.expand(w_ema - w_heavy) == 0
    grads = gradients(200)
    paths = []
    for rule, rate in [(momentum_ema, 0.5), (momentum_heavy, 0.05)]:
        w, m = torch.zeros(SHAPE, dtype=torch.float64), 0.0
        for g in grads:
            w, m = rule(w, g, m, rate)
        paths.append(w)
    assert float((paths[0] - paths[1]).abs().max()) <= 1e-12


@pytest.mark.receipt("f07-polyak", "derived")
def test_polyak():
    a, s, x = sp.symbols("a s x", positive=True)  # s is the root of κ
    b = s**2 * a
    eta, beta = 4 / (sp.sqrt(a) + s * sp.sqrt(a)) ** 2, ((s - 1) / (s + 1)) ** 2
    for curvature, root in [(a, (s - 1) / (s + 1)), (b, -(s - 1) / (s + 1))]:
        characteristic = x**2 - (1 + beta - eta * curvature) * x + beta
        assert zero(characteristic - (x - root) ** 2)  # a double root of size √β at both ends
    more, u = sp.symbols("q u", positive=True)  # s = 1 + q; curvature a + (b − a) u / (1 + u): any between the ends
    curvature = a + (b - a) * u / (1 + u)
    discriminant = ((1 + beta - eta * curvature) ** 2 - 4 * beta).subs(s, 1 + more)
    assert sp.factor(discriminant).is_negative  # complex roots, whose product is β
    r, ratio = sp.symbols("r p", positive=True)  # p = β/r; both roots within r: β ≤ r², |1 + β − ηλ| ≤ r + β/r at a and at b
    served = (1 + r) * (1 + ratio) / ((1 - r) * (1 - ratio))  # the largest ηb over the smallest ηa: the largest κ
    low, high = 1 + r * ratio - r - ratio, 1 + r * ratio + r + ratio
    assert zero(high / low - served) and zero(sp.diff(served, ratio) - 2 * (1 + r) / ((1 - r) * (1 - ratio) ** 2))  # grows with β
    assert zero(served.subs(ratio, r) - ((1 + r) / (1 - r)) ** 2)
    assert zero(((1 + r) / (1 - r)).subs(r, (s - 1) / (s + 1)) - s)  # so the smallest r for κ = s² is √β


@pytest.mark.receipt("f07-nesterov", "computed")
def test_nesterov():
    """torch keeps the point at which the gradient is taken."""
    A = gradients(1, seed=3)[0]
    slope = lambda w: torch.tanh(w) + 0.1 * w * A**2  # noqa: E731
    w = gradients(1, seed=4)[0]
    leaf, m = w.clone().requires_grad_(True), torch.zeros(SHAPE, dtype=torch.float64)
    theirs = torch.optim.SGD([leaf], lr=0.2, momentum=0.9, nesterov=True)
    for _ in range(40):
        looked_at = w - 0.2 * 0.9 * m
        assert float((looked_at - leaf).detach().abs().max()) <= 1e-12
        m = 0.9 * m + slope(looked_at)
        w = w - 0.2 * m
        leaf.grad = slope(leaf.detach())
        theirs.step()


def test_the_heavy_ball_can_go_round_for_ever():
    """Lessard, Recht and Packard: a smooth, strongly convex loss of one number, with curvatures from 1 to 25."""
    slope = lambda x: 25 * x if x < 1 else x + 24 if x < 2 else 25 * x - 24  # noqa: E731
    rate, beta = best_heavy_ball(1, 25)
    ends = {}
    for name, ahead, eta, keep in (("heavy ball", 0.0, rate, beta), ("Nesterov", 1.0, 1 / 25, (5 - 1) / (5 + 1))):
        w, m, path = 3.3, 0.0, []
        for _ in range(2000):
            m = keep * m + slope(w - ahead * eta * keep * m)
            w -= eta * m
            path.append(w)
        ends[name] = max(abs(x) for x in path[-10:])
    assert ends["heavy ball"] > 0.5 and ends["Nesterov"] < 1e-12


# ---------------------------------------------------------------- a rate for each parameter


@pytest.mark.receipt("f07-rms", "computed")
def test_rmsprop():
    torchs = lambda leaf: torch.optim.RMSprop([leaf], lr=0.01, alpha=0.99)  # noqa: E731
    assert worst(remembering(rmsprop_step, 1, 0.01), torchs) <= 1e-12


def adams(**changed):
    return lambda leaf: torch.optim.Adam([leaf], lr=0.01, **changed)


def memories_of(torchs, steps=30, beta2=0.999):
    """Our averages after some steps, and torch's."""
    grads = gradients(steps)
    leaf = torch.zeros(SHAPE, dtype=torch.float64, requires_grad=True)
    theirs, w, m, v = torchs(leaf), torch.zeros(SHAPE, dtype=torch.float64), 0.0, 0.0
    for t, g in enumerate(grads, start=1):
        leaf.grad = g.clone()
        theirs.step()
        w, m, v = adam_step(w, g, m, v, t, 0.01, beta2=beta2)
    state = theirs.state[leaf]
    return (m, state["exp_avg"]), (v, state["exp_avg_sq"])


@pytest.mark.receipt("f07-first-moment", "computed")
def test_first_moment():
    mine, theirs = memories_of(adams())[0]
    assert float((mine - theirs).abs().max()) <= 1e-14


@pytest.mark.receipt("f07-second-moment", "computed")
def test_second_moment():
    mine, theirs = memories_of(adams())[1]
    assert float((mine - theirs).abs().max()) <= 1e-14
    v = 0.0
    for _ in range(20_000):
        v = 0.999 * v + 0.001 * 9.0  # a gradient that never changes
    assert abs(v - 9.0) <= 1e-6


@pytest.mark.receipt("f07-adam", "computed")
def test_adam():
    assert worst(remembering(adam_step, 2, 0.01), adams()) <= 1e-13
    for size in (1e-6, 1e4):  # small and large gradients
        grads, w = gradients(20, size=size), torch.zeros(SHAPE, dtype=torch.float64)
        leaf, step = w.clone().requires_grad_(True), optimiser("Adam", 0.01)
        theirs = adams()(leaf)
        for g in grads:
            w = step(w, g)
            leaf.grad = g.clone()
            theirs.step()
        assert float((w - leaf).detach().abs().max()) <= 1e-12


@pytest.mark.receipt("f07-hat", "derived")
def test_hat():
    """The weights of the gradients sum to 1 after the correction, so that the mean of equal means is that mean."""
    beta, t = sp.Symbol("beta", positive=True), sp.Symbol("t", integer=True, positive=True)
    assert zero((1 - beta) - (1 - beta**1))  # the one weight of t = 1
    assert zero(beta * (1 - beta**t) + (1 - beta) - (1 - beta ** (t + 1)))  # a step fades all weights and adds a new one
    grads, m = gradients(), 0.0
    for t, g in enumerate(grads, start=1):
        _, m, _ = adam_step(torch.zeros(SHAPE, dtype=g.dtype), g, m, 0.0, t, 1.0)
    by_hand = sum(0.9 ** (30 - s) * grads[s - 1] for s in range(1, 31)) / sum(0.9 ** (30 - s) for s in range(1, 31))
    assert float((m / (1 - 0.9**30) - by_hand).abs().max()) <= 1e-14


@pytest.mark.receipt("f07-first", "derived")
def test_first_step():
    eta, eps, b1, b2, size = sp.symbols("eta epsilon beta1 beta2 g", positive=True)
    m, v = (1 - b1) * size, (1 - b2) * size**2
    step = eta * (m / (1 - b1)) / (sp.sqrt(v / (1 - b2)) + eps)
    assert zero(step - eta * size / (size + eps))
    for g in (1e-3, 1.0, -1.0, 1e3):
        assert abs(abs(adam_step(0.0, g, 0.0, 0.0, 1, 0.1)[0]) - 0.1) <= 1.1e-6  # ε / |g| of it


@pytest.mark.receipt("f07-raw", "derived")
def test_uncorrected_first_step():
    eta, size, a, b = sp.symbols("eta g a b", positive=True)  # a = 1 − β₁, b = 1 − β₂
    assert zero(eta * a * size / sp.sqrt(b * size**2) - eta * a / sp.sqrt(b))
    for beta2, wanted in ((0.999, 3.1623), (0.95, 0.4472)):
        (m, _), (v, _) = memories_of(adams(betas=(0.9, beta2)), steps=1, beta2=beta2)
        assert abs(float((m.abs() / v.sqrt()).mean()) - wanted) <= 5e-5


# ---------------------------------------------------------------- decay


@pytest.mark.receipt("f07-sgd-decay", "derived")
def test_sgd_decay():
    w, g, eta, lam = sp.symbols("w g eta lambda", real=True)
    assert sp.expand(w - eta * (g + lam * w) - ((1 - eta * lam) * w - eta * g)) == 0
    torchs = lambda leaf: torch.optim.SGD([leaf], lr=0.3, weight_decay=0.2)  # noqa: E731
    assert worst(lambda w, g, t: (1 - 0.3 * 0.2) * w - 0.3 * g, torchs) <= 1e-12
    with_momentum = lambda leaf: torch.optim.SGD([leaf], lr=0.3, weight_decay=0.2, momentum=0.9)  # noqa: E731
    heavy = remembering(momentum_heavy, 1, 0.3)
    assert worst(lambda w, g, t: heavy(w, g, t) - 0.3 * 0.2 * w, with_momentum) > 0.1  # there they differ


@pytest.mark.receipt("f07-l2", "computed")
def test_adam_with_l2():
    assert worst(remembering(adam_l2_step, 2, 0.01, 0.2), adams(weight_decay=0.2)) <= 1e-12


@pytest.mark.receipt("f07-adamw", "computed")
def test_adamw():
    torchs = lambda leaf: torch.optim.AdamW([leaf], lr=0.01, weight_decay=0.2)  # noqa: E731
    assert worst(remembering(adamw_step, 2, 0.01, 0.2), torchs) <= 1e-13


@pytest.mark.receipt("f07-adam-l2", "derived")
def test_adam_l2():
    w, eta, lam, m_hat, v_hat, eps = sp.symbols("w eta lambda mhat vhat epsilon", positive=True)
    step = eta * m_hat / (sp.sqrt(v_hat) + eps)
    assert sp.expand((w - step - eta * lam * w) - ((1 - eta * lam) * w - step)) == 0
    ends = {}
    for rule in ("Adam + L2", "AdamW"):
        w, step = torch.ones(2, dtype=torch.float64), optimiser(rule, 0.01, decay=0.1)
        for t in range(500):
            w = step(w, (-1) ** t * torch.tensor([10.0, 0.01], dtype=torch.float64))
        ends[rule] = w.tolist()
    assert np.abs(np.array(ends["Adam + L2"]) - [0.9346, 0.0001]).max() <= 5e-5
    assert np.abs(np.array(ends["AdamW"]) - 0.5958).max() <= 5e-5


# ---------------------------------------------------------------- schedules


@pytest.mark.receipt("f07-warmup", "computed")
def test_warmup():
    leaf = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([leaf], lr=0.3)
    torchs = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / 25, 1.0, total_iters=24)
    for t in range(1, 60):
        assert abs(warmup(t, 0.3, 25) - optimizer.param_groups[0]["lr"]) <= 1e-12
        optimizer.step()
        torchs.step()


@pytest.mark.receipt("f07-floor", "derived")
def test_noise_floor():
    eta, a, sigma, V = sp.symbols("eta a sigma V", positive=True)
    (found,) = sp.solve(sp.Eq(V, (1 - eta * a) ** 2 * V + eta**2 * sigma**2), V)
    assert zero(found - eta * sigma**2 / (a * (2 - eta * a)))
    w, noise = torch.zeros(4000, dtype=torch.float64), torch.Generator().manual_seed(1)
    for _ in range(300):
        w = w - 0.05 * (10 * w + 2 * torch.randn(4000, generator=noise, dtype=torch.float64))
    spread = 5 * math.sqrt(2 / 4000)  # five standard deviations of a mean of 4000 squares, relative
    assert abs(float((w**2).mean()) / (0.05 * 4 / (10 * 1.5)) - 1) <= spread


@pytest.mark.receipt("f07-cosine", "computed")
def test_cosine():
    leaf = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([leaf], lr=0.3)
    torchs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=90)
    for t in range(10, 101):
        assert abs(cosine(t, 0.3, 10, 100) - optimizer.param_groups[0]["lr"]) <= 1e-12
        optimizer.step()
        torchs.step()
    plain = lambda t: 0.15 * (1 + math.cos(math.pi * (t - 10) / 90))  # noqa: E731
    assert abs(plain(190) - 0.3) <= 1e-12 and cosine(190, 0.3, 10, 100) == 0.0  # beyond the end the formula rises


@pytest.mark.receipt("f07-root", "computed")
def test_root():
    for t in (100, 101, 400, 10_000):
        assert abs(inverse_sqrt(4 * t, 0.3, 100) - inverse_sqrt(t, 0.3, 100) / 2) <= 1e-15
    assert abs(inverse_sqrt(100, 0.3, 100) - warmup(100, 0.3, 100)) <= 1e-16


@pytest.mark.receipt("f07-noam", "computed")
def test_noam():
    for t in (1, 10, 1999, 2000):
        assert abs(noam(2 * t, 512, 4000) / noam(t, 512, 4000) - 2) <= 1e-14
    for t in (4000, 4001, 100_000):
        assert abs(noam(4 * t, 512, 4000) / noam(t, 512, 4000) - 0.5) <= 1e-14
        assert abs(noam(t, 2048, 4000) / noam(t, 512, 4000) - 0.5) <= 1e-14
    assert max(range(1, 20_000), key=lambda t: noam(t, 512, 4000)) == 4000
    assert abs(noam(4000, 512, 4000) - 6.99e-4) <= 5e-7


@pytest.mark.receipt("f07-noam-peak", "derived")
def test_noam_peak():
    d, warm, t = sp.symbols("d w t", positive=True)
    rising, falling = t * warm ** sp.Rational(-3, 2) / sp.sqrt(d), 1 / sp.sqrt(d * t)
    assert zero(rising.subs(t, warm) - falling.subs(t, warm)) and zero(falling.subs(t, warm) - 1 / sp.sqrt(d * warm))
    assert sp.diff(rising, t).is_positive and sp.diff(falling, t).is_negative  # so the peak is where they meet


@pytest.mark.receipt("f07-wsd", "computed")
def test_wsd():
    knots = [0, 10, 80, 100, 200], [0.0, 0.3, 0.3, 0.0, 0.0]
    for t in range(1, 150):
        assert abs(wsd(t, 0.3, 10, 80, 100) - np.interp(t, *knots)) <= 1e-15


# ---------------------------------------------------------------- errors of the sources


@pytest.mark.receipt("f07-err-ema", "computed")
def test_the_ema_form_does_not_speed_up():
    beta, longest = Fraction(9, 10), {}
    for signs in itertools.product((1, -1), repeat=12):
        m, steps = Fraction(0), []
        for g in signs:
            m = beta * m + (1 - beta) * g
            steps.append(abs(m))
        longest[signs] = max(steps)
    assert max(longest.values()) == longest[(1,) * 12] == 1 - beta**12 < 1  # never as long as plain descent's step of 1
    _, first = momentum_ema(0.0, 1.0, 0.0, 1.0)
    assert abs(first - 0.1) <= 1e-15


@pytest.mark.receipt("f07-err-v", "computed")
def test_v_is_not_a_variance():
    v, g = 0.0, 3.0
    for t in range(1, 20_001):
        _, _, v = adam_step(0.0, g, 0.0, v, t, 0.0)
    assert abs(v - g**2) <= 1e-6  # while the variance of a constant is 0


@pytest.mark.receipt("f07-err-cautious", "computed")
def test_the_first_step_is_a_full_one():
    for g in (1e-3, 0.1, 10.0, 1e3):
        steps, w, m, v = [], 0.0, 0.0, 0.0
        for t in range(1, 51):
            before = w
            w, m, v = adam_step(w, g, m, v, t, 1.0)
            steps.append(before - w)
        assert max(abs(s - 1) for s in steps) <= 1.1e-5  # the first is as long as the fiftieth
    noise, leaf = torch.Generator().manual_seed(5), torch.zeros(4000, dtype=torch.float64, requires_grad=True)
    theirs = torch.optim.Adam([leaf], lr=1.0)
    for _ in range(1000):
        leaf.grad, before = torch.randn(4000, generator=noise, dtype=torch.float64), leaf.detach().clone()
        theirs.step()
    size = float((leaf.detach() - before).square().mean().sqrt())
    assert abs(size / math.sqrt(0.1 / 1.9) - 1) <= 0.03  # more than four times shorter than the first


def test_099_is_less_than_0999():
    """A β₂ that goes from 0.99 to 0.999 increases, and remembers ten times as long."""
    assert Fraction(99, 100) < Fraction(999, 1000)
    assert 1 / (1 - Fraction(999, 1000)) == 10 / (1 - Fraction(99, 100))
