"""The reference code of chapter 5 against torch, brute force and the widget's JavaScript."""

import base64
import json
import shutil
import subprocess

import pytest
import torch
import traitlets
from torch.nn import functional as F

from course import widgets
from course.multi_head import (
    HeadsOnly,
    causal_weights,
    descend,
    head_ablation,
    head_means,
    head_parts,
    induction_score,
    merge_heads,
    mha,
    mha_cost,
    next_token_loss,
    previous_score,
    said_twice,
    split_heads,
    without,
)
from course.widgets.multi_head import KEPT, HeadCount, head_maps


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


# ---------------------------------------------------------------- the formula


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_splitting_puts_each_feature_where_it_belongs(lead):
    x = normal(*lead, 5, 12)
    heads = split_heads(x, 3)
    assert heads.shape == (*lead, 3, 5, 4)
    for h in range(3):
        assert torch.equal(heads[..., h, :, :], x[..., 4 * h : 4 * h + 4])
    assert torch.equal(merge_heads(heads), x)


@pytest.mark.parametrize("H", [0, 5, 24])
def test_heads_that_do_not_fit_say_why(H):
    with pytest.raises(ValueError, match="do not divide"):
        split_heads(torch.zeros(3, 12), H)
    with pytest.raises(ValueError, match="do not divide"):
        mha_cost(8, 12, H)


def test_weights_see_no_later_token():
    weights = causal_weights(normal(2, 6, 4), normal(2, 6, 4, seed=1))
    assert bool((weights.triu(1) == 0).all())
    assert torch.allclose(weights.sum(dim=-1), torch.ones(2, 6, dtype=torch.float64), atol=1e-14)


@pytest.mark.parametrize("H", [1, 2, 6])
def test_the_layer_is_one_attention_a_head(H):
    x, W_q, W_k, W_v, W_o = normal(2, 5, 12), *(normal(12, 12, seed=k) for k in (1, 2, 3, 4))
    d, parts = 12 // H, []
    for h in range(H):
        mine = slice(h * d, h * d + d)
        parts.append(
            F.scaled_dot_product_attention(x @ W_q[:, mine], x @ W_k[:, mine], x @ W_v[:, mine], is_causal=True) @ W_o[mine]
        )
    expected = torch.stack(parts, dim=1)  # (B, H, T, d_model)
    assert torch.allclose(head_parts(x, W_q, W_k, W_v, W_o, H), expected, atol=1e-11)
    assert torch.allclose(mha(x, W_q, W_k, W_v, W_o, H), expected.sum(dim=1), atol=1e-11)
    assert mha(x[0].float(), *(W.float() for W in (W_q, W_k, W_v, W_o)), H).dtype == torch.float32


# ---------------------------------------------------------------- the model


def tiny(n_layers=2, H=3, seed=0):
    torch.manual_seed(seed)
    return HeadsOnly(V=11, n_layers=n_layers, H=H, d_model=12, T_max=16)


def test_the_model_adds_its_layers_to_the_stream():
    model, ids = tiny(), torch.randint(11, (2, 7), generator=generator())
    x = model.token.weight[ids] + model.place.weight[:7]
    for layer in model.layers:
        x = x + mha(x, layer.query.weight.T, layer.key.weight.T, layer.value.weight.T, layer.out.weight.T, 3)
    assert torch.allclose(model(ids), x @ model.logits.weight.T, atol=1e-5)
    assert model.maps(ids).shape == (2, 2, 3, 7, 7)
    assert torch.allclose(model.maps(ids)[0], model.layers[0].weights(model.token(ids) + model.place.weight[:7]))


def test_the_loss_counts_what_comes_after_the_first_place():
    model, ids = tiny(), torch.randint(11, (2, 7), generator=generator())
    logs = model(ids).log_softmax(dim=-1)
    for first in (0, 3):
        wanted = -sum(logs[b, t, ids[b, t + 1]] for b in range(2) for t in range(first, 6)) / (2 * (6 - first))
        assert torch.allclose(next_token_loss(model, ids, first), wanted, atol=1e-5)


