"""The evidence behind the formulas of ch20_kv_compression."""

import math
from fractions import Fraction
from itertools import combinations, pairwise

import mpmath
import pytest
import torch
from scipy.stats import binomtest

from course import data
from course import kv_compression as kv
from course.model import GPT, Config


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- bytes


@pytest.mark.receipt("ch20-bytes", "computed")
def test_bytes_are_those_of_what_is_stored():
    for d_head, bits, group in ((64, 8, 32), (64, 4, 32), (64, 2, 32), (128, 4, 64)):
        tokens = group  # so that keys by channel fill their groups
        numbers = 2 * tokens * d_head
        packed = torch.zeros(numbers * bits // 8, dtype=torch.uint8)  # the levels
        beside = torch.zeros(numbers // group, 2, dtype=torch.float16)  # a step and an offset for each group
        assert (packed.nbytes + beside.nbytes) / tokens == kv.token_bytes(d_head, bits, group)
        assert kv.token_bytes(d_head, bits, group) == 2 * d_head * (bits / 8 + 4 / group)
    model = GPT(Config(V=5, d_model=192, n_layers=2, n_heads=6, n_kv_heads=3)).half()
    cache = model.cache()
    for layer in range(2):
        cache.append(layer, *torch.zeros(2, 1, 3, 7, 32, dtype=torch.float16))
    cache.length = 7
    assert cache.nbytes == 7 * 2 * 3 * kv.token_bytes(32)


# ---------------------------------------------------------------- how many keys


@pytest.mark.receipt("ch20-window", "computed")
def test_the_window_in_exact_numbers():
    for gamma in (0, 1, 2, 3):
        for N in (1, 7, 60):
            terms = [Fraction(1, r**gamma) for r in range(1, N + 1)]
            for share in (Fraction(1, 3), Fraction(9, 10), Fraction(99, 100)):
                D = next(D for D in range(1, N + 1) if sum(terms[:D]) >= share * sum(terms))
                assert kv.keys_needed(gamma, float(share), N) == D
    with mpmath.workdps(30):
        for share, D in ((0.9, 314), (0.99, 4909)):
            total = mpmath.fsum(mpmath.mpf(r) ** -1.3 for r in range(1, 8193))
            near = [mpmath.fsum(mpmath.mpf(r) ** -1.3 for r in range(1, n + 1)) / total for n in (D - 1, D)]
            assert near[0] < share <= near[1] and kv.keys_needed(1.3, share, 8192) == D


@pytest.mark.receipt("ch20-tail", "computed")
def test_two_areas_hold_the_tail():
    for gamma in (0.2, 0.7, 1.0, 1.3, 2.0, 3.7):
        for D, N in ((1, 2), (3, 40), (50, 900), (314, 8192)):
            total = mpmath.fsum(mpmath.mpf(r) ** -gamma for r in range(D + 1, N + 1))
            low = mpmath.quad(lambda x, g=gamma: x**-g, mpmath.linspace(D + 1, N + 1, 20))
            high = mpmath.quad(lambda x, g=gamma: x**-g, mpmath.linspace(D, N, 20))
            assert low < total < high
            near = mpmath.fsum(mpmath.mpf(r) ** -gamma for r in range(1, D + 1))
            assert kv.tail_bounds(gamma, D, N) == pytest.approx(
                (float(low / (near + low)), float(high / (near + high))), rel=1e-6
            )


@pytest.mark.receipt("ch20-reach", "computed")
def test_the_reach_is_enough_and_not_much_more():
    for gamma in (1.5, 2.0, 3.0):
        for lost in (0.1, 0.02):
            bound = math.ceil((lost * (gamma - 1) * float(mpmath.zeta(gamma))) ** (-1 / (gamma - 1)))
            beyond = lambda D, g=gamma: float(mpmath.zeta(g, D + 1) / mpmath.zeta(g))  # noqa: E731
            assert beyond(bound) <= lost
            exact = next(D for D in range(max(0, bound - 3), bound + 1) if beyond(D) <= lost)
            assert bound - exact <= 1  # at most one key too many


@pytest.mark.receipt("ch20-err-reach", "erratum")
def test_the_rule_of_thumb_is_no_budget():
    gamma, lost = 1.3, 0.01
    thumb = lost ** (-1 / (gamma - 1))
    constant = (lost * (gamma - 1) * float(mpmath.zeta(gamma))) ** (-1 / (gamma - 1))
    assert 4.6e6 < thumb < 4.7e6 and 2.65e6 < constant < 2.75e6
    assert kv.keys_needed(gamma, 0.99, 8192) == 4909 and 0.59 < 4909 / 8192 < 0.61
    assert kv.keys_needed(0.7, 0.9, 8192) > 8192 / 2


# ---------------------------------------------------------------- which keys


@pytest.mark.receipt("ch20-value", "computed")
def test_what_goes_is_bounded_and_the_rule_makes_the_bound_least():
    for seed in range(20):
        weights = normal(7, seed=seed).softmax(dim=0)
        value = normal(7, 3, seed=seed + 50) * normal(7, 1, seed=seed + 99).exp()
        each = weights * value.norm(dim=-1)
        bounds = {}
        for gone in combinations(range(7), 4):
            gone = list(gone)
            assert float((weights[gone] @ value[gone]).norm()) <= float(each[gone].sum()) + 1e-12
            bounds[tuple(gone)] = float(each[gone].sum())
        cache = kv.Kept(value[None, None], value[None, None], weights[None, None], torch.arange(7)[None, None])
        by_rule = tuple(sorted(each.argsort()[:4].tolist()))
        assert bounds[by_rule] == min(bounds.values())
        stays = kv.chosen(cache, "value", 5)[0, 0].tolist()  # two are the last, three the best of the others
        assert set(stays) == {5, 6, *each[:5].topk(3).indices.tolist()}


@pytest.mark.receipt("ch20-old", "computed")
def test_even_attention_gives_most_to_the_oldest():
    T = 400
    weights = torch.ones(T, T).double().tril()
    had = (weights / weights.sum(dim=-1, keepdim=True)).sum(dim=0)  # (T,)
    for j in (1, 2, 10, 100, 399):
        exact = mpmath.fsum(mpmath.mpf(1) / i for i in range(j, T + 1))
        assert float(had[j - 1]) == pytest.approx(float(exact), abs=1e-12)
        assert float(had[j - 1]) == pytest.approx(math.log((T + 0.5) / (j - 0.5)), rel=0.11 if j == 1 else 0.02)


@pytest.mark.receipt("ch20-quantise", "computed")
def test_levels_and_half_a_step():
    x = normal(5, 32, seed=3)
    for bits in (2, 4, 8):
        low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
        step = (high - low) / (2**bits - 1)
        levels = low + step * torch.arange(2**bits)
        nearest = (x[..., None] - levels[:, None]).abs().min(dim=-1).values
        assert bool((nearest <= step / 2 + 1e-12).all())
        rounding = 2e-3 * (low.abs() + high.abs() + 1)  # of step and offset to float16
        assert bool((((kv.quantised(x, bits) - x).abs() - nearest).abs() <= rounding).all())


# ---------------------------------------------------------------- measured


def rows_of(task, **wanted):
    return [row for row in data.record("kv_compression")["results"][task] if all(row[k] == v for k, v in wanted.items())]


def nats(method, budget):
    return rows_of("loss", method=method, budget=budget)[0]["nats"]


def gap(worse, better, budget):
    return data.interval([a - b for a, b in zip(nats(worse, budget), nats(better, budget), strict=True)])


def right(task, method, budget, way):
    return rows_of(task, method=method, budget=budget, way=way)[0]["right"]


@pytest.mark.receipt("ch20-loss", "measured")
def test_loss_at_equal_bytes():
    order = ("window", "sinks + window", "heavy hitters", "4 bits")
    for budget in (0.25, 0.125):
        for worse, better in [*pairwise(order), ("random + window", "heavy hitters")]:
            mean, half = gap(worse, better, budget)
            assert mean - half > 0, (worse, better, budget)
    full = nats("full", 1)
    added = [data.interval([a - b for a, b in zip(nats(method, 0.25), full, strict=True)])[0] for method in order]
    assert [round(x, 2) for x in added] == [0.6, 0.07, 0.04, 0.01] and len(full) == 64
    assert all(row["bytes"] <= row["budget"] + 1e-4 for row in data.record("kv_compression")["results"]["loss"][1:])
    assert not rows_of("loss", method="4 bits", budget=0.0625)


@pytest.mark.receipt("ch20-rankings", "measured")
def test_loss_and_passkeys_rank_differently():
    mean, half = gap("2 bits", "heavy hitters", 0.25)
    assert mean - half > 0.1
    full = nats("full", 1)
    added = [sum(nats(method, 0.25)) / len(full) - sum(full) / len(full) for method in ("heavy hitters", "2 bits")]
    assert [round(x, 2) for x in added] == [0.04, 0.17]
    found = {}
    for method in ("heavy hitters", "2 bits", "random + window"):
        counts = right("passkey", method, 0.25, "stream")
        k, n = (sum(counts[depth][i] for depth in ("0", "0.25", "0.5", "0.75")) for i in (0, 1))
        found[method] = k, binomtest(k, n).proportion_ci(method="wilson")
    assert {name: k for name, (k, _) in found.items()} == {"heavy hitters": 64, "2 bits": 133, "random + window": 0}
    assert (
        found["heavy hitters"][1].high < found["2 bits"][1].low
        and found["random + window"][1].high < found["heavy hitters"][1].low
    )


@pytest.mark.receipt("ch20-copy", "measured")
def test_plain_passages_are_hardly_kept():
    null = right("copy", "not given", 1, "full")
    shown = (right("copy", "heavy hitters", 0.25, "stream"), null, right("copy", "full", 1, "full"))
    assert [round(sum(each["0.1"]) / 40, 2) for each in shown] == [0.33, 0.3, 0.8]
    for depth in ("0.1", "0.5"):
        over = {}
        for method in ("full", "heavy hitters", "2 bits"):
            mine = right("copy", method, *((1, "full") if method == "full" else (0.25, "stream")))[depth]
            assert len(mine) == 40
            over[method] = data.interval([a - b for a, b in zip(mine, null[depth], strict=True)])
        assert sum(over["heavy hitters"]) < 0.06
        assert over["2 bits"][0] - over["2 bits"][1] > 0.2 and over["full"][0] - over["full"][1] > 0.4


@pytest.mark.receipt("ch20-fidelity", "measured")
def test_mass_and_fidelity_go_together_in_these_heads():
    rows = [row for row in rows_of("fidelity") if row["rule"] != "window"]
    assert len(rows) == 12 and all(row["pairs"] == 2160 and row["Spearman"] < -0.85 for row in rows)
    assert all(row["99%, change above 0.1"] <= row["99%"] / 100 for row in rows)
    hitters = next(row for row in rows if (row["rule"], row["share"]) == ("hitters", 0.25))
    assert round(hitters["mass"][2], 2) == 0.94 and round(hitters["change"][2], 2) == 0.07
    interval = binomtest(hitters["99%, change above 0.1"], hitters["99%"]).proportion_ci(method="wilson")
    assert interval.high < 0.03
