"""Still pictures of the widgets: what a widget draws is in them, what only hands need is not, and no old one stays."""

import re

import pytest
from small_course import ROOT, bundle

import course.widgets
from autograder.authoring.chapters import find_chapters
from book import still

DRAWN = """
export default {
  render({ model, el }) {
    const put = connect(model, el, ["p"], () => {});
    const figure = drawing("", (width) => {
      const axes = chart({ x: [0, 1], y: [0, 1], box: [30, 20, width / 2, 100], xLabel: "odds" });
      axes.line([[0, 0], [1, model.get("p")]], { colour: "weights" });
      axes.append(svg("rect", { width: 9, height: 9, fill: "transparent" }));
      return [160, axes, handle({ x: 40, y: 40, colour: "query", label: "p", onMove: () => {} })];
    });
    figure.redraw();
    const table = numberTable({ title: "Odds", values: [[-1.5, 2]], onInput: () => {} });
    el.append(slider({ label: "p to move", min: 0, max: 1, step: 0.01, value: 0.5, onInput: () => {} }), buttons(["Press", () => {}]),
      figure, table, element("p", {}, "a < b", element("b", {}, " in bold")), field({ label: "Text", value: "typed", onInput: () => {} }));
  },
};
"""


@pytest.fixture
def widgets(tmp_path, monkeypatch):
    """A folder of widgets and one of pictures, both of this test alone."""
    for name in ("library.js", "library.css"):
        (tmp_path / name).write_bytes((course.widgets.HERE / name).read_bytes())
    (tmp_path / "drawn.js").write_text(DRAWN)
    (tmp_path / "broken.js").write_text('export default { render() { throw new Error("no"); } };')
    monkeypatch.setattr(course.widgets, "HERE", tmp_path)
    monkeypatch.setattr(still, "KEPT", tmp_path / "stills")
    return tmp_path


def test_a_still_has_what_the_widget_draws_and_no_control(widgets):
    picture = still.still(bundle("drawn"))
    words = re.findall(r"<text[^>]*>([^<]+)</text>", picture)
    assert {"odds", "Odds", "−1.5", "2", "a &lt; b", "in bold", "typed"} <= set(words)
    assert not {"p to move", "Press", "0.50"} & set(words)
    assert '<polyline points="30.0,120.0' in picture and 'stroke="#b84c99"' in picture  # of the palette
    assert "currentColor" in picture and "var(" not in picture and "transparent" not in picture
    assert not re.search(r"\s(class|style|role|tabindex|aria-label)=", picture.partition(">")[2])
    assert re.match(r'<svg xmlns="[^"]+" class="still" viewBox="0 0 640 \d+" width="640" height="\d{3}"', picture)


def test_a_still_is_drawn_once_and_again_when_the_script_or_the_state_changes(widgets, monkeypatch):
    asked = []
    monkeypatch.setattr(still, "_drawn", lambda bundles: asked.extend(bundles) or [f"<svg>{len(asked)}</svg>" for _ in bundles])
    first = bundle("drawn")
    assert still.still(first) == still.still(first) == "<svg>1</svg>\n"
    still.draw([first, first | {"state": {"p": 0.75}}])
    assert [given["state"]["p"] for given in asked] == [0.25, 0.75]
    (widgets / "drawn.js").write_text(DRAWN.replace("odds", "chances"))
    assert still.still(first) == "<svg>3</svg>\n"


def test_a_widget_that_fails_and_a_missing_browser_are_told(widgets, monkeypatch):
    with pytest.raises(still.StillError, match="failed in Chromium: broken"):
        still.draw([bundle("drawn"), bundle("broken")])
    monkeypatch.setattr(still, "find", lambda program: None)
    with pytest.raises(still.StillError, match="make tools"):
        still.draw([bundle("drawn")])


def test_each_widget_of_the_course_has_a_still_with_words():
    found = {chapter.id: bundle for chapter in find_chapters(ROOT) for bundle in still.bundles(chapter)}
    still.draw(found.values())
    for chapter, given in found.items():
        picture = still.still(given)
        assert picture.count("<text") >= 5, chapter
        assert not re.search(r"NaN|undefined|Infinity|var\(", picture), chapter
        assert len(picture) < 100_000, chapter
        assert not re.search(r'font-weight="(?!\d00")', picture), chapter  # all that an EPUB may have