def test_lists_are_said_twice():
    ids = said_twice(50, 5, 12, generator(), before=4)
    assert ids.shape == (50, 14) and torch.equal(ids[:, 4:9], ids[:, 9:])
    assert all(len(set(row[:9])) == 9 for row in ids.tolist())
    with pytest.raises(ValueError, match="distinct tokens"):
        said_twice(2, 5, 8, generator(), before=4)


def test_scores_of_planted_heads():
    n, before = 5, 3
    T = before + 2 * n
    follows, same, back = (torch.eye(T).roll(shift, dims=0) for shift in (n - 1, n, 1))
    table = torch.stack([follows, same, back])
    assert induction_score(table, n, before).tolist() == [1.0, 0.0, 0.0]
    assert previous_score(table).tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="the weights are for"):
        induction_score(table, n, before + 1)


def test_two_layers_learn_the_induction_pattern():
    torch.manual_seed(0)
    model, draws = HeadsOnly(V=12, n_layers=2, H=2, d_model=32, T_max=20), generator(1)

    def loss():
        n = int(torch.randint(4, 9, (), generator=draws))
        return next_token_loss(model, said_twice(16, n, 12, draws), n)

    losses = descend(model, loss, 300, 1e-2)
    assert losses[0] > 2 and sum(losses[-20:]) / 20 < 1.0


# ---------------------------------------------------------------- heads removed


def test_removed_heads_add_nothing_or_their_mean():
    model, ids = tiny(), torch.randint(11, (4, 9), generator=generator())
    means = head_means(model, ids)
    mixed = {}
    model(ids, lambda layer, heads: mixed.setdefault(layer, heads))
    for layer in (0, 1):
        assert torch.allclose(means[layer], mixed[layer].mean(dim=(0, 2)), atol=1e-6)
        before = mixed[layer].clone()
        zeros = without([(layer, 2)])(layer, mixed[layer])
        assert not zeros[:, 2].any() and torch.equal(zeros[:, :2], mixed[layer][:, :2])
        averaged = without([(layer, 0), (1 - layer, 1)], means)(layer, mixed[layer])
        assert torch.equal(averaged[:, 0], means[layer][0].expand(4, 9, 4)) and torch.equal(averaged[:, 1:], mixed[layer][:, 1:])
        assert torch.equal(mixed[layer], before)
    assert torch.equal(model(ids, without([])), model(ids))


def test_ablation_finds_the_head_that_was_planted_to_matter():
    model, ids = tiny(), torch.randint(11, (4, 9), generator=generator())
    with torch.no_grad():
        for layer in model.layers:
            layer.out.weight.zero_()
        model.layers[1].out.weight[:, 4:8] = 3 * torch.randn(12, 4, generator=generator())
    rise = head_ablation(model, ids)
    assert rise.shape == (2, 3) and int((rise != 0).sum()) == 1 and rise[1, 1] != 0
    model.layers[1].out.weight.data.zero_()
    assert torch.equal(head_ablation(model, ids, means=head_means(model, ids)), torch.zeros(2, 3))


# ---------------------------------------------------------------- the widget


CASES = [{"heads": heads, "T": T} for heads, T in ((1, 128), (12, 1024), (64, 8192), (768, 8192), (96, 640))]


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "multi_head.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    script = f"{library}{source}\nconst cases = {json.dumps(CASES)};\n"
    script += "console.log(JSON.stringify([COUNTS, ...cases.map((c) => [cost(c), said(c)])]));"
    counts, *told = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    assert counts == [n for n in range(1, 769) if 768 % n == 0]
    for case, (found, text) in zip(CASES, told, strict=True):
        assert found == mha_cost(case["T"], 768, case["heads"])
        assert text == HeadCount(**case).describe()


@pytest.mark.parametrize("case", [{"heads": 5}, {"heads": 0}, {"T": 100}, {"T": 1000}])
def test_the_widget_refuses_what_it_cannot_show(case):
    with pytest.raises(traitlets.TraitError):
        HeadCount(**case)


def test_the_kept_heads_are_those_of_the_trained_model():
    kept, made = json.loads(KEPT.read_text(encoding="utf-8")), head_maps()
    assert kept["tokens"] == made["tokens"]
    one, other = (torch.frombuffer(bytearray(base64.b64decode(each["packed"])), dtype=torch.uint8).int() for each in (kept, made))
    assert one.shape == other.shape and int((one - other).abs().max()) <= 1
