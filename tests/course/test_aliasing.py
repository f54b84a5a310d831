"""The reference code of ch14 against independent oracles, the widget's JavaScript and the experiment's record."""

import importlib.util
import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
import traitlets

from course import aliasing as al
from course import data, widgets
from course.position_rope import rope, rope_frequencies
from course.widgets.aliasing import BASES, FAR, ClockWall

ROOT = Path(__file__).resolve().parents[2]


def test_a_code_distance_is_a_chord():
    quarter = torch.tensor([math.pi / 2], dtype=torch.float64)
    assert al.code_distance(torch.tensor([0, 1, 2, 4]), quarter).tolist() == pytest.approx([0, math.sqrt(2), 2, 0], abs=1e-12)
    both = torch.tensor([math.pi, 0.0], dtype=torch.float64)
    assert float(al.code_distance(torch.tensor(1), both)) == pytest.approx(math.sqrt(2))
    assert float(al.code_distance(torch.tensor(1), torch.tensor([1e-12]))) == pytest.approx(1e-12)
    assert al.code_distance(torch.ones(2, 3), both).shape == (2, 3)


def test_the_nearest_gap_by_search():
    omega = rope_frequencies(64)
    for N in (1, 50, 500):
        for n in (1, 2, 5, 32):
            apart = [math.sqrt(sum((2 - 2 * math.cos(g * w)) for w in omega[:n].tolist()) / n) for g in range(1, N + 1)]
            gap, nearest = al.nearest_gap(N, omega[:n])
            assert gap == 1 + int(np.argmin(apart)) and nearest == pytest.approx(min(apart), abs=1e-7)
    with pytest.raises(ValueError, match="two distances"):
        al.nearest_gap(0, omega)


def test_active_pairs_by_hand():
    r = torch.tensor([1.0, 2 * math.pi * 10, 2 * math.pi * 99.9, 1e6])
    assert al.n_active(r, 4, 100.0).tolist() == pytest.approx([2, 1, 0.0004, 0], abs=1e-3)
    assert al.count_active(r - 0.01, 4, 100.0).tolist() == [2, 1, 0, 0]
    assert (al.t_cross(100.0), al.t_max(100.0)) == pytest.approx((62.83, 628.3), abs=0.02)
    with pytest.raises(ValueError, match="above 1"):
        al.n_active(r, 4, 1.0)


def test_a_base_for_a_length():
    assert al.base_for(8192, 1, 64) == pytest.approx(1643.2, abs=0.05)
    assert al.base_for(6, 4, 8) == al.base_for(1_000, 0, 8) == 1.0
    with pytest.raises(ValueError, match="pair 0"):
        al.base_for(7, 4, 8)
    with pytest.raises(ValueError, match="has 4 pairs"):
        al.base_for(100, 5, 8)


def test_scores_are_those_of_turned_queries_and_keys():
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 12, generator=generator, dtype=torch.float64)
    scores = al.distance_scores(query, key, torch.arange(30), 500.0)
    for r in (0, 1, 29):
        turned = rope(torch.stack([query, key]), torch.tensor([77, 77 - r]), 500.0)
        assert float(turned[0] @ turned[1]) == pytest.approx(float(scores[r]), abs=1e-12)
    peaked = al.key_peaking_at(query, 13, 500.0)
    assert int(al.distance_scores(query, peaked, torch.arange(30), 500.0).argmax()) == 13
    assert bool((scores.abs() <= al.abel_bound(query, key, torch.arange(30), 500.0)).all())


def test_the_tasks():
    ids, answers = al.copy_batch(3, torch.Generator().manual_seed(0), T=20, back=4)
    assert ids.shape == answers.shape == (3, 20) and bool((answers[:, :4] == -100).all())
    assert torch.equal(answers[:, 4:], ids[:, :16])
    ids, answers = al.lookup_batch(5, torch.Generator().manual_seed(0))
    assert ids.shape == (5, 64) and bool((answers[:, :32] == -100).all())
    for row, told in zip(ids.tolist(), answers.tolist(), strict=True):
        facts = dict(divmod(fact, al.VALUES) for fact in row[:32])
        assert len(facts) == 32 and told[32:] == [facts[key - 32 * al.VALUES] for key in row[32:]]


def test_a_small_model_learns_what_its_base_allows():
    model = al.copy_model(1e4, steps=120)
    ids, answers = al.copy_batch(32, torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert float(al.task_loss(model, ids, answers)) < 0.3
    twin = [al.trained("lookup", theta, 3, steps=1).state_dict() for theta in (10.0, 1e4)]
    other = al.trained("lookup", 10.0, 4, steps=1).state_dict()
    assert all(float((a - b).abs().max()) < 0.02 for a, b in zip(twin[0].values(), twin[1].values(), strict=True))
    assert any(float((a - b).abs().max()) > 0.02 for a, b in zip(twin[0].values(), other.values(), strict=True))


# ---------------------------------------------------------------- the widget

STATES = [(d, h, b) for d in (0, 1, 100, 1_234, FAR) for h in (1, 2, 4, 32) for b in BASES]


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "aliasing.js").read_text().split("export default")[0]
    library = (widgets.HERE / "library.js").read_text()
    states = [{"distance": d, "hands": h, "theta": b} for d, h, b in STATES]
    script = f"{library}\n{{{source}\nconsole.log(JSON.stringify({json.dumps(states)}.map((s) => [lookAlike(s), saidOf(s)])));}}"
    told = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True).stdout
    for state, (found, said) in zip(states, json.loads(told), strict=True):
        widget = ClockWall(**state)
        assert found == pytest.approx(widget.look_alike(), abs=1e-9)
        assert said == widget.describe()


def test_the_nearest_look_alike():
    assert ClockWall(distance=100, hands=1).look_alike()[0] == 810
    assert ClockWall(distance=1_900, hands=1).look_alike()[0] == 1_190
    assert ClockWall(distance=FAR).look_alike()[0] == FAR - 1
    for wrong in ({"distance": FAR + 1}, {"hands": 0}, {"theta": 5.0}):
        with pytest.raises(traitlets.TraitError):
            ClockWall(**wrong)


# ---------------------------------------------------------------- the experiment


def experiment():
    spec = importlib.util.spec_from_file_location("aliasing_experiment", ROOT / "experiments/aliasing.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_shares_of_right_answers():
    class Knows(torch.nn.Module):
        """Right at distance 10 up to place 53, and never after it."""

        def forward(self, ids):
            answers = torch.cat([torch.zeros_like(ids[:, :10]), ids[:, :-10]], dim=1)
            answers[:, 54:] = (answers[:, 54:] + 1) % 8
            return torch.nn.functional.one_hot(answers, 8).float()

    found = experiment().shares(Knows(), "copy", 9, torch.device("cpu"))
    assert found == {"all": round(44 / 54, 4), "near": 1.0, "far": 0.0}


def test_the_record_says_what_its_runs_say():
    record = data.record("aliasing")
    runs = record["results"]["runs"]
    for task, measure in (("lookup", "all"), ("copy", "far")):
        for base, (mean, half) in record["results"]["differences"][task].items():
            paired = [a[measure] - b[measure] for a, b in zip(runs[task][base], runs[task]["10000"], strict=True)]
            assert len(paired) == len(record["seeds"]) and data.interval(paired, 4) == (mean, half)
