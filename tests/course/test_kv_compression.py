"""The reference code of ch20 against independent oracles."""

import json
import math
import shutil
import subprocess

import pytest
import torch
import traitlets

from course import data, looks, widgets
from course import kv_compression as kv
from course.model import GPT, Config
from course.sinks import streaming_logits
from course.widgets.kv_compression import CacheShelf


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small(seed=0):
    torch.manual_seed(seed)
    return GPT(Config(V=40, d_model=192, n_layers=2, n_heads=6, n_kv_heads=3)).double().eval()


def some_kept(S=12, seed=0):
    mass = normal(2, 3, S, seed=seed).abs()
    return kv.Kept(normal(2, 3, S, 4, seed=seed + 1), normal(2, 3, S, 4, seed=seed + 2), mass, torch.arange(S).expand(2, 3, S))


# ---------------------------------------------------------------- how many keys


def test_the_inventorys_numbers():
    assert [kv.keys_needed(1.3, share, 8192) for share in (0.9, 0.99)] == [314, 4909]
    assert kv.keys_needed(0.0, 0.5, 10) == 5 and kv.keys_needed(2.0, 1.0, 7) == 7 and kv.keys_needed(1.0, 0.3, 1) == 1


@pytest.mark.parametrize("gamma", [0.4, 1.0, 1.7])
def test_bounds_hold_the_tail(gamma):
    for D, N in ((1, 1), (1, 2), (7, 200), (64, 4096)):
        tail, near = (math.fsum(r**-gamma for r in part) for part in (range(D + 1, N + 1), range(1, D + 1)))
        low, high = kv.tail_bounds(gamma, D, N)
        assert low - 1e-12 <= tail / (near + tail) <= high + 1e-12


