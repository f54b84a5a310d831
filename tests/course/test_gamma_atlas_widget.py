"""The atlas's figure to play with: both sides brush the same models and say the same of them."""

import json
import shutil
import subprocess

import pytest
import traitlets

from course import widgets
from course.gamma_atlas import BASE
from course.widgets.gamma_atlas import AXES, Atlas

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node runs the widget's module")
ROWS = [
    BASE | {"theta": theta, "text": text, "seed": seed, "gamma": g, "bits": 2 + g, "profile": [1.0]}
    for theta, g in ((1e2, 0.5), (1e4, 0.9))
    for text, seed in (("austen", 0), ("shakespeare", 1))
]


def test_a_model_brings_the_columns_of_the_axes_only():
    row = Atlas(models=ROWS).models[0]
    assert "profile" not in row and {"gamma", "theta", "rate", "bits"} <= set(row) and set(row) <= {*AXES, *BASE}


def test_the_brush_takes_what_lies_in_it():
    atlas = Atlas(models=ROWS)
    assert len(atlas.brushed()) == 4
    atlas.brush = [0, 0.5, 0, 1]
    assert {row["theta"] for row in atlas.brushed()} == {1e2}
    assert atlas.describe() == "2 of 4 models: γ from 0.50 to 0.50, median 0.50; different in text (2)."
    atlas.brush = [0.4, 0.6, 0, 1]
    assert atlas.describe() == "0 of 4 models are in the brush."
    atlas.set_trait("x", "text")
    atlas.brush = [0.5, 1, 0.5, 1]
    assert [row["text"] for row in atlas.brushed()] == ["shakespeare"]


@pytest.mark.parametrize("wrong", [{"x": "profile"}, {"colour": "gamma"}, {"brush": [0, 1, 0]}, {"brush": [0, 2, 0, 1]}])
def test_what_is_no_state_is_refused(wrong):
    with pytest.raises(traitlets.TraitError):
        Atlas(models=ROWS, **wrong)


@needs_node
@pytest.mark.parametrize("x", ["theta", "text", "gamma"])
def test_the_page_brushes_the_same_models(x, tmp_path):
    own = (widgets.HERE / "gamma_atlas.js").read_text().partition("export default")[0]
    atlas = Atlas(models=ROWS, x=x, brush=[0, 0.5, 0.2, 1])
    script = f"{(widgets.HERE / 'library.js').read_text()}\n{own}\nconst state = {json.dumps(atlas.state())};\n"
    script += "console.log(JSON.stringify([brushed(state), said(state), Object.keys(AXES), LOGARITHMIC]));"
    (tmp_path / "script.mjs").write_text(script)
    run = subprocess.run(["node", tmp_path / "script.mjs"], capture_output=True, text=True, check=True)
    brushed, said, axes, _ = json.loads(run.stdout)
    assert brushed == atlas.brushed() and sorted(axes) == sorted(AXES)
    assert said.startswith(atlas.describe().partition(";")[0])
