"""The evidence behind the formulas of ch12_inference."""

import itertools
import math
from fractions import Fraction

import pytest
import sympy as sp
import torch
from torch.utils.flop_counter import FlopCounterMode

from course import data
from course.inference import beam, intensity, keep_min_p, keep_top_p, kv_bytes, pass_flops
from course.model import GPT, Config, attend


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def parts_of_64(V, seed):
    """Counts (V,) that sum to 64: probabilities of exact sums, often equal."""
    cuts = torch.randint(65, (V - 1,), generator=seeded(seed)).sort().values.tolist()
    return [b - a for a, b in itertools.pairwise([0, *cuts, 64])]


MODELS = [
    {"n_heads": 4},
    {"n_heads": 4, "n_kv_heads": 2},
    {"n_heads": 4, "n_kv_heads": 1, "ffn": "gelu"},
    {"n_heads": 2, "norm": "layer", "position": "learned", "ffn": "gelu_tanh", "tied": True, "bias": True},
]


def model_of(sizes, dtype=torch.float64):
    torch.manual_seed(0)
    model = GPT(Config(**({"V": 23, "d_model": 24, "n_layers": 3, "T_max": 64} | sizes))).to(dtype).requires_grad_(False)
    model.initialise(std=0.3)
    return model


# ---------------------------------------------------------------- filters


@pytest.mark.receipt("ch12-top-p", "computed")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_the_nucleus_is_the_smallest_set(dtype):
    for seed in range(60):
        counts = parts_of_64(7, seed)
        logits = torch.tensor(counts, dtype=dtype).log()  # of the shares counts / 64, whose sums reach p exactly
        for need in (1, 32, 63, sum(sorted(counts)[-2:]), sum(sorted(counts)[-3:])):
            kept = (keep_top_p(logits, need / 64) > -math.inf).nonzero().flatten().tolist()
            enough = [s for n in range(1, 8) for s in itertools.combinations(range(7), n) if sum(counts[i] for i in s) >= need]
            least = min(len(s) for s in enough)
            assert len(kept) == least and sum(counts[i] for i in kept) == max(
                sum(counts[i] for i in s) for s in enough if len(s) == least
            )


@pytest.mark.receipt("ch12-min-p", "computed")
def test_min_p_compares_with_the_favourite():
    for seed in range(60):
        counts = [count + 1 for count in parts_of_64(7, seed)]
        for m in (Fraction(1, 50), Fraction(3, 10), Fraction(1)):
            kept = keep_min_p(torch.tensor(counts, dtype=torch.float64).log(), float(m) * (1 - 1e-12)) > -math.inf
            assert kept.tolist() == [Fraction(count, max(counts)) >= m for count in counts]
            assert kept.any()


@pytest.mark.receipt("ch12-min-p-order", "computed")
def test_a_temperature_in_front_changes_min_p():
    ratio, m, tau = sp.symbols("r m tau", positive=True)
    assert sp.simplify((ratio ** (1 / tau)) ** tau - ratio) == 0  # x → x**tau rises, so it keeps the order of r**(1/tau) and m
    assert sp.diff(ratio**tau, ratio).is_positive
    generator = seeded(0)
    for _ in range(200):
        z = 2 * torch.randn(12, generator=generator, dtype=torch.float64)
        tau, m = 0.2 + 3 * torch.rand(1, generator=generator).item(), 0.01 + 0.9 * torch.rand(1, generator=generator).item()
        assert torch.equal(keep_min_p(z / tau, m) > -math.inf, keep_min_p(z, m**tau) > -math.inf)


# ---------------------------------------------------------------- texts


def table(seed, V=3, length=4):
    """Random conditionals: a function from the tokens so far to log-probabilities (V,)."""
    rows = {
        ids: torch.randn(V, generator=seeded(hash_of(ids) + seed), dtype=torch.float64).log_softmax(0)
        for n in range(length)
        for ids in itertools.product(range(V), repeat=n)
    }
    return lambda ids: rows[tuple(ids)]


def hash_of(ids):
    return sum((i + 1) * 7**k for k, i in enumerate(ids)) * 100


