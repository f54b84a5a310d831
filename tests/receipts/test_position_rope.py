"""The evidence behind the formulas of ch08_position_rope."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
import torch
from scipy import stats

from course import data
from course import position_rope as pr

EPS = torch.finfo(torch.float64).eps


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def layer(seed, causal):
    weights = [normal(6, 6, seed=seed + i) / math.sqrt(6) for i in range(3)]
    return lambda x: pr.self_attention(x, *weights, causal=causal)


def real(names):
    return sp.symbols(names, real=True)


def rotation(angle):
    return sp.Matrix([[sp.cos(angle), -sp.sin(angle)], [sp.sin(angle), sp.cos(angle)]])


# ---------------------------------------------------------------- order


@pytest.mark.receipt("ch08-equivariance", "computed")
def test_unmasked_attention_is_equivariant():
    for seed in range(5):
        x, plain = normal(5, 6, seed=seed), layer(100 + seed, causal=False)
        for order in itertools.permutations(range(5)):
            order = list(order)
            assert float((plain(x[order]) - plain(x)[order]).abs().max()) <= 1e-13
    torch.manual_seed(0)
    torchs, x = torch.nn.MultiheadAttention(6, 2, batch_first=True).double().requires_grad_(False), normal(5, 6, seed=9)
    for order in itertools.permutations(range(5)):
        moved = x[list(order)]
        assert float((torchs(moved, moved, moved)[0] - torchs(x, x, x)[0][list(order)]).abs().max()) <= 1e-13


@pytest.mark.receipt("ch08-causal-last", "computed")
def test_one_causal_layer_is_blind_for_the_last_token_and_two_are_not():
    for seed in range(5):
        x, one, two = normal(5, 6, seed=seed), layer(100 + seed, causal=True), layer(200 + seed, causal=True)
        changed = torch.cat([x[:3], -x[3:]])
        assert float((one(changed)[:3] - one(x)[:3]).abs().max()) <= 1e-13  # causal: the future is not read
        for order in itertools.permutations(range(4)):
            moved = x[[*order, 4]]
            assert float((one(moved)[-1] - one(x)[-1]).abs().max()) <= 1e-13
            if order != (0, 1, 2, 3):
                assert float((two(one(moved))[-1] - two(one(x))[-1]).abs().max()) > 1e-6


@pytest.mark.receipt("ch08-same-result", "erratum")
def test_the_outputs_are_permuted_not_the_same():
    x, plain = normal(5, 6, seed=0), layer(100, causal=False)
    order = [3, 0, 4, 1, 2]
    assert float((plain(x[order]) - plain(x)).abs().max()) > 0.1
    assert float((plain(x[order]) - plain(x)[order]).abs().max()) <= 1e-13


# ---------------------------------------------------------------- the wave


def wave_by_hand(position, column, d_model):
    angle = position / 10_000 ** ((column - column % 2) / d_model)
    return math.cos(angle) if column % 2 else math.sin(angle)


@pytest.mark.receipt("ch08-pe-even", "computed")
def test_even_columns():
    table = pr.sinusoid(torch.arange(300), 24)
    for position, column in itertools.product(range(300), range(0, 24, 2)):
        assert abs(float(table[position, column]) - wave_by_hand(position, column, 24)) <= 300 * 4 * EPS


@pytest.mark.receipt("ch08-pe-odd", "computed")
def test_odd_columns():
    table = pr.sinusoid(torch.arange(300), 24)
    for position, column in itertools.product(range(300), range(1, 24, 2)):
        assert abs(float(table[position, column]) - wave_by_hand(position, column, 24)) <= 300 * 4 * EPS


def wave(position, omega):
    return sp.Matrix([sp.sin(omega * position), sp.cos(omega * position)])


@pytest.mark.receipt("ch08-pe-offset", "derived")
def test_an_offset_is_one_linear_map():
    pos, k, omega = real("pos k omega")
    step = sp.Matrix([[sp.cos(omega * k), sp.sin(omega * k)], [-sp.sin(omega * k), sp.cos(omega * k)]])
    assert sp.simplify(wave(pos + k, omega) - step * wave(pos, omega)) == sp.zeros(2, 1)
    moved = pr.sinusoid(torch.arange(50), 10) @ pr.sinusoid_offset(7, 10).T
    assert float((moved - pr.sinusoid(torch.arange(50) + 7, 10)).abs().max()) <= 1e-13


@pytest.mark.receipt("ch08-pe-dot", "derived")
def test_the_dot_product_of_two_waves_knows_the_offset():
    pos, k, omega = real("pos k omega")
    dot = sp.simplify(wave(pos, omega).dot(wave(pos + k, omega)))
    assert sp.simplify(dot - sp.cos(omega * k)) == 0 and pos not in dot.free_symbols


# ---------------------------------------------------------------- rotations


@pytest.mark.receipt("ch08-rotation", "derived")
def test_the_matrix_turns_by_the_angle():
    m, omega, angle, radius = real("m omega alpha r")
    hand = radius * sp.Matrix([sp.cos(angle), sp.sin(angle)])
    turned = radius * sp.Matrix([sp.cos(angle + m * omega), sp.sin(angle + m * omega)])
    assert sp.simplify(sp.expand_trig(rotation(m * omega) * hand - turned)) == sp.zeros(2, 1)


@pytest.mark.receipt("ch08-rope-offset", "derived")
def test_turning_back_m_and_forward_n_is_turning_by_the_difference():
    m, n, omega = real("m n omega")
    assert sp.simplify(rotation(m * omega).T * rotation(n * omega) - rotation((n - m) * omega)) == sp.zeros(2, 2)


@pytest.mark.receipt("ch08-rope-norm", "derived")
def test_a_rotation_keeps_the_norm():
    m, omega, q0, q1 = real("m omega q0 q1")
    turned = rotation(m * omega) * sp.Matrix([q0, q1])
    assert sp.simplify(turned.dot(turned) - q0**2 - q1**2) == 0


def llamas_frequencies(d_model, n_heads, theta):
    """Of Hugging Face's Llama, (d_head / 2,), in float32."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    turn = {"rope_type": "default", "rope_theta": theta}
    return LlamaRotaryEmbedding(LlamaConfig(hidden_size=d_model, num_attention_heads=n_heads, rope_parameters=turn)).inv_freq


