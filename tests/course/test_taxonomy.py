"""The reference code of ch18 against independent oracles."""

import json
import math
import shutil
import subprocess

import pytest
import torch
import traitlets
from torch.nn import functional as F

from course import looks, taxonomy, widgets
from course.taxonomy import MECHANISMS, RecallModels, recall_batch, train_recall
from course.widgets.taxonomy import MEMORIES, Taxonomy


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def torchs(query, key, value, **how):
    return F.scaled_dot_product_attention(query, key, value, **how)


# ---------------------------------------------------------------- against plain attention


@pytest.mark.parametrize("T, block", [(1, 1), (1, 5), (7, 3), (16, 4), (20, 64)])
def test_tiles_are_attention(T, block):
    query, key, value = normal(2, 3, T, 4, seed=T), normal(2, 3, T, 4, seed=50), normal(2, 3, T, 5, seed=51)
    out = taxonomy.tiled_attention(30 * query, key, value, block)
    assert out.shape == (2, 3, T, 5) and torch.allclose(out, torchs(30 * query, key, value, is_causal=True), atol=1e-12)
    half = taxonomy.tiled_attention(query.float(), key.float(), value.float(), block)
    assert half.dtype == torch.float32 and torch.allclose(half.double(), torchs(query, key, value, is_causal=True), atol=1e-5)


@pytest.mark.parametrize("T, window", [(1, 1), (6, 1), (9, 4), (9, 9), (9, 30)])
def test_a_window_is_attention_with_a_mask(T, window):
    query, key, value = normal(2, T, 4), normal(2, T, 4, seed=1), normal(2, T, 3, seed=2)
    back = torch.arange(T)[:, None] - torch.arange(T)
    expected = torchs(query, key, value, attn_mask=(back >= 0) & (back < window))
    assert torch.allclose(taxonomy.windowed_attention(query, key, value, window), expected, atol=1e-12)


def test_sparse_attention_keeps_the_largest_scores():
    query, key, value = normal(3, 8, 4), normal(3, 8, 4, seed=1), normal(3, 8, 2, seed=2)
    whole = torchs(query, key, value, is_causal=True)
    for keep in (8, 20):
        assert torch.allclose(taxonomy.sparse_attention(query, key, value, keep), whole, atol=1e-12)
    one = taxonomy.sparse_attention(query, key, value, 1)
    scores = (query @ key.mT).masked_fill(torch.ones(8, 8, dtype=torch.bool).triu(1), -math.inf)
    assert torch.equal(one, value.gather(1, scores.argmax(dim=-1)[..., None].expand(-1, -1, 2)))
    mask = torch.zeros(8, 8, dtype=torch.bool)
    mask[7, scores[0, 7].topk(3).indices] = True
    mask[:7, 0] = True
    two = torchs(query[:1], key[:1], value[:1], attn_mask=mask)
    assert torch.allclose(taxonomy.sparse_attention(query, key, value, 3)[0, 7], two[0, 7], atol=1e-12)


def test_low_rank_attention_with_the_identity_is_attention():
    query, key, value = normal(2, 5, 4), normal(2, 7, 4, seed=1), normal(2, 7, 3, seed=2)
    same = taxonomy.low_rank_attention(query, key, value, torch.eye(7, dtype=torch.float64))
    assert torch.allclose(same, torchs(query, key, value), atol=1e-12)
    share = torch.full((1, 7), 1 / 7, dtype=torch.float64)  # one mixture: every query gets the mean
    mean = value.mean(dim=1, keepdim=True).expand(-1, 5, -1)
    assert torch.allclose(taxonomy.low_rank_attention(query, key, value, share), mean, atol=1e-12)


@pytest.mark.parametrize("window", [0, 3, 12])
def test_a_hybrid_layer_is_an_average_with_two_kinds_of_weights(window):
    query, key, value = normal(12, 4), normal(12, 4, seed=1), normal(12, 2, seed=2)
    out = taxonomy.hybrid_attention(query, key, value, window)
    for i in range(12):
        weights = []
        for j in range(i + 1):
            features = [torch.where(x > 0, x + 1, x.exp()) for x in (query[i], key[j])]
            weights.append(float((query[i] @ key[j] / 2).exp()) if i - j < window else float(features[0] @ features[1]))
        mean = sum(w * value[j] for j, w in enumerate(weights)) / sum(weights)
        assert torch.allclose(out[i], mean, atol=1e-12)


