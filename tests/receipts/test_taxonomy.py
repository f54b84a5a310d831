"""The evidence behind the formulas of ch18_taxonomy."""

import math

import pytest
import sympy as sp
import torch
import transformers
from scipy.signal import lfilter
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course import data, taxonomy
from course.model import GPT, Config
from course.overview import linear_scan


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plain(query, key, value, scale=None):
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(dim=-1) @ value


# ---------------------------------------------------------------- what is kept and paid


@pytest.mark.receipt("ch18-even", "computed")
def test_a_cache_overtakes_a_state():
    for d_head in (8, 64, 128):
        model = GPT(Config(V=5, n_layers=1, n_heads=1, d_model=d_head, T_max=80))
        state = taxonomy.ssm_scan(torch.ones(1), *normal(3, 1, d_head)).shape[-1] * d_head
        even = d_head * d_head / (d_head + d_head)
        for T in (math.floor(even) - 1, math.floor(even) + 1):
            cache = model.cache()
            with torch.no_grad():
                model(torch.zeros(1, T, dtype=torch.long), cache)
            numbers = sum(each.numel() for each in (*cache.keys, *cache.values))
            assert (numbers > state) == (even < T)


@pytest.mark.receipt("ch18-scores", "computed")
def test_grouping_cuts_the_cache_and_not_the_operations():
    T, H, d = 6, 8, 4
    for S in (6, 10):
        counted = {}
        for kv in (8, 2, 1):
            query, (key, value) = normal(1, H, T, d), normal(2, 1, kv, S, d)
            with FlopCounterMode(display=False) as counter:
                grouped = query.view(1, kv, H // kv, T, d)
                weights = (grouped @ key[:, :, None].mT).softmax(dim=-1)
                weights @ value[:, :, None]
            counted[kv] = counter.get_total_flops(), key.numel() + value.numel()
        assert {flops for flops, _ in counted.values()} == {4 * T * S * H * d}
        assert {kv: kept for kv, (_, kept) in counted.items()} == {kv: 2 * S * kv * d for kv in (8, 2, 1)}


@pytest.mark.receipt("ch18-err-latent", "erratum")
def test_the_saving_depends_on_the_baseline():
    latent = 60 * (512 + 64)
    grouped, own = 95 * 2 * 8 * 128, 60 * 2 * 128 * 128
    assert (latent, grouped) == (34_560, 194_560)
    assert round(1 - latent * 6 / (grouped * 16), 3) == 0.933
    assert round(1 - latent / grouped, 3) == 0.822 and round(1 - latent / own, 3) == 0.982


@pytest.mark.receipt("ch18-layers", "computed")
def test_layers_of_published_hybrids():
    jamba, qwen = transformers.JambaConfig().layers_block_type, transformers.Qwen3NextConfig().layer_types
    assert jamba.count("attention") * 8 == len(jamba) and set(jamba) == {"attention", "mamba"}
    assert qwen.count("full_attention") * 4 == len(qwen) and set(qwen) == {"full_attention", "linear_attention"}
    assert not {"layer_types", "layers_block_type"} & set(transformers.MiniMaxM2Config().to_dict())


# ---------------------------------------------------------------- attention in blocks, and with fewer keys


@pytest.mark.receipt("ch18-err-bits", "erratum")
def test_tiles_give_the_same_numbers_and_other_bits():
    exact = normal(3, 4, 200, 64, seed=1)
    whole = plain(*exact)
    for dtype, bound in ((torch.float32, 2e-6), (torch.float64, 1e-14)):
        query, key, value = exact.to(dtype)
        same = plain(query, key, value)
        forms = [taxonomy.tiled_attention(query, key, value, n) for n in (7, 32, 100)]
        for out in (*forms, F.scaled_dot_product_attention(query, key, value, is_causal=True)):
            assert not torch.equal(out, same)
            error = float((out - whole).abs().max())
            assert error <= bound


@pytest.mark.receipt("ch18-dropped", "computed")
def test_the_error_is_the_weight_that_was_dropped():
    for seed in range(40):
        query, key, value = 2 * normal(1, 4, seed=seed), normal(12, 4, seed=100 + seed), normal(12, 3, seed=200 + seed)
        weights = (query @ key.mT / 2).softmax(dim=-1)[0]
        whole, longest = weights @ value, float(value.norm(dim=-1).max())
        for kept in (torch.arange(12) >= 7, torch.arange(12) == weights.argmax()):
            lost = float(weights[~kept].sum())
            without, alone = ((weights[each] / weights[each].sum()) @ value[each] for each in (kept, ~kept))
            error = float((whole - without - lost * (alone - without)).abs().max())
            assert error <= 1e-13
            assert float((whole - without).norm()) <= 2 * lost * longest + 1e-13
        # the module's own forms see the same keys: the last query of a text
        text = torch.cat([torch.zeros(11, 4).double(), query])
        near = torch.arange(12) >= 7
        window = taxonomy.windowed_attention(text, key, value, 5)[-1]
        error = float((window - (weights[near] / weights[near].sum()) @ value[near]).abs().max())
        assert error <= 1e-13


@pytest.mark.receipt("ch18-absorb", "computed")
def test_latent_attention_needs_no_keys():
    for H, T, c, d in ((2, 5, 3, 4), (3, 9, 8, 2), (1, 4, 6, 6)):
        query, latent, W_k, W_v = normal(H, T, d, seed=c), normal(T, c, seed=1), normal(H, c, d, seed=2), normal(H, c, d, seed=3)
        heads = [plain(query[h], latent @ W_k[h], latent @ W_v[h]) for h in range(H)]
        for form in (taxonomy.latent_attention, taxonomy.latent_expanded):
            error = float((form(query, latent, W_k, W_v) - torch.stack(heads)).abs().max())
            assert error <= 1e-12


# ---------------------------------------------------------------- sums


@pytest.mark.receipt("ch18-recurrence", "computed")
def test_linear_attention_is_an_average_twice():
    for seed in range(20):
        query, key, value = (taxonomy.elu_features(normal(6, 3, seed=2 * seed + i)) for i in (0, 1, 40))
        value = value - 1
        for i in range(6):
            weights = [math.fsum((query[i] * key[j]).tolist()) for j in range(i + 1)]
            for a in range(3):
                mean = math.fsum(w * float(value[j, a]) for j, w in enumerate(weights)) / math.fsum(weights)
                for form in (taxonomy.linear_attention, taxonomy.linear_recurrence):
                    error = abs(float(form(query, key, value)[i, a]) - mean)
                    assert error <= 1e-12


@pytest.mark.receipt("ch18-random", "computed")
def test_random_features_are_right_on_average():
    w, q, k = sp.symbols("w q k", real=True)
    density = sp.exp(-(w**2) / 2) / sp.sqrt(2 * sp.pi)
    mean = sp.integrate(sp.expand(density * sp.exp(w * (q + k))), (w, -sp.oo, sp.oo))
    assert sp.simplify(mean * sp.exp(-(q**2 + k**2) / 2) - sp.exp(q * k)) == 0
    directions = normal(400_000, 3, seed=5)
    for seed in range(3):
        query, key = normal(2, 3, seed=seed) / 2
        one = (
            taxonomy.exp_features(query[None], directions)[0] * taxonomy.exp_features(key[None], directions)[0] * len(directions)
        )
        distance = abs(float(one.mean()) - math.exp(float(query @ key)))
        assert distance <= 5 * float(one.std()) / math.sqrt(len(one))


@pytest.mark.receipt("ch18-crosstalk", "computed")
def test_crosstalk_of_random_keys():
    for d in (8, 32):
        for n in (2, 9, 33, 64):
            key = F.normalize(normal(4_000, n, d, seed=n), dim=-1)
            value = normal(4_000, n, 4, seed=100 + n)
            error = ((key[:, :1] @ (key.mT @ value))[:, 0] - value[:, 0]).square().sum(dim=-1)
            distance = abs(float(error.mean()) - (n - 1) / d * 4)
            assert distance <= 5 * float(error.std()) / math.sqrt(4_000)


@pytest.mark.receipt("ch18-ssm", "computed")
def test_a_scan_is_a_filter_and_an_rnn():
    value, ones = normal(30, 1, seed=1), torch.ones(30, 1).double()
    for a in (0.3, 0.9):
        filtered = torch.from_numpy(lfilter([1.0], [1.0, -a], value[:, 0].numpy()))
        error = float(
            (taxonomy.ssm_scan(torch.full((30,), a, dtype=torch.float64), ones, ones, value)[:, 0] - filtered).abs().max()
        )
        assert error <= 1e-12
    decay = torch.rand(30, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    error = float((taxonomy.ssm_scan(decay, ones, ones, value) - linear_scan(decay[:, None], value)).abs().max())
    assert error <= 1e-12


@pytest.mark.receipt("ch18-err-matrix", "erratum")
def test_a_scan_has_a_matrix_of_low_rank_blocks():
    decay = 0.9 + 0.1 * torch.rand(40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    query, key = normal(2, 40, 5, seed=1)
    columns = taxonomy.ssm_scan(decay, query, key, torch.eye(40, dtype=torch.float64))
    error = float((columns - taxonomy.ssm_matrix(decay, query, key)).abs().max())
    assert error <= 1e-12
    assert [int(torch.linalg.matrix_rank(columns[t:, :t])) for t in (3, 10, 20, 38)] == [3, 5, 5, 2]
    assert float(columns.triu(1).abs().max()) == 0


# ---------------------------------------------------------------- the delta rule


@pytest.mark.receipt("ch18-delta", "computed")
def test_the_delta_rule_is_a_step_of_descent():
    for seed in range(20):
        beta = torch.rand(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        query, key, value = normal(3, 5, 4, seed=seed)
        state = torch.zeros(4, 4, dtype=torch.float64)
        for t in range(5):
            state.requires_grad_(True)
            loss = (key[t] @ state - value[t]).square().sum() / 2
            (slope,) = torch.autograd.grad(loss, state)
            state = (state - beta[t] * slope).detach()
        error = float((query[4] @ state - taxonomy.delta_rule(beta, query, key, value)[4]).abs().max())
        assert error <= 1e-12 * max(1.0, float(state.abs().max()))


@pytest.mark.receipt("ch18-delta-product", "computed")
def test_the_delta_rule_is_a_triangular_system():
    for seed in range(20):
        beta = 2 * torch.rand(12, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        query, key, value = normal(3, 12, 4, seed=seed)
        key = F.normalize(key, dim=-1)
        out = taxonomy.delta_product(beta, query, key, value)
        for i in range(12):
            state = torch.zeros(4, 4, dtype=torch.float64)
            for j in range(i + 1):  # what token j wrote, turned by all later tokens up to i
                part = beta[j] * torch.outer(key[j], value[j])
                for t in range(j + 1, i + 1):
                    part = (torch.eye(4, dtype=torch.float64) - beta[t] * torch.outer(key[t], key[t])) @ part
                state += part
            error = float((query[i] @ state - out[i]).abs().max())
            assert error <= 1e-11


# ---------------------------------------------------------------- records


def arm(task, n, mechanism):
    found = [
        r
        for r in data.record("taxonomy")["results"]["recall"]
        if (r["task"], r["n"], r["d"], r["mechanism"]) == (task, n, 16, mechanism)
    ]
    assert len(found) == 1 and len(found[0]["accuracy"]) == 6
    return found[0]["accuracy"]


def lead(task, n, one, other):
    return data.interval([a - b for a, b in zip(arm(task, n, one), arm(task, n, other), strict=True)])


@pytest.mark.receipt("ch18-recall", "measured")
def test_a_fixed_state_loses_recall():
    for n in (32, 64):
        for other in ("linear", "delta"):
            mean, half = lead("recall", n, "attention", other)
            assert mean - half > 0
        mean, half = lead("recall", n, "delta", "linear")
        assert mean - half < 0  # no lead of the delta rule
        assert min(arm("recall", n, "attention")) > 0.999
    means = [sum(arm("recall", 64, m)) / 6 for m in ("attention", "linear", "delta")]
    assert [round(x, 2) for x in means] == [1.0, 0.79, 0.75]


@pytest.mark.receipt("ch18-latest", "measured")
def test_overwriting_puts_the_mechanisms_in_order():
    for n in (8, 16, 32):
        for one, other in (("gated", "linear"), ("delta", "gated"), ("attention", "delta")):
            mean, half = lead("latest", n, one, other)
            assert mean - half > 0


@pytest.mark.receipt("ch18-flip", "measured")
def test_flipping_parts_the_seeds_of_attention():
    for n, high in ((4, 2), (8, 3), (16, 2)):
        shares = arm("flip", n, "attention")
        assert sum(x > 0.8 for x in shares) == high and sum(x < 0.6 for x in shares) == 6 - high
    assert min(arm("flip", 4, "delta to 2") + arm("flip", 8, "delta to 2")) > 0.75 > max(arm("flip", 16, "delta to 2"))
    above = [mean - half > 0 for mean, half in (lead("flip", n, "delta to 2", "attention") for n in (4, 8, 16))]
    assert above == [True, False, False]


@pytest.mark.receipt("ch18-length", "measured")
def test_time_and_memory_against_length():
    rows = {row["T"]: row["reading"] for row in data.record("taxonomy")["results"]["lengths"]}
    slow, fast = rows[32_768]["plain"], rows[32_768]["course's kernel"]
    assert fast["peak bytes"] * 100 < slow["peak bytes"] and fast["ms"] * 8 < slow["ms"]
    growth = {name: rows[65_536][name]["ms"] / rows[32_768][name]["ms"] for name in rows[65_536]}
    assert growth["course's kernel"] > 3 and max(growth["windowed, 256"], growth["linear in chunks"]) < 2.2
    steps = {name: [rows[2 * T][name]["ms"] / rows[T][name]["ms"] for T in (8_192, 16_384, 32_768)] for name in rows[65_536]}
    for name in ("windowed, 256", "linear in chunks"):  # how much more the kernel grows in a doubling
        mean, half = data.interval([x - y for x, y in zip(steps["course's kernel"], steps[name], strict=True)])
        assert mean - half > 0
    assert min(rows[1_024][name]["ms"] for name in ("windowed, 256", "linear in chunks")) > rows[1_024]["course's kernel"]["ms"]
    assert [round(x, 1) for x in (slow["ms"], fast["ms"])] == [97.7, 9.5] and round(slow["peak bytes"] / 1e9) == 70


@pytest.mark.receipt("ch18-window", "measured")
def test_one_key_decides_what_is_recalled():
    right = data.record("looks")["results"]["window_recall"]["right"]
    assert min(right["24"]) > 0.25 and max(right["23"]) == 0
    assert max(abs(a - b) for a, b in zip(right["full"], right["28"], strict=True)) < 0.06
    mean, half = data.interval([a - b for a, b in zip(right["24"], right["23"], strict=True)])
    assert mean - half > 0.25
