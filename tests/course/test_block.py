"""The reference code of chapter 9 against torch, brute force and the widget's JavaScript."""

import json
import shutil
import subprocess

import pytest
import torch
import traitlets

from course import widgets
from course.block import AttentionOnly, causal_mask, copy_accuracy, influence, model_of, repeats, train, weights_of
from course.model import GPT, Config
from course.widgets.block import BlockParts


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_mask_is_torchs():
    for T in (1, 2, 7):
        assert torch.equal(causal_mask(T), torch.nn.Transformer.generate_square_subsequent_mask(T))


def test_influence_sees_what_each_position_reads():
    ids, V = torch.randint(5, (6,), generator=generator()), 5

    def reads_the_token_two_places_later(ids):
        return torch.nn.functional.one_hot(ids.roll(-2, dims=1), V).float()

    moved = influence(reads_the_token_two_places_later, ids, V)
    assert torch.equal(moved, torch.eye(6).roll(2, dims=1))  # row i: the logits at i
    for causal in (True, False):
        torch.manual_seed(0)
        moved = influence(AttentionOnly(V, n_layers=2, causal=causal), ids, V)
        assert moved.tril().count_nonzero() == 21
        assert bool((moved.triu(1) == 0).all()) is causal


@pytest.mark.parametrize("tied", [False, True])
def test_weights_and_model_are_inverse(tied):
    model = GPT(Config(V=17, d_model=24, n_layers=3, n_heads=6, n_kv_heads=2, d_ff=10, tied=tied)).double()
    p = weights_of(model)
    ids = torch.randint(17, (2, 5), generator=generator())
    rebuilt = model_of(p, 6, 2)
    assert torch.equal(rebuilt(ids), model(ids)) and rebuilt.config == model.config
    assert ("W_head" in p) is not tied and p["E"].dtype == torch.float64
    assert p["blocks"][1]["W_k"].shape == (24, 8) and p["blocks"][1]["W_down"].shape == (10, 24)
    p["E"].zero_()
    p["blocks"][0]["W_q"].zero_()
    assert torch.equal(rebuilt(ids), model(ids))  # copies, both ways


def test_what_fits_no_model_says_why():
    with pytest.raises(ValueError, match="RMSNorm, RoPE, SwiGLU"):
        weights_of(GPT(Config(V=5, norm="layer")))
    p = weights_of(GPT(Config(V=5, d_model=16, n_heads=4, n_kv_heads=2)))
    with pytest.raises(ValueError, match="4 heads and 4 key heads"):
        model_of(p, 4, 4)


# ---------------------------------------------------------------- copying


def test_lists_repeat_after_their_period():
    ids, known = repeats(200, 20, 15, (4, 9), generator())
    assert ids.shape == (200, 20) and known.shape == (200, 19)
    periods = set()
    for row, places in zip(ids.tolist(), known.tolist(), strict=True):
        n = places.index(True) + 1  # target 1 + (n − 1) is the first that was said before
        periods.add(n)
        assert row == (row[:n] * 20)[:20] and len(set(row[:n])) == n and all(places[n - 1 :])
    assert periods == set(range(4, 10))


@pytest.mark.parametrize("periods", [(0, 3), (5, 4), (3, 16), (3, 20)])
def test_periods_that_do_not_fit_say_why(periods):
    with pytest.raises(ValueError, match="must lie between 1"):
        repeats(2, 20, 15, periods, generator())


def test_accuracy_counts_repeated_tokens_only():
    ids, known = repeats(50, 20, 15, (4, 9), generator())

    def knows_all(ids):
        return torch.nn.functional.one_hot(ids.roll(-1, dims=1), 15).float()

    def knows_the_last_half(ids):
        right = knows_all(ids)
        right[:, :10] = right[:, :10].roll(1, dims=-1)
        return right

    assert copy_accuracy(knows_all, ids, known) == 1.0
    expected = known[:, 10:].sum() / known.sum()
    assert copy_accuracy(knows_the_last_half, ids, known) == pytest.approx(float(expected))


def test_two_layers_learn_to_copy_and_training_can_be_continued():
    torch.manual_seed(0)
    model, draws = AttentionOnly(V=10, n_layers=2), generator(1)
    optimiser = torch.optim.Adam(model.parameters())
    losses = train(model, lambda: repeats(16, 16, 10, (4, 8), draws), 100, optimiser=optimiser)
    losses += train(model, lambda: repeats(16, 16, 10, (4, 8), draws), 50, optimiser=optimiser, warmup=0)
    assert len(losses) == 150 and losses[0] > 1.5 and sum(losses[-10:]) / 10 < 0.3
    assert copy_accuracy(model, *repeats(200, 16, 10, (4, 8), generator(2))) > 0.9


# ---------------------------------------------------------------- the widget

CASES = [
    {"d_model": d, "n_layers": n, "group": group, "gated": gated, "tied": tied}
    for d, n, group, gated, tied in (
        (64, 1, 1, False, True),
        (768, 12, 1, False, True),
        (768, 12, 8, True, False),
        (2048, 48, 8, True, True),
        (1088, 7, 4, False, False),
    )
]


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "block.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    script = f"{library}{source}\nconst cases = {json.dumps(CASES)};\n"
    script += "console.log(JSON.stringify(cases.map((c) => [sizes(c), said(c)])));"
    told = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for case, (found, text) in zip(CASES, told, strict=True):
        widget = BlockParts(**case)
        c = widget.config()
        assert (found["heads"], found["kv"], found["hidden"]) == (c.n_heads, c.kv_heads, c.hidden)
        with torch.device("meta"):
            model = GPT(c)
        assert found["all"] == sum(p.numel() for p in model.parameters())
        assert found["parts"]["attention"] == sum(p.numel() for b in model.blocks for p in b.attention.parameters())
        assert text == widget.describe()


@pytest.mark.parametrize("state", [{"d_model": 100}, {"d_model": 4096}, {"group": 3}, {"n_layers": 0}])
def test_the_widget_refuses_what_it_cannot_show(state):
    with pytest.raises(traitlets.TraitError):
        BlockParts(**state)


def test_a_group_is_as_large_as_the_heads_allow():
    assert BlockParts(d_model=768, group=8).config().kv_heads == 3  # 12 heads in groups of 4
    assert BlockParts(d_model=64, group=8).config().kv_heads == 1
