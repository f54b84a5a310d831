"""The reference code of ch17 against independent oracles."""

import json
import math
import shutil
import subprocess

import pytest
import torch
import traitlets
from torch.nn import functional as F

from course import looks, widgets
from course.attention_maps import look
from course.model import GPT, Config
from course.sinks import (
    FIXES,
    IdleHeads,
    StreamingCache,
    correlation,
    gamma_and_sink,
    models_needed,
    rescale_theta,
    sink_mass,
    softmax_plus_one,
    streaming_logits,
    streaming_mask,
    train_idle,
)
from course.widgets.sinks import CLOSED, Sinks


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small_gpt(**how):
    torch.manual_seed(0)
    model = GPT(Config(V=20, d_model=16, n_layers=2, n_heads=4, n_kv_heads=2, **how)).double().eval()
    model.initialise(0.5)
    return model.requires_grad_(False)


# ---------------------------------------------------------------- weights that must go somewhere


def test_sink_mass_counts_the_first_key_of_the_queries_asked_for():
    weights = torch.zeros(3, 10, 10)
    weights[1, 5:, 0], weights[2, :, 1] = 1.0, 1.0
    assert sink_mass(weights, start=0.5).tolist() == [0.0, 1.0, 0.0]
    assert float(sink_mass(weights, start=0.0)[1]) == 0.5


@pytest.mark.parametrize("size", [0.0, 1e4, -1e4])
def test_softmax_plus_one_is_stable(size):
    scores = normal(3, 5) + size
    weights = softmax_plus_one(scores, size)
    plain = softmax_plus_one(scores - size)
    assert torch.allclose(weights, plain, rtol=0, atol=1e-12) and bool((weights.sum(dim=-1) < 1).all())


def test_softmax_plus_one_without_a_drain_is_softmax_and_a_hidden_row_is_zero():
    scores = normal(3, 5)
    assert torch.equal(softmax_plus_one(scores, -math.inf), scores.softmax(dim=-1))
    assert softmax_plus_one(torch.full((2, 3), -math.inf)).tolist() == [[0.0] * 3] * 2
    assert torch.equal(softmax_plus_one(scores, torch.zeros(3)), softmax_plus_one(scores))
    assert softmax_plus_one(scores.float()).dtype == torch.float32


# ---------------------------------------------------------------- a cache that forgets the middle


@pytest.mark.parametrize(("window", "first"), [(4, 0), (4, 2), (1, 0), (3, 1), (20, 0), (1, 3)])
@torch.no_grad()
def test_the_cache_says_what_a_mask_says(window, first):
    model, ids = small_gpt(), torch.randint(20, (2, 15), generator=torch.Generator().manual_seed(1))
    cache, found = StreamingCache(2, window, first), []
    for t in range(15):
        found.append(model(ids[:, t : t + 1], cache))
        assert len(cache) == t + 1 and cache.rooms[0][0].shape[2] == min(t + 1, window + first)
    assert torch.allclose(torch.cat(found, dim=1), streaming_logits(model, ids, window, first), rtol=0, atol=1e-11)


@torch.no_grad()
def test_a_window_as_long_as_the_text_is_the_model_itself():
    model, ids = small_gpt(), torch.arange(12)[None]
    assert torch.allclose(streaming_logits(model, ids, 12), model(ids), rtol=0, atol=1e-11)


@torch.no_grad()
def test_silent_tokens_keep_their_weight_and_give_nothing():
    model, ids = small_gpt(), torch.arange(9)[None]
    for first in (1, 3):
        silent, loud = (streaming_logits(model, ids, 9, first, each) for each in (True, False))
        assert torch.allclose(silent[:, :first], loud[:, :first], rtol=0, atol=1e-11)
        assert float((silent[:, first:] - loud[:, first:]).abs().max()) > 1e-3
    block = model.blocks[0]  # one layer, by hand
    query, key, value = block.attention.project(block.norm_1(model.embedding(ids)), torch.arange(9))
    key, value = (each.repeat_interleave(2, dim=1) for each in (key, value))
    weights = (query @ key.mT / 2).masked_fill(~streaming_mask(9, 9), -math.inf).softmax(dim=-1)
    muted = value.clone()
    muted[:, :, 0] = 0
    by_hand = (weights @ muted)[0, :, 1:]
    drained = softmax_plus_one(
        (query @ key.mT / 2)[0, :, 1:, 1:].masked_fill(~streaming_mask(8, 8), -math.inf), (query @ key.mT / 2)[0, :, 1:, 0]
    )
    assert torch.allclose(by_hand, drained @ value[0, :, 1:], rtol=0, atol=1e-12)


def test_what_a_cache_refuses():
    with pytest.raises(ValueError, match="window is at least 1"):
        StreamingCache(1, 0)
    with pytest.raises(ValueError, match="first at least 0"):
        StreamingCache(1, 1, -1)
    with pytest.raises(ValueError, match="one token at a time"):
        small_gpt()(torch.zeros(1, 2, dtype=torch.int64), StreamingCache(2, 4))


def test_streaming_mask():
    assert streaming_mask(4, 2, 1).int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]]


# ---------------------------------------------------------------- another base


@pytest.mark.parametrize("tied", [False, True])
@torch.no_grad()
def test_only_the_base_differs(tied):
    model, ids = small_gpt(tied=tied), torch.arange(12)[None]
    before = model(ids)
    twin = rescale_theta(model, 4)
    assert twin.config.theta == 4 * model.config.theta and not twin.training
    for (name, a), (other, b) in zip(model.named_parameters(), twin.named_parameters(), strict=True):
        assert name == other and a.data_ptr() == b.data_ptr()
    other = GPT(Config(**{**model.config.__dict__, "theta": 40_000.0})).double()
    other.load_state_dict(model.state_dict())
    assert torch.equal(twin(ids), other(ids)) and torch.equal(model(ids), before)
    assert not torch.allclose(twin(ids), before)
    assert torch.equal(rescale_theta(model, 1)(ids), before)


