"""The evidence behind the formulas of ch05_multi_head."""

import math

import pytest
import sympy as sp
import torch
from scipy.stats import binomtest
from torch.utils.flop_counter import FlopCounterMode

from course import data
from course.multi_head import HeadsOnly, head_ablation, head_parts, induction_score, mha, mha_cost, next_token_loss, said_twice


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def layer_of(seed, T, d_model):
    return normal(2, T, d_model, seed=seed), *(normal(d_model, d_model, seed=seed + k) for k in (1, 2, 3, 4))


# ---------------------------------------------------------------- the formula


@pytest.mark.receipt("ch05-head", "computed")
@pytest.mark.receipt("ch05-multi-head", "computed")
@pytest.mark.receipt("ch05-at-once", "computed")
def test_the_layer_is_torchs():
    """nn.MultiheadAttention stores the transposed matrices of query, key and value under one another."""
    for seed, (T, d_model, H) in enumerate(((1, 4, 2), (5, 12, 3), (9, 16, 16), (7, 10, 1), (6, 24, 4))):
        x, W_q, W_k, W_v, W_o = layer_of(10 * seed, T, d_model)
        theirs = torch.nn.MultiheadAttention(d_model, H, bias=False, batch_first=True, dtype=torch.float64)
        with torch.no_grad():
            theirs.in_proj_weight.copy_(torch.cat([W_q.T, W_k.T, W_v.T]))
            theirs.out_proj.weight.copy_(W_o.T)
            expected, _ = theirs(x, x, x, attn_mask=torch.ones(T, T, dtype=torch.bool).triu(1))
        found = mha(x, W_q, W_k, W_v, W_o, H)
        error = float((found - expected).abs().max()) / float(expected.abs().max())
        assert error <= 1e-12


@pytest.mark.receipt("ch05-sum", "derived")
def test_a_layer_is_the_sum_of_its_heads():
    for H, d_head in ((2, 1), (3, 2), (2, 3)):
        heads = [sp.Matrix(2, d_head, lambda i, j, h=h: sp.Symbol(f"a{h}_{i}{j}")) for h in range(H)]
        W_o = sp.Matrix(H * d_head, H * d_head, lambda i, j: sp.Symbol(f"w{i}_{j}"))
        blocks = [W_o[h * d_head : (h + 1) * d_head, :] for h in range(H)]
        total = sum((head * block for head, block in zip(heads, blocks, strict=True)), sp.zeros(2, H * d_head))
        assert sp.simplify(sp.Matrix.hstack(*heads) * W_o - total) == sp.zeros(2, H * d_head)
    x, W_q, W_k, W_v, W_o = layer_of(3, 6, 12)
    error = float((head_parts(x, W_q, W_k, W_v, W_o, 4).sum(dim=1) - mha(x, W_q, W_k, W_v, W_o, 4)).abs().max())
    assert error <= 1e-11


@pytest.mark.receipt("ch05-slice", "erratum")
def test_every_head_reads_every_feature():
    x, W_q, *_ = layer_of(7, 3, 12)
    for feature in range(12):
        other = x.clone()
        other[..., feature] += 1.0
        moved = ((other - x) @ W_q).unflatten(-1, (4, 3)).abs().amax(dim=(0, 1, 3))  # (H,)
        assert float(moved.min()) > 0.01


# ---------------------------------------------------------------- what heads cost


@pytest.mark.receipt("ch05-params", "computed")
def test_parameters_do_not_depend_on_the_number_of_heads():
    for d_model, H in ((12, 1), (12, 4), (64, 8), (768, 12)):
        theirs = torch.nn.MultiheadAttention(d_model, H, bias=False, device="meta")
        error = abs(sum(p.numel() for p in theirs.parameters()) - 4 * d_model**2)
        assert error <= 0 and mha_cost(5, d_model, H)["parameters"] == 4 * d_model**2


@pytest.mark.receipt("ch05-products", "computed")
@pytest.mark.receipt("ch05-weights", "computed")
def test_products_and_weights_counted_one_by_one():
    for T, d_model, H in ((3, 4, 1), (3, 4, 2), (5, 6, 3), (2, 8, 8)):
        d_head, products, weights = d_model // H, 0, 0
        for _ in range(4):  # projections: T rows, d_model columns, d_model products an entry
            products += sum(d_model for _ in range(T) for _ in range(d_model))
        for _ in range(H):
            for _ in range(T):
                for _ in range(T):
                    products, weights = products + 2 * d_head, weights + 1  # a score, and a value times a weight
        found = mha_cost(T, d_model, H)
        error = abs(found["products"] - products) + abs(found["weights"] - weights)
        assert error <= 0
        assert products == 4 * T * d_model**2 + 2 * T**2 * d_model and weights == H * T**2


