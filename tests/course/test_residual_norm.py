"""The reference code of chapter ch07 against torch, brute force and node."""

import json
import math
import shutil
import subprocess

import pytest
import torch
import traitlets
from torch.nn import functional as F

from course import widgets
from course.model import GPT, Config
from course.residual_norm import (
    cloud,
    gradient_norms,
    layer_norm,
    parts_of,
    random_blocks,
    rank_residual,
    rms_norm,
    skip_share,
    streams,
)
from course.signals_through_depth import residual_growth
from course.widgets.residual_norm import TokenCloud


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_norms_take_numbers_and_leave_their_input():
    x = normal(3, 6) + 2
    before = x.clone()
    assert torch.allclose(rms_norm(x), F.rms_norm(x, (6,), eps=1e-5), rtol=0, atol=1e-14)
    assert torch.allclose(layer_norm(x, 2.0, 1.0), 2 * F.layer_norm(x, (6,)) + 1, rtol=0, atol=1e-13)
    assert torch.equal(x, before) and rms_norm(x.float()).dtype == torch.float32


def test_random_blocks_are_alike_for_a_seed_and_keep_the_second_moment():
    one, many = random_blocks(2, 256, [5]), random_blocks(2, 256, [3, 5])
    for p, q in zip(one, many, strict=True):
        assert p.keys() == q.keys() and all(torch.equal(p[name][0], q[name][1]) for name in p)
    x = normal(2, 1, 64, 256, seed=1).float()
    for p in many:
        assert p["W_1"].shape == (2, 1, 256, 1024) and p["W_2"].shape == (2, 1, 1024, 256)
        assert abs(float(parts_of(p)[1](x).square().mean()) - 1) < 0.1
        assert abs(float((x @ p["W_o"]).square().mean()) - 1) < 0.05


def test_parts_of_are_attention_and_a_perceptron_written_out():
    (p,), x = random_blocks(1, 6, [0], torch.float64), normal(1, 2, 5, 6)
    W = {name: matrix[0, 0] for name, matrix in p.items()}
    for causal in (False, True):
        attention, ffn = parts_of(p, causal)
        for row in range(5):
            seen = x[0, 0, : row + 1] if causal else x[0, 0]
            weights = (seen @ W["W_k"] @ (x[0, 0, row] @ W["W_q"]) / math.sqrt(6)).softmax(0)
            assert torch.allclose(attention(x)[0, 0, row], weights @ seen @ W["W_v"] @ W["W_o"], rtol=0, atol=1e-12)
        assert torch.allclose(ffn(x)[0, 1], (x[0, 1] @ W["W_1"]).clamp(min=0) @ W["W_2"], rtol=0, atol=1e-12)


def test_streams_of_a_gpt_are_pre_norm():
    """The course's GPT, its layers by their forward hooks, against the same sums in this chapter's words."""
    model = GPT(Config(V=11, d_model=8, n_layers=3, n_heads=1)).double()
    seen, ids = [], torch.arange(6)[None]
    for block in model.blocks:
        block.register_forward_hook(lambda _, args, out: seen.append((args[0], out)))
    model(ids)
    for block, (x, out) in zip(model.blocks, seen, strict=True):
        middle = x + block.attention(rms_norm(x, block.norm_1.weight), torch.arange(6))
        assert torch.allclose(middle + block.ffn(rms_norm(middle, block.norm_2.weight)), out, rtol=0, atol=1e-12)


def test_a_pre_norm_stream_grows_as_chapter_f05_says():
    blocks, x = random_blocks(12, 128, range(4)), normal(4, 2, 8, 128).float()
    for p in blocks:
        p["W_v"].zero_()  # the feed-forward networks alone, whose branches have second moment 1
    grown = streams(x, blocks, "pre")[-1].square().mean() / x.square().mean()
    assert abs(float(grown) / residual_growth(12, 1.0, normed=True) - 1) < 0.1
    for h in streams(x, blocks, "post")[1:]:
        assert torch.allclose(h.square().mean(-1), torch.ones(4, 2, 8), atol=1e-4)
    assert len(streams(x, blocks, "none", skip=False)) == 13


