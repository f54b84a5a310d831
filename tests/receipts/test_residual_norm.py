"""The evidence behind the formulas of ch07_residual_norm."""

import itertools
import math

import pytest
import sympy as sp
import torch
from torch.nn import functional as F

from course import data
from course.model import RMSNorm
from course.residual_norm import (
    layer_norm,
    layer_norm_backward,
    parts_of,
    post_block,
    pre_block,
    random_blocks,
    rank_residual,
    rms_norm,
    rms_norm_backward,
    skip_share,
    streams,
)

SHAPES = [(4,), (1, 2), (3, 5), (2, 3, 16), (7, 64)]


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- the two norms


@pytest.mark.receipt("ch07-layernorm", "computed")
@pytest.mark.receipt("ch07-rmsnorm", "computed")
@pytest.mark.parametrize("eps", [0.0, 1e-5, 0.3])
def test_the_norms_are_torchs(eps):
    for shape in SHAPES:
        d = shape[-1]
        x, weight, bias = 3 * normal(*shape, seed=d) + 1, normal(d, seed=1), normal(d, seed=2)
        layer = F.layer_norm(x, (d,), weight, bias, eps)
        assert torch.allclose(layer_norm(x, weight, bias, eps), layer, rtol=0, atol=1e-12)
        unbiased = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps).sqrt() * weight + bias
        assert d > 16 or float((unbiased - layer).abs().max()) > 0.01
        module = RMSNorm(d, eps).double()
        module.weight.data = weight
        for known in (F.rms_norm(x, (d,), weight, eps), module(x)):
            assert torch.allclose(rms_norm(x, weight, eps), known, rtol=0, atol=1e-12)


@pytest.mark.receipt("ch07-eps", "derived")
def test_what_epsilon_leaves_of_the_size():
    x, eps = sp.symbols("x1:4", real=True), sp.Symbol("epsilon", positive=True)
    mean = sum(x) / 3
    for row in (x, [each - mean for each in x]):
        m = sum(each**2 for each in row) / 3
        left = sum((each / sp.sqrt(m + eps)) ** 2 for each in row) / 3
        assert sp.simplify(left - m / (m + eps)) == 0
    for size in (1e-3, 0.02, 1.0):
        x = size * (normal(5, 64) + 1)
        for normed, row in (
            (F.rms_norm(x, (64,), eps=1e-5), x),
            (F.layer_norm(x, (64,), eps=1e-5), x - x.mean(-1, keepdim=True)),
        ):
            m = row.square().mean(-1)
            assert torch.allclose(normed.square().mean(-1), m / (m + 1e-5), rtol=0, atol=1e-12)


def symbolic_norm(d, eps, centred=False):
    """Entries x, a gradient g, the size r, the normed row u and the gradient in x of g · u."""
    x, g = sp.symbols(f"x1:{d + 1}", positive=True), sp.symbols(f"g1:{d + 1}", real=True)
    mean = sum(x) / d if centred else 0
    r = sp.sqrt(sum((each - mean) ** 2 for each in x) / d + eps)
    u = [(each - mean) / r for each in x]
    loss = sum(a * b for a, b in zip(g, u, strict=True))
    return x, g, r, u, [sp.diff(loss, each) for each in x]


@pytest.mark.receipt("ch07-jacobian", "derived")
@pytest.mark.parametrize("d", [2, 3])
def test_the_backward_pass_with_symbols(d):
    x, g, r, u, grad = symbolic_norm(d, sp.Symbol("epsilon", positive=True))
    for i, j in itertools.product(range(d), repeat=2):
        assert sp.simplify(sp.diff(u[j], x[i]) - (int(i == j) - u[i] * u[j] / d) / r) == 0
    along = sum(a * b for a, b in zip(g, u, strict=True)) / d
    for i in range(d):
        assert sp.simplify(grad[i] - (g[i] - along * u[i]) / r) == 0


@pytest.mark.receipt("ch07-backward", "computed")
@pytest.mark.parametrize("eps", [1e-5, 0.3])
def test_the_backward_passes_are_autograds(eps):
    for shape in SHAPES[1:]:
        d = shape[-1]
        x, weight, grad_out = 2 * normal(*shape, seed=d) + 1, normal(d, seed=1) + 1, normal(*shape, seed=3)
        leaves = [each.clone().requires_grad_() for each in (x, weight, torch.zeros(d, dtype=torch.float64))]
        for told, known in (
            (rms_norm_backward(x, weight, grad_out, eps), F.rms_norm(leaves[0], (d,), leaves[1], eps)),
            (layer_norm_backward(x, weight, grad_out, eps), F.layer_norm(leaves[0], (d,), leaves[1], leaves[2], eps)),
        ):
            for ours, theirs in zip(told, torch.autograd.grad(known, leaves[: len(told)], grad_out), strict=True):
                assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.receipt("ch07-radial", "derived")
