"""The reference code of ch13 against independent oracles."""

import json
import shutil
import subprocess

import pytest
import torch
import traitlets

from course import attention_maps, data, decay_law, looks, pretrained, widgets
from course.model import Config
from course.widgets.attention_maps import HeadBrowser
from tests.course.test_model import ids_of, llama_of, model_of

SMALL = Config(V=61, d_model=48, n_layers=3, n_heads=6, n_kv_heads=2, d_ff=40, theta=500.0)


def test_the_weights_that_are_shown_are_hugging_faces():
    model, ids = model_of(SMALL), ids_of(2, 19)
    shown = []
    logits = attention_maps.look(model, ids, lambda layer, weights, stream: shown.append((layer, weights, stream)))
    with torch.no_grad():
        theirs = llama_of(model)(ids, output_attentions=True, output_hidden_states=True)
    assert [layer for layer, _, _ in shown] == [0, 1, 2] and torch.equal(logits, model(ids))
    for (_, weights, stream), expected, hidden in zip(shown, theirs.attentions, theirs.hidden_states, strict=False):
        assert torch.allclose(weights.float(), expected.float(), atol=1e-5)
        assert torch.allclose(stream.float(), hidden.float(), atol=1e-4)
    assert not any(block._forward_pre_hooks or block.attention._forward_pre_hooks for block in model.blocks)


def test_a_profile_is_the_mean_weight_at_each_distance():
    weights = torch.rand(2, 30, 30, generator=torch.Generator().manual_seed(0))
    found = attention_maps.distance_profile(weights, first=3, start=0.5)
    expected = [[sum(float(w[i, i - r]) for i in range(15, 30)) / 15 for r in range(13)] for w in weights]
    assert found.shape == (2, 13) and torch.allclose(found, torch.tensor(expected))


def test_even_attention_has_no_slope():
    """Over all queries its mean weight falls with distance, since far keys are seen by late queries only; not over these."""
    T = 200
    even = torch.tril(torch.ones(T, T)) / torch.arange(1, T + 1)[:, None]
    found = attention_maps.distance_profile(even)
    assert torch.allclose(found, found[:1].expand_as(found), rtol=1e-6)
    assert abs(float(decay_law.decay_fit(found)["power"])) < 1e-6


def test_positions_and_distances_are_means_over_those_who_see():
    weights = torch.rand(2, 9, 9, generator=torch.Generator().manual_seed(0)).tril()
    by_position, by_distance = attention_maps.mean_by_position(weights), attention_maps.mean_by_distance(weights)
    for w, position, distance in zip(weights, by_position, by_distance, strict=True):
        for k in range(9):
            assert abs(float(position[k]) - sum(float(w[i, k]) for i in range(k, 9)) / (9 - k)) < 1e-6
            assert abs(float(distance[k]) - sum(float(w[i, i - k]) for i in range(k, 9)) / (9 - k)) < 1e-6


def test_a_sink_is_a_column_and_needs_a_query():
    weights = torch.tensor([[1, 0, 0, 0], [0.7, 0.3, 0, 0], [0.5, 0.1, 0.4, 0], [0.4, 0.1, 0.3, 0.2]])
    assert abs(float(attention_maps.sink_mass(weights)) - 1.6 / 3) < 1e-6
    assert abs(float(attention_maps.sink_mass(weights, 3)) - 0.4) < 1e-6
    for start in (4, 9, -1):
        with pytest.raises(ValueError, match="from"):
            attention_maps.sink_mass(weights, start)
    with pytest.raises(ValueError, match="too few"):
        attention_maps.distance_profile(weights)


def test_the_maps_that_ship_are_causal_and_those_of_the_model():
    kept = attention_maps.kept_maps()
    assert kept.weights.shape == (30, 9, 22, 22) and "".join(kept.tokens).startswith("When Anna gave the book to Peter, she")
    assert not kept.weights.triu(1).any() and float((kept.weights.sum(dim=-1) - 1).abs().max()) < 22 / 510
    if pretrained.is_here(looks.MODEL):
        model, tokenizer = pretrained.load(looks.MODEL), pretrained.tokenizer(looks.MODEL)
        seen = attention_maps.all_maps(model, torch.tensor([tokenizer.encode("".join(kept.tokens))]))[:, 0]
        assert float((seen - kept.weights).abs().max()) < 0.01


# ---------------------------------------------------------------- scores and their null


def test_other_targets_are_earlier_and_near_if_asked():
    generator, targets = torch.Generator().manual_seed(0), attention_maps.previous_targets(12)
    for near in (None, 3):
        drawn = attention_maps.other_targets(targets, 400, generator, near)
        assert drawn.shape == (400, 12) and bool((drawn[:, 0] == -1).all())
        for i in range(1, 12):
            least = 0 if near is None else max(i - near, 0)
            assert sorted(set(drawn[:, i].tolist())) == list(range(least, i))
            shares = torch.bincount(drawn[:, i], minlength=i)[least:] / 400
            assert float((shares - 1 / (i - least)).abs().max()) < 0.12
    weights = torch.rand(4, 12, 12, generator=generator).tril()
    many = attention_maps.head_score(weights, drawn)
    assert many.shape == (400, 4) and torch.equal(many[7], attention_maps.head_score(weights, drawn[7]))