def test_what_cannot_be_asked():
    for call in (lambda: kv.keys_needed(1.0, 0.0, 5), lambda: kv.keys_needed(1.0, 0.5, 0), lambda: kv.tail_bounds(1.0, 6, 5)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(ValueError, match="more than 4 tokens"):
        kv.chosen(some_kept(), "window", 4)
    with pytest.raises(ValueError, match="do not divide"):
        kv.quantised(torch.zeros(33), 4)


# ---------------------------------------------------------------- bits and bytes


def test_quantised_is_the_nearest_level():
    x = normal(3, 64, seed=4)
    for bits in (1, 2, 4):
        got = kv.quantised(x, bits).unflatten(-1, (-1, kv.GROUP))
        each = x.unflatten(-1, (-1, kv.GROUP))
        low, high = each.amin(-1, keepdim=True), each.amax(-1, keepdim=True)
        levels = low + (high - low) * torch.arange(2**bits) / (2**bits - 1)  # (3, 2, levels)
        nearest = (each[..., None] - levels[..., None, :]).abs().amin(-1)
        assert float(((got - each).abs() - nearest).max()) < 4e-3  # step and offset are in float16
    assert torch.equal(kv.quantised(torch.full((32,), 0.5), 2), torch.full((32,), 0.5))


def test_keys_by_channel_bear_a_channel_that_is_large():
    key, value = normal(1, 1, 64, 32), normal(1, 1, 64, 32, seed=1)
    key[..., 5] *= 30
    errors = [(kv.quantised_cache(key, value, 2, by)[0] - key)[..., :5].square().mean() for by in (True, False)]
    assert errors[0] < errors[1] / 3
    assert torch.equal(kv.quantised_cache(key, value, 2, True)[1], kv.quantised_cache(key, value, 2, False)[1])


def test_bytes_are_within_the_budget():
    assert kv.token_bytes(64) == 256 and kv.token_bytes(64, 8) == 144 and kv.token_bytes(64, 2) == 48
    for name, method in kv.METHODS.items():
        for share in (0.5, 0.25, 0.125, 0.0625):
            n, used = method.keeps(share, 2048, 64, 3)
            assert used <= share + 1e-9, name
            assert used > 0.97 * share or n == 2048 or method.kind == "rank", name
    assert kv.METHODS["sinks + window"].keeps(0.125, 2048, 64, 3) == (256, 0.125)


# ---------------------------------------------------------------- what stays


def test_each_rule_against_a_plain_one():
    kept, n = some_kept(), 7
    for b in range(2):
        for g in range(3):
            mass, length = kept.mass[b, g], kept.value[b, g].norm(dim=-1)
            old = list(range(12 - 3))
            best = lambda score, old=old, k=4: sorted(sorted(old, key=lambda j: -float(score[j]))[:k])  # noqa: E731
            expected = {
                "window": list(range(5, 12)),
                "sinks": [0, 1, 2, 3, 9, 10, 11],
                "hitters": [*best(mass), 9, 10, 11],
                "value": [*best(mass * length), 9, 10, 11],
                "value and sinks": [0, 1, 2, 3, 9, 10, 11],
                "all": list(range(12)),
            }
            for rule, index in expected.items():
                assert kv.chosen(kept, rule, n)[b, g].tolist() == index, rule
    random = kv.chosen(some_kept(40), "random", 20)
    assert {0, 1, 2, 3, *range(30, 40)} <= set(random[0, 0].tolist()) and torch.equal(
        random, kv.chosen(some_kept(40), "random", 20)
    )


def test_what_a_head_loses():
    weights, value = normal(2, 5, 8).softmax(dim=-1), normal(2, 8, 3, seed=1)
    stays = torch.tensor([True, False] * 4).expand(2, 8)
    mass, change = kv.eviction_error(weights, value, stays)
    for b in range(2):
        for t in range(5):
            w = weights[b, t] * stays[b]
            out = (w / w.sum()) @ value[b]
            whole = weights[b, t] @ value[b]
            assert float(mass[b, t]) == pytest.approx(float(w.sum()))
            assert float(change[b, t]) == pytest.approx(float((out - whole).norm() / whole.norm()))


# ---------------------------------------------------------------- reading


def test_blocks_that_keep_all_are_the_model():
    model, ids = small(), torch.randint(40, (2, 50), generator=torch.Generator().manual_seed(0))
    for block in (1, 16, 64):
        logits, layers = kv.read_in_blocks(model, ids, block)
        assert torch.allclose(logits, model(ids), atol=1e-10)
    later, _ = kv.read_in_blocks(model, ids[:, :9], 9, start=50, layers=layers, logits_from=8)
    assert torch.allclose(later[:, 0], model(torch.cat([ids, ids[:, :9]], dim=1))[:, -1], atol=1e-10)
    assert layers[0].mass.sum() == pytest.approx(2 * 3 * 2 * 50)  # each query of each head gives one


def test_blocks_of_one_are_a_streaming_cache():
    model, ids = small(1), torch.randint(40, (1, 30), generator=torch.Generator().manual_seed(1))
    for rule, window, first in (("sinks", 6, 4), ("window", 10, 0)):
        logits, layers = kv.read_in_blocks(model, ids, 1, rule, 9)
        assert torch.allclose(logits, streaming_logits(model, ids, window, first), atol=1e-10), rule
        assert layers[0].place.shape == (1, 3, 9)


def test_changes_that_change_nothing():
    model, ids = small(2), torch.randint(40, (1, 64), generator=torch.Generator().manual_seed(2))
    bases = kv.principal(model, ids)
    for key_basis, value_basis in bases:
        assert torch.allclose(key_basis.mT @ key_basis, torch.eye(96).double(), atol=1e-8)
        assert value_basis.shape == (96, 96)
    whole = kv.METHODS["low rank"].change(model, 1.0, bases)
    assert torch.allclose(kv.read_in_blocks(model, ids, 32, change=whole)[0], model(ids), atol=1e-8)
    for name in ("2 bits", "one group", "low rank"):
        key, value = normal(1, 3, 32, 32), normal(1, 3, 32, 32, seed=1)
        k, v = kv.METHODS[name].change(model, 0.25, bases)(0, key, value, 0)
        assert torch.equal(k[:, :, :4], key[:, :, :4]) and torch.equal(v[:, :, :4], value[:, :, :4]), name
        assert not torch.allclose(k, key) and key.equal(normal(1, 3, 32, 32)), name
    k, _ = kv.METHODS["low rank"].change(model, 0.25, bases)(0, normal(1, 3, 32, 32), value, 64)
    assert int(torch.linalg.matrix_rank(value.transpose(1, 2).flatten(2)[0])) > 24  # of 96, a quarter of which is left
    v = kv.METHODS["low rank"].change(model, 0.25, bases)(0, key, value, 64)[1]
    assert int(torch.linalg.matrix_rank(v.transpose(1, 2).flatten(2)[0], rtol=1e-8)) == 24
    k, _ = kv.METHODS["one group"].change(model, 0.25)(0, key, value, 64)
    assert torch.allclose(k[:, 0], key.mean(dim=1)) and torch.equal(k[:, 0], k[:, 2])


def test_a_cache_that_is_cut_afterwards():
    model, ids = small(3), torch.randint(40, (1, 64), generator=torch.Generator().manual_seed(3))
    _, layers = kv.read_in_blocks(model, ids, 64)
    few, n = kv.cut(model, layers, kv.METHODS["heavy hitters"], 0.25, 64)
    assert n == few[1].place.shape[-1] == 15  # 64 · 128 bytes / 4 over 132
    assert torch.equal(few[0].place, layers[0].only(kv.chosen(layers[0], "hitters", n)).place)


# ---------------------------------------------------------------- the look and the widget


def test_the_look_is_registered_and_its_record_fits():
    seen = data.record("looks")["results"]["cache_shelf"]
    assert looks.LOOKS["cache_shelf"] is kv.cache_shelf and seen["full"] == "52814"
    assert [each["method"] for each in seen["found"]] == ["sinks + window", "heavy hitters", "4 bits"]
    assert all(len(each["stays"]) == 128 for each in seen["found"])


CASES = [{}, {"method": "4 bits", "budget": 0.0625}, {"method": "heavy hitters", "budget": 0.5}, {"asked": 76}, {"asked": 0}]


def test_the_widget_says_what_the_reference_says():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    own, library = ((widgets.HERE / name).read_text() for name in ("kv_compression.js", "library.js"))
    made = [CacheShelf(**case) for case in CASES]
    script = f"{library}{own.split('export default')[0]}\nconst cases = {json.dumps([each.state() for each in made])};\n"
    script += "console.log(JSON.stringify(cases.map((state) => said(state))));"
    found = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    assert found == [each.describe() for each in made] and len(set(found)) == len(found)


@pytest.mark.parametrize("case", [{"method": "all"}, {"budget": 0.3}, {"asked": 256}, {"asked": -1}])
def test_the_widget_refuses_what_it_cannot_show(case):
    with pytest.raises(traitlets.TraitError):
        CacheShelf(**case)