@pytest.mark.receipt("ch07-scale", "derived")
@pytest.mark.parametrize("d", [2, 3])
def test_no_radial_gradient_and_the_scale(d):
    c = sp.Symbol("c", positive=True)
    for centred in (False, True):
        x, _, _, _, grad = symbolic_norm(d, 0, centred)
        assert sp.simplify(sum(a * b for a, b in zip(grad, x, strict=True))) == 0
        for each in grad:
            assert sp.simplify(each.subs([(one, c * one) for one in x], simultaneous=True) - each / c) == 0
        if centred:
            assert sp.simplify(sum(grad)) == 0


# ---------------------------------------------------------------- sums and their place


@pytest.mark.receipt("ch07-product", "computed")
def test_the_jacobian_is_a_product_and_a_sum_over_ways():
    weights, x = [0.4 * normal(4, 4, seed=k) for k in range(5)], normal(4, seed=9)

    def stack(h):
        for W in weights:
            h = h + torch.tanh(h @ W)
        return h

    jacobians, h = [], x
    for W in weights:
        jacobians.append((torch.diag(1 - torch.tanh(h @ W) ** 2) @ W.T).T)  # (from, to), for rows
        h = h + torch.tanh(h @ W)
    whole = torch.autograd.functional.jacobian(stack, x).T
    product = torch.linalg.multi_dot([torch.eye(4, dtype=torch.float64) + J for J in jacobians])
    ways = torch.zeros(4, 4, dtype=torch.float64)
    for taken in itertools.product((False, True), repeat=5):
        way = torch.eye(4, dtype=torch.float64)
        for J, through in zip(jacobians, taken, strict=True):
            way = way @ J if through else way
        ways += way
    assert torch.allclose(whole, product, rtol=0, atol=1e-12) and torch.allclose(whole, ways, rtol=0, atol=1e-12)


@pytest.mark.receipt("ch07-err-unattenuated", "erratum")
def test_a_residual_stack_can_attenuate_and_amplify():
    x = torch.ones((), dtype=torch.float64, requires_grad=True)
    h = x
    for layer in range(30):
        h = h + (0.5 if layer % 2 else -0.5) * h
    assert abs(float(torch.autograd.grad(h, x)[0]) / (1.5**15 * 0.5**15) - 1) < 1e-12 and 1.5**15 * 0.5**15 < 0.0134
    for seed in range(5):
        x = normal(32, seed=seed).requires_grad_()
        h = x
        for layer in range(30):
            h = h + torch.tanh(h @ normal(32, 32, seed=100 * seed + layer) * 0.5 / math.sqrt(32))
        direction = normal(32, seed=50)
        assert float(torch.autograd.grad(h @ direction, x)[0].norm() / direction.norm()) > 2


@pytest.mark.receipt("ch07-add", "computed")
@pytest.mark.receipt("ch07-post", "computed")
@pytest.mark.receipt("ch07-pre", "computed")
def test_the_two_placements_are_what_they_say():
    """Against torch's encoder layer with one head, ReLU, no biases, and the weights of a random block."""
    for seed in range(3):
        (p,), x = random_blocks(1, 8, [seed], torch.float64), normal(1, 2, 5, 8, seed=seed)
        W = {name: matrix[0, 0] for name, matrix in p.items()}
        for first, block in ((True, pre_block), (False, post_block)):
            theirs = torch.nn.TransformerEncoderLayer(8, 1, 32, 0.0, norm_first=first, batch_first=True, bias=False).double()
            theirs.self_attn.in_proj_weight.data = torch.cat([W["W_q"], W["W_k"], W["W_v"]], dim=1).T
            theirs.self_attn.out_proj.weight.data = W["W_o"].T
            theirs.linear1.weight.data, theirs.linear2.weight.data = W["W_1"].T, W["W_2"].T
            ours = block(x, parts_of(p), layer_norm)
            assert torch.allclose(ours[0], theirs(x[0]), rtol=0, atol=1e-12)
            assert torch.allclose(
                streams(x, [p], "pre" if first else "post")[-1], block(x, parts_of(p), rms_norm), rtol=0, atol=1e-12
            )
        assert torch.equal(pre_block(x, [torch.zeros_like] * 2, layer_norm), x)