@pytest.mark.receipt("ch12-chain", "computed")
def test_the_probabilities_of_all_texts_sum_to_one():
    for seed in range(3):
        log_probs = table(seed)
        for n in range(1, 5):
            texts = {
                ids: math.exp(sum(float(log_probs(ids[:t])[ids[t]]) for t in range(n)))
                for ids in itertools.product(range(3), repeat=n)
            }
            assert sum(texts.values()) == pytest.approx(1, abs=1e-12)
            score, ids = beam(log_probs, steps=n, width=3**n)[0]
            assert ids == max(texts, key=texts.get) and math.exp(score) == pytest.approx(texts[ids])


@pytest.mark.receipt("ch12-length", "computed")
def test_length_changes_the_ranking():
    rows = {(): [0.4, 0.6, 0.0], (1,): [0.5, 0.0, 0.5], (1, 2): [1.0, 0.0, 0.0]}  # token 0 ends a text
    best = {}
    for alpha in (0.0, 0.5, 1.0):
        found = beam(lambda ids: torch.tensor(rows[ids], dtype=torch.float64).log(), steps=3, width=3, end=0, alpha=alpha)
        products = {(0,): 0.4, (1, 0): 0.3, (1, 2, 0): 0.3}
        assert {ids for _, ids in found} == set(products)
        for score, ids in found:
            assert score == pytest.approx(math.log(products[ids]) / len(ids) ** alpha)
        best[alpha] = found[0][1]
    assert best == {0.0: (0,), 0.5: (1, 2, 0), 1.0: (1, 2, 0)}


@pytest.mark.receipt("ch12-likely", "measured")
def test_likely_texts_repeat_themselves():
    record = data.record("inference")
    assert record["mode"] == "full" and record["settings"]["prompts"] == 16
    rows = {row["way"]: row for row in record["results"]["texts"]}

    def low(name, what):
        return rows[name][what][0] - rows[name][what][1]

    def high(name, what):
        return rows[name][what][0] + rows[name][what][1]

    assert low("beam of 4", "log_prob") > max(high(name, "log_prob") for name in set(rows) - {"beam of 4"})
    assert low("greedy", "log_prob") > max(high(name, "log_prob") for name in set(rows) - {"beam of 4", "greedy"})
    searches, dice = ("greedy", "beam of 4"), ("sampled", "top-p 0.9", "top-k 40", "Jane Austen")
    assert min(low(name, "repeated") for name in searches) > 0.15 and max(high(name, "repeated") for name in dice) < 0.02
    for name, stated in {"greedy": [0.29, 0.08], "beam of 4": [0.29, 0.08], "sampled": [0.00, 0.00]}.items():
        assert [round(number, 2) for number in rows[name]["repeated"]] == stated


# ---------------------------------------------------------------- the cache


def rounding(config, T, dtype):
    """What rounding may change, as a share of the largest number: eps for each product that is summed, along the whole depth.

    In each block a number passes a projection, the scores, the average over T values, the output, and the two layers of the FFN.
    """
    block = 3 * config.d_model + config.d_head + T + config.hidden
    return (config.n_layers * block + config.d_model) * torch.finfo(dtype).eps


def cache_fault(model, ids, parts, keep=lambda kept: kept):
    """The largest differences that a cache makes, in logits and in what is kept, as a share of the largest; `keep` may spoil it."""
    whole, cache, at_once, found = model(ids), model.cache(), model.cache(), []
    for part in ids.split(parts, dim=1):
        found.append(model(part, cache))
        for kept in cache.keys + cache.values:
            kept.copy_(keep(kept))
    model(ids, at_once)
    pairs = [(torch.cat(found, dim=1), whole), *zip(cache.keys + cache.values, at_once.keys + at_once.values, strict=True)]
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


@pytest.mark.receipt("ch12-cache", "computed")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
def test_the_cache_changes_no_logit(dtype):
    for sizes in MODELS:
        model = model_of(sizes, dtype)
        ids = torch.randint(23, (2, 30), generator=seeded(1))
        bound = rounding(model.config, 30, dtype)
        for parts in ([30], [1] * 30, [10] + [1] * 20, [1, 29], [7, 3, 1, 12, 7]):
            assert cache_fault(model, ids, parts) < bound
        assert cache_fault(model, ids, [1] * 30, lambda kept: kept.half().to(dtype)) > bound  # what is not rounding is seen


