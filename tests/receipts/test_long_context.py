"""The evidence behind the formulas of ch19_long_context."""

import math
from fractions import Fraction

import pytest
import sympy as sp
import torch
from scipy.stats import binomtest
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from course import data
from course.long_context import (
    METHODS,
    frequencies,
    ntk_base,
    ntk_freqs,
    pi_freqs,
    score_factor,
    turn,
    unseen,
    wilson,
    yarn_freqs,
)
from course.position_rope import rope, rope_frequencies, rope_matrix


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---------------------------------------------------------------- angles


@pytest.mark.receipt("ch19-unseen", "computed")
def test_unseen_angles_are_those_on_no_arc_of_training():
    omega = rope_frequencies(32, 1e4)
    for method, s in (("unchanged", 1), ("PI", 4), ("NTK", 4), ("YaRN", 4)):
        used, _ = frequencies(method, omega, s, 100)
        found = unseen(omega, used, 100, 400)
        for i in range(16):  # hands on a circle: before the last hand of training, or on the rest of the circle
            last = complex(math.cos(omega[i] * 99), math.sin(omega[i] * 99))
            hands = [complex(math.cos(used[i] * r), math.sin(used[i] * r)) for r in range(400)]
            clockwise = [
                (-math.atan2((h / last).imag, (h / last).real)) % (2 * math.pi) for h in hands
            ]  # back from the last hand
            arc = float(omega[i]) * 99
            new = [back > arc + 1e-7 and back < 2 * math.pi - 1e-7 for back in clockwise]
            assert float(found[i]) == pytest.approx(0 if arc >= 2 * math.pi else sum(new) / 400, abs=1e-12)
    slow = omega[omega * 400 < 2 * math.pi]
    assert len(slow) and unseen(slow, slow, 100, 400).tolist() == [float(Fraction(3, 4))] * len(slow)


@pytest.mark.receipt("ch19-err-blow", "erratum")
def test_no_distance_makes_a_score_larger_than_the_lengths_allow():
    for seed in range(20):
        query, key = normal(64, seed=seed), normal(64, seed=100 + seed)
        bound = float(query.norm() * key.norm())
        distances = torch.cat([torch.arange(0, 10**7, 9_973), torch.tensor([10**9])])
        scores = turn(query.expand(len(distances), -1), distances, rope_frequencies(64, 1e5)) @ key
        assert float(scores.abs().max()) <= bound * (1 + 1e-9)
        explicit = (rope_matrix(12_345, 64) @ query) @ (rope_matrix(777, 64) @ key)
        assert abs(float(explicit)) <= bound * (1 + 1e-9)
    record = data.record("long_context")["results"]["loss"]
    edges = record["edges"]
    for text in record["rows"]:  # what does grow beyond the length is the loss
        rows = torch.tensor(record["rows"][text]["unchanged"])
        assert rows[:, edges.index(16384) - 1].min() > rows[:, edges.index(8192) - 1].max()


# ---------------------------------------------------------------- frequencies


@pytest.mark.receipt("ch19-pi", "computed")
def test_slower_pairs_are_positions_between_positions():
    x, positions = normal(9, 32), torch.arange(9)
    for s in (1, 2, 4, 7.5):
        slower = turn(x, positions, pi_freqs(rope_frequencies(32), s))
        assert torch.allclose(slower, rope(x, positions / s), atol=1e-12)
        rows = torch.stack(
            [
                rope_matrix(m / s, 32) @ row
                for m, row in enumerate(rope(x, torch.zeros(9), layout="half")[:, torch.arange(32).view(2, 16).T.flatten()])
            ]
        )
        assert torch.allclose(slower[:, torch.arange(32).view(2, 16).T.flatten()], rows, atol=1e-12)


@pytest.mark.receipt("ch19-err-base", "erratum")
def test_the_base_times_the_factor_falls_short():
    d, s, theta = sp.symbols("d s theta", positive=True)
    slowest = lambda base: base ** (-(d - 2) / d)  # noqa: E731
    assert sp.simplify(sp.log(slowest(theta) / slowest(theta * s)).expand(force=True) - (d - 2) / d * sp.log(s)) == 0
    ratio = [float(rope_frequencies(n, 1e4)[-1] / rope_frequencies(n, 4e4)[-1]) for n in (128, 64)]
    assert [round(x, 3) for x in ratio] == [3.914, 3.830]
    assert (rope_frequencies(128, 4e4)[1:] < rope_frequencies(128, 1e4)[1:]).all()  # a larger base lowers frequencies
    assert float(rope_frequencies(128, 1e4)[-1] / ntk_freqs(rope_frequencies(128, 1e4), 4)[-1]) == pytest.approx(4, abs=1e-12)
    assert torch.allclose(rope_frequencies(128, ntk_base(1e4, 4, 128)), ntk_freqs(rope_frequencies(128, 1e4), 4), rtol=1e-12)


