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
@pytest.mark.parametrize(
    ("dtype", "shift"), [(torch.float64, 0), (torch.float64, 1000), (torch.float32, 0), (torch.float32, 1000)]
)
def test_the_nucleus_is_the_smallest_set(dtype, shift):
    for seed in range(60):
        counts = parts_of_64(7, seed)
        logits = (torch.tensor(counts, dtype=torch.float64).log() + shift).to(
            dtype
        )  # of the shares counts / 64, whose sums reach p exactly
        for need in (1, 32, 63, sum(sorted(counts)[-2:]), sum(sorted(counts)[-3:])):
            kept = (keep_top_p(logits, need / 64) > -math.inf).nonzero().flatten().tolist()
            enough = [s for n in range(1, 8) for s in itertools.combinations(range(7), n) if sum(counts[i] for i in s) >= need]
            ranked = [(len(s), sorted((-counts[i], i) for i in s)) for s in enough]
            assert list(kept) == sorted(i for _, i in min(ranked)[1])  # the fewest, then the likeliest, then the smallest ids


@pytest.mark.receipt("ch12-top-p", "computed")
def test_among_many_tokens_only_the_rounding_of_the_logits_is_forgiven():
    generator = seeded(0)
    for _ in range(60):
        z = 2 * torch.randn(2048, generator=generator)
        exact = sorted(z.double().softmax(-1).tolist(), reverse=True)
        need = next(n for n in range(1, 2049) if math.fsum(exact[:n]) >= 0.9)
        assert int((keep_top_p(z.double(), 0.9) > -math.inf).sum()) == need
        kept = int((keep_top_p(z, 0.9) > -math.inf).sum())
        assert kept <= need and 0.9 - math.fsum(exact[:kept]) < 1e-6
    short = torch.tensor([0.5 - 1e-7, 0.3, 0.2 + 1e-7], dtype=torch.float64).log()  # sums to a little less than p
    assert [int((keep_top_p(short.to(dtype), 0.5) > -math.inf).sum()) for dtype in (torch.float64, torch.float32)] == [2, 1]


@pytest.mark.receipt("ch12-min-p", "computed")
def test_min_p_compares_with_the_favourite():
    for seed in range(60):
        counts = [count + 1 for count in parts_of_64(7, seed)]
        for m in (Fraction(1, 50), Fraction(3, 10), Fraction(1)):
            kept = keep_min_p(torch.tensor(counts, dtype=torch.float64).log(), float(m) * (1 - 1e-12)) > -math.inf
            assert kept.tolist() == [Fraction(count, max(counts)) >= m for count in counts]
            assert kept.any()


@pytest.mark.receipt("ch12-min-p-order", "computed")
def test_a_temperature_before_the_filter_changes_min_p():
    """Shares n**tau for whole n: tempered they are the n, so both sides of the rule are fractions and none is rounded."""
    generator, agreed = seeded(0), []
    for tau, _ in itertools.product((1, 2, 3), range(100)):
        roots = torch.randint(1, 40, (12,), generator=generator).tolist()
        powers = [n**tau for n in roots]
        for p_min in (Fraction(1, 7), Fraction(1, 2), Fraction(4, 5), Fraction(roots[0], max(roots))):
            after = [Fraction(n, max(roots)) >= p_min for n in roots]  # the definition of min-p, on the tempered shares
            assert after == [Fraction(n, max(powers)) >= p_min**tau for n in powers]
            z = torch.tensor(powers, dtype=torch.float64).log()
            assert (keep_min_p(z / tau, float(p_min) * (1 - 1e-12)) > -math.inf).tolist() == after
            agreed.append(after == [Fraction(n, max(powers)) >= p_min for n in powers])
    assert agreed.count(False) > 300  # without the power the sets are often others


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
    for power in (0.0, 0.5, 1.0):
        found = beam(lambda ids: torch.tensor(rows[ids], dtype=torch.float64).log(), steps=3, width=3, end=0, penalty=power)
        products = {(0,): 0.4, (1, 0): 0.3, (1, 2, 0): 0.3}
        assert {ids for _, ids in found} == set(products)
        for score, ids in found:
            assert score == pytest.approx(math.log(products[ids]) / len(ids) ** power)
        best[power] = found[0][1]
    assert best == {0.0: (0,), 0.5: (1, 2, 0), 1.0: (1, 2, 0)}