def test_the_best_of_each_draw_is_what_counts():
    p = attention_maps.p_of_maximum(torch.tensor([0.5, 0.9]), torch.tensor([[0.1, 0.3], [0.6, 0.1], [0.2, 0.5]]))
    assert p.tolist() == [0.75, 0.25]


# ---------------------------------------------------------------- removed


def test_swaps_move_the_prediction_of_a_model_by_hand():
    """Row j of the swapped texts has another token at j and no other change."""

    def model(ids):  # predicts from the first token and the last
        logits = torch.zeros(*ids.shape, 3)
        logits[..., 0] = ids[:, :1] + 2.0 * ids[:, -1:]
        return logits

    ids, pool = torch.tensor([1, 1, 0, 2]), torch.tensor([0])
    found = attention_maps.swap_effects(model, ids, pool, 2, torch.Generator().manual_seed(0))
    told, first, last = (torch.tensor([float(x), 0, 0]).log_softmax(dim=-1) for x in (5, 4, 1))
    expected = [float((told.exp() * (told - each)).sum()) for each in (first, told, told, last)]
    assert torch.allclose(found, torch.tensor(expected), atol=1e-6) and ids.tolist() == [1, 1, 0, 2]


def test_a_head_that_says_its_average_is_a_head_whose_output_is_constant():
    model, ids = model_of(SMALL), ids_of(3, 15)
    averages = attention_maps.head_averages(model, ids)
    assert averages.shape == (3, 6, 8)
    intact = attention_maps.loss_without(model, ids, [], averages, first=4)
    with torch.no_grad():
        losses = torch.nn.functional.cross_entropy(
            model(ids[:, :-1])[:, 4:].flatten(0, 1), ids[:, 5:].flatten(), reduction="none"
        )
    assert torch.allclose(intact, losses.float().view(3, -1).mean(dim=1), atol=1e-5)
    removed = attention_maps.loss_without(model, ids, [(1, 2), (1, 4)], averages, first=4)
    attention = model.blocks[1].attention
    mine = torch.cat([torch.arange(8 * h, 8 * h + 8) for h in (2, 4)])
    with torch.no_grad():  # the same by hand: no rows for these heads, and their average as a bias
        said = averages[1].flatten()[mine] @ attention.out.weight[:, mine].T
        attention.out.weight[:, mine] = 0.0
        attention.out.bias = torch.nn.Parameter(said)
    assert torch.allclose(removed, attention_maps.loss_without(model, ids, [], averages, first=4), atol=1e-5)
    assert float((removed - intact).abs().max()) > 1e-4 and not attention.out._forward_pre_hooks


# ---------------------------------------------------------------- the record and the widget

RECORD = data.record("attention_maps")["results"]


def test_what_was_measured():
    """The numbers that the chapter speaks of."""
    assert RECORD["sentence"]["tokens"] == 22 and len(RECORD["tokens"]) == 10
    groups = {row["group"]: row for row in RECORD["heads"][1:]}
    assert min(groups["induction"]["scores"]["first"]) > 0.79 and max(groups["first"]["scores"]["induction"]) > 0.5
    mini = RECORD["encoder"]
    first, last = (torch.tensor(mini[f"{name} by layer"]).mean(dim=0) for name in ("first", "last"))
    assert float(first.max()) > 40 / mini["tokens"] and float(last.max()) < 3 / mini["tokens"]


CASES = [
    {},
    {"layer": 9, "head": 3, "by": "first"},
    {"layer": 0, "head": 0, "word": 0, "by": "itself"},
    {"layer": 29, "head": 8, "word": 21, "by": "same"},
    {"layer": 16, "head": 0, "word": 13},
]


def test_the_widget_computes_what_the_reference_computes():
    node = shutil.which("node")
    assert node, "node is needed to test the widget's arithmetic"
    source = (widgets.HERE / "attention_maps.js").read_text().split("export default")[0]
    states = [HeadBrowser(**case).state() for case in CASES]
    script = f"{(widgets.HERE / 'library.js').read_text()}{source}\nconst cases = {json.dumps(states)};\n"
    script += "console.log(JSON.stringify(cases.map((c) => [scores(c), said(c), row(c, 9 * 9 + 2, 8)])));"
    found = json.loads(subprocess.run([node, "-"], input=script, capture_output=True, text=True, check=True).stdout)
    for case, (scores, text, row) in zip(CASES, found, strict=True):
        browser = HeadBrowser(**case)
        assert torch.allclose(browser.scores(), torch.tensor(scores, dtype=torch.float64), atol=1e-12)
        assert text == browser.describe()
        assert row == (255 * attention_maps.kept_maps().weights[9, 2, 8, :9]).round().int().tolist()


def test_what_the_widget_carries_is_small():
    assert len(json.dumps(HeadBrowser().state())) < 250_000


@pytest.mark.parametrize("case", [{"layer": 30}, {"head": -1}, {"word": 22}, {"by": "nothing"}])
def test_the_widget_refuses_what_it_cannot_show(case):
    with pytest.raises(traitlets.TraitError):
        HeadBrowser(**case)