def library(d_head, theta, s, length):
    """Frequencies and factor of Hugging Face's YaRN, which follows the published code."""
    scaling = {"rope_type": "yarn", "factor": s, "original_max_position_embeddings": length, "rope_theta": theta}
    config = LlamaConfig(
        hidden_size=d_head,
        num_attention_heads=1,
        head_dim=d_head,
        max_position_embeddings=int(s * length),
        rope_parameters=scaling,
    )
    return ROPE_INIT_FUNCTIONS["yarn"](config, "cpu")


@pytest.mark.receipt("ch19-yarn", "computed")
def test_yarn_keeps_what_turns_often_and_interpolates_what_turns_once():
    for d_head, theta, s, length in ((128, 1e4, 16, 4096), (64, 1e5, 4, 8192), (128, 1e6, 4, 32768)):
        omega = rope_frequencies(d_head, theta)
        ours, theirs = yarn_freqs(omega, s, length), library(d_head, theta, s, length)[0].double()
        seen = 0
        for i in range(d_head // 2):
            turns = Fraction(length) * Fraction(float(omega[i])) / Fraction(2 * math.pi)
            share = min(Fraction(1), max(Fraction(0), (turns - 1) / 31))
            assert float(ours[i]) == pytest.approx(
                float(share) * float(omega[i]) + float(1 - share) * float(omega[i]) / s, rel=1e-12
            )
            if turns <= 1 or turns >= 32:  # outside the ramp
                seen += 1
                assert float(ours[i] / theirs[i]) == pytest.approx(1, abs=1e-4)
        assert seen > d_head // 8


@pytest.mark.receipt("ch19-two-ramps", "computed")
def test_the_papers_ramp_is_not_the_published_one():
    found = {}
    for sizes in ((128, 1e4, 16, 4096), (64, 1e5, 4, 8192)):
        ratio = library(*sizes)[0].double() / yarn_freqs(rope_frequencies(*sizes[:2]), *sizes[2:])
        found[sizes] = float(ratio.max())
        assert float(ratio.min()) > 0.97  # the published one turns no pair much slower
    assert [found[128, 1e4, 16, 4096], found[64, 1e5, 4, 8192]] == pytest.approx([3.04, 1.69], abs=0.006)


@pytest.mark.receipt("ch19-temperature", "computed")
def test_queries_and_keys_times_the_root_are_scores_times_the_square():
    query, key = normal(5, 32), normal(7, 32, seed=1)
    for s in (1, 2, 4, 32):
        theirs = library(64, 1e4, max(s, 1), 4096)[1]  # on queries and on keys
        assert torch.allclose((theirs * query) @ (theirs * key).mT, score_factor(s) * query @ key.mT, rtol=1e-12)
    assert set(METHODS) == {"unchanged", "PI", "NTK", "YaRN"}


# ---------------------------------------------------------------- shares


@pytest.mark.receipt("ch19-wilson", "computed")
def test_wilsons_interval_is_scipys():
    for n in (1, 5, 12, 60, 200):
        for k in {0, 1, n // 2, n - 1, n}:
            theirs = binomtest(k, n).proportion_ci(0.95, method="wilson")
            assert wilson(k, n) == pytest.approx((theirs.low, theirs.high), abs=1e-6)


@pytest.mark.receipt("ch19-all-right", "derived")
def test_all_right():
    n, z, share = sp.symbols("n z p", positive=True)
    low = (share + z**2 / (2 * n) - z * sp.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))) / (1 + z**2 / n)
    assert sp.simplify(low.subs(share, 1) - n / (n + z**2)) == 0
    assert wilson(35, 35)[0] > 0.9 > wilson(34, 34)[0]


# ---------------------------------------------------------------- the record


def losses(text: str, arm: str, *ends: int) -> list[float]:
    """Of each window, the mean loss of the parts that end there."""
    found = data.record("long_context")["results"]["loss"]
    return (
        torch.tensor(found["rows"][text][arm], dtype=torch.float64)[:, [found["edges"].index(end) - 1 for end in ends]]
        .mean(dim=1)
        .tolist()
    )


