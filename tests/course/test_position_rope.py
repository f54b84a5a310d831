"""The reference code of chapter 8 against numpy, torch, brute force and the widget's JavaScript."""

import cmath
import importlib.util
import itertools
import json
import math
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
import torch

from course import position_rope as pr
from course.widgets.position_rope import RotaryClocks

ROOT = Path(__file__).resolve().parents[2]
EPS = torch.finfo(torch.float64).eps


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- order


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_is_torchs(causal):
    x, weights = random(2, 7, 6), [random(6, 4, seed=i) for i in (1, 2, 3)]
    oracle = torch.nn.functional.scaled_dot_product_attention(*(x @ W for W in weights), is_causal=causal)
    assert torch.allclose(pr.self_attention(x, *weights, causal=causal), oracle, rtol=0, atol=1e-12)


def layers(seed, causal):
    weights = [random(6, 6, seed=seed + i) / math.sqrt(6) for i in range(3)]
    return lambda x: pr.self_attention(x, *weights, causal=causal)


def test_gaps_of_all_permutations():
    x, plain, one, two = random(5, 6), layers(1, False), layers(1, True), layers(9, True)
    for order in itertools.permutations(range(5)):
        assert pr.equivariance_gap(plain, x, torch.tensor(order)) < 1e-12
    for order in itertools.permutations(range(4)):
        order = torch.tensor(order)
        assert pr.last_token_gap(one, x, order) < 1e-12
        if order.tolist() != [0, 1, 2, 3]:
            assert pr.last_token_gap(lambda x: two(one(x)), x, order) > 1e-6


@pytest.mark.parametrize(
    ("gap", "order"), [(pr.equivariance_gap, [0, 1, 1, 2]), (pr.equivariance_gap, [0, 1, 2]), (pr.last_token_gap, [0, 1, 2, 3])]
)
def test_gaps_want_a_permutation(gap, order):
    with pytest.raises(ValueError, match="permutation"):
        gap(lambda x: x, random(4, 2), torch.tensor(order))


# ---------------------------------------------------------------- frequencies, sinusoid