@pytest.mark.receipt("ch05-cheap", "erratum")
def test_heads_are_not_free():
    """torch's own layer, counted by torch's own counter; nothing is computed on the meta device."""
    T, d_model, found = 1024, 768, {}
    for H in (1, 12):
        layer = torch.nn.MultiheadAttention(d_model, H, bias=False, batch_first=True, device="meta")
        x = torch.empty(1, T, d_model, device="meta")
        with FlopCounterMode(display=False) as counter:
            _, weights = layer(x, x, x, average_attn_weights=False)
        found[H] = sum(p.numel() for p in layer.parameters()), counter.get_total_flops() // 2, weights.numel()
    assert found[1][:2] == found[12][:2] == (4 * d_model**2, 4 * T * d_model**2 + 2 * T**2 * d_model)
    assert found[12][2] == 12 * found[1][2] == 12_582_912


@pytest.mark.receipt("ch05-rank", "computed")
def test_the_scores_of_a_head_have_a_small_rank():
    for T, d_head in ((12, 1), (12, 3), (20, 8), (6, 9)):
        scores = normal(T, d_head, seed=1) @ normal(T, d_head, seed=2).T
        sizes = torch.linalg.svdvals(scores)
        beyond = float(sizes[d_head:].max()) / float(sizes[0]) if d_head < T else 0.0
        assert beyond <= 1e-14
        assert float(sizes[min(d_head, T) - 1]) > 1e-3  # random queries and keys reach the bound


# ---------------------------------------------------------------- induction


@pytest.mark.receipt("ch05-score", "computed")
def test_the_score_is_a_mean_over_places():
    for n, before in ((2, 0), (5, 3), (8, 1)):
        T = before + 2 * n
        weights = normal(3, T, T, seed=n).softmax(dim=-1)
        ids = said_twice(1, n, 20, torch.Generator().manual_seed(n), before)[0].tolist()
        for h in range(3):
            places = [(i, j + 1) for i in range(T - 1) for j in range(i) if ids[i] == ids[j]]
            expected = math.fsum(float(weights[h, i, j]) for i, j in places) / len(places)
            assert len(places) == n - 1
            assert abs(float(induction_score(weights[h], n, before)) - expected) <= 1e-14


@pytest.mark.receipt("ch05-layers", "measured")
def test_one_layer_has_no_induction_head_and_two_mostly_have():
    record = data.record("multi_head")
    assert record["mode"] == "full" and len(record["seeds"]) == 8
    best = {row["n_layers"]: sorted(max(seed["induction"][-1]) for seed in row["seeds"]) for row in record["results"]["lists"]}
    control = {row["n_layers"]: max(max(seed["control"][-1]) for seed in row["seeds"]) for row in record["results"]["lists"]}
    assert max(best[1]) < 0.35 and best[2][0] < 0.6 and best[2][1] > 0.97 and max(control.values()) < 0.2
    share = binomtest(7, 8).proportion_ci(method="wilson")
    assert (round(share.low, 2), round(share.high, 2)) == (0.53, 0.98)
    none = binomtest(0, 8).proportion_ci(method="wilson")
    assert none.high < 0.33 < share.low


# ---------------------------------------------------------------- heads removed


@pytest.mark.receipt("ch05-rise", "computed")
def test_a_removed_head_is_one_whose_rows_of_the_output_projection_are_zero():
    torch.manual_seed(0)
    model = HeadsOnly(V=11, n_layers=2, H=3, d_model=12, T_max=9).double()
    ids = torch.randint(11, (4, 9), generator=torch.Generator().manual_seed(0))
    intact, rise = next_token_loss(model, ids), head_ablation(model, ids)
    for layer in range(2):
        for h in range(3):
            kept = model.layers[layer].out.weight.detach().clone()
            with torch.no_grad():
                model.layers[layer].out.weight[:, 4 * h : 4 * h + 4] = 0.0  # torch stores W_o transposed
                expected = next_token_loss(model, ids) - intact
                model.layers[layer].out.weight.copy_(kept)
            assert abs(float(rise[layer, h]) - float(expected)) <= 1e-7


@pytest.mark.receipt("ch05-redundant", "measured")
def test_single_heads_can_be_spared_and_the_layer_cannot():
    record = data.record("multi_head")
    assert record["mode"] == "full"
    learned = [row for row in record["results"]["lists"][1]["seeds"] if row["right"]["none"] > 0.9]
    assert len(learned) == 7
    for row in learned:
        for loss in (row["loss"], row["loss_mean"]):
            single = sum(loss[f"head {h}"] - loss["none"] for h in range(4))
            assert single < 0.11 and loss["all of the last layer"] - loss["none"] > 3.7


@pytest.mark.receipt("ch05-pruned", "measured")
def test_heads_that_can_be_spared_helped_in_training():
    record = data.record("multi_head")
    text = record["results"]["text"]
    assert record["mode"] == "full" and len(text) == 5
    cut = [row["removed_in_order"][4] - row["half_from_the_start"] for row in text]
    wide = [row["half_but_twice_as_wide"] - row["intact"] for row in text]
    for numbers in (cut, wide):
        mean, half = data.interval(numbers)
        assert mean - half > 0.0
