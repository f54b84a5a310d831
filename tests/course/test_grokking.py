"""The reference code of ch24 against independent oracles."""

import json
import math
import shutil
import subprocess
from itertools import pairwise

import pytest
import torch
from torch.nn import functional as F

from course import data, grokking, widgets
from course.widgets.grokking import DECAYS, SEEDS, Grokking


def test_pairs_are_shared_out():
    train, test = grokking.mod_add_data(7, 0.3, seed=1)
    both = torch.cat([train, test]).tolist()
    assert len(train) == 15 and sorted(both) == grokking.every_pair(7).tolist()
    train, test = grokking.mod_add_data(7, 0.5, seed=1, ordered=False)
    both = torch.cat([train, test]).tolist()
    assert len(both) == 28 and sorted(both) == [[a, b] for a in range(7) for b in range(a, 7)]
    assert not torch.equal(train, grokking.mod_add_data(7, 0.5, seed=2, ordered=False)[0])
    for p, share in ((8, 0.5), (1, 0.5), (7, 0.0), (7, 1.0), (-3, 0.5)):
        with pytest.raises(ValueError, match="odd"):
            grokking.mod_add_data(p, share, seed=0)


def test_stacks_compute_what_single_models_compute():
    pairs = grokking.every_pair(13)
    w = grokking.first_weights("mlp", 13, [0, 1], d_model=5, d_ff=8)
    said = grokking.mlp(w, pairs)
    for i in range(2):
        E, W_1, W_2 = (w[name][i] for name in ("E", "W_1", "W_2"))
        hidden = torch.stack([((E[a] + E[b]) @ W_1).clamp_min(0) for a, b in pairs.tolist()])
        assert torch.allclose(said[i], hidden @ W_2, atol=1e-5)
    own = torch.stack([pairs[:20], pairs[20:40]])
    assert torch.allclose(grokking.mlp(w, own), torch.stack([said[0, :20], said[1, 20:40]]), atol=1e-5)
    with pytest.raises(ValueError, match="no kind"):
        grokking.first_weights("rnn", 13, [0], d_model=5, d_ff=8)


def test_the_transformer_is_one_block_of_torchs_attention():
    pairs = grokking.every_pair(13)
    w = grokking.first_weights("transformer", 13, [0, 1], d_model=32, H=4, d_ff=64)
    said = grokking.transformer(w, pairs)
    for i in range(2):
        x = {name: each[i].double() for name, each in w.items()}
        ids = torch.cat([pairs, torch.full((169, 1), 13)], dim=1)
        h = x["E"][ids] + x["position"]
        q, k, v = ((h @ x[f"W_{name}"]).view(169, 3, 4, 8).transpose(1, 2) for name in "qkv")
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(169, 3, 32)
        h = h + mixed @ x["W_o"]
        h = h + F.relu(h @ x["W_1"]) @ x["W_2"]
        assert torch.allclose((h @ x["W_head"])[:, -1].float(), said[i], atol=1e-5)


def test_each_model_is_trained_as_if_it_were_alone():
    decays = [0.0, 2.0]
    train = torch.stack([grokking.mod_add_data(5, 0.6, seed)[0] for seed in (0, 1)])
    w = grokking.first_weights("mlp", 5, [0, 1], d_model=4, d_ff=6)
    steps, kept = grokking.decayed_adam(w, grokking.mlp, train, decays, [0, 3, 10], rate=0.02)
    assert steps == [0, 3, 10] and all(torch.equal(kept[0][name], w[name]) for name in w)
    for i, decay in enumerate(decays):
        own = {name: x[i : i + 1].clone().requires_grad_() for name, x in w.items()}
        optimiser = torch.optim.AdamW(own.values(), lr=0.02, betas=(0.9, 0.98), weight_decay=decay)
        for _ in range(10):
            optimiser.zero_grad()
            said = grokking.mlp(own, train[i : i + 1])[0]
            F.cross_entropy(said.double(), train[i].sum(dim=1) % 5).backward()
            optimiser.step()
        assert all(torch.allclose(kept[-1][name][i], own[name][0], atol=1e-5) for name in w)
    stopped, _ = grokking.decayed_adam(w, grokking.mlp, train, decays, [0, 3, 10], rate=0.02, seconds=0.0)
    assert stopped == [0]


def test_losses_do_not_end_where_float32_does():
    logits = torch.tensor([[[0.0, 30.0, 0.0]]])
    pairs = torch.tensor([[[2, 2]]])
    assert float(grokking.losses(logits, pairs)) == pytest.approx(2 * math.exp(-30), rel=1e-6)
    assert float(grokking.accuracy(logits, pairs)) == 1