@pytest.mark.receipt("ch12-likely", "measured")
def test_likely_texts_repeat_themselves():
    record = data.record("inference")
    assert record["mode"] == "full" and record["settings"]["prompts"] == 16
    rows = {row["way"]: row for row in record["results"]["texts"]}

    def gained(way, other):  # at the same places
        return data.interval([a - b for a, b in zip(rows[way]["log_prob"], rows[other]["log_prob"], strict=True)])

    for way, others in {"beam of 4": set(rows) - {"beam of 4"}, "greedy": set(rows) - {"beam of 4", "greedy"}}.items():
        for other in others:
            mean, half = gained(way, other)
            assert mean - 1.7 * half > 0  # thirteen comparisons by Bonferroni: t of 15 degrees is 3.4 at 0.05 / 26, 2.13 at 0.025
    for way, stated in {"greedy": (0.29, 0.08), "beam of 4": (0.29, 0.08)}.items():
        mean, half = data.interval(rows[way]["repeated"])
        assert (round(mean, 2), round(half, 2)) == stated
    others = {way: row["repeated"] for way, row in rows.items() if way not in ("greedy", "beam of 4")}
    for way in ("greedy", "beam of 4"):
        assert all(a > b for other in others.values() for a, b in zip(rows[way]["repeated"], other, strict=True))
    assert max(map(max, others.values())) < 0.08 and max(others["sampled"]) < 0.03


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
    """What is counted are tensors in memory, for 1 and 3 layers, three kinds of sharing and two dtypes."""
    B, n, H, d_k = 2, 9, 4, 6
    claimed = 2 * B * H * n * d_k
    for L, kv_heads, dtype in itertools.product((1, 3), (4, 2, 1), (torch.float16, torch.float64)):
        model = model_of({"n_layers": L, "n_heads": H, "n_kv_heads": kv_heads}, dtype)
        weights = {p.data_ptr() for p in model.parameters()}
        kept = []
        for seed in (0, 1):
            cache = model.cache()
            model(torch.randint(23, (B, n), generator=seeded(seed)), cache)
            kept.append(cache.keys + cache.values)
        assert not weights & {tensor.data_ptr() for tensor in kept[0]}
        assert all(not torch.equal(a, b) for a, b in zip(*kept, strict=True))  # another text, another cache: no parameters
        numbers, size = sum(t.numel() for t in kept[0]), sum(t.numel() * t.element_size() for t in kept[0])
        assert numbers * H == claimed * L * kv_heads
        assert size == 2 * L * B * kv_heads * n * d_k * dtype.itemsize


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
    """Groups of queries meet their shared key in one product, so that keys and values are read as they lie in the cache."""
    H, d_head = 8, 16
    for B, S, kv_heads, new in itertools.product((1, 4), (10, 50), (8, 2, 1), (1, 5)):
        query = torch.randn(B, kv_heads, H // kv_heads * new, d_head, generator=seeded(0), dtype=torch.float64)
        key, value = torch.randn(2, B, kv_heads, S, d_head, generator=seeded(1), dtype=torch.float64)

        def shared(query, key, value):
            return (query @ key.mT / math.sqrt(d_head)).softmax(-1) @ value  # no copy: the operands are the cache's tensors

        work = counted(lambda: shared(query, key, value))  # noqa: B023
        assert work / (key.nbytes + value.nbytes) == pytest.approx(new * 2 / 8 * H / kv_heads)
        if new == 1:  # the model's own form gives the same result, but copies each key and value for every head of queries
            plain = attend(query.reshape(B, H, 1, d_head), key, value)
            assert torch.allclose(shared(query, key, value).reshape(plain.shape), plain)
            copied = key.repeat_interleave(H // kv_heads, dim=1).nbytes + value.repeat_interleave(H // kv_heads, dim=1).nbytes
            assert counted(lambda: attend(query.reshape(B, H, 1, d_head), key, value)) / copied == pytest.approx(2 / 8)  # noqa: B023