def test_what_cannot_be_rescaled():
    with pytest.raises(ValueError, match="positive factor"):
        rescale_theta(small_gpt(), 0)
    with pytest.raises(ValueError, match="learned"):
        rescale_theta(small_gpt(position="learned"), 2)


def test_gamma_and_sink_read_the_weights():
    model, ids = small_gpt(), torch.randint(20, (2, 80), generator=torch.Generator().manual_seed(0))
    sinks = []
    look(model, ids, lambda layer, weights, stream: sinks.append(weights[:, :, 8:, 0].mean()))
    gamma, sink = gamma_and_sink(model, ids)
    assert abs(sink - float(torch.stack(sinks).mean())) < 1e-12 and math.isfinite(gamma)


# ---------------------------------------------------------------- numbers


def test_correlation_refuses_what_has_none():
    with pytest.raises(ValueError, match="at least four pairs"):
        correlation(torch.arange(3.0), torch.arange(3.0))
    with pytest.raises(ValueError, match="does not vary"):
        correlation(torch.arange(5.0), torch.ones(5))
    assert correlation(torch.arange(5.0), -torch.arange(5.0))[0] == pytest.approx(-1)


def test_models_needed():
    assert models_needed(0.05, 0.05) == 8 and models_needed(0.016, 0.05) == 77


# ---------------------------------------------------------------- a head with nothing to do


def test_batches_have_what_they_promise():
    heads = IdleHeads([("BOS", 0.0), ("BOS", 1.0)], [0, 0])
    x, target, idle = heads.batch(5)
    assert x.shape == (2, 5, 12, 21) and not bool(idle[0, :, 6:].any()) and bool(idle[1].all())
    assert torch.equal(target[0, :, 6:], x[0, :, :6, 16:20]) and float(target[1].abs().max()) == 0
    assert torch.equal(x[0, :, 6:, :16], x[0, :, :6, :16])  # a busy token has the name of one before


def test_versions_of_one_seed_begin_alike_and_differ_in_one_thing():
    heads = IdleHeads([(fix, 0.5) for fix in FIXES], [3] * 4)
    x, _, _ = heads.batch(4)
    assert torch.equal(x[0], x[3]) and torch.equal(heads.weights["query"][0], heads.weights["query"][2])
    with torch.no_grad():
        out, weights = heads.attend(x)
    plain = F.scaled_dot_product_attention(
        *(torch.einsum("gbtd,gde->gbte", x[:1], heads.weights[name][:1]) for name in ("query", "key", "value")), is_causal=True
    )
    assert torch.allclose(out[0], plain[0], atol=1e-5) and torch.allclose(out[3], plain[0] / 2, atol=1e-5)
    assert float(weights[[0, 3], ..., 0].max()) == 0 and float(weights[[0, 1, 3], ..., -1].max()) == 0
    assert float(weights[1, ..., 0].min()) > 0 and float(weights[2, ..., -1].min()) > 0
    assert torch.allclose(weights.sum(dim=-1), torch.ones(4, 4, 12).double(), atol=1e-12)


def test_training_lowers_the_error():
    jobs = [("BOS", 0.5)]
    before = train_idle(IdleHeads(jobs, [0]), steps=1, B=4)
    after = train_idle(IdleHeads(jobs, [0]), steps=120, B=16, lr=0.03)
    assert float(after["busy error"]) < 0.7 * float(before["busy error"])


# ---------------------------------------------------------------- the look and the widget


def test_the_look_has_rows_of_scores_that_fit_the_words():
    seen = looks.data.record("looks")["results"]["sinks"]
    for rows in seen["scores"].values():
        assert [len(row) for row in rows] == list(range(1, len(seen["words"]) + 1))
    weights = [torch.tensor(row).softmax(dim=-1) for row in seen["scores"]["14.3"]]
    assert int(weights[11].argmax()) == 4 and int(weights[14].argmax()) == 7 and int(weights[12].argmax()) == 0


CASES = [
    {},
    {"query": 11},
    {"first": False},
    {"first": False, "drain": 5.0},
    {"head": "18.8", "drain": 0.0},
    {"head": "11.1", "query": 1, "drain": 12.0},
    {"head": "25.4", "query": 15, "drain": CLOSED},
]


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    own, library = ((widgets.HERE / name).read_text() for name in ("sinks.js", "library.js"))
    made = [Sinks(**case) for case in CASES]
    script = f"{library}{own.split('export default')[0]}\nconst cases = {json.dumps([each.state() for each in made])};\n"
    script += "console.log(JSON.stringify(cases.map((state) => [poured(state), said(state)])));"
    found = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for each, (weights, told) in zip(made, found, strict=True):
        expected = each.weights()
        assert weights[:-1] == pytest.approx(expected, abs=1e-12) and weights[-1] == pytest.approx(1 - sum(expected), abs=1e-12)
        assert told == each.describe()


@pytest.mark.parametrize("case", [{"head": "1.1"}, {"query": 0}, {"query": 16}, {"drain": 13.0}])
def test_the_widget_refuses_what_it_cannot_show(case):
    with pytest.raises(traitlets.TraitError):
        Sinks(**case)


@pytest.mark.parametrize("difference, spread", [(0.0, 0.1), (0.1, -0.1)])
def test_no_number_of_models_for_no_difference(difference, spread):
    with pytest.raises(ValueError, match="a difference from zero"):
        models_needed(difference, spread)