@pytest.mark.receipt("ch12-kv-numbers", "computed")
@pytest.mark.receipt("ch12-kv-bytes", "computed")
def test_kv_numbers_and_bytes():
    for kv_heads in (4, 2, 1):
        for dtype in (torch.float64, torch.float32, torch.float16):
            model = model_of({"n_heads": 4, "n_kv_heads": kv_heads}, dtype)
            cache = model.cache()
            model(torch.randint(23, (5, 13), generator=seeded(0)), cache)
            assert all(k.numel() + v.numel() == 2 * 5 * kv_heads * 13 * 6 for k, v in zip(cache.keys, cache.values, strict=True))
            assert cache.nbytes == kv_bytes(3, kv_heads, 6, tokens=13, batch=5, bytes_each=dtype.itemsize)
    assert kv_bytes(32, 32, 128) == 512 * 2**10
    assert kv_bytes(32, 8, 128) == 128 * 2**10
    assert kv_bytes(96, 96, 128, tokens=2048) == 9 * 2**30 == pytest.approx(9.66e9, abs=5e6)


@pytest.mark.receipt("ch12-kv-parameters", "erratum")
def test_the_cache_holds_no_parameters():
    one, three = model_of({"n_layers": 1}), model_of({"n_layers": 3})
    counts = []
    for model in (one, three):
        before, cache = sum(p.numel() for p in model.parameters()), model.cache()
        model(torch.zeros(2, 9, dtype=torch.int64), cache)
        assert sum(p.numel() for p in model.parameters()) == before
        counts.append(sum(tensor.numel() for tensor in cache.keys + cache.values))
    assert counts == [2 * 2 * 4 * 9 * 6, 3 * 2 * 2 * 4 * 9 * 6]


# ---------------------------------------------------------------- costs


def counted(f):
    with FlopCounterMode(display=False) as counter:
        f()
    return counter.get_total_flops()


@pytest.mark.receipt("ch12-pass", "computed")
def test_torch_counts_the_same_operations():
    for sizes in MODELS:
        model, ids = model_of(sizes), torch.randint(23, (1, 20), generator=seeded(0))
        for new in (1, 7, 20):
            cache = model.cache()
            if new < 20:
                model(ids[:, :-new], cache)
            assert counted(lambda: model(ids[:, -new:], cache)) == pass_flops(model.config, new, 20)  # noqa: B023


@pytest.mark.receipt("ch12-total", "erratum")
def test_the_cache_takes_off_one_power():
    n, t, linear, scores = sp.symbols("n t a b", positive=True)
    cached = sp.summation(linear + scores * t, (t, 1, n))  # one new token in each pass
    whole = sp.summation(linear * t + scores * t**2, (t, 1, n))
    assert sp.degree(cached, n) == 2 and sp.degree(whole, n) == 3
    assert sp.Poly(cached, n).coeff_monomial(n**2) == scores / 2  # the quadratic part is the scores', and it stays
    assert sp.Poly(whole.subs(scores, 0), n).degree() == 2 and sp.Poly(cached.subs(scores, 0), n).degree() == 1
    config = Config(V=23, d_model=24, n_layers=3, n_heads=4)
    b = 4 * 3 * 24
    a = pass_flops(config, 1, 1) - b
    for length in (1, 10, 50):
        assert sum(pass_flops(config, 1, S) for S in range(1, length + 1)) == cached.subs({n: length, linear: a, scores: b})
        assert sum(pass_flops(config, S, S) for S in range(1, length + 1)) == whole.subs({n: length, linear: a, scores: b})


@pytest.mark.receipt("ch12-intensity", "computed")
def test_intensity_of_a_linear_layer():
    for n, d_in, d_out in [(1, 64, 64), (1, 8, 128), (3, 16, 16), (16, 64, 32), (64, 64, 64), (100, 8, 8), (512, 32, 64)]:
        x, W = torch.ones(n, d_in, dtype=torch.float16), torch.ones(d_in, d_out, dtype=torch.float16)
        y = x @ W
        assert intensity(n, d_in, d_out) == pytest.approx(counted(lambda: x @ W) / (x.nbytes + W.nbytes + y.nbytes))  # noqa: B023


@pytest.mark.receipt("ch12-attention-intensity", "computed")
def test_intensity_of_attention_over_a_cache():
    for B, S, kv_heads in itertools.product((1, 4), (10, 50), (8, 2, 1)):
        query = torch.ones(B, 8, 1, 16)
        key, value = torch.ones(2, B, kv_heads, S, 16)
        work = counted(lambda: attend(query, key, value))  # noqa: B023
        assert work / (key.nbytes + value.nbytes) == pytest.approx(2 / 4 * 8 / kv_heads)