WIDTHS = ((2, 7.0), (8, 100.0), (64, 1e4), (128, 5e5))


@pytest.mark.receipt("ch08-rope-frequencies", "computed")
def test_frequencies():
    for d_head, theta in WIDTHS:
        theirs = llamas_frequencies(3 * d_head, 3, theta).double()
        assert torch.allclose(pr.rope_frequencies(d_head, theta), theirs, rtol=1e-6, atol=0)
        for i, omega in enumerate(pr.rope_frequencies(d_head, theta).tolist()):
            assert abs(omega - math.exp(-2 * i / d_head * math.log(theta))) <= 64 * EPS * omega


@pytest.mark.receipt("ch08-d-model", "erratum")
def test_the_width_is_that_of_the_rotated_head():
    right, wrong = llamas_frequencies(512, 8, 1e4).double(), pr.rope_frequencies(512)[:32]
    assert len(right) == 32 and torch.allclose(right, pr.rope_frequencies(64), rtol=1e-6, atol=0)
    assert float(2 * math.pi / wrong[-1]) < 20 and float(2 * math.pi / right[-1]) > 47_000


def turned_by_complex_numbers(x, position, theta=10_000.0):
    d = len(x)
    z = x[0::2].numpy() + 1j * x[1::2].numpy()
    z = z * np.exp(1j * position * theta ** (-np.arange(0, d, 2) / d))
    return torch.from_numpy(np.stack([z.real, z.imag], axis=-1).reshape(d))


@pytest.mark.receipt("ch08-rope-query", "computed")
def test_queries_are_turned_by_their_position():
    for seed, position in enumerate((0, 1, 17, 4_000)):
        q = normal(24, seed=seed)
        told = pr.rope(q[None], torch.tensor([position]), layout="interleaved")[0]
        oracle = turned_by_complex_numbers(q, position)
        assert float((told - oracle).abs().max()) <= 16 * (1 + position) * EPS * float(q.norm())
        assert float((told - pr.rope_matrix(position, 24) @ q).abs().max()) <= 16 * (1 + position) * EPS * float(q.norm())


@pytest.mark.receipt("ch08-rope-key", "computed")
def test_keys_are_turned_by_theirs_and_the_score_knows_the_difference():
    for seed, (m, n) in enumerate(((0, 0), (9, 4), (4_000, 17))):
        q, k = normal(24, seed=seed), normal(24, seed=10 + seed)
        query, key = (pr.rope(x[None], torch.tensor([p]), layout="interleaved")[0] for x, p in ((q, m), (k, n)))
        assert float((key - turned_by_complex_numbers(k, n)).abs().max()) <= 16 * (1 + n) * EPS * float(k.norm())
        relative = float(q @ turned_by_complex_numbers(k, n - m))
        assert abs(float(query @ key) - relative) <= 64 * (1 + m + n) * EPS * float(q.norm() * k.norm())


