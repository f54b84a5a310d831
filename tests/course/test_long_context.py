"""The reference code of ch19 against independent oracles."""

import json
import math
import shutil
import subprocess

import pytest
import torch
import traitlets

from course import data, long_context, looks, widgets
from course.long_context import (
    effective_length,
    exact_answers,
    extended,
    frequencies,
    hidden_keys,
    passkey,
    position_losses,
    turn,
)
from course.model import GPT, Config
from course.position_rope import rope, rope_frequencies
from course.widgets.long_context import LongContext


def small(**parts):
    torch.manual_seed(0)
    return GPT(Config(V=30, d_model=32, n_layers=2, n_heads=4, **parts)).double().eval()


IDS = torch.randint(30, (2, 40), generator=torch.Generator().manual_seed(1))

# ---------------------------------------------------------------- frequencies in a model


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_turn_is_rope_with_its_own_frequencies(dtype):
    x = torch.randn(2, 7, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    turned = turn(x, torch.arange(7), rope_frequencies(16))
    assert turned.dtype == dtype and torch.allclose(
        turned, rope(x, torch.arange(7)), atol=2e-2 if dtype == torch.bfloat16 else 1e-6
    )


@pytest.mark.parametrize("parts", [{}, {"n_kv_heads": 2}, {"qk_norm": True}, {"tied": True}])
@torch.no_grad()
def test_an_unchanged_model_computes_what_the_model_computes(parts):
    model = small(**parts)
    twin = extended(model)
    assert torch.allclose(twin(IDS), model(IDS), atol=1e-12)
    assert torch.allclose(twin.head(long_context.hidden(twin, IDS)), model(IDS), atol=1e-12)
    cache = twin.cache()
    steps = torch.cat([twin(IDS[:, :25], cache), twin(IDS[:, 25:], cache)], dim=1)
    assert torch.allclose(steps, model(IDS), atol=1e-12)


@torch.no_grad()
def test_an_extended_model_is_one_with_another_base_and_shares_its_weights():
    model = small()
    twin, other = extended(model, "NTK", 4), small(theta=long_context.ntk_base(10_000.0, 4, 8))
    assert torch.allclose(twin(IDS), other(IDS), atol=1e-10) and not torch.allclose(twin(IDS), model(IDS), rtol=0, atol=1e-9)
    model.embedding.weight.zero_()
    assert twin.embedding.weight.abs().max() == 0
    sharper = extended(small(), "YaRN", 4, 20)
    assert sharper.blocks[0].attention.factor == pytest.approx((1 + 0.1 * math.log(4)) ** 2)


def test_what_cannot_be_extended_is_refused():
    with pytest.raises(ValueError, match="RoPE"):
        extended(small(position="learned"))
    with pytest.raises(ValueError, match="length"):
        extended(small(), "YaRN", 4)
    with pytest.raises(ValueError, match="one of"):
        frequencies("xPos", rope_frequencies(16), 2, 10)
    with pytest.raises(ValueError, match="two pairs"):
        long_context.ntk_base(1e4, 4, 2)


# ---------------------------------------------------------------- losses and keys


@torch.no_grad()
def test_losses_by_position_are_those_of_torch():
    model = small()
    expected = torch.nn.functional.cross_entropy(model(IDS)[:, :-1].float().mT, IDS[:, 1:], reduction="none")
    for chunk in (1, 7, 100):
        assert torch.allclose(position_losses(extended(model), IDS, chunk), expected, atol=1e-6)


@torch.no_grad()
def test_an_answer_read_along_is_the_one_that_greedy_writing_gives():
    model, written = extended(small()), IDS[:, :10]
    for _ in range(4):
        written = torch.cat([written, model(written)[:, -1:].argmax(dim=-1)], dim=1)
    prompts, answers = written[:, :10], written[:, 10:]
    assert exact_answers(model, prompts, answers).all()
    for k in range(4):
        other = answers.clone()
        other[0, k] = (other[0, k] + 1) % 30
        assert exact_answers(model, prompts, other).tolist() == [False, True]


def test_a_prompt_has_its_length_and_the_needle_its_depth():
    for length in (8, 9, 20, 41):
        for depth in (0, 0.3, 1):
            prompt = passkey([*range(100, 150)], [1, 2, 3], [4, 5], length, depth)
            room = length - 5
            assert len(prompt) == length and prompt[-2:] == [4, 5] and prompt.index(1) == round(depth * room)
            assert [x for x in prompt if x >= 100] == [*range(100, 100 + room)]
    for wrong in ((4, 0.5), (100, 0.5), (20, 1.1)):
        with pytest.raises(ValueError):
            passkey([*range(100, 150)], [1, 2, 3], [4, 5], *wrong)


def test_hidden_keys_stand_twice_and_the_text_goes_on_around_them():
    text = torch.arange(40).repeat(50, 1)
    for depth in (None, 0.0, 0.5, 1.0):
        made = hidden_keys(text, torch.Generator().manual_seed(2), depth)
        assert made.shape == text.shape and (made == long_context.KEY_MARK).sum() == 100
        for row in made.tolist():
            at = row.index(long_context.KEY_MARK)
            assert row[at : at + 5] == row[-5:] and len(set(row[-5:])) == 5
            assert row[:at] + row[at + 5 : -5] == [*range(30)]
    assert {row.index(256) for row in hidden_keys(text, torch.Generator().manual_seed(3), 0.5).tolist()} == {15}


def test_an_effective_length_ends_at_the_first_gap():
    assert effective_length([1, 2, 4], [20, 20, 20], [20] * 3, 0.8) == 4
    assert effective_length([1, 2, 4], [20, 9, 20], [20] * 3, 0.8) == 1
    assert effective_length([1, 2, 4], [0, 20, 20], [20] * 3, 0.8) == 0
    for wrong in ([2, 1], [1, 1]):
        with pytest.raises(ValueError):
            effective_length(wrong, [1, 1], [2, 2], 0.5)
    for k, n in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError):
            long_context.wilson(k, n)


