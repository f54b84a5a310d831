"""The map of the whole transformer: its numbers are the models' own, and its parts can be touched."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
import yaml

from course import cookbook, pretrained, transformer_map
from course.attention_maps import all_maps
from course.checkpoint import load_gpt
from course.model import GPT, Config
from course.transformer_map import (
    HEAD,
    NARROW,
    PARTS,
    WIDE,
    TransformerMap,
    config_of,
    configs,
    drawing,
    parameters,
    seen,
    shapes,
)

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = yaml.safe_load((ROOT / "book" / "reference" / "chapters.yml").read_text())
LAYOUTS = {"wide": WIDE, "narrow": NARROW}
PIXELS = {"wide": 820 / 960, "narrow": 320 / 360}  # of a unit, where the page shows the layout at its smallest
each_layout = pytest.mark.parametrize("name", LAYOUTS)


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize("name", configs())
def test_parameters_are_those_of_the_recipes(name):
    counted, told = parameters(configs()[name]), cookbook.parameters(configs()[name].shape())
    assert counted["model"] == told["all"] == sum(counted.values()) - counted["model"] - counted["block"]
    assert counted["embedding"] == told["embedding"] and counted["logits"] == told["output head"]
    assert (
        counted["ffn"] == told["feed-forward"] and counted["norm"] == told["norms"] and counted["position"] == told["positions"]
    )
    assert counted["query"] + counted["key"] + counted["value"] + counted["output"] == told["attention"]


def test_the_named_models_are_real():
    assert f"{parameters(configs()['SmolLM2 135M'])['model']:,} parameters" in pretrained.CARDS["smollm2-135m"].what
    assert next(iter(configs().values())) == load_gpt()[0].config
    for name in ("gpt-2", "llama-3-8b", "mistral-7b"):
        shape = cookbook.PRESETS[name]
        assert cookbook.parameters(config_of(shape).shape()) == cookbook.parameters(shape)


@pytest.mark.parametrize(
    "given", [{}, {"n_kv_heads": 2, "head_width": 6}, {"position": "learned", "ffn": "gelu", "norm": "layer"}]
)
def test_shapes_are_what_a_model_gives(given):
    config = Config(V=11, d_model=16, n_layers=1, n_heads=4, **given)
    told, ids = shapes(config), torch.zeros(2, 5, dtype=torch.int64)
    model = GPT(config)
    attention, x = model.blocks[0].attention, model.embedding(ids)
    query, key, value = attention.project(x, torch.arange(5))
    found = {"embedding": x, "query": query, "key": key, "value": value, "weights": all_maps(model, ids)[0], "logits": model(ids)}
    found |= {"ffn": model.blocks[0].ffn(x), "output": attention(x, torch.arange(5)), "tokens": ids}
    for id, tensor in found.items():
        assert told[id] == str(tuple(tensor.shape)).replace("(2", "(B").replace("5", "T"), id
    assert set(told) == set(PARTS)


# ---------------------------------------------------------------- what is drawn


def test_what_is_drawn_is_what_the_model_does():
    model, _ = load_gpt()
    shown, (layer, head) = seen(), HEAD
    ids = torch.tensor([shown.ids])
    with torch.no_grad():
        weights, probabilities = all_maps(model, ids)[layer, 0, head], model(ids)[0, -1].softmax(dim=-1)
    assert torch.allclose(torch.tensor(shown.squares["weights"]), weights, atol=1e-6)
    assert [p for _, p in shown.next] == pytest.approx(probabilities.topk(4).values.tolist(), abs=1e-6)
    assert shown.tokens[weights[-1].argmax()] == "be"  # as book/reference/map.yml says of this head
    assert shown.tokens == ["start", "To", "be", ",", "or", "not", "to"] and shown.next[0][0] == "be"
    numbers = [x for table in (*shown.rows.values(), *shown.squares.values(), [shown.logits]) for row in table for x in row]
    assert min(numbers) >= 0 and max(numbers) <= 1 + 1e-6
    with pytest.raises(ValueError, match="at least one"):
        seen(width=0)


@each_layout
def test_each_part_stands_where_a_finger_finds_it(name):
    layout = LAYOUTS[name]
    assert set(layout.places) == set(PARTS)
    places = [(id, *place) for id, found in layout.places.items() for place in found]
    for id, x, y, w, h in places:
        assert x >= 0 and y >= 0 and x + w <= layout.size[0] and y + h <= layout.size[1], id
        assert (min(w, h) + 4) * PIXELS[name] >= 24, f"{id} is smaller than 24 pixels"
    for i, (id, x, y, w, h) in enumerate(places):
        for other, x2, y2, w2, h2 in places[:i]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y, f"{id} lies on {other}"


def test_every_chapter_has_a_part():
    stems = {stem for part in PARTS.values() for stem in (part.chapter, *part.more)}
    assert stems == set(CHAPTERS)
    assert all(part.chapter not in part.more for part in PARTS.values())


@each_layout
def test_the_drawing_is_xml_whose_classes_have_rules(name):
    svg = drawing(LAYOUTS[name], lambda part, inside: f'<g id="{part.id}">{inside}</g>')
    root = ElementTree.fromstring(svg)
    assert list(dict.fromkeys(node.get("id") for node in root if node.get("id"))) == list(PARTS)
    used = {word for node in root.iter() for word in node.get("class", "").split()} - {"m-map"}
    assert all(f".{word}" in transformer_map.STYLE for word in used)
    assert "<style>" not in drawing(LAYOUTS[name], style="")
    assert len(svg) < 25_000


def test_a_notebook_shows_it():
    shown = TransformerMap()
    assert shown._repr_svg_() == drawing() and "15% for “be”" in repr(shown)