def gap(one: list[float], other: list[float]) -> tuple[float, float]:
    mean, half = data.interval([a - b for a, b in zip(one, other, strict=True)])
    return mean - half, mean + half


FAR = (20480, 24576, 28672, 32768)
TEXTS = ("austen", "shakespeare")


@pytest.mark.receipt("ch19-loss", "measured")
def test_the_loss_breaks_unchanged_and_holds_with_yarn():
    for text in TEXTS:
        own = losses(text, "unchanged", 8192)
        assert gap(losses(text, "unchanged", 16384), own)[0] > 0.5
        assert gap(losses(text, "YaRN 4", *FAR), data.record("long_context")["results"]["loss"]["anew"][text]["8192"])[1] < 0.2


@pytest.mark.receipt("ch19-near", "measured")
def test_what_methods_cost_on_the_first_tokens():
    found = data.record("long_context")["results"]["loss"]
    width = torch.tensor([128.0, 384, 1536], dtype=torch.float64) / 2048
    for text in TEXTS:
        near = {
            arm: (torch.tensor(rows, dtype=torch.float64)[:, :3] @ width).tolist() for arm, rows in found["rows"][text].items()
        }
        assert found["edges"][:4] == [0, 128, 512, 2048] and gap(near["PI 4"], near["unchanged"])[0] > 1
        for arm in ("NTK 4", "YaRN 4"):
            low, high = gap(near[arm], near["unchanged"])
            assert 0 < low < high < 0.2


@pytest.mark.receipt("ch19-anew", "measured")
def test_forgetting_beats_every_method():
    anew = data.record("long_context")["results"]["loss"]["anew"]
    for text in TEXTS:
        for arm in ("unchanged", "PI 2", "PI 4", "NTK 2", "NTK 4", "NTK 8", "YaRN 2", "YaRN 4"):
            for length in ("8192", "2048"):
                assert gap(losses(text, arm, *FAR), anew[text][length])[0] > 0


@pytest.mark.receipt("ch19-keys", "measured")
def test_keys_tell_apart_what_loss_does_not():
    keys = data.record("long_context")["results"]["keys"]
    each = keys["trials"] * len(keys["depths"])
    right = {arm: {n: sum(row) for n, row in found.items()} for arm, found in keys["found"].items()}
    ends = [binomtest(right[arm]["32768"], each).proportion_ci(0.95, method="wilson") for arm in ("YaRN 4", "NTK 4", "unchanged")]
    assert each == 75 and [right[arm]["32768"] for arm in ("YaRN 4", "NTK 4", "unchanged")] == [40, 7, 0]
    assert ends[0].low > ends[1].high and ends[1].low < ends[2].high
    low, high = (binomtest(right["NTK 4"][n], each).proportion_ci(0.95, method="wilson") for n in ("32768", "16384"))
    assert high.low - low.high > 0.3 and right["NTK 4"]["16384"] - right["NTK 4"]["32768"] > each / 2
    assert sum(right["PI 4"].values()) == 0 and right["unchanged"]["16384"] == 0
    for text in TEXTS:
        assert gap(losses(text, "NTK 4", *FAR), data.record("long_context")["results"]["loss"]["anew"][text]["8192"])[1] < 0.25


@pytest.mark.receipt("ch19-tuned", "measured")
def test_a_short_training_does_what_no_formula_does():
    small = data.record("long_context")["results"]["small"]
    bits = lambda kind, arm: [row[2] for row in small[kind][arm]["bits"]]  # noqa: E731
    assert small["steps"]["trained"] == small["steps"]["trained at 512"] == 934 and small["steps"]["tuned unchanged"] == 102
    assert gap(bits("as trained", "unchanged"), bits("tuned", "unchanged"))[0] > 1
    low, high = gap(bits("tuned", "unchanged"), bits("trained at 512", "unchanged"))
    assert -0.1 < low < high < 0.1
    assert gap(bits("as trained", "unchanged"), bits("as trained", "NTK 4"))[0] > 0.5
    assert gap(bits("tuned", "PI 4"), bits("tuned", "unchanged"))[0] > 0.8
    low, high = gap(bits("tuned", "more at 128"), bits("as trained", "unchanged"))
    assert low < 0 < high
    assert all(sum(map(sum, row.values())) == 0 for row in small["as trained"]["unchanged"]["keys"])
