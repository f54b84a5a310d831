"""The reference code of chapter 12 against brute force, Hugging Face's filters and the widget's JavaScript."""

import itertools
import json
import math
import shutil
import subprocess

import pytest
import torch

from course import data, widgets
from course.inference import (
    beam,
    following,
    generate,
    greedy,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    sample,
    sample_top_p,
)
from course.model import GPT, Config
from course.widgets.inference import KEPT, Filters, followers


def logits(*shape, seed=0):
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- filters


@pytest.mark.parametrize(
    ("keep", "warper", "values"),
    [
        (keep_top_k, "TopKLogitsWarper", (1, 3, 11)),
        (keep_top_p, "TopPLogitsWarper", (0.1, 0.5, 0.9, 0.999)),
        (keep_min_p, "MinPLogitsWarper", (0.01, 0.1, 0.5, 1.0)),
    ],
    ids=["top-k", "top-p", "min-p"],
)
def test_filters_are_hugging_faces(keep, warper, values):
    """On logits without ties, which Hugging Face decides otherwise for top-k."""
    process = pytest.importorskip("transformers.generation.logits_process")
    z = logits(40, 11)
    for value in values:
        assert torch.equal(keep(z, value), getattr(process, warper)(value)(None, z))


def test_ties_are_kept_by_the_smaller_id_and_min_p_keeps_them_all():
    flat = torch.zeros(2, 5)
    assert (keep_top_k(flat, 2) > -math.inf).tolist() == [[True, True, False, False, False]] * 2
    assert (keep_top_p(flat, 0.5) > -math.inf).tolist() == [[True, True, True, False, False]] * 2
    assert (keep_min_p(flat, 1.0) > -math.inf).all()
    assert greedy(flat).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_every_row_keeps_a_token(dtype):
    z = torch.cat([logits(30, 9).to(dtype), torch.full((1, 9), -30.0, dtype=dtype)])
    for kept in (keep_top_k(z, 1), keep_top_p(z, 1e-6), keep_min_p(z, 1.0)):
        assert kept.dtype == dtype and (kept > -math.inf).any(dim=-1).all()
    assert torch.equal(keep_top_p(z, 1), z) and torch.equal(keep_top_k(z, 99), z)


def test_filtered_tokens_stay_out():
    z = torch.tensor([1.0, -math.inf, 3.0, 2.0])
    for kept in (keep_top_k(z, 4), keep_top_p(z, 0.9999), keep_min_p(z, 1e-6)):
        assert kept[1] == -math.inf


def test_draws_have_the_probabilities():
    z = torch.tensor([2.0, 1.0, 0.0, -1.0]).expand(40_000, 4)
    for tau in (0.5, 1.0, 3.0):
        drawn = sample(z, tau, torch.Generator().manual_seed(0)).bincount(minlength=4) / len(z)
        assert torch.allclose(drawn, (z[0] / tau).softmax(-1), atol=4 * 0.5 / math.sqrt(len(z)))
    drawn = sample_top_p(z, 0.8, generator=torch.Generator().manual_seed(0)).bincount(minlength=4) / len(z)
    assert torch.allclose(drawn, torch.tensor([2.0, 1.0, -math.inf, -math.inf]).softmax(-1), atol=4 * 0.5 / math.sqrt(len(z)))
    assert (sample_top_p(z, 0.8, tau=1e-38) == 0).all() and (sample(z, 1e-38) == 0).all()
    for dtype in (
        torch.float16,
        torch.float32,
        torch.float64,
    ):  # colder and hotter than float32 can say, a filtered token among them
        few = torch.tensor([[1.0, 1.0, 0.0, -math.inf]], dtype=dtype).expand(2_000, 4)
        cold, hot = (sample(few, tau, torch.Generator().manual_seed(0)).unique().tolist() for tau in (5e-324, 1e308))
        assert cold == [0, 1] and hot == [0, 1, 2]
        assert sample_top_p(few, 0.9, 5e-324, torch.Generator().manual_seed(0)).unique().tolist() == [0, 1]
    assert len(sample_top_p(z, 0.8, tau=5.0).unique()) == 4 - 1  # the temperature comes first: three are needed for 0.8


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: keep_top_k(torch.zeros(3), 0), "at least 1"),
        (lambda: keep_top_p(torch.zeros(3), 0), "above 0"),
        (lambda: keep_top_p(torch.zeros(3), 1.1), "at most 1"),
        (lambda: keep_min_p(torch.zeros(3), 0), "above 0"),
        (lambda: sample(torch.zeros(1, 3), 0), "take greedy"),
        (lambda: sample(torch.zeros(1, 3), math.inf), "finite"),
        (lambda: sample(torch.zeros(1, 3), math.nan), "positive"),
        (lambda: sample_top_p(torch.zeros(1, 3), 0.5, -1), "take greedy"),
        (lambda: following(None, torch.zeros(2, 3)), "one sequence"),
        (lambda: beam(lambda ids: torch.zeros(2), 3, 0), "at least 1"),
        (lambda: generate(None, torch.zeros(1, 1), -1), "number of tokens"),
    ],
    ids=["k", "p low", "p high", "m", "tau 0", "tau inf", "tau nan", "tau and p", "two texts", "width", "n"],
)
def test_bad_input_is_told(call, told):
    with pytest.raises(ValueError, match=told):
        call()


