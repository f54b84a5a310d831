"""The evidence behind the formulas of ch24_grokking."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats

from course import data, grokking

DECAYS = (0.3, 0.5, 1.0, 2.0, 4.0)


@pytest.fixture(scope="module")
def found() -> dict:
    record = data.record("grokking")
    assert record["mode"] == "full" and record["settings"]["p"] == 113 and record["settings"]["decays"] == [0.0, *DECAYS]
    assert len(record["results"]["runs"]) == 60 and record["results"]["steps"][-1] == 27_697
    return record["results"]


def of(found: dict, decay: float) -> dict[int, int | None]:
    """The times of a decay's runs, by seed."""
    return {run["seed"]: run["t_test"] for run in found["runs"] if run["decay"] == decay}


def waves(p: int, k: int) -> np.ndarray:
    angle = 2 * np.pi * k * np.arange(p) / p
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)  # (p, 2)


def fitted(table: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return columns @ np.linalg.lstsq(columns, table, rcond=None)[0]


# ---------------------------------------------------------------- Fourier measures


@pytest.mark.receipt("ch24-share", "computed")
def test_shares_are_those_of_projections():
    random = np.random.default_rng(0)
    for p, d in ((7, 3), (31, 48), (113, 20)):
        table = random.normal(size=(p, d))
        power = np.array([(fitted(table, waves(p, k)) ** 2).sum() for k in range(1, (p + 1) // 2)])
        assert np.allclose(grokking.fourier_shares(torch.from_numpy(table)).numpy(), power / power.sum(), atol=1e-10)
        assert grokking.fourier_measure(torch.from_numpy(table), 1) > 1 / len(power)
    planted = waves(31, 4) @ random.normal(size=(2, 8)) + waves(31, 11) @ random.normal(size=(2, 8)) + 5
    assert sorted(grokking.key_frequencies(torch.from_numpy(planted))) == [4, 11]


@pytest.mark.receipt("ch24-restricted", "computed")
@pytest.mark.receipt("ch24-excluded", "computed")
def test_restricted_and_excluded_loss_by_brute_force():
    random = np.random.default_rng(1)
    for p, ks in ((5, [2]), (7, [1, 3]), (11, [2, 3, 5])):
        logits = 3 * random.normal(size=(p, p, p))
        everything = [(a, b) for a in range(p) for b in range(p)]
        some = [everything[i] for i in random.permutation(p * p)[: p * p // 2]]
        for pairs in (everything, some):
            table = np.zeros((p, p))
            for s in range(p):
                rows = [logits[a, b] for a, b in pairs if (a + b) % p == s]
                table[s] = np.mean(rows, axis=0) if rows else 0
            mean = table.mean(axis=0)
            circuit = fitted(table, np.concatenate([waves(p, k) for k in ks], axis=1))
            z = mean + circuit
            expected = np.mean([np.log(np.exp(z[s]).sum()) - z[s, s] for s in range(p)])
            got = grokking.restricted_loss(torch.from_numpy(logits), ks, torch.tensor(pairs))
            assert abs(float(got) - expected) < 1e-9
            if pairs is everything:
                assert abs(float(grokking.restricted_loss(torch.from_numpy(logits), ks)) - expected) < 1e-9
                left = [logits[a, b] - circuit[(a + b) % p] for a, b in some]
                lost = [np.log(np.exp(x).sum()) - x[(a + b) % p] for x, (a, b) in zip(left, some, strict=True)]
                got = grokking.excluded_loss(torch.from_numpy(logits), ks, torch.tensor(some))
                assert abs(float(got) - np.mean(lost)) < 1e-9


@pytest.mark.receipt("ch24-leak", "measured")
def test_a_memoriser_has_a_falling_restricted_loss():
    losses = {}
    for groks in (True, False):
        steps, models, train, test = grokking.checkpoints(groks)
        assert steps[1] == 60 and len(train) == 347 and len(test) == 149
        ks = grokking.key_frequencies(models[-1]["E"][0], 0.0)[:5]
        rows = []
        for w in models[1:]:
            logits = grokking.mlp(w, grokking.every_pair(31)).view(31, 31, 31)
            right = float(grokking.accuracy(grokking.mlp(w, test), test))
            rows.append([right, float(grokking.restricted_loss(logits, ks)), float(grokking.restricted_loss(logits, ks, test))])
        losses[groks] = np.array(rows)
    accuracy, everything, unseen = losses[False].T
    assert accuracy.max() == 0 and (np.diff(everything) < 0).all() and (np.diff(unseen) > 0).all()
    assert abs(everything[0] - losses[True][0, 1]) < 0.01
    assert losses[True][-1, 0] > 0.99 and (np.diff(losses[True][:, 2]) < 0).all()
    record, curves = data.record("grokking")["results"], grokking.curves()
    quiet = [i for i, run in enumerate(record["runs"]) if run["decay"] == 0]
    at = [record["steps"].index(step) for step in (145, 2944, 16198)]
    for early, late in pairwise(at):
        mean, half = data.interval(curves["restricted"][quiet, late] - curves["restricted"][quiet, early])
        assert mean > half > 0


# ---------------------------------------------------------------- sixty transformers


@pytest.mark.receipt("ch24-decay", "measured")
def test_time_is_inverse_to_decay(found):
    times = {decay: of(found, decay) for decay in (0.0, *DECAYS)}
    assert [sum(t is not None for t in each.values()) for each in times.values()] == [0, 7, 9, 10, 10, 10]
    for a, b in pairwise(DECAYS):
        gaps = [math.log(times[a][s] / times[b][s]) for s in range(10) if times[a][s] and times[b][s]]
        mean, half = data.interval(gaps)
        assert abs(mean - math.log(b / a)) < half < mean
    x = np.log([1, 2, 4])
    slopes = [np.polyfit(x, [math.log(times[decay][s]) for decay in (1.0, 2.0, 4.0)], 1)[0] for s in range(10)]
    assert data.interval(slopes, 2) == (-1.03, 0.24)
    norms, longer = grokking.curves()["norm"].numpy(), []
    for run, norm in zip(found["runs"], norms, strict=True):
        if run["t_test"]:
            peak, there = int(norm.argmax()), found["steps"].index(run["t_test"])
            alone = math.log(norm[peak] / norm[there]) / -math.log(1 - 1e-3 * run["decay"])  # steps of drag
            longer.append((found["steps"][there] - found["steps"][peak]) / alone)
    assert len(longer) == 46 and min(longer) > 8.5 and max(longer) < 32.5


def first_half(curve: np.ndarray) -> int:
    return int(np.argmax((curve - curve[0]) / (curve[-1] - curve[0]) >= 0.5))


@pytest.mark.receipt("ch24-lead", "refuted")
def test_the_fourier_measure_does_not_lead_by_halves(found):
    curves, behind = {name: x.numpy() for name, x in grokking.curves().items()}, []
    for i, run in enumerate(found["runs"]):
        if run["t_test"]:
            fourier, accuracy = (found["steps"][first_half(curves[name][i])] for name in ("Fourier", "test accuracy"))
            behind.append(fourier / accuracy)
    assert len(behind) == 46 and min(behind) == 1 and max(behind) < 1.16
    assert sum(x > 1 for x in behind) == 43


@pytest.mark.receipt("ch24-early", "measured")
def test_the_fourier_measure_orders_the_seeds(found):
    curves, steps, at = grokking.curves(), np.array(found["steps"]), {}
    for decay in (0.5, 1.0, 2.0, 4.0):
        rows = [i for i, run in enumerate(found["runs"]) if run["decay"] == decay]
        times = [found["runs"][i]["t_test"] or 10**6 for i in rows]
        look = int(np.flatnonzero(steps <= 0.3 * min(times))[-1])
        at[decay] = (times, {name: curves[name][rows, look].numpy() for name in ("Fourier", "test loss", "norm")})
    mean = lambda name, order=slice(None): np.mean(  # noqa: E731
        [stats.spearmanr(seen[name], np.array(times)[order])[0] for times, seen in at.values()]
    )
    assert max(stats.spearmanr(seen["Fourier"], times)[0] for times, seen in at.values()) < -0.8
    assert [round(float(mean(name)), 2) for name in ("Fourier", "test loss", "norm")] == [-0.9, 0.64, 0.57]
    standard = lambda x: stats.zscore(stats.rankdata(x))  # noqa: E731
    shares = [standard(times) * standard(seen["Fourier"]) for times, seen in at.values()]  # (4, 10): what each seed adds
    mean_of_seeds, half = data.interval(np.mean(shares, axis=0))
    assert mean_of_seeds + half < -0.2
    random = np.random.default_rng(0)
    ranks = {decay: (stats.rankdata(times), stats.rankdata(seen["Fourier"])) for decay, (times, seen) in at.items()}
    for _ in range(2000):
        order = random.permutation(10)
        assert abs(np.mean([np.corrcoef(a[order], b)[0, 1] for a, b in ranks.values()])) < 0.9


@pytest.mark.receipt("ch24-keys", "measured")
def test_key_frequencies_are_sufficient_and_necessary(found):
    runs = [run for run in found["runs"] if run["t_test"]]
    assert len(runs) == 46 and {len(run["keys"]) for run in runs} == {3, 4, 5, 6}
    assert max(run["loses keys"] for run in runs) <= 0.04
    odd = {(run["decay"], run["seed"]): run["keeps keys"] for run in runs if run["keeps keys"] < 0.99}
    assert {k: round(x, 2) for k, x in odd.items()} == {(1.0, 5): 0.63, (2.0, 5): 0.65}
    sound = [seed for seed in range(10) if all(run["keeps keys"] >= 0.99 for run in runs if run["seed"] == seed)]
    low, high = grokking.exact_interval(len(sound), 10)  # an interval over seeds: runs of one seed share most keys
    assert len(sound) == 9 and low > 0.55 and high < 1
    assert max(x for run in runs for x in run["keeps random"]) <= 0.03
    lost = [x for run in runs for x in run["loses random"]]
    assert len(lost) == 920 and min(lost) >= 0.84 and np.median(lost) > 0.999


# ---------------------------------------------------------------- runs, and likeness


@pytest.mark.filterwarnings("ignore:The confidence interval is undefined")
@pytest.mark.receipt("ch24-kaplan", "computed")
def test_kaplan_meier_is_scipys():
    random = np.random.default_rng(2)
    for n in (1, 5, 12, 60):
        times, seen = random.integers(1, 20, n), random.random(n) < 0.6
        seen[0] = True
        known = stats.ecdf(stats.CensoredData(uncensored=times[seen], right=times[~seen]))
        ends = known.sf.confidence_interval(method="log-log")
        for t, share, low, high in grokking.kaplan_meier(times.tolist(), seen.tolist()):
            assert share == pytest.approx(float(known.sf.evaluate(t)), abs=1e-12)
            if 0 < share < 1:
                assert (low, high) == pytest.approx((float(ends.low.evaluate(t)), float(ends.high.evaluate(t))), abs=1e-9)


@pytest.mark.receipt("ch24-exact", "computed")
def test_exact_interval_by_its_tails():
    for n in range(1, 13):
        for k in range(n + 1):
            low, high = grokking.exact_interval(k, n)
            tail = lambda q, ks, n=n: sum(math.comb(n, j) * q**j * (1 - q) ** (n - j) for j in ks)  # noqa: E731
            assert (low == 0) if k == 0 else abs(tail(low, range(k, n + 1)) - 0.025) < 1e-9
            assert (high == 1) if k == n else abs(tail(high, range(k + 1)) - 0.025) < 1e-9
            known = stats.binomtest(k, n).proportion_ci(method="exact")
            assert (low, high) == pytest.approx((known.low, known.high), abs=1e-6)


@pytest.mark.receipt("ch24-err-three", "erratum")
def test_two_of_three_leaves_almost_everything_open():
    known = stats.binomtest(2, 3).proportion_ci(method="exact")
    assert (round(known.low, 3), round(known.high, 3)) == (0.094, 0.992)
    above = [n for n in range(3, 60, 3) if stats.binomtest(2 * n // 3, n).proportion_ci(method="exact").low > 0.5]
    assert above[0] == 42


@pytest.mark.receipt("ch24-cka", "computed")
def test_cka_is_the_cosine_of_gram_matrices():
    random = np.random.default_rng(3)
    for n, d, e in ((5, 3, 9), (31, 48, 48), (20, 2, 1)):
        X, Y = random.normal(size=(n, d)) + 3, random.normal(size=(n, e))
        C = np.eye(n) - 1 / n
        K, L = C @ X @ X.T @ C, C @ Y @ Y.T @ C
        cosine = (K * L).sum() / np.sqrt((K**2).sum() * (L**2).sum())
        assert abs(float(grokking.linear_cka(torch.from_numpy(X), torch.from_numpy(Y))) - cosine) < 1e-10
        turned = 4 * X @ np.linalg.qr(random.normal(size=(d, d)))[0] - 7
        assert abs(float(grokking.linear_cka(torch.from_numpy(X), torch.from_numpy(turned))) - 1) < 1e-10


@pytest.mark.receipt("ch24-cka-null", "computed")
def test_cka_of_unrelated_tables():
    draw = torch.Generator().manual_seed(0)
    for n in (31, 113):
        for d, e in ((8, 8), (48, 128), (128, 256)):
            X, Y = (torch.randn(200, n, width, generator=draw) for width in (d, e))
            mean = float(grokking.linear_cka(X, Y).mean())
            assert abs(mean / math.sqrt(d * e / ((n + d) * (n + e))) - 1) < 0.03