@pytest.mark.receipt("ch07-qk-norm", "derived")
def test_normed_queries_and_keys_bound_the_scores():
    for d in (2, 3, 4):
        q, k = sp.symbols(f"q1:{d + 1}", real=True), sp.symbols(f"k1:{d + 1}", real=True)
        squares = sum((q[i] * k[j] - q[j] * k[i]) ** 2 for i, j in itertools.combinations(range(d), 2))
        inner = sum(a * b for a, b in zip(q, k, strict=True))
        assert sp.expand(sum(a**2 for a in q) * sum(b**2 for b in k) - inner**2 - squares) == 0  # for normed rows: d² − ⟨q, k⟩²
    for d in (2, 8, 64):
        sizes = 10 ** (torch.rand(2, 1000, 1, generator=torch.Generator().manual_seed(d), dtype=torch.float64) * 9 - 3)
        q, k = (size * normal(1000, d, seed=i) for i, size in enumerate(sizes))
        normed_q, normed_k = (F.rms_norm(row, (d,), eps=1e-6) for row in (q, k))
        assert float((normed_q * normed_k).sum(-1).abs().max()) / math.sqrt(d) <= math.sqrt(d) * (1 + 1e-12)
        assert float((q * k).sum(-1).abs().max()) / math.sqrt(d) > 1e6  # without the norms nothing bounds them
        same = F.rms_norm(q, (d,), eps=0.0)
        assert abs(float((same * same).sum(-1).max()) / math.sqrt(d) - math.sqrt(d)) <= 1e-12 * d


@pytest.mark.receipt("ch07-skip", "derived")
def test_the_skip_path_alone():
    n, s = sp.symbols("n s", positive=True)
    step = (1 + s**2) ** (-(n + 1) / 2) / (1 + s**2) ** (-n / 2)  # post: each sum is divided by √(1 + s²)
    assert sp.simplify(step - 1 / sp.sqrt(1 + s**2)) == 0
    size = 1 + n * s**2  # pre: the stream's second moment, divided by once at the end
    assert sp.simplify(size.subs(n, n + 1) - size - s**2) == 0
    for placement in ("pre", "post"):
        start = normal(1_000_000, seed=1)
        h = start / start.square().mean().sqrt()
        unit, count, scale = h.clone(), 6, 0.8
        for k in range(count):
            h = h + scale * normal(1_000_000, seed=10 + k)
            h = rms_norm(h) if placement == "post" else h
        h = rms_norm(h)
        share = float((h * unit).mean())
        assert abs(share / skip_share(count, scale**2, placement) - 1) < 0.02


# ---------------------------------------------------------------- do tokens stay different?


@pytest.mark.receipt("ch07-residual", "computed")
def test_the_mean_row_is_the_nearest():
    for T, d in ((1, 3), (2, 2), (5, 4), (32, 16)):
        X = normal(T, d, seed=T) + 0.5
        best = torch.linalg.lstsq(torch.ones(T, 1, dtype=torch.float64), X).solution  # (1, d)
        nearest = (X - best).norm() / X.norm()
        assert abs(float(nearest - rank_residual(X))) < 1e-12
    squares = rank_residual(normal(2000, 8, 16, seed=3)).square()
    assert abs(float(squares.mean()) / (1 - 1 / 8) - 1) < 0.01


@pytest.mark.receipt("ch07-cubic", "computed")
def test_attention_cubes_a_small_residual():
    for seed in range(8):
        layer, centre, apart = random_blocks(1, 64, [seed], torch.float64), normal(1, 1, 1, 64, seed=seed), normal(1, 1, 32, 64)
        starts = [centre + size * (apart - apart.mean(-2, keepdim=True)) for size in (0.04, 0.02)]
        for causal, power in ((False, 3), (True, 1)):
            one, two = (rank_residual(streams(x, layer, "none", skip=False, ffn=False, causal=causal)[-1]) for x in starts)
            assert abs(float(one / two) / 2**power - 1) < 0.02


@pytest.mark.receipt("ch07-causal", "derived")
def test_causal_averages_halve_the_residual():
    for T in range(1, 7):
        A = sp.Matrix(T, T, lambda i, j: sp.Rational(1, i + 1) if j <= i else 0)
        assert A.eigenvals() == {sp.Rational(1, i + 1): 1 for i in range(T)}
    A, X = torch.ones(32, 32, dtype=torch.float64).tril(), normal(32, 8)
    A = A / A.sum(1, keepdim=True)
    sizes = []
    for _ in range(42):
        sizes.append(float(rank_residual(X)))
        X = A @ X
    assert abs(sizes[41] / sizes[40] - 0.5) < 0.005


# ---------------------------------------------------------------- the record