def test_a_hybrid_layer_bears_scores_in_the_thousands():
    query, value = 80 * normal(9, 4), normal(9, 2, seed=2)
    out = taxonomy.hybrid_attention(query, query, value, 9)
    assert torch.allclose(out, torchs(query, query, value, is_causal=True), atol=1e-12)
    assert taxonomy.hybrid_attention(query, query, value, 3).isfinite().all()


@pytest.mark.parametrize("f", [taxonomy.tiled_attention, taxonomy.windowed_attention, taxonomy.sparse_attention])
def test_nothing_to_look_at_is_refused(f):
    with pytest.raises(ValueError, match="got 0"):
        f(*normal(3, 4, 2), 0)


# ---------------------------------------------------------------- two forms of one function


@pytest.mark.parametrize("lead, T", [((), 1), ((), 9), ((2, 3), 6)])
def test_scan_and_matrix_agree_with_a_loop_over_pairs(lead, T):
    decay = torch.rand(*lead, T, generator=torch.Generator().manual_seed(T), dtype=torch.float64)
    decay[..., T // 2] = 0.0
    query, key, value = normal(*lead, T, 3), normal(*lead, T, 3, seed=1), normal(*lead, T, 4, seed=2)
    expected = torch.zeros(*lead, T, T, dtype=torch.float64)
    for i in range(T):
        for j in range(i + 1):
            expected[..., i, j] = (query[..., i, :] * key[..., j, :]).sum(-1) * decay[..., j + 1 : i + 1].prod(dim=-1)
    assert torch.allclose(taxonomy.ssm_matrix(decay, query, key), expected, atol=1e-12)
    assert torch.allclose(taxonomy.ssm_scan(decay, query, key, value), expected @ value, atol=1e-12)


def test_the_matrix_survives_long_texts():
    decay, ones = torch.full((900,), 0.1, dtype=torch.float64), torch.ones(900, 1, dtype=torch.float64)
    made = taxonomy.ssm_matrix(decay, ones, ones)
    assert torch.allclose(made.diagonal(-2), torch.full((898,), 0.01, dtype=torch.float64)) and not made.isnan().any()


def test_the_delta_rule_gives_back_what_was_written_last():
    key = torch.eye(4, dtype=torch.float64)[[0, 1, 0, 2, 1]]
    value, ones = normal(5, 3), torch.ones(5, dtype=torch.float64)
    for form in (taxonomy.delta_rule, taxonomy.delta_product):
        out = form(ones, key[[0, 0, 0, 0, 0]], key, value)  # always ask for the first key
        assert torch.allclose(out, value[[0, 0, 2, 2, 2]], atol=1e-12)


def test_costs_count_what_tensors_hold():
    made = taxonomy.costs(100, H=2, d=8, kv=1, window=10, keep=5, latent=8, turned=4, full=2)
    cache = [torch.empty(2, 100, 8), torch.empty(2, 100, 8)]
    assert made["attention"] == (sum(x.numel() for x in cache), 2 * 2 * 2 * 100 * 8)
    assert made["grouped"] == made["one key head"] == (1600, made["attention"][1])
    assert made["windowed"] == (320, 640) and made["latent"] == (1200, 8000) and made["delta rule"] == (128, 768)
    assert made["hybrid"] == ((3200 + 128) / 2, (6400 + 768) / 2)
    assert taxonomy.costs(4, H=2, d=8, window=10)["windowed"] == taxonomy.costs(4, H=2, d=8)["attention"]


# ---------------------------------------------------------------- recall


@pytest.mark.parametrize("task", taxonomy.TASKS)
def test_answers_follow_from_what_was_said(task):
    keys, said, answers = recall_batch(task, 5, (3, 4), torch.Generator().manual_seed(1))
    T = 10 if task == "recall" else 15
    assert keys.shape == said.shape == (3, 4, T) and answers.shape == (3, 4, 5)
    for text, sayings, wanted in zip(
        keys.flatten(0, 1).tolist(), said.flatten(0, 1).tolist(), answers.flatten(0, 1).tolist(), strict=True
    ):
        known = {}
        for key, word in zip(text[:-5], sayings[:-5], strict=True):
            known[key] = 1 - known[key] if word == taxonomy.FLIP else word
        assert len(known) == 5 and sorted(known) == sorted(text[-5:]) and set(sayings[-5:]) == {taxonomy.ASK}
        assert [known[key] for key in text[-5:]] == wanted


@pytest.mark.parametrize("task, n", [("guess", 4), ("recall", 0), ("recall", 65)])
def test_a_task_that_there_is_not(task, n):
    with pytest.raises(ValueError, match="a task of"):
        recall_batch(task, n, (1,), torch.Generator())


def test_mechanisms_of_one_seed_begin_alike_and_mix_as_the_module_does():
    models = {m: RecallModels(m, 4, [3, 5], dtype=torch.float64) for m in MECHANISMS}
    first = models["attention"].weights
    assert all(torch.equal(first[name], each.weights[name]) for each in models.values() for name in first)
    x = normal(2, 2, 9, RecallModels.width)
    qkv = torch.einsum("gbtd,gde->gbte", x, first["qkv"])
    query, key = (F.normalize(qkv[..., i : i + 4], dim=-1) for i in (0, 4))
    value, half = qkv[..., 8:], torch.full((2, 2, 9), 0.5, dtype=torch.float64)
    with torch.no_grad():
        mixed = {m: each.mix(x) for m, each in models.items()}
    expected = {
        "linear": taxonomy.ssm_scan(2 * half, query, key, value),
        "gated": taxonomy.ssm_scan(torch.full_like(half, 1 / (1 + math.exp(-4))), query, key, value),
        "delta": taxonomy.delta_rule(half, query, key, value),
        "delta to 2": taxonomy.delta_rule(2 * half, query, key, value),
    }
    back = torch.arange(9)[:, None] - torch.arange(9)
    bias = (-math.log1p(math.exp(-4)) * back).double()
    for name, window in (("attention", 9), ("window", 2)):
        mask = bias.masked_fill((back < 0) | (back >= window), -math.inf)
        expected[name] = torchs(query, key, value, attn_mask=mask, scale=8.0)
    for name, out in expected.items():
        assert torch.allclose(mixed[name], out, atol=1e-12), name


def test_a_mechanism_that_there_is_not():
    with pytest.raises(ValueError, match="a mechanism is one of"):
        RecallModels("memory", 4, [0])


def test_training_helps_and_seeds_are_shared():
    rates = torch.full((2,), 0.02, dtype=torch.float64)
    before, after = (
        train_recall(RecallModels("attention", 8, [0, 1], dtype=torch.float64), "recall", 4, rates, steps, 8, seed=0, texts=32)
        for steps in (1, 120)
    )
    assert before.shape == (2, 2) and float(after.mean()) > 0.3 > float(before.mean())


# ---------------------------------------------------------------- the look and the widget


def test_the_look_is_registered_and_its_record_fits():
    seen = looks.data.record("looks")["results"]["window_recall"]
    assert looks.LOOKS["window_recall"] is taxonomy.window_recall
    assert {len(shares) for shares in seen["right"].values()} == {seen["lists"]}


CASES = [{}, {"n": 1}, {"n": 24, "asked": 24}, {"n": 3, "asked": 9}, {"n": 17, "asked": 2}]


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    own, library = ((widgets.HERE / name).read_text() for name in ("taxonomy.js", "library.js"))
    made = [Taxonomy(**case) for case in CASES]
    script = f"{library}{own.split('export default')[0]}\nconst cases = {json.dumps([each.state() for each in made])};\n"
    script += "console.log(JSON.stringify(cases.map((state) => [taken(state), said(state)])));"
    found = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for each, (taken, told) in zip(made, found, strict=True):
        assert taken == each.taken_for() and list(taken) == list(MEMORIES) and told == each.describe()


def test_the_widgets_squares_are_those_of_the_module():
    made = Taxonomy(n=12)
    key, value = (torch.tensor(each[:12], dtype=torch.float64) for each in (made.keys_of, made.values_of))
    answers, unit = made.answers(), F.normalize(key, dim=-1)
    for i in range(12):
        asked = key[i].expand(12, -1)
        summed = taxonomy.ssm_scan(torch.ones(12).double(), asked, key, value)[-1]
        corrected = taxonomy.delta_rule(torch.ones(12).double(), asked, unit, value)[-1]
        assert torch.allclose(answers["sum"][i], summed) and torch.allclose(answers["corrected"][i], corrected)


@pytest.mark.parametrize("case", [{"n": 0}, {"n": 25}, {"asked": 0}, {"asked": 25}])
def test_the_widget_refuses_what_it_cannot_show(case):
    with pytest.raises(traitlets.TraitError):
        Taxonomy(**case)