# ---------------------------------------------------------------- texts


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = GPT(Config(V=17, d_model=24, n_layers=2, n_heads=4, n_kv_heads=2)).double().requires_grad_(False)
    made.initialise(std=0.3)
    return made


def test_generating_with_the_cache_and_without_is_the_same(model):
    ids = torch.randint(17, (3, 4), generator=torch.Generator().manual_seed(0))
    long = generate(model, ids, 20)
    assert long.shape == (3, 24) and torch.equal(long[:, :4], ids)
    assert torch.equal(long, generate(model, ids, 20, cached=False))
    for t in range(4, 24):
        assert torch.equal(long[:, t], model(long[:, :t])[:, -1].argmax(-1))
    draws = []
    for cached in (True, False):
        generator = torch.Generator().manual_seed(1)
        draws.append(generate(model, ids, 20, lambda z, g=generator: sample_top_p(z, 0.9, generator=g), cached=cached))
    assert torch.equal(*draws) and not torch.equal(draws[0], long)
    assert torch.equal(generate(model, ids, 0), ids)


def test_a_beam_of_one_is_greedy_and_a_wide_one_finds_the_best(model):
    start = torch.tensor([[3, 5]])

    def log_probs(ids):
        return model(torch.cat([start, torch.tensor([ids], dtype=torch.int64).reshape(1, -1)], dim=1))[0, -1].log_softmax(-1)

    assert beam(log_probs, 6, 1)[0][1] == tuple(generate(model, start, 6)[0, 2:].tolist())
    every = {}
    for ids in itertools.product(range(17), repeat=2):
        every[ids] = float(log_probs(())[ids[0]] + log_probs(ids[:1])[ids[1]])
    found = beam(log_probs, 2, 17)
    ranked = sorted(every, key=every.get, reverse=True)
    assert found[0][1] == ranked[0] and found[0][0] == pytest.approx(every[ranked[0]], abs=1e-12)
    scores = [beam(log_probs, 6, width)[0][0] for width in (1, 8, 64)]
    assert scores == sorted(scores)


def test_a_beam_ends_texts_and_goes_on_with_the_others():
    rows = {(): [0.5, 0.3, 0.2], (1,): [0.9, 0.0, 0.1], (2,): [0.0, 0.0, 1.0], (2, 2): [1.0, 0.0, 0.0], (1, 2): [1.0, 0.0, 0.0]}
    found = beam(lambda ids: torch.tensor(rows[ids], dtype=torch.float64).log(), 3, 3, end=0)
    assert [ids for _, ids in found][:3] == [(0,), (1, 0), (2, 2, 0)]
    assert [math.exp(score) for score, _ in found[:3]] == pytest.approx([0.5, 0.27, 0.2])


@pytest.mark.parametrize("cached", [True, False], ids=["cached", "whole"])
def test_a_beam_asks_a_gpt_with_the_cache_and_without(model, cached):
    start = torch.tensor([[3, 5]])

    def reading_all(ids):
        return model(torch.tensor([[3, 5, *ids]]))[0, -1].log_softmax(-1)

    for width in (1, 5):
        expected, found = (beam(f, 7, width) for f in (reading_all, following(model, start, cached)))
        assert [ids for _, ids in found] == [ids for _, ids in expected]
        assert [score for score, _ in found] == pytest.approx([score for score, _ in expected], abs=1e-11)


def test_the_record_has_the_gpus_figures_as_they_were_measured():
    found = json.loads((widgets.HERE.parents[1] / "benchmarks" / "records" / "decoding.json").read_text())
    kept = data.record("inference")["results"]["gpu"]
    assert kept["bytes_per_s"] == found["ceilings"]["bytes_per_s"] and kept["card"] == found["card"]
    assert [row["tokens_per_s"] for row in kept["decode"]] == [row["forms"]["ours"]["tokens_per_s"] for row in found["results"]]


# ---------------------------------------------------------------- the widget

STATES = [
    {},
    {"tau": 2.0},
    {"tau": 2.0, "last": True},
    {"top_p": 1.0, "min_p": 0.5},
    {"top_p": 0.05, "tau": 4.0},
    {"min_p": 1.0, "logits": [1.0] * 10, "top_p": 0.35},
    {"min_p": 0.1, "tau": 0.2, "top_p": 0.6, "last": True},
    {"prompt": "It was good! Elizabeth"},
    {"prompt": "qwerty"},
    {"prompt": "", "top_p": 1.0},
]


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "inference.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    shown = [Filters(**state) for state in STATES]
    states = [
        {name: getattr(each, name) for name in ("prompt", "tokens", "logits", "tau", "top_p", "min_p", "last")} for each in shown
    ]
    table = json.loads(KEPT.read_text(encoding="utf-8"))
    script = f"{library}\n{source}\nconst table = {json.dumps(table)};\n"
    script += f"console.log(JSON.stringify({json.dumps(states)}.map((s) => [comes(s.prompt, table), drawnFrom(s), said(s)])));"
    answers = json.loads(
        subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True).stdout
    )
    for each, (next_, probs, said) in zip(shown, answers, strict=True):
        assert next_["tokens"] == each.tokens and (next_["logits"] == each.logits or each.logits == [1.0] * 10)
        assert probs == pytest.approx(each.drawn().tolist(), abs=1e-12)
        assert said == each.describe()
    assert len({tuple(answer[1]) for answer in answers}) == len(STATES)


def test_the_kept_followers_are_those_of_the_novels():
    assert json.loads(KEPT.read_text(encoding="utf-8")) == followers()
