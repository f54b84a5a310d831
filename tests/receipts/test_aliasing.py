"""The evidence behind the formulas of ch14_aliasing."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
import torch

from course import aliasing as al
from course import data
from course.position_rope import rope, rope_frequencies, rope_matrix, wavelengths

OMEGA = rope_frequencies(64)


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- codes


@pytest.mark.receipt("ch14-alias", "derived")
def test_a_turn_changes_nothing():
    omega, r = sp.symbols("omega r", positive=True)
    turned = omega * (r + 2 * sp.pi / omega)
    for wave in (sp.cos, sp.sin):
        assert sp.simplify(sp.expand_trig(sp.expand(wave(sp.expand(turned)))) - sp.expand_trig(wave(omega * r))) == 0
    places = np.arange(1, 1_000_001)
    off = np.abs((places + np.pi) % (2 * np.pi) - np.pi)
    assert places[off < 7e-5][0] == 710 and abs(off[709] - 6.0289e-5) < 1e-8
    assert abs(sp.Rational(355, 113) - sp.pi).evalf() < Fraction(1, 113**2)  # as near as a convergent is
    assert off.min() > 1e-8


@pytest.mark.receipt("ch14-left", "computed")
def test_each_hand_leaves_a_share():
    N = 1_000_000
    for theta in (1e4, 1e3):
        angles = np.arange(N)[:, None] * rope_frequencies(64, theta)[:4].numpy() - 0.7
        off = np.abs((angles + np.pi) % (2 * np.pi) - np.pi)
        for delta in (0.05, 0.1, 0.3):
            for n in (1, 2, 3, 4):
                count, expected = int((off[:, :n] < delta).all(axis=1).sum()), N * (delta / math.pi) ** n
                allowed = 0.04 * expected if expected > 1_000 else max(4, 4 * math.sqrt(expected))
                assert abs(count - expected) < allowed


@pytest.mark.receipt("ch14-code", "computed")
def test_code_distance_is_that_of_the_hands_tips():
    for theta in (2.0, 1e4, 1e9):
        omega = rope_frequencies(16, theta)
        tips = np.exp(1j * np.arange(60)[:, None] * omega.numpy())  # (60, 8)
        apart = np.sqrt((np.abs(tips[:, None] - tips[None]) ** 2).mean(axis=-1))  # (60, 60)
        gaps = torch.arange(60)[:, None] - torch.arange(60)
        assert np.abs(al.code_distance(gaps, omega).numpy() - apart).max() < 1e-12
    for n in (1, 2, 3, 4, 8, 32):
        tips = np.exp(1j * np.arange(401)[:, None] * OMEGA[:n].numpy())
        apart = sum(np.abs(tips[:, None, i] - tips[None, :, i]) ** 2 for i in range(n)) + 9 * n * np.eye(401)
        r, s = np.unravel_index(apart.argmin(), apart.shape)
        assert al.nearest_gap(400, OMEGA[:n])[0] == abs(int(r) - int(s))


@pytest.mark.receipt("ch14-wall", "computed")
def test_the_nearest_codes_are_neighbours():
    gaps = np.arange(1, 1_000_001)
    for theta in (100.0, 1e4, 1e5):
        cosines = np.zeros(len(gaps))
        for speed in rope_frequencies(64, theta).tolist():
            cosines += np.cos(gaps * speed) / 32
        assert cosines.argmax() == 0 and cosines[1:].max() < cosines[0]
    assert al.nearest_gap(1_000, OMEGA[:1])[0] == 710 and al.nearest_gap(1_000_000, OMEGA)[0] == 1


# ---------------------------------------------------------------- scales


@pytest.mark.receipt("ch14-active", "computed")
def test_active_pairs_are_counted():
    r = torch.arange(1, 200_001)
    for d_head in (2, 16, 64, 96, 128):
        for theta in (3.0, 100.0, 1e4, 5e5):
            count = sum((2 * math.pi * theta ** (2 * i / d_head) >= r.double()).long() for i in range(d_head // 2))
            over = al.n_active(r, d_head, theta) - count
            assert float(over.min()) >= 0 and float(over.max()) < 1
            assert torch.equal(al.count_active(r, d_head, theta), count)


@pytest.mark.receipt("ch14-active-bounds", "erratum")
def test_active_pairs_need_bounds():
    found = [32 * (1 - math.log(r / (2 * math.pi), 1e4)) for r in (1, 100_000)]
    assert [round(x, 1) for x in found] == [38.4, -1.6]
    assert [int((wavelengths(64) >= r).sum()) for r in (1, 100_000)] == [32, 0]
    assert al.n_active(torch.tensor([1, 100_000]), 64).tolist() == [32.0, 0.0]


@pytest.mark.receipt("ch14-cross", "derived")
@pytest.mark.receipt("ch14-max", "derived")
@pytest.mark.receipt("ch14-short", "derived")
def test_the_scales():
    theta, d = sp.symbols("theta d", positive=True)

    def line(r):
        return d / 2 * (1 - sp.log(r / (2 * sp.pi)) / sp.log(theta))

    cross, last = 2 * sp.pi * sp.sqrt(theta), 2 * sp.pi * theta
    assert sp.simplify(sp.expand_log(line(cross), force=True) - d / 4) == 0
    assert sp.simplify(sp.expand_log(line(last), force=True)) == 0
    slowest = 2 * sp.pi * theta ** (2 * (d / 2 - 1) / d)
    assert sp.simplify(slowest / last / theta ** (-2 / d)) == 1
    for d_head in (4, 8, 64, 96, 128):
        waves = 2 * np.pi * 1e4 ** (np.arange(0, d_head, 2) / d_head)
        assert (waves >= al.t_cross(1e4) * (1 - 1e-12)).sum() == d_head // 4
        assert waves.max() < al.t_max(1e4)
    assert [round(2 * math.pi * 1e4 ** (1 - 2 / d_head)) for d_head in (64, 128)] == [47_117, 54_410]
    assert round(al.t_max(1e4)) == 62_832


@pytest.mark.receipt("ch14-base", "computed")
def test_a_base_for_a_length():
    generator = np.random.default_rng(0)
    for _ in range(200):
        d_head = 2 * int(generator.integers(2, 65))
        n, length = int(generator.integers(1, d_head // 2)), float(generator.uniform(10, 1e5))
        base = al.base_for(length, n, d_head)
        for factor, enough in ((1 + 1e-9, True), (1 - 1e-9, False)):
            waves = [2 * math.pi * math.exp(2 * i / d_head * math.log(base * factor)) for i in range(d_head // 2)]
            assert (sum(wave >= length for wave in waves) >= n) == enough


# ---------------------------------------------------------------- scores


@pytest.mark.receipt("ch14-mean-cos", "derived")
def test_the_mean_of_cosines():
    omega, r = sp.symbols("omega r", real=True)
    assert sp.simplify(1 - (2 * sp.sin(omega * r / 2)) ** 2 / 2 - sp.cos(omega * r)) == 0
    ones, distances = torch.ones(64, dtype=torch.float64), torch.arange(0, 3_000, 7)
    scores = rope(ones.expand(len(distances), -1), distances) @ ones / 64
    assert float((scores - (1 - al.code_distance(distances, OMEGA) ** 2 / 2)).abs().max()) < 1e-12


@pytest.mark.receipt("ch14-score", "computed")
def test_a_score_is_a_sum_of_waves():
    for d_head in (2, 8, 64):
        query, key = normal(2, d_head, seed=d_head)
        pairs = [x.view(-1, 2).numpy() @ [1, 1j] for x in (query, key)]  # interleaved, as the matrix turns
        lengths, ahead = np.abs(pairs[0]) * np.abs(pairs[1]), np.angle(pairs[1]) - np.angle(pairs[0])
        omega = rope_frequencies(d_head).numpy()
        for m, r in ((0, 0), (3, 3), (500, 12), (4_000, 3_999)):
            turned = (query @ rope_matrix(m, d_head).T) @ (key @ rope_matrix(m - r, d_head).T)
            assert abs(float(turned) - float((lengths * np.cos(omega * r - ahead)).sum())) < 1e-10
    half = [torch.cat([x[0::2], x[1::2]]) for x in (query, key)]
    assert (
        abs(float(al.distance_scores(*half, torch.tensor([12]))[0]) - float((lengths * np.cos(omega * 12 - ahead)).sum())) < 1e-10
    )


@pytest.mark.receipt("ch14-peak", "derived")
def test_a_key_peaks_where_it_should():
    a, b, omega, r, s = sp.symbols("a b omega r s", real=True)

    def turn(angle):
        return sp.Matrix([[sp.cos(angle), -sp.sin(angle)], [sp.sin(angle), sp.cos(angle)]])

    q = sp.Matrix([a, b])
    score = (q.T * turn(-omega * s) * turn(omega * r) * q)[0]
    assert sp.simplify(score - (a**2 + b**2) * sp.cos(omega * (s - r))) == 0
    distances = torch.arange(6_000)
    for seed in range(40):
        query, where = normal(64, seed=seed), (seed * 997) % 5_000
        scores = al.distance_scores(query, al.key_peaking_at(query, where), distances)
        assert int(scores.argmax()) == where and math.isclose(float(scores.max()), float(query @ query), rel_tol=1e-12)


@pytest.mark.receipt("ch14-decay", "refuted")
def test_decay_is_not_imposed():
    ones, distances = torch.ones(64, dtype=torch.float64), torch.arange(1, 1_001)
    ahead = torch.cat([(100 * OMEGA).cos() - (100 * OMEGA).sin(), (100 * OMEGA).cos() + (100 * OMEGA).sin()])
    scores, ceiling = al.distance_scores(ones, ahead, distances), al.abel_bound(ones, ahead, distances)
    assert int(distances[scores.argmax()]) == 100 and float(ceiling[-1]) < 0.5 * float(ceiling[0])
    q, k = (normal(2_000, 64, seed=s) for s in (1, 2))
    products = torch.complex(q[:, :32], q[:, 32:]) * torch.complex(k[:, :32], k[:, 32:]).conj()
    near = (products @ torch.polar(torch.ones(1, dtype=torch.float64), OMEGA[:, None] * torch.arange(51))).real  # (2000, 51)
    assert not bool((near.diff(dim=1) < 0).all(dim=1).any())


@pytest.mark.receipt("ch14-bound", "computed")
def test_the_bound_holds():
    distances = torch.arange(0, 4_000, 10)
    turns = np.exp(1j * distances.numpy()[:, None] * OMEGA.numpy())  # (400, 32)
    partial = turns.cumsum(axis=1)
    for seed in range(300):
        query, key = normal(2, 64, seed=seed)
        c = (query[:32].numpy() + 1j * query[32:].numpy()) * (key[:32].numpy() - 1j * key[32:].numpy())
        steps = np.diff(np.append(c, 0))
        total = turns @ c
        assert np.abs(total + partial @ steps).max() < 1e-10  # summation by parts
        bound = np.abs(steps).max() * np.abs(partial).sum(axis=1)
        assert (np.abs(total) <= bound).all()
        assert (al.distance_scores(query, key, distances).abs().numpy() <= bound + 1e-9).all()
        assert np.allclose(al.abel_bound(query, key, distances).numpy(), bound, rtol=1e-10)
    sums = [float(np.abs(np.exp(1j * r * OMEGA.numpy()).cumsum()).sum()) for r in (1, 10, 1_000)]
    assert sums[0] > sums[1] > sums[2]


# ---------------------------------------------------------------- measured


@pytest.mark.receipt("ch14-trained", "measured")
def test_what_was_seen_in_a_trained_model():
    seen = data.record("looks")["results"]["rope_scores"]
    first, last = seen["distances"].index(0), seen["distances"].index(1000)
    assert seen["real"][first] - seen["real"][last] > 0.2
    assert abs(seen["scrambled"][first] - seen["scrambled"][last]) < 0.01
    falls = [real - null for real, null in zip(seen["real falls"], seen["scrambled falls"], strict=True)]
    mean, half = data.interval(falls)
    assert len(falls) == 30 and mean - half > 0.2 and abs(mean - (seen["real"][first] - seen["real"][last])) < 0.01
    assert seen["below"][:3] == [1, 2, 16]
    assert 0.84 < sum(seen["real peaks"][:3]) < 0.89 and sum(seen["scrambled peaks"][:3]) < 0.08
    assert all(row[4] == 1 and row[3] > seen["fast"][1] for row in seen["previous"]) and len(seen["previous"]) == 7


@pytest.mark.receipt("ch14-tasks", "measured")
def test_what_bases_did():
    record = data.record("aliasing")
    runs, told, seeds = record["results"]["runs"], record["results"]["differences"], record["seeds"]
    assert len(seeds) == len(set(seeds)) == 4 and record["mode"] == "full"
    for task, measure in (("lookup", "all"), ("copy", "far")):
        for base, each in runs[task].items():
            paired = np.array([a[measure] - b[measure] for a, b in zip(each, runs[task]["10000"], strict=True)])
            low, high = paired.mean() + 3.182 * paired.std(ddof=1) / 2 * np.array([-1, 1])  # t of 3 degrees of freedom, √4 runs
            assert abs(low + high - 2 * told[task][base][0]) < 3e-4 and abs(high - low - 2 * told[task][base][1]) < 3e-4
            if (task, base) in {("lookup", "1.5"), ("lookup", "10")}:
                assert high < -0.5
            elif (task, base) in {("lookup", "30"), ("copy", "1e+32")}:
                assert high < 0
            else:
                assert low > -0.01 and high < 0.01
    assert all(run["all"] > 0.99 for task in runs for run in runs[task]["10000"])
    ids, _ = al.lookup_batch(256, torch.Generator().manual_seed(7))
    counts = (ids[:, :32, None] % al.VALUES == torch.arange(al.VALUES)).sum(dim=1)  # (256, values)
    floor = float((counts.max(dim=1).values / 32.0).mean())  # right answers of one that names the commonest value
    assert 0.215 < floor < 0.225
    assert all(run["all"] < floor for base in ("1.5", "10") for run in runs["lookup"][base])
    said = al.trained("lookup", 10.0, 0, steps=300)(ids)[:, 32:, : al.VALUES].argmax(dim=-1)  # (256, 32)
    assert float((counts.gather(1, said) == counts.max(dim=1, keepdim=True).values).double().mean()) > 0.7
