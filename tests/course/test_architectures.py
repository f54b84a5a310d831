"""The reference code of chapter 10 against torch, brute force and the widget's JavaScript."""

import itertools
import json
import math
import shutil
import subprocess

import pytest
import torch
import traitlets
from torch.nn import functional as F

from course import widgets
from course.architectures import (
    FAMILIES,
    Family,
    Layer,
    cross_attention,
    either_order,
    fit,
    generate,
    gradient_influence,
    lists,
    mask_for,
    mlm_batch,
    mlm_loss,
    product_total,
    reach,
    reversal,
)
from course.widgets.architectures import MaskPainter


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


# ---------------------------------------------------------------- masks


def test_masks_pair_by_pair():
    rules = {"bidirectional": lambda i, j: True, "causal": lambda i, j: j <= i, "prefix": lambda i, j: j <= i or j < 3}
    for kind, rule in rules.items():
        for T in (3, 6):
            expected = [[rule(i, j) for j in range(T)] for i in range(T)]
            assert mask_for(kind, T, prefix=3).tolist() == expected
    assert torch.equal(mask_for("prefix", 5, prefix=0), mask_for("causal", 5))
    assert torch.equal(mask_for("prefix", 5, prefix=5), mask_for("bidirectional", 5))


def test_nobody_sees_padding():
    lengths = torch.tensor([1, 3, 4])
    for kind in ("bidirectional", "causal", "prefix"):
        plain, padded = mask_for(kind, 4, prefix=2), mask_for(kind, 4, prefix=2, lengths=lengths)
        for b, i, j in itertools.product(range(3), range(4), range(4)):
            assert bool(padded[b, i, j]) == (bool(plain[i, j]) and j < int(lengths[b]))
        assert bool(padded.any(dim=-1).all())


def test_masks_that_make_no_sense_say_why():
    with pytest.raises(ValueError, match="kind must be one of"):
        mask_for("acausal", 3)
    with pytest.raises(ValueError, match="prefix of 4"):
        mask_for("prefix", 3, prefix=4)
    for lengths in ([0, 2], [1, 4]):
        with pytest.raises(ValueError, match="lengths must be between 1 and 3"):
            mask_for("causal", 3, lengths=torch.tensor(lengths))
    with pytest.raises(ValueError, match="n_layers must be at least 1"):
        reach(mask_for("causal", 3), 0)


@pytest.mark.parametrize("residual", [True, False])
def test_reach_follows_paths(residual):
    for seed in range(20):
        allowed = torch.rand(6, 6, generator=generator(seed)) < 0.25
        for n_layers in (1, 2, 4):
            for i in range(6):
                known = {i}
                for _ in range(n_layers):  # walk backwards: whom do those see that were reached?
                    known = {j for k in known for j in range(6) if allowed[k, j] or (residual and j == k)}
                assert set(reach(allowed, n_layers, residual)[i].nonzero().flatten().tolist()) == known


def test_influence_is_the_size_of_the_blocks():
    mixing = torch.randn(4, 4, generator=generator(1), dtype=torch.float64).tril()
    weight = torch.randn(3, 5, generator=generator(2), dtype=torch.float64)
    found = gradient_influence(lambda x: mixing @ x @ weight, torch.randn(4, 3, dtype=torch.float64))
    torch.testing.assert_close(found, mixing.abs() * weight.norm(), rtol=1e-12, atol=0)


# ---------------------------------------------------------------- blanks


def test_blanks_follow_the_rule():
    ids = torch.randint(50, (400, 500), generator=generator(1))
    inputs, chosen = mlm_batch(ids, 50, mask_id=50, generator=generator(2))
    n = int(chosen.sum())
    assert n / ids.numel() == pytest.approx(0.15, abs=4 * math.sqrt(0.15 * 0.85 / ids.numel()))
    assert torch.equal(inputs[~chosen], ids[~chosen])
    masked, other = (inputs == 50)[chosen], (inputs != ids)[chosen] & (inputs != 50)[chosen]
    assert int(masked.sum()) / n == pytest.approx(0.8, abs=0.01)
    assert int(other.sum()) / n == pytest.approx(0.1 * 49 / 50, abs=0.01)  # one in fifty random tokens is the old one
    assert set(inputs[chosen].unique().tolist()) == set(range(51))
    assert not mlm_batch(ids, 50, 50, rate=0.0)[1].any() and mlm_batch(ids, 50, 50, rate=1.0)[1].all()
    with pytest.raises(ValueError, match="rate is a probability"):
        mlm_batch(ids, 50, 50, rate=15)


