"""What all widgets share: their modules load beside the library, and the library's arithmetic and state are right."""

import importlib
import json
import re
import shutil
import subprocess

import pytest

from course import plots, widgets

STEMS = sorted(path.stem for path in widgets.HERE.glob("*.js") if path.stem != "library")
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node runs the widgets' modules")


def answer(tmp_path, script: str):
    """What a script after the library prints, as JSON."""
    path = tmp_path / "script.mjs"
    path.write_text((widgets.HERE / "library.js").read_text() + script)
    return json.loads(subprocess.run(["node", path], capture_output=True, text=True, check=True).stdout)


@needs_node
@pytest.mark.parametrize("stem", STEMS)
def test_a_module_loads_and_renders_by_default(stem, tmp_path):
    (tmp_path / "widget.mjs").write_text(widgets.esm(stem))
    script = "const { default: widget } = await import('./widget.mjs'); console.log(JSON.stringify(typeof widget.render));"
    assert answer(tmp_path, script) == "function"


@pytest.mark.parametrize("stem", STEMS)
def test_a_module_is_short(stem):
    assert len((widgets.HERE / f"{stem}.js").read_text().splitlines()) < 200


@needs_node
def test_a_module_may_use_the_librarys_names_for_its_own(tmp_path, monkeypatch):
    shutil.copy(widgets.HERE / "library.js", tmp_path)
    (tmp_path / "own.js").write_text(
        "const softmax = () => 7;\nfunction chart() { return softmax(); }\nexport default { render: chart };\n"
    )
    monkeypatch.setattr(widgets, "HERE", tmp_path)
    (tmp_path / "widget.mjs").write_text(widgets.esm("own"))
    assert answer(tmp_path, "const it = await import('./widget.mjs'); console.log(it.default.render());") == 7


@needs_node
def test_numbers_and_ticks(tmp_path):
    shown = answer(tmp_path, "console.log(JSON.stringify([-0.001, -1.5, 2, -0.5].map((x) => number(x))));")
    assert shown == ["0.00", "−1.50", "2.00", "−0.50"]
    found = answer(tmp_path, "console.log(JSON.stringify([ticks(0, 5), ticks(-1, 1, 4), ticks(0, 0.3), ticks(3, 17)]));")
    assert found == [[0, 1, 2, 3, 4, 5], [-1, -0.5, 0, 0.5, 1], [0, 0.1, 0.2, 0.3], [5, 10, 15]]


@needs_node
def test_one_change_of_many_values_draws_once(tmp_path):
    script = """
    const calls = {}, state = { a: 1, b: 2 }, drawn = [];
    let saved = 0;
    const model = {
      get: (name) => state[name],
      set(name, value) { state[name] = value; calls[`change:${name}`](); },
      on: (event, call) => (calls[event] = call),
      save_changes: () => saved++,
    };
    const el = { classList: new Set(), setAttribute() {} };
    const put = connect(model, el, ["a", "b"], (now) => drawn.push({ ...now }));
    put({ a: 3, b: 4 });
    model.set("b", 5);
    console.log(JSON.stringify([drawn, saved]));
    """
    assert answer(tmp_path, script) == [[{"a": 3, "b": 4}, {"a": 3, "b": 5}], 1]


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", plots.COLOURS)
def test_colours_are_seen_on_light_and_dark_pages(name):
    assert contrast(plots.COLOURS[name], "#FFFFFF") >= 3
    assert contrast(plots.COLOURS[name], "#14171C") >= 3
    assert contrast(plots.DARK[name], "#14171C") >= 4.5


@needs_node
def test_powers_of_ten_are_written_by_both_sides_alike(tmp_path):
    given = [1e-30, 0.0099, 0.01, 0.013, 0.5, 1, 9.96, 42, 999.9, 9999, 10_000, 6.3e23]
    shown = answer(tmp_path, f"console.log(JSON.stringify({given}.map(scientific)));")
    assert shown == [widgets.scientific(x) for x in given]
    assert shown[:4] == ["1.0\u00a0×\u00a010⁻³⁰", "9.9\u00a0×\u00a010⁻³", "0.010", "0.013"] and shown[5:8] == ["1.0", "10", "42"]
    assert answer(tmp_path, "console.log(JSON.stringify([power(-3), power(9, 2)]));") == ["10⁻³", "2⁹"]


ROOT = widgets.HERE.parents[1]
ROLES = ("query", "key", "value", "residual", "weights")
# What of a transformer each widget shows, and so may colour; all else is of the second palette.
SHOWN = {
    "attention": {"query", "key", "value", "weights"},
    "attention_maps": {"weights"},
    "block": set(ROLES),
    "decay_law": {"weights"},
    "multi_head": {"weights"},
    "overview": {"weights"},
    "position_rope": {"query", "key"},
    "sinks": {"query", "weights"},
    "taxonomy": {"query", "key"},
    "thermo_dictionary": {"weights"},
}


@pytest.mark.parametrize("stem", STEMS)
def test_the_five_colours_of_a_transformer_are_used_for_nothing_else(stem):
    source = (widgets.HERE / f"{stem}.js").read_text()
    module = importlib.import_module(f"course.widgets.{stem}")
    names = {
        name
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, widgets.Widget)
        for name in each.class_trait_names()
    }
    used = set(re.findall(rf'var\(--({"|".join(ROLES)})\)|colour: "({"|".join(ROLES)})"', source))
    used = {name for pair in used for name in pair if name} | ({role for role in ROLES if f'"{role}"' in source} - names)
    assert used <= SHOWN.get(stem, set()), f"{stem} colours what is none of {sorted(used - SHOWN.get(stem, set()))}"


def test_the_library_gives_no_colour_of_the_five_to_controls():
    rules = (widgets.HERE / "library.css").read_text().split("@media screen {")[1].partition("}\n}")[2]
    assert re.findall(rf"var\(--({'|'.join(ROLES)})\)", rules) == []


# The same for the figures of the notebooks, where a colour is chosen by name.
DRAWN = {
    "ch04_attention": {"query", "key", "value", "weights"},
    "ch05_multi_head": {"weights"},
    "ch08_position_rope": {"query"},  # a query that turns
    "ch09_block": {"residual"},
    "ch13_attention_maps": {"query", "weights"},
    "ch15_decay_law": {"weights"},
    "ch17_sinks": {"weights"},
    "ch22_thermo_dictionary": {"weights"},
    "f03_softmax_and_cross_entropy": {"weights"},  # a softmax, which they become
    "f04_mlp_and_backprop": {"query"},  # to be mended when its scores are recorded anew
    "f06_high_dimensional_geometry": {"query"},
}


@pytest.mark.parametrize("path", sorted(ROOT.glob("source/*/*.ipynb")), ids=lambda path: path.stem)
def test_the_figures_of_a_chapter_keep_to_the_five_colours_too(path):
    code = "".join(
        "".join(cell["source"]) + "\n" for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"
    )
    named = {role for chosen in re.findall(r"COLOURS\[([^\]]*)", code) for role in ROLES if f'"{role}"' in chosen}
    assert named <= DRAWN.get(path.stem, set())
