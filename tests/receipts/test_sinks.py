"""The evidence behind the formulas of ch17_sinks."""

import math
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp
import torch
from scipy.stats import norm, pearsonr
from torch.nn import functional as F

from course import data, sinks
from course.sinks import IdleHeads, correlation, models_needed, sink_mass, softmax_plus_one, train_idle


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- weights that must go somewhere


@pytest.mark.receipt("ch17-sink-mass", "computed")
def test_sink_mass_is_the_mean_counted_one_by_one():
    for T in (10, 64, 101):
        weights = normal(2, T, T, seed=T).tril().softmax(dim=-1)
        n_skip = math.ceil(T / 10)
        for h in range(2):
            counted = [float(weights[h, i, 0]) for i in range(T) if i >= n_skip]
            error = abs(float(sink_mass(weights)[h]) - math.fsum(counted) / len(counted))
            assert error <= 1e-14


@pytest.mark.receipt("ch17-floor", "computed")
def test_no_weights_make_an_output_shorter_than_the_floor():
    tight = math.inf
    for seed in range(40):
        values, weights = normal(5, 3, seed=seed), normal(500, 5, seed=100 + seed).mul(3).softmax(dim=-1)
        u = F.normalize(values.mean(dim=0), dim=0)
        floor = float((values @ u).min())
        error = max(0.0, floor - float((weights @ values).norm(dim=-1).min()))
        assert error <= 1e-12
        tight = min(tight, float((torch.eye(5, dtype=torch.float64) @ values).norm(dim=-1).min()) - floor)
    one = torch.tensor([[2.0, 0.0], [3.0, 0.0]], dtype=torch.float64)  # on a line the floor is reached
    assert tight >= 0 and float((torch.tensor([1.0, 0.0], dtype=torch.float64) @ one).norm()) == 2.0


@pytest.mark.receipt("ch17-split", "derived")
def test_an_output_is_the_first_value_and_the_others_turned_down():
    a, v = sp.symbols("a1:5", positive=True), sp.symbols("v1:5", real=True)
    whole = sum(x * y for x, y in zip(a, v, strict=True))
    others = sum(x / (1 - a[0]) * y for x, y in zip(a[1:], v[1:], strict=True))
    assert sp.simplify(a[0] * v[0] + (1 - a[0]) * others - whole) == 0
    scores = normal(6, seed=1)
    without = scores[1:].softmax(dim=-1)
    alpha = scores.softmax(dim=-1)
    assert float((alpha[1:] / (1 - alpha[0]) - without).abs().max()) <= 1e-14  # the others as if the first key were not there


@pytest.mark.receipt("ch17-drain", "computed")
def test_a_drain_is_a_key_whose_value_is_zero():
    """torch's own attention, with one more key: its score is the logit of nothing, its value zero."""
    for seed, extra in enumerate((0.0, 2.5, -3.0)):
        query, key, value = (normal(2, 7, 4, seed=10 * seed + i) for i in range(3))
        scores = query @ key.mT / 2
        found = softmax_plus_one(scores, extra) @ value
        wide = F.pad(query, (0, 1), value=1.0), F.pad(key, (0, 1)), value
        more = F.pad(wide[1], (0, 0, 0, 1)), F.pad(value, (0, 0, 0, 1))
        more[0][:, -1, -1] = 2 * extra  # times the scale of ½
        theirs = F.scaled_dot_product_attention(wide[0], *more, scale=0.5)
        error = float((found - theirs).abs().max())
        assert error <= 1e-14


@pytest.mark.receipt("ch17-gate", "derived")
def test_a_drain_is_a_gate():
    s, none = sp.symbols("s1:5", real=True), sp.symbols("none", real=True)
    total = sum(sp.exp(x) for x in s)
    gate = 1 / (1 + sp.exp(none - sp.log(total)))
    for x in s:
        assert sp.simplify(gate * sp.exp(x) / total - sp.exp(x) / (sp.exp(none) + total)) == 0


@pytest.mark.receipt("ch17-idle", "measured")
def test_idleness_makes_the_sink_of_a_small_head():
    record = data.record("sinks_idle")
    assert record["mode"] == "full" and len(record["seeds"]) == 8

    def of(fix, share, key):
        rows = sorted((r for r in record["results"] if r["fix"] == fix and r["share"] == share), key=lambda r: r["seed"])
        return torch.tensor([r[key] for r in rows])

    grows, half = data.interval(of("BOS", 0.5, "idle place") - of("BOS", 0.1, "idle place"))
    assert grows - half > 0.4
    few, many = (data.interval(of("BOS", share, "idle place")) for share in (0.1, 0.5))
    assert few[0] + few[1] < 0.1 and many[0] - many[1] > 0.4
    more, half = data.interval(of("BOS", 0.5, "idle place") - of("BOS", 0.5, "busy place"))
    assert more - half > 0.3
    for fix, sign in (("BOS", -1), ("plus one", -1), ("gate", 1)):  # the gate that reads the token alone is no better
        mean, half = data.interval(of(fix, 0.5, "idle error") - of("no mark", 0.5, "idle error"))
        assert sign * mean - half > 0, fix
    here = train_idle(IdleHeads([("BOS", 0.1), ("BOS", 0.5)], [0, 0]), steps=300, B=24, lr=0.03)  # and once more, here
    assert float(here["idle place"][0]) < 0.2 < 0.4 < float(here["idle place"][1])