def test_gradient_norms_are_those_of_the_loss_by_differences():
    """The norm of a gradient is the largest slope: checked along one direction by a loss written out anew."""
    found = gradient_norms("pre", 2, [0, 1], d_model=8, B=2, T=3, V=5)
    again = gradient_norms("pre", 2, [0, 1], d_model=8, B=2, T=3, V=5)
    assert found.shape == (2, 2) and torch.equal(found, again) and bool((found > 0).all())
    alone = gradient_norms("pre", 2, [0], d_model=8, B=2, T=3, V=5)
    assert alone.shape == (1, 2)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, 2, 3, 8, generator=generator).double()
    head = (torch.randn(2, 1, 8, 5, generator=generator) / math.sqrt(8)).double()
    target = torch.randint(5, (2, 2, 3), generator=generator)
    for run in (0, 1):
        blocks = [{name: W[run : run + 1].double() for name, W in p.items()} for p in random_blocks(2, 8, [0, 1])]

        def loss(W, blocks=blocks, run=run):
            changed = [blocks[0], blocks[1] | {"W_2": W}]
            logits = rms_norm(streams(x[run : run + 1], changed, "pre")[-1]) @ head[run : run + 1]
            return F.cross_entropy(logits.flatten(0, 2), target[run].flatten())

        W, steps = blocks[1]["W_2"], torch.eye(32 * 8, dtype=torch.float64).view(-1, 1, 1, 32, 8) * 1e-5
        slopes = torch.stack([(loss(W + step) - loss(W - step)) / 2e-5 for step in steps])
        assert abs(float(slopes.norm() / found[run, 1]) - 1) < 1e-4


def test_the_rank_residual_of_known_matrices():
    assert float(rank_residual(torch.ones(4, 3))) == 0
    assert abs(float(rank_residual(torch.eye(2))) - math.sqrt(0.5)) < 1e-7
    assert rank_residual(normal(5, 2, 4, 3)).shape == (5, 2)
    x = normal(6, 3)
    assert torch.allclose(rank_residual(7 * x), rank_residual(x))


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: skip_share(3, 1.0, "none"), "'pre' or 'post'"),
        (lambda: streams(torch.ones(1, 1, 2, 4), [], "before"), "'pre', 'post' or 'none'"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(call, told):
    with pytest.raises(ValueError, match=told):
        call()


# ---------------------------------------------------------------- the widget


CASES = [
    (depth, skip, norm, causal)
    for depth in (1, 2, 4, 12)
    for skip in (False, True)
    for norm in ("none", "pre", "post")
    for causal in (False, True)
]


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "residual_norm.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    script = f"{library}\n(() => {{ {source}\nconst cases = {json.dumps(CASES)};\n"
    script += "console.log(JSON.stringify(cases.map((c) => [cloud(...c), said(...c)]))); })();"
    out = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True).stdout
    for (depth, skip, norm, causal), (found, text) in zip(CASES, json.loads(out), strict=True):
        expected = torch.tensor(cloud(depth, skip, norm, causal), dtype=torch.float64)
        got = torch.tensor(found, dtype=torch.float64)
        assert torch.allclose(got, expected, rtol=1e-9, atol=1e-11)
        assert text == TokenCloud(depth=depth, skip=skip, norm=norm, causal=causal).describe()


def test_the_cloud_is_attention_of_its_tokens():
    before, after = torch.tensor(cloud(1, True, "pre"), dtype=torch.float64)
    h, (c, s) = rms_norm(before), (math.cos(math.radians(137.5)), math.sin(math.radians(137.5)))
    turned = torch.stack([c * h[:, 0] - s * h[:, 1], s * h[:, 0] + c * h[:, 1]], dim=1)
    assert torch.allclose(after, before + (h @ h.T / math.sqrt(2)).softmax(1) @ turned, rtol=0, atol=1e-12)


def test_the_widget_refuses_what_it_cannot_show():
    for bad in ({"depth": 0}, {"depth": 13}, {"norm": "batch"}):
        with pytest.raises(traitlets.TraitError):
            TokenCloud(**bad)