def test_frequencies_and_wavelengths():
    for d_head, theta in ((2, 7.0), (64, 1e4), (128, 5e5)):
        oracle = [float(theta) ** (-2 * i / d_head) for i in range(d_head // 2)]
        assert np.allclose(pr.rope_frequencies(d_head, theta), oracle, rtol=1e-14, atol=0)
        assert pr.rope_frequencies(d_head, theta)[0] == 1
        assert math.isclose(pr.wavelengths(d_head, theta)[-1], 2 * math.pi * theta ** (1 - 2 / d_head), rel_tol=1e-13)


@pytest.mark.parametrize(("d_head", "theta"), [(7, 1e4), (0, 1e4), (8, 0.0), (8, -1.0)])
def test_frequencies_refuse(d_head, theta):
    with pytest.raises(ValueError):
        pr.rope_frequencies(d_head, theta)


def test_sinusoid_is_the_paper_by_loop():
    table = pr.sinusoid(torch.arange(50), 10)
    for position in range(50):
        for i in range(5):
            angle = position / 10_000 ** (2 * i / 10)
            assert abs(table[position, 2 * i] - math.sin(angle)) < 60 * EPS
            assert abs(table[position, 2 * i + 1] - math.cos(angle)) < 60 * EPS


def test_sinusoid_offset_moves_every_position():
    M = pr.sinusoid_offset(7, 12)
    moved = pr.sinusoid(torch.arange(40), 12) @ M.T
    assert torch.allclose(moved, pr.sinusoid(torch.arange(40) + 7, 12), rtol=0, atol=1e-13)
    assert torch.allclose(M @ M.T, torch.eye(12, dtype=torch.float64), rtol=0, atol=1e-14)


# ---------------------------------------------------------------- rope


def test_rope_is_complex_multiplication():
    x, positions = random(3, 5, 8), torch.tensor([0, 3, 1000, 7, 7])
    turned = pr.rope(x, positions, 500.0, "interleaved").numpy()
    for b, t, i in itertools.product(range(3), range(5), range(4)):
        z = complex(x[b, t, 2 * i], x[b, t, 2 * i + 1]) * cmath.exp(1j * int(positions[t]) * 500.0 ** (-2 * i / 8))
        assert abs(complex(turned[b, t, 2 * i], turned[b, t, 2 * i + 1]) - z) < 1000 * 4 * EPS * abs(z)


def test_rope_is_the_block_matrix():
    x = random(4, 6)
    for t, m in enumerate((0, 2, 11, -5)):
        oracle = pr.rope_matrix(m, 6) @ x[t]
        assert torch.allclose(pr.rope(x, torch.tensor([0, 2, 11, -5]), layout="interleaved")[t], oracle, rtol=0, atol=1e-14)


@pytest.mark.parametrize("d_head", [2, 4, 6, 64])
def test_layouts_agree_up_to_the_permutation(d_head):
    x, order = random(2, 9, d_head), pr.layout_permutation(d_head)
    half, between = pr.rope(x[..., order], torch.arange(9)), pr.rope(x, torch.arange(9), layout="interleaved")
    assert torch.equal(half, between[..., order])


def test_score_knows_the_offset_only_and_norms_stay():
    q, k = random(1, 32), random(1, 32, seed=1)
    for layout in ("half", "interleaved"):
        scores = [
            pr.rope(q, torch.tensor([n + 5]), layout=layout) @ pr.rope(k, torch.tensor([n]), layout=layout).T
            for n in (0, 1, 100, 9_999)
        ]
        assert all(abs(s - scores[0]) < 1e-10 for s in scores)
        assert abs(pr.rope(q, torch.tensor([12345]), layout=layout).norm() - q.norm()) < 1e-13 * q.norm() * 8


def test_rope_keeps_the_dtype_and_makes_angles_in_float64():
    x, positions = random(3, 8), torch.tensor([0, 100_000, 900_001])
    exact = pr.rope(x, positions)
    for dtype in (torch.float32, torch.bfloat16):
        turned = pr.rope(x.to(dtype), positions)
        assert turned.dtype == dtype
        assert (turned.double() - exact).abs().max() < 4 * torch.finfo(dtype).eps * x.abs().max()


@pytest.mark.parametrize(
    ("x", "positions", "layout"),
    [
        (random(3, 8), torch.arange(3), "halves"),
        (random(3, 8), torch.arange(2), "half"),
        (random(3, 7), torch.arange(3), "half"),
        (random(1, 8), torch.arange(9), "half"),
    ],
)
def test_rope_refuses(x, positions, layout):
    with pytest.raises(ValueError):
        pr.rope(x, positions, layout=layout)


def test_score_of_a_pair_as_the_exercise_wants_it():
    m, n, omega, q0, q1, k0, k1 = sp.symbols("m n omega q0 q1 k0 k1", real=True)
    R_m, R_n = (sp.Matrix([[sp.cos(p * omega), -sp.sin(p * omega)], [sp.sin(p * omega), sp.cos(p * omega)]]) for p in (m, n))
    score = (R_m * sp.Matrix([q0, q1])).dot(R_n * sp.Matrix([k0, k1]))
    claimed = (q0 * k0 + q1 * k1) * sp.cos(omega * (n - m)) + (q1 * k0 - q0 * k1) * sp.sin(omega * (n - m))
    assert sp.simplify(sp.expand_trig(score - claimed)) == 0


# ---------------------------------------------------------------- biases


def test_alibi_slopes_and_bias_by_loop():
    assert pr.alibi_slopes(8).tolist() == [2.0**-h for h in range(1, 9)]
    assert pr.alibi_slopes(16)[0] == pytest.approx(2**-0.5)
    bias = pr.alibi_bias(4, 6)
    for h, i, j in itertools.product(range(4), range(6), range(6)):
        oracle = -(2.0 ** (-8 * (h + 1) / 4)) * (i - j) if j <= i else -math.inf
        assert bias[h, i, j] == oracle
    with pytest.raises(ValueError):
        pr.alibi_slopes(0)


def brute_bucket(relative, n_buckets, max_distance, bidirectional):
    """The published rule with exact fractions: the floor of a ratio of logarithms is the largest s with E·(D/E)^(s/S) ≤ r."""
    side = n_buckets // 2 if bidirectional else n_buckets
    ahead = side if bidirectional and relative > 0 else 0
    r = abs(relative) if bidirectional else max(-relative, 0)
    E = side // 2
    if r < E:
        return ahead + r
    steps, ratio, growth = side - E, Fraction(r, E), Fraction(max_distance, E)
    s = 0
    while s < steps - 1 and ratio**steps >= growth ** (s + 1):
        s += 1
    return ahead + E + s


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (16, 100), (8, 50), (64, 300), (10, 77), (20, 1000)])
def test_t5_bucket_is_the_rule_in_exact_fractions(n_buckets, max_distance, bidirectional):
    relative = torch.arange(-max_distance - 9, max_distance + 10)
    oracle = [brute_bucket(r, n_buckets, max_distance, bidirectional) for r in relative.tolist()]
    assert pr.t5_bucket(relative, n_buckets, max_distance, bidirectional).tolist() == oracle