@pytest.fixture(scope="module")
def record():
    return data.record("residual_norm")


def ends(row, key):
    return row[key] - row[f"{key}_half_width"], row[key] + row[f"{key}_half_width"]


@pytest.mark.receipt("ch07-gradients", "measured")
def test_gradients_at_the_start_are_on_record(record):
    assert len(record["seeds"]) >= 20
    rows = {(row["placement"], row["L"]): row for row in record["results"]["gradients"]}
    for L in (2, 8, 32):
        assert ends(rows["pre", L], "gap")[1] < 0  # the last block's gradient is smaller than the first's
    assert ends(rows["pre", 2], "last")[0] > ends(rows["pre", 8], "last")[1] > ends(rows["pre", 32], "last")[1]
    assert abs(rows["pre", 32]["first"] - rows["pre", 8]["first"]) < 0.1  # how many blocks follow does not matter
    fall = rows["pre", 32]["last"] - rows["pre", 2]["last"]
    rise = rows["post", 32]["last"] - rows["post", 2]["last"]
    assert round(10**fall, 2) == 0.32 and round(10**rise, 1) == 1.3
    wide = {placement: math.hypot(*(rows[placement, L]["last_half_width"] for L in (2, 32))) for placement in ("pre", "post")}
    assert [round(10 ** (fall + sign * wide["pre"]), 2) for sign in (-1, 1)] == [0.29, 0.36]
    assert [round(10 ** (rise + sign * wide["post"]), 1) for sign in (-1, 1)] == [1.2, 1.5]


@pytest.mark.receipt("ch07-collapse", "measured")
def test_the_collapses_are_on_record(record):
    rows = {row["way"]: row for row in record["results"]["collapse"]}
    last = {way: (round(row["mean"][16], 1), row["half_width"][16]) for way, row in rows.items()}
    for way in ("attention alone", "with norm", "with norm and feed-forward"):
        assert last[way][0] < -14 and rows[way]["mean"][8] < -14
    assert last["with norm, causal"][0] == -4.1 and last["post-norm transformer"][0] == -2.1
    assert last["pre-norm transformer"][0] == -0.3 and last["with norm and skip"][0] == -0.4
    assert max(half for _, half in last.values()) < 0.3


@pytest.mark.receipt("ch07-err-collapse", "erratum")
def test_a_post_norm_stream_collapses_too(record):
    rows = {row["way"]: row for row in record["results"]["collapse"]}
    post = rows["post-norm transformer"]["mean"]
    for layer in range(8, 16):
        assert 0.67 < 10 ** (post[layer + 1] - post[layer]) < 0.75
    assert min(rows["pre-norm transformer"]["mean"]) > math.log10(0.4)


@pytest.mark.receipt("ch07-warmup", "measured")
def test_the_trainings_are_on_record(record):
    warm = record["settings"]["warm"]
    rows = {(row["L"], row["placement"], row["rate"], row["warm"]): row for row in record["results"]["training"]}
    assert all(len(row["loss"]) >= 5 for row in rows.values())
    gains = {}
    for (L, placement, rate, w), row in rows.items():
        if w == 1:
            other = rows[L, placement, rate, warm]["loss"]
            gains[L, placement, rate] = data.interval([a - b for a, b in zip(row["loss"], other, strict=True)], 3)
    assert len(gains) == 10
    mean, half = gains.pop((4, "post", 1e-2))
    assert round(mean, 2) == 0.63 and round(half, 2) == 0.12
    assert all(mean - half <= 0 for mean, half in gains.values())
    cost = {key: -mean for key, (mean, half) in gains.items() if mean + half < 0}
    assert len(cost) == 8 and min(cost.values()) == 0.002 and round(max(cost.values()), 2) == 0.08
    told = [rows[4, placement, 1e-2, w]["mean"] for placement in ("pre", "post") for w in (1, warm)]
    assert [round(x, 2) for x in told] == [2.46, 2.46, 3.27, 2.64]
    assert abs(told[2] - record["results"]["unigram"]) < 0.05
    for w in (1, warm):  # post-norm's best rate is the middle one
        for other in (1e-3, 1e-2):
            pairs = zip(rows[4, "post", other, w]["loss"], rows[4, "post", 3e-3, w]["loss"], strict=True)
            mean, half = data.interval([a - b for a, b in pairs])
            assert mean - half > 0
    for rate in (3e-4, 1e-3):
        for w in (1, warm):
            assert abs(rows[12, "post", rate, w]["mean"] - record["results"]["unigram"]) < 0.06
            assert rows[12, "pre", rate, w]["mean"] < record["results"]["unigram"] - 0.2