# ---------------------------------------------------------------- the record, the look and the widget


def test_the_record_is_whole_and_has_a_verdict_on_each_prediction():
    record = data.record("long_context")
    results = record["results"]
    assert abs(results["precision"]["float32"] - results["precision"]["read here"]) < 0.02
    assert list(long_context.verdicts(record)) == [f"P{i}" for i in range(1, 9)]
    for each in results["keys"]["found"].values():
        assert all(0 <= k <= results["keys"]["trials"] for row in each.values() for k in row)
    assert all(len(rows) == results["loss"]["windows"] for each in results["loss"]["rows"].values() for rows in each.values())


def test_predictions_about_keys_need_models_that_find_keys():
    record = json.loads(json.dumps(data.record("long_context")))
    assert [held for _, held, _ in list(long_context.verdicts(record).values())[5:]] == [None] * 3
    small = record["results"]["small"]
    for kind in ("as trained", "tuned"):
        for arm, each in small[kind].items():
            good = kind == "tuned" and arm != "more at 128"
            each["keys"] = [{"128": [64] * 5, "512": [64 if good or arm == "YaRN 4" else 0] * 5, "1024": [0] * 5}] * 8
    assert [held for _, held, _ in list(long_context.verdicts(record).values())[5:]] == [True] * 3


def test_the_look_is_registered_and_its_record_fits():
    seen = data.record("looks")["results"]["gapped"]
    assert looks.LOOKS["gapped"] is long_context.gapped
    assert len(seen["gaps"]) == len(seen["unchanged"]) == len(seen["YaRN 4"])
    assert seen["unchanged"][0] < seen["alone"] < seen["unchanged"][2]  # the text before helps, but not from unseen distances


CASES = [
    {},
    {"method": "PI 4", "column": 0, "row": 0},
    {"method": "YaRN 4", "column": 5, "row": 4},
    {"method": "NTK 8", "column": 4},
]


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    own, library = ((widgets.HERE / name).read_text() for name in ("long_context.js", "library.js"))
    made = [LongContext(**case) for case in CASES]
    script = f"{library}{own.split('export default')[0]}\nconst cases = {json.dumps([each.state() for each in made])};\n"
    script += "console.log(JSON.stringify(cases.map((state) => [effective(state), said(state)])));"
    found = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
    for each, (effective, told) in zip(made, found, strict=True):
        assert effective == each.effective() and told == each.describe()


@pytest.mark.parametrize("case", [{"method": "xPos"}, {"column": 99}, {"row": -1}])
def test_the_widget_refuses_what_it_cannot_show(case):
    with pytest.raises(traitlets.TraitError):
        LongContext(**case)