def test_t5_bucket_is_the_formula_in_floats():
    """As published, with logarithms; where the floor's argument is no whole number the two must agree."""
    for n_buckets, max_distance in ((32, 128), (16, 100), (8, 50), (64, 300), (10, 77)):
        E = n_buckets // 2
        for r in range(max_distance + 20):
            wanted = r if r < E else min(n_buckets - 1, E + int(math.log(r / E) / math.log(max_distance / E) * (n_buckets - E)))
            assert pr.t5_bucket(torch.tensor(-r), n_buckets, max_distance) == wanted


@pytest.mark.parametrize(("n_buckets", "max_distance"), [(1, 128), (32, 16), (32, 10)])
def test_t5_bucket_refuses(n_buckets, max_distance):
    with pytest.raises(ValueError):
        pr.t5_bucket(torch.tensor(-3), n_buckets, max_distance)


def test_t5_bias_by_loop():
    table = random(8, 3)
    bias = pr.t5_bias(table, 12, max_distance=20)
    for h, i, j in itertools.product(range(3), range(12), range(12)):
        assert bias[h, i, j] == (table[brute_bucket(j - i, 8, 20, False), h] if j <= i else -math.inf)


# ---------------------------------------------------------------- the model


def model(scheme, seed=0, **changes):
    torch.manual_seed(seed)
    return (
        pr.PositionModel(**({"V": 11, "d_model": 16, "n_heads": 2, "n_layers": 2, "scheme": scheme, "T_max": 12} | changes))
        .double()
        .eval()
    )


@pytest.mark.parametrize("scheme", pr.SCHEMES)
def test_model_is_causal_and_shaped(scheme):
    net, ids = model(scheme), torch.randint(0, 11, (3, 12), generator=torch.Generator().manual_seed(0))
    later = ids.clone()
    later[:, 7:] = (later[:, 7:] + 1) % 11
    logits = net(ids)
    assert logits.shape == (3, 12, 11)
    assert torch.allclose(logits[:, :7], net(later)[:, :7], rtol=0, atol=1e-12)
    assert not torch.allclose(logits[:, 7:], net(later)[:, 7:])


@pytest.mark.parametrize("scheme", pr.SCHEMES)
def test_one_layer_knows_the_order_unless_it_has_no_scheme(scheme):
    net, ids = model(scheme, n_layers=1), torch.tensor([[1, 2, 3, 4, 5, 6]])
    net.blocks[0].attention.table = torch.nn.Parameter(random(32, 2)) if scheme == "t5" else None
    moved = (net(ids)[0, -1] - net(ids[:, [3, 0, 4, 1, 2, 5]])[0, -1]).abs().max()
    assert moved < 1e-12 if scheme == "none" else moved > 1e-6