@pytest.mark.receipt("ch08-layouts", "computed")
def test_the_layouts_are_one_rotation_in_two_orders():
    for d_head in (2, 4, 6, 64):
        x, order = normal(9, d_head, seed=d_head), list(range(0, d_head, 2)) + list(range(1, d_head, 2))
        half = pr.rope(x[:, order], torch.arange(9))
        oracle = torch.stack([turned_by_complex_numbers(row, t) for t, row in enumerate(x)])[:, order]
        assert float((half - oracle).abs().max()) <= 1e-13


@pytest.mark.receipt("ch08-wavelength", "derived")
def test_the_wavelengths_and_their_two_ends():
    for width, base in WIDTHS:
        for pair, length in enumerate(2 * math.pi * base ** (2 * i / width) for i in range(width // 2)):
            block = slice(2 * pair, 2 * pair + 2)
            for turns, expected in ((1, 1.0), (0.5, -1.0)):
                turned = pr.rope_matrix(turns * length, width, base)[block, block]
                assert float((turned - expected * torch.eye(2, dtype=torch.float64)).abs().max()) <= 1e-9
    theta, d, i = sp.symbols("theta d i", positive=True)
    length = 2 * sp.pi * theta ** (2 * i / d)
    assert length.subs(i, 0) == 2 * sp.pi  # whatever the base
    assert sp.simplify(length.subs(i, d / 2 - 1) - 2 * sp.pi * theta ** (1 - 2 / d)) == 0
    assert sp.simplify(sp.diff(length, theta) - 4 * sp.pi * i / d * theta ** (2 * i / d - 1)) == 0  # positive for every i > 0
    assert [round(float(pr.wavelengths(width)[-1])) for width in (64, 128)] == [47_117, 54_410]


@pytest.mark.receipt("ch08-slowest", "erratum")
def test_the_slowest_wavelength_is_shorter_and_nothing_repeats_there():
    assert abs(float(pr.wavelengths(64)[-1]) - 47_117) < 0.5 and 2 * math.pi * 1e4 > 62_831
    omega = pr.rope_frequencies(64)
    far = torch.arange(47_118, 1_000_000).split(20_000)
    nearest = min(float((2 - 2 * (r.double()[:, None] * omega).cos()).mean(1).sqrt().min()) for r in far)
    neighbour = float((2 - 2 * omega.cos()).mean().sqrt())
    assert nearest > 0.93 and neighbour < 0.27


@pytest.mark.receipt("ch08-values", "computed")
def test_turned_values_need_the_output_turned_back():
    q, k, v = (normal(6, 8, seed=s) for s in range(3))

    def mix(start, back):
        where = torch.arange(start, start + 6)
        turned = torch.nn.functional.scaled_dot_product_attention(*(pr.rope(x, where) for x in (q, k, v)), is_causal=True)
        return pr.rope(turned, -where) if back else turned

    assert float((mix(10, back=True) - mix(0, back=True)).abs().max()) <= 1e-13
    assert float((mix(10, back=False) - mix(0, back=False)).abs().max()) > 0.1


# ---------------------------------------------------------------- biases


@pytest.mark.receipt("ch08-alibi", "computed")
def test_alibi():
    for H, T in ((1, 3), (4, 6), (8, 5)):
        bias = pr.alibi_bias(H, T)
        for h, i, j in itertools.product(range(H), range(T), range(T)):
            oracle = -math.exp(-8 * (h + 1) / H * math.log(2)) * (i - j) if j <= i else -math.inf
            assert float(bias[h, i, j]) == oracle or abs(float(bias[h, i, j]) - oracle) <= 16 * EPS * abs(oracle)
    assert [round(1 / s) for s in pr.alibi_slopes(8).tolist()] == [2, 4, 8, 16, 32, 64, 128, 256]
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    for H in (4, 8, 16):  # theirs is the slope times the position of the key: the same up to a shift of each row
        theirs = build_alibi_tensor(torch.ones(1, 3), H, torch.float64)[:, 0]  # (H, T)
        assert torch.allclose(theirs[:, 1] - theirs[:, 0], pr.alibi_slopes(H), rtol=1e-6, atol=0)


def bucket_by_fractions(r, B, D):
    """The largest s with E·(D/E)^(s/(B − E)) ≤ r, in exact arithmetic."""
    E = B // 2
    if r < E:
        return r
    return max(E + s for s in range(B - E) if Fraction(r, E) ** (B - E) >= Fraction(D, E) ** s)


@pytest.mark.receipt("ch08-t5", "computed")
def test_t5():
    for B, D in ((32, 128), (16, 100), (8, 50), (8, 64)):  # with the last, every edge is a whole number
        table = normal(B, 2, seed=B)
        buckets = [bucket_by_fractions(r, B, D) for r in range(D + 20)]
        assert pr.t5_bucket(-torch.arange(D + 20), B, D).tolist() == buckets
        bias = pr.t5_bias(table, 60, D)
        for h, i, j in itertools.product(range(2), range(0, 60, 7), range(60)):
            assert float(bias[h, i, j]) == (float(table[buckets[i - j], h]) if j <= i else -math.inf)
    torch.manual_seed(0)
    net = pr.Attention(8, 2, "t5", 10_000.0).double()
    x = normal(1, 5, 8, seed=1)
    q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in net.qkv(x).chunk(3, dim=-1))
    logits = (q @ k.mT).masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf)  # no 1/√d
    oracle = net.out((logits.softmax(-1) @ v).transpose(1, 2).flatten(2))
    assert float((net(x) - oracle).detach().abs().max()) <= 1e-12