def test_looks_grow_by_a_ratio():
    looks = grokking.log_steps(1000, 1.1)
    assert looks[:5] == [0, 1, 2, 3, 4] and looks[-1] == 1000
    assert all(b - a == 1 or b / a <= 1.1 for a, b in pairwise(looks[1:]))


def test_phase_times_and_censoring():
    steps, train, test = [0, 5, 9, 12], [0.1, 0.99, 0.9, 1.0], [0.0, 0.0, 0.2, 0.94]
    assert grokking.phase_times(steps, train, test) == (5, None)
    assert grokking.phase_times(steps, train, test, grokked=0.2) == (5, 9)


def test_frequencies_are_kept_along_any_axis():
    table = torch.randn(3, 9, 4, generator=torch.Generator().manual_seed(0))
    kept = grokking.keep_frequencies(table, [1, 4])
    assert kept.dtype == table.dtype and torch.allclose(kept, grokking.keep_frequencies(kept, [1, 4]), atol=1e-6)
    assert torch.allclose(grokking.keep_frequencies(table, range(1, 5)), table, atol=1e-6)
    assert torch.allclose(grokking.keep_frequencies(table.mT, [1, 4], dim=-1), kept.mT, atol=1e-6)
    assert torch.allclose(grokking.keep_frequencies(table, []), table.mean(dim=1, keepdim=True).expand(3, 9, 4), atol=1e-6)
    with pytest.raises(ValueError, match="odd"):
        grokking.fourier_shares(torch.ones(4, 2))


def test_sums_without_pairs_get_zeros():
    logits = torch.ones(5, 5, 5)
    table = grokking.by_sum(logits, torch.tensor([[1, 2], [2, 1]]))
    assert table[3].tolist() == [1] * 5 and table.sum() == 5


def test_what_intervals_and_curves_refuse():
    for k, n in ((-1, 3), (4, 3), (0, 0)):
        with pytest.raises(ValueError, match="k is one of"):
            grokking.exact_interval(k, n)
    with pytest.raises(ValueError, match="argument 2"):
        grokking.kaplan_meier([1, 2], [True])
    assert grokking.kaplan_meier([3, 4], [False, False]) == []


def test_records_fit_together():
    found, curves = data.record("grokking")["results"], grokking.curves()
    assert curves["circles"].shape == (60, len(found["frames"]), 113, 2)
    for i, run in enumerate(found["runs"]):
        assert abs(float(curves["test accuracy"][i, -1]) - run["last"]["test accuracy"]) < 1e-3
        reached = [step for step, x in zip(found["steps"], curves["test accuracy"][i].tolist(), strict=True) if x >= 0.95]
        assert (reached[0] if reached else None) == run["t_test"]


def test_the_widget_says_what_its_run_does():
    widget = Grokking()
    assert set(widget.runs) == {f"{decay}/{seed}" for decay in DECAYS for seed in SEEDS}
    assert "step 2,944" in widget.describe() and "groks at step 5,821" in widget.describe()
    assert "has not grokked by step 27,697" in Grokking(decay="0", seed=1, frame=15).describe()
    assert len(json.dumps(widget.state())) < 150_000
    for name, value in {"decay": "3", "seed": 7, "frame": 16}.items():
        with pytest.raises(Exception, match=name):
            Grokking(**{name: value})


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the widget's module")
def test_the_widgets_numbers_are_the_records(tmp_path):
    widget = Grokking(decay="0.3", seed=2, frame=14)
    own = (widgets.HERE / "grokking.js").read_text().replace("export default", "const unused =")
    script = (widgets.HERE / "library.js").read_text() + own
    state = json.dumps(widget.state())
    script += f"\nconst state = {state}; console.log(JSON.stringify([said(state), pointsOf(state), orderOf(3).slice(0, 3)]));"
    path = tmp_path / "script.mjs"
    path.write_text(script)
    said, points, order = json.loads(subprocess.run(["node", path], capture_output=True, text=True, check=True).stdout)
    runs = data.record("grokking")["results"]["runs"]
    at = next(i for i, run in enumerate(runs) if run["decay"] == 0.3 and run["seed"] == 2)
    assert said == widget.describe() and points == grokking.curves()["circles"][at, 14].int().tolist()
    assert order == [0, 38, 76]  # 3 · 38 = 1 and 3 · 76 = 2 modulo 113