def test_attention_of_each_scheme_by_hand():
    x = random(1, 6, 8)
    for scheme in pr.SCHEMES:
        torch.manual_seed(3)
        layer = pr.Attention(8, 2, scheme, 100.0).double()
        if scheme == "t5":
            layer.table = torch.nn.Parameter(random(32, 2, seed=5))
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in layer.qkv(x).chunk(3, dim=-1))
        if scheme == "rope":
            q, k = pr.rope(q, torch.arange(6), 100.0), pr.rope(k, torch.arange(6), 100.0)
        logits = q @ k.mT / (1 if scheme == "t5" else 2)
        logits = logits + torch.full((6, 6), -math.inf, dtype=torch.float64).triu(1)
        if scheme == "alibi":
            logits = logits + pr.alibi_bias(2, 6)
        if scheme == "t5":
            logits = logits + pr.t5_bias(layer.table, 6)
        oracle = layer.out((logits.softmax(-1) @ v).transpose(1, 2).flatten(2))
        assert torch.allclose(layer(x), oracle, rtol=0, atol=1e-12), scheme


def test_t5_starts_as_a_model_with_the_scale():
    ids = torch.randint(0, 11, (2, 12), generator=torch.Generator().manual_seed(0))
    assert torch.allclose(model("t5")(ids), model("none")(ids), rtol=0, atol=1e-6)  # the weights were divided in float32


@pytest.mark.parametrize("changes", [{"scheme": "rotary"}, {"d_model": 18}])
def test_model_refuses(changes):
    with pytest.raises(ValueError):
        model(**({"scheme": "rope"} | changes))


# ---------------------------------------------------------------- the widget and the experiment


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_widget_computes_what_python_computes():
    source = (ROOT / "course/widgets/position_rope.js").read_text().replace("export default", "const made =")
    cases = [(16, 1e4, 3), (16, 10.0, 500), (8, 1e6, 17)]
    script = (
        source
        + f"\nconsole.log(JSON.stringify({json.dumps(cases)}.map(([d, b, r]) => [ropeShares(d, b, r), ropeScore(d, b, r)])));"
    )
    told = json.loads(subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True).stdout)
    for (d_head, theta, distance), (shares, score) in zip(cases, told, strict=True):
        widget = RotaryClocks(theta=theta, distance=distance, d_head=d_head)
        assert np.allclose(shares, widget.shares(), rtol=0, atol=1e-12)
        query = pr.rope(torch.ones(1, d_head, dtype=torch.float64), torch.tensor([40]), theta)
        key = pr.rope(torch.ones(1, d_head, dtype=torch.float64), torch.tensor([40 - distance]), theta)
        assert math.isclose(score, float(query @ key.T) / d_head, abs_tol=1e-12)


def test_widget_says_what_it_shows():
    widget = RotaryClocks(theta=10_000, position=20, distance=3)
    assert widget.state() == {"theta": 10_000.0, "position": 20, "distance": 3, "d_head": 16}
    assert "score is 0.69" in widget.describe()


def experiment():
    spec = importlib.util.spec_from_file_location("position_rope_experiment", ROOT / "experiments/position_rope.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_losses_are_taken_on_the_same_characters():
    module = experiment()
    settings = {"lengths": [4, 8, 16], "T": 4, "windows": 6}
    held_out = torch.arange(200) % 11
    seen = []

    class Fixed(torch.nn.Module):
        def forward(self, ids):
            seen.append(ids)
            return torch.nn.functional.one_hot(ids, 11).double() * 3

    found = module.losses(Fixed(), settings, held_out)
    assert [ids.shape[1] for ids in seen] == [4, 8, 16]
    assert all(torch.equal(ids[:, -4:], seen[0]) for ids in seen)
    assert found[0] == found[1] == found[2]