@pytest.mark.receipt("ch08-t5", "computed")
def test_t5_is_hugging_faces():
    from transformers import T5Config, T5EncoderModel
    from transformers.models.t5.modeling_t5 import T5Attention

    places = torch.arange(-150, 151)
    for n_buckets, reach in ((32, 128), (16, 100)):
        for both in (False, True):
            theirs = T5Attention._relative_position_bucket(places, both, n_buckets, reach)
            assert torch.equal(pr.t5_bucket(places, n_buckets, reach, bidirectional=both), theirs)
    ahead, back = (pr.t5_bucket(torch.arange(200) * side, bidirectional=True).unique() for side in (1, -1))
    assert set(ahead.tolist()) == {0, *range(17, 32)} and back.tolist() == list(range(16))  # each side has half of the 32
    torch.manual_seed(0)
    sizes = T5Config(vocab_size=9, d_model=8, d_kv=4, d_ff=8, num_layers=3, num_heads=2, dropout_rate=0.0)
    sizes._attn_implementation = "eager"
    stack = T5EncoderModel(sizes)
    assert sum("relative_attention_bias" in name for name, _ in stack.named_parameters()) == 1
    layer, x = T5Attention(sizes, has_relative_attention_bias=True).requires_grad_(False), torch.randn(1, 6, 8)
    for parameter in layer.parameters():
        parameter.normal_()
    q, k, v = (part(x).unflatten(-1, (2, 4)).transpose(1, 2) for part in (layer.q, layer.k, layer.v))
    between = torch.arange(6)[None, :] - torch.arange(6)[:, None]
    bias = layer.relative_attention_bias.weight[pr.t5_bucket(between, bidirectional=True)].permute(2, 0, 1)
    oracle = layer.o(((q @ k.mT + bias).softmax(-1) @ v).transpose(1, 2).flatten(2))  # no 1/√d
    assert float((layer(x)[0] - oracle).abs().max()) <= 1e-5 * float(oracle.abs().max())


# ---------------------------------------------------------------- measured


@pytest.mark.receipt("ch08-length", "measured")
def test_length_generalisation_is_on_record():
    record = data.record("position_rope")
    settings, seeds = record["settings"], record["seeds"]
    assert record["device"] and record["versions"]["torch"] and len(seeds) == len(set(seeds)) == 4
    assert (record["mode"], settings["n_layers"], settings["steps"], settings["table_rate"]) == ("full", 4, 500, 10)
    assert settings["lengths"] == [settings["T"], 2 * settings["T"], 4 * settings["T"]]
    assert set(record["results"]["runs"]) == set(pr.SCHEMES)
    for scheme, runs in record["results"]["runs"].items():
        assert len(runs) == len(seeds) and all(len(run) == 3 for run in runs)
        assert all(0 < loss < 2 * math.log(settings["V"]) for run in runs for loss in run)
        changes = [run[-1] - run[0] for run in runs]
        low, high = stats.t.interval(0.95, len(changes) - 1, loc=np.mean(changes), scale=stats.sem(changes))
        told = record["results"]["summary"][scheme]
        assert abs(told["change_mean"] - (low + high) / 2) <= 1e-3 and abs(told["change_half_width"] - (high - low) / 2) <= 1e-3
        assert all(abs(change) < 1e-3 if scheme == "alibi" else change > 0.15 for change in changes)
    at_T = {scheme: [run[0] for run in runs] for scheme, runs in record["results"]["runs"].items()}
    assert max(at_T.pop("rope")) < min(loss for losses in at_T.values() for loss in losses)