def test_the_loss_counts_chosen_positions_only():
    logits, ids = (
        torch.randn(2, 5, 7, generator=generator(), dtype=torch.float64),
        torch.randint(7, (2, 5), generator=generator()),
    )
    chosen = torch.tensor([[1, 0, 0, 1, 0], [0, 0, 1, 0, 0]], dtype=torch.bool)
    expected = F.cross_entropy(logits.transpose(1, 2), ids.masked_fill(~chosen, -100))
    assert float(mlm_loss(logits, ids, chosen)) == pytest.approx(float(expected), rel=1e-12)
    with pytest.raises(ValueError, match="no position was chosen"):
        mlm_loss(logits, ids, torch.zeros_like(chosen))


def test_the_total_of_two_blanks():
    joint = torch.tensor([[0.5, 0.0], [0.0, 0.5]])
    assert float(product_total(joint)) == 2.0
    independent = torch.tensor([[0.3], [0.7]]) * torch.tensor([[0.2, 0.5, 0.3]])
    assert float(product_total(independent)) == pytest.approx(1)


# ---------------------------------------------------------------- attention and layers


@pytest.mark.parametrize("widths", [(8, 8), (12, 5)])
def test_cross_attention_is_torchs(widths):
    d_model, d_memory = widths
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(d_model, 4, bias=False, batch_first=True, kdim=d_memory, vdim=d_memory).double()
    x, memory = torch.randn(3, 5, d_model).double(), torch.randn(3, 7, d_memory).double()
    parts = dict(theirs.named_parameters())
    same = d_model == d_memory
    inputs = theirs.in_proj_weight.chunk(3) if same else [parts[f"{name}_proj_weight"] for name in "qkv"]
    matrices = [*(W.T for W in inputs), theirs.out_proj.weight.T]
    lengths = torch.tensor([2, 7, 5])
    allowed = (torch.arange(7) < lengths[:, None])[:, None].expand(3, 5, 7)
    expected = theirs(x, memory, memory, key_padding_mask=~allowed[:, 0], need_weights=False)[0]
    torch.testing.assert_close(cross_attention(x, memory, *matrices, 4, allowed), expected, rtol=0, atol=1e-13)
    unmasked = theirs(x, memory, memory, need_weights=False)[0]
    torch.testing.assert_close(cross_attention(x, memory, *matrices, 4), unmasked, rtol=0, atol=1e-13)


def test_heads_that_do_not_fit_say_why():
    with pytest.raises(ValueError, match="3 heads do not divide"):
        cross_attention(torch.ones(1, 2, 4), torch.ones(1, 2, 4), *[torch.eye(4)] * 4, 3)


@pytest.mark.parametrize("kind", FAMILIES)
def test_no_family_sees_the_token_that_it_must_say(kind):
    torch.manual_seed(0)
    model = Family(kind, V=9, n=4).double()
    source, target = reversal(3, 4, 9, generator())
    for k in range(4):
        other = target.clone()
        other[:, k:] = (other[:, k:] + 1) % 9
        with torch.no_grad():
            before, after = model(source, target), model(source, other)
        assert torch.equal(before[:, : k + 1], after[:, : k + 1])
        assert torch.equal(before[:, k + 1 :], after[:, k + 1 :]) is (kind == "encoder" or k == 3)
        moved = source.clone()
        moved[:, k] = (moved[:, k] + 1) % 9
        moved_by = (model(moved, target) - before).detach().abs().amax(dim=(0, 2))
        assert float(moved_by.min()) > 0  # all places see all of the source


def test_families_are_of_one_size():
    models = [Family(kind, V=16, n=8) for kind in FAMILIES]
    assert len({sum(p.numel() for p in model.parameters() if p.ndim == 2) for model in models}) == 1
    with pytest.raises(ValueError, match="kind must be one of"):
        Family("both", 16, 8)


