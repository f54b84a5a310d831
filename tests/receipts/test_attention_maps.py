"""The evidence behind the formulas of ch13_attention_maps."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
import torch
from scipy.stats import spearmanr
from torch.nn import functional as F

from course import data
from course.attention_maps import (
    all_maps,
    distance_profile,
    even_mass,
    head_score,
    mean_by_distance,
    mean_by_position,
    p_of_maximum,
    previous_targets,
    ranks_agree,
    sink_mass,
    token_effects,
)
from course.model import Config
from course.multi_head import previous_score
from tests.course.test_model import ids_of, llama_of, model_of


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def causal(*shape, seed=0):
    """Random causal weights in float64, rows that sum to one."""
    weights = torch.randn(*shape, generator=generator(seed), dtype=torch.float64).exp().tril()
    return weights / weights.sum(dim=-1, keepdim=True)


def even(T):
    return torch.tril(torch.ones(T, T, dtype=torch.float64)) / torch.arange(1, T + 1)[:, None]


def planted(T, power, sink):
    """Weights that fall as distance + 1 to a power, with a share for the first key."""
    distance = (torch.arange(T)[:, None] - torch.arange(T)).clamp_min(0) + 1.0
    law = distance.double().pow(-power).tril()
    law = (1 - sink) * law / law.sum(dim=-1, keepdim=True)
    law[:, 0] += sink
    return law


# ---------------------------------------------------------------- maps and the first token


@pytest.mark.receipt("ch13-maps", "computed")
def test_maps_are_counted():
    for layers, heads, T in ((1, 2, 5), (3, 6, 9), (2, 4, 12)):
        model = model_of(Config(V=61, d_model=24 if heads != 4 else 32, n_layers=layers, n_heads=heads, n_kv_heads=2, d_ff=40))
        with torch.no_grad():
            theirs = torch.stack(llama_of(model)(ids_of(1, T), output_attentions=True).attentions)[:, 0]  # (L, H, T, T)
        error = abs(theirs.shape[0] * theirs.shape[1] - layers * heads)
        assert error <= 0 and int((theirs > 0).sum()) == layers * heads * T * (T + 1) // 2
        assert all_maps(model, ids_of(1, T)).shape == (layers, 1, heads, T, T)


@pytest.mark.receipt("ch13-sink", "computed")
def test_the_sink_is_what_a_first_value_of_one_brings():
    for seed, (T, start) in enumerate(((1, 0), (6, 0), (6, 5), (11, 3))):
        query, key = torch.randn(2, 3, T, 4, generator=generator(seed), dtype=torch.float64)
        value = torch.zeros(3, T, 1, dtype=torch.float64)
        value[:, 0] = 1.0
        brought = F.scaled_dot_product_attention(query, key, value, is_causal=True)[:, start:, 0].mean(dim=-1)
        weights = (query @ key.mT / 2).masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -torch.inf).softmax(dim=-1)
        error = float((sink_mass(weights, start) - brought).abs().max())
        assert error <= 1e-12


@pytest.mark.receipt("ch13-even", "derived")
def test_even_attention():
    for T in range(1, 13):
        rows = [[Fraction(1, i + 1) if j <= i else Fraction(0) for j in range(T)] for i in range(T)]
        assert all(sum(row) == 1 for row in rows)
        same = torch.zeros(T, T, dtype=torch.float64).masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -torch.inf)
        for start in range(T):
            exact = sum(row[0] for row in rows[start:]) / (T - start)
            difference = (sp.harmonic(T) - sp.harmonic(start)) / (T - start)
            assert sp.simplify(sp.Rational(exact.numerator, exact.denominator) - difference) == 0
            assert abs(even_mass(T, start) - exact) < 1e-12
            assert abs(float(sink_mass(same.softmax(dim=-1), start)) - exact) < 1e-12


# ---------------------------------------------------------------- position and distance


@pytest.mark.receipt("ch13-profile", "computed")
def test_a_profile_keeps_what_was_planted():
    for power in (0.0, 0.5, 0.8, 1.0, 1.3):
        for sink in (0.0, 0.4):
            found = distance_profile(planted(120, power, sink))
            expected = torch.arange(1.0, len(found) + 1, dtype=torch.float64).pow(-power)
            error = float((found / found[0] / expected - 1).abs().max())
            assert error <= 1e-12


@pytest.mark.receipt("ch13-censored", "erratum")
def test_even_attention_seems_to_decay():
    for T, power in ((64, 0.36), (256, 0.34), (1024, 0.33)):
        bent = mean_by_distance(even(T))
        x, y = np.log(np.arange(4, T // 2 + 1)), np.log(bent[4 : T // 2 + 1].numpy())
        assert bool((bent.diff() < 0).all())
        assert abs(-np.polyfit(x, y, 1)[0] - power) < 0.006 and np.corrcoef(x, y)[0, 1] ** 2 > 0.98
        for r in (0, T // 3, T - 1):
            assert abs(float(bent[r]) - sum(1 / (i + 1) for i in range(r, T)) / (T - r)) < 1e-12
        flat = distance_profile(even(T))
        assert float((flat / flat[0] - 1).abs().max()) < 1e-12


@pytest.mark.receipt("ch13-arms", "erratum")
def test_the_sink_is_the_right_arm_of_a_distance():
    T = 64
    without, sunk = planted(T, 1.0, 0.0), planted(T, 1.0, 0.4)
    near, far = mean_by_distance(without), mean_by_distance(sunk)
    assert bool((far[-16:] > 1.5 * near[-16:]).all())  # the right end rises with the sink
    assert bool((far[:2] < near[:2]).all())  # the left end does not
    assert far.argmin() < T - 16 and far[-1] > 5 * far.min()  # a second arm
    before, after = mean_by_position(without), mean_by_position(sunk)
    assert after[0] > before[0] + 0.3 and bool((after[1:] < before[1:]).all())


# ---------------------------------------------------------------- scores


@pytest.mark.receipt("ch13-score", "computed")
def test_a_score_is_a_mean_over_pairs():
    for seed, T in enumerate((2, 5, 11)):
        weights = causal(2, 3, T, T, seed=seed)
        targets = torch.tensor([-1, *(int(torch.randint(-1, i, (), generator=generator(i))) for i in range(1, T))])
        targets[-1] = 0
        pairs = [(i, int(j)) for i, j in enumerate(targets) if j >= 0]
        for layer in range(2):
            for head in range(3):
                expected = sum(float(weights[layer, head, i, j]) for i, j in pairs) / len(pairs)
                error = abs(float(head_score(weights, targets)[layer, head]) - expected)
                assert error <= 1e-12
        assert torch.allclose(head_score(weights, previous_targets(T)), previous_score(weights), atol=1e-12)


@pytest.mark.receipt("ch13-max-null", "computed")
def test_the_best_of_many_passes_as_often_as_it_should():
    """Twenty equal patterns, each in turn taken for the real one: at 5 percent exactly one of them may pass."""
    for seed in range(5):
        common = torch.randn(20, 1, generator=generator(seed), dtype=torch.float64)
        scores = torch.randn(20, 270, generator=generator(100 + seed), dtype=torch.float64) + 2 * common  # heads are alike
        passed = own = 0
        for real in range(20):
            null = torch.cat([scores[:real], scores[real + 1 :]])
            passed += bool((p_of_maximum(scores[real], null) <= 0.05).any())
            own += bool(((1 + (null >= scores[real]).sum(dim=0)) / 20 <= 0.05).any())
        error = abs(passed - 1)
        assert error <= 0 and own > 3
    independent = torch.rand(20, 270, generator=generator(7))
    alone = [
        bool(((1 + (torch.cat([independent[:k], independent[k + 1 :]]) >= independent[k]).sum(dim=0)) / 20 <= 0.05).any())
        for k in range(20)
    ]
    assert all(alone)


# ---------------------------------------------------------------- what a weight brings


@pytest.mark.receipt("ch13-effect", "derived")
def test_one_value_removed():
    for d_head, d_model in ((1, 2), (2, 2)):
        a = sp.symbols("a0:3")
        v = sp.Matrix(3, d_head, lambda i, j: sp.Symbol(f"v{i}_{j}"))
        W = sp.Matrix(d_head, d_model, lambda i, j: sp.Symbol(f"w{i}_{j}"))
        mean = (v[0, :] + v[1, :] + v[2, :]) / 3
        head = lambda values, a=a, W=W: sum((a[j] * values[j] for j in range(3)), sp.zeros(1, W.shape[0])) * W  # noqa: E731
        for j in range(3):
            rows = [v[k, :] for k in range(3)]
            changed = [mean if k == j else rows[k] for k in range(3)]
            difference = head(changed) - head(rows) - a[j] * (mean - v[j, :]) * W
            assert sp.simplify(difference) == sp.zeros(1, d_model)
    query, key, value, W_o = (
        torch.randn(*s, generator=generator(1), dtype=torch.float64) for s in ((1, 4), (6, 4), (6, 3), (3, 8))
    )
    found = token_effects((query @ key.T / 2).softmax(dim=-1)[0], value, W_o)
    for j in range(6):
        changed = value.clone()
        changed[j] = value.mean(dim=0)
        before, after = (F.scaled_dot_product_attention(query, key, each) @ W_o for each in (value, changed))
        assert abs(float((after - before).norm() - found[j])) <= 1e-12


@pytest.mark.receipt("ch13-decoy", "refuted")
def test_a_head_that_fools_its_map():
    weights = torch.tensor([0.97, 0.02, 0.01], dtype=torch.float64)
    value = torch.tensor([[0.0, 0.0], [40.0, 0.0], [-40.0, 0.0]], dtype=torch.float64)
    query, key = torch.tensor([[1.0]]).double(), weights.log()[:, None]  # torch's softmax gives these weights
    moved = []
    for j in range(3):
        changed = value.clone()
        changed[j] = value.mean(dim=0)
        before, after = (F.scaled_dot_product_attention(query, key, each) for each in (value, changed))
        moved.append(float((after - before).norm()))
    assert moved[0] == 0 and moved[1] > 0.79
    assert weights.argmax() == 0 and max(range(3), key=lambda j: moved[j]) == 1
    assert token_effects(weights, value, torch.eye(2).double()).tolist() == pytest.approx(moved, abs=1e-12)


@pytest.mark.receipt("ch13-ranks", "computed")
def test_ranks_agree_as_spearman_says():
    for seed in range(40):
        n = 3 + int(torch.randint(28, (), generator=generator(seed)))
        a, b = torch.randn(2, n, generator=generator(seed), dtype=torch.float64)
        error = abs(ranks_agree(a, b) - spearmanr(a.numpy(), b.numpy()).statistic)
        assert error <= 1e-6


# ---------------------------------------------------------------- measured in a trained model


@pytest.mark.receipt("ch13-nearness", "measured")
def test_attention_and_nearness_in_a_trained_model():
    rows = data.record("attention_maps")["results"]["tokens"]
    assert len(rows) == 10 and all(len(row["effects"]) == 20 for row in rows)
    mean, half = data.interval([row["attention"] - row["nearness"] for row in rows])
    assert mean - half < 0 < mean + half and (round(mean, 2), round(half, 2)) == (-0.03, 0.10)
    for name in ("attention", "nearness"):
        mean, half = data.interval([row[name] for row in rows])
        assert mean - half > 0
    assert sum(row["first is most attended"] for row in rows) == 9
    assert max(row["first effect over largest"] for row in rows) < 0.02
    assert all(row["effects"][0] < np.median(row["effects"][1:]) for row in rows)


@pytest.mark.receipt("ch13-at-rest", "measured")
def test_heads_at_rest_are_needed_elsewhere():
    groups = {row["group"]: row for row in data.record("attention_maps")["results"]["heads"][1:]}
    row = groups["first"]
    assert len(row["text"]["rise"]) == 6 and max(map(abs, row["text"]["rise"])) < 0.01
    assert data.interval(row["lists"]["rise"], 1) == (2.2, 0.4) and min(row["scores"]["first"]) > 0.95
    others = np.mean([row["lists"][f"control {k}"] for k in range(2)], axis=0)
    mean, half = data.interval(np.array(row["lists"]["rise"]) - others)
    assert mean - half > 1.5
    chosen = [tuple(head) for each in groups.values() for head in each["heads"]]
    assert len(set(chosen)) == 12  # no head in two groups