# ---------------------------------------------------------------- language models


@pytest.mark.receipt("ch17-small", "measured")
def test_no_sink_arose_in_the_small_models_and_a_drain_was_used():
    record = data.record("sinks")
    part = record["results"][0]
    assert record["mode"] == "full" and part["steps"] > 1000 and len(record["seeds"]) == 4
    T = part["d_model"] and record["settings"]["parts"][0]["T"]
    even = float(sink_mass(torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]))
    ends = {arm: [m["end"] for m in part["models"] if m["arm"] == arm] for arm in record["settings"]["arms"]}
    for arm in ("BOS", "plus one", "learned sink", "gate", "lr / 4", "lr × 3", "wd 0", "wd × 10"):
        mean, half = data.interval([end["marks"] for end in ends[arm]])
        assert mean + half < 0.03, arm
    assert max(x for end in ends["BOS"] for layer in end["heads"] for x in layer) < 0.1  # no single head hides in the mean
    mean, half = data.interval([end["marks"] - end["byte"] for end in ends["BOS"]])
    assert mean - half > 0  # and yet more than the byte after it
    for arm in ("plus one", "learned sink"):
        mean, half = data.interval([end["nothing"] for end in ends[arm]])
        assert mean - half > even, arm


@pytest.mark.receipt("ch17-cut", "measured")
def test_a_window_without_the_first_token_costs_far_more_than_one_with_it():
    rows = data.record("sinks_trained")["results"]
    assert len(rows) >= 4
    lost = data.interval([row["window"]["no first"] - row["window"]["first"] for row in rows])
    assert lost[0] - lost[1] > 0.5
    place = data.interval([row["window"]["no first"] - row["window"]["silent first"] for row in rows])
    value = data.interval([row["window"]["silent first"] - row["window"]["first"] for row in rows])
    assert place[0] - place[1] > 0 and value[0] - value[1] > 0  # the place helps, and so does the value


@pytest.mark.receipt("ch17-base", "measured")
@pytest.mark.receipt("ch17-err-independent", "erratum")
def test_sink_and_exponent_both_move_with_the_base_in_one_model():
    rows = data.record("sinks_trained")["results"]
    for key, at_least in (("sink", 0.0), ("gamma", 0.05)):
        change = data.interval([row["factors"][0][key] - row["factors"][-1][key] for row in rows])
        assert change[0] - change[1] > at_least, key
        orders = [[f[key] for f in row["factors"]] for row in rows]
        assert all(a > b for order in orders for a, b in pairwise(order)), key


# ---------------------------------------------------------------- no correlation is not independence


@pytest.mark.receipt("ch17-square", "derived")
def test_a_symmetric_number_and_its_square_are_not_correlated():
    x, c = sp.symbols("x c", positive=True)
    mean = lambda f: sp.integrate(f, (x, -c, c)) / (2 * c)  # noqa: E731
    x_ = sp.Symbol("x", positive=True)
    assert sp.simplify(mean(x_**3) - mean(x_) * mean(x_**2)) == 0
    assert sp.simplify(mean(x_**4) - mean(x_**2) ** 2) != 0  # the square does vary
    even = torch.arange(-7.0, 8.0)
    assert abs(correlation(even, even.square())[0]) <= 1e-12


@pytest.mark.receipt("ch17-fisher", "computed")
def test_the_interval_is_scipys_and_covers():
    for seed, n in enumerate((4, 9, 40)):
        x = normal(n, seed=seed)
        y = 0.6 * x + normal(n, seed=100 + seed)
        theirs = pearsonr(x.numpy(), y.numpy())
        ends = theirs.confidence_interval(0.95)
        error = max(abs(a - b) for a, b in zip(correlation(x, y), (theirs.statistic, ends.low, ends.high), strict=True))
        assert error <= 1e-6
    generator, inside = np.random.default_rng(0), 0
    for _ in range(2000):
        x = torch.from_numpy(generator.normal(size=12))
        _, low, high = correlation(x, 0.75 * x + torch.from_numpy(generator.normal(size=12)))
        inside += low <= 0.6 <= high  # 0.75 / √(1 + 0.75²)
    assert 0.94 <= inside / 2000 <= 0.96


@pytest.mark.receipt("ch17-models", "computed")
def test_so_many_models_have_the_power_that_is_promised():
    for difference, spread in ((0.016, 0.05), (0.05, 0.05), (0.02, 0.07)):
        n = models_needed(difference, spread)
        power = lambda n, d=difference, s=spread: norm.sf(norm.ppf(0.975) - d * math.sqrt(n) / s)  # noqa: E731
        error = max(0.0, 0.8 - power(n))
        assert error <= 1e-4
        assert power(n - 1) < 0.8 + 1e-4
    assert models_needed(0.016, 0.05) == 77 and sinks.models_needed(0.387 - 0.371, 0.05) == 77