def test_a_layer_without_memory_is_a_pre_norm_block():
    torch.manual_seed(0)
    layer, x = Layer(8, 2, 12).double(), torch.randn(2, 5, 8, dtype=torch.float64)
    allowed = mask_for("causal", 5)

    def normed(x):
        return F.rms_norm(x, (8,), None, torch.finfo(torch.float64).eps)

    h = normed(x)
    query, key, value = ((h @ W).reshape(2, 5, 2, 4).permute(0, 2, 1, 3) for W in list(layer.own)[:3])
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
    h2 = x + mixed.permute(0, 2, 1, 3).reshape(2, 5, 8) @ layer.own[3]
    expected = h2 + F.gelu(normed(h2) @ layer.up.weight.T) @ layer.down.weight.T
    torch.testing.assert_close(layer(x, allowed), expected, rtol=0, atol=1e-12)


# ---------------------------------------------------------------- tasks


def test_tasks_are_what_they_say():
    source, target = reversal(50, 5, 9, generator())
    assert torch.equal(target, source.flip(1))
    assert all(len(set(row)) == 5 and set(row) <= set(range(9)) for row in source.tolist())
    source, target = either_order(400, 5, 9, generator())
    forwards, backwards = (target == source).all(dim=1), (target == source.flip(1)).all(dim=1)
    assert bool((forwards | backwards).all()) and 140 < int(forwards.sum()) < 260


def test_writing_reads_what_was_written():
    class Parrot:  # says the token before, plus one; at the start, the first of the source
        kind = "decoder"

        def __call__(self, source, target):
            before = torch.cat([source[:, :1] - 1, target[:, :-1]], dim=1)
            return 20.0 * F.one_hot((before + 1) % 9, 9)

    source = lists(6, 4, 9, generator())
    expected = (source[:, :1] + torch.arange(4)) % 9
    assert torch.equal(generate(Parrot(), source), expected)
    assert torch.equal(generate(Parrot(), source, generator()), expected)


def test_training_learns_the_reversal():
    torch.manual_seed(0)
    draws, model = generator(1), Family("encoder-decoder", V=6, n=3, d_model=16)
    losses = fit(model, lambda: reversal(32, 3, 6, draws), steps=150)
    assert losses[0] > 1.5 and losses[-1] < 0.2
    source, target = reversal(100, 3, 6, generator(2))
    assert float((generate(model, source) == target).all(dim=1).float().mean()) > 0.9


# ---------------------------------------------------------------- the widget

PRESETS = {
    "bidirectional": mask_for("bidirectional", 6),
    "causal": mask_for("causal", 6),
    "prefix of 3": mask_for("prefix", 6, prefix=3),
    "window of 2": mask_for("causal", 6).triu(-1),
    "all but itself": ~torch.eye(6, dtype=torch.bool),
}


def node(script: str):
    found = shutil.which("node")
    assert found, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "architectures.js").read_text().split("export default")[0]
    text = f"{(widgets.HERE / 'library.js').read_text()}{source}\n{script}"
    return json.loads(subprocess.run([found, "-e", text], capture_output=True, text=True, check=True).stdout)


def test_the_widgets_masks_are_those_of_the_course():
    found = node("console.log(JSON.stringify(Object.fromEntries(Object.entries(PRESETS).map(([n, r]) => [n, painted(r)]))));")
    assert found == {name: mask.int().tolist() for name, mask in PRESETS.items()}


def test_the_widget_computes_what_the_reference_computes():
    masks = [mask.int().tolist() for mask in PRESETS.values()]
    masks += [(torch.rand(6, 6, generator=generator(seed)) < 0.2).int().tolist() for seed in range(6)]
    cases = [
        {"mask": mask, "n_layers": n_layers, "residual": residual}
        for mask in masks
        for n_layers in (1, 2, 3)
        for residual in (True, False)
    ]
    script = f"const cases = {json.dumps(cases)};\n"
    script += "console.log(JSON.stringify(cases.map((c) => [reach(c.mask, c.n_layers, c.residual), said(c)])));"
    for case, (known, told) in zip(cases, node(script), strict=True):
        widget = MaskPainter(**case)
        assert known == widget.known().tolist()
        assert told == widget.describe()


@pytest.mark.parametrize("state", [{"n_layers": 4}, {"mask": [[1] * 6] * 5}, {"mask": [[2] * 6] * 6}])
def test_the_widget_refuses_what_it_cannot_show(state):
    with pytest.raises(traitlets.TraitError):
        MaskPainter(**state)
